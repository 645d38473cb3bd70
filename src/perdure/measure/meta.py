"""Meta-learning: how well test tasks are done before, during and after adaptation.

Test tasks are those of adapt blocks; where one is adapted to several times, the last time counts. What
the agent does of it before adapting is the last evaluation of the task between the learning before that
adapt block and the block itself. An adaptation episode is played with what the episodes before it
taught; what the evaluation after all of them gives is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from perdure.arrays import mean
from perdure.measure.metric import LifetimeData, Score, mean_over_tasks, metric
from perdure.names import without_variant
from perdure.store.history import History

NONE = "no task was adapted to"


@dataclass(frozen=True)
class Adaptation:
    """A test task's scores."""

    before: float
    """NaN where it was not evaluated since the last learning."""
    episodes: tuple[float, ...]
    """Of the adaptation, in order; those that the budget cut off do not count."""
    after: float


def adaptations(history: History, measure: str) -> dict[str, Adaptation]:
    """Each test task's last adaptation."""
    if measure not in history.columns or not history.adapt.any():
        return {}
    values = history.values(measure)
    scored = history.complete & ~np.isnan(values) & ~history.before
    taught = np.unique(history.block[history.learning & ~history.adapt])
    out = {}
    for code in dict.fromkeys(history.task[history.adapt & scored].tolist()):
        own = scored & (history.task == code)
        block = history.block[own & history.adapt][-1]
        here = own & (history.block == block)
        earlier = taught[taught < block]
        since = earlier[-1] if len(earlier) else -1
        asked = own & ~history.learning & ~history.adapt
        asked &= (history.block > since) & (history.block < block)
        if asked.any():
            asked &= history.block == history.block[asked][-1]
        out[history.tasks[code]] = Adaptation(
            _mean(values[asked]),
            tuple(float(v) for v in values[here & history.learning]),
            _mean(values[here & ~history.learning]),
        )
    return out


def _mean(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(values.mean()) if len(values) else nan


def over_tasks(
    found: Mapping[str, Adaptation], part: Callable[[Adaptation], float], reason: str
) -> Score:
    """The mean over test tasks of a part of their adaptations."""
    if not found:
        return Score(nan, reason=NONE)
    return mean_over_tasks({task: part(a) for task, a in found.items()}, reason)


def by_stage(found: Mapping[str, Adaptation]) -> Score:
    """The mean over tasks at each stage, and the mean over stages; and the same for each task, all its variants (goals)
    taken together."""
    if not found:
        return Score(nan, reason=NONE)
    means = _stages(list(found.values()))
    if not means:
        return Score(nan, reason="no episode of an adaptation was scored")
    groups: dict[str, list[Adaptation]] = {}
    for task, one in found.items():
        groups.setdefault(without_variant(task), []).append(one)
    tasks = {task: _stages(own) for task, own in groups.items()}
    per_task = {task: mean(list(own.values())) for task, own in tasks.items() if own}
    return Score(mean(list(means.values())), per_task, stages=means, stages_by_task=tasks)


def _stages(found: Sequence[Adaptation]) -> dict[str, float]:
    """The mean at each stage that was scored."""
    stages: dict[str, list[float]] = {"before": [a.before for a in found]}
    for k in range(max(len(a.episodes) for a in found)):
        stages[f"episode {k + 1}"] = [a.episodes[k] for a in found if k < len(a.episodes)]
    stages["after"] = [a.after for a in found]
    there = {stage: [v for v in values if not isnan(v)] for stage, values in stages.items()}
    return {stage: mean(values) for stage, values in there.items() if values}


@metric("meta.before", better="higher", title="Before adapting", bounds="measure")
def before(life: LifetimeData) -> Score:
    """Score on test tasks as the agent is, before it adapts to them.

    (1/N) Σ_j b_j, where b_j is the mean over the episodes of the evaluation.
    """
    reason = "no test task was evaluated before it was adapted to"
    return over_tasks(adaptations(life.history, life.measure), lambda a: a.before, reason)


@metric("meta.after", better="higher", title="After adapting", bounds="measure")
def after(life: LifetimeData) -> Score:
    """Score on test tasks after all adaptation episodes.

    (1/N) Σ_j a_j, where a_j is the mean over the episodes of the evaluation.
    """
    reason = "no test task was evaluated after it was adapted to"
    return over_tasks(adaptations(life.history, life.measure), lambda a: a.after, reason)


@metric("meta.gain", better="higher", title="Gain by adapting", bounds="difference")
def gain(life: LifetimeData) -> Score:
    """What adaptation brings: the score on test tasks after it less that before.

    (1/N) Σ_j (a_j − b_j), a and b as in ``meta.after`` and ``meta.before``.
    """
    reason = "no test task was evaluated both before and after it was adapted to"
    return over_tasks(adaptations(life.history, life.measure), lambda a: a.after - a.before, reason)


@metric("meta.adaptation", better="higher", title="While adapting", bounds="measure")
def adaptation(life: LifetimeData) -> Score:
    """Score on test tasks before, in each episode of and after adaptation: the mean over stages.

    (1/S) Σ_s (1/N) Σ_j v_sj: the area under the curve of adaptation, whose stages are told too.
    """
    return by_stage(adaptations(life.history, life.measure))


metrics = (before, after, gain, adaptation)
