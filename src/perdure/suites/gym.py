"""Any registered Gymnasium environment, by its id, with its constructor's parameters."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator, registry

from perdure import curricula
from perdure.errors import CurriculumError, UnknownName
from perdure.shared_spaces import padded
from perdure.suite import BatchedEnv, Suite
from perdure.suites._cartpole import CartPoles
from perdure.types import Curriculum, Task

EXAMPLES = (
    "CartPole-v1",
    "Acrobot-v1",
    "MountainCar-v0",
    "Pendulum-v1",
    "FrozenLake-v1",
    "Taxi-v4",
)
OURS = ("window",)
"""Parameters that this suite takes itself: ``window`` writes a row every so many steps of a
continuing task."""


class GymSuite(Suite):
    """Task name = environment id; params = keyword arguments of ``gymnasium.make``.

    As in Gymnasium, ``module:ID`` imports a module first, so that it can register its own.
    """

    name = "gym"

    def tasks(self) -> Sequence[Task]:
        return [Task("gym", n) for n in EXAMPLES if n in registry]

    def task(self, name: str) -> Task:
        _spec(name)
        return Task("gym", name)

    def about(self, task: Task) -> str:
        entry = _spec(task.name).entry_point
        creator = load_env_creator(entry) if isinstance(entry, str) else entry
        lines = (inspect.getdoc(creator) or "").split("\n\n")
        prose = (" ".join(text.split()) for text in lines if not text.startswith("#"))
        first = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", next(prose, ""))  # The words of links.
        return first.partition(". ")[0]

    def env(self, task: Task) -> gymnasium.Env[Any, Any]:
        return self._make(task)

    def render_env(self, task: Task) -> gymnasium.Env[Any, Any]:
        return self._make(task, render_mode="rgb_array")

    def _make(self, task: Task, **more: Any) -> gymnasium.Env[Any, Any]:
        spec = _spec(task.name)
        params = {k: v for k, v in {**task.params, **more}.items() if k not in OURS}
        if spec.entry_point is not None:
            entry = spec.entry_point
            creator = load_env_creator(entry) if isinstance(entry, str) else entry
            _check(task, creator, {**spec.kwargs, **params})
        # Perdure's own guards check every step; Gymnasium's passive checker would do it twice.
        env: gymnasium.Env[Any, Any] = gymnasium.make(task.name, disable_env_checker=True, **params)
        return env

    def batched_env(self, task: Task, count: int) -> BatchedEnv | None:
        return CartPoles(count) if task.name == "CartPole-v1" and not task.params else None

    def code(self, task: Task) -> Sequence[Any]:
        spec = _spec(task.name)
        entries = [spec.entry_point, *(w.entry_point for w in spec.additional_wrappers)]
        made = [e.partition(":")[0] if isinstance(e, str) else e for e in entries if e is not None]
        return [*filter(None, [task.name.rpartition(":")[0]]), *made]

    def window(self, task: Task) -> int | None:
        window = task.params.get("window")
        return None if window is None else int(window)

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return {"cartpole": cartpole, "cartpole-1000": cartpole_1000, "sequence": sequence}


def _spec(name: str) -> EnvSpec:
    """What Gymnasium knows of an id; the module before a colon is imported first."""
    module, _, env_id = name.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except ImportError as e:
            raise CurriculumError(
                f"gym/{name}: the module {module!r} cannot be imported: {e}"
            ) from e
    if env_id not in registry:
        raise UnknownName("gym task", env_id, registry)
    return registry[env_id]


MAKE = ("render_mode", "max_episode_steps", "disable_env_checker", "vectorization_mode")


def _check(task: Task, creator: Callable[..., Any], params: Mapping[str, Any]) -> None:
    """Unknown or missing constructor parameters, said before gymnasium.make does."""
    parameters = inspect.signature(creator).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for name in params:
        if name not in names and name not in MAKE:
            known = [*names, *OURS]
            hint = (
                f"(it takes: {', '.join(known)}; run by its name also steps, rounds and episodes)"
            )
            raise UnknownName(f"parameter of {task.id}", name, known, hint)
    missing = [
        p.name
        for p in parameters
        if p.default is p.empty
        and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        and p.name not in params
    ]
    if missing:
        raise CurriculumError(f"{task.id} needs the parameter {missing[0]!r}, which is not given")


def cartpole(learn: int = 5, episodes: int = 1) -> Curriculum:
    """CartPole in small: one learn block and an evaluation around it."""
    task = Task("gym", "CartPole-v1")
    return curricula.tasks_in_turn("gym/cartpole", [task], amount=learn, episodes=episodes)


def cartpole_1000(blocks: int = 10, learn: int = 100, episodes: int = 10) -> Curriculum:
    """CartPole for 1,000 episodes in ten blocks, with an evaluation between each two."""
    task = Task("gym", "CartPole-v1")
    return curricula.tasks_in_turn(
        "gym/cartpole-1000", [task], amount=learn, episodes=episodes, repeats=blocks
    )


def sequence(
    tasks: Sequence[str | Mapping[str, Any]] = ("CartPole-v1", "Acrobot-v1"),
    steps: int = 20_000,
    episodes: int = 10,
    repeats: int = 1,
    wrappers: Sequence[str] = (),
) -> Curriculum:
    """Any environments in turn, each for ``steps``; all are evaluated before, between and after.

    One of them is an id, or a table of the id and its parameters:
    ``gym/sequence,tasks=[Pendulum-v1, {task=Pendulum-v1, g=5}]``. Spaces of different sizes are padded;
    ``wrappers`` are put around each environment first.
    """
    if isinstance(tasks, str) or not tasks:
        raise CurriculumError(f"gym/sequence: tasks must be a list of ids, got {tasks!r}")
    made = [_task(one) for one in tasks]
    if wrappers:
        made = [replace(t, params={**t.params, "wrappers": list(wrappers)}) for t in made]
    made = padded(made)
    return curricula.tasks_in_turn(
        "gym/sequence", made, amount=steps, unit="steps", episodes=episodes, repeats=repeats
    )


def _task(given: str | Mapping[str, Any]) -> Task:
    """An environment by its id, or by a table with the id as ``task`` and its parameters, which are
    its variant's name."""
    if isinstance(given, str):
        return suite.task(given)
    params = dict(given)
    name = params.pop("task", None)
    if not isinstance(name, str):
        raise CurriculumError(
            f"gym/sequence: expected {{task=ID, parameter=value}}, got {dict(given)}"
        )
    words = "-".join(f"{k}{v}" for k, v in params.items())
    variant = "".join(c if c.isalnum() or c in "._+-" else "-" for c in words)
    return Task("gym", suite.task(name).name, variant, params)


suite = GymSuite()
