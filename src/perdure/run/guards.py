"""What may pass between agent and environment: refused with expected and got, never clipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector.utils import concatenate, create_empty_array

from perdure.agent import Agent
from perdure.arrays import Array, all_finite
from perdure.errors import ActionRefused, AgentFault, EnvironmentFault, PerdureError, UnknownName
from perdure.relayed import file_and_line
from perdure.types import SCOPES


def agent_fault(agent: object, method: str, error: Exception) -> PerdureError:
    """An agent's exception as one that says where it came from, in the original words."""
    if isinstance(error, PerdureError):
        return error
    words = f"{type(agent).__name__}.{method} raised {type(error).__name__}: {error}"
    return AgentFault(f"{words} ({file_and_line(error)})")


def check_memory_scope(agent: Agent) -> None:
    """AgentFault unless what an agent carries is carried for as long as there is a word for."""
    if agent.memory_scope not in SCOPES:
        refused = UnknownName("memory_scope", str(agent.memory_scope), SCOPES)
        raise AgentFault(f"{type(agent).__name__}: {refused} (one of {', '.join(SCOPES)})")


def exit_fault(error: SystemExit) -> AgentFault:
    """sys.exit() somewhere in an agent or environment ends its lifetime, not the run."""
    return AgentFault(f"the agent or its environment called sys.exit({error.code!r})")


ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
"""Spaces whose members, side by side, make one array."""

ActionGuard = Callable[[Any, int], list[Any]]


def action_guard(space: Space[Any], who: str) -> ActionGuard:
    """A function that checks a batch of actions and gives them one by one."""

    def refuse(expected: str, got: object) -> ActionRefused:
        return ActionRefused(f"{who}.act: expected {expected} of {space}, got {_brief(got)}")

    if isinstance(space, spaces.Discrete):
        low, high = int(space.start), int(space.start + space.n)

        def discrete(actions: Any, n: int) -> list[Any]:
            if type(actions) is np.ndarray:
                if actions.shape != (n,) or actions.dtype.kind not in "iu":
                    raise refuse(f"{n} whole numbers", actions)
            else:
                for a in _listed(actions, n, refuse):
                    if isinstance(a, (bool, np.bool_)) or not isinstance(a, (int, np.integer)):
                        raise refuse(f"{n} whole numbers", actions)
                actions = np.array(actions)
            out: list[Any] = actions.tolist()
            for a in out:
                if not low <= a < high:
                    raise refuse(f"actions from {low} to {high - 1}", actions)
            return out

        return discrete

    if isinstance(space, spaces.Box):
        lowest, highest, shape, dtype = space.low, space.high, space.shape, space.dtype
        kinds = "fiu" if np.dtype(dtype).kind == "f" else "iu"  # Nothing is cut off in silence.
        bounded = space.is_bounded()

        def box(actions: Any, n: int) -> list[Any]:
            try:
                # A copy: an agent may use its array again, and what was played is kept.
                array = np.array(actions)
            except ValueError:
                raise refuse(f"{n} actions", actions) from None
            if array.shape != (n, *shape) or array.dtype.kind not in kinds:
                raise refuse(f"an array of shape {(n, *shape)} and dtype {dtype}", actions)
            # Written so that NaN fails too.
            if not ((array >= lowest) & (array <= highest)).all():
                raise refuse("finite actions within the bounds", actions)
            if array.dtype != dtype:
                with np.errstate(over="ignore"):
                    array = array.astype(dtype)
            if not bounded and not np.isfinite(array).all():
                raise refuse("finite actions", actions)
            return list(array)

        return box

    def other(actions: Any, n: int) -> list[Any]:
        out = _listed(actions, n, refuse)
        for a in out:
            if not space.contains(a):
                raise refuse("members", a)
        return out

    return other


def _listed(actions: Any, n: int, refuse: Callable[[str, object], AgentFault]) -> list[Any]:
    if isinstance(actions, (str, bytes, Mapping, Set)) or not hasattr(actions, "__len__"):
        raise refuse(f"a sequence of {n} actions", actions)
    if len(actions) != n:
        raise refuse(f"{n} actions", actions)
    return list(actions)


def stack_actions(space: Space[Any], actions: list[Any]) -> Any:
    """A batch of actions as one array where the space allows it."""
    if isinstance(space, ARRAYS):
        return np.asarray(actions, dtype=space.dtype)
    return actions


class Observer:
    """Checks observations and puts them side by side, in a new array each time."""

    def __init__(self, space: Space[Any], who: str) -> None:
        self.space, self.who = space, who
        self.simple = isinstance(space, ARRAYS)
        self.shape = tuple(space.shape or ())
        self.dtype = np.dtype(space.dtype)
        self.float = self.simple and self.dtype.kind == "f"
        self.parts: dict[str, Observer] = {}
        if isinstance(space, spaces.Dict):
            self.parts = {key: Observer(part, who) for key, part in space.items()}
        elif isinstance(space, spaces.Tuple):
            self.parts = {str(k): Observer(part, who) for k, part in enumerate(space.spaces)}

    def empty(self, n: int) -> Any:
        """A new batch of n observations to fill."""
        if self.simple:
            return np.empty((n, *self.shape), self.dtype)
        return [None] * n

    def admit(self, obs: Any, where: str) -> Any:
        """One observation, made right or refused."""
        if self.parts:
            return self._admit_parts(obs, where)
        if not self.simple:
            if not self.space.contains(obs) or not all_finite(obs):
                raise self._refuse(where, obs)
            return obs
        try:
            array = np.asarray(obs)
        except ValueError:
            raise self._refuse(where, obs) from None
        if array.shape != self.shape or not (
            array.dtype == self.dtype or np.can_cast(array.dtype, self.dtype, "same_kind")
        ):
            raise self._refuse(where, obs)
        if array.dtype != self.dtype:
            with np.errstate(over="ignore"):  # Becomes infinite, and is found as such.
                array = array.astype(self.dtype)
        return array

    def _admit_parts(self, obs: Any, where: str) -> Any:
        """A Dict or Tuple: every part, and finite."""
        named = isinstance(self.space, spaces.Dict)
        fits = isinstance(obs, Mapping) if named else isinstance(obs, (tuple, list))
        if not fits or len(obs) != len(self.parts):
            raise self._refuse(where, obs)
        if named and obs.keys() != self.parts.keys():
            raise self._refuse(where, sorted(map(str, obs)))
        found = {}
        for key, part in self.parts.items():
            value = obs[key if named else int(key)]
            if not isinstance(part.space, spaces.Box) and not part.space.contains(value):
                raise self._refuse(where, obs)
            found[key] = part.admit_first(value, f"{where} [{key}]")
        return found if named else tuple(found.values())

    def pack(self, obs: Any) -> dict[str, Array] | None:
        """One observation as named arrays, for a checkpoint; None if it is not made of arrays."""
        if self.simple:
            return {"obs": np.asarray(obs)}
        if not self.parts:
            return None
        out: dict[str, Array] = {}
        for (key, part), value in zip(self.parts.items(), self._values(obs), strict=True):
            packed = part.pack(value)
            if packed is None:
                return None
            out |= {f"obs/{key}{name[3:]}": array for name, array in packed.items()}
        return out

    def unpack(self, arrays: Mapping[str, Array]) -> Any:
        """The observation that :meth:`pack` packed."""
        if self.simple:
            return arrays["obs"]
        found = {}
        for key, part in self.parts.items():
            head = f"obs/{key}"
            mine = {
                f"obs{name[len(head) :]}": array
                for name, array in arrays.items()
                if name == head or name.startswith(f"{head}/")
            }
            found[key] = part.unpack(mine)
        return found if isinstance(self.space, spaces.Dict) else tuple(found.values())

    def _values(self, obs: Any) -> list[Any]:
        return [obs[key] for key in self.parts] if isinstance(obs, Mapping) else list(obs)

    def admit_first(self, obs: Any, where: str) -> Any:
        """The first observation of an episode: like any other, and finite."""
        array = self.admit(obs, where)
        if self.float and self.dubious(array):
            self.check_finite(array[None], lambda k: where)
        return array

    def dubious(self, numbers: Array) -> bool:
        """Whether a look is needed: only finite numbers give a finite sum. (Python adds up a few
        numbers faster than numpy.)"""
        total: float
        total = sum(numbers.ravel().tolist()) if numbers.size <= 64 else float(numbers.sum())
        return total - total != 0.0

    def batch(self, items: Any) -> Any:
        """A filled batch as agents get it."""
        if self.simple:
            return items
        out: Any = create_empty_array(self.space, len(items), fn=np.zeros)
        return concatenate(self.space, items, out)

    def check_finite(self, batch: Array, where: Callable[[int], str]) -> None:
        """Refuse NaN and infinity. (A sum that overflows is no reason.)"""
        bad = ~np.isfinite(batch.reshape(len(batch), -1)).all(axis=1)
        if bad.any():
            k = int(np.argmax(bad))
            raise EnvironmentFault(
                f"{where(k)}: expected a finite observation, got {_brief(batch[k])}"
            )

    def _refuse(self, where: str, obs: object) -> EnvironmentFault:
        return EnvironmentFault(
            f"{where}: expected an observation in {self.space}, got {_brief(obs)}"
        )


def check_measures(measures: Any, where: str) -> dict[str, float]:
    """Measures as names and numbers (NaN is one), or refused."""
    try:
        return {name: float(value) for name, value in measures.items()}
    except (AttributeError, TypeError, ValueError):
        raise AgentFault(
            f"{where}: expected measures as a mapping of names to numbers, or None, got "
            f"{_brief(measures)}"
        ) from None


def check_reward(reward: Any, where: str) -> float:
    """A reward as a finite float, or refused."""
    try:
        value = float(reward)
    except (TypeError, ValueError):
        value = float("nan")
    if isinstance(reward, (str, bytes)) or value - value != 0.0:
        raise EnvironmentFault(f"{where}: expected a finite number as reward, got {_brief(reward)}")
    return value


def check_flag(flag: Any, name: str, where: str) -> bool:
    """terminated or truncated as a bool, or refused."""
    if isinstance(flag, (bool, np.bool_)):
        return bool(flag)
    raise EnvironmentFault(f"{where}: expected {name} to be True or False, got {_brief(flag)}")


def _brief(value: object) -> str:
    if isinstance(value, np.ndarray):
        text = np.array2string(value, threshold=8, precision=4)
        return f"array of shape {value.shape}, dtype {value.dtype}: {text[:120]}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"{type(value).__name__} of length {len(value)}: {str(value)[:120]}"
    return f"{type(value).__name__} {str(value)[:120]}"
