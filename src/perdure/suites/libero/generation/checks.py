"""What is promised of a generated task, tried in the simulation.

Things stand where the file says and come to rest there, without falling, tipping over or reaching
into each other; the goal does not hold, and there is a state in which it does and stays: objects fit
where they are to go. The sentence, read anew, means the goal and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.errors import EnvironmentFault
from perdure.suites.libero import bddl
from perdure.suites.libero.clearance import (
    Extent,
    extent_of,
    set_down,
    stands_on_surface,
    surface_height,
)
from perdure.suites.libero.generation.nouns import SURFACES
from perdure.suites.libero.generation.reading import World, meanings
from perdure.suites.libero.problem import Problem, Relation
from perdure.suites.libero.scene import Scene, build
from perdure.suites.libero.simulation import Simulation
from perdure.types import Array

RESETS = 2
"""Initial states that are tried."""
SETTLE = 20
"""Control steps until all must be at rest: a second."""
DEEP = 0.006
"""Metres by which things may reach into each other at first; models' own parts do by a little."""
STILL = 0.08
"""Metres a second, at rest."""
TILT = 25.0
"""Degrees by which a thing may turn while it comes to rest."""
DRIFT = 0.04
"""Metres by which it may slide."""
REACH = (0.25, 0.95)
"""How far from the robot's base what it handles may be, seen from above."""
CAMERA = "agentview"
HOLDS = 12
"""Control steps for which a goal must last."""


class Failed(Exception):
    """A task breaks a promise; the message says which."""


def check(problem: Problem, looks: Sequence[str]) -> None:
    """Try a task in some looks; :class:`Failed` if it breaks a promise."""
    if bddl.parse(bddl.write(problem)) != problem:
        raise Failed("file: it does not read as it was written")
    for relation in problem.goal:
        if relation.predicate in ("on", "in") and relation.names[0] not in {
            t.name for t in problem.objects
        }:
            raise Failed(f"movable: {relation.names[0]} is no object")
    for look in looks:
        try:
            scene = build(problem, look)
            simulation = Simulation(scene, solves=1)
            for seed in range(RESETS):
                _check_start(scene, simulation, seed)
            _check_goal_can_hold(scene, simulation)
        except EnvironmentFault as e:
            raise Failed(f"scene: {e}") from e


def _rest(simulation: Simulation, steps: int) -> None:
    still = np.zeros(7)
    for _ in range(steps):
        simulation.act(still)
    mujoco.mj_forward(simulation.model, simulation.data)


def _check_start(scene: Scene, simulation: Simulation, seed: int) -> None:
    simulation.reset(seed)
    set_down(simulation)
    for one, other, depth in touching(simulation):
        if depth > DEEP:
            raise Failed(f"penetration: {one} and {other} by {1000 * depth:.0f} mm")
        if "robot" in (one, other):
            raise Failed(f"penetration: the robot touches {other if one == 'robot' else one}")
    _check_seen(scene, simulation)
    if simulation.success():
        raise Failed("goal: it holds at first")
    before = {n: extent_of(simulation, n) for n in scene.bodies}
    turns = {n: simulation.data.body(b.root).xquat.copy() for n, b in scene.bodies.items()}
    _rest(simulation, SETTLE)
    if not np.isfinite(simulation.data.qpos).all():
        raise Failed("rest: the simulation diverges")
    after = {n: extent_of(simulation, n) for n in scene.bodies}
    for name, body in simulation.objects.items():
        _check_at_rest(simulation, name, turns[name], before[name], after[name], body.root)
    for relation in scene.problem.init:
        if not _is_true_of(scene, simulation, relation):
            raise Failed(f"start: {relation} does not last")
    if simulation.success():
        raise Failed("goal: it comes true by itself")
    world = world_of(scene, simulation)
    _check_reach(scene, world)
    found = meanings(scene.problem.language, world)
    if found != {frozenset(scene.problem.goal)}:
        said = " or ".join("; ".join(sorted(map(str, m))) for m in found) or "nothing"
        raise Failed(f"sentence: {scene.problem.language!r} means {said}")


def _check_seen(scene: Scene, simulation: Simulation) -> None:
    """Everything that is not in something is in the agent's picture, and not behind something."""
    model, data = simulation.model, simulation.data
    camera = model.camera(CAMERA).id
    eye, axes = data.cam_xpos[camera], data.cam_xmat[camera].reshape(3, 3)
    scale = 1 / np.tan(np.radians(model.cam_fovy[camera]) / 2)
    inside = {r.names[0] for r in scene.problem.init if r.predicate == "in"}
    for name in simulation.objects.keys() - inside:
        box = extent_of(simulation, name)
        away = axes.T @ (box.middle - eye)
        if max(abs(away[:2] * scale / -away[2])) > 0.97:
            raise Failed(f"view: {name} is outside the picture")
        half = 0.7 * (box.high - box.middle)
        points = [box.middle + half * (dx, dy, 1) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
        if not any(_is_in_sight(simulation, name, eye, p) for p in points):
            raise Failed(f"view: {name} is hidden")


def _is_in_sight(simulation: Simulation, name: str, eye: Array, point: Array) -> bool:
    """Whether a ray from the eye to a point meets nothing but the thing itself, or the robot, which
    will move."""
    hit = np.zeros(1, np.int32)
    line = point - eye
    away = mujoco.mj_ray(simulation.model, simulation.data, eye, line, None, 1, -1, hit)
    return not 0 <= away < 0.98 or _owner(simulation, int(hit[0])) in (name, "robot")


def _check_at_rest(
    simulation: Simulation, name: str, turn: Array, before: Extent, after: Extent, root: str
) -> None:
    data = simulation.data
    joint = data.joint(simulation.scene.bodies[name].joints[-1])
    if np.linalg.norm(joint.qvel[:3]) > STILL:
        raise Failed(f"rest: {name} does not come to rest")
    angle = 2 * np.degrees(np.arccos(min(1.0, abs(float(turn @ data.body(root).xquat)))))
    if angle > TILT:
        raise Failed(f"rest: {name} tips over ({angle:.0f} degrees)")
    slide = float(np.linalg.norm((after.middle - before.middle)[:2]))
    if slide > DRIFT:
        raise Failed(f"rest: {name} slides by {100 * slide:.0f} cm")
    if after.low[2] < surface_height(simulation) - 0.02:
        raise Failed(f"rest: {name} falls off")


def _is_true_of(scene: Scene, simulation: Simulation, relation: Relation) -> bool:
    """Whether an initial relation still holds. That something stands on a part of the surface is
    known by now, and no predicate's matter: that asks where its origin is."""
    if relation.predicate == "on" and stands_on_surface(scene, relation.names[0]):
        return True
    if relation.predicate == "on" and not scene.bodies[relation.names[0]].movable:
        return True
    return simulation.predicates.holds(relation)


def _check_reach(scene: Scene, world: World) -> None:
    base = np.array(scene.workspace.base[:2]) - np.array(scene.workspace.offset[:2])
    for relation in scene.problem.goal:
        for name in relation.names:
            place = world.positions.get(name, world.zones.get(name))
            if place is None:
                region = scene.problem.region(name)
                assert region is not None
                place = world.positions[region.target]
            away = float(np.linalg.norm(place[:2] - base))
            if not REACH[0] < away < REACH[1]:
                raise Failed(f"reach: {name} is {away:.2f} m from the robot")


def _owner(simulation: Simulation, geom: int) -> str:
    """Whose a geom is: a body's of the scene, the ``robot``'s or the ``room``'s."""
    model = simulation.model
    owners = {model.body(b.root).id: n for n, b in simulation.scene.bodies.items()}
    body = int(model.geom_bodyid[geom])
    while body:
        if body in owners:
            return owners[body]
        if model.body(body).name.startswith(("robot0", "gripper0", "mount0")):
            return "robot"
        body = int(model.body_parentid[body])
    return "room"


def touching(simulation: Simulation) -> Iterator[tuple[str, str, float]]:
    """Pairs of things in contact and how deep: bodies of the scene, ``robot``, ``room``."""
    for contact in simulation.data.contact:
        one, other = (_owner(simulation, int(g)) for g in (contact.geom1, contact.geom2))
        if one != other and {one, other} != {"robot", "room"}:
            fixed = {n for n in (one, other) if n not in simulation.objects}
            if len(fixed) < 2 or "robot" in fixed:
                yield one, other, -float(contact.dist)


def world_of(scene: Scene, simulation: Simulation) -> World:
    """Where things are now, for a reader of sentences."""
    middle = np.array(scene.workspace.offset, float)
    data, height = simulation.data, surface_height(simulation)
    positions = {n: data.body(b.root).xpos - middle for n, b in scene.bodies.items()}
    starts = {n for r in scene.problem.init for n in r.names}
    zones = {
        n: data.site(n).xpos - middle
        for n, z in scene.zones.items()
        if z.parent is None and n not in starts
    }
    standing = {
        n: bool(extent_of(simulation, n).low[2] < height + 0.012) for n in simulation.objects
    }
    area = SURFACES[scene.workspace.name].reach
    at = (area.x0 + area.x1) / 2, (area.y0 + area.y1) / 2
    return World(scene.problem, positions, standing, simulation.predicates.holds, at, zones)


# A state in which the goal holds.


def _check_goal_can_hold(scene: Scene, simulation: Simulation) -> None:
    """Put everything where the goal wants it and see whether it stays."""
    problem = ""
    moved = {r.names[0] for r in scene.problem.goal if r.predicate in ("on", "in")}
    for turn in (0.0, 90.0):
        simulation.reset(0)
        set_down(simulation)
        _rest(simulation, SETTLE)
        _fulfil(scene, simulation, turn)
        missing = [r for r in scene.problem.goal if not simulation.predicates.holds(r)]
        tight = [(a, b) for a, b, d in touching(simulation) if d > DEEP and {a, b} & moved]
        if not missing and not tight:
            return
        said = ", ".join(map(str, missing)) or f"{tight[0][0]} in {tight[0][1]}"
        problem = f"{said} does not {'hold' if missing else 'fit'}"
    raise Failed(f"reachable: {problem} after all was put in place")


def _fulfil(scene: Scene, simulation: Simulation, turn: float) -> None:
    goal = scene.problem.goal
    # What must be open to put something in, is opened; then things are put; then all is set.
    inside = {r.names[1] for r in goal if r.predicate == "in"}
    for name in inside:
        _set_joints(scene, simulation, name, "open")
    mujoco.mj_forward(simulation.model, simulation.data)
    moved: list[str] = []
    for relation in _supports_first(goal):
        _move(scene, simulation, relation, turn, moved)
        moved.append(relation.names[0])
        _rest(simulation, HOLDS // 2)
    for relation in goal:
        if relation.predicate not in ("on", "in"):
            _set_joints(scene, simulation, relation.names[0], relation.predicate)
    mujoco.mj_forward(simulation.model, simulation.data)
    _rest(simulation, HOLDS)


def _supports_first(goal: Sequence[Relation]) -> list[Relation]:
    puts = [r for r in goal if r.predicate in ("on", "in")]
    moved = {r.names[0] for r in puts}
    return sorted(puts, key=lambda r: r.names[1] in moved)


def _set_joints(scene: Scene, simulation: Simulation, name: str, predicate: str) -> None:
    """Open, close or switch something, and move along what is in it."""
    owner = scene.bodies.get(name) or scene.zones[name]
    parent = scene.bodies.get(name)
    if parent is None:
        above = scene.zones[name].parent
        if above is None:
            return
        parent = scene.bodies[above]
    turning = predicate in ("turnon", "turnoff")
    kind = parent.category.switch if turning else parent.category.joints
    joints = owner.joints or parent.joints
    if kind is None or not joints:
        return
    low, high = kind.opened if predicate in ("open", "turnon") else kind.closed
    # A drawer counts as closed beyond its end, so the far end of the range is meant.
    value = (low + high) / 2 if predicate in ("open", "turnon") else max(low, high, key=abs)
    if predicate == "turnoff":
        value = low
    data = simulation.data
    held = {
        r.names[0] for r in scene.problem.goal if r.predicate == "in" and r.names[1] == name
    } | {r.names[0] for r in scene.problem.init if r.predicate == "in" and r.names[1] == name}
    before = data.site(name).xpos.copy() if name in scene.zones else None
    for joint in joints:
        data.joint(joint).qpos[0], data.joint(joint).qvel[0] = value, 0.0
    mujoco.mj_kinematics(simulation.model, data)
    if before is not None:
        for thing in held:
            place = data.joint(scene.bodies[thing].joints[-1]).qpos
            place[:3] += data.site(name).xpos - before


def _move(
    scene: Scene, simulation: Simulation, relation: Relation, turn: float, moved: Sequence[str]
) -> None:
    """Put an object just above where it is to be."""
    name, where = relation.names
    data = simulation.data
    now = extent_of(simulation, name)
    place = data.joint(scene.bodies[name].joints[-1])
    if turn:
        half = np.radians(turn) / 2
        about = np.array([np.cos(half), 0, 0, np.sin(half)])
        turned = np.empty(4)
        mujoco.mju_mulQuat(turned, about, place.qpos[3:7].copy())
        place.qpos[3:7] = turned
        mujoco.mj_kinematics(simulation.model, data)
        now = extent_of(simulation, name)
    origin = data.body(scene.bodies[name].root).xpos.copy()
    if where in scene.bodies:
        under = extent_of(simulation, where)
        target = data.body(scene.bodies[where].root).xpos.copy()
        floor = (
            under.high[2]
            if scene.bodies[where].category.name not in BOWL_LIKE
            else under.low[2] + 0.02
        )
    else:
        zone = scene.zones[where]
        target = data.site(where).xpos.copy()
        reach = np.abs(data.site(where).xmat.reshape(3, 3) @ np.array(zone.size))
        floor = target[2] - reach[2] if relation.predicate == "in" else target[2] + reach[2]
        if zone.parent is None:
            floor = surface_height(simulation)
        others = [o for o in moved if _goes_to(scene.problem, o, where)]
        if others:
            # The second beside the first.
            target = target + np.array([0.0, 1.0, 0.0]) * (reach[1] / 2)
            for o in others:
                _shift(scene, simulation, o, np.array([0.0, -reach[1] / 2, 0.0]))
    below = origin[2] - now.low[2]
    place.qpos[:2] = target[:2]
    place.qpos[2] = floor + below + 0.004
    place.qvel[:] = 0.0
    mujoco.mj_forward(simulation.model, data)


BOWL_LIKE = ("akita_black_bowl", "white_bowl", "glazed_rim_porcelain_ramekin")


def _goes_to(problem: Problem, name: str, where: str) -> bool:
    return any(r.names == (name, where) for r in problem.goal)


def _shift(scene: Scene, simulation: Simulation, name: str, by: Array) -> None:
    simulation.data.joint(scene.bodies[name].joints[-1]).qpos[:3] += by
