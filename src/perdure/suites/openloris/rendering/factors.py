"""The three levels of each factor: what frames are rendered with, and what they must measure.

=============  ==========================  =========================  =========================
factor         level 1                     level 2                    level 3
=============  ==========================  =========================  =========================
illumination   mean luminance ≥ 114        90 to 114                  50 to 90
occlusion      ≤ 2 % hidden                20 to 30 %                 45 to 55 %
pixel          longer side > 200 of 1280   30 of 424 to 200 of 1280   < 30 of 320
clutter        no other object             3, all visible             8, at least 6 visible
=============  ==========================  =========================  =========================

While one factor varies the others are at level 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from perdure.suites.openloris.frame_annotations import Annotation
from perdure.suites.openloris.rendering.sensor import Lighting
from perdure.types import Array

# One entry a level.
LIGHTING = (
    Lighting(1.0, (124, 146), 1.5),
    Lighting(0.8, (98, 110), 2.5, (1.01, 1.0, 0.97)),
    Lighting(0.6, (72, 86), 4.5, (1.03, 1.0, 0.93)),
)
"""Chosen so that naive and cumulative learning score as published: docs/openloris.md has both."""
LUMINANCE_RANGES = ((114.0, 256.0), (90.0, 114.0), (50.0, 90.0))
OCCLUDED_RANGES = ((0.0, 0.02), (0.20, 0.30), (0.45, 0.55))
"""Fraction of the object that is hidden."""
SIZE_RANGES = ((200 / 1280, 1.0), (30 / 424, 200 / 1280), (0.0, 30 / 320))
"""Longer side of the object's bounding box as a fraction of the frame's width."""
RENDERED_SIZES = ((0.28, 0.4), (0.105, 0.145), (0.058, 0.08))
"""Sizes to render at: inside SIZE_RANGES by a margin for a pixel's error."""
RENDERED_SIZES_OCCLUDED = (0.2, 0.27)
"""Smaller than otherwise: an occluder needs room between the camera and the object."""
FRAME_SCALES = (1280 / 424, 1.0, 320 / 424)
"""Frame sizes of the pixel factor's levels relative to the standard one, as in the dataset."""
DISTRACTORS = (0, 3, 8)
MIN_VISIBLE_DISTRACTORS = (0, 3, 6)


@dataclass(frozen=True, slots=True)
class Levels:
    """The level of every factor, 1 to 3."""

    illumination: int = 1
    occlusion: int = 1
    pixel: int = 1
    clutter: int = 1


def check_truncation(mask: Array) -> str:
    """Why the object is not whole in the frame; empty if it is. Truncated, its size is not known."""
    edge = mask[0].any() or mask[-1].any() or mask[:, 0].any() or mask[:, -1].any()
    return "the object touches the frame's edge" if edge else ""


def check_levels(a: Annotation, levels: Levels) -> str:
    """Why a frame is not of these levels; empty if it is."""
    low, high = LUMINANCE_RANGES[levels.illumination - 1]
    if not low <= a.luminance < high:
        return f"luminance {a.luminance:.0f} is not in [{low:g}, {high:g})"
    low, high = OCCLUDED_RANGES[levels.occlusion - 1]
    if not low <= a.occluded <= high:
        return f"{a.occluded:.1%} of the object is hidden, not {low:.0%} to {high:.0%}"
    low, high = SIZE_RANGES[levels.pixel - 1]
    if not low < a.size < high:
        return f"its longer side is {a.size:.3f} of the width, not between {low:.3f} and {high:.3f}"
    fewest = MIN_VISIBLE_DISTRACTORS[levels.clutter - 1]
    if not fewest <= a.clutter <= DISTRACTORS[levels.clutter - 1]:
        return f"{a.clutter} other objects are visible, not at least {fewest}"
    return ""
