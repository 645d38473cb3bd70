"""What every table leads with: final performance, forgetting and, where rows tell it, success.

They are of no benchmark: whatever the suite, they mean the same. A task's last evaluation counts. Where
tasks were learned, it is they that are asked for; where none was, as when agents are only evaluated, all
that were evaluated, and an interval is then over episodes, which nothing but the agent has in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan

import numpy as np

from perdure.arrays import mean
from perdure.measure.benchmark import Benchmark
from perdure.measure.l2m import CORE
from perdure.measure.metric import (
    MEASURE_BOUNDS,
    LifetimeData,
    Metric,
    Score,
    mean_over_tasks,
    metric,
)
from perdure.measure.stats import Bounds
from perdure.names import split_task_id


@metric(
    "summary.final", better="higher", needs=("evaluations",), title="Final performance",
    bounds="measure",
)  # fmt: skip
def final(life: LifetimeData) -> Score:
    """Mean score on the learned tasks at their last evaluation; on all tasks if none was learned.

    (1/N) Σ_j R[end, j], with R[end, j] the score on task j when it was evaluated last.
    """
    if life.history.learned_tasks:
        return mean_over_tasks(
            life.matrix.last(), "no learned task was evaluated after its learning"
        )
    if life.history.adapt.any():
        return Score(nan, reason="tasks were adapted to: meta.after is their performance")
    values = life.matrix.values
    last = {
        t: column[~np.isnan(column)] for t, column in zip(life.matrix.tasks, values.T, strict=True)
    }
    score = mean_over_tasks({t: float(v[-1]) for t, v in last.items() if len(v)})
    if life.measure != "success":
        return score
    return Score(score.value, score.per_task, trials=success(life).trials)


@metric(
    "summary.forgetting", better="lower", needs=("final",), title="Forgetting",
    bounds="difference", keeping=True,
)  # fmt: skip
def forgetting(life: LifetimeData) -> Score:
    """Score right after learning minus that at the end, over the tasks that could be forgotten.

    (1/|F|) Σ_{j∈F} (R[j, j] − R[end, j]), with R[j, j] the first evaluation after task j was last
    learned. F holds the tasks that were evaluated again after others had been learned, and that were
    learned at all: above what they were before any learning, by more than a tenth of the scale where
    the measure has one, or in its upper half. The task that was learned last is not among them.
    """
    if len(life.history.learned_tasks) < 2:
        return Score(nan, reason="one task was learned: nothing came after it")
    exposed = life.matrix.could_be_forgotten()
    if not exposed:
        return Score(nan, reason="no task was evaluated again after others had been learned")
    gone, last = life.matrix.acquired_by_task(), life.matrix.last()
    never = never_learned(gone, life.matrix.initial_by_task(), MEASURE_BOUNDS.get(life.measure))
    lost = {task: gone[task] - last[task] for task in exposed if task not in never}
    if not lost:
        return Score(nan, reason="nothing was learned, so that nothing could be forgotten")
    aside = [task for task in exposed if task in never]
    notes = (f"without {', '.join(aside)}: never learned",) if aside else ()
    return Score(mean(list(lost.values())), lost, notes=notes)


LEAST = 0.1
"""The share of its scale by which a task's score must rise for the task to count as learned."""


def never_learned(
    learned: Mapping[str, float], before: Mapping[str, float], bounds: Bounds | None
) -> set[str]:
    """The tasks whose score did not rise above what it was before any learning: by a tenth of the scale,
    or at all where the measure has none. Without an evaluation before, the lower bound stands for it.
    A score in the upper half of the scale can be lost, however it came there."""
    low, high = bounds or (nan, nan)
    room = LEAST * (high - low) if bounds else 0.0
    return {
        t for t, v in learned.items()
        if v - before.get(t, low) <= room and not v > (low + high) / 2
    }  # fmt: skip


@metric("summary.success", better="higher", needs=("success",), title="Success", bounds=(0.0, 1.0))
def success(life: LifetimeData) -> Score:
    """Share of episodes that succeed at the last evaluation of each learned task; of all tasks if
    no learned one was evaluated.

    (1/N) Σ_j s_j, where s_j is the share for task j. Evaluations after adapting count.
    """
    return final_rates(life, "success", learned_first=True)


def final_rates(life: LifetimeData, column: str, learned_first: bool = False) -> Score:
    """Means of a column over the episodes of each task's last evaluation."""
    history = life.history
    if column not in history.columns:
        return Score(nan, reason=f"the rows hold no {column}")
    values = history.values(column)
    scored = ~history.learning & ~history.before & history.complete & ~np.isnan(values)
    if not scored.any():
        return Score(nan, reason=f"no task was evaluated on {column}")
    learned = history.block[history.learning & ~history.adapt & ~history.before]
    task, block, adapt, values = (
        x[scored] for x in (history.task, history.block, history.adapt, values)
    )
    codes = np.unique(task)
    mine = [code for code in codes if history.tasks[code] in history.learned_tasks]
    rates, trials, adapted, stale = {}, [], [], []
    for code in mine if learned_first and mine else codes:
        name, own = history.tasks[code], task == code
        last = own & (block == block[own][-1])
        rates[name] = float(values[last].mean())
        trials.append((rates[name], int(last.sum())))
        if adapt[last][0]:
            adapted.append(name)
        if len(learned) and block[last][0] < learned[-1]:
            stale.append(name)
    score = mean_over_tasks(rates)
    notes = list(score.notes)
    if adapted:
        notes.append(f"after adapting: {', '.join(adapted)}")
    if stale:
        notes.append(f"not evaluated after the last learning: {', '.join(stale)}")
    # What was learned is one for all episodes of a lifetime: then they are no sample of their own.
    fixed = not history.learning.any()
    return Score(
        score.value, score.per_task, notes=tuple(notes), trials=tuple(trials) if fixed else ()
    )


metrics = (final, forgetting, success)


def benchmarks_of(known: Iterable[Metric], tasks: Iterable[str]) -> list[Benchmark]:
    """The benchmarks that some of the tasks belong to, in the tasks' order."""
    titled = {m.benchmark.title: m.benchmark for m in known if m.benchmark}
    suites = dict.fromkeys(filter(None, (split_task_id(t)[0] for t in tasks)))
    return [b for s in suites for b in titled.values() if b.suite == s]


ADAPTED = ("meta.after", "meta.before")
"""What leads where tasks are adapted to, and no benchmark of theirs says what does."""


ONLINE = ("online.steps", "online.speedup")
"""What leads before that where tasks came one by one, each until it was mastered."""


def headline(
    known: Sequence[Metric], tasks: Iterable[str], adapted: bool = False, online: bool = False
) -> list[Metric]:
    """What a first table shows of these metrics: those above, then what the tasks' own benchmarks lead
    with, then L2M's core. Where tasks were adapted to, first what looks there: nothing else does; and
    before it, of online meta-learning, how long each task took."""
    found = benchmarks_of(known, tasks)
    own = (n for b in found for n in b.leads)
    by_name = {m.name: m for m in known}
    first = ([b.adapted for b in found if b.adapted] or ADAPTED) if adapted else ()
    first = [*(ONLINE if online else ()), *first]
    wanted = dict.fromkeys([*first, *(m.name for m in metrics), *own, *CORE])
    return [by_name[n] for n in wanted if n in by_name]


def distinct(names: Iterable[str], scores: Sequence[Mapping[str, Score]]) -> list[str]:
    """Those of some metrics that have a value, without those that say the same as one before them in
    every lifetime, such as the success that a benchmark calls its own. L2M's core stays whole."""
    out: list[str] = []
    said: set[tuple[float | None, ...]] = set()
    for name in with_a_value(names, scores):
        values = (s[name].value if name in s else nan for s in scores)
        key = tuple(None if isnan(v) else round(v, 12) for v in values)
        if key not in said or name in CORE:
            out.append(name)
        said.add(key)
    return out


def with_a_value(names: Iterable[str], scores: Sequence[Mapping[str, Score]]) -> list[str]:
    """Those of some metrics that at least one lifetime has a value of."""
    return [n for n in names if any(n in s and not isnan(s[n].value) for s in scores)]
