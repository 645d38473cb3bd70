"""Annotations of frames in layout A: depth, masks, bounding boxes and measured factors.

A frame ``SPLIT/FACTOR/segmentK/OBJECT/NAME.jpg`` may have ``depth/…/NAME.png`` (16 bits, millimetres),
``mask/…/NAME.png`` (8 bits) and a row in ``boxes/SPLIT/FACTOR/segmentK/OBJECT.csv``. Rendered data has
them; the format is described in docs/openloris.md.
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

VISIBLE, OCCLUDED = 255, 128
"""Values of a mask: the object where it is visible, and where something hides it."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """The bounding box and the measured factors of one frame: a row of a boxes file."""

    file: str
    """Name of the frame in its folder."""
    x: int
    y: int
    width: int
    height: int
    """Bounding box of the whole object, hidden parts included, in pixels of the frame."""
    luminance: float
    """Mean of 0.299 R + 0.587 G + 0.114 B, of 255."""
    occluded: float
    """1 − visible pixels of the object / all its pixels."""
    size: float
    """Longer side of the bounding box as a fraction of the frame's width."""
    clutter: int
    """Other objects of which at least one pixel is visible."""
    share: float
    """Fraction of the frame's pixels that show other objects."""


COLUMNS = tuple(f.name for f in fields(Annotation))
FLOATS = ("luminance", "occluded", "size", "share")


def to_csv(rows: Iterable[Annotation]) -> str:
    """The rows as the text of a boxes file."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    for row in rows:
        out.writerow([f"{v:.5g}" if isinstance(v, float) else v for v in astuple(row)])
    return text.getvalue()


def csv_path(root: Path, clip_folder: str) -> Path:
    """The boxes file of a clip, whose folder below the root is SPLIT/FACTOR/segmentK/OBJECT."""
    return root / "boxes" / f"{clip_folder}.csv"


def read_annotations(root: Path, clip_folder: str) -> dict[str, Annotation]:
    """Annotations of a clip by frame name; none if the data has no boxes file."""
    path = csv_path(root, clip_folder)
    if not path.is_file():
        return {}
    with path.open(newline="") as stream:
        reader = csv.DictReader(stream)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise SpecError(f"{path}: expected the columns {', '.join(COLUMNS)}")
        return {r["file"]: _parse_row(path, r) for r in reader}


def read_depth(root: Path, file: str) -> Array | None:
    """Depth of a frame in metres (0 = unknown), or None if there is no file."""
    path = _png_path(root, "depth", file)
    return _read_png(path).astype(np.float32) / 1000 if path.is_file() else None


def read_mask(root: Path, file: str) -> Array | None:
    """Mask of a frame with the values VISIBLE, OCCLUDED and 0, or None if there is no file."""
    path = _png_path(root, "mask", file)
    return _read_png(path).astype(np.uint8) if path.is_file() else None


def _png_path(root: Path, kind: str, file: str) -> Path:
    return root / kind / PurePosixPath(file).with_suffix(".png")


def _parse_row(path: Path, row: dict[str, Any]) -> Annotation:
    try:
        values = [float(row[k]) if k in FLOATS else int(row[k]) for k in COLUMNS[1:]]
        return Annotation(row["file"], *values)  # type: ignore[arg-type]
    except (TypeError, ValueError) as e:
        raise SpecError(f"{path}, row of {row['file']}: {e}") from e


def _read_png(path: Path) -> Array:
    with extras_named("suite openloris"):
        from PIL import Image
    with Image.open(path) as image:
        return np.asarray(image)
