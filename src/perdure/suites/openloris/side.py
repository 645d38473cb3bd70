"""Depth, masks, boxes and measured factors beside the frames of layout A. Format: docs/openloris.md.

A frame ``SPLIT/FACTOR/segmentK/OBJECT/NAME.jpg`` may have ``depth/…/NAME.png`` (16 bits, millimetres),
``mask/…/NAME.png`` (8 bits) and a row in ``boxes/SPLIT/FACTOR/segmentK/OBJECT.csv``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from perdure.errors import SpecError
from perdure.registry import extras_named
from perdure.types import Array

VISIBLE, HIDDEN = 255, 128
"""Values of a mask: the target where it is seen, and where something stands before it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured on one frame."""

    file: str
    """Name of the frame in its folder."""
    x: int
    y: int
    width: int
    height: int
    """Box of the whole target, hidden parts included, in pixels of the frame."""
    luminance: float
    """Mean of 0.299 R + 0.587 G + 0.114 B, of 255."""
    occluded: float
    """1 − visible pixels of the target / all its pixels."""
    size: float
    """Longer side of the box as a fraction of the frame's width."""
    clutter: int
    """Other objects of which at least one pixel is seen."""
    share: float
    """Fraction of the frame's pixels that show other objects."""


COLUMNS = tuple(f.name for f in fields(Measured))
FRACTIONS = ("luminance", "occluded", "size", "share")


def table(rows: Iterable[Measured]) -> str:
    """The rows as the text of a boxes file."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    for row in rows:
        out.writerow([f"{v:.5g}" if isinstance(v, float) else v for v in astuple(row)])
    return text.getvalue()


def boxes(root: Path, clip_folder: str) -> dict[str, Measured]:
    """Measured rows of a clip by frame name; none if the data has no boxes file."""
    path = root / "boxes" / f"{clip_folder}.csv"
    if not path.is_file():
        return {}
    with path.open(newline="") as stream:
        reader = csv.DictReader(stream)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise SpecError(f"{path}: expected the columns {', '.join(COLUMNS)}")
        return {r["file"]: _row(path, r) for r in reader}


def depth(root: Path, file: str) -> Array | None:
    """Depth of a frame in metres (0 = unknown), or None if there is no file."""
    path = _beside(root, "depth", file)
    return _picture(path).astype(np.float32) / 1000 if path.is_file() else None


def mask(root: Path, file: str) -> Array | None:
    """Mask of a frame with the values VISIBLE, HIDDEN and 0, or None if there is no file."""
    path = _beside(root, "mask", file)
    return _picture(path).astype(np.uint8) if path.is_file() else None


def _beside(root: Path, kind: str, file: str) -> Path:
    return root / kind / PurePosixPath(file).with_suffix(".png")


def _row(path: Path, row: dict[str, Any]) -> Measured:
    try:
        values = [float(row[k]) if k in FRACTIONS else int(row[k]) for k in COLUMNS[1:]]
        return Measured(row["file"], *values)  # type: ignore[arg-type]
    except (TypeError, ValueError) as e:
        raise SpecError(f"{path}, row of {row['file']}: {e}") from e


def _picture(path: Path) -> Array:
    with extras_named("suite openloris"):
        from PIL import Image
    with Image.open(path) as image:
        return np.asarray(image)
