"""L2M metrics of learning curves: against single-task experts, saturation, and averages.

Each function gives scores by short name. docs/design/metrics.md has the definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite, isnan, nan

import numpy as np

from perdure.arrays import Array, mean
from perdure.measure.l2m.preprocess import Prepared
from perdure.measure.l2m.sections import Section, joined
from perdure.measure.metric import Moment, Score

NOTHING = "nothing was learned in this lifetime"
WEAK = 0.2
"""Saturation under this share of the expert's is said in the notes."""


def names(tasks: Iterable[str], most: int = 5) -> str:
    """Some names of tasks, for a sentence."""
    listed = list(tasks)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Each task's mean."""
    return {task: mean(found) for task, found in values.items()}


def over_tasks(
    values: Mapping[str, float],
    why: Mapping[str, str],
    nothing: str,
    moments: Iterable[Moment] = (),
    notes: Iterable[str] = (),
) -> Score:
    """The mean over tasks. ``why`` says for each task without a value why it has none, and
    ``nothing`` what is wrong when there are no tasks at all."""
    by_reason: dict[str, list[str]] = {}
    for task, reason in why.items():
        by_reason.setdefault(reason, []).append(task)
    per_task = {**values, **dict.fromkeys(why, nan)}
    over_time = tuple(sorted(moments, key=lambda m: m.block))
    if values:
        left_out = (f"without {names(t)}: {reason}" for reason, t in by_reason.items())
        value = mean(list(values.values()))
        return Score(value, per_task, over_time=over_time, notes=(*notes, *left_out))
    reasons = "; ".join(f"{names(t)}: {reason}" for reason, t in by_reason.items())
    return Score(nan, per_task, over_time=over_time, reason=reasons or nothing, notes=tuple(notes))


def quotient(a: float, b: float) -> float:
    """a / b of two performances; NaN where a sign makes it meaningless."""
    value = a / b if a >= 0 and b > 0 else nan
    return value if isfinite(value) else nan


def first_at(curve: Array, level: float, tie: float) -> int:
    """How many experiences it takes to reach a level, the one that reaches it included; 0 where
    none does."""
    reached = curve >= level - tie
    at = int(np.argmax(reached))
    return at + 1 if reached[at] else 0


def saturation(curve: Array, tie: float) -> tuple[float, int]:
    """The highest value of a rolling average, and the experiences until it is first reached."""
    value = float(curve.max())
    return value, first_at(curve, value, tie)


def against_experts(life: Prepared) -> dict[str, Score]:
    """Relative performance and sample efficiency."""
    relative: dict[str, float] = {}
    efficient: dict[str, float] = {}
    why_not: dict[str, str] = dict(life.curveless)
    no_ratio: dict[str, str] = {}
    shorter, falling, weak, capped = [], [], [], []
    for task in (*life.curves, *life.examined):
        runs = [run for run in life.experts.get(task, ()) if run]
        if not runs:
            none = not life.experts.get(task)
            why_not[task] = "no single-task expert" if none else "its expert was not measured on it"
            continue
        mine = life.curve(task) if task in life.curves else life.examined[task]
        curve, rolling = joined(mine), life.rolling(mine)
        best, needed = saturation(rolling, life.tie(task))
        areas, speeds = [], []
        for run in runs:
            theirs = joined(run)
            n = min(len(curve), len(theirs))
            areas.append(quotient(float(curve[:n].sum()), float(theirs[:n].sum())))
            their_best, they_needed = saturation(life.rolling(run), life.tie(task))
            speeds.append(quotient(best, their_best) * (they_needed / needed))
            shorter += [task] if len(theirs) < len(curve) else []
            weak += [task] if best < WEAK * their_best else []
            capped += [task] if _capped(life, task, mine, run, best - their_best) else []
        falling += [task] if rise(curve) < -life.tie(task) else []
        for found, per_task in ((areas, relative), (speeds, efficient)):
            if any(isnan(v) for v in found):
                no_ratio[task] = "performance is not positive, so it has no ratio: normalise it"
            else:
                per_task[task] = mean(found)
    told = [f"{names(dict.fromkeys(shorter))}: compared over the expert's fewer experiences"]
    told = told if shorter else []
    if any(task in relative for task in life.examined):
        by_play = names(task for task in life.examined if task in relative)
        told.append(f"{by_play}: evaluations after its lessons stand for its learning curve")
    doubts = {
        "the learning curve falls, so its maximum is not what learning led to": falling,
        f"saturates under {WEAK:.0%} of an expert": weak,
        "learner and expert both saturate at the clamping limit, so the ratio of heights is 1": capped,
    }
    doubtful = [f"{names(dict.fromkeys(t))}: {text}" for text, t in doubts.items() if t]
    why_not |= no_ratio
    return {
        "rp": over_tasks(relative, _without(why_not, relative), NOTHING, notes=told),
        "se": over_tasks(efficient, _without(why_not, efficient), NOTHING, notes=doubtful),
    }


def _without(why: Mapping[str, str], values: Mapping[str, float]) -> dict[str, str]:
    return {task: reason for task, reason in why.items() if task not in values}


def _capped(
    life: Prepared, task: str, mine: Sequence[Section], run: Sequence[Section], apart: float
) -> bool:
    """Whether clamping put learner and expert at one height."""
    high = life.limits[task].high
    above = all(max(s.raw.max() for s in part) > high for part in (mine, run))
    return life.options.clamp and above and abs(apart) <= life.tie(task)


def rise(curve: Array) -> float:
    """What a straight line through the curve rises from its first experience to its last. The
    task's own count of experiences is its axis, not their running number in the lifetime."""
    at = np.arange(len(curve)) - (len(curve) - 1) / 2
    rise = float(at @ (curve - curve.mean()))
    return rise / float(at @ at) * (len(curve) - 1) if len(curve) > 1 else 0.0


def levels(life: Prepared) -> dict[str, Score]:
    """Saturation and experience to it, of learning while awake."""
    tops: dict[str, float] = {}
    needs: dict[str, float] = {}
    found: dict[str, list[Moment]] = {"sat": [], "ets": []}
    for task in life.curves:
        lessons = life.curve(task)
        best, needed = saturation(life.rolling(lessons), life.tie(task))
        tops[task], needs[task] = best, float(needed)
        for s in lessons:
            best, needed = saturation(life.rolling([s]), life.tie(task))
            found["sat"].append(Moment(s.block, task, best))
            found["ets"].append(Moment(s.block, task, float(needed)))
    return {
        "sat": over_tasks(tops, life.curveless, NOTHING, found["sat"]),
        "ets": over_tasks(needs, life.curveless, NOTHING, found["ets"]),
    }


def trends(life: Prepared) -> dict[str, Score]:
    """Cumulative gain and learn burn: slopes of learning blocks while awake, in order."""
    blocks = sorted((s for found in life.curves.values() for _, s in found), key=lambda s: s.order)
    gains = [(s, _sign(rise(s.values), life.tie(s.task))) for s in blocks]
    return {"cg": _over_blocks(life, gains, NOTHING), "lb": _burn(life, blocks)}


def _sign(value: float, tie: float) -> float:
    return 0.0 if abs(value) <= tie else 1.0 if value > 0 else -1.0


def _over_blocks(
    life: Prepared, values: Sequence[tuple[Section, float]], nothing: str, notes: Iterable[str] = ()
) -> Score:
    """The mean over all blocks of the lifetime, not over means of tasks."""
    by_task: dict[str, list[float]] = {}
    for s, value in values:
        by_task.setdefault(s.task, []).append(value)
    moments = [Moment(s.block, s.task, value) for s, value in values]
    score = over_tasks(means(by_task), life.curveless, nothing, moments, notes)
    return replace(score, value=mean([v for _, v in values])) if values else score


def _burn(life: Prepared, blocks: Sequence[Section]) -> Score:
    """Mean slope of the blocks that begin with a change of task, over the slope of all learning."""
    changed = [after for before, after in pairwise(blocks) if after.task != before.task]
    if not changed:
        nothing = "the task never changes while it is learned" if blocks else NOTHING
        return over_tasks({}, life.curveless, nothing)
    whole = joined(blocks)
    if abs(rise(whole)) <= max(life.tie(s.task) for s in blocks):
        return Score(nan, reason="performance neither rises nor falls over the whole lifetime")
    rate = rise(whole) / (len(whole) - 1)
    slopes = [(s, rise(s.values) / max(len(s.values) - 1, 1) / rate) for s in changed]
    falls = "performance falls over the lifetime, so that a positive value means falling as well"
    return _over_blocks(life, slopes, NOTHING, [falls] if rate < 0 else [])


def averages(life: Prepared) -> dict[str, Score]:
    """Terminal learning performance, and average performance in training and in evaluation."""
    lessons = {t: [s for s in found if len(s.values)] for t, found in life.lessons.items()}
    lessons = {t: found for t, found in lessons.items() if found}
    unmeasured = {t: why for t, why in life.curveless.items() if t not in lessons}
    return {
        "tlp": _average(lessons, "terminal", unmeasured, NOTHING),
        "atp": _average(lessons, "mean", unmeasured, NOTHING),
        "aep": _average(life.exams, "mean", {}, "nothing was evaluated in this lifetime"),
    }


def _average(
    sections: Mapping[str, Sequence[Section]], what: str, why: Mapping[str, str], nothing: str
) -> Score:
    """The mean over a task's sections, then over tasks: long blocks weigh as much as short ones."""
    values = {t: [float(getattr(s, what)) for s in found] for t, found in sections.items()}
    moments = (
        Moment(s.block, t, v)
        for t, found in sections.items()
        for s, v in zip(found, values[t], strict=True)
    )
    return over_tasks(means(values), why, nothing, moments)
