"""Pushing flat things over a surface: what is too wide and too low for the fingers to hold.

The tips of the closed fingers are set down within the thing's rim, pressed lightly and moved: the thing goes along,
and light things that are in its way are pushed aside. Pressing harder only makes it stick to the surface.
"""

from __future__ import annotations

import numpy as np

from perdure.suites.libero.experts.grasps import downward
from perdure.suites.libero.experts.handling import approach, easiest
from perdure.suites.libero.experts.motion import CLOSED, Script, go, toward
from perdure.suites.libero.experts.places import LEVEL
from perdure.suites.libero.experts.planning_scene import PlanningScene
from perdure.suites.libero.experts.solids import gripper, hits_gripper
from perdure.suites.libero.problem import Relation
from perdure.types import Array

FLAT = 0.035
"""Metres that a thing that is pushed is high at most."""
PRESSED = (0.012, 0.009, 0.016)
"""How far below where it is the hand's target is, at each attempt."""
LEAD = 0.03
"""How far ahead of the hand its target is."""


def can_be_pushed(world: PlanningScene, relation: Relation) -> bool:
    """Whether it is a flat thing that is to lie on a part of the surface on which it lies already."""
    name, target = relation.names
    zone = world.scene.zones.get(target)
    if relation.predicate != "on" or zone is None or zone.parent is not None:
        return False
    low, high = world.solids(name).extent()
    wide = min(high[0] - low[0], high[1] - low[1])
    middle, _, size = world.site_box(target)
    return bool(high[2] - low[2] < FLAT < wide / 2 and abs(low[2] - middle[2]) < size[2] + 0.02)


def disc(world: PlanningScene, name: str) -> tuple[Array, float]:
    """Middle and radius of a thing, seen from above."""
    low, high = world.solids(name).extent()
    return (low + high)[:2] / 2, float((high - low)[:2].max() / 2)


def turned_free(world: PlanningScene, name: str, place: Array) -> Array:
    """Axes of a hand that points down, turned so that it touches nothing beside the thing as it is let down."""
    shape, skin = gripper(0.0), world.others(name).near(place, 0.35).skin(0.01)
    choices = [easiest(downward(yaw)) for yaw in np.pi / 2 + np.deg2rad((0, 30, -30, 60, -60, 90))]
    for axes in choices:
        points = [(skin - place - raised * LEVEL) @ axes for raised in (0.01, 0.06, 0.12)]
        if not any(hits_gripper(shape, local, 0.006) for local in points):
            return axes
    return choices[0]


def push(world: PlanningScene, relation: Relation, tried: int) -> Script:
    """Push a thing to the middle of where it should be; ``tried`` is how often it has failed."""
    name, target = relation.names
    (middle, radius), low = disc(world, name), world.solids(name).extent()[0][2]
    end = world.site_box(target)[0][:2] + middle - world.position(name)[:2]
    place = np.array([*middle, low + 0.01])
    axes = turned_free(world, name, place)
    yield from approach(world, place + 0.05 * LEVEL, axes, CLOSED, near=0.012)
    yield from go(world, place, axes, CLOSED, near=0.006, steps=25)
    height = float(world.hand[2])
    for _ in range(80):
        left = end - disc(world, name)[0]
        far = float(np.linalg.norm(left))
        away = float(np.linalg.norm(world.hand[:2] - disc(world, name)[0]))
        if far < 0.006 or away > radius + 0.01:
            break
        ahead = world.hand + np.array([*(left / far * min(LEAD, far + 0.01)), 0.0])
        ahead[2] = height - PRESSED[tried % len(PRESSED)]
        yield toward(world, ahead, axes, CLOSED)
    yield from go(world, world.hand + 0.1 * LEVEL, axes, CLOSED, near=0.04, steps=25)
