"""Epsilon-greedy choice, with a schedule over learned steps that can restart at a new task."""

from __future__ import annotations

import numpy as np

from perdure.types import Array, Context, State


class EpsilonGreedy:
    """Random actions at first, then ever more greedy ones: epsilon falls from 1 to ``final`` in a
    straight line over ``steps`` learned steps, and stays there.

    A task is new when its id differs from that of the task learned last. Where identity is
    hidden no task is ever new.
    """

    def __init__(self, final: float, steps: int, restart: bool) -> None:
        self.final, self.steps, self.restart = final, steps, restart
        self.learned = 0
        self.task = b""

    @property
    def epsilon(self) -> float:
        """The probability of a random action in learning now."""
        if self.learned >= self.steps:
            return self.final
        return 1.0 + (self.final - 1.0) * self.learned / self.steps

    def enter(self, ctx: Context) -> bool:
        """Whether a new task begins here; restarts the schedule if it should."""
        if not (ctx.learning and ctx.tasks and ctx.event in ("task", "variant")):
            return False
        task = "\n".join(sorted(set(ctx.tasks))).encode()
        if task == self.task:
            return False
        self.task = task
        if self.restart:
            self.learned = 0
        return True

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
        task = np.frombuffer(self.task, np.uint8).copy()
        return {"explore.learned": np.array(self.learned), "explore.task": task}

    def load(self, state: State) -> None:
        """Go on from a saved place."""
        self.learned = int(state["explore.learned"])
        self.task = np.asarray(state["explore.task"], np.uint8).tobytes()
