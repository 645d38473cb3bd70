"""Where things are at first: drawn from a task file's regions, as upstream draws them.

A seed gives what upstream's first ``reset()`` after ``seed(seed)`` gives: the same numbers are drawn
in the same order, from a generator of our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perdure.errors import EnvironmentFault
from perdure.suites.libero.categories import Range, Turn
from perdure.suites.libero.problem import Relation
from perdure.suites.libero.rotations import matrix_of, product
from perdure.suites.libero.scene import Body, Scene
from perdure.types import Array

TRIES = 5000
"""For one object; then everything is drawn again."""
REDRAWS = 20
CLEARANCE = 0.01
"""Objects are dropped from this height."""


@dataclass(frozen=True)
class Pose:
    """Where a body is; the quaternion as MuJoCo reads it."""

    position: Array
    quaternion: Array


class Crowded(Exception):
    """No place was found for an object."""


def joint_values(scene: Scene, draws: np.random.RandomState) -> dict[str, float]:
    """How drawers, doors and knobs stand that the file says something about."""
    values: dict[str, float] = {}
    # Upstream's list of what to draw grows with every reset, and has each twice at the first.
    for _ in range(2):
        for relation in scene.problem.init:
            if relation.predicate in ("open", "close", "turnon", "turnoff"):
                joints, (low, high) = _joint_range(scene, relation)
                values |= dict.fromkeys(joints, draws.uniform(low, high))
    return values


def _joint_range(scene: Scene, relation: Relation) -> tuple[tuple[str, ...], Range]:
    name = relation.names[0]
    owner = scene.bodies.get(name) or scene.zones[name]
    parent = name if isinstance(owner, Body) else owner.parent
    assert parent is not None, f"{relation}: the work surface has no joints"
    kind = scene.bodies[parent].category
    joints = kind.joints if relation.predicate in ("open", "close") else kind.switch
    if joints is None:
        raise EnvironmentFault(f"{relation}: a {kind.name} has no such joints")
    between = joints.opened if relation.predicate in ("open", "turnon") else joints.closed
    return owner.joints, between


def poses(
    scene: Scene, draws: np.random.RandomState, sites: Mapping[str, Array]
) -> dict[str, Pose]:
    """Where all bodies are. ``sites`` holds where regions of bodies are, if every body is at its
    model's own place."""
    placed: dict[str, Pose] = {}
    later_on_zones: list[tuple[str, str]] = []
    later_on_bodies: list[tuple[str, str]] = []
    later_in_zones: list[tuple[str, str]] = []
    for relation in scene.problem.init:
        if relation.predicate not in ("on", "in"):
            continue
        name, where = relation.names
        region = scene.problem.region(where)
        if relation.predicate == "on" and where in scene.bodies:
            later_on_bodies.append((name, where))
        elif region is None:
            raise EnvironmentFault(f"{relation}: {where} is no region")
        elif relation.predicate == "in":
            later_in_zones.append((name, where))
        elif region.target in scene.bodies:
            later_on_zones.append((name, where))
        else:
            _on_surface(scene, draws, placed, name, where)
    for inside, later in ((False, later_on_zones), (True, later_in_zones)):
        for name, where in later:
            _at_zone(scene, draws, placed, name, where, sites[where], inside)
    for name, where in later_on_bodies:
        _on_body(scene, draws, placed, name, where)
    return placed


def _on_surface(
    scene: Scene,
    draws: np.random.RandomState,
    placed: dict[str, Pose],
    name: str,
    where: str,
) -> None:
    space, body, region = scene.workspace, scene.bodies[name], scene.problem.region(where)
    assert region is not None
    rectangles = [((r.x0, r.x1), (r.y0, r.y1)) for r in region.ranges]
    if not rectangles:
        raise EnvironmentFault(f"region {where} is on {space.name}, but has no :ranges")
    start = np.array(space.offset, float)
    if body.movable:
        margin = body.radius if space.keep_inside else 0.0
        position = _free_place(scene, draws, placed, body, rectangles, margin, start, CLEARANCE)
        placed[name] = Pose(position, _turned(draws, body.category.turn))
    else:
        drop = space.fixture_drop
        x, y = _drawn(draws, rectangles, 0.0)
        z = drop + start[2] - body.bottom
        yaw = region.yaw or (0.0, 0.0)
        angle = draws.uniform(min(yaw), max(yaw))
        turned = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
        placed[name] = Pose(np.array([x + start[0], y + start[1], z]), turned)


def _at_zone(
    scene: Scene,
    draws: np.random.RandomState,
    placed: dict[str, Pose],
    name: str,
    where: str,
    site: Array,
    inside: bool,
) -> None:
    """Put a body somewhere on top of a zone, or into the middle of it."""
    body, zone = scene.bodies[name], scene.zones[where]
    assert zone.parent is not None
    top = 0.0 if inside else scene.bodies[zone.parent].top
    x, y = (0.0, 0.0) if inside else zone.size[:2]
    start = placed[zone.parent].position + np.array([0, 0, top])
    start = start + matrix_of(placed[zone.parent].quaternion) @ site
    rectangles = [((-x / 2, x / 2), (-y / 2, y / 2))]
    margin = 0.0 if inside else body.radius
    position = _free_place(scene, draws, placed, body, rectangles, margin, start, 0.0)
    placed[name] = Pose(position, _turned(draws, body.category.turn))


def _on_body(
    scene: Scene, draws: np.random.RandomState, placed: dict[str, Pose], name: str, where: str
) -> None:
    body = scene.bodies[name]
    start = placed[where].position + np.array([0, 0, scene.bodies[where].top])
    x, y = _drawn(draws, [((0.0, 0.0), (0.0, 0.0))], 0.0)
    z = CLEARANCE + start[2] - body.bottom
    position = np.array([x + start[0], y + start[1], z])
    placed[name] = Pose(position, _turned(draws, body.category.turn))


def _free_place(
    scene: Scene,
    draws: np.random.RandomState,
    placed: Mapping[str, Pose],
    body: Body,
    rectangles: list[tuple[Range, Range]],
    margin: float,
    start: Array,
    height: float,
) -> Array:
    """A place where the body's circle touches no other's, unless it is above it."""
    z = height + start[2] - body.bottom
    for _ in range(TRIES):
        x, y = _drawn(draws, rectangles, margin)
        x, y = x + start[0], y + start[1]
        if not any(
            np.hypot(x - pose.position[0], y - pose.position[1]) <= other.radius + body.radius
            and z - pose.position[2] <= other.top - body.bottom
            for name, pose in placed.items()
            for other in [scene.bodies[name]]
        ):
            return np.array([x, y, z])
    raise Crowded(f"{body.name} has no room")


def _drawn(
    draws: np.random.RandomState, rectangles: list[tuple[Range, Range]], margin: float
) -> tuple[float, float]:
    (x0, x1), (y0, y1) = rectangles[draws.randint(len(rectangles))]
    # With a margin wider than the region the bounds change places, as they do upstream.
    x = draws.uniform(x0 + margin, x1 - margin)
    return x, draws.uniform(y0 + margin, y1 - margin)


def _turned(draws: np.random.RandomState, turn: Turn) -> Array:
    """The quaternion's numbers, real part last: see :class:`Category`."""
    total = np.array([0.0, 0.0, 0.0, 1.0])
    for k, (axis, between) in enumerate(turn):
        angle = draws.uniform(min(between), max(between))
        one = np.zeros(4)
        one["xyz".index(axis)], one[3] = np.sin(angle / 2), np.cos(angle / 2)
        total = (
            one
            if k == 0 and len(turn) == 1
            else product(one, total).astype(np.float32).astype(np.float64)
        )
    return total
