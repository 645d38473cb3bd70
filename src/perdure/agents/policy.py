"""Any function as a policy: policy,fn=file.py:act; with learn=file.py:update it learns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from perdure import registry
from perdure.agent import Agent
from perdure.errors import SpecError
from perdure.types import Array, Batch, Context, Measures, Setup, State


class PolicyAgent(Agent):
    """Does what a function says.

    ``fn`` is called with one observation and gives one action (or label); with ``batched`` it is called
    with all observations side by side and gives as many actions. A second argument, if it has one, is the
    :class:`~perdure.types.Context`. Any callable will do, also an ``nn.Module`` with its weights in
    place, which gets tensors.

    It is frozen unless there is ``learn``, a function of a batch and its context. What it learns can be
    saved if ``fn`` has ``state_dict`` and ``load_state_dict``; if not, an interrupted lifetime starts
    again from its beginning.
    """

    def __init__(
        self,
        setup: Setup,
        fn: str | Callable[..., Any],
        learn: str | Callable[..., Any] = "",
        batched: bool = False,
    ) -> None:
        super().__init__(setup)
        self.fn, self.batched = _callable("fn", fn), batched
        self.update = _callable("learn", learn) if learn else None
        bases = (f"{b.__module__}.{b.__qualname__}" for b in type(self.fn).__mro__)
        self.network = "torch.nn.modules.module.Module" in bases
        self.told = not self.network and _arguments(self.fn) > 1

    def act(self, obs: Any, ctx: Context) -> Array | Sequence[Any]:
        more = (ctx,) if self.told else ()
        if self.batched:
            found: Array | Sequence[Any] = _array(self.fn(self._shown(obs), *more))
            return found
        rows = (self._shown(_row(obs, k)) for k in range(len(ctx.slots)))
        actions = [_array(self.fn(row, *more)) for row in rows]
        together = isinstance(self.setup.action_space, (spaces.Box, spaces.Discrete))
        return np.array(actions) if together else actions

    def _shown(self, obs: Any) -> Any:
        """Observations as the function takes them: a network's as tensors."""
        if self.network and isinstance(obs, np.ndarray):
            from perdure.agents.networks.tensors import CPU, to_tensor

            return to_tensor(obs, CPU)
        return obs

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        if self.update is None:
            return None
        found: Measures | None = self.update(batch, ctx)
        return found

    def state(self) -> State | None:
        if self.update is None:
            return {}
        saved = getattr(self.fn, "state_dict", None)
        return None if saved is None else {k: np.array(_array(v)) for k, v in saved().items()}

    def load(self, state: State) -> None:
        if not state:
            return
        owner: Any = self.fn
        arrays: dict[str, Any] = {k: np.array(v) for k, v in state.items()}
        if self.network:
            from perdure.agents.networks.tensors import CPU, to_tensor

            arrays = {k: to_tensor(v, CPU) for k, v in arrays.items()}
        owner.load_state_dict(arrays)


def _callable(name: str, given: str | Callable[..., Any]) -> Callable[..., Any]:
    found = registry.load_file(given) if isinstance(given, str) and ".py:" in given else given
    if isinstance(found, type):
        raise SpecError(f"policy: {name}={given} is a class: name an object of it")
    if not callable(found):
        raise SpecError(f"policy: {name} must be a function, as file.py:act, got {given!r}")
    return found


def _arguments(function: Callable[..., Any]) -> int:
    """How many arguments a function wants, as far as it says."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in places and p.default is p.empty for p in parameters)


def _row(obs: Any, k: int) -> Any:
    if isinstance(obs, Mapping):
        return {name: _row(part, k) for name, part in obs.items()}
    return tuple(_row(part, k) for part in obs) if isinstance(obs, tuple) else obs[k]


def _array(value: Any) -> Any:
    """What a function gave, a tensor as an array."""
    if not hasattr(value, "detach"):
        return value
    from perdure.agents.networks.tensors import to_array

    return to_array(value)


agent = PolicyAgent
