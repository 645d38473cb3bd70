"""Online meta-learning (Finn et al., 2019): tasks come one by one, and each should take less than the
last. For curricula that go on to the next task when one is mastered."""

from __future__ import annotations

from math import nan

import numpy as np

from perdure.arrays import mean
from perdure.measure.metric import LifetimeData, Moment, Score, metric
from perdure.store.history import History


def steps_by_task(history: History) -> dict[str, float]:
    """The steps that the agent learned or adapted in, by task, in the order they came."""
    mine = history.learning & ~history.before
    codes, first = np.unique(history.task[mine], return_index=True)
    return {
        history.tasks[c]: float(history.steps[mine & (history.task == c)].sum())
        for c in codes[np.argsort(first)]
    }


def _why_not(history: History) -> str:
    """Why tasks did not come one by one; empty if they did."""
    mine = history.learning & ~history.before
    task = history.task[mine]
    turns = task[np.append(True, task[1:] != task[:-1])] if len(task) else task
    different = len(set(turns.tolist()))
    if different < 2:
        return "fewer than two tasks were learned"
    if len(turns) > different:
        code = next(c for c in turns if (turns == c).sum() > 1)
        return f"{history.tasks[code]} came more than once: defined for tasks that come one by one"
    return ""


@metric("online.steps", better="lower", title="Steps a task")
def steps(life: LifetimeData) -> Score:
    """Steps until a task is mastered or its budget is used up: the mean over tasks.

    (1/T) Σ_t n_t, where n_t are the steps in which the agent learned the task that came t-th, or
    adapted to it.
    """
    h = life.history
    if reason := _why_not(h):
        return Score(nan, reason=reason)
    per = steps_by_task(h)
    first = {t: int(h.block[h.learning & (h.task == h.tasks.index(t))][0]) for t in per}
    moments = tuple(Moment(first[t], t, value) for t, value in per.items())
    return Score(mean(list(per.values())), per, over_time=moments)


@metric("online.speedup", better="higher", title="Speed-up")
def speedup(life: LifetimeData) -> Score:
    """How many times fewer steps the later half of the tasks took than the earlier half.

    Σ n_t over the first ⌊T/2⌋ tasks / Σ n_t over the last ⌊T/2⌋: 1 is no learning to learn, and also what comes
    out where no task is mastered, which ``meta.after`` tells. It depends on the order, so tasks should come in another one in each lifetime.
    """
    if reason := _why_not(life.history):
        return Score(nan, reason=reason)
    counts = np.array(list(steps_by_task(life.history).values()))
    half = len(counts) // 2
    return Score(float(counts[:half].sum() / counts[-half:].sum()))


metrics = (steps, speedup)
