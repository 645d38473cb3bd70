"""Stand-ins for ``tella`` and ``gym``, there only while a file written for them is loaded.

Both libraries are dormant and hard to install. An agent needs little of them: a base class, a
named tuple, names for annotations, and spaces, for which Gymnasium's do. What is really
installed is never replaced.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple, NoReturn, TypeVar

from perdure.errors import SpecError

Observation = TypeVar("Observation")
Action = TypeVar("Action")


class Transition(NamedTuple):
    """One step of one environment, as TELLA's agents get it."""

    observation: Any
    action: Any
    reward: float | None
    """None in evaluation."""
    done: bool
    next_observation: Any


class ContinualRLAgent:
    """What TELLA's base class gives its agents: attributes, seeded spaces, silent callbacks."""

    def __init__(
        self,
        rng_seed: int,
        observation_space: Any,
        action_space: Any,
        num_envs: int,
        config_file: str | None = None,
    ) -> None:
        self.rng_seed = rng_seed
        self.is_learning_allowed = False
        self.observation_space = observation_space
        self.action_space = action_space
        self.num_envs = num_envs
        self.config_file = config_file
        for space in (observation_space, action_space):
            space.seed(rng_seed)

    def block_start(self, is_learning_allowed: bool) -> None:
        """A block begins."""

    def block_end(self, is_learning_allowed: bool) -> None:
        """A block is over."""

    def task_start(self, task_name: str | None) -> None:
        """A task begins."""

    def task_end(self, task_name: str | None) -> None:
        """A task is over."""

    def task_variant_start(self, task_name: str | None, variant_name: str | None) -> None:
        """A variant of a task begins."""

    def task_variant_end(self, task_name: str | None, variant_name: str | None) -> None:
        """A variant of a task is over."""

    def choose_actions(self, observations: list[Any]) -> list[Any]:
        """An action for each observation that is not None."""
        raise NotImplementedError(f"{type(self).__name__}.choose_actions")

    def receive_transitions(self, transitions: list[Transition | None]) -> None:
        """What the actions led to."""
        raise NotImplementedError(f"{type(self).__name__}.receive_transitions")


def _run_it_with_perdure(*_: Any, **__: Any) -> NoReturn:
    raise SpecError(
        "tella is not installed, only what its agents need: run the agent with "
        "perdure run CURRICULUM --agent tella,cls=file.py:Class"
    )


class _Absent:
    """A name that may be imported and annotated with, but not used."""

    __init__ = _run_it_with_perdure


def _tella() -> dict[str, ModuleType]:
    types = {
        "Observation": Observation,
        "Action": Action,
        "Reward": float,
        "Done": bool,
        "Transition": Transition,
        "ValidationError": type("ValidationError", (ValueError,), {}),
    }
    curricula = (
        "AbstractCurriculum InterleavedEvalCurriculum TaskVariant TaskBlock Block LearnBlock "
        "EvalBlock"
    )
    functions = "rl_experiment run simple_learn_block simple_eval_block validate_curriculum"
    absent = {name: type(name, (_Absent,), {}) for name in curricula.split()}
    refusing = {name: _run_it_with_perdure for name in functions.split()}
    base = {"ContinualRLAgent": ContinualRLAgent, **types}
    contents: dict[str, dict[str, Any]] = {
        "tella": {**base, "rl_cli": _run_it_with_perdure, **refusing},
        "tella.agents": base,
        "tella.curriculum": {**types, **absent, **refusing, "curriculum_registry": {}},
        "tella.experiment": {**base, **refusing, "AgentFactory": Any, "CurriculumFactory": Any},
        "tella.cli": {"rl_cli": _run_it_with_perdure},
    }
    return _modules(contents)


def _modules(contents: dict[str, dict[str, Any]]) -> dict[str, ModuleType]:
    made: dict[str, ModuleType] = {}
    for name, values in contents.items():
        module = made[name] = ModuleType(name, "A stand-in: the real library is not installed.")
        vars(module).update(values)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(made[parent], child, module)
        else:
            module.__path__ = []
    return made


def _gym() -> dict[str, ModuleType]:
    """Gymnasium's modules under gym's names."""
    for part in ("gymnasium.spaces", "gymnasium.vector", "gymnasium.wrappers", "gymnasium.utils"):
        importlib.import_module(part)
    return {
        name.replace("gymnasium", "gym", 1): module
        for name, module in list(sys.modules.items())
        if name == "gymnasium" or name.startswith("gymnasium.")
    }


def missing(name: str) -> bool:
    """Whether a library is neither imported nor installed. A folder of its name is neither."""
    if name in sys.modules:
        return False
    found = importlib.util.find_spec(name)
    return found is None or found.origin is None


@contextmanager
def standing_in() -> Iterator[None]:
    """``import tella`` and ``import gym`` work inside."""
    ours: dict[str, ModuleType] = {}
    if missing("tella"):
        ours |= _tella()
    if missing("gym"):
        ours |= _gym()
    sys.modules.update(ours)
    try:
        yield
    finally:
        for name, module in ours.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
