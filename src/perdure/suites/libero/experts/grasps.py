"""Where to take hold of a thing: grasps found from the shapes of it and of what stands around it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perdure.suites.libero.experts.solids import Solids, gripper, hits_gripper
from perdure.types import Array

OPEN = 0.04
"""From the middle to the inside of an opened finger."""
NARROW = 0.02
"""The same where there is little room."""
WIDEST = 0.074
PAD_Y = 0.009
PAD_Z = (-0.012, 0.005)
"""Where the pads are about the grip site."""
GAP = 0.012
"""Between two parts of a thing that are grasped on their own, as the two sides of a bowl."""
MARGIN = 0.002
SLIPPERY = 0.02
"""How skew a part may lie between the pads, in metres."""
ENOUGH = 3
"""Grasps for which there is no room, in a cell, after which no others are looked at there."""
CELL = np.array([0.02, 0.02, 0.004])
BACK = (0.0, 0.05, 0.10)
"""Metres before a grasp where the hand must have room too."""


@dataclass(frozen=True)
class Grasp:
    """A pose of the hand and how far the fingers are opened before they close."""

    position: Array
    axes: Array
    opening: float
    width: float
    score: float


def downward(yaw: float) -> Array:
    """Axes of a hand that points down, its fingers closing along this direction."""
    x = np.array([np.cos(yaw), np.sin(yaw), 0.0])
    return np.column_stack([x, np.cross((0.0, 0.0, -1.0), x), (0.0, 0.0, -1.0)])


def pointing(way: Array, closing: Array) -> Array:
    """Axes of a hand that points some way, its fingers closing as nearly along ``closing`` as it can."""
    z = way / np.linalg.norm(way)
    x = closing - (closing @ z) * z
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


YAWS = tuple(np.linspace(0, np.pi, 12, endpoint=False))
DOWNWARD = tuple(downward(yaw) for yaw in YAWS)


def leaning(way: Array, lean: float) -> list[Array]:
    """Axes of a hand that comes down at an angle while it points some level way: closing across that
    way, or along it."""
    points = np.cos(lean) * np.array([0.0, 0.0, -1.0]) + np.sin(lean) * way
    across = np.cross((0.0, 0.0, 1.0), way)
    return [pointing(points, across), pointing(points, way)]


def find(
    thing: Solids,
    around: Solids,
    orientations: Iterable[Array] = DOWNWARD,
    openings: Sequence[float] = (OPEN, NARROW),
    heavy: Array | None = None,
    count: int = 8,
) -> list[Grasp]:
    """Grasps of a thing, the best first. ``heavy`` is where its weight is, its middle by default."""
    low, high = thing.extent()
    weight = (low + high) / 2 if heavy is None else heavy
    points = thing.outside(0.005)
    reach = float(np.linalg.norm(high - low) / 2 + 0.25)
    near = around.near(weight, reach)
    obstacles = near.skin(0.01)
    obstacles = obstacles[np.linalg.norm(obstacles - weight, axis=1) < reach]
    found: list[Grasp] = []
    for axes in orientations:
        found += _along(points, weight, axes)
    found.sort(key=lambda g: -g.score)
    own, free, failures = thing.skin(0.007), list[Grasp](), Counter[tuple[int, ...]]()
    shapes = {q: gripper(q) for q in openings}
    for grasp in found:
        cell = (id(grasp.axes), *np.floor(grasp.position / CELL).astype(int).tolist())
        if failures[cell] == ENOUGH or any(alike(grasp, other) for other in free):
            continue
        opening = _opening(grasp, own, obstacles, near, shapes)
        if opening is not None:
            free.append(dataclasses.replace(grasp, opening=opening))
            if len(free) == count:
                break
        else:
            failures[cell] += 1
    return free


def alike(one: Grasp, other: Grasp) -> bool:
    """Whether two grasps are about the same."""
    near = bool(np.abs(one.position - other.position).max() < 0.015)
    return near and float(np.abs(one.axes[:, 0] @ other.axes[:, 0])) > 0.9


def _opening(
    grasp: Grasp, points: Array, obstacles: Array, near: Solids, shapes: Mapping[float, Solids]
) -> float | None:
    """How far the fingers are opened with which the hand touches nothing; None if it always does."""
    own = (points - grasp.position) @ grasp.axes
    other = (obstacles - grasp.position) @ grasp.axes
    for q, shape in shapes.items():
        if q < grasp.width / 2 + 0.003:
            continue
        if hits_gripper(shape, own, MARGIN):
            continue
        # There, and on the way to it.
        if any(hits_gripper(shape, other + np.array([0, 0, back]), MARGIN) for back in BACK):
            continue
        ends = shape.moved(grasp.axes, grasp.position).corners().reshape(-1, 3)
        if not near.inside(ends, 0.001).any():
            return q
    return None


def _along(points: Array, weight: Array, axes: Array) -> list[Grasp]:
    """Grasps with a hand that is turned in one way, whether there is room for it or not."""
    own, centre = points @ axes, weight @ axes
    low, high = own.min(0), own.max(0)
    own = own[np.argsort(own[:, 0])]
    found: list[Grasp] = []
    for z in np.arange(low[2] + 0.003, max(high[2], low[2] + 0.0031), 0.005):
        level = own[(own[:, 2] > z + PAD_Z[0]) & (own[:, 2] < z + PAD_Z[1])]
        if len(level) < 4:
            continue
        for y in np.arange(low[1] + 0.004, high[1], 0.007):
            slab = level[np.abs(level[:, 1] - y) < PAD_Y]
            for part in _parts(slab):
                width = float(part[-1, 0] - part[0, 0])
                if width > WIDEST or len(part) < 4 or np.ptp(part[:, 1]) < 0.008:
                    continue
                skew = _skew(part, y)
                if skew > SLIPPERY:
                    continue
                middle = np.array([(part[0, 0] + part[-1, 0]) / 2, y, z])
                away = math.hypot(middle[0] - centre[0], middle[1] - centre[1])
                depth = min(float(np.ptp(part[:, 2])), 0.016)
                score = 2 * depth - away - 2 * skew - 0.3 * width
                found.append(Grasp(axes @ middle, axes, OPEN, width, float(score)))
    return found


def _parts(slab: Array) -> list[Array]:
    """Stretches of points, sorted by x, that no gap divides."""
    xs = slab[:, 0]
    cuts = np.flatnonzero(xs[1:] - xs[:-1] > GAP) + 1
    bounds = [0, *cuts.tolist(), len(xs)]
    return [slab[a:b] for a, b in itertools.pairwise(bounds) if a < b]


def _skew(part: Array, y: float) -> float:
    """How unlike the two halves of a pad find a part, and how far from the pads' middles they touch it:
    a slanting side slips, and so does one that is touched at an edge."""
    xs, ys = part[:, 0], part[:, 1]
    left = np.flatnonzero(ys < y)
    right = np.flatnonzero(ys >= y)
    if len(left) < 2 or len(right) < 2:
        return 0.01
    slant = abs(xs[left[0]] - xs[right[0]]) + abs(xs[left[-1]] - xs[right[-1]])
    first = ys[: np.searchsorted(xs, xs[0] + 0.006)]
    last = ys[np.searchsorted(xs, xs[-1] - 0.006, side="right") :]
    aside = abs(first.sum() / len(first) - y) + abs(last.sum() / len(last) - y)
    return float(slant + 2 * aside)
