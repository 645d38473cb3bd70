"""Continual World (Wołczyk et al., 2021): average performance, forgetting, forward transfer.

p_i(t) is the score on task i at time t. Where the paper averages the last five evaluations for a
value at the end of a stage or of life, this takes the last one alone: how many episodes stand
behind it is the curriculum's choice.

A task that is learned in several stages (CW20 is CW10 twice) counts once, with the mean over its
stages. Where all tasks have equally many, that is the paper's mean over stages. The value of each
stage is in ``over_time``, at the last block of the stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, nan

import numpy as np

from perdure.arrays import Array, mean
from perdure.measure.matrix import Stage
from perdure.measure.metric import LifetimeData, Moment, Score, mean_over_tasks, metric

PARTS = 20
"""A curve of learning experiences is averaged within this many equal spans of steps."""
ROOM = 0.05
"""Reference curves with less room above them leave forward transfer undefined."""


def _over_stages(found: Sequence[tuple[Moment, str]]) -> Score:
    """The mean over tasks of the mean over a task's stages, from (value, why it is undefined)."""
    moments = tuple(moment for moment, why in found if not why)
    per_task = {}
    for task in dict.fromkeys(moment.task for moment, _ in found):
        values = [m.value for m in moments if m.task == task]
        per_task[task] = mean(values) if values else nan
    holes = tuple(dict.fromkeys(why for _, why in found if why))
    if not moments:
        return Score(nan, per_task, reason="; ".join(holes))
    value = mean([v for v in per_task.values() if not isnan(v)])
    return Score(value, per_task, over_time=moments, notes=tuple(f"left out: {h}" for h in holes))


@metric(
    "cw.performance", better="higher", needs=("learning", "evaluations"), title="Final performance (CW)",
    bounds="measure",
)  # fmt: skip
def performance(life: LifetimeData) -> Score:
    """Mean score on the learned tasks at the end of life.

    P = (1/N) Σ_i p_i(end). Defined for tasks learned together as well.
    """
    table, tasks = life.matrix.train_test, life.history.learned_tasks
    values = {task: table.at(-1, task) for task in tasks}
    return mean_over_tasks(values, table.hole((-1, task) for task in tasks))


@metric(
    "cw.forgetting", better="lower", needs=("learning", "evaluations"), title="Forgetting (CW)",
    bounds="difference", keeping=True,
)  # fmt: skip
def forgetting(life: LifetimeData) -> Score:
    """How much of the score at the end of a task's own stage is gone at the end of life.

    F = (1/N) Σ_i F_i, and F_i = p_i(end of its stage) − p_i(end). The last task is counted, with
    F_N = 0. Defined for tasks learned together as well.
    """
    table = life.matrix.train_test
    found = []
    for k, stage in enumerate(table.stages, 1):
        for task in stage.tasks:
            lost = table.at(k, task) - table.at(-1, task)
            why = table.hole([(k, task), (-1, task)])
            found.append((Moment(stage.blocks[-1], task, lost), why))
    return _over_stages(found)


@metric("cw.transfer", better="higher", needs=("learning", "experts"))
def transfer(life: LifetimeData) -> Score:
    """How much sooner a task is learned than by a single-task expert; negative for later.

    FT = (1/N) Σ_i FT_i, and FT_i = (A_i − B_i) / (1 − B_i). A_i is the mean of p_i over the task's
    stage. B_i is that of the reference curve: the mean over experts of the mean of p over their
    first steps, as many as the stage has (or all, if they have fewer). FT_i is linear in A_i, so the
    mean over lifetimes that share their experts is the paper's ratio of means.

    The curves are evaluations after learn blocks, if the stage and every expert have at least two.
    Else they are the learning experiences themselves: averaged within 20 equal spans of steps, then
    over the spans, so that neither long episodes nor the many short ones of a skilled agent weigh
    more than their time. A curve's ceiling must be 1, so scores must lie between 0 and 1. Where
    B_i > 0.95, small differences are blown up without limit and FT_i is undefined; so it is for
    tasks learned together.
    """
    outside = _outside(life)
    if outside:
        return Score(nan, reason=outside)
    return _over_stages(list(_transfers(life)))


def _outside(life: LifetimeData) -> str:
    """Why the scores are no shares, in words; empty if all lie between 0 and 1."""
    experts = (h for hs in life.history.experts.values() for h in hs if life.measure in h.columns)
    values = np.concatenate([h.values(life.measure) for h in (life.history, *experts)])
    if np.isnan(values).all() or (np.nanmin(values) >= 0 and np.nanmax(values) <= 1):
        return ""
    low, high = np.nanmin(values), np.nanmax(values)
    return f"{life.measure} ranges from {low:g} to {high:g}: needs scores between 0 and 1"


def _transfers(life: LifetimeData) -> Iterator[tuple[Moment, str]]:
    """For each stage and task its forward transfer, and why it is undefined."""
    for k, stage in enumerate(life.matrix.train_test.stages, 1):
        for task in stage.tasks:
            value, why = nan, f"stage {k} teaches {stage} at once"
            if len(stage.tasks) == 1:
                value, why = _transfer(life, stage, task)
            yield Moment(stage.blocks[-1], task, value), why


def _transfer(life: LifetimeData, stage: Stage, task: str) -> tuple[float, str]:
    """Forward transfer in a stage of one task, and why it is undefined."""
    experts = [
        LifetimeData(h, life.measure)
        for h in life.history.experts.get(task, ())
        if life.measure in h.columns and task in h.learned_tasks
    ]
    if not experts:
        return nan, f"{task} has no single-task expert with {life.measure}"
    budget = int(life.history.steps[_lessons(life, task, stage.blocks)].sum())
    own = _areas(life, task, stage.blocks, budget)
    references = [
        _areas(e, task, [b for b, t in e.matrix.lessons if t == task], budget) for e in experts
    ]
    for area, *others in zip(own, *references, strict=True):
        if not isnan(area + sum(others)):
            reference = mean(others)
            if 1 - reference < ROOM:
                return (
                    nan,
                    f"the reference curve of {task} leaves no room: its mean is {reference:.3g}",
                )
            return (area - reference) / (1 - reference), ""
    return nan, f"{task} has no curve of {life.measure} in its stage or with an expert"


def _lessons(life: LifetimeData, task: str, blocks: Sequence[int]) -> Array:
    """Where the experiences are that a task was learned from in these blocks."""
    h = life.history
    where: Array = h.learning & ~h.adapt & ~h.before & (h.task == h.tasks.index(task))
    where &= np.isin(h.block, blocks)
    return where


def _areas(
    life: LifetimeData, task: str, blocks: Sequence[int], budget: int
) -> tuple[float, float]:
    """Mean score within the first ``budget`` steps of these blocks, once by evaluations and once by
    the learning experiences; NaN without."""
    history, where = life.history, _lessons(life, task, blocks)
    spent, block = np.cumsum(history.steps[where]), history.block[where]
    points = life.matrix.curve(blocks, task)
    evaluated = [v for b, v in points.items() if spent[block == b][-1] <= budget]
    by_evaluations = mean(evaluated) if len(evaluated) > 1 else nan

    values = history.values(life.measure)[where]
    scored = history.complete[where] & ~np.isnan(values) & (spent <= budget)
    total = min(budget, int(spent[-1]))
    if total == 0 or not scored.any():
        return by_evaluations, nan
    part = np.maximum(-(-spent[scored] * PARTS // total) - 1, 0)
    counts = np.bincount(part)
    means = np.bincount(part, values[scored])[counts > 0] / counts[counts > 0]
    return by_evaluations, float(means.mean())


metrics = (performance, forgetting, transfer)
