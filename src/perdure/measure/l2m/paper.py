"""L2M as the document defines it, on one scale for all lifetimes of a comparison.

    options = paper.PaperOptions(measure="return")
    options = replace(options, limits=paper.limits(histories, options))
    scores = [paper.scores(history, options) for history in histories]

docs/design/metrics.md has the definitions, their holes, and what was decided.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isnan, nan
from typing import Any

from perdure.arrays import mean
from perdure.measure.l2m.curves import (
    NOTHING,
    against_experts,
    averages,
    levels,
    means,
    names,
    over_tasks,
    quotient,
    trends,
)
from perdure.measure.l2m.preprocess import TIE, Limits, PaperOptions, Prepared, limits, prepare
from perdure.measure.l2m.recovery import recovery
from perdure.measure.l2m.sections import Section
from perdure.measure.metric import Moment, Score
from perdure.store.history import History

__all__ = ["Limits", "PaperOptions", "describe", "limits", "scores"]


def scores(history: History, options: PaperOptions | None = None) -> dict[str, Score]:
    """All L2M scores of one lifetime, by short name; its experts are ``history.experts``."""
    life = prepare(history, options or PaperOptions())
    found = {
        **maintenance(life),
        **transfer(life),
        **against_experts(life),
        **recovery(life),
        **levels(life),
        **trends(life),
        **averages(life),
    }
    if not life.notes:
        return found
    return {name: replace(s, notes=(*s.notes, *life.notes)) for name, s in found.items()}


def describe(options: PaperOptions) -> dict[str, Any]:
    """The options as plain values; the limits as {task: {min, max}}."""
    scale = options.limits or options.ranges or {}
    return {
        "smoothing": options.smoothing,
        "window": options.window,
        "clamp": options.clamp,
        "normalise": options.normalise,
        "ranges": {task: {"min": pair[0], "max": pair[1]} for task, pair in scale.items()},
    }


def maintenance(life: Prepared) -> dict[str, Score]:
    """Performance maintenance against the evaluation that follows a task's learning, and against
    the end of that learning."""
    orders = [s.order for s in life.taught]
    kept: dict[str, list[tuple[int, float]]] = {}
    kept_tlp: dict[str, list[tuple[int, float]]] = {}
    late = total = 0
    for task, lessons in life.lessons.items():
        lesson = mark = None
        disturbed = False
        waiting = list(reversed(lessons))
        for exam in life.exams.get(task, ()):
            fresh = False
            while waiting and waiting[-1].order < exam.order:
                lesson, fresh = waiting.pop(), True
            if lesson is None:
                continue
            if fresh:
                mark = exam
                between = bisect_left(orders, exam.order) - bisect_left(orders, lesson.order)
                disturbed = between > 1
            elif mark is not None:
                total += 1
                late += disturbed
                kept.setdefault(task, []).append((exam.block, exam.mean - mark.mean))
                if len(lesson.values):
                    change = (exam.block, exam.mean - lesson.terminal)
                    kept_tlp.setdefault(task, []).append(change)
    notes = []
    if late:
        notes.append(
            f"{late} of {total} maintenance values are against an evaluation before which another "
            "task had been learned already"
        )
    again = "not evaluated again after the evaluation that follows its learning"
    why = {t: again for t in life.lessons if t not in kept}
    unmeasured = {t: f"its learning rows hold no {life.measure}" for t in kept if t not in kept_tlp}
    return {
        "pm": _over_lifetime(kept, why, notes),
        "pm_tlp": _over_lifetime(kept_tlp, why | unmeasured, []),
    }


def _over_lifetime(
    kept: dict[str, list[tuple[int, float]]], why: dict[str, str], notes: Sequence[str]
) -> Score:
    """The mean over all values of the lifetime, not over means of tasks."""
    moments = [Moment(block, t, v) for t, found in kept.items() for block, v in found]
    score = over_tasks(
        means({t: [v for _, v in found] for t, found in kept.items()}), why, NOTHING, moments, notes
    )
    return replace(score, value=mean([m.value for m in moments])) if moments else score


@dataclass(frozen=True, eq=False)
class Change:
    """Two evaluations of a task in a row, between which exactly one other task was learned."""

    source: str
    before: Section
    after: Section

    @property
    def pair(self) -> tuple[str, str]:
        """From which task to which."""
        return self.source, self.after.task

    @property
    def contrast(self) -> float:
        """(after − before) / (after + before); NaN where a sign makes it meaningless."""
        a, b = self.after.mean, self.before.mean
        return (a - b) / (a + b) if min(a, b) >= 0 and a + b > 0 else nan

    @property
    def ratio(self) -> float:
        """After / before."""
        return quotient(self.after.mean, self.before.mean)


def transfer(life: Prepared) -> dict[str, Score]:
    """Forward and backward transfer as contrast and as ratio."""
    orders = [s.order for s in life.taught]
    changes: dict[str, list[Change]] = {"ft": [], "bt": []}
    mixed: dict[str, list[str]] = {"ft": [], "bt": []}
    untaught: list[str] = []
    for target, exams in life.exams.items():
        own = life.lessons.get(target, ())
        for before, after in pairwise(exams):
            span = slice(bisect_left(orders, before.order), bisect_left(orders, after.order))
            sources = list(dict.fromkeys(s.task for s in life.taught[span]))
            if sources in ([], [target]):
                continue
            way = "bt" if own and own[0].order < before.order else "ft"
            if len(sources) > 1:
                mixed[way].append(f"{target} after {names(sources, 3)}")
            else:
                changes[way].append(Change(sources[0], before, after))
                untaught += [] if own else [target]
    scores = {}
    for way, found in changes.items():
        notes = _transfer_notes(life, way, found, mixed[way], untaught)
        for suffix, what in (("", "contrast"), ("_ratio", "ratio")):
            scores[way + suffix] = _transfer_score(way, found, what, notes)
    return scores


_WHERE = {"ft": "before its own learning", "bt": "after its own learning"}


def _transfer_score(way: str, found: Sequence[Change], what: str, notes: Sequence[str]) -> Score:
    """A pair's first occurrence counts; ``over_time`` has them all."""
    values: dict[tuple[str, str], list[float]] = {}
    moments, undefined = [], 0
    for change in found:
        value = getattr(change, what)
        if isnan(value):
            undefined += 1
            continue
        values.setdefault(change.pair, []).append(value)
        moments.append(Moment(change.after.block, change.after.task, value))
    if undefined:
        notes = [*notes, f"{undefined} changes have no {what}, since performance is not positive"]
    pairs = {p: v[0] for p, v in values.items()}
    by_target: dict[str, list[float]] = {}
    for (_, target), value in pairs.items():
        by_target.setdefault(target, []).append(value)
    if not pairs:
        reason = (
            "performance is not positive, so it has no ratio: normalise it"
            if undefined
            else "no task is evaluated right before and right after the learning of exactly one "
            f"other task, {_WHERE[way]}"
        )
        return Score(nan, reason=reason, notes=tuple(notes))
    return Score(
        mean(list(pairs.values())),
        means(by_target),
        pairs,
        tuple(sorted(moments, key=lambda m: m.block)),
        notes=tuple(notes),
    )


def _transfer_notes(
    life: Prepared, way: str, found: Sequence[Change], mixed: Sequence[str], untaught: Sequence[str]
) -> list[str]:
    notes = []
    if mixed:
        notes.append(
            f"{len(mixed)} changes left out, confounded by the learning of several tasks: "
            + "; ".join(mixed[:3])
            + (" …" if len(mixed) > 3 else "")
        )
    if way == "ft" and untaught:
        never = names(dict.fromkeys(untaught))
        notes.append(f"transfer to {never} counts, which this lifetime never learns")
    before = [t for t in dict.fromkeys(c.after.task for c in found) if t in life.learned_before]
    if way == "ft" and before:
        notes.append(f"{names(before)}: learned before deployment, which does not count as learned")
    flattened = sum(_flattened(life, c) for c in found)
    if flattened:
        notes.append(
            f"clamping made before and after equal in {flattened} of {len(found)} changes, which "
            "count as no transfer: measure them without clamping"
        )
    return notes


def _flattened(life: Prepared, change: Change) -> bool:
    """Whether clamping put two different evaluations wholly on one limit."""
    if not life.options.clamp:
        return False
    low, high, _ = life.limits[change.after.task]
    a, b = change.before.raw, change.after.raw
    parallel = max(a.max(), b.max()) <= low or min(a.min(), b.min()) >= high
    return bool(parallel and abs(a.mean() - b.mean()) > TIE * max(abs(low), abs(high)))
