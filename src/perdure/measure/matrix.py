"""The evaluation matrix: score on task j at each evaluation block i, and what was learned before."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from perdure.store.history import History
from perdure.types import Array


@dataclass(frozen=True)
class Matrix:
    """One lifetime's evaluations."""

    tasks: tuple[str, ...]
    """Columns: task ids in order of first appearance."""
    blocks: tuple[int, ...]
    """For each row: the block it was evaluated in."""
    learned: tuple[tuple[str, ...], ...]
    """For each row: the task ids learned before it, in order, with repeats."""
    values: Array
    """Mean score, NaN where a block did not evaluate a task."""

    def initial(self) -> float:
        """Mean score before any learning; NaN without such an evaluation."""
        rows = [i for i, past in enumerate(self.learned) if not past]
        return float(np.nanmean(self.values[rows[0]])) if rows else nan

    def _after_own(self) -> list[tuple[int, int]]:
        """For each learned task: (row of the first evaluation after it was last learned,
        column)."""
        out = []
        for j, task in enumerate(self.tasks):
            counts = [past.count(task) for past in self.learned]
            for i, count in enumerate(counts):
                if count and count == counts[-1] and not np.isnan(self.values[i, j]):
                    out.append((i, j))
                    break
        return out

    def acquired(self) -> float:
        """Mean score on each learned task right after it was last learned."""
        cells = self._after_own()
        return float(np.mean([self.values[c] for c in cells])) if cells else nan

    def last(self) -> dict[str, float]:
        """For each learned task: the score at the last evaluation that holds it."""
        out = {}
        for _, j in self._after_own():
            column = self.values[:, j]
            out[self.tasks[j]] = float(column[~np.isnan(column)][-1])
        return out

    def final(self) -> float:
        """Mean score on the learned tasks at the end of life."""
        scores = list(self.last().values())
        return float(np.mean(scores)) if scores else nan

    def forgetting(self) -> float:
        """How much of what was acquired is gone at the end: acquired − final."""
        return self.acquired() - self.final()


def evaluation_matrix(history: History, measure: str | None = None) -> Matrix:
    """The matrix of one lifetime, after deployment; adapt blocks leave no trace in it."""
    values = history.values(measure)
    scored = ~history.learning & ~history.adapt & ~history.before & ~np.isnan(values)
    columns = len(history.tasks)
    blocks, row = np.unique(history.block[scored], return_inverse=True)
    cell = row * columns + history.task[scored]
    counts = np.bincount(cell, minlength=len(blocks) * columns)
    sums = np.bincount(cell, values[scored], minlength=len(blocks) * columns)
    means = np.divide(sums, counts, out=np.full(len(sums), nan), where=counts > 0)
    taught = lessons(history)
    learned = tuple(tuple(t for b, t in taught if b < block) for block in blocks)
    return Matrix(
        history.tasks, tuple(int(b) for b in blocks), learned, means.reshape(len(blocks), columns)
    )


def lessons(history: History) -> list[tuple[int, str]]:
    """Each block and task that was learned from after deployment, in order of first appearance."""
    mask = history.learning & ~history.adapt & ~history.before
    key = history.block[mask].astype(np.int64) * len(history.tasks) + history.task[mask]
    _, first = np.unique(key, return_index=True)
    order = np.flatnonzero(mask)[np.sort(first)]
    return [(int(history.block[i]), history.tasks[history.task[i]]) for i in order]
