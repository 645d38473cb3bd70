"""Where an occluder must stand to hide a wanted part of the object: solved on masks, not by drawing."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.camera import FOCAL, Pose
from perdure.types import Array

STEPS = 12
"""Halvings of the stretch of ground on which the place is sought."""
NEAREST = 0.08
"""Depth, in units of length, below which nothing is drawn."""
FAR = 1e6
REACH = 2.0
"""Half that stretch, in units of length."""


def across(
    rings: tuple[Array, Array], place: Array, pose: Pose, whole: Array, wanted: float, side: int
) -> float:
    """How far to the right of ``place`` an occluder hides the part ``wanted`` of the mask ``whole``.

    ``rings`` are its vertices by height, and where each height begins. It comes from the right
    (``side`` 1) or from the left (−1).
    """
    height, width = whole.shape
    rows = np.flatnonzero(whole.any(1))
    if not len(rows):
        return 0.0
    rows = np.arange(rows[0], rows[-1] + 1)
    f = FOCAL * height
    heights, x, z = _outline(rings, place, pose, side)
    heights = height / 2 - f * heights
    # Pixels of the mask to the left of each column, by row.
    left = np.zeros((len(rows), width + 1), np.int32)
    np.cumsum(whole[rows[0] : rows[-1] + 1], axis=1, out=left[:, 1:])
    total, flat = int(left[:, -1].sum()), left.ravel()
    starts, middles = np.arange(len(rows)) * (width + 1), rows + 0.5

    def hidden(move: float) -> float:
        edge = np.interp(middles, heights, width / 2 + f * (x + move) / z)
        column = np.minimum(np.maximum(np.rint(edge), 0), width).astype(int)
        part = int(flat.take(starts + column).sum()) / total
        return float(1 - part if side > 0 else part)

    low, high = -REACH, REACH
    for _ in range(STEPS):
        middle = (low + high) / 2
        # Moved to the right it hides less if it comes from the right, and more from the left.
        if (hidden(middle) > wanted) == (side > 0):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _outline(
    rings: tuple[Array, Array], place: Array, pose: Pose, side: int
) -> tuple[Array, Array, Array]:
    """The outermost point of each ring on its side, from the top: slope upward, x and depth."""
    points, starts = rings
    off = points + (np.array([*place, 0.0]) - pose.place)
    x, up, z = (off @ np.stack(pose.axes, 1)).T
    front = z > NEAREST
    # Of a ring behind the camera, what stands out most is as good a guess as any.
    slope = np.where(front, -side * x / np.where(front, z, 1.0), -side * x - FAR)
    ring = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(x)))
    outer = np.flatnonzero(slope == np.maximum.reduceat(slope, starts)[ring])
    outer = outer[np.unique(ring[outer], return_index=True)[1]]
    line = np.stack([up[outer], x[outer], z[outer]], 1)
    behind = np.flatnonzero(line[:, 2] <= NEAREST)
    if len(behind) and behind[0] > 0:
        # A tall thing close by rises above the camera: its outline ends where it passes it.
        below, above = line[behind[0] - 1], line[behind[0]]
        part = (below[2] - NEAREST) / (below[2] - above[2])
        line = np.concatenate([line[: behind[0]], [below + part * (above - below)]])
    up, x, z = line[::-1].T
    # Rings at nearly the same height may change places when seen from above.
    return np.minimum.accumulate(up / z), x, z
