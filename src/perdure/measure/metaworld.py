"""Meta-World (Yu et al., 2019): success rates at the end of life.

A task's rate is the mean over the episodes of its last evaluation. An evaluation within an adapt
block counts as one: that is how ML1, ML10 and ML45 measure, after adapting to a test task. So where
a task is evaluated both as the agent is and after adapting, the later of the two counts. Episodes
that the budget cut off do not.

An episode succeeds if the goal was reached at any step, or, more strictly, still is at the last.
"""

from __future__ import annotations

from math import nan

import numpy as np

from perdure.measure.benchmark import Benchmark
from perdure.measure.metric import LifetimeData, Score, mean_over_tasks, metric


def _final_rates(life: LifetimeData, column: str) -> Score:
    history = life.history
    if column not in history.columns:
        return Score(nan, reason=f"the rows hold no {column}")
    values = history.values(column)
    scored = ~history.learning & ~history.before & history.complete & ~np.isnan(values)
    if not scored.any():
        return Score(nan, reason=f"no task was evaluated on {column}")
    learned = history.block[history.learning & ~history.adapt & ~history.before]
    rates, adapted, stale = {}, [], []
    task, block, adapt, values = (
        x[scored] for x in (history.task, history.block, history.adapt, values)
    )
    for code in np.unique(task):
        name, own = history.tasks[code], task == code
        last = own & (block == block[own][-1])
        rates[name] = float(values[last].mean())
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
    return Score(score.value, score.per_task, notes=tuple(notes))


@metric("metaworld.success", better="higher", needs=("success",), title="Success")
def success(life: LifetimeData) -> Score:
    """Share of episodes that succeed at any step, at the last evaluation of each task.

    (1/N) Σ_j s_j, where s_j is the share for task j. This is what the benchmark's tables report.
    """
    return _final_rates(life, "success")


@metric("metaworld.success_end", better="higher")
def success_end(life: LifetimeData) -> Score:
    """Share of episodes that succeed at their last step, at the last evaluation of each task.

    (1/N) Σ_j e_j, where e_j is the share for task j; never above ``metaworld.success``.
    """
    return _final_rates(life, "success_end")


BENCHMARK = Benchmark(
    "metaworld",
    "Meta-World: success by task",
    leads=("metaworld.success",),
    picture="bars",
    about=(
        "Share of episodes that succeed, at each task’s last evaluation; mean over lifetimes and 95 % "
        "interval, with an arrow where it goes on beyond what success can be."
    ),
    bounds=(0.0, 1.0),
    adapted="metaworld.success",
)
metrics = BENCHMARK.of(success, success_end)
