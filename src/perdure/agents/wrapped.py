"""Agents around agents: one that is as the agent within, and one that learns no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.types import Array, Batch, Block, Context, Measures, ResultsSoFar, State, Transitions


class WrappedAgent(Agent):
    """Does what the agent within does; override what is to be otherwise."""

    def __init__(self, inner: Agent) -> None:
        self.inner, self.setup = inner, inner.setup
        self.observation_space, self.action_space = inner.observation_space, inner.action_space
        self.learns_from = inner.learns_from  # type: ignore[misc]
        self.needs_rewards = inner.needs_rewards  # type: ignore[misc]
        self.memory_scope = inner.memory_scope

    @property
    def rng(self) -> np.random.Generator:
        """The agent's own generator: the loop checkpoints and lends it."""
        return self.inner.rng

    @rng.setter
    def rng(self, value: np.random.Generator) -> None:
        self.inner.rng = value

    def act(self, obs: Any, ctx: Context) -> Array | Sequence[Any]:
        return self.inner.act(obs, ctx)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        return self.inner.learn(batch, ctx)

    def observe(self, batch: Transitions, ctx: Context) -> None:
        self.inner.observe(batch, ctx)

    def diagnose(self) -> Measures | None:
        return self.inner.diagnose()

    def enter(self, ctx: Context) -> None:
        self.inner.enter(ctx)

    def leave(self, ctx: Context) -> None:
        self.inner.leave(ctx)

    def choose(self, options: Sequence[Block], results: ResultsSoFar) -> int:
        return self.inner.choose(options, results)

    def state(self) -> State | None:
        return self.inner.state()

    def load(self, state: State) -> None:
        self.inner.load(state)

    def reset_memory(self, slots: Array) -> None:
        self.inner.reset_memory(slots)

    def memory(self) -> State:
        return self.inner.memory()

    def load_memory(self, memory: State) -> None:
        self.inner.load_memory(memory)


class FrozenAgent(WrappedAgent):
    """Acts as in evaluation, also where there is something to learn, and nothing changes it. What it
    remembers of an episode or trial goes on as ever."""

    def __init__(self, inner: Agent) -> None:
        super().__init__(inner)
        self.learns_from = ("environments", "data")  # type: ignore[misc]
        self.needs_rewards = False  # type: ignore[misc]
        self._asked: tuple[Context, Context] | None = None

    def _evaluating(self, ctx: Context) -> Context:
        # One context serves many steps, and agents keep what they found out about it.
        if self._asked is None or self._asked[0] is not ctx:
            self._asked = ctx, replace(ctx, kind="eval", learning=False)
        return self._asked[1]

    def act(self, obs: Any, ctx: Context) -> Array | Sequence[Any]:
        return self.inner.act(obs, self._evaluating(ctx))

    def learn(self, batch: Batch, ctx: Context) -> None:
        if isinstance(batch, Transitions):
            self.inner.observe(batch, self._evaluating(ctx))

    def enter(self, ctx: Context) -> None:
        self.inner.enter(self._evaluating(ctx))

    def leave(self, ctx: Context) -> None:
        self.inner.leave(self._evaluating(ctx))

    def state(self) -> State:
        return {}

    def load(self, state: State) -> None:
        """Nothing was learned."""
