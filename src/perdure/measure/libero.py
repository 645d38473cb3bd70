"""LIBERO (Liu et al., 2023): forward transfer, negative backward transfer, area under the curve.

K tasks are learned in sequence, one a stage. The curve of task k has one point for each checkpoint
at which its own stage was evaluated on it: first the agent as it came into the stage (the paper's
epoch 0: the last evaluation before the stage, if there was one since the stage before), then the
first evaluation after each learn block of the stage. The paper has 11 points a task; here their
number is the curriculum's choice, and every point weighs the same.

From the first best point on, the curve stays at its best, c[k, k]: the paper keeps the best
checkpoint and lets the agent go on from there. c[i, k] for a later stage i is the train-test
matrix's cell. An agent that does not go back to its best checkpoint is measured as it is, so what
it lost within a stage counts as lost in the stages after.
"""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan

import numpy as np

from perdure.arrays import Array
from perdure.measure.benchmark import Benchmark
from perdure.measure.metric import LifetimeData, Score, mean_over_tasks, metric

SHORT = 3
"""Curves with fewer points hardly show the speed of learning."""


def kept_best(curve: Array) -> Array:
    """The curve, flat from its first best point on."""
    best = int(np.argmax(curve))
    return np.concatenate([curve[:best], np.full(len(curve) - best, curve[best])])


def _curves(life: LifetimeData) -> dict[str, Array]:
    """For each task its curve, flat from its best on; empty where its stage was not evaluated."""
    matrix = life.matrix
    out = {}
    for k, stage in enumerate(matrix.train_test.stages):
        (task,) = stage.tasks
        points = list(matrix.curve(stage.blocks, task).values())
        at_start = matrix.train_test.at(k, task)
        if points and not isnan(at_start):
            points = [at_start, *points]
        out[task] = kept_best(np.array(points)) if points else np.zeros(0)
    return out


def _later(life: LifetimeData) -> dict[str, Array]:
    """For each task its scores after each stage that follows its own."""
    table = life.matrix.train_test
    return {t: table.square[k + 1 :, k] for k, t in enumerate(table.tasks[: len(table.stages)])}


def _never(curves: dict[str, Array]) -> str:
    """The first task whose stage was not evaluated on it, in words."""
    missing = next((task for task, curve in curves.items() if not len(curve)), "")
    return f"{missing} was not evaluated in its own stage" if missing else ""


def _missing_later(life: LifetimeData) -> str:
    table = life.matrix.train_test
    n = len(table.stages)
    return table.hole((i, table.tasks[k]) for k in range(n) for i in range(k + 2, n + 1))


def _with_note(score: Score, curves: dict[str, Array]) -> Score:
    short = [task for task, curve in curves.items() if 0 < len(curve) < SHORT]
    if not short:
        return score
    note = (
        f"{len(short)} of {len(curves)} curves have fewer than {SHORT} points and hardly show the "
        "speed of learning: evaluate each task several times within its stage"
    )
    return replace(score, notes=(*score.notes, note))


@metric(
    "libero.fwt", better="higher", needs=("learning", "evaluations"), title="FWT",
    bounds="measure",
)  # fmt: skip
def fwt(life: LifetimeData) -> Score:
    """How quickly new tasks are learned: the mean of each task's curve in its own stage.

    FWT = (1/K) Σ_k FWT_k, and FWT_k = mean over checkpoints e of c[k, k, e], flat from the best on.
    With one evaluation a stage, and none before it, FWT_k is that evaluation.
    """
    if life.matrix.train_test.irregular:
        return Score(nan, reason=life.matrix.train_test.irregular)
    curves = _curves(life)
    values = {task: float(curve.mean()) if len(curve) else nan for task, curve in curves.items()}
    return _with_note(mean_over_tasks(values, _never(curves)), curves)


@metric(
    "libero.nbt", better="lower", needs=("learning", "evaluations"), title="NBT",
    bounds="difference", keeping=True,
)  # fmt: skip
def nbt(life: LifetimeData) -> Score:
    """How much of the best score on a task is lost in later stages; negative for a gain.

    NBT = (1/(K − 1)) Σ_{k<K} NBT_k, and NBT_k = mean over i > k of c[k, k] − c[i, k]. No stage
    follows the last task: its term would be 0/0 and is left out.
    """
    if life.matrix.train_test.irregular:
        return Score(nan, reason=life.matrix.train_test.irregular)
    curves, later = _curves(life), _later(life)
    if len(curves) == 1:
        return Score(nan, reason="one task was learned: nothing came after it")
    earlier = dict(list(curves.items())[:-1])
    values = {
        task: float((curve[-1] - later[task]).mean()) if len(curve) else nan
        for task, curve in earlier.items()
    }
    return mean_over_tasks(values, _never(earlier) or _missing_later(life))


@metric(
    "libero.auc", better="higher", needs=("learning", "evaluations"), title="AUC",
    bounds="measure",
)  # fmt: skip
def auc(life: LifetimeData) -> Score:
    """Mean score on a task from its own stage to the end of life.

    AUC = (1/K) Σ_k AUC_k, and AUC_k = (FWT_k + Σ_{i>k} c[i, k]) / (K − k + 1).
    """
    if life.matrix.train_test.irregular:
        return Score(nan, reason=life.matrix.train_test.irregular)
    curves, later = _curves(life), _later(life)
    values = {
        task: float((curve.mean() + later[task].sum()) / (1 + len(later[task])))
        if len(curve)
        else nan
        for task, curve in curves.items()
    }
    score = mean_over_tasks(values, _never(curves) or _missing_later(life))
    return _with_note(score, curves)


BENCHMARK = Benchmark(
    "libero",
    "LIBERO",
    leads=("libero.fwt", "libero.nbt", "libero.auc"),
    about="FWT and AUC ↑, NBT ↓; mean ± standard error over lifetimes.",
)
metrics = BENCHMARK.of(fwt, nbt, auc)
