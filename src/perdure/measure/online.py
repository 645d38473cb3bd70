"""Online meta-learning (Finn et al., 2019): tasks come one by one, and each should take less than the
last. For curricula that go on to the next task when one is mastered.

Goals that are adapted to and never learned are tests of the task that they are variants of. Each is adapted
to for itself and forgotten, so what adapting takes is its mean over them: more goals make a surer test, no
dearer task."""

from __future__ import annotations

from math import nan

import numpy as np

from perdure.arrays import mean
from perdure.measure.metric import LifetimeData, Moment, Score, metric
from perdure.store.history import History


def steps_by_task(history: History) -> dict[str, float]:
    """The steps that the agent learned in, and adapted in to one goal, by task in the order they came."""
    mine, together = history.learning & ~history.before, history.renamed(history.goals)
    out = {}
    for code in dict.fromkeys(together.task[mine].tolist()):
        own = mine & (together.task == code)
        adapted = own & history.adapt
        goals = max(len(np.unique(history.task[adapted])), 1)
        learned = history.steps[own & ~history.adapt].sum()
        out[together.tasks[code]] = float(learned + history.steps[adapted].sum() / goals)
    return out


def _why_not(history: History) -> str:
    """Why tasks did not come one by one; empty if they did."""
    history = history.renamed(history.goals)
    task = history.task[history.learning & ~history.before]
    came = task[np.append(True, task[1:] != task[:-1])] if len(task) else task
    different = len(set(came.tolist()))
    if different < 2:
        return "fewer than two tasks were learned"
    if len(came) > different:
        code = next(c for c in came if (came == c).sum() > 1)
        return f"{history.tasks[code]} came more than once: defined for tasks that come one by one"
    return ""


def came_online(history: History) -> bool:
    """Whether tasks came one by one and all that were learned were adapted to as well."""
    mine, task = history.learning & ~history.before, history.renamed(history.goals).task
    learned = set(task[mine & ~history.adapt].tolist())
    tested = set(task[mine & history.adapt].tolist())
    return bool(learned) and learned <= tested and not _why_not(history)


@metric("online.steps", better="lower", title="Steps a task")
def steps(life: LifetimeData) -> Score:
    """Steps until a task is mastered or its budget is used up: the mean over tasks.

    (1/T) Σ_t n_t, where n_t are the steps in which the agent learned the task that came t-th, and those
    in which it adapted to it: of several held-out goals the mean.
    """
    h = life.history
    if reason := _why_not(h):
        return Score(nan, reason=reason)
    per = steps_by_task(h)
    together, mine = h.renamed(h.goals), h.learning & ~h.before
    first = {t: int(h.block[mine & (together.task == together.tasks.index(t))][0]) for t in per}
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
