"""Epsilon-greedy choice, with a schedule over learned steps that can restart at a new task."""

from __future__ import annotations

import numpy as np

from perdure.agents.task_boundary import TaskBoundary
from perdure.types import Array, Context, State


class EpsilonGreedy:
    """Random actions at first, then ever more greedy ones: epsilon, the part of steps with a random
    action, falls from 1 to ``final`` in a straight line over ``steps`` learned steps, and stays there;
    with ``restart`` it starts again at every new task (see :class:`TaskBoundary`).

    A random action is done ``repeat`` times in a row on average, to the end of the episode at most
    (Dabney et al., 2021, who draw the times from another distribution): actions that change at every
    step cancel out where only a long push leads anywhere.
    """

    def __init__(self, final: float, steps: int, restart: bool, repeat: float = 1) -> None:
        self.final, self.steps, self.restart, self.repeat = final, steps, restart, repeat
        self.learned = 0
        self.held: Array = np.zeros(0, np.int64)
        """The random action that each slot is doing, or -1."""
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

    def choose(self, values: Array, rng: np.random.Generator, ctx: Context) -> Array:
        """The best action of each row of values (the lowest number among equals), or in learning
        sometimes any action."""
        greedy: Array = values.argmax(axis=1)
        if not ctx.learning:
            return greedy
        n, actions = values.shape
        # Both draws are made whatever epsilon is, so that its value never shifts the stream.
        drawn, anything = rng.random(n), rng.integers(actions, size=n)
        if self.repeat == 1:
            return np.where(drawn < self.epsilon, anything, greedy)
        if len(self.held) != len(ctx.episode_start):
            self.held = np.full(len(ctx.episode_start), -1)
        held = np.where(ctx.episode_start[ctx.slots], -1, self.held[ctx.slots])
        # To go on has the same probability at each step, so that nothing has to be counted.
        ends = np.where(held >= 0, 1 / self.repeat, 1.0)
        # So seldom must a row of random actions begin for epsilon to be their part of all steps.
        begin = self.epsilon / (self.epsilon + (1 - self.epsilon) * self.repeat)
        begun = np.where(drawn < ends * begin, anything, -1)
        held = np.where(drawn < ends, begun, held)
        self.held[ctx.slots] = held
        return np.where(held >= 0, held, greedy)

    def state(self) -> dict[str, Array]:
        """The place in the schedule, the task it belongs to, and what is being repeated."""
        return {
            "explore.learned": np.array(self.learned),
            "explore.held": self.held.copy(),
            **self.boundary.state("explore.task"),
        }

    def load(self, state: State) -> None:
        """Go on from a saved place."""
        self.learned = int(state["explore.learned"])
        self.held = np.array(state["explore.held"])
        self.boundary.load("explore.task", state)
