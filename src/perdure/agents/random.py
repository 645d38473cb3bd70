"""Random actions: the floor every result is measured from."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from perdure.agent import Agent
from perdure.types import Array, Context, Setup


class RandomAgent(Agent):
    """Samples the action space uniformly, from its own generator."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._discrete = isinstance(setup.action_space, spaces.Discrete)

    def act(self, obs: Any, ctx: Context) -> Array | list[Any]:
        space = self.setup.action_space
        if self._discrete:
            assert isinstance(space, spaces.Discrete)
            drawn: Array = self.rng.integers(space.n, size=len(ctx.slots)) + space.start
            return drawn
        # Any other space samples itself; its generator is seeded from ours, so that checkpoints
        # and evaluation treat it like every other draw.
        space.seed(int(self.rng.integers(2**31)))
        return [space.sample() for _ in ctx.slots]


agent = RandomAgent
