"""Lifetimes that have not ended: how far each is, and what it scored so far. No number of the report counts
them."""

from __future__ import annotations

from collections import Counter
from math import isnan
from typing import Any

import numpy as np

from perdure.measure.matrix import Matrix, evaluation_matrix
from perdure.show.names import task_labels
from perdure.show.report.hero import place_ends, scale_of
from perdure.show.report.numbers import Record
from perdure.show.report.study import LifetimeSummary, Study

SHOWN = 24
"""Lifetimes that have a row; of more, the rest is counted."""
FIRST = ("running", "interrupted", "failed")
"""What may go on, or has rows that tell how far it came."""


def running(study: Study) -> dict[str, Any]:
    """``lifetimes``: agent, seed, status, doing, block, blocks, fraction, eta, and ``tasks`` with what each
    scored right after learning and at its last evaluation so far. ``more``: how many have no row.
    ``waiting``: agent and how many of its lifetimes have not begun. ``tasks`` and ``scale``: as in
    the first screen."""
    began = [
        life
        for life in study.lifetimes
        if life.status in FIRST
        and not life.expert
        and (life.status == "running" or life.name in study.unfinished)
    ]
    shown = sorted(began, key=lambda x: (FIRST.index(x.status), -_fraction(x)))[:SHOWN]
    matrices = {
        x.name: evaluation_matrix(study.unfinished[x.name], study.measure)
        for x in shown
        if x.name in study.unfinished and study.measure in study.unfinished[x.name].columns
    }
    evaluated = {t for m in matrices.values() for t in m.tasks if not np.all(np.isnan(_of(m, t)))}
    tasks = [t for t in study.tasks if t in evaluated]
    values = [float(v) for m in matrices.values() for v in m.values.ravel() if not isnan(v)]
    scale = study.bounds or scale_of(values)
    return {
        "lifetimes": [_row(study, x, matrices.get(x.name), tasks, scale) for x in shown],
        "more": len(began) - len(shown),
        "waiting": _waiting(study),
        "tasks": tasks,
        "scale": list(scale),
    }


def _fraction(life: LifetimeSummary) -> float:
    return float(life.progress.get("fraction") or 0.0)


def _of(matrix: Matrix, task: str) -> Any:
    return matrix.values[:, matrix.tasks.index(task)]


def _row(
    study: Study,
    life: LifetimeSummary,
    matrix: Matrix | None,
    tasks: list[str],
    scale: tuple[float, float],
) -> Record:
    said, labels = life.progress, task_labels(study.tasks)
    doing = {
        "learn": "learning",
        "eval": "evaluating",
        "adapt": "adapting to",
        "video": "recording",
    }
    what = doing.get(str(said.get("kind")), "")
    named = ", ".join(labels.get(t, t) for t in str(said.get("task") or "").split(", "))
    alive = life.status == "running"
    return {
        "agent": life.agent,
        "seed": life.seed,
        "status": life.status,
        "doing": f"{what} {named}".strip() if alive and what else "",
        "block": int(said.get("block") or 0) + 1,
        "blocks": said.get("blocks"),
        "fraction": _fraction(life),
        "eta": said.get("eta") if alive else None,
        "tasks": [_cell(matrix, t, scale) for t in tasks],
    }


def _cell(matrix: Matrix | None, task: str, scale: tuple[float, float]) -> Record | None:
    """What a task scored right after learning, if it was learned, and at its last evaluation so far."""
    if matrix is None or task not in matrix.tasks:
        return None
    seen = _of(matrix, task)
    seen = seen[~np.isnan(seen)]
    if not len(seen):
        return None
    last = float(seen[-1])
    learned = matrix.acquired_by_task().get(task)
    ends = place_ends(last if learned is None else learned, last, False, scale)
    if learned is None:
        ends["way"] = "yet"
    return {"task": task, "learned": learned, "last": last, "evaluations": len(seen), **ends}


def _waiting(study: Study) -> list[Record]:
    """The lifetimes of each agent that are planned and did not begin."""
    named = {life.name for life in study.lifetimes}
    several = len(study.folders) > 1
    count: Counter[str] = Counter()
    for folder in study.folders:
        for job in folder.jobs:
            if (f"{folder.label}/{job}" if several else job) not in named:
                count[job.partition("/")[0]] += 1
    return [{"agent": agent, "n": n} for agent, n in count.items()]
