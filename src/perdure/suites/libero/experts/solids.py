"""Solids in space: what touches in a scene, as boxes and cylinders to be asked about points.

Everything that collides in LIBERO's scenes is made of boxes. Whether a gripper fits somewhere, and what
is between its fingers, is found by sampling surfaces: points of one thing in the boxes of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.types import Array

SPACING = 0.007
"""Metres between sampled points."""
SIGNS = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
"""Of the eight corners of a box."""
LARGE = 0.3
"""Half an edge from which a solid is a table or a floor: its surface is not sampled."""


@dataclass(frozen=True)
class Solids:
    """Oriented boxes; those that are ``round`` are the cylinders about z that fit into them."""

    middles: Array
    """n × 3."""
    axes: Array
    """n × 3 × 3: columns are the axes of a solid."""
    halves: Array
    """n × 3: half the edges."""
    round: Array

    def __len__(self) -> int:
        return len(self.middles)

    def take(self, chosen: Array) -> Solids:
        """Some of them."""
        return Solids(
            self.middles[chosen], self.axes[chosen], self.halves[chosen], self.round[chosen]
        )

    def moved(self, turn: Array, shift: Array) -> Solids:
        """Each point p at turn · p + shift."""
        return Solids(self.middles @ turn.T + shift, turn @ self.axes, self.halves, self.round)

    def inside(self, points: Array, margin: float = 0.0) -> Array:
        """Which of the points are in one of the solids, or nearer to it than the margin."""
        if not len(self) or not len(points):
            return np.zeros(len(points), bool)
        # Most are elsewhere, and to look for that costs a tenth of asking them about each point.
        return self.meeting(points.min(0), points.max(0), margin)._holds(points, margin)

    def touch(self, points: Array, low: Array, high: Array, margin: float = 0.0) -> bool:
        """Whether one of the points, all of them between two corners, is inside."""
        near = self.meeting(low, high, margin)
        return bool(len(near) and near._holds(points, margin).any())

    def meeting(self, low: Array, high: Array, margin: float = 0.0) -> Solids:
        """Those whose upright boxes meet the one between two corners."""
        reach = self._reach(margin)
        near = all_three((self.middles - reach <= high) & (self.middles + reach >= low))
        return self if near.all() else self.take(near)

    def _holds(self, points: Array, margin: float) -> Array:
        away = points[None] - self.middles[:, None]
        local = np.abs(away @ self.axes)
        within = local < (self.halves + margin)[:, None]
        flat = within[..., 0] & within[..., 1]
        if self.round.any():
            radial = np.hypot(local[..., 0], local[..., 1]) < (self.halves[:, :1] + margin)
            flat = np.where(self.round[:, None], radial, flat)
        return np.asarray((flat & within[..., 2]).any(0))

    def corners(self) -> Array:
        """Eight of each: n × 8 × 3."""
        ends: Array = self.middles[:, None] + np.einsum(
            "nij,nkj->nki", self.axes, SIGNS * self.halves[:, None]
        )
        return ends

    def extent(self) -> tuple[Array, Array]:
        """The least and the greatest coordinates."""
        reach = self._reach(0.0)
        return (self.middles - reach).min(0), (self.middles + reach).max(0)

    def _reach(self, margin: float) -> Array:
        """How far each, with a margin, goes from its middle along the world's axes: n × 3."""
        plain, by_margin = self._reaches
        return np.asarray(plain + margin * by_margin)

    @cached_property
    def _reaches(self) -> tuple[Array, Array]:
        axes = np.abs(self.axes)
        return (axes * self.halves[:, None]).sum(-1), axes.sum(-1)

    def surface(self, spacing: float = SPACING) -> Array:
        """Points on the surfaces of those that are not large."""
        found = [
            middle + shown @ axes.T
            for middle, axes, half, is_round in zip(
                self.middles, self.axes, self.halves, self.round, strict=True
            )
            if half.max() < LARGE
            for shown in [_cylinder(half, spacing) if is_round else _box(half, spacing)]
        ]
        return np.concatenate(found) if found else np.zeros((0, 3))

    def outside(self, spacing: float = SPACING) -> Array:
        """Points of the surfaces that are not inside another of the solids."""
        points = self.surface(spacing)
        return np.asarray(points[~self.inside(points, -0.0015)])

    def skin(self, spacing: float = SPACING) -> Array:
        """The same, evenly thinned out: for obstacles, whose edges need not be sharp."""
        points = self.surface(spacing)
        if not len(points):
            return points
        cells = np.round(points / spacing).astype(np.int64)
        keys = (cells - cells.min(0)) @ np.array([1, 2048, 2048 * 2048])
        points = points[np.unique(keys, return_index=True)[1]]
        return np.asarray(points[~self.inside(points, -0.0015)])

    def near(self, place: Array, radius: float) -> Solids:
        """Those that reach within a radius of a place."""
        apart = np.linalg.norm(self.middles - place, axis=1) - np.linalg.norm(self.halves, axis=1)
        return self.take(apart < radius)


def all_three(held: Array) -> Array:
    """Where all of three columns hold: for three, several times as fast as ``all(1)``."""
    return np.asarray(held[:, 0] & held[:, 1] & held[:, 2])


def between(points: Array, low: Array, high: Array) -> Array:
    """Those points that are between two corners."""
    return np.asarray(points[all_three((points > low) & (points < high))])


def _box(half: Array, spacing: float) -> Array:
    counts = np.maximum(2, np.ceil(2 * half / spacing).astype(int) + 1)
    lines = [np.linspace(-h, h, c) for h, c in zip(half, counts, strict=True)]
    grid = np.stack(np.meshgrid(*lines, indexing="ij"), -1)
    edge = np.zeros(grid.shape[:3], bool)
    for axis in range(3):
        edge |= np.isin(np.arange(counts[axis]), (0, counts[axis] - 1)).reshape(
            [-1 if a == axis else 1 for a in range(3)]
        )
    points: Array = grid[edge]
    return points


def _cylinder(half: Array, spacing: float) -> Array:
    radius, height = float(half[0]), float(half[2])
    turns = np.linspace(0, 2 * np.pi, max(8, int(2 * np.pi * radius / spacing)), endpoint=False)
    circle = np.stack([np.cos(turns), np.sin(turns)], -1)
    rings = [np.linspace(0, radius, max(2, int(radius / spacing) + 1))]
    caps = np.concatenate([r * circle for r in rings[0]])
    levels = np.linspace(-height, height, max(2, int(2 * height / spacing) + 1))
    parts = [np.column_stack([caps, np.full(len(caps), z)]) for z in (-height, height)]
    parts += [np.column_stack([radius * circle, np.full(len(circle), z)]) for z in levels]
    return np.concatenate(parts)


def solids_of(model: mujoco.MjModel, data: mujoco.MjData, geoms: Sequence[int]) -> Solids:
    """Of geoms where they are now; what is neither a box nor a cylinder as the box around it."""
    numbers = np.asarray(geoms, int)
    axes = data.geom_xmat[numbers].reshape(-1, 3, 3).copy()
    around = model.geom_aabb[numbers]
    middles = data.geom_xpos[numbers] + np.einsum("nij,nj->ni", axes, around[:, :3])
    cylinder = int(mujoco.mjtGeom.mjGEOM_CYLINDER)
    return Solids(middles, axes, around[:, 3:].copy(), model.geom_type[numbers] == cylinder)


def _solids(*boxes: tuple[tuple[float, float], tuple[float, float], tuple[float, float]]) -> Solids:
    ends = np.array(boxes)
    n = len(ends)
    return Solids(
        ends.mean(-1), np.tile(np.eye(3), (n, 1, 1)), np.ptp(ends, axis=-1) / 2, np.zeros(n, bool)
    )


def hits_gripper(shape: Solids, points: Array, margin: float = 0.0) -> bool:
    """Whether one of the points, in the gripper's axes, is in it."""
    low, high = GRIPPER
    near = between(points, low - margin, high + margin)
    return bool(shape.inside(near, margin).any())


GRIPPER = np.array([-0.105, -0.061, -0.261]), np.array([0.105, 0.061, 0.011])
"""The box around it."""


def gripper(opening: float) -> Solids:
    """The gripper about its grip site: x is the way the fingers close, z the way it points.

    ``opening`` is from the middle to the inside of a finger, at most 4 cm.
    """
    q = opening

    def finger(side: int, thick: float) -> tuple[float, float]:
        return (q, q + thick) if side > 0 else (-q - thick, -q)

    return _solids(
        (finger(-1, 0.026), (-0.011, 0.011), (-0.045, -0.022)),
        (finger(-1, 0.018), (-0.011, 0.011), (-0.022, 0.010)),
        (finger(1, 0.026), (-0.011, 0.011), (-0.045, -0.022)),
        (finger(1, 0.018), (-0.011, 0.011), (-0.022, 0.010)),
        ((-0.102, 0.102), (-0.022, 0.022), (-0.080, -0.031)),
        ((-0.104, 0.104), (-0.032, 0.032), (-0.125, -0.080)),
        ((-0.060, 0.060), (-0.060, 0.060), (-0.260, -0.125)),
    )
