"""Where an occluder must stand to hide a wanted fraction of the object, solved on its mask.

Searching by rendering the occluder at every candidate place would cost a frame each.
"""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.rendering.camera import FOCAL_LENGTH, Pose
from perdure.types import Array

MAX_OFFSET = 2.0
"""Farthest place that is tried to either side, in units of length."""
BISECTIONS = 12
NEAR_PLANE = 0.08
"""Depth, in units of length, below which nothing is drawn."""
FAR = 1e6

Rings = tuple[Array, Array]
"""Vertices (n, 3) of an occluder sorted by height, and the index at which each height begins."""


def occluder_offset(
    rings: Rings, position: Array, pose: Pose, mask: Array, fraction: float, side: int
) -> float:
    """How far to the right of ``position`` an occluder hides this fraction of the object's mask.

    It covers the mask from the right (``side`` 1) or from the left (−1).
    """
    height, width = mask.shape
    rows = np.flatnonzero(mask.any(1))
    if not len(rows):
        return 0.0
    rows = np.arange(rows[0], rows[-1] + 1)
    f = FOCAL_LENGTH * height
    slopes, x, z = _silhouette(rings, position, pose, side)
    edge_rows = height / 2 - f * slopes
    # Pixels of the mask to the left of each column, by row.
    left = np.zeros((len(rows), width + 1), np.int32)
    np.cumsum(mask[rows[0] : rows[-1] + 1], axis=1, out=left[:, 1:])
    total, flat = int(left[:, -1].sum()), left.ravel()
    starts, middles = np.arange(len(rows)) * (width + 1), rows + 0.5

    def hidden(offset: float) -> float:
        edge = np.interp(middles, edge_rows, width / 2 + f * (x + offset) / z)
        column = np.minimum(np.maximum(np.rint(edge), 0), width).astype(int)
        part = int(flat.take(starts + column).sum()) / total
        return float(1 - part if side > 0 else part)

    low, high = -MAX_OFFSET, MAX_OFFSET
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        # Moved to the right it hides less if it covers from the right, and more from the left.
        if (hidden(middle) > fraction) == (side > 0):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _silhouette(rings: Rings, position: Array, pose: Pose, side: int) -> tuple[Array, Array, Array]:
    """The occluder's edge on the object's side, one point a ring from the top: slope, x, depth."""
    points, starts = rings
    relative = points + (np.array([*position, 0.0]) - pose.position)
    x, up, z = (relative @ np.stack(pose.axes, 1)).T
    in_front = z > NEAR_PLANE
    # Of a ring behind the camera, what stands out most is as good a guess as any.
    slope = np.where(in_front, -side * x / np.where(in_front, z, 1.0), -side * x - FAR)
    ring = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(x)))
    outer = np.flatnonzero(slope == np.maximum.reduceat(slope, starts)[ring])
    outer = outer[np.unique(ring[outer], return_index=True)[1]]
    line = np.stack([up[outer], x[outer], z[outer]], 1)
    behind = np.flatnonzero(line[:, 2] <= NEAR_PLANE)
    if len(behind) and behind[0] > 0:
        # A tall occluder close by rises above the camera: its edge is clipped at the near plane.
        below, above = line[behind[0] - 1], line[behind[0]]
        part = (below[2] - NEAR_PLANE) / (below[2] - above[2])
        line = np.concatenate([line[: behind[0]], [below + part * (above - below)]])
    up, x, z = line[::-1].T
    # Rings at nearly the same height may change places when seen from above.
    return np.minimum.accumulate(up / z), x, z
