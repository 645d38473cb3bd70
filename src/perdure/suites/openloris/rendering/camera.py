"""Camera poses: where the camera is, what it projects where, and poses that frame an object."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perdure.types import Array

FOV = 42.0
"""Vertical field of view in degrees, that of a RealSense D435's colour camera."""
FOCAL_LENGTH = 0.5 / np.tan(np.deg2rad(FOV / 2))
"""In frame heights."""
FIT_TOLERANCE = 5e-4
"""Relative error at which ``fit_pose`` stops."""
FIT_ITERATIONS = 12


@dataclass(frozen=True, slots=True)
class Pose:
    """A camera that looks at a point from the direction ``azimuth``, ``elevation`` (degrees)."""

    azimuth: float
    elevation: float
    distance: float
    lookat: tuple[float, float, float]

    @property
    def axes(self) -> tuple[Array, Array, Array]:
        """Unit vectors to the right, upward and forward."""
        a, e = np.deg2rad(self.azimuth), np.deg2rad(self.elevation)
        forward = -np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        # right × forward, written out: numpy's cross costs more than the projection.
        f, s, c = forward, right[0], right[1]
        up = np.array([c * f[2], -s * f[2], s * f[1] - c * f[0]])
        return right, up, forward

    @property
    def position(self) -> Array:
        """Where the camera is."""
        here: Array = np.array(self.lookat) - self.distance * self.axes[2]
        return here


def project(points: Array, pose: Pose, width: int, height: int) -> Array:
    """Points (n, 3) as (column, row, depth)."""
    right, up, forward = pose.axes
    relative = points - pose.position
    z = relative @ forward
    f = FOCAL_LENGTH * height
    x, y = relative @ right, relative @ up
    return np.stack([width / 2 + f * x / z, height / 2 - f * y / z, z], -1)


def fit_pose(
    points: Array,
    azimuth: float,
    elevation: float,
    size: float,
    offset: Array,
    width: int,
    height: int,
) -> Pose:
    """The pose that shows the points' bounding box at a wanted size and place in the frame.

    Its longer side is ``size`` frame widths long, and its centre ``offset`` frame widths to the right
    of, and below, the middle of the frame.
    """
    axes = Pose(azimuth, elevation, 1.0, (0.0, 0.0, 0.0)).axes
    # The direction stays, so the points are turned into the camera's axes once.
    x, y, z = np.ascontiguousarray((points @ np.stack(axes, 1)).T)
    right, up, forward = ((float(v.min()) + float(v.max())) / 2 for v in (x, y, z))
    f = FOCAL_LENGTH * height
    distance = f / (size * width)
    for _ in range(FIT_ITERATIONS):
        depth = z - (forward - distance)
        columns, rows = (x - right) / depth, (y - up) / depth
        low, high, bottom, top = (
            float(v) for v in (columns.min(), columns.max(), rows.min(), rows.max())
        )
        # The box's centre is moved to where it is wanted.
        dx = (low + high) / 2 - float(offset[0]) * width / f
        dy = (bottom + top) / 2 + float(offset[1]) * width / f
        right, up = right + distance * dx, up + distance * dy
        ratio = max(high - low, top - bottom) * f / (size * width)
        distance *= ratio
        if abs(ratio - 1) < FIT_TOLERANCE and max(abs(dx), abs(dy)) < FIT_TOLERANCE:
            break
    at = right * axes[0] + up * axes[1] + forward * axes[2]
    return Pose(azimuth, elevation, distance, (float(at[0]), float(at[1]), float(at[2])))
