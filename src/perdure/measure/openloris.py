"""OpenLORIS-Object (She et al., 2020): plain averages over parts of the train-test matrix.

R[i, j] is the score on task j after stage i; N tasks are learned in sequence, one a stage, and all
are evaluated after each. Nothing is subtracted, so these are levels, not differences: with naive
learning BWT is low where ``gem.bwt`` is negative. Every cell of its part of R weighs the same, so a
missing cell leaves a metric undefined.
"""

from __future__ import annotations

from math import nan

import numpy as np

from perdure.arrays import Array
from perdure.measure.benchmark import Benchmark
from perdure.measure.metric import LifetimeData, Score, metric


def _mean_of(life: LifetimeData, part: Array, empty: str = "") -> Score:
    """The mean of R where ``part`` is true; for each task that of its column."""
    table = life.matrix.train_test
    if not part.any():
        return Score(nan, reason=empty)
    hole = table.hole((int(i) + 1, table.tasks[j]) for i, j in np.argwhere(part))
    if hole:
        return Score(nan, reason=f"{hole}: the average takes every cell")
    columns = np.flatnonzero(part.any(axis=0))
    per_task = {table.tasks[j]: float(table.square[part[:, j], j].mean()) for j in columns}
    return Score(float(table.square[part].mean()), per_task)


def _grid(life: LifetimeData) -> tuple[Array, str]:
    """All cells of R, and why there is no such R; then none."""
    table = life.matrix.train_test
    n = 0 if table.irregular else len(table.stages)
    return np.ones((n, n), bool), table.irregular


@metric(
    "openloris.accuracy", better="higher", needs=("learning", "evaluations"), title="Accuracy",
    bounds="measure",
)  # fmt: skip
def accuracy(life: LifetimeData) -> Score:
    """Mean score on the tasks learned so far, over all stages.

    Accuracy = Σ_{i≥j} R[i, j] / (N(N + 1)/2): the lower triangle with its diagonal.
    """
    grid, why = _grid(life)
    return _mean_of(life, np.tril(grid), why)


@metric(
    "openloris.bwt", better="higher", needs=("learning", "evaluations"), title="BWT",
    bounds="measure",
)  # fmt: skip
def bwt(life: LifetimeData) -> Score:
    """Mean score on tasks of earlier stages, over all stages.

    BWT = Σ_{i>j} R[i, j] / (N(N − 1)/2): the lower triangle without its diagonal.
    """
    grid, why = _grid(life)
    return _mean_of(life, np.tril(grid, -1), why or "one task was learned: nothing came after it")


@metric(
    "openloris.fwt", better="higher", needs=("learning", "evaluations"), title="FWT",
    bounds="measure",
)  # fmt: skip
def fwt(life: LifetimeData) -> Score:
    """Mean score on tasks of later stages, over all stages.

    FWT = Σ_{i<j} R[i, j] / (N(N − 1)/2): the upper triangle without its diagonal.
    """
    grid, why = _grid(life)
    return _mean_of(life, np.triu(grid, 1), why or "one task was learned: nothing came before it")


@metric(
    "openloris.overall",
    better="higher",
    needs=("learning", "evaluations"),
    title="Over-all accuracy",
    bounds="measure",
)
def overall(life: LifetimeData) -> Score:
    """Mean score on all tasks, over all stages.

    Over-all = Σ_{i,j} R[i, j] / N² = ((N + 1) Accuracy + (N − 1) FWT) / 2N.
    """
    grid, why = _grid(life)
    return _mean_of(life, grid, why)


BENCHMARK = Benchmark(
    "openloris",
    "OpenLORIS-Object",
    leads=("openloris.accuracy", "openloris.bwt", "openloris.fwt", "openloris.overall"),
    picture="spider",
    bounds=(0.0, 1.0),
)
metrics = BENCHMARK.of(accuracy, bwt, fwt, overall)
