"""A state in which a task's goal holds: everything is put there and must stay."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.suites.libero.clearance import extent_of, set_down, surface_height
from perdure.suites.libero.generation.contacts import DEEP, Failed, rest, touching
from perdure.suites.libero.problem import Problem, Relation
from perdure.suites.libero.scene import Scene
from perdure.suites.libero.simulation import Simulation
from perdure.types import Array

HOLDS = 12
"""Control steps for which a goal must last."""


def check_goal_can_hold(scene: Scene, simulation: Simulation) -> None:
    """Put everything where the goal wants it and see whether it stays."""
    problem = ""
    moved = {r.names[0] for r in scene.problem.goal if r.predicate in ("on", "in")}
    for turn in (0.0, 90.0):
        simulation.reset(0)
        set_down(simulation)
        rest(simulation)
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
        rest(simulation, HOLDS // 2)
    for relation in goal:
        if relation.predicate not in ("on", "in"):
            _set_joints(scene, simulation, relation.names[0], relation.predicate)
    mujoco.mj_forward(simulation.model, simulation.data)
    rest(simulation, HOLDS)


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
