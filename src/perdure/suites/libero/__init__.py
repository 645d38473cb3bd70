"""LIBERO: 130 tasks of a robot arm on tables and floors, each with its instruction.

A task is ``libero/spatial-3``: task 3 of ``libero_spatial``; the lists are spatial, object, goal, 10
(long) and 90. Things are drawn and built by our own object library, or with ``look=official`` by the
meshes of the published benchmark, from its packages (extra ``libero-official``); simulation,
controller and predicates are our own, on MuJoCo alone, and in the official look equal to upstream's.
``reset(seed)`` and the episode's number decide an episode.

================  ================================================================================
parameter         what
================  ================================================================================
horizon           steps of an episode: 600
settle            steps before it in which things fall into place: 5; ``settle_gripper``
initial_states    numbered: episode k begins as number k draws it; official: in state k of the 50
                  published; cycle; random. By the look if nothing is said
initial_state     always the one of this number
fixture_seed      where fixtures stand, which is no part of a state
cameras           whose pictures are observed; none is much faster
size              of a picture; ``orientation``: upright, upstream (upside down) or rotated
proprioception    what is observed of the robot; ``objects``: also the poses of objects,
                  of all or of those named (zeros where one is not there);
                  ``privileged``: the simulation's whole state, for experts
instruction       benchmark: from the file's name; file: the sentence in the file; polite, synonyms,
                  reworded: the first in other words
start_shift       metres by which the hand begins elsewhere; ``camera_shift``, ``light``: other pictures
distractors       things more that stand there; ``rearranged``: things in other places, 1 to 3;
                  ``other_goal``: another goal in the same scene, and the sentence for it, 1 to 3
look              primitive: our own object library; official: the published meshes
solves            3 as upstream; 1 is faster and the same to about 1e-7
folder            where the task's file is, if it is none of the 130
demos             folder of demonstrations: the task's data; ``sequence``, ``batch_size``; ``noise``
================  ================================================================================
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.errors import UnknownName
from perdure.protocol import EvalProtocol
from perdure.registry import extras_named
from perdure.suite import BatchedEnv, Data, Demonstration, Suite
from perdure.suites._threads import threads
from perdure.suites.libero import lifelong, protocols
from perdure.suites.libero.eval_protocols import PROTOCOLS
from perdure.suites.libero.folders import FolderTask, tasks_in
from perdure.suites.libero.phrasing import REPHRASED, rephrased
from perdure.suites.libero.states import numbered
from perdure.suites.libero.tasks import (
    LISTS,
    Settings,
    find,
    located,
    names_of,
    officials,
    settings,
)
from perdure.types import Array, Curriculum, Setup, Task

if TYPE_CHECKING:
    import gymnasium

    from perdure.agent import Agent
    from perdure.suites.libero.env import Libero
    from perdure.suites.libero.generation.suite import Report

VIDEO_SIZE = 256
"""Width and height of a video."""

_LEROBOT = {"agentview_image": "images.image", "robot0_eye_in_hand_image": "images.image2"}
"""LIBERO's pictures, and what LeRobot's own datasets call them."""


class LiberoSuite(Suite):
    """A Panda arm among household things, in MuJoCo."""

    name = "libero"
    reset_options = True
    measure = "success"

    def tasks(self) -> Sequence[Task]:
        return [Task("libero", name) for name in officials()]

    def task(self, name: str) -> Task:
        return Task("libero", find(name).name)

    def task_to_check(self, task: Task) -> Task:
        # Pictures are all of an episode's cost, and 130 times the same code.
        return Task("libero", task.name, params={**task.params, "cameras": []})

    def env(self, task: Task) -> gymnasium.Env[Any, Any]:
        return self._made(task, settings(task))

    def render_env(self, task: Task) -> gymnasium.Env[Any, Any]:
        return self._made(task, dataclasses.replace(settings(task), cameras=(), size=VIDEO_SIZE))

    def batched_env(self, task: Task, count: int) -> BatchedEnv | None:
        chosen = settings(task)
        with extras_named("suite libero"):
            from perdure.suites.libero.batched import BatchedLibero
        return BatchedLibero(functools.partial(self._made, task, chosen), count, threads())

    def _made(self, task: Task, chosen: Settings) -> Libero:
        found = located(task)
        with extras_named("suite libero"):
            from perdure.suites.libero.env import Libero
            from perdure.suites.libero.played import problem_played
            from perdure.suites.libero.problems import problem_of
        # What is observed does not change with what stands there besides.
        if chosen.objects is True:
            things = problem_of(found).objects
            chosen = dataclasses.replace(chosen, objects=tuple(t.name for t in things))
        problem = problem_played(task)
        if isinstance(found, FolderTask):
            return Libero(problem, chosen)
        state = functools.partial(numbered, found.folder, found.file)
        return Libero(problem, chosen, state)

    def expert(self, setup: Setup) -> Agent:
        with extras_named("agent expert"):
            from perdure.suites.libero.expert_agent import ExpertAgent
        return ExpertAgent(setup)

    def demonstrator(self) -> tuple[str, Mapping[str, Any]]:
        return "expert", {"privileged": True, "cameras": []}  # It looks at no picture.

    def demonstration_tasks(self, name: str, params: Mapping[str, Any]) -> Sequence[Task]:
        folder, lists = params.get("folder"), (*LISTS, "100")
        if folder is not None:
            names = tuple(tasks_in(folder)) if name == "all" else (name,)
        else:
            names = names_of(name) if name in lists else self._one(name, lists)
        return [Task("libero", n, params=dict(params)) for n in names]

    @staticmethod
    def _one(name: str, lists: Sequence[str]) -> tuple[str, ...]:
        try:
            return (find(name).name,)
        except UnknownName as e:
            raise UnknownName("list or task of libero", name, (*lists, *e.known)) from e

    def demonstration_file(self, task: Task) -> tuple[str, Mapping[str, Any]]:
        from perdure.suites.libero.demonstrations import file_of

        return file_of(task)

    def demonstrate(self, task: Task, seed: int) -> Demonstration | None:
        with extras_named("suite libero"):
            from perdure.suites.libero.demonstrations import demonstrate
        return demonstrate(task, seed)

    def replay(self, task: Task, shown: Demonstration) -> bool:
        with extras_named("suite libero"):
            from perdure.suites.libero.demonstrations import replay
        return replay(task, shown)

    def data(self, task: Task, learning: bool) -> Data:
        with extras_named("suite libero"):
            from perdure.suites.libero.demonstration_data import Demonstrations
        return Demonstrations(task, learning)

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        chosen = settings(task)
        with extras_named("suite libero"):
            from perdure.suites.libero.env import spaces_of
            from perdure.suites.libero.problems import problem_of
        things = problem_of(located(task)).objects if chosen.objects is True else ()
        return spaces_of(chosen, [thing.name for thing in things])

    def instructions(self, task: Task) -> Sequence[str]:
        found = located(task)
        chosen = settings(task)
        how = chosen.instruction
        if not isinstance(found, FolderTask) and how != "file" and not chosen.other_goal:
            said = found.instruction
            return (rephrased(said, how) if how in REPHRASED else said,)
        with extras_named("suite libero"):
            from perdure.suites.libero.played import problem_played
        written = problem_played(task).language.lower()
        if chosen.other_goal and how in REPHRASED:
            written = rephrased(written, how)
        return (written,) if written else ()

    def code(self, task: Task) -> Sequence[Any]:
        found = located(task)
        files: list[Any] = [found.path] if isinstance(found, FolderTask) else []
        if settings(task).demos:
            from perdure.suites._demonstrations import DemonstrationFile
            from perdure.suites.libero.demonstration_data import path_of

            # A task that is only played has none; one that is learned without is refused with its data.
            if (path := path_of(task)).is_file():
                shown = DemonstrationFile(path).fingerprint()
                files.append({f"demonstrations/{path.name}": shown})
        return files

    def generate(
        self,
        folder: Path,
        kind: str = "all",
        count: int = 10,
        seed: int = 0,
        looks: Sequence[str] = (Settings.look,),
        experts: int = 0,
        report: Callable[[int, int], None] | None = None,
    ) -> Report:
        """New tasks in a folder: see :mod:`perdure.suites.libero.generation`."""
        with extras_named("suite libero"):
            from perdure.suites.libero.generation.suite import generate
        return generate(folder, kind, count, seed, looks, experts, report=report)

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return {**protocols.CURRICULA, **lifelong.CURRICULA}

    def aliases(self) -> Mapping[str, str]:
        return {"10": "long", "90": "ninety", "100": "hundred"}

    def lerobot_observations(self, seen: Mapping[str, Array]) -> Mapping[str, Array]:
        from perdure.policies.interface import HAND, axis_angle

        out = {_LEROBOT.get(name, name): part for name, part in seen.items()}
        if all(name in seen for name in HAND):
            place, turn, fingers = (seen[name] for name in HAND)
            turned = np.array([axis_angle(q) for q in turn])
            out["state"] = np.concatenate([place, turned, fingers], axis=1).astype(np.float32)
        return out

    def protocols(self) -> Mapping[str, EvalProtocol]:
        return PROTOCOLS


suite = LiberoSuite()
