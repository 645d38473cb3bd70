"""The check for authors of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np
import pyarrow as pa

from perdure.errors import MeasureError
from perdure.measure.l2m import paper
from perdure.measure.metric import LifetimeData, Metric, Score
from perdure.store.history import History
from perdure.testing.report import CheckFailed, global_rng_untouched

Cell = tuple[int, str, bool, float]


def check_metric(metric: Metric) -> None:
    """Put a metric through small lifetimes; CheckFailed says what is wrong.

    It must give a Score, a reason wherever the value is NaN, the same twice, leave the history as it
    is, and not depend on what tasks are called.
    """
    problems: list[str] = []
    for what, history in _lifetimes().items():
        before = {m: history.values(m).copy() for m in history.columns}
        with global_rng_untouched(metric.name, problems):
            score = _call(metric, history, what, problems)
            again = _call(metric, history, what, problems)
            other = _call(metric, _renamed(history), what, problems)
        if any(not np.array_equal(v, history.values(m), equal_nan=True) for m, v in before.items()):
            problems.append(f"on {what}: it changes the history")
        if score is None or again is None or other is None:
            continue
        if not _same(score.value, again.value):
            problems.append(f"on {what}: {score.value}, and {again.value} when asked again")
        if not _same(score.value, other.value):
            problems.append(f"on {what}: {score.value}, but {other.value} with tasks renamed")
        for task in score.per_task:
            if task not in history.tasks:
                problems.append(
                    f"on {what}: per_task names {task!r}, which is no task of the lifetime"
                )
    if problems:
        raise CheckFailed(f"metric {metric.name}", list(dict.fromkeys(problems)))


def _call(metric: Metric, history: History, what: str, problems: list[str]) -> Score | None:
    options = paper.PaperOptions(measure=history.measure)
    options = replace(options, limits=paper.limits([history], options))
    life = LifetimeData(history, history.measure, lambda h: paper.scores(h, options))
    try:
        found: Any = metric(life)
    except MeasureError:
        return None  # A typed refusal is an answer.
    except Exception as e:
        problems.append(f"on {what}: raised {type(e).__name__}: {e}")
        return None
    if not isinstance(found, Score):
        problems.append(f"on {what}: gave {type(found).__name__}, expected a Score or a number")
        return None
    if isnan(found.value) and "no reason" in found.reason:
        problems.append(f"on {what}: NaN without a reason; return Score(nan, reason=…)")
    return found


def _same(a: float, b: float) -> bool:
    return (isnan(a) and isnan(b)) or abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1e-300)


def _lifetimes() -> dict[str, History]:
    """Small lifetimes, ordinary and odd."""
    usual: list[Cell] = []
    for i, (a, b, c) in enumerate(
        ((0.1, 0.0, 0.2), (0.9, 0.1, 0.2), (0.6, 0.8, 0.3), (0.5, 0.7, 0.9))
    ):
        if i:
            usual += [(2 * i - 1, "abc"[i - 1], True, 0.05 * k) for k in range(20)]
        usual += [(2 * i, t, False, v) for t, v in zip("abc", (a, b, c), strict=True)]
    flat: list[Cell] = [(b, t, learns, 0.5) for b, t, learns, _ in usual]
    holes: list[Cell] = [
        (b, t, n, nan if i % 5 == 0 else v) for i, (b, t, n, v) in enumerate(usual)
    ]
    expert = _history([(0, "a", True, 0.05 * k) for k in range(20)])
    return {
        "an ordinary lifetime": _history(usual),
        "one with an expert": replace(_history(usual), experts={"a": (expert,)}),
        "one of constant performance": _history(flat),
        "one with undefined values": _history(holes),
        "one without evaluations": _history([c for c in usual if c[2]]),
        "one without learning": _history([c for c in usual if not c[2]]),
        "a single evaluation": _history([(0, "a", False, 1.0)]),
        "a single lesson": _history([(0, "a", True, 1.0)]),
    }


def _history(cells: Sequence[Cell]) -> History:
    n = len(cells)
    tasks = tuple(dict.fromkeys(t for _, t, _, _ in cells))
    values = pa.chunked_array([pa.array([c[3] for c in cells], pa.float64())])
    no, yes = np.zeros(n, bool), np.ones(n, bool)
    return History(
        name="check",
        tasks=tasks,
        exp=np.arange(n),
        block=np.array([c[0] for c in cells], np.int32),
        task=np.array([tasks.index(c[1]) for c in cells], np.int32),
        learning=np.array([c[2] for c in cells], bool),
        adapt=no,
        sleep=no,
        before=no,
        complete=yes,
        steps=np.ones(n, np.int64),
        columns={"success": values, "success_end": values, "return": values},
        measure="success",
    )


def _renamed(history: History) -> History:
    names = {t: f"renamed-{len(history.tasks) - i}" for i, t in enumerate(history.tasks)}
    experts = {
        names[t]: tuple(_renamed_to(h, names) for h in runs) for t, runs in history.experts.items()
    }
    return replace(_renamed_to(history, names), experts=experts)


def _renamed_to(history: History, names: dict[str, str]) -> History:
    return replace(history, tasks=tuple(names[t] for t in history.tasks))
