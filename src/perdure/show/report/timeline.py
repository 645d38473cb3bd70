"""A lifetime block by block, and the axis that lifetimes of the same blocks share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.measure.outlines import stored_blocks
from perdure.store.history import History

EVALUATIONS = 0.22
"""Share of the axis that evaluation blocks take together, at most."""
EVALUATION = 0.028
"""Share that one of them takes, at most: it uses no learning steps, but has to be seen."""


@dataclass(frozen=True)
class BlockSummary:
    """One block of one lifetime, without its amounts."""

    block: int
    kind: str
    """``learn``, ``eval`` or ``adapt``."""
    before: bool
    """Whether it came before deployment."""
    tasks: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Timeline:
    """One lifetime, block by block."""

    history: History
    values: Array
    summaries: tuple[BlockSummary, ...]
    rows: tuple[Array, ...]
    """For each block: the indices of its experiences, in order."""
    ended: bool

    @cached_property
    def steps(self) -> Array:
        """For each block: the steps in it."""
        return np.array([int(self.history.steps[r].sum()) for r in self.rows])

    @cached_property
    def counts(self) -> Array:
        """For each block: the experiences in it."""
        return np.array([len(r) for r in self.rows])


@dataclass(frozen=True)
class Span:
    """A block on the axis."""

    summary: BlockSummary
    start: float
    stop: float
    learned: float
    """How much was learned, in the unit of the schedule, before it."""
    amount: float
    """How much is learned in it; 0 where nothing is."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """What lifetimes with the same blocks, of the same tasks in the same order, went through."""

    number: int
    spans: tuple[Span, ...]
    unit: str
    """``steps`` or ``experiences``."""
    exact: bool
    """Whether every lifetime had the same amounts; else the axis shows means."""
    names: tuple[str, ...]
    """Its lifetimes; one that did not end may have the first blocks alone."""

    @property
    def order(self) -> tuple[str, ...]:
        """The tasks in the order they are learned in, without those learned again at once."""
        out: list[str] = []
        for span in self.spans:
            if span.summary.kind == "learn" and not span.summary.before:
                out += [t for t in span.summary.tasks if [t] != out[-1:]]
        return tuple(out)


def timeline(history: History, measure: str, ended: bool = True) -> Timeline:
    """Cut a lifetime into its blocks."""
    order = np.argsort(history.block, kind="stable")
    cuts = np.flatnonzero(np.diff(history.block[order])) + 1
    rows = tuple(np.split(order, cuts)) if len(order) else ()
    values = history.values(measure) if measure in history.columns else np.full(len(order), np.nan)
    return Timeline(history, values, tuple(_summary(history, r) for r in rows), rows, ended)


def _summary(history: History, rows: Array) -> BlockSummary:
    task = history.task[rows]
    codes, first = np.unique(task, return_index=True)
    last = len(task) - 1 - np.unique(task[::-1], return_index=True)[1]
    learning = bool(history.learning[rows].any())
    kind = "adapt" if history.adapt[rows].any() else "learn" if learning else "eval"
    order = np.argsort(first)
    tasks = tuple(history.tasks[c] for c in codes[order])
    if np.any(last[order][:-1] > first[order][1:]):
        # Side by side, or over and over: which came first is chance.
        tasks = tuple(sorted(tasks))
    return BlockSummary(int(history.block[rows[0]]), kind, bool(history.before[rows[0]]), tasks)


Budget = tuple[tuple[float, str], ...]
"""What a lifetime was to learn, block by block: amounts with their units."""


def budgets(curriculum: Mapping[str, Any]) -> Budget:
    """The amounts of a stored curriculum's learn blocks; none where they were generated."""
    if curriculum.get("generated"):
        return ()
    learns = (b for b in stored_blocks(curriculum) if b.kind == "learn")
    return tuple((e.amount, e.unit) for block in learns for e in block.exposures)


def schedules(
    timelines: Mapping[str, Timeline], plans: Mapping[str, Budget]
) -> tuple[Schedule, ...]:
    """Lifetimes by what they went through and by what they were to learn: one axis cannot show
    blocks of 300 and of 500 steps. One that did not end joins the first whose blocks begin with its
    own; one without a row is nowhere."""
    timelines = {n: w for n, w in timelines.items() if w.summaries}
    shapes: dict[tuple[tuple[BlockSummary, ...], Budget], list[str]] = {}
    whole = [n for n, w in timelines.items() if w.ended]
    # The longest first, so that those that got less far find theirs.
    torn = sorted(
        (n for n, w in timelines.items() if not w.ended), key=lambda n: -len(timelines[n].summaries)
    )
    for name in (*whole, *torn):
        summaries, plan = timelines[name].summaries, plans[name]
        mine = (summaries, plan)
        if not timelines[name].ended:
            fits = (s for s in shapes if plan in ((), s[1]) and _begins(s[0], summaries))
            mine = next(fits, mine)
        shapes.setdefault(mine, []).append(name)
    return tuple(
        _schedule(number, summaries, names, [timelines[n] for n in names])
        for number, ((summaries, _), names) in enumerate(shapes.items())
    )


def _begins(shape: Sequence[BlockSummary], summaries: Sequence[BlockSummary]) -> bool:
    """Whether ``summaries`` are the first of a shape; the last of them may not have come to all of its
    tasks."""
    *earlier, last = summaries or (None,)
    if last is None or len(summaries) > len(shape) or list(shape[: len(earlier)]) != earlier:
        return False
    there = shape[len(earlier)]
    return there.kind == last.kind and set(last.tasks) <= set(there.tasks)


def _schedule(
    number: int,
    summaries: tuple[BlockSummary, ...],
    names: Sequence[str],
    timelines: Sequence[Timeline],
) -> Schedule:
    ended = [w for w in timelines if w.ended] or timelines[:1]
    learns = [i for i, s in enumerate(summaries) if s.kind == "learn"]
    steps, counts = np.array([w.steps for w in ended]), np.array([w.counts for w in ended])
    same_steps = bool(np.all(steps[:, learns] == steps[0, learns]))
    same_counts = bool(np.all(counts[:, learns] == counts[0, learns]))
    by_count = same_counts and not same_steps
    amounts = (counts if by_count else steps).mean(axis=0)
    learned = float(amounts[learns].sum())
    others = len(summaries) - len(learns)
    each = learned * min(EVALUATION, EVALUATIONS / max(others, 1)) or 1.0
    spans, x, done = [], 0.0, 0.0
    for i, summary in enumerate(summaries):
        amount = float(amounts[i]) if summary.kind == "learn" else 0.0
        width = amount or each
        spans.append(Span(summary, x, x + width, done, amount))
        x, done = x + width, done + amount
    unit = "experiences" if by_count else "steps"
    return Schedule(number, tuple(spans), unit, same_steps or same_counts, tuple(names))


def places(timeline: Timeline, i: int, schedule: Schedule) -> Array:
    """Where in block ``i`` each of its experiences ended, from 0 to 1."""
    rows = timeline.rows[i]
    each = np.ones(len(rows)) if schedule.unit == "experiences" else timeline.history.steps[rows]
    if not each.sum():
        each = np.ones(len(rows))
    at = np.cumsum(each)
    whole = float(at[-1])
    if not timeline.ended and i == len(timeline.rows) - 1:
        whole = max(whole, schedule.spans[i].amount)
    return np.asarray(at / whole)
