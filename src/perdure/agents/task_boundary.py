"""When a new task begins: the one rule that learners and strategies share."""

from __future__ import annotations

import numpy as np

from perdure.types import Array, Context, State


class TaskBoundary:
    """Watches the boundaries that an agent is told of, and says which of them begin a new task.

    A task begins when a learn block brings other tasks than those learned last, so that evaluations
    in the middle of a task are no boundary; it ends when the next begins. Where task identity is
    hidden, every learn block counts as a task of its own, since it may be one.

    An adapt block is no boundary either: what it teaches is taken back. While one lasts, ``adapting``
    has the tasks that it has taught so far; it is part of the state, so that it goes with the block.

    Variants of one task count here as tasks of their own, for a new one may look as different as a new
    task. The loop's ``task`` events count otherwise: variants that follow each other are one visit to
    their task (``tasks_end`` in ``run/boundaries.py``), and only their ``variant`` events tell them apart.
    """

    def __init__(self) -> None:
        self.current = ""
        """Ids of the tasks that are being learned, a line each; empty before the first."""
        self.count = 0
        """How many tasks have begun; one that comes again counts again."""
        self.adapting = ""
        """Ids of the tasks learned so far in the adapt block under way, a line each; empty outside."""

    @property
    def parallel_tasks(self) -> int:
        """How many tasks are being learned side by side."""
        return self.current.count("\n") + 1

    def enter(self, ctx: Context) -> bool:
        """Whether a new task begins at this boundary."""
        if ctx.kind != "learn" or not ctx.learning or ctx.event not in ("task", "variant"):
            return False
        tasks = _named(ctx)
        if tasks == self.current:
            return False
        self.current = tasks
        self.count += 1
        return True

    def adapts(self, ctx: Context) -> bool:
        """Whether the learning of an adapt block begins at this boundary, with its first task."""
        if ctx.kind != "adapt" or not ctx.learning or ctx.event not in ("task", "variant"):
            return False
        before = self.adapting
        known = before.split("\n") if before else []
        self.adapting = "\n".join(sorted({*known, *_named(ctx).split("\n")}))
        return not before

    def state(self, prefix: str) -> dict[str, Array]:
        """The tasks being learned, and how many have begun."""
        return {
            f"{prefix}.current": _bytes(self.current),
            f"{prefix}.count": np.array(self.count),
            f"{prefix}.adapting": _bytes(self.adapting),
        }

    def load(self, prefix: str, state: State) -> None:
        """Take over what :meth:`state` gave."""
        self.current = _text(state[f"{prefix}.current"])
        self.count = int(state[f"{prefix}.count"])
        self.adapting = _text(state[f"{prefix}.adapting"])


def _named(ctx: Context) -> str:
    return "\n".join(sorted(set(ctx.tasks))) if ctx.tasks else f"block {ctx.block}"


def _bytes(text: str) -> Array:
    return np.frombuffer(text.encode(), np.uint8).copy()


def _text(saved: Array) -> str:
    return np.asarray(saved, np.uint8).tobytes().decode()
