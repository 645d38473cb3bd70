"""What is promised of a generated task, tried in the simulation.

Things stand where the file says and come to rest there, without falling, tipping over or reaching
into each other; the goal does not hold, and there is a state in which it does and stays: objects fit
where they are to go. The sentence, read anew, means the goal and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from perdure.suites.libero.generation.contacts import DEEP, Failed, owner_of, rest, touching
from perdure.suites.libero.generation.goal_states import check_goal_can_hold
from perdure.suites.libero.generation.nouns import SURFACES
from perdure.suites.libero.generation.reading import meanings
from perdure.suites.libero.generation.scene_layout import SceneLayout
from perdure.suites.libero.problem import Problem, Relation
from perdure.suites.libero.scene import Scene, build
from perdure.suites.libero.simulation import Simulation
from perdure.types import Array

RESETS = 2
"""Initial states that are tried."""
STILL = 0.08
"""Metres a second, at rest."""
TILT = 25.0
"""Degrees by which a thing may turn while it comes to rest."""
DRIFT = 0.04
"""Metres by which it may slide."""
REACH = (0.25, 0.82)
"""How far from the robot's base what it handles may be, seen from above. In the official tasks it is 0.80 at most;
a hand that points down gets to 0.78, one that leans outwards a little farther."""
CAMERA = "agentview"


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
            check_goal_can_hold(scene, simulation)
        except EnvironmentFault as e:
            raise Failed(f"scene: {e}") from e


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
    rest(simulation)
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
    return not 0 <= away < 0.98 or owner_of(simulation, int(hit[0])) in (name, "robot")


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


def _check_reach(scene: Scene, world: SceneLayout) -> None:
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


def world_of(scene: Scene, simulation: Simulation) -> SceneLayout:
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
    return SceneLayout(scene.problem, positions, standing, simulation.predicates.holds, at, zones)
