"""Files of demonstrations as a task's data: ours, and those that people recorded with the original tools.

They have one layout and differ in one thing. Ours show what was seen *before* each action. The published
files were made by playing recorded actions again and noting what was seen *after* each, beside the state
before it: row i has ``states[i]``, ``actions[i]`` and the pictures that belong to ``states[i + 1]``. Which of
both a demonstration is, is found by comparing its ``obs/joint_states`` with its states, and pictures and
states are brought together again. ``pairing`` then says which action goes with them.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.errors import CurriculumError, EnvironmentFault, PerdureError
from perdure.suites._demonstrations import DemonstrationFile, windows
from perdure.suites._held_arrays import HeldArrays
from perdure.suites.libero.bddl import parse
from perdure.suites.libero.camera import turned
from perdure.suites.libero.demonstrations import PICTURES, file_of
from perdure.suites.libero.env import object_state, objects_of, robot_state, scene_of
from perdure.suites.libero.played import problem_played
from perdure.suites.libero.problem import Problem
from perdure.suites.libero.problems import problem_of
from perdure.suites.libero.simulation import Simulation
from perdure.suites.libero.tasks import CAMERAS, located, settings
from perdure.types import Array, Examples, Task

if TYPE_CHECKING:
    import h5py

HELD_OUT = 10
"""Every tenth demonstration is held out."""
HELD = HeldArrays()
"""What was read of demonstrations: tasks are learned in several blocks, and looked up again later."""
ARM = slice(1, 8)
"""Where a stored state has the arm's joints: after the time, before the fingers and everything else."""


def lag(demo: h5py.Group) -> int:
    """How many rows later the state is that belongs to what a row shows: 1 if it was seen after the action."""
    if "obs/joint_states" not in demo:
        return 0
    arm, shown = demo["states"][:, ARM], demo["obs/joint_states"][()]
    before, after = np.abs(shown[:-1] - arm[:-1]).sum(), np.abs(shown[:-1] - arm[1:]).sum()
    return int(after < before)


def path_of(task: Task) -> Path:
    """Where a task's demonstrations are."""
    return _path(Path(settings(task).demos), file_of(task)[0])


class Demonstrations:
    """A task's demonstrations as data: sequences of observations and actions, read as they are needed."""

    def __init__(self, task: Task, learning: bool) -> None:
        chosen = settings(task)
        if not chosen.demos:
            raise CurriculumError(
                f"{task.id} has no data: set demos to a folder that perdure demos has filled"
            )
        if chosen.objects is True:
            # Of those that the task's file has, as its spaces have it, whatever stands there besides.
            things = problem_of(located(task)).objects
            chosen = dataclasses.replace(chosen, objects=tuple(t.name for t in things))
        self.task, self.problem = task, problem_played(task)
        self.settings, self.batch_size = chosen, chosen.batch_size
        self.file = DemonstrationFile(path_of(task))
        check_task(self.file, self.problem)
        self.file.check_numbers()
        held = [k % HELD_OUT == HELD_OUT - 1 for k in range(len(self.file.names))]
        self.names = [n for n, h in zip(self.file.names, held, strict=True) if h != learning]
        if not self.names:
            raise CurriculumError(
                f"{self.file.path}: none of its {len(held)} demonstrations is "
                f"{'for learning' if learning else 'held out'}: every {HELD_OUT}th is held out"
            )
        for name in self.names:
            self._check_pictures(name)
        lengths = dict(zip(self.file.names, self.file.lengths, strict=True))
        self.lags = [lag(self.file.data[n]) for n in self.names]
        self.lengths = np.array([lengths[n] for n in self.names]) - self.lags
        self.firsts = np.cumsum(self.lengths) - self.lengths
        """The first row of each demonstration, where all of them lie below each other."""
        self.windows = windows(self.lengths, chosen.sequence)
        found = self.file.path.stat()
        self._version = (str(self.file.path.resolve()), found.st_size, found.st_mtime_ns)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.windows)

    def batch(self, indices: Array) -> Examples:
        """Sequences: minibatch × time × …; without time where sequences have one step."""
        length = self.settings.sequence
        demo, begin = self.windows[indices].T
        steps = np.minimum(begin[:, None] + np.arange(length), self.lengths[demo][:, None] - 1)
        with self._lock:
            numbers = self._numbers
            inputs = {
                f"{camera}_image": np.stack(
                    [self._pictures(camera, int(d), s) for d, s in zip(demo, steps, strict=True)]
                )
                for camera in self.settings.cameras
            }
        rows = self.firsts[demo][:, None] + steps
        inputs |= {name: array[rows] for name, array in numbers.items() if name != "actions"}
        targets = numbers["actions"][rows]
        if length == 1:
            inputs, targets = {n: a[:, 0] for n, a in inputs.items()}, targets[:, 0]
        return Examples(inputs, targets)

    def _pictures(self, camera: str, demo: int, steps: Array) -> Array:
        """Pictures of some steps of a demonstration, as the task shows them. All of it are held where there is
        room; else those are read that are needed."""
        chosen, count = self.settings, int(self.lengths[demo])
        key = (*self._version, camera, chosen.size, chosen.orientation, self.names[demo])
        size = count * 3 * chosen.size**2
        held = HELD.get_if_room(key, size, lambda: {"": self._read(camera, demo, 0, count)})
        first = 0 if held is not None else int(steps[0])
        read = self._read(camera, demo, first, int(steps[-1]) + 1) if held is None else held[""]
        wanted: Array = read[steps - first]
        return wanted

    def _read(self, camera: str, demo: int, first: int, end: int) -> Array:
        name = self.names[demo]
        with self.file.reading(name):
            pictures = self.file.data[f"{name}/{_dataset(camera)}"][first:end]
        return np.array([turned(p, self.settings.orientation) for p in pictures])

    def _check_pictures(self, demo: str) -> None:
        """Refuse a demonstration that lacks pictures that the task shows: its first minibatch would fail."""
        chosen, group = self.settings, self.file.data[demo]
        for camera in chosen.cameras:
            if _dataset(camera) not in group:
                known = [c for c in (*CAMERAS, *chosen.cameras) if _dataset(c) in group]
                fix = f"set cameras=[{', '.join(dict.fromkeys(known))}]"
                if not known:
                    fix += " and learn from states (objects=true; scale=small of libero/lifelong)"
                raise EnvironmentFault(
                    f"{self.file.path} has no pictures of {camera}: {fix}, or make it again by perdure demos "
                    f"with --cameras {','.join(chosen.cameras)}"
                )
            rows, size = group[_dataset(camera)].shape[:2]
            if rows != len(group["actions"]):
                raise self.file.fault(f"is damaged: {demo} has {rows} pictures of {camera}")
            if size != chosen.size:
                raise EnvironmentFault(
                    f"{self.file.path}: pictures have {size} pixels, the task {chosen.size}: set size={size}"
                )

    @functools.cached_property
    def _numbers(self) -> Mapping[str, Array]:
        """Actions and numbers of all steps, held for when the data are opened again."""
        chosen = self.settings
        how = (chosen.look, chosen.pairing, chosen.proprioception, chosen.objects)
        return HELD.get((*self._version, *how, tuple(self.names)), self._all_numbers)

    def _all_numbers(self) -> dict[str, Array]:
        """Actions and numbers of all steps of all demonstrations, below each other."""
        if self.settings.privileged:
            raise CurriculumError("demonstrations do not show privileged states")
        seen: list[dict[str, Array]] = []
        actions: list[Array] = []
        for name, late, steps in zip(self.names, self.lags, self.lengths, strict=True):
            with self.file.reading(name):
                group = self.file.data[name]
                states, taken = group["states"][late:], group["actions"][()].astype(np.float32)
            wanted = self.simulation.state_size
            if states.shape[1] != wanted:
                raise EnvironmentFault(
                    f"{self.file.path}: the states of {name} have {states.shape[1]} numbers, those of "
                    f"{self.task.name} have {wanted}: it is of another scene"
                )
            seen += [self._seen(np.asarray(state, np.float64)) for state in states]
            first = late if self.settings.pairing == "next" else 0
            actions.append(taken[first : first + steps])
        numbers = {n: np.array([s[n] for s in seen]) for n in seen[0]}
        return {"actions": np.concatenate(actions), **numbers}

    @functools.cached_property
    def simulation(self) -> Simulation:
        """The scene, in which states are looked at."""
        made = Simulation(scene_of(self.problem, self.settings.look), 1)
        made.reset(0)
        return made

    def _seen(self, state: Array) -> dict[str, Array]:
        simulation = self.simulation
        simulation.set_state(state)
        assert simulation.reading is not None
        robot = robot_state(simulation, simulation.reading)
        seen = {name: robot[name] for name in self.settings.proprioception}
        names = objects_of(self.settings, simulation.objects)
        return seen | object_state(simulation, simulation.reading, names)


def _dataset(camera: str) -> str:
    """Where a demonstration has the pictures of a camera."""
    return f"obs/{PICTURES.get(camera, f'{camera}_rgb')}"


def _path(folder: Path, name: str) -> Path:
    """Below the folder, or in it: originals lie in a folder a list."""
    inner = folder / Path(name).name
    return inner if inner.is_file() else folder / name


def check_task(file: DemonstrationFile, problem: Problem) -> None:
    """Refuse a file that says it is of another task, or of other things: its states would be misread."""
    content = file.data.attrs.get("bddl_file_content")
    if content is None:
        return
    text = content.decode() if isinstance(content, bytes) else str(content)
    try:
        said = parse(text)
    except PerdureError as e:
        raise EnvironmentFault(f"{file.path}: its bddl_file_content cannot be read: {e}") from e
    for what in ("fixtures", "objects", "goal"):
        theirs, ours = _listed(getattr(said, what)), _listed(getattr(problem, what))
        if theirs != ours:
            raise EnvironmentFault(
                f"{file.path} is of another task: its bddl_file_content has {what} {theirs}, the task has {ours}"
            )


def _listed(things: Any) -> str:
    return ", ".join(str(getattr(t, "name", t)) for t in things)
