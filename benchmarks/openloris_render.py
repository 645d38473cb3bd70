"""Rendered OpenLORIS frames per core-second, beside the bare renderer calls that they need.

A full frame is RGB and depth, the modal mask, the amodal mask, all factors measured, tested and
passed through the sensor model. The bare calls are the same scene and camera poses through MuJoCo
alone: one colour-and-depth pass, one identity pass of everything (modal), one of the target
(amodal), each with its read-back. Both take turns in one process, so that load hits both alike.
Encoding and writing the files is measured apart.

    python benchmarks/openloris_render.py       writes benchmarks/results/openloris_render.md
"""

from __future__ import annotations

import platform
import tempfile
import time
from pathlib import Path

import numpy as np

from perdure.seeds import rng_for
from perdure.suites.openloris.layouts import FACTORS
from perdure.suites.openloris.rendering.clips import Arrangement, ClipRenderer
from perdure.suites.openloris.rendering.dataset import write_frame
from perdure.suites.openloris.rendering.factors import Levels
from perdure.suites.openloris.rendering.renderer import VISIBLE_GROUPS
from perdure.suites.openloris.rendering.scene import TARGET

HERE = Path(__file__).parent
OBJECTS = ("cup_01", "pencil_01", "glasses_02", "toy_01")
SIZES = (424, 128)
ROUNDS, FRAMES = 8, 6
GOAL = 0.8


def bare(clips, factor, level, frames):
    """Core-seconds of the bare calls for as many frames of this factor and level."""
    r = clips.renderer()
    arrangement = Arrangement(clips, r, factor, 3 * level - 1, Levels(**{factor: level}), 0)
    poses = [arrangement.pose((i + 0.5) / frames, 0, rng_for(0, i)) for i in range(frames)]
    r.update()
    rgb, depth = r.empty_rgb(), r.empty_depth()
    start = time.process_time()
    for pose in poses:
        r.draw(pose, VISIBLE_GROUPS)
        r.read(rgb, depth)
        r.draw(pose, VISIBLE_GROUPS, segmentation=True)
        r.read(rgb, None)
        r.draw(pose, (TARGET,), segmentation=True)
        r.read(rgb, None)
    return time.process_time() - start


def full(clips, factor, level, frames):
    """Core-seconds of accepted frames, and those of writing them."""
    start = time.process_time()
    made = clips.clip(factor, 3 * level - 1, frames)
    rendered = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / kind for kind in ("rgb", "depth", "mask")]
        for place in places:
            place.mkdir()
        start = time.process_time()
        for frame in made:
            write_frame(frame, places)
        return rendered, time.process_time() - start


def main():
    lines = [
        "# Rendering OpenLORIS frames",
        "",
        f"{platform.processor() or platform.machine()}, one process, CPU time; best of {ROUNDS} "
        f"rounds over {len(OBJECTS)} objects, {FRAMES} frames each of levels 1 and 3. "
        f"To reach: full frames at least {GOAL} of the bare calls.",
        "",
        "| width | factor | bare frames/core-s | full frames/core-s | ratio | core-ms a frame | + writing |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in SIZES:
        # The pixel factor's other frame sizes are left out: its frames are not comparable.
        table = {f: [] for f in FACTORS if f != "pixel"}
        for name in OBJECTS:
            clips = ClipRenderer(name, 0, size)
            for factor in table:
                full(clips, factor, 1, 3)
            for _ in range(ROUNDS):
                for factor, rows in table.items():
                    for level in (1, 3):
                        rows.append(
                            (
                                bare(clips, factor, level, FRAMES),
                                *full(clips, factor, level, FRAMES),
                            )
                        )
            clips.close()
        # The best round of each part: other programs on the machine only ever add to it.
        best = {
            factor: np.array(rows).reshape(len(OBJECTS), ROUNDS, 2, 3).min(1).sum((0, 1))
            for factor, rows in table.items()
        }
        best["**all**"] = np.sum(list(best.values()), axis=0)
        lines += [line(size, factor, *seconds) for factor, seconds in best.items()]
    text = "\n".join(lines) + "\n"
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "openloris_render.md").write_text(text)
    print(text)


def line(size, factor, bare_, full_, writing):
    count = len(OBJECTS) * 2 * FRAMES * (3 if "all" in factor else 1)
    return (
        f"| {size} | {factor} | {count / bare_:.0f} | {count / full_:.0f} | {bare_ / full_:.2f} | "
        f"{1000 * full_ / count:.1f} | {1000 * writing / count:.1f} |"
    )


if __name__ == "__main__":
    main()
