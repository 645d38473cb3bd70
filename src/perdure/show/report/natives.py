"""Benchmarks' own pictures, for runs of their suites."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np

from perdure.measure.stats import mean_and_error
from perdure.show.report.headline import NATIVE, TITLES, cells, suites
from perdure.show.report.matrices import per_task
from perdure.show.report.numbers import Record
from perdure.show.report.study import Study


def natives(study: Study) -> dict[str, Any]:
    """By suite of the tasks, where it has a picture of its own.

    ``openloris``: agent, axis, value, low, high, n: the four averages of its spider charts.
    ``metaworld``: agent, task, value, low, high, n: success at the last evaluation.
    ``libero``: agent, metric, value, error (standard error over lifetimes), n.
    """
    present = suites(study)
    out: dict[str, Any] = {}
    if "openloris" in present and _measured(study, "openloris"):
        out["openloris"] = _spider(study)
    if "metaworld" in present and _measured(study, "metaworld"):
        out["metaworld"] = per_task(study, "metaworld.success")
    if "libero" in present and _measured(study, "libero"):
        out["libero"] = _table(study, "libero")
    return {suite: found for suite, found in out.items() if found}


def _measured(study: Study, suite: str) -> bool:
    known = {m.name for m in study.metrics}
    return all(n in known for n in NATIVE[suite])


def _spider(study: Study) -> list[Record]:
    metrics = [m for m in study.metrics if m.name in NATIVE["openloris"]]
    keep = ("agent", "value", "low", "high", "n", "reason")
    return [
        {"axis": TITLES[c["metric"]], "metric": c["metric"], **{k: c[k] for k in keep}}
        for c in cells(study, metrics, ())
    ]


def _table(study: Study, suite: str) -> list[Record]:
    out = []
    for metric in NATIVE[suite]:
        scores = study.scores(metric)
        for agent in study.agents:
            own = [scores[n] for n in study.of_agent(agent) if n in scores]
            values = np.array([s.value for s in own if not isnan(s.value)])
            value, error = mean_and_error(values) if len(values) else (np.nan, np.nan)
            reason = next((s.reason for s in own if isnan(s.value)), "")
            if len(values) == 1:
                reason = "n = 1: a standard error needs at least 2 lifetimes"
            out.append(
                {
                    "agent": agent, "metric": metric, "title": TITLES[metric], "value": value,
                    "error": error, "n": len(values), "reason": reason,
                }
            )  # fmt: skip
    return out
