"""The evaluation matrix: score on task j after each evaluation block i."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from perdure.types import Array

PREFERRED = ("success", "accuracy", "return")


@dataclass(frozen=True)
class Matrix:
    """One lifetime's evaluations."""

    tasks: tuple[str, ...]
    """Columns: task ids in order of first appearance."""
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

    def final(self) -> float:
        """Mean score on the learned tasks at the last evaluation."""
        columns = [j for _, j in self._after_own()]
        return float(np.nanmean(self.values[-1, columns])) if columns else nan

    def forgetting(self) -> float:
        """How much of what was acquired is gone at the end: acquired − final."""
        return self.acquired() - self.final()


def default_measure(table: pa.Table) -> str:
    """The first of success, accuracy and return that the rows have."""
    for name in PREFERRED:
        if table.column(name).null_count < len(table):
            return name
    return "return"


def task_ids(table: pa.Table) -> list[str]:
    """The task id of each row."""
    pairs = zip(table.column("task").to_pylist(), table.column("variant").to_pylist(), strict=True)
    return [f"{t}@{v}" if v else t for t, v in pairs]


def evaluation_matrix(table: pa.Table, measure: str | None = None) -> Matrix:
    """The matrix of one lifetime's rows."""
    measure = measure or default_measure(table)
    table = table.filter(pc.not_equal(table.column("kind"), "adapt"))
    ids = task_ids(table)
    blocks = table.column("block").to_pylist()
    learning = table.column("learning").to_pylist()
    scores = table.column(measure).to_pylist()
    tasks: dict[str, int] = {}
    sums: dict[tuple[int, str], list[float]] = {}
    taught: dict[int, dict[str, None]] = {}
    for block, task, learns, score in zip(blocks, ids, learning, scores, strict=True):
        tasks.setdefault(task, len(tasks))
        if learns:
            taught.setdefault(block, {})[task] = None
        elif score is not None:
            cell = sums.setdefault((block, task), [0.0, 0])
            cell[0] += score
            cell[1] += 1
    rows = sorted({b for b, _ in sums})
    values = np.full((len(rows), len(tasks)), nan)
    for (block, task), (total, count) in sums.items():
        values[rows.index(block), tasks[task]] = total / count
    learned = tuple(tuple(t for b in sorted(taught) if b < row for t in taught[b]) for row in rows)
    return Matrix(tuple(tasks), learned, values)


def by_lifetime(table: pa.Table) -> dict[tuple[str, int], pa.Table]:
    """The rows of each (agent, lifetime) apart."""
    out: dict[tuple[str, int], pa.Table] = {}
    keys = table.group_by(["agent", "lifetime"]).aggregate([]).to_pylist()
    for key in sorted(keys, key=lambda k: (k["agent"], k["lifetime"])):
        mask = pc.and_(
            pc.equal(table.column("agent"), key["agent"]),
            pc.equal(table.column("lifetime"), key["lifetime"]),
        )
        out[key["agent"], key["lifetime"]] = table.filter(mask)
    return out
