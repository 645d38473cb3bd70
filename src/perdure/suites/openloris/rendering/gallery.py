"""Contact sheets: every object, and every factor at every level."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from perdure.registry import extras_named
from perdure.suites.openloris.labels import NAMES
from perdure.suites.openloris.layouts import FACTORS
from perdure.suites.openloris.rendering.camera import Pose, fit_pose, project
from perdure.suites.openloris.rendering.clips import ClipRenderer
from perdure.suites.openloris.rendering.renderer import Renderer
from perdure.suites.openloris.rendering.scene import BACKGROUNDS, build_scene
from perdure.types import Array

CELL = (212, 120)
CAPTION = 14
COLUMNS = 11
ELEVATION = 35.0
"""Degrees from which the single objects are seen."""
EXAMPLES = ("cup_01", "pencil_02", "glasses_02", "toy_01", "ladle_01", "wallet_02")


def gallery(out: str | Path, names: Sequence[str] = NAMES, seed: int = 0) -> list[Path]:
    """Write all objects to ``out``, and some at all levels to ``…-factors``; returns both paths."""
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [(render_object(n, NAMES.index(n) % BACKGROUNDS, seed), n) for n in names]
    _write_sheet(path, cells, COLUMNS)
    factors = path.with_name(f"{path.stem}-factors{path.suffix}")
    examples = [n for n in EXAMPLES if n in names] or list(names[:1])
    _write_sheet(factors, [c for n in examples for c in render_levels(n, seed)], 3 * len(FACTORS))
    return [path, factors]


def render_object(name: str, background: int, seed: int = 0) -> Array:
    """One object alone, large in the frame."""
    scene = build_scene(name, (), (background,), seed)
    width, height = 2 * CELL[0], 2 * CELL[1]
    renderer = Renderer(scene, width, height)
    try:
        scene.set_visible(())
        scene.set_background(background)
        renderer.update()
        azimuth = _best_azimuth(scene.target)

        def fit(size: float) -> Pose:
            return fit_pose(scene.target, azimuth, ELEVATION, size, np.zeros(2), width, height)

        pose = fit(0.5)
        tall = np.ptp(project(scene.target, pose, width, height)[:, 1]) / height
        if tall > 0.85:
            pose = fit(0.5 * 0.85 / tall)
        return renderer.render(pose)[0]
    finally:
        renderer.close()


def _best_azimuth(points: Array) -> float:
    """A direction near 40° that shows much of the outline: end on, a ladle is hard to recognise."""
    from scipy.spatial import ConvexHull

    azimuths = [40.0 + s * a for a in range(0, 181, 20) for s in (1, -1)]
    areas = []
    for azimuth in azimuths:
        right, up, _ = Pose(azimuth, ELEVATION, 1.0, (0.0, 0.0, 0.0)).axes
        areas.append(ConvexHull(points @ np.stack([right, up], 1)).volume)
    return next(a for a, area in zip(azimuths, areas, strict=True) if area > 0.6 * max(areas))


def render_levels(name: str, seed: int = 0) -> list[tuple[Array, str]]:
    """A frame at every level of every factor, captioned with what was measured."""
    clips = ClipRenderer(name, seed)
    out = []
    try:
        for factor in FACTORS:
            for level in range(3):
                frame = clips.clip(factor, 3 * level + 2, 3)[1]
                m = frame.annotation
                value = {
                    "illumination": f"luminance {m.luminance:.0f}",
                    "occlusion": f"{m.occluded:.0%} hidden",
                    "pixel": f"{max(m.width, m.height)} px of {frame.rgb.shape[1]}",
                    "clutter": f"{m.clutter} others, {m.share:.0%} of pixels",
                }[factor]
                out.append((frame.rgb, f"{name}  {value}"))
    finally:
        clips.close()
    return out


def _write_sheet(path: Path, cells: Sequence[tuple[Array, str]], columns: int) -> None:
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
