"""Performance over whole lifetimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.measure.matrix import Matrix, evaluation_matrix
from perdure.show.report.numbers import Band, Record, band
from perdure.show.report.study import Study
from perdure.show.report.timeline import Schedule, Timeline, places
from perdure.show.thin import Thinned, thin

POINTS = 480
"""Bins of learning on the whole axis, at most."""
FINEST, COARSEST = 96, 4
"""Bins in one block."""
EACH = 5
"""Experiences that a bin should hold, even where they are long."""
LONG = 0.75
"""An experience is long if shorter ones make up this share of the steps: an agent that still fails
may take few of the episodes and much of the time."""
SINGLES = 400_000
"""Numbers that single lifetimes may take in the page together."""


def lifetime_curves(study: Study) -> dict[str, Any]:
    """Means over the lifetimes of each agent in each schedule.

    ``schedules``: schedule, order, unit, exact, n, agents, curriculum. ``spans``: its blocks on the
    axis. ``evaluations``: one record for each agent, evaluated block and task; ``learning``: one for
    each agent, learn block, task and bin. ``x`` is a place on the axis, where evaluations take room
    too; ``tidy`` gives what had been learned there. ``mean``, ``low`` and ``high`` are over
    lifetimes (95 % interval), ``min`` and ``max`` over all their experiences (of evaluations: over
    the lifetimes' scores). An agent without a finished lifetime in a schedule shows its unfinished ones; ``finished`` says.
    """
    out: dict[str, Any] = {"schedules": [], "spans": [], "evaluations": [], "learning": []}
    for schedule in study.schedules:
        out["schedules"].append(
            {
                "schedule": schedule.number, "order": list(schedule.order), "unit": schedule.unit,
                "exact": schedule.exact, "n": len(schedule.names), "stop": schedule.spans[-1].stop,
                "agents": [a for a in study.agents if a in _agents(study, schedule)],
                "curriculum": _curricula(study, schedule),
            }
        )  # fmt: skip
        out["spans"] += [_span(schedule, i) for i in range(len(schedule.spans))]
        bins = bins_of(study, schedule)
        for agent in study.agents:
            names = [n for n in schedule.names if study.by_name[n].agent == agent]
            ended = [n for n in names if study.timelines[n].ended]
            names = ended or names
            if names:
                place = {"schedule": schedule.number, "agent": agent, "finished": bool(ended)}
                out["evaluations"] += _evaluations(study, schedule, names, place)
                timelines = [study.timelines[n] for n in names]
                out["learning"] += _learning(study, schedule, timelines, place, bins)
    return out


def _agents(study: Study, schedule: Schedule) -> set[str]:
    return {study.by_name[n].agent for n in schedule.names}


def _curricula(study: Study, schedule: Schedule) -> str:
    """The runs that a schedule is of, where runs of different curricula stand side by side."""
    if len({f.fingerprint for f in study.folders}) < 2:
        return ""
    return ", ".join(dict.fromkeys(study.by_name[n].folder for n in schedule.names))


def tidy(records: Sequence[Record], schedule: Schedule, learning: bool = False) -> list[Record]:
    """Records of one schedule with how much had been learned, and in what unit, for ``x``.

    Learning has ``within`` too, the share of the block that was over. It tells the points of an
    adapt block apart: its learning is undone and does not count.
    """
    spans = {s.summary.block: s for s in schedule.spans}
    out = []
    for record in records:
        span = spans[record["block"]]
        # Places on the axis carry rounding, which would show as 224.99999999999997 steps.
        within = round((record["x"] - span.start) / (span.stop - span.start), 9)
        place = {"learned": round(span.learned + within * span.amount, 6), "unit": schedule.unit}
        place |= {"within": within} if learning else {}
        columns = [place if k == "x" else {k: v} for k, v in record.items()]
        out.append({k: v for column in columns for k, v in column.items()})
    return out


def single_lifetimes(study: Study) -> list[Record]:
    """Each lifetime by itself: lifetime, agent, seed, schedule, finished; ``evaluations`` with block,
    task and value; ``learning`` with block, task, x, mean, min and max.

    Of very many lifetimes, the first of each agent: what is left out would not fit the page.
    """
    out: list[Record] = []
    left = SINGLES
    for schedule in study.schedules:
        bins = bins_of(study, schedule)
        for name in in_turn(study, schedule.names):
            timeline, life = study.timelines[name], study.by_name[name]
            place = {"lifetime": name, "agent": life.agent, "seed": life.seed}
            place |= {"schedule": schedule.number, "finished": timeline.ended}
            evaluations = _evaluations(study, schedule, [name], {})
            learning = _learning(study, schedule, [timeline], {}, bins)
            left -= len(evaluations) + 3 * len(learning)
            if left < 0:
                return out
            out.append(
                place
                | {
                    "evaluations": [_pick(r, "block", "task", mean="value") for r in evaluations],
                    "learning": [_pick(r, *_SHOWN) for r in learning],
                }
            )
    return out


_SHOWN = ("block", "task", "x", "mean", "min", "max")


def _pick(record: Record, *same: str, **renamed: str) -> Record:
    return {k: record[k] for k in same} | {new: record[old] for old, new in renamed.items()}


def in_turn(study: Study, names: Sequence[str]) -> list[str]:
    """The lifetimes so that each agent's first come first."""
    by_agent: dict[str, list[str]] = {}
    for name in names:
        by_agent.setdefault(study.by_name[name].agent, []).append(name)
    longest = max(map(len, by_agent.values()), default=0)
    return [names[i] for i in range(longest) for names in by_agent.values() if i < len(names)]


def bins_of(study: Study, schedule: Schedule) -> int:
    """Bins of a learn block: few enough to embed, and each with several experiences."""
    learns = [i for i, s in enumerate(schedule.spans) if s.summary.kind == "learn"]
    if not learns:
        return COARSEST
    timelines = [study.timelines[n] for n in schedule.names]
    tasks = max(len(schedule.spans[i].summary.tasks) for i in learns)
    fit = np.median(
        [bins_for(_lengths(w, i, schedule)) for w in timelines for i in learns if i < len(w.rows)]
    )
    room = SINGLES // 2 // (3 * len(learns) * tasks * len(timelines))
    return int(np.clip(min(POINTS // len(learns), fit // tasks, room), COARSEST, FINEST))


def _lengths(timeline: Timeline, i: int, schedule: Schedule) -> Array:
    """How much of the axis each experience of a block takes."""
    rows = timeline.rows[i]
    return np.ones(len(rows)) if schedule.unit == "experiences" else timeline.history.steps[rows]


def bins_for(lengths: Array) -> float:
    """How many bins there are if each is to hold EACH of the long experiences."""
    ordered = np.sort(lengths)
    until = np.cumsum(ordered)
    long = float(ordered[np.searchsorted(until, LONG * until[-1])]) if until[-1] else 1.0
    return float(until[-1]) / max(long, 1.0) / EACH


def _span(schedule: Schedule, i: int) -> Record:
    span = schedule.spans[i]
    return {
        "schedule": schedule.number, "block": span.summary.block, "kind": span.summary.kind,
        "before": span.summary.before, "tasks": list(span.summary.tasks), "start": span.start,
        "stop": span.stop, "learned": span.learned, "amount": span.amount,
    }  # fmt: skip


def _evaluations(
    study: Study, schedule: Schedule, names: Sequence[str], place: Mapping[str, Any]
) -> list[Record]:
    """Scores of evaluated blocks, those before deployment and in adapt blocks too."""
    found = [_scores(study, n) for n in names]
    tasks = tuple(dict.fromkeys(t for m in found for t in m.tasks))
    blocks = {s.summary.block: i for i, s in enumerate(schedule.spans)}
    values = np.full((len(found), len(blocks), len(tasks)), np.nan)
    for k, matrix in enumerate(found):
        rows = [blocks[b] for b in matrix.blocks]
        columns = [tasks.index(t) for t in matrix.tasks]
        values[k][np.ix_(rows, columns)] = matrix.values
    means, low, high = band(values, study.bounds), _least(values), -_least(-values)
    out = []
    for i, j in np.argwhere(means.n > 0).tolist():
        span = schedule.spans[i]
        out.append(
            {
                **place, "block": span.summary.block, "kind": span.summary.kind, "task": tasks[j],
                "x": (span.start + span.stop) / 2 if span.amount == 0 else span.stop,
                **cell(means, (i, j)), "min": float(low[i, j]), "max": float(high[i, j]),
            }
        )  # fmt: skip
    return out


def _scores(study: Study, name: str) -> Matrix:
    """Every evaluation of a lifetime, as if nothing were before deployment or a probe."""
    history = study.timelines[name].history
    odd = history.adapt | history.before
    if study.measure not in history.columns:
        return Matrix(history.tasks, (), (), np.zeros((0, len(history.tasks))), ())
    if name in study.matrices and not odd.any():
        return study.matrices[name]
    nowhere = np.zeros(len(history), bool)
    return evaluation_matrix(replace(history, adapt=nowhere, before=nowhere), study.measure)


def cell(found: Band, at: tuple[int, ...]) -> Record:
    """One cell of a band as columns of a table."""
    return {
        "mean": float(found.mean[at]), "low": float(found.low[at]), "high": float(found.high[at]),
        "n": int(found.n[at]),
    }  # fmt: skip


def _learning(
    study: Study,
    schedule: Schedule,
    timelines: Sequence[Timeline],
    place: Mapping[str, Any],
    bins: int,
) -> list[Record]:
    """Learning within blocks, by bin."""
    out = []
    for i, span in enumerate(schedule.spans):
        if span.summary.kind == "eval":
            continue
        for task in span.summary.tasks:
            thinned = [
                t for w in timelines if (t := _thinned(w, i, schedule, task, bins)) is not None
            ]
            if not thinned:
                continue
            found = band(np.array([t.mean for t in thinned]), study.bounds)
            low = _least(np.array([t.low for t in thinned]))
            high = -_least(-np.array([t.high for t in thinned]))
            width = (span.stop - span.start) / bins
            for b in np.flatnonzero(found.n).tolist():
                out.append(
                    {
                        **place, "block": span.summary.block, "kind": span.summary.kind, "task": task,
                        "x": span.start + (b + 0.5) * width, **cell(found, (b,)),
                        "min": float(low[b]), "max": float(high[b]),
                    }
                )  # fmt: skip
    return out


def _least(values: Array) -> Array:
    """The least of each column, NaN where there is none."""
    least = np.where(np.isnan(values), np.inf, values).min(axis=0)
    return np.where(np.isinf(least), np.nan, least)


def _thinned(
    timeline: Timeline, i: int, schedule: Schedule, task: str, bins: int
) -> Thinned | None:
    """One task's learning in one block of one lifetime."""
    history = timeline.history
    if i >= len(timeline.rows) or task not in history.tasks:
        return None
    rows = timeline.rows[i]
    own = (history.task[rows] == history.tasks.index(task)) & history.learning[rows]
    own &= history.complete[rows]
    if not own.any():
        return None
    return thin(places(timeline, i, schedule)[own], timeline.values[rows[own]], bins)
