"""Ways round what is in the way of the hand and of what it carries: over it, or out from under it."""

from __future__ import annotations

import numpy as np

from perdure.suites.libero.experts.places import Held
from perdure.suites.libero.experts.planning_scene import PlanningScene
from perdure.types import Array

BESIDE = 0.09
"""How far from a thing everything counts that the hand could hit on its way over it."""
CLEAR = 0.025
"""Metres between what is carried and what it is carried over."""
STEPS = (0.0, 0.03, 0.06, 0.09, 0.12, 0.15, 0.18)
"""Metres to the side that are tried to get out from under something."""


def level_over(
    world: PlanningScene,
    begin: Array,
    end: Array,
    without: tuple[str, ...],
    below: float,
    beside: float = BESIDE,
) -> float:
    """A height for the hand at which it passes over everything between two places.

    ``below`` is how far the hand, or what it holds, reaches down below it.
    """
    points = world.others(*without).skin(0.015)
    way = (end - begin)[:2]
    along = np.clip((points[:, :2] - begin[:2]) @ way / max(1e-9, float(way @ way)), 0, 1)
    apart = np.linalg.norm(points[:, :2] - (begin[:2] + along[:, None] * way), axis=1)
    over = points[apart < beside, 2]
    return (float(over.max()) if len(over) else -np.inf) + below + CLEAR


def sidestep(world: PlanningScene, held: Held, high: float) -> Array:
    """The shortest level step after which nothing is above what is held, as an open drawer may be, up to where the
    hand is at a height. None is zero."""
    shape = held.points(0.015) @ world.hand_axes.T + world.hand
    middle, top = (shape.min(0) + shape.max(0))[:2] / 2, shape[:, 2].max()
    wide = float(np.linalg.norm(shape[:, :2] - middle, axis=1).max()) + 0.008
    points = world.others(held.name).skin(0.015)
    points = points[points[:, 2] < top + high - world.hand[2]]
    above = points[points[:, 2] > top - 0.01, :2]
    beside = points[(points[:, 2] > shape[:, 2].min() + 0.01) & (points[:, 2] < top + 0.01), :2]
    for far in STEPS:
        for angle in np.arange(0, 2 * np.pi, np.pi / 8):
            step = far * np.array([np.cos(angle), np.sin(angle)])
            if (np.linalg.norm(above - middle - step, axis=1) < wide).any():
                continue
            if (np.linalg.norm(beside - middle - step, axis=1) > wide - 0.02).all():
                return np.array([*step, 0.0])
    return np.zeros(3)
