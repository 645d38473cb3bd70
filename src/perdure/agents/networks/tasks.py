"""Task ids as numbers, for learners that keep something for each task."""

from __future__ import annotations

import numpy as np

from perdure.agents.task_boundary import TaskBoundary
from perdure.types import Array, Context, Setup, State


class Tasks:
    """Numbers of the tasks of a life; where identity is hidden all are one task, number 0."""

    def __init__(self, setup: Setup) -> None:
        self.boundary = TaskBoundary()
        self.numbers = {name: k for k, name in enumerate(setup.tasks)} or {"": 0}
        # One context serves many steps, so its answer is kept.
        self._asked: Context | None = None
        self._answer: Array = np.empty(0, np.int64)
        self._beside = 1

    def __len__(self) -> int:
        return len(self.numbers)

    def of(self, ctx: Context) -> Array:
        """The number of each row's task."""
        if ctx is not self._asked:
            hidden = ctx.tasks is None
            found = [0] * len(ctx.slots) if hidden else [self.numbers[t] for t in ctx.tasks or ()]
            self._asked, self._answer = ctx, np.array(found, np.int64)
            self._beside = max(1, len(set(found)))
        return self._answer

    def enter(self, ctx: Context) -> bool:
        """Whether a new task begins here."""
        return self.boundary.enter(ctx)

    def state(self) -> dict[str, Array]:
        """The tasks being learned."""
        return self.boundary.state("task")

    def load(self, state: State) -> None:
        """Take over what :meth:`state` gave."""
        self.boundary.load("task", state)

    def parallel_tasks(self, ctx: Context) -> int:
        """How many tasks run side by side."""
        self.of(ctx)
        return self._beside
