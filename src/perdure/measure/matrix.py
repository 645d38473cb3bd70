"""The evaluation matrix: score on task j at each evaluation block i, and what was learned before.

From it the train-test matrix: the same scores after each stage of learning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import nan
from typing import TypeAlias

import numpy as np

from perdure.arrays import Array, mean
from perdure.names import listed
from perdure.store.history import History

Lesson: TypeAlias = tuple[int, str]
"""A block, and a task that was learned from in it."""


@dataclass(frozen=True)
class Stage:
    """A longest run of learn blocks that teach the same tasks, whatever evaluations lie between."""

    tasks: tuple[str, ...]
    blocks: tuple[int, ...]

    def __str__(self) -> str:
        return listed(self.tasks)


@dataclass(frozen=True, eq=False)
class TrainTest:
    """Score on each task (columns) before any learning (row 0) and after each stage (rows 1 on).

    A cell is the task's last evaluation between the end of the stage's last learn block and the
    start of the next stage. Without one it is NaN: an evaluation in the midst of a stage says
    nothing of what the whole stage did.
    """

    stages: tuple[Stage, ...]
    tasks: tuple[str, ...]
    """In order of first learning, then those only evaluated."""
    values: Array

    @cached_property
    def irregular(self) -> str:
        """Why this is no sequence of stages that each teach one new task; empty if it is.

        In such a sequence the task of row k is that of column k − 1.
        """
        found: dict[str, int] = {}
        for k, stage in enumerate(self.stages, 1):
            if len(stage.tasks) > 1:
                return f"stage {k} teaches {stage} at once: defined for one task a stage"
            (task,) = stage.tasks
            if task in found:
                return f"{task} is learned in stages {found[task]} and {k}: defined for one stage a task"
            found[task] = k
        return ""

    @property
    def square(self) -> Array:
        """Of a sequence of one new task a stage: score on task j after stage i."""
        return self.values[1:, : len(self.stages)]

    def at(self, row: int, task: str) -> float:
        """One cell."""
        return float(self.values[row, self.tasks.index(task)])

    def hole(self, cells: Iterable[tuple[int, str]]) -> str:
        """The first of the (row, task) that is NaN, in words; empty if all have scores."""
        for row, task in cells:
            if np.isnan(self.at(row, task)):
                row %= len(self.values)
                when = f"after stage {row} ({self.stages[row - 1]})" if row else "before learning"
                return f"{task} was not evaluated {when}"
        return ""


@dataclass(frozen=True)
class Matrix:
    """One lifetime's evaluations."""

    tasks: tuple[str, ...]
    """Columns: task ids in order of first appearance, of those that were learned or evaluated after
    deployment."""
    blocks: tuple[int, ...]
    """For each row: the block it was evaluated in."""
    learned: tuple[tuple[str, ...], ...]
    """For each row: the task ids learned before it, in order, with repeats."""
    values: Array
    """Mean score, NaN where a block did not evaluate a task."""
    lessons: tuple[Lesson, ...]
    """What was learned, in order."""

    @cached_property
    def _age(self) -> Array:
        """For each row: how many learn blocks came before it."""
        return np.searchsorted(self._learn_blocks, np.array(self.blocks, int))

    @cached_property
    def _learn_blocks(self) -> Array:
        return np.unique(np.array([block for block, _ in self.lessons], int))

    @cached_property
    def train_test(self) -> TrainTest:
        """The scores before any learning and after each stage."""
        found = stages(self.lessons)
        learned = dict.fromkeys(task for _, task in self.lessons)
        tasks = (*learned, *(t for t in self.tasks if t not in learned))
        ages = [0, *(np.searchsorted(self._learn_blocks, s.blocks[-1]) + 1 for s in found)]
        values = np.full((len(ages), len(self.tasks)), nan)
        for row, age in zip(values, ages, strict=True):
            for scores in self.values[self._age == age]:
                np.copyto(row, scores, where=~np.isnan(scores))
        return TrainTest(found, tasks, values[:, [self.tasks.index(t) for t in tasks]])

    def curve(self, blocks: Sequence[int], task: str) -> dict[int, float]:
        """For each of the learn blocks after which the task was evaluated before learning went on:
        its score then, at the first such evaluation."""
        scores = self.values[:, self.tasks.index(task)]
        out = {}
        for block in blocks:
            age = np.searchsorted(self._learn_blocks, block) + 1
            after = scores[(self._age == age) & ~np.isnan(scores)]
            if len(after):
                out[int(block)] = float(after[0])
        return out

    def initial(self) -> float:
        """Mean score before any learning; NaN without such an evaluation."""
        rows = [i for i, past in enumerate(self.learned) if not past]
        return float(np.nanmean(self.values[rows[0]])) if rows else nan

    def initial_by_task(self) -> dict[str, float]:
        """For each task that was evaluated before any learning: its score then."""
        rows = [i for i, past in enumerate(self.learned) if not past]
        scores = self.values[rows[0]] if rows else ()
        return {t: float(v) for t, v in zip(self.tasks, scores, strict=False) if not np.isnan(v)}

    def could_be_forgotten(self) -> tuple[str, ...]:
        """The learned tasks that were evaluated again after others had been learned: of the rest, such
        as the task that was learned last, nothing can be forgotten."""
        out = []
        for i, j in self._after_own:
            row = int(np.flatnonzero(~np.isnan(self.values[:, j]))[-1])
            since = self.learned[row][len(self.learned[i]) :]
            if any(task != self.tasks[j] for task in since):
                out.append(self.tasks[j])
        return tuple(out)

    def followed(self) -> tuple[str, ...]:
        """The learned tasks after which others were learned, evaluated again or not."""
        order = [task for _, task in self.lessons]
        last = {task: k for k, task in enumerate(order)}
        ends = {task: self.lessons[k][0] for task, k in last.items()}
        return tuple(
            t for t, end in ends.items() if any(b > end and o != t for b, o in self.lessons)
        )

    @cached_property
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

    def acquired_by_task(self) -> dict[str, float]:
        """For each learned task: the score right after it was last learned."""
        return {self.tasks[c[1]]: float(self.values[c]) for c in self._after_own}

    def acquired(self) -> float:
        """Mean score on each learned task right after it was last learned."""
        scores = list(self.acquired_by_task().values())
        return mean(scores) if scores else nan

    def last(self) -> dict[str, float]:
        """For each learned task: the score at the last evaluation that holds it."""
        out = {}
        for _, j in self._after_own:
            column = self.values[:, j]
            out[self.tasks[j]] = float(column[~np.isnan(column)][-1])
        return out

    def final(self) -> float:
        """Mean score on the learned tasks at the end of life."""
        scores = list(self.last().values())
        return mean(scores) if scores else nan

    def forgetting(self) -> float:
        """How much of what was acquired is gone at the end: acquired − final."""
        return self.acquired() - self.final()


def evaluation_matrix(history: History, measure: str | None = None) -> Matrix:
    """The matrix of one lifetime, after deployment; adapt blocks leave no trace in it.

    An episode that the budget cut off has no final score and does not count. Under a budget of
    steps that favours short episodes, which succeed more often; a budget of episodes cuts none off.
    """
    values = history.values(measure)
    evaluated = ~history.learning & ~history.adapt & ~history.before
    scored = evaluated & history.complete & ~np.isnan(values)
    columns = len(history.tasks)
    blocks, row = np.unique(history.block[scored], return_inverse=True)
    cell = row * columns + history.task[scored]
    counts = np.bincount(cell, minlength=len(blocks) * columns)
    sums = np.bincount(cell, values[scored], minlength=len(blocks) * columns)
    means = np.divide(sums, counts, out=np.full(len(sums), nan), where=counts > 0)
    taught = lessons(history)
    learned = tuple(tuple(t for b, t in taught if b < block) for block in blocks)
    known = {task for _, task in taught}
    known |= {history.tasks[k] for k in np.unique(history.task[evaluated])}
    own = [k for k, task in enumerate(history.tasks) if task in known]
    return Matrix(
        tuple(history.tasks[k] for k in own),
        tuple(int(b) for b in blocks),
        learned,
        means.reshape(len(blocks), columns)[:, own],
        tuple(taught),
    )


def stages(taught: Sequence[Lesson]) -> tuple[Stage, ...]:
    """The stages of a lifetime's lessons."""
    by_block = groupby(taught, key=lambda lesson: lesson[0])
    blocks = [(block, tuple(task for _, task in group)) for block, group in by_block]
    out = []
    for _, run in groupby(blocks, key=lambda block: frozenset(block[1])):
        numbers, tasks = zip(*run, strict=True)
        out.append(Stage(tasks[0], numbers))
    return tuple(out)


def lessons(history: History) -> list[Lesson]:
    """Each block and task that was learned from after deployment, in order of first appearance."""
    mask = history.learning & ~history.adapt & ~history.before
    key = history.block[mask].astype(np.int64) * len(history.tasks) + history.task[mask]
    _, first = np.unique(key, return_index=True)
    order = np.flatnonzero(mask)[np.sort(first)]
    return [(int(history.block[i]), history.tasks[history.task[i]]) for i in order]
