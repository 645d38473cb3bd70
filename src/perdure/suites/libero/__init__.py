"""LIBERO: 130 tasks of a robot arm on tables and floors, each with its instruction.

A task is ``libero/spatial-3``: task 3 of ``libero_spatial``; the lists are spatial, object, goal, 10
(long) and 90. Task files, meshes and initial states are those of the published benchmark, read from
packages; simulation, controller and predicates are our own, on MuJoCo alone, and equal to
upstream's. ``reset(seed)`` and the episode's number decide an episode.

================  ================================================================================
parameter         what
================  ================================================================================
horizon           steps of an episode: 600
settle            steps before it in which things fall into place: 5; ``settle_gripper``
initial_states    official: episode k begins in state k of 50, never in one twice; cycle; random
initial_state     always this one of the 50
fixture_seed      where fixtures stand, which is no part of a state
cameras           whose pictures are observed; none is much faster
size              of a picture; ``orientation``: upright, upstream (upside down) or rotated
proprioception    what is observed of the robot; ``objects``: also the poses of objects
instruction       benchmark: from the file's name; file: the sentence in the file
look              whose meshes: official
solves            3 as upstream; 1 is faster and the same to about 1e-7
================  ================================================================================
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perdure.protocol import EvalProtocol
from perdure.registry import extras_named
from perdure.suite import Suite
from perdure.suites.libero import protocols
from perdure.suites.libero.eval_protocols import PROTOCOLS
from perdure.suites.libero.states import numbered
from perdure.suites.libero.tasks import Settings, find, officials, settings
from perdure.types import Curriculum, Task

if TYPE_CHECKING:
    import gymnasium

FILM = 256
"""Width and height of a film."""


class LiberoSuite(Suite):
    """A Panda arm among household things, in MuJoCo."""

    name = "libero"
    reset_options = True

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
        return self._made(task, dataclasses.replace(settings(task), cameras=(), size=FILM))

    def _made(self, task: Task, chosen: Settings) -> gymnasium.Env[Any, Any]:
        official = find(task.name)
        with extras_named("suite libero"):
            from perdure.suites.libero.env import Libero, problem_of
        state = functools.partial(numbered, official.folder, official.file)
        return Libero(problem_of(official), chosen, state)

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        chosen = settings(task)
        with extras_named("suite libero"):
            from perdure.suites.libero.env import problem_of, spaces_of
        things = problem_of(find(task.name)).objects if chosen.objects else ()
        return spaces_of(chosen, [thing.name for thing in things])

    def instructions(self, task: Task) -> Sequence[str]:
        official = find(task.name)
        if settings(task).instruction == "benchmark":
            return (official.instruction,)
        from perdure.suites.libero.env import problem_of

        return (problem_of(official).language.lower(),)

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return protocols.CURRICULA

    def protocols(self) -> Mapping[str, EvalProtocol]:
        return PROTOCOLS


suite = LiberoSuite()
