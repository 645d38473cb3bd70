"""The one ABC. An agent acts, learns, and can be written down as arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from perdure.seeds import rng_for
from perdure.types import Array, Batch, Block, Context, Measures, Results, State, Transitions, World


class Agent(ABC):
    """A black box that lives one lifetime.

    The loop owns time, seeds, budgets, logging and checkpoints; the agent owns learning. All
    randomness comes from ``self.rng``: the loop checkpoints it, and lends another generator
    during evaluation, so that evaluating never changes what is learned.
    """

    learns_from: ClassVar[tuple[str, ...]] = ("environments", "data")
    """What ``learn`` can take in; planning refuses a curriculum that offers something else."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng: np.random.Generator = rng_for(world.seed, "rng")

    @abstractmethod
    def act(self, obs: Any, ctx: Context) -> Array | Sequence[Any]:
        """One action for each row of ``obs`` (or one label for each input)."""

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        """Take in what happened. May return measures (loss, ...): they are logged."""
        return None

    def observe(self, batch: Transitions, ctx: Context) -> None:
        """Like ``learn`` in evaluation, without rewards: for agents with episode memory."""

    def enter(self, ctx: Context) -> None:
        """A boundary opens: ``ctx.event`` says which."""

    def leave(self, ctx: Context) -> None:
        """A boundary closes."""

    def choose(self, options: Sequence[Block], results: Results) -> int:
        """Which block next, where a curriculum lets the agent choose."""
        return int(self.rng.integers(len(options)))

    def state(self) -> State | None:
        """Everything learned, as a flat mapping of names to arrays. None: cannot be saved, so an
        interrupted lifetime starts again from its beginning.

        An agent that learns must write this itself; until it does, it cannot be saved.
        """
        return {} if type(self).learn is Agent.learn else None

    def load(self, state: State) -> None:
        """Take over a state that ``state()`` gave."""
        if state:
            raise NotImplementedError(
                f"{type(self).__name__}.state() gives arrays but load() is not written"
            )
