"""GEM (Lopez-Paz and Ranzato, 2017): accuracy, backward and forward transfer as differences.

R is the train-test matrix: R[i, j] is the score on task j after stage i of T, and b[j] the score
on it before any learning of the lifetime; what came before deployment is part of the start. A task
whose score is missing is left out of the mean and named.
"""

from __future__ import annotations

from math import nan

from perdure.measure.metric import LifetimeData, Score, mean_over_tasks, metric


@metric("gem.acc", better="higher", needs=("learning", "evaluations"), bounds="measure")
def acc(life: LifetimeData) -> Score:
    """Mean score on the learned tasks after the last stage.

    ACC = (1/T) Σ_j R[T, j]. It asks nothing of the order of learning, so it is defined for tasks
    learned together or more than once as well.
    """
    table, tasks = life.matrix.train_test, life.history.learned_tasks
    values = {task: table.at(-1, task) for task in tasks}
    return mean_over_tasks(values, table.hole((-1, task) for task in tasks))


@metric(
    "gem.bwt", better="higher", needs=("learning", "evaluations"), bounds="difference", keeping=True
)
def bwt(life: LifetimeData) -> Score:
    """What later learning added to earlier tasks; negative for forgetting.

    BWT = (1/(T − 1)) Σ_{j<T} (R[T, j] − R[j, j]): nothing comes after the last task, so it has no
    term. For sequences of one new task a stage.
    """
    table = life.matrix.train_test
    if table.irregular:
        return Score(nan, reason=table.irregular)
    earlier = list(enumerate(table.tasks[: len(table.stages) - 1], 1))
    if not earlier:
        return Score(nan, reason="one task was learned: nothing came after it")
    values = {task: table.at(-1, task) - table.at(j, task) for j, task in earlier}
    return mean_over_tasks(values, table.hole((i, t) for j, t in earlier for i in (j, -1)))


@metric("gem.fwt", better="higher", needs=("learning", "initial"), bounds="difference")
def fwt(life: LifetimeData) -> Score:
    """What earlier learning added to a task before its own stage.

    FWT = (1/(T − 1)) Σ_{j>1} (R[j − 1, j] − b[j]): nothing comes before the first task, so it has
    no term. For sequences of one new task a stage.
    """
    table = life.matrix.train_test
    if table.irregular:
        return Score(nan, reason=table.irregular)
    later = list(enumerate(table.tasks[1 : len(table.stages)], 1))
    if not later:
        return Score(nan, reason="one task was learned: nothing came before it")
    values = {task: table.at(before, task) - table.at(0, task) for before, task in later}
    return mean_over_tasks(values, table.hole((i, t) for k, t in later for i in (0, k)))


metrics = (acc, bwt, fwt)
