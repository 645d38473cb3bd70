"""Learning beside single-task experts'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perdure.show.report.curves import COARSEST, bins_for, cell
from perdure.show.report.numbers import Record, band
from perdure.show.report.study import Study
from perdure.show.thin import thin
from perdure.store.history import History

EXPERT_BINS = 48


def expert_curves(study: Study) -> dict[str, Any]:
    """Each task's learning in the lifetimes, one block after the other, beside its experts'.

    ``curves``: agent, task, who (``lifelong`` or ``expert``), x (steps of learning the task), mean,
    low, high, n. ``scores``: relative performance and sample efficiency of the task.
    """
    curves: list[Record] = []
    scores: list[Record] = []
    for agent in study.agents:
        histories = [study.histories[n] for n in study.of_agent(agent)]
        for task in study.tasks:
            experts = {id(e): e for h in histories for e in h.experts.get(task, ())}
            if not experts or not any(task in h.learned_tasks for h in histories):
                continue
            place = {"agent": agent, "task": task}
            for who, runs in (("lifelong", histories), ("expert", [*experts.values()])):
                curves += _concatenated(study, runs, {**place, "who": who})
            scores.append(place | _task_scores(study, agent, task))
    return {"curves": curves, "scores": scores}


def _concatenated(study: Study, runs: Sequence[History], place: Record) -> list[Record]:
    """All learning of one task, end to end."""
    found, lengths, fits = [], [], []
    for history in runs:
        if place["task"] not in history.tasks or study.measure not in history.columns:
            continue
        own = history.learning & ~history.adapt & ~history.before
        own &= history.task == history.tasks.index(place["task"])
        if not own.any():
            continue
        steps = np.cumsum(history.steps[own])
        values = np.where(history.complete, history.values(study.measure), np.nan)
        found.append((steps, values[own]))
        lengths.append(int(steps[-1]))
        fits.append(bins_for(history.steps[own]))
    if not found:
        return []
    length = max(lengths)
    bins = int(np.clip(np.median(fits), COARSEST, EXPERT_BINS))
    curves = np.array([thin(steps / length, values, bins).mean for steps, values in found])
    means = band(curves, study.bounds)
    return [
        {**place, "x": (b + 0.5) * length / bins, **cell(means, (b,))}
        for b in np.flatnonzero(means.n).tolist()
    ]


def _task_scores(study: Study, agent: str, task: str) -> Record:
    out = {}
    for metric in ("l2m.rp", "l2m.se"):
        scores = study.scores(metric)
        values = [
            scores[n].per_task.get(task, np.nan) for n in study.of_agent(agent) if n in scores
        ]
        there = [v for v in values if not np.isnan(v)]
        out[metric.removeprefix("l2m.")] = float(np.mean(there)) if there else np.nan
        out[f"n_{metric.removeprefix('l2m.')}"] = len(there)
    return out
