"""From rows to curves: what the ``paper`` preset measures on.

Learning curves are smoothed block by block, then everything is clamped and normalised per task, by
one range for all lifetimes of a comparison (docs/design/metrics.md says why).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import NamedTuple

import numpy as np

from perdure.arrays import Array
from perdure.errors import MeasureError
from perdure.measure.l2m.sections import Section, by_task, cut, cut_expert, examined, joined
from perdure.measure.l2m.smoothing import OFFSET, SCALE, SHORTEST, WINDOWS, Window, smooth_centred
from perdure.measure.stats import LARGEST
from perdure.store.history import History

QUANTILES = (0.1, 0.9)
"""Where outliers are clamped."""
NOISE = 1e-12
"""A task whose performance varies by less than this share of its magnitude is constant."""
TIE = 1e-9
"""Performances that differ by less than this share of the scale are equal: rounding must not decide
when a level was reached."""


class Limits(NamedTuple):
    """What a task's performance is clamped to and normalised by."""

    low: float
    high: float
    note: str = ""

    @property
    def flat(self) -> bool:
        """Whether nothing but rounding lies between them."""
        return self.high - self.low <= NOISE * max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class PaperOptions:
    """How curves are prepared; the defaults are the document's Appendix A."""

    measure: str | None = None
    smoothing: Window = "flat"
    window: int | None = None
    """Its length; by default a fifth of the block, at most 100."""
    clamp: bool = True
    normalise: bool = True
    """To [1, 101]: 0 to 100, plus 1 so that ratios and contrasts stay defined."""
    ranges: Mapping[str, tuple[float, float]] | None = None
    """Known limits of the measure, by task; with them nothing is taken from the rows."""
    limits: Mapping[str, Limits] | None = None
    """What :func:`limits` gave for all lifetimes of a comparison. Without it a lifetime is measured
    on a scale of its own."""

    def __post_init__(self) -> None:
        if self.smoothing not in WINDOWS:
            raise MeasureError(
                f"smoothing {self.smoothing!r}: expected one of {', '.join(WINDOWS)}"
            )
        if self.window is not None and self.window < SHORTEST:
            raise MeasureError(
                f"window {self.window}: expected at least {SHORTEST} experiences; "
                "smoothing 'none' leaves the curves as they are"
            )
        for task, pair in (self.ranges or {}).items():
            if len(pair) != 2 or not all(map(isfinite, pair)) or pair[0] >= pair[1]:
                raise MeasureError(
                    f"range of task {task!r}: expected two finite numbers, the lower first, "
                    f"got {pair!r}"
                )


@dataclass(frozen=True, eq=False)
class Prepared:
    """One lifetime, ready to be measured."""

    taught: tuple[Section, ...]
    """All learning sections in order, measured or not: what was learned when."""
    lessons: Mapping[str, tuple[Section, ...]]
    """The same by task."""
    exams: Mapping[str, tuple[Section, ...]]
    """Evaluations that count, by task: where anything is asleep, only those asleep."""
    experts: Mapping[str, tuple[tuple[Section, ...], ...]]
    """For each task the learning of each expert run; empty where that was not measured."""
    examined: Mapping[str, tuple[Section, ...]]
    """For tasks whose learning rows hold no score: what each lesson led to (:func:`examined`). Then
    ``experts`` holds the same of them."""
    limits: Mapping[str, Limits]
    options: PaperOptions
    measure: str
    learned_before: frozenset[str]
    """Tasks that were learned before deployment."""
    notes: tuple[str, ...]

    @cached_property
    def curves(self) -> dict[str, list[tuple[int, Section]]]:
        """By task: the measured lessons while awake, each with its ordinal among the task's."""
        found = {}
        for task, lessons in self.lessons.items():
            awake = enumerate(s for s in lessons if not s.asleep)
            measured = [(i, s) for i, s in awake if len(s.values)]
            if measured:
                found[task] = measured
        return found

    @cached_property
    def curveless(self) -> dict[str, str]:
        """For each learned task without a learning curve: why."""
        return {
            task: "learned asleep only"
            if all(s.asleep for s in lessons)
            else f"its learning rows hold no {self.measure}"
            for task, lessons in self.lessons.items()
            if task not in self.curves
        }

    def curve(self, task: str) -> list[Section]:
        """The sections of a task's concatenated learning curve."""
        return [s for _, s in self.curves[task]]

    def rolling(self, sections: Iterable[Section]) -> Array:
        """Their rolling average. Smoothed curves are one already; it is taken once, not twice."""
        if self.options.smoothing != "none":
            return joined(sections)
        return np.concatenate([smooth_centred(s.values) for s in sections])

    def tie(self, task: str) -> float:
        """Below this, two performances on a task are equal."""
        low, high, _ = self.limits[task]
        return TIE * (SCALE if self.options.normalise else max(abs(low), abs(high)))


def limits(histories: Sequence[History], options: PaperOptions | None = None) -> dict[str, Limits]:
    """One pair of limits a task for all lifetimes and experts given: put it into the options that
    each of them is measured with.

    With clamping these are the quantiles at 10 and 90 %, else the extremes, of all rows that are
    measured: learning and evaluation, and the learning of the task's experts.
    """
    options = options or PaperOptions()
    measures = {options.measure or h.measure for h in histories}
    if len(measures) > 1:
        raise MeasureError(
            f"lifetimes of different measures ({', '.join(sorted(measures))}): name the one to take"
        )
    measure = next(iter(measures), "")
    pooled: dict[str, list[Array]] = {}
    experts: dict[tuple[str, int], History] = {}
    for history in histories:
        for s in cut(history, measure, options.smoothing, options.window):
            pooled.setdefault(s.task, []).append(s.raw)
        # Lifetimes share experts: one that is given many times counts once.
        experts |= {(t, id(e)): e for t, runs in history.experts.items() for e in runs}
    for (task, _), expert in experts.items():
        if task in pooled:
            run = cut_expert(expert, task, measure, options.smoothing, options.window)
            pooled[task].extend(s.raw for s in run)
    return {task: _limits(task, rows, options) for task, rows in pooled.items()}


def _limits(task: str, rows: Sequence[Array], options: PaperOptions) -> Limits:
    if options.ranges is not None:
        if task not in options.ranges:
            raise MeasureError(
                f"the ranges have no entry for task {task!r} (they have: {', '.join(options.ranges)})"
            )
        return Limits(*options.ranges[task])
    values = np.concatenate(rows)
    if not len(values):
        return Limits(0.0, 0.0)
    extremes = Limits(float(values.min()), float(values.max()))
    if not options.clamp:
        return extremes
    # Rows that are clamped at their own quantiles have these as extremes: one pair serves both.
    low, high = np.quantile(values, QUANTILES)
    quantiles = Limits(float(low), float(high))
    if quantiles.flat and not extremes.flat:
        return extremes._replace(
            note="not clamped, since its quantiles at 10 and 90 % are one value"
        )
    return quantiles


def prepare(history: History, options: PaperOptions) -> Prepared:
    """Group, smooth, clamp and normalise one lifetime and its experts."""
    measure = options.measure or history.measure
    raw = cut(history, measure, options.smoothing, options.window)
    mine = by_task(raw)
    unscored = {
        task: examined(raw, task)
        for task, own in mine.items()
        if any(s.learning for s in own) and not any(s.learning and len(s.raw) for s in own)
    }
    experts = {
        task: tuple(
            _examined_expert(e, task, measure)
            if task in unscored
            else cut_expert(e, task, measure, options.smoothing, options.window)
            for e in history.experts.get(task, ())
        )
        for task in mine
    }
    scale = {
        task: _scale(task, [s.raw for part in (mine[task], *experts[task]) for s in part], options)
        for task in mine
    }
    made = [_processed(s, scale[s.task], options) for s in raw]
    sleepy = any(s.asleep for s in made)
    before = history.before & history.learning & ~history.adapt
    return Prepared(
        taught=tuple(s for s in made if s.learning),
        lessons=by_task(s for s in made if s.learning),
        exams=by_task(s for s in made if not s.learning and s.asleep == sleepy),
        experts={
            task: tuple(tuple(_processed(s, scale[task], options) for s in run) for run in runs)
            for task, runs in experts.items()
        },
        examined={
            task: tuple(_processed(s, scale[task], options) for s in lessons)
            for task, lessons in unscored.items()
            if lessons
        },
        limits=scale,
        options=options,
        measure=measure,
        learned_before=frozenset(history.tasks[t] for t in np.unique(history.task[before])),
        notes=(*_odd_values(history, measure), *_odd_limits(scale, mine)),
    )


def _examined_expert(expert: History, task: str, measure: str) -> tuple[Section, ...]:
    return examined(cut(expert, measure), task) if measure in expert.columns else ()


def _scale(task: str, rows: Sequence[Array], options: PaperOptions) -> Limits:
    if options.limits is None:
        return _limits(task, rows, options)
    if task not in options.limits:
        raise MeasureError(
            f"no limits for task {task!r} (there are limits of: {', '.join(options.limits) or 'none'}): "
            "compute them over every lifetime that is measured with them"
        )
    return options.limits[task]


def _processed(section: Section, limits: Limits, options: PaperOptions) -> Section:
    values = section.raw
    if options.clamp:
        values = np.clip(values, limits.low, limits.high)
    if options.normalise and limits.flat:
        values = np.full(len(values), OFFSET)
    elif options.normalise:
        values = (values - limits.low) / (limits.high - limits.low) * SCALE + OFFSET
    return replace(section, values=values)


def _odd_values(history: History, measure: str) -> list[str]:
    count = int(np.sum(np.abs(history.values(measure)) > LARGEST))
    return [f"{count} values are infinite or beyond ±{LARGEST:g}: left out"] if count else []


def _odd_limits(limits: Mapping[str, Limits], mine: Mapping[str, Sequence[Section]]) -> list[str]:
    notes = []
    for task, found in limits.items():
        if found.note:
            notes.append(f"{task}: {found.note}")
        elif found.flat and any(len(s.raw) for s in mine[task]):
            notes.append(f"{task}: performance is constant, which says nothing of learning")
    return notes
