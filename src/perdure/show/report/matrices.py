"""The evaluation matrix, transfer between tasks, and what was forgotten of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan
from typing import Any

import numpy as np

from perdure.arrays import mean
from perdure.measure.metric import Score
from perdure.measure.stats import mean_interval
from perdure.show.report.numbers import LEVEL, Record, band, estimate
from perdure.show.report.study import Study

ROWS = 240
"""Rows of a matrix that are shown; of more, those that end a stage, and others evenly."""


def matrices(study: Study) -> dict[str, Any]:
    """The mean evaluation matrix of each agent in each schedule.

    ``rows``: schedule, agent, row, block, ``fresh`` (the tasks learned since the row before) and
    ``learned`` (how much had been learned). ``cells``: schedule, agent, row, task, value, sd, n.
    """
    rows: list[Record] = []
    cells: list[Record] = []
    for schedule in study.schedules:
        learned = {s.summary.block: s.learned for s in schedule.spans}
        for agent in study.agents:
            names = [n for n in study.of_agent(agent) if n in schedule.names]
            if not names:
                continue
            first = study.matrices[names[0]]
            shown = _shown(len(first.blocks))
            values = np.array([_aligned(study, n, first.tasks, first.blocks) for n in names])
            found = band(values, study.bounds)
            place = {"schedule": schedule.number, "agent": agent}
            past = 0
            for row, i in enumerate(shown):
                fresh = dict.fromkeys(first.learned[i][past:])
                past = len(first.learned[i])
                block = first.blocks[i]
                rows.append(
                    {
                        **place, "row": row, "block": block, "fresh": list(fresh),
                        "learned": learned.get(block, 0.0), "n": len(names),
                    }
                )  # fmt: skip
                for j, task in enumerate(first.tasks):
                    if found.n[i, j]:
                        there = values[:, i, j][~np.isnan(values[:, i, j])]
                        cells.append(
                            {
                                **place, "row": row, "task": task, "value": float(found.mean[i, j]),
                                "sd": float(there.std(ddof=1)) if len(there) > 1 else np.nan,
                                "n": int(found.n[i, j]),
                            }
                        )  # fmt: skip
    return {"rows": rows, "cells": cells}


def _shown(count: int) -> list[int]:
    """Which rows fit: all, or evenly spread with the first and the last."""
    if count <= ROWS:
        return list(range(count))
    return [int(i) for i in np.unique(np.linspace(0, count - 1, ROWS).round())]


def _aligned(study: Study, name: str, tasks: tuple[str, ...], blocks: tuple[int, ...]) -> Any:
    """A lifetime's matrix with the rows and columns of another."""
    matrix = study.matrices[name]
    out = np.full((len(blocks), len(tasks)), np.nan)
    for i, block in enumerate(matrix.blocks):
        for j, task in enumerate(matrix.tasks):
            if block in blocks and task in tasks:
                out[blocks.index(block), tasks.index(task)] = matrix.values[i, j]
    return out


def transfer(study: Study) -> list[Record]:
    """Transfer from source to target task: way (``forward`` or ``backward``), agent, source,
    target, value (contrast), low, high, n."""
    out = []
    for way, metric in (("forward", "l2m.ft"), ("backward", "l2m.bt")):
        scores = study.scores(metric)
        for agent in study.agents:
            names = [n for n in study.of_agent(agent) if n in scores]
            pairs = dict.fromkeys(p for n in names for p in scores[n].pairs)
            for source, target in pairs:
                values = [scores[n].pairs.get((source, target), np.nan) for n in names]
                place = {"way": way, "agent": agent, "source": source, "target": target}
                out.append(place | estimate(mean_interval(values, LEVEL, (-1.0, 1.0))))
    return out


def forgetting(study: Study) -> list[Record]:
    """What is gone of each task at the end of life: agent, task, value, low, high, n. Without who acts
    at random, whose scores rise and fall by chance."""
    chance = study.results.chance
    return [r for r in per_task(study, "summary.forgetting") if r["agent"] not in chance]


def per_task(study: Study, metric: str) -> list[Record]:
    """A metric task by task: agent, task, value, low, high, n, dropped, reason."""
    scores, bounds = study.scores(metric), study.results.bounds.get(metric)
    out = []
    for agent in study.agents:
        found = [_by_task(study, scores[n]) for n in study.of_agent(agent) if n in scores]
        for task in _in_order(study, found):
            values = [per.get(task, np.nan) for per in found]
            if not all(isnan(v) for v in values):
                place = {"metric": metric, "agent": agent, "task": task}
                out.append(place | estimate(mean_interval(values, LEVEL, bounds)))
    return out


def _by_task(study: Study, score: Score) -> dict[str, float]:
    """A lifetime's score by task, the mean over its goals where it has such."""
    groups: dict[str, list[float]] = {}
    for task, value in score.per_task.items():
        groups.setdefault(study.goals.get(task, task), []).append(value)
    return {task: mean(values) for task, values in groups.items()}


def per_stage(study: Study, metric: str) -> list[Record]:
    """A metric by stage of adaptation: agent, task, stage, value, low, high, n, dropped, reason. Task is empty for the
    mean over all; then come the tasks, if there are several."""
    scores, bounds = study.scores(metric), study.results.bounds.get(metric)
    tasks = list(dict.fromkeys(t for s in scores.values() for t in s.stages_by_task))
    out = []
    for task in ("", *(tasks if len(tasks) > 1 else ())):
        for agent in study.agents:
            own = [scores[n] for n in study.of_agent(agent) if n in scores]
            found = [s.stages_by_task.get(task, {}) if task else s.stages for s in own]
            for stage in max(found, key=len, default={}):
                values = [per.get(stage, np.nan) for per in found]
                place = {"metric": metric, "agent": agent, "task": task, "stage": stage}
                out.append(place | estimate(mean_interval(values, LEVEL, bounds)))
    return out


def _in_order(study: Study, found: Iterable[Mapping[str, float]]) -> list[str]:
    there = {t for per in found for t in per}
    return [t for t in study.tasks if t in there]
