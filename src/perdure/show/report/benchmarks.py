"""Results as the benchmarks show them, for runs of their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from perdure.measure.benchmark import Benchmark
from perdure.measure.metric import Metric
from perdure.measure.stats import mean_and_error
from perdure.show.report.headline import cells, own_benchmarks, title
from perdure.show.report.matrices import per_stage, per_task
from perdure.show.report.numbers import Record
from perdure.show.report.study import Study


def benchmarks(study: Study) -> list[Record]:
    """The benchmarks whose tasks and leading metrics are there.

    ``suite``, ``title``, ``about``, ``picture``, ``bounds``; ``metrics``: name, title and better of
    the leading ones; ``published``: algorithm, metric, value; and ``rows``, for picture

    ``spider``: agent, axis, metric, value, low, high, n, reason.
    ``bars``: agent, task, value, low, high, n of the first metric.
    ``stages``: agent, task (empty: all), stage, value, low, high, n of the first metric.
    ``table``: agent, metric, title, value, error (standard error over lifetimes), n.
    """
    known = {m.name: m for m in study.metrics}
    out = []
    for benchmark in own_benchmarks(study):
        leads = [known[n] for n in benchmark.leads if n in known]
        rows = _rows(study, benchmark, leads) if len(leads) == len(benchmark.leads) else []
        if rows:
            out.append(
                {
                    "suite": benchmark.suite, "title": benchmark.title, "about": benchmark.about,
                    "picture": benchmark.picture, "bounds": benchmark.bounds,
                    "metrics": [
                        {"metric": m.name, "title": title(m), "better": m.better} for m in leads
                    ],
                    "published": [
                        {"algorithm": a, "metric": m, "value": v}
                        for a, row in benchmark.published.items() for m, v in row.items()
                    ],
                    "rows": rows,
                }
            )  # fmt: skip
    return out


def _rows(study: Study, benchmark: Benchmark, leads: Sequence[Metric]) -> list[Record]:
    if benchmark.picture == "spider":
        return _spider(study, leads)
    if benchmark.picture == "bars":
        return per_task(study, leads[0].name)
    if benchmark.picture == "stages":
        return per_stage(study, leads[0].name)
    return _table(study, leads)


def _spider(study: Study, metrics: Sequence[Metric]) -> list[Record]:
    titles = {m.name: title(m) for m in metrics}
    keep = ("agent", "value", "low", "high", "n", "reason")
    return [
        {"axis": titles[c["metric"]], "metric": c["metric"], **{k: c[k] for k in keep}}
        for c in cells(study, metrics, ())
    ]


def _table(study: Study, metrics: Sequence[Metric]) -> list[Record]:
    out = []
    for metric in metrics:
        scores = study.scores(metric.name)
        for agent in study.agents:
            own = [scores[n] for n in study.of_agent(agent) if n in scores]
            values = np.array([s.value for s in own if not isnan(s.value)])
            value, error = mean_and_error(values) if len(values) else (np.nan, np.nan)
            reason = next((s.reason for s in own if isnan(s.value)), "")
            if len(values) == 1:
                reason = "n = 1: a standard error needs at least 2 lifetimes"
            out.append(
                {
                    "agent": agent, "metric": metric.name, "title": title(metric), "value": value,
                    "error": error, "n": len(values), "reason": reason,
                }
            )  # fmt: skip
    return out
