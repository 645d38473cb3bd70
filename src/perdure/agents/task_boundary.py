"""When a new task begins: the one rule that learners and strategies share."""

from __future__ import annotations

import numpy as np

from perdure.types import Array, Context, State


class TaskBoundary:
    """Watches the boundaries that an agent is told of, and says which of them begin a new task.

    A task begins when a learn block brings other tasks than those learned last, so that evaluations
    in the middle of a task are no boundary; it ends when the next begins. Adapt blocks are no
    boundary either: what they teach is taken back. Where task identity is hidden, every learn block
    counts as a task of its own, since it may be one.
    """

    def __init__(self) -> None:
        self.current = ""
        """Ids of the tasks that are being learned, a line each; empty before the first."""
        self.count = 0
        """How many tasks have begun; one that comes again counts again."""

    @property
    def parallel_tasks(self) -> int:
        """How many tasks are being learned side by side."""
        return self.current.count("\n") + 1

    def enter(self, ctx: Context) -> bool:
        """Whether a new task begins at this boundary."""
        if ctx.kind != "learn" or not ctx.learning or ctx.event not in ("task", "variant"):
            return False
        tasks = "\n".join(sorted(set(ctx.tasks))) if ctx.tasks else f"block {ctx.block}"
        if tasks == self.current:
            return False
        self.current = tasks
        self.count += 1
        return True

    def state(self, prefix: str) -> dict[str, Array]:
        """The tasks being learned, and how many have begun."""
        current = np.frombuffer(self.current.encode(), np.uint8).copy()
        return {f"{prefix}.current": current, f"{prefix}.count": np.array(self.count)}

    def load(self, prefix: str, state: State) -> None:
        """Take over what :meth:`state` gave."""
        self.current = np.asarray(state[f"{prefix}.current"], np.uint8).tobytes().decode()
        self.count = int(state[f"{prefix}.count"])
