"""A lifetime cut into sections: one task's experiences in one block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from perdure.arrays import Array, mean
from perdure.measure.l2m.smoothing import Window, smooth_centred
from perdure.measure.stats import LARGEST
from perdure.store.history import History


@dataclass(frozen=True, eq=False)
class Section:
    """One task's experiences in one block: its part of a learning or an evaluation block."""

    task: str
    block: int
    learning: bool
    asleep: bool
    order: int
    """Its place among the sections of the lifetime."""
    raw: Array
    """One value an experience, smoothed where learned; empty where learning was not measured."""
    values: Array
    """The same, clamped and normalised."""

    @cached_property
    def mean(self) -> float:
        """Of an evaluation: its evaluation performance."""
        return mean(self.values)

    @cached_property
    def terminal(self) -> float:
        """Terminal learning performance: the mean of the last tenth, of one experience at least."""
        return mean(self.values[-tenth(len(self.values)) :])


def tenth(n: int) -> int:
    """How many of ``n`` experiences are a tenth, rounded up."""
    return max(1, -(-n // 10))


def joined(sections: Iterable[Section]) -> Array:
    """Their processed values in one curve."""
    return np.concatenate([s.values for s in sections])


def by_task(sections: Iterable[Section]) -> dict[str, tuple[Section, ...]]:
    """The sections of each task, in order."""
    found: dict[str, list[Section]] = {}
    for section in sections:
        found.setdefault(section.task, []).append(section)
    return {task: tuple(mine) for task, mine in found.items()}


def usable(values: Array) -> Array:
    """Which values can be measured: not NaN, infinite or too large to be squared."""
    return np.asarray(np.abs(values) <= LARGEST)


def cut(
    history: History, measure: str, smoothing: Window = "flat", window: int | None = None
) -> list[Section]:
    """The sections of a lifetime in order, learning smoothed, nothing else processed.

    Rows of one task in one block are one section though others lie between them: exposures that
    run side by side interleave. Incomplete rows and rows without a value count for nothing, but
    for this: a lesson without any value is still a lesson and separates evaluations.
    """
    values = history.values(measure)
    good = history.complete & usable(values)
    kept = ~history.adapt & ~history.before & (good | history.learning)
    groups = _groups(history, kept)
    groups.sort(key=lambda group: (int(history.block[group[0]]), int(group[0])))
    found = []
    for place, group in enumerate(groups):
        first = int(group[0])
        curve = _one_each(*_picked(group, good, history.exp, values))
        learning = bool(history.learning[first])
        if learning:
            curve = smooth_centred(curve, smoothing, window)
        task, block = history.tasks[history.task[first]], int(history.block[first])
        asleep = bool(history.sleep[first])
        found.append(Section(task, block, learning, asleep, place, curve, curve))
    return found


def _groups(history: History, kept: Array) -> list[Array | range]:
    """The rows of each section: a range where they lie side by side."""
    key = history.block.astype(np.int64) * 4 + history.learning * 2 + history.sleep
    key = key * max(len(history.tasks), 1) + history.task
    if all_kept := bool(np.all(kept)):
        rows: Array | range = range(len(key))
    else:
        rows = np.flatnonzero(kept)
        key = key[rows]
    if not len(key):
        return []
    starts = [0, *(np.flatnonzero(key[1:] != key[:-1]) + 1).tolist()]
    ends = [*starts[1:], len(key)]
    if all_kept and len({int(key[s]) for s in starts}) == len(starts):
        return [rows[s:e] for s, e in zip(starts, ends, strict=True)]
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    return list(np.split(np.asarray(rows)[order], cuts))


def _picked(group: Array | range, good: Array, *columns: Array) -> list[Array]:
    """Each column at a group's good rows; a view where that is possible."""
    if isinstance(group, range):
        part = slice(group.start, group.stop)
        mine = good[part]
        if mine.all():
            return [column[part] for column in columns]
        return [column[part][mine] for column in columns]
    measured = group[good[group]]
    return [column[measured] for column in columns]


def _one_each(exp: Array, values: Array) -> Array:
    """One value an experience: rows of one number, from several workers, are averaged."""
    if (exp[1:] > exp[:-1]).all():
        return values
    if (exp[1:] < exp[:-1]).any():
        order = np.argsort(exp, kind="stable")
        exp, values = exp[order], values[order]
    starts = np.flatnonzero(np.diff(exp, prepend=exp[0] - 1))
    return np.asarray(np.add.reduceat(values, starts) / np.diff(starts, append=len(exp)))


def cut_expert(
    expert: History, task: str, measure: str, smoothing: Window, window: int | None
) -> tuple[Section, ...]:
    """An expert's learning of its task while awake; nothing where that was not measured."""
    if measure not in expert.columns:
        return ()
    sections = cut(expert, measure, smoothing, window)
    return tuple(
        s for s in sections if s.learning and not s.asleep and s.task == task and len(s.raw)
    )


def examined(sections: Iterable[Section], task: str) -> tuple[Section, ...]:
    """What each lesson of a task led to: the mean of its first evaluation after it, before anything else
    is learned; one value a lesson. The learning curve where learning rows hold no score, as those of
    imitation, which is scored by playing."""
    found: list[Section] = []
    lesson: Section | None = None
    for s in sections:
        if s.learning:
            lesson = s if s.task == task and not s.asleep else None
        elif lesson is not None and s.task == task and not s.asleep and len(s.raw):
            scored = np.array([s.raw.mean()])
            found.append(replace(lesson, raw=scored, values=scored))
            lesson = None
    return tuple(found)
