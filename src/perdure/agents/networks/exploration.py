"""Epsilon-greedy choice, with a schedule over learned steps that can restart at a new task."""

from __future__ import annotations

import numpy as np

from perdure.agents.task_boundary import TaskBoundary
from perdure.types import Array, Context, State


class EpsilonGreedy:
    """Random actions at first, then ever more greedy ones: epsilon falls from 1 to ``final`` in a
    straight line over ``steps`` learned steps, and stays there; with ``restart`` it starts again at
    every new task (see :class:`TaskBoundary`).
    """

    def __init__(self, final: float, steps: int, restart: bool) -> None:
        self.final, self.steps, self.restart = final, steps, restart
        self.learned = 0
        self.boundary = TaskBoundary()

    @property
    def epsilon(self) -> float:
        """The probability of a random action in learning now."""
        if self.learned >= self.steps:
            return self.final
        return 1.0 + (self.final - 1.0) * self.learned / self.steps

    def enter(self, ctx: Context) -> bool:
        """Whether a new task begins here; restarts the schedule if it should."""
        begins = self.boundary.enter(ctx)
        if begins and self.restart:
            self.learned = 0
        return begins

    def choose(self, values: Array, rng: np.random.Generator, learning: bool) -> Array:
        """The best action of each row of values (the lowest number among equals), or in learning
        sometimes any action."""
        greedy: Array = values.argmax(axis=1)
        if not learning:
            return greedy
        n, actions = values.shape
        # Both draws are made whatever epsilon is, so that its value never shifts the stream.
        explore, anything = rng.random(n) < self.epsilon, rng.integers(actions, size=n)
        return np.where(explore, anything, greedy)

    def state(self) -> dict[str, Array]:
        """The place in the schedule and the task it belongs to."""
        return {"explore.learned": np.array(self.learned), **self.boundary.state("explore.task")}

    def load(self, state: State) -> None:
        """Go on from a saved place."""
        self.learned = int(state["explore.learned"])
        self.boundary.load("explore.task", state)
