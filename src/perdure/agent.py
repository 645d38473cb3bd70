"""The one ABC. An agent acts, learns, and can be written down as arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from perdure.seeds import rng_for
from perdure.types import (
    Array,
    Batch,
    Block,
    Context,
    Measures,
    ResultsSoFar,
    Scope,
    Setup,
    State,
    Transitions,
)


class Agent(ABC):
    """A black box that is taken through one lifetime.

    The loop owns time, seeds, budgets, logging and checkpoints; the agent owns learning. All
    randomness comes from ``self.rng``: the loop checkpoints it, and lends another generator
    during evaluation, so that evaluating never changes what is learned.
    """

    learns_from: ClassVar[tuple[str, ...]] = ("environments", "data")
    """What ``learn`` can take in; planning refuses a curriculum that offers something else."""

    reads: ClassVar[frozenset[str] | None] = None
    """Kinds of observation spaces that it takes (see :mod:`perdure.spaces`); None: it does not say.
    What is declared is checked when the agent is made, and others are advised by it."""
    acts_in: ClassVar[frozenset[str] | None] = None
    """Kinds of action spaces that it takes."""
    needs_task_ids: ClassVar[bool] = False
    """Whether it must be shown which task it is at."""
    needs_rewards: ClassVar[bool] = False
    """Whether it must be shown rewards where it learns; planning refuses a curriculum that hides them there."""
    needs_trials: ClassVar[bool] = False
    """Whether it learns from trials of several episodes alone; it is advised only where there are some."""
    least_trial: int = 1
    """How many episodes a trial has at least that it can learn from; planning refuses curricula of shorter ones."""
    least_sequence: int = 1
    """How many steps a sequence of data has at least that it can learn from; planning refuses tasks of shorter ones
    (their parameter ``sequence``)."""
    least_shots: int = 1
    """How many episodes of a trial it needs to adapt; planning refuses curricula whose adapt blocks give fewer."""

    resources: ClassVar[Mapping[str, float]] = {}
    """What a lifetime needs where a cluster places it: ``cpus`` (1), ``gpus`` (0), ``memory`` in bytes."""

    memory_scope: Scope = "episode"
    """How long what :meth:`memory` holds is carried: through an ``episode``, a ``trial`` or a
    ``block``. The loop calls :meth:`reset_memory` where a new one begins."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.observation_space, self.action_space = setup.observation_space, setup.action_space
        self.rng: np.random.Generator = rng_for(setup.seed, "rng")

    @abstractmethod
    def act(self, obs: Any, ctx: Context) -> Array | Sequence[Any]:
        """One action for each row of ``obs`` (or one label for each input)."""

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        """Take in what happened. May return measures (loss, ...): they are logged."""
        return None

    def observe(self, batch: Transitions, ctx: Context) -> None:
        """Like ``learn`` in evaluation: for agents with memory. Rewards are None unless the block
        shows them."""

    def diagnose(self) -> Measures | None:
        """Measures of the agent itself (how many units are dormant, ...): asked when an evaluation
        begins, and logged with its first row. It must leave no trace."""
        return None

    def enter(self, ctx: Context) -> None:
        """A boundary opens: ``ctx.event`` says which."""

    def leave(self, ctx: Context) -> None:
        """A boundary closes."""

    def choose(self, options: Sequence[Block], results: ResultsSoFar) -> int:
        """Which block next, where a curriculum lets the agent choose."""
        return int(self.rng.integers(len(options)))

    def state(self) -> State | None:
        """Everything learned, as a flat mapping of names to arrays. None: cannot be saved, so an
        interrupted lifetime starts again from its beginning.

        What is large and changes in parts may be a :class:`perdure.arrays.ChunkedArray`, which costs
        what changed; ``load`` may get it back as one, or as a plain array.

        An agent that learns must write this itself; until it does, it cannot be saved.
        """
        return {} if type(self).learn is Agent.learn else None

    def load(self, state: State) -> None:
        """Take over a state that ``state()`` gave."""
        if state:
            raise NotImplementedError(
                f"{type(self).__name__}.state() gives arrays but load() is not written"
            )

    def skips_observation(self, slots: Array) -> Array | None:
        """Which of these slots' next observations the agent will not look at, since it has decided already
        what to do then (it executes a chunk of actions); None: it looks at all. Asked after ``act`` of agents that
        only act. A suite may leave pictures black that nobody looks at: drawing is most of what they cost."""
        return None

    # Memory: what is carried during an episode, trial or block and is no part of what was learned.

    def reset_memory(self, slots: Array) -> None:
        """Forget what is carried for these slots."""

    def memory(self) -> State:
        """What is carried now (recurrent states, past frames, an unfinished action chunk), as a
        flat mapping of names to arrays. It is checkpointed; evaluation may change it."""
        return {}

    def load_memory(self, memory: State) -> None:
        """Take over what ``memory()`` gave."""
        if memory:
            raise NotImplementedError(
                f"{type(self).__name__}.memory() gives arrays but load_memory() is not written"
            )
