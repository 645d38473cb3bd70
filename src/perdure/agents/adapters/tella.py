"""An agent class written to TELLA's interface, unmodified: cls=file.py:Class."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from perdure.agent import Agent
from perdure.agents.adapters import _standins
from perdure.agents.adapters._globals import GlobalRng
from perdure.errors import AgentFault, SpecError
from perdure.names import split_task_id
from perdure.registry import load_file
from perdure.seeds import pack_rng, seed_for, unpack_rng
from perdure.specs import is_file_reference
from perdure.types import Array, Batch, Context, Setup, State, Transitions

NEEDED = ("choose_actions", "receive_transitions")
NO_DATA = "TELLA agents know environments only: expose them to episodes or steps, not to data"


class TellaAgent(Agent):
    """Runs a TELLA agent: same constructor, same callbacks in the same order, same masks.

    ``cls`` names the class; its file may import tella and gym whether they are installed or not.
    ``config`` is the path that it gets as ``config_file``.

    A slot without a budget is masked: its observation and its transition are None, and its
    action is not looked at. ``done`` is terminated or truncated. Task names are Perdure's,
    without the suite; a task without a variant has the variant ``Default``; where several tasks
    run side by side their names are joined by ``+``; where identity is hidden both are None.

    TELLA has no way to save an agent, so a lifetime that is interrupted starts again from its
    beginning, and adapt blocks, which must restore the agent, are refused. A class that has
    ``state()`` and ``load(state)``, in arrays by name, is spared both; then its draws from the
    global generators and from its spaces are saved with it, and evaluation gets others.
    """

    learns_from = ("environments",)

    def __init__(self, setup: Setup, cls: str, config: str | None = None) -> None:
        super().__init__(setup)
        seed = seed_for(setup.seed, "tella")
        self.global_rng = GlobalRng(seed)
        # Copies, because TELLA's base class seeds the spaces it gets.
        self.spaces = copy.deepcopy((setup.observation_space, setup.action_space))
        for space in self.spaces:
            space.seed(seed)
        self.leaves = [leaf for space in self.spaces for leaf in _leaves(space)]
        with self.global_rng.swapped_in(), _standins.standing_in():
            made = _load(cls)
            self.inner = made(seed, *self.spaces, setup.slots, config)
            self.transition = _transition()
        for name in NEEDED:
            if not callable(getattr(self.inner, name, None)):
                raise SpecError(f"{cls} is not a TELLA agent: it has no method {name!r}")
        self.saves = all(callable(getattr(self.inner, n, None)) for n in ("state", "load"))
        self.allowed = False
        self._actions: list[Any] = []

    # Acting and learning.

    def act(self, obs: Any, ctx: Context) -> list[Any]:
        if len(ctx.slots) > self.setup.slots:
            raise AgentFault(NO_DATA)
        self._allow(ctx.learning)
        seen: list[Any] = [None] * self.setup.slots
        for row, slot in zip(_rows(obs, len(ctx.slots)), ctx.slots, strict=True):
            seen[slot] = row
        actions = self._call(ctx.learning, "choose_actions", seen)
        if not hasattr(actions, "__len__") or len(actions) != self.setup.slots:
            raise AgentFault(
                f"{self._name}.choose_actions: expected a list of {self.setup.slots} actions, one "
                f"for each environment, got {actions!r:.120}"
            )
        self._actions = list(actions)
        return [_plain(self._actions[s], self.setup.action_space) for s in ctx.slots]

    def learn(self, batch: Batch, ctx: Context) -> None:
        if not isinstance(batch, Transitions):
            raise AgentFault(NO_DATA)
        self._receive(batch, ctx)

    def observe(self, batch: Transitions, ctx: Context) -> None:
        self._receive(batch, ctx)

    def _receive(self, batch: Transitions, ctx: Context) -> None:
        n = len(batch)
        told: list[Any] = [None] * self.setup.slots
        rewards = [None] * n if batch.rewards is None else batch.rewards
        rows = zip(
            ctx.slots,
            _rows(batch.obs, n),
            rewards,
            batch.terminated | batch.truncated,
            _rows(batch.next_obs, n),
            strict=True,
        )
        for slot, obs, reward, done, next_obs in rows:
            told[slot] = self.transition(obs, self._actions[slot], reward, done, next_obs)
        self._call(ctx.learning, "receive_transitions", told)

    # Boundaries.

    def enter(self, ctx: Context) -> None:
        if ctx.event == "block":
            self._begin(ctx.learning)
        elif ctx.event in ("task", "variant"):
            if ctx.learning != self.allowed:
                # In an adapt block: what TELLA would see as a learn block and an eval block.
                self._call(self.allowed, "block_end", self.allowed)
                self._begin(ctx.learning)
            self._tell(ctx, "start")

    def leave(self, ctx: Context) -> None:
        if ctx.event == "block":
            self._call(self.allowed, "block_end", self.allowed)
        elif ctx.event in ("task", "variant"):
            self._allow(ctx.learning)
            self._tell(ctx, "end")

    def _allow(self, learning: bool) -> None:
        # Not only where a block begins: a resumed agent finds itself in the middle of one.
        self.allowed = self.inner.is_learning_allowed = learning

    def _begin(self, learning: bool) -> None:
        self._allow(learning)
        self._call(learning, "block_start", learning)

    def _tell(self, ctx: Context, edge: str) -> None:
        task, variant = _names(ctx.tasks)
        if ctx.event == "task":
            self._call(ctx.learning, f"task_{edge}", task)
        else:
            self._call(ctx.learning, f"task_variant_{edge}", task, variant)

    # Randomness and state.

    @property
    def _name(self) -> str:
        return type(self.inner).__name__

    def _call(self, learning: bool, method: str, *args: Any) -> Any:
        function = getattr(self.inner, method, None)
        if function is None:
            return None
        if learning or not self.saves:
            with self.global_rng.swapped_in():
                return function(*args)
        # An agent that is saved must be the same after an evaluation as before it.
        before = self._packed_spaces()
        seed = int(self.rng.integers(2**32))
        try:
            with self.global_rng.swapped_in(passing=seed):
                for space in self.spaces:
                    space.seed(seed)
                return function(*args)
        finally:
            self._unpack_spaces(before)

    def _packed_spaces(self) -> Array:
        return np.stack([pack_rng(space.np_random) for space in self.leaves])

    def _unpack_spaces(self, packed: Array) -> None:
        for space, words in zip(self.leaves, packed, strict=True):
            space._np_random = unpack_rng(words)

    def state(self) -> dict[str, Array] | None:
        if not self.saves:
            return None
        inner: Mapping[str, Array] | None = self.inner.state()
        if inner is None:
            return None
        return {
            **{f"agent/{k}": v for k, v in inner.items()},
            **{f"rng/{k}": v for k, v in self.global_rng.state().items()},
            "spaces": self._packed_spaces(),
        }

    def load(self, state: State) -> None:
        self.inner.load({k[6:]: v for k, v in state.items() if k.startswith("agent/")})
        self.global_rng.load({k[4:]: v for k, v in state.items() if k.startswith("rng/")})
        self._unpack_spaces(state["spaces"])


def _load(cls: str) -> Any:
    if not is_file_reference(cls):
        raise SpecError(f"tella: cls must name a class as file.py:Class, got {cls!r}")
    try:
        found = load_file(cls)
    except ImportError as e:
        raise SpecError(f"tella: {cls} cannot be loaded: {type(e).__name__}: {e}") from e
    if not callable(found):
        raise SpecError(f"tella: {cls} is a {type(found).__name__}, expected an agent class")
    return found


def _transition() -> Any:
    """TELLA's own named tuple where TELLA is installed."""
    from tella.curriculum import Transition  # type: ignore[import-not-found]

    return Transition


def _names(tasks: tuple[str, ...] | None) -> tuple[str | None, str | None]:
    """Task and variant as TELLA names them, from ids like ``suite/name@variant``."""
    if not tasks:
        return None, None
    split = [split_task_id(task) for task in tasks]
    names = dict.fromkeys(name for _, name, _ in split)
    variants = dict.fromkeys(variant or "Default" for _, _, variant in split)
    return "+".join(names), "+".join(variants)


def _leaves(space: Any) -> list[Any]:
    """The spaces that hold generators: a composite space draws from its parts."""
    parts = getattr(space, "spaces", None)
    if parts is None:
        return [space]
    parts = parts.values() if hasattr(parts, "values") else parts
    return [leaf for part in parts for leaf in _leaves(part)]


def _rows(batch: Any, n: int) -> list[Any]:
    """The observations of a batch one by one."""
    if isinstance(batch, dict):
        parts = {k: _rows(v, n) for k, v in batch.items()}
        return [{k: v[i] for k, v in parts.items()} for i in range(n)]
    if isinstance(batch, tuple):
        return list(zip(*(_rows(v, n) for v in batch), strict=True))
    return list(batch)


def _plain(action: Any, space: Any) -> Any:
    """Tensors and arrays of one number pass as numbers, as they do in gym's vector environments."""
    if isinstance(space, spaces.Discrete) and getattr(action, "shape", None) in ((), (1,)):
        return action.item()
    return action


agent = TellaAgent
