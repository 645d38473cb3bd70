"""Contact sheets: every object, and every factor at every level."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from perdure.registry import extras_named
from perdure.suites.openloris.camera import Camera, Pose, aim, project
from perdure.suites.openloris.film import Studio
from perdure.suites.openloris.labels import NAMES
from perdure.suites.openloris.layouts import FACTORS
from perdure.suites.openloris.room import SCENES, furnish
from perdure.types import Array

CELL = (212, 120)
CAPTION = 14
COLUMNS = 11
TILT = 35.0
"""Degrees from which portraits look down."""
EXAMPLES = ("cup_01", "pencil_02", "glasses_02", "toy_01", "ladle_01", "wallet_02")


def gallery(out: str | Path, names: Sequence[str] = NAMES, seed: int = 0) -> list[Path]:
    """Write ``out`` with all objects, and beside it ``…-factors.png``; the paths written."""
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [(portrait(n, NAMES.index(n) % SCENES, seed), n) for n in names]
    _sheet(path, cells, COLUMNS)
    factors = path.with_name(f"{path.stem}-factors{path.suffix}")
    examples = [n for n in EXAMPLES if n in names] or list(names[:1])
    _sheet(factors, [cell for n in examples for cell in levels(n, seed)], 3 * len(FACTORS))
    return [path, factors]


def portrait(name: str, scene: int, seed: int = 0) -> Array:
    """One object alone, large in the frame."""
    room = furnish(name, (), (scene,), seed)
    width, height = 2 * CELL[0], 2 * CELL[1]
    camera = Camera(room, width, height)
    try:
        room.show(())
        room.dress(scene)
        camera.settle()
        azimuth = _view(room.target)
        pose = aim(room.target, azimuth, TILT, 0.5, np.zeros(2), width, height)
        tall = np.ptp(project(room.target, pose, width, height)[:, 1]) / height
        if tall > 0.85:
            pose = aim(room.target, azimuth, TILT, 0.5 * 0.85 / tall, np.zeros(2), width, height)
        return camera.picture(pose)[0]
    finally:
        camera.close()


def _view(points: Array) -> float:
    """A direction that shows most of the outline: end on, a ladle is a blot."""
    from scipy.spatial import ConvexHull

    turns = [40.0 + s * a for a in range(0, 181, 20) for s in (1, -1)]
    shown = []
    for turn in turns:
        right, up, _ = Pose(turn, TILT, 1.0, (0.0, 0.0, 0.0)).axes
        shown.append(ConvexHull(points @ np.stack([right, up], 1)).volume)
    return next(t for t, area in zip(turns, shown, strict=True) if area > 0.6 * max(shown))


def levels(name: str, seed: int = 0) -> list[tuple[Array, str]]:
    """A frame of every factor and level, captioned with what was measured."""
    studio = Studio(name, seed)
    out = []
    try:
        for factor in FACTORS:
            for level in range(3):
                frame = studio.clip(factor, 3 * level + 2, 3)[1]
                m = frame.measured
                value = {
                    "illumination": f"luminance {m.luminance:.0f}",
                    "occlusion": f"{m.occluded:.0%} hidden",
                    "pixel": f"{max(m.width, m.height)} px of {frame.rgb.shape[1]}",
                    "clutter": f"{m.clutter} others, {m.share:.0%} of pixels",
                }[factor]
                out.append((frame.rgb, f"{name}  {value}"))
    finally:
        studio.close()
    return out


def _sheet(path: Path, cells: Sequence[tuple[Array, str]], columns: int) -> None:
    with extras_named("the OpenLORIS gallery"):
        from PIL import Image, ImageDraw
    width, height = CELL
    rows = -(-len(cells) // columns)
    sheet = Image.new("RGB", (width * min(columns, len(cells)), (height + CAPTION) * rows), "white")
    draw = ImageDraw.Draw(sheet)
    for i, (picture, caption) in enumerate(cells):
        x, y = i % columns * width, i // columns * (height + CAPTION)
        image = Image.fromarray(np.ascontiguousarray(picture))
        sheet.paste(image.resize(CELL, Image.Resampling.LANCZOS), (x, y))
        draw.text((x + 3, y + height + 1), caption, fill="black")
    sheet.save(path)
