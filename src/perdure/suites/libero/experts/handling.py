"""Taking hold of things, carrying them and putting them down."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from perdure.suites.libero.experts import grasps
from perdure.suites.libero.experts.clearing import BESIDE, level_over, sidestep
from perdure.suites.libero.experts.grasps import Grasp
from perdure.suites.libero.experts.motion import (
    CLOSED,
    HOLD,
    OPENED,
    Script,
    back_home,
    go,
    open_to,
    rotation_vector,
    toward,
    wait,
)
from perdure.suites.libero.experts.places import (
    LEVEL,
    RUN,
    TWISTED,
    Held,
    ReleasePose,
    Room,
    held_by,
    turned,
    twist,
)
from perdure.suites.libero.experts.planning_scene import PlanningScene
from perdure.suites.libero.problem import Relation
from perdure.types import Array

ASTRAY = 0.05
"""How far from above its place what is carried may be, to be put down."""
LEANS = tuple(np.deg2rad(a) for a in (40, 60, 75))
"""Of a hand that pushes things into shelves."""
TILTED = 0.06
"""How much less upright a thing may be after its fall, as the cosine of its tilt: 0.06 are 20 degrees."""
FLIP = np.diag([-1.0, -1.0, 1.0])
SLANTING = tuple(
    turned(a) @ axes
    for a in np.arange(0, 2 * np.pi, np.pi / 4)
    for axes in grasps.leaning(np.array([1.0, 0.0, 0.0]), np.deg2rad(30))
)
"""Axes of hands that lean a little, for where there is no room above."""
HOME = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
"""The hand's axes in its first posture, about."""


def easiest(axes: Array) -> Array:
    """The hand's axes, or those turned by half a turn, which grasp alike: what the wrist does easily."""
    return min(
        (axes, axes @ FLIP), key=lambda a: float(np.linalg.norm(rotation_vector(a @ HOME.T)))
    )


def approach(
    world: PlanningScene,
    position: Array,
    axes: Array,
    grip: float,
    near: float = 0.02,
    without: tuple[str, ...] = (),
) -> Script:
    """Over everything in between to a pose, from above."""
    high = max(position[2], level_over(world, world.hand, position, without, 0.012))
    if world.hand[2] < high - 0.02 and np.linalg.norm((position - world.hand)[:2]) > 0.03:
        above = world.hand.copy()
        above[2] = high
        yield from go(world, above, None, grip, near=0.04)
    over = position.copy()
    over[2] = high
    yield from go(world, over, axes, grip, near=near if high - position[2] < 0.02 else 0.03)
    if high - position[2] > 0.02:
        yield from go(world, position, axes, grip, near=near)


def transfers(world: PlanningScene, relation: Relation) -> Iterator[tuple[Grasp, ReleasePose]]:
    """Grasps of a thing with places where it can then be put, the best first."""
    name, target = relation.names
    thing, around = world.solids(name), world.others(name)
    room = Room(world, name, relation)
    doubtful: list[tuple[Grasp, ReleasePose]] = []
    found = False
    for poses in (grasps.DOWNWARD, SLANTING):
        for grasp in grasps.find(thing, around, poses):
            chosen = dataclasses.replace(grasp, axes=easiest(grasp.axes))
            place = room.lowered(held_by(world, name, chosen), chosen.axes)
            if place is not None and place.fits and not place.drop:
                found = True
                yield chosen, place
            elif place is not None:
                doubtful.append((chosen, place))
        if found or doubtful:
            break
    doubtful.sort(key=lambda d: (not d[1].fits, d[1].drop))
    ways = [] if target in world.bodies else _ways_in(world, target)
    for way in ways if not doubtful else ():
        leaning = [axes for lean in (0.0, *LEANS) for axes in grasps.leaning(way, lean)]
        for turn in (None, *np.arange(0, 2 * np.pi, np.pi / 4)):
            chances = (
                list(grasps.DOWNWARD) if turn is None else [turned(turn) @ a for a in leaning[2:]]
            )
            for grasp in grasps.find(thing, around, chances, count=5):
                for axes in (grasp.axes, grasp.axes @ FLIP):
                    if abs(twist(axes)) > TWISTED:
                        continue
                    chosen = dataclasses.replace(grasp, axes=axes)
                    place = room.pushed(held_by(world, name, chosen), axes, way)
                    if place is not None and place.fits:
                        yield chosen, place
                    elif place is not None:
                        doubtful.append((chosen, place))
    yield from doubtful


def _ways_in(world: PlanningScene, zone: str) -> list[Array]:
    """Level directions from which a region is open, those of its body."""
    middle, _, _ = world.site_box(zone)
    parent = world.scene.zones[zone].parent
    if parent is None:
        return []
    own = world.axes(parent)
    ways = [s * own[:, k] for k in (0, 1) for s in (1.0, -1.0)]
    solids = world.solids(parent)
    free = []
    for way in ways:
        line = middle - np.linspace(0, 0.25, 26)[:, None] * way
        if not solids.inside(line, 0.01).any():
            free.append(way)
    return free


def move(world: PlanningScene, relation: Relation, skip: int = 0) -> Script:
    """Make ``on`` or ``in`` true: pick the thing up and put it where it should be.

    ``skip`` is how many of the best ways have failed.
    """
    found: list[tuple[Grasp, ReleasePose]] = []
    for pair in transfers(world, relation):
        found.append(pair)
        if len(found) > skip:
            break
    if not found:
        return
    grasp, place = found[skip % len(found)]
    name = relation.names[0]
    yield from pick(world, name, grasp)
    if not holding(world, name):
        return
    held = Held.now(world, name)
    if place.way is None:
        better = Room(world, name, relation).lowered(held, world.hand_axes, 60)
        place = better if better is not None and (better.fits or not place.fits) else place
        yield from carry(world, held, place)
        if np.linalg.norm((world.hand - place.position)[:2]) > ASTRAY:
            # The arm got no farther, being straight or at the end of a joint: it takes another way.
            yield from back_home(world, world.home, CLOSED)
            yield from carry(world, held, place)
        upright = (place.axes @ held.axes)[2, 2]
        yield from put_down(world, held, place)
        if place.drop and world.axes(name)[2, 2] < upright - TILTED:
            yield from press(world, name)
    else:
        yield from push_in(world, held, place)


def pick(world: PlanningScene, name: str, grasp: Grasp) -> Script:
    """Take hold of a thing and lift it."""
    axes = grasp.axes
    yield from approach(world, grasp.position - axes[:, 2] * 0.07, axes, OPENED)
    grip = OPENED
    if grasp.opening < grasps.OPEN:
        grip = HOLD
        yield from open_to(world, grasp.opening + 0.002)
    yield from go(world, grasp.position, axes, grip, near=0.004, turned=0.06, speed=0.6, steps=40)
    yield from close(world, grasp.position, axes)
    yield from go(world, world.hand + 0.08 * LEVEL, axes, CLOSED, near=0.02, steps=25)


def close(world: PlanningScene, position: Array, axes: Array, most: int = 12) -> Script:
    """Close the fingers until they have stopped."""
    still, last = 0, world.opening
    for k in range(most):
        yield toward(world, position, axes, CLOSED)
        still = still + 1 if abs(world.opening - last) < 5e-4 else 0
        last = world.opening
        if k >= 4 and still >= 2:
            return


def holding(world: PlanningScene, name: str) -> bool:
    """Whether a thing is between the fingers."""
    return world.held(name) and world.opening > 0.001


def carry(world: PlanningScene, held: Held, place: ReleasePose) -> Script:
    """Over everything in between to above a place."""
    shape = held.points(0.015)
    low = min(
        -0.012,
        float((shape @ place.axes.T)[:, 2].min()),
        float((shape @ world.hand_axes.T)[:, 2].min()),
    )
    wide = max(BESIDE, float(np.linalg.norm((shape @ place.axes.T)[:, :2], axis=1).max()))
    level = level_over(world, world.hand, place.position, (held.name,), -low, wide)
    high = max(level, place.position[2] + 0.03)
    if world.hand[2] < high - 0.015:
        above = world.hand + sidestep(world, held, high)
        yield from go(world, above, None, CLOSED, near=0.015)
        above[2] = high
        yield from go(world, above, None, CLOSED, near=0.03)
    over = place.position.copy()
    over[2] = high
    yield from go(world, over, place.axes, CLOSED, near=0.012, turned=0.1)


def put_down(world: PlanningScene, held: Held, place: ReleasePose) -> Script:
    """Lower what is held, correcting for how it has shifted in the hand, and open."""
    target = place.position + place.axes @ held.position
    yield from go(world, place.position + 0.01 * LEVEL, place.axes, CLOSED, near=0.008, speed=0.7)
    shift = (target - world.position(held.name)) * (1, 1, 0)
    if np.linalg.norm(shift) > 0.05:
        shift = np.zeros(3)
    low = place.position + shift - (0, 0, 0.0 if place.drop else 0.004)
    yield from go(world, low, place.axes, CLOSED, near=0.004, speed=0.4, steps=20)
    yield from wait(world, OPENED, 6)
    yield from go(
        world, world.hand - place.axes[:, 2] * 0.08, place.axes, OPENED, near=0.03, steps=20
    )


def press(world: PlanningScene, name: str) -> Script:
    """Push what has come to rest slanting, on an edge, down by its highest part."""
    points = world.solids(name).corners().reshape(-1, 3)
    top = points[points[:, 2] > points[:, 2].max() - 0.006].mean(0)
    axes = easiest(grasps.downward(np.pi / 2))
    yield from approach(world, top + 0.05 * LEVEL, axes, CLOSED)
    yield from go(world, top - 0.05 * LEVEL, axes, CLOSED, near=0.01, speed=0.5, steps=30)
    yield from go(world, world.hand + 0.1 * LEVEL, axes, CLOSED, near=0.03, steps=20)


def push_in(world: PlanningScene, held: Held, place: ReleasePose) -> Script:
    """Bring what is held before an opening, push it in, let go of it and draw the hand back."""
    assert place.way is not None
    before = ReleasePose(place.position - RUN * place.way, place.axes, True)
    shape = held.points(0.015)
    low = min(
        -0.012,
        float((shape @ before.axes.T)[:, 2].min()),
        float((shape @ world.hand_axes.T)[:, 2].min()),
    )
    high = max(
        level_over(world, world.hand, before.position, (held.name,), -low, 0.12), before.position[2]
    )
    above = world.hand.copy()
    above[2] = high
    yield from go(world, above, None, CLOSED, near=0.03)
    over = before.position.copy()
    over[2] = high
    yield from go(world, over, before.axes, CLOSED, near=0.03, turned=0.15)
    yield from go(world, before.position, before.axes, CLOSED, near=0.01, turned=0.06)
    yield from go(world, place.position, place.axes, CLOSED, near=0.006, speed=0.6, steps=60)
    yield from go(
        world, place.position - (0, 0, 0.01), place.axes, CLOSED, near=0.005, speed=0.3, steps=10
    )
    yield from wait(world, OPENED, 6)
    yield from go(world, world.hand - place.way * RUN, place.axes, OPENED, near=0.03, steps=40)
