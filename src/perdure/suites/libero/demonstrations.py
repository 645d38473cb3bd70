"""Demonstrations of LIBERO's tasks: made by experts, kept as the original datasets are, played again.

Episodes begin where the task file lets things be, by seeds of their own, and not in the 50 official
states, which are for evaluation. Pictures are stored as upstream stores them, upside down. How they,
and original (human) datasets, are learned from is in :mod:`perdure.suites.libero.demonstration_data`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

import numpy as np

from perdure.errors import EnvironmentFault
from perdure.suite import Demonstration
from perdure.suites._demonstrations import SUFFIX
from perdure.suites.libero.bddl import write
from perdure.suites.libero.env import Libero, robot_state
from perdure.suites.libero.experts import solve
from perdure.suites.libero.folders import FolderTask
from perdure.suites.libero.mjcf import text
from perdure.suites.libero.played import problem_played
from perdure.suites.libero.problem import Problem
from perdure.suites.libero.simulation import Simulation
from perdure.suites.libero.tasks import Official, Settings, located, settings
from perdure.types import Array, Task

PICTURES = {"agentview": "agentview_rgb", "robot0_eye_in_hand": "eye_in_hand_rgb"}
"""Cameras and what their pictures are called."""


def file_of(task: Task) -> tuple[str, dict[str, Any]]:
    """Upstream's name of a task's file, and its attributes."""
    found, chosen, problem = located(task), settings(task), problem_played(task)
    name = _name_of(found, chosen)
    bddl = f"{name}.bddl"
    said = problem.language
    if isinstance(found, Official) and not chosen.other_goal:
        said = found.instruction
    arguments = {
        "bddl_file_name": bddl,
        "camera_heights": chosen.size,
        "camera_widths": chosen.size,
        "camera_names": list(chosen.cameras),
        "control_freq": 20,
        "controller": "OSC_POSE",
        "robots": ["Panda"],
        "use_camera_obs": bool(chosen.cameras),
    }
    attributes = {
        "env_name": problem.name,
        "problem_info": json.dumps(
            {
                "problem_name": problem.name,
                "domain_name": problem.domain,
                "language_instruction": said,
            }
        ),
        "macros_image_convention": "opengl",
        "bddl_file_name": bddl,
        "bddl_file_content": write(problem),
        "env_args": json.dumps({"env_name": problem.name, "type": 1, "env_kwargs": arguments}),
        "perdure_task": task.id,
        "perdure_params": json.dumps(dict(task.params), sort_keys=True),
    }
    return f"{name}{SUFFIX}", attributes


def _name_of(found: Official | FolderTask, chosen: Settings) -> str:
    """Folder and file; changes of what is there or asked for are other files."""
    if isinstance(found, FolderTask):
        name = f"{found.path.resolve().parent.name}/{found.name}"
    else:
        name = f"{found.folder}/{found.file}"
    changes = {n: getattr(chosen, n) for n in ("distractors", "rearranged", "other_goal")}
    return "_".join([name, *(f"{n}_{k}" for n, k in changes.items() if k)])


@functools.lru_cache(maxsize=2)
def _env(problem: Problem, chosen: Settings) -> Libero:
    return Libero(problem, chosen)


def demonstrate(task: Task, seed: int) -> Demonstration | None:
    """The expert's episode of a seed, None if it does not succeed."""
    chosen = dataclasses.replace(
        settings(task), initial_states="random", orientation="upstream", privileged=False
    )
    env = _env(problem_played(task), chosen)
    rows: list[dict[str, Array]] = []

    def before_step(seen: Mapping[str, Array], action: Array) -> None:
        assert env.simulation is not None and env.simulation.reading is not None
        robot = robot_state(env.simulation, env.simulation.reading)
        row = {"states": env.simulation.state(), **_robot(robot)}
        for camera in chosen.cameras:
            row[f"obs/{PICTURES.get(camera, f'{camera}_rgb')}"] = seen[f"{camera}_image"]
        rows.append(row)

    attempt = solve(env, seed, noise=chosen.noise, before_step=before_step)
    if not attempt.success:
        return None
    arrays = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    last = np.zeros(len(rows), np.uint8)
    last[-1] = 1
    arrays |= {"actions": attempt.actions.astype(np.float64), "rewards": last, "dones": last.copy()}
    assert env.simulation is not None
    about = {
        "init_state": arrays["states"][0],
        "model_file": model_xml(env.simulation),
        "seed": np.uint64(seed),
    }
    return Demonstration(arrays, about)


def _robot(robot: Mapping[str, Array]) -> dict[str, Array]:
    """What upstream stores of the robot."""
    place, turn = robot["robot0_eef_pos"], robot["robot0_eef_quat"]
    grip, axis_angle = robot["robot0_gripper_qpos"], axis_angle_of(turn)
    return {
        "robot_states": np.concatenate([grip, place, turn]),
        "obs/gripper_states": grip,
        "obs/joint_states": robot["robot0_joint_pos"],
        "obs/ee_pos": place,
        "obs/ee_ori": axis_angle,
        "obs/ee_states": np.concatenate([place, axis_angle]),
    }


def axis_angle_of(quaternion: Array) -> Array:
    """Of a quaternion with its real part last; angles go up to a whole turn, as robosuite's do."""
    w = float(np.clip(quaternion[3], -1.0, 1.0))
    sine = np.sqrt(1.0 - w * w)
    if np.isclose(sine, 0.0):
        return np.zeros(3)
    return np.asarray(quaternion[:3] * 2.0 * np.arccos(w) / sine)


def model_xml(simulation: Simulation) -> str:
    """The scene as MuJoCo's XML, fixtures where they stand."""
    tree = ET.fromstring(simulation.scene.visual_xml)
    bodies = {b.get("name"): b for b in tree.iter("body")}
    for name, number in simulation.fixtures.items():
        body = bodies[simulation.scene.bodies[name].root]
        body.set("pos", text(simulation.model.body_pos[number]))
        body.set("quat", text(simulation.model.body_quat[number]))
    return ET.tostring(tree, encoding="unicode")


def put_fixtures(simulation: Simulation, xml: str) -> None:
    """Put fixtures where a stored model has them."""
    bodies = {b.get("name"): b for b in ET.fromstring(xml).iter("body")}
    for name, number in simulation.fixtures.items():
        body = bodies.get(simulation.scene.bodies[name].root)
        if body is None:
            raise EnvironmentFault(f"the stored model has no {name}")
        # MuJoCo leaves out of a file what is as it would be without.
        simulation.model.body_pos[number] = np.array(body.get("pos", "0 0 0").split(), float)
        simulation.model.body_quat[number] = np.array(body.get("quat", "1 0 0 0").split(), float)


def replay(task: Task, shown: Demonstration) -> bool:
    """Whether the stored actions, from the stored initial state, reach the goal again. Files that do not say
    how fixtures stood are played with those of seed 0, and from their first state."""
    chosen = dataclasses.replace(settings(task), initial_states="random", cameras=())
    env = _env(problem_played(task), chosen)
    env.reset(seed=0)
    simulation = env.simulation
    assert simulation is not None
    if "model_file" in shown.attributes:
        put_fixtures(simulation, str(shown.attributes["model_file"]))
    begin = shown.attributes.get("init_state", shown.arrays["states"][0])
    simulation.set_state(np.asarray(begin, np.float64))
    return any(env.step(action.astype(np.float32))[2] for action in shown.arrays["actions"])
