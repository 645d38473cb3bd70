"""Demonstrations of LIBERO's tasks: made by experts, kept as the original datasets are, read as data.

Episodes begin where the task file lets things be, by seeds of their own, and not in the 50 official
states, which are for evaluation. Pictures are stored as upstream stores them, upside down; when they
are learned from they are turned as the task shows them. What a task observes of the robot and of
objects is computed from the stored states, so that original (human) datasets serve as well as ours.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import threading
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perdure.errors import CurriculumError, EnvironmentFault
from perdure.suite import Demonstration
from perdure.suites._demonstrations import SUFFIX, DemonstrationFile, HeldArrays, windows
from perdure.suites.libero.bddl import write
from perdure.suites.libero.camera import turned
from perdure.suites.libero.env import (
    Libero,
    object_state,
    objects_of,
    problem_of,
    robot_state,
    scene_of,
)
from perdure.suites.libero.experts import solve
from perdure.suites.libero.mjcf import text
from perdure.suites.libero.simulation import Simulation
from perdure.suites.libero.tasks import Official, Settings, find, settings
from perdure.types import Array, Examples, Task

PICTURES = {"agentview": "agentview_rgb", "robot0_eye_in_hand": "eye_in_hand_rgb"}
"""Cameras and what their pictures are called."""
HELD_OUT = 10
"""Every tenth demonstration is held out."""
HELD = HeldArrays(1 << 30)
"""What was read of demonstrations: tasks are learned in several blocks, and looked up again later."""


def file_of(task: Task) -> tuple[str, dict[str, Any]]:
    """Upstream's name of a task's file, and its attributes."""
    official, chosen = find(task.name), settings(task)
    bddl = f"{official.folder}/{official.file}.bddl"
    problem = problem_of(official)
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
                "language_instruction": official.instruction,
            }
        ),
        "macros_image_convention": "opengl",
        "bddl_file_name": bddl,
        "bddl_file_content": write(problem),
        "env_args": json.dumps({"env_name": problem.name, "type": 1, "env_kwargs": arguments}),
        "perdure_task": task.id,
        "perdure_params": json.dumps(dict(task.params), sort_keys=True),
    }
    return f"{official.folder}/{official.file}{SUFFIX}", attributes


@functools.lru_cache(maxsize=2)
def _env(name: str, chosen: Settings) -> Libero:
    return Libero(problem_of(find(name)), chosen)


def demonstrate(task: Task, seed: int) -> Demonstration | None:
    """The expert's episode of a seed, None if it does not succeed."""
    chosen = dataclasses.replace(
        settings(task), initial_states="random", orientation="upstream", privileged=False
    )
    env = _env(task.name, chosen)
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
        for values, key in (
            (simulation.model.body_pos, "pos"),
            (simulation.model.body_quat, "quat"),
        ):
            if body.get(key):
                values[number] = np.array(body.get(key, "").split(), float)


def replay(task: Task, shown: Demonstration) -> bool:
    """Whether the stored actions, from the stored initial state, reach the goal again."""
    env = _env(task.name, dataclasses.replace(settings(task), initial_states="random", cameras=()))
    env.reset(seed=0)
    simulation = env.simulation
    assert simulation is not None
    put_fixtures(simulation, str(shown.attributes["model_file"]))
    simulation.set_state(np.array(shown.attributes["init_state"]))
    return any(env.step(action.astype(np.float32))[2] for action in shown.arrays["actions"])


class Demonstrations:
    """A task's demonstrations as data: sequences of observations and actions, read as they are needed."""

    def __init__(self, task: Task, learning: bool) -> None:
        chosen = settings(task)
        if not chosen.demos:
            raise CurriculumError(
                f"{task.id} has no data: set demos to a folder that perdure demos has filled"
            )
        self.official: Official = find(task.name)
        self.settings, self.batch_size = chosen, chosen.batch_size
        self.file = DemonstrationFile(_path(Path(chosen.demos), file_of(task)[0]))
        held = [k % HELD_OUT == HELD_OUT - 1 for k in range(len(self.file.names))]
        self.names = [n for n, h in zip(self.file.names, held, strict=True) if h != learning]
        if not self.names:
            raise CurriculumError(
                f"{self.file.path}: none of its {len(held)} demonstrations is "
                f"{'for learning' if learning else 'held out'}: every {HELD_OUT}th is held out"
            )
        lengths = dict(zip(self.file.names, self.file.lengths, strict=True))
        self.lengths = np.array([lengths[n] for n in self.names])
        self.firsts = np.cumsum(self.lengths) - self.lengths
        """The first row of each demonstration, where all of them lie below each other."""
        self.windows = windows(self.lengths, chosen.sequence)
        self._simulation: Simulation | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.windows)

    def batch(self, indices: Array) -> Examples:
        """Sequences: minibatch × time × …; without time where sequences have one step."""
        length = self.settings.sequence
        demo, begin = self.windows[indices].T
        steps = np.minimum(begin[:, None] + np.arange(length), self.lengths[demo][:, None] - 1)
        with self._lock:
            numbers = HELD.get((*self._key("numbers"), tuple(self.names)), self._all_numbers)
            inputs = {
                f"{camera}_image": np.stack(
                    [
                        self._pictures(camera, int(d))[rows]
                        for d, rows in zip(demo, steps, strict=True)
                    ]
                )
                for camera in self.settings.cameras
            }
        rows = self.firsts[demo][:, None] + steps
        inputs |= {name: array[rows] for name, array in numbers.items() if name != "actions"}
        targets = numbers["actions"][rows]
        if length == 1:
            inputs, targets = {n: a[:, 0] for n, a in inputs.items()}, targets[:, 0]
        return Examples(inputs, targets)

    def _key(self, what: str) -> tuple[object, ...]:
        """What an array that is held depends on."""
        chosen, found = self.settings, self.file.path.stat()
        file = (str(self.file.path.resolve()), found.st_size, found.st_mtime_ns)
        if what == "numbers":
            return (*file, what, chosen.look, chosen.proprioception, chosen.objects)
        return (*file, what, chosen.size, chosen.orientation)

    def _pictures(self, camera: str, demo: int) -> Array:
        """All pictures of a demonstration, as the task shows them."""
        made = HELD.get(
            (*self._key(camera), self.names[demo]), lambda: {"": self._turned(camera, demo)}
        )
        return made[""]

    def _turned(self, camera: str, demo: int) -> Array:
        chosen, group = self.settings, self.file.data[self.names[demo]]
        name = PICTURES.get(camera, f"{camera}_rgb")
        if f"obs/{name}" not in group:
            raise EnvironmentFault(
                f"{self.file.path} has no pictures of {camera}: set cameras to those it has, or make "
                "it with them"
            )
        pictures = group[f"obs/{name}"][()]
        if pictures.shape[1] != chosen.size:
            raise EnvironmentFault(
                f"{self.file.path}: pictures have {pictures.shape[1]} pixels, the task {chosen.size}"
            )
        return np.array([turned(p, chosen.orientation) for p in pictures])

    def _all_numbers(self) -> dict[str, Array]:
        """Actions and numbers of all steps of all demonstrations, below each other."""
        if self.settings.privileged:
            raise CurriculumError("demonstrations do not show privileged states")
        groups = [self.file.data[name] for name in self.names]
        seen = [self._numbers(state) for group in groups for state in group["states"][()]]
        actions = np.concatenate([group["actions"][()] for group in groups]).astype(np.float32)
        return {"actions": actions, **{n: np.array([s[n] for s in seen]) for n in seen[0]}}

    def _numbers(self, state: Array) -> dict[str, Array]:
        if self._simulation is None:
            self._simulation = Simulation(
                scene_of(problem_of(self.official), self.settings.look), 1
            )
            self._simulation.reset(0)
        simulation = self._simulation
        simulation.set_state(np.asarray(state, np.float64))
        assert simulation.reading is not None
        robot = robot_state(simulation, simulation.reading)
        seen = {name: robot[name] for name in self.settings.proprioception}
        names = objects_of(self.settings, simulation.objects)
        return seen | object_state(simulation, simulation.reading, names)


def _path(folder: Path, name: str) -> Path:
    """Below the folder, or in it: originals lie in a folder a list."""
    inner = folder / Path(name).name
    return inner if inner.is_file() else folder / name
