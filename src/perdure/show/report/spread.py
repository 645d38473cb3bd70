"""How lifetimes spread: distributions, profiles, who improves on whom, orders of tasks."""

from __future__ import annotations

from itertools import combinations
from math import isnan
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.measure.metric import Metric
from perdure.measure.stats import (
    bootstrap_interval,
    mean_interval,
    performance_profile,
    probability_of_improvement,
)
from perdure.show.report.headline import chosen
from perdure.show.report.numbers import LEVEL, Record, estimate
from perdure.show.report.study import Study

THRESHOLDS = 60


def distributions(study: Study) -> dict[str, Any]:
    """``values``: metric, agent, lifetime, seed, value of each lifetime. ``aggregates``: each
    agent's mean and interquartile mean of the final scores over lifetimes × tasks; none where no agent
    has a final score."""
    values = [
        {
            "metric": m.name, "agent": study.by_name[name].agent, "lifetime": name,
            "seed": study.by_name[name].seed, "value": score.value, "reason": score.reason,
        }
        for m in chosen(study)
        for name, score in study.scores(m.name).items()
    ]  # fmt: skip
    aggregates = []
    for agent, scores in final_scores(study)[1].items():
        means = np.where(np.isnan(scores).any(axis=1), np.nan, scores.mean(axis=1))
        for name, found in (
            ("mean", mean_interval(means, LEVEL, study.bounds)),
            ("IQM", bootstrap_interval(scores, level=LEVEL, bounds=study.bounds)),
        ):
            aggregates.append({"statistic": name, "agent": agent, **estimate(found)})
            aggregates[-1]["method"] = found.method
    if all(isnan(r["value"]) for r in aggregates):
        aggregates = []
    return {"values": values, "aggregates": aggregates}


def final_scores(study: Study) -> tuple[list[str], dict[str, Array]]:
    """The tasks that every lifetime learned, and for each agent the scores at the end of life:
    lifetimes (by seed) × these tasks."""
    learned = [set(h.learned_tasks) for h in study.histories.values()]
    shared = set.intersection(*learned) if learned else set()
    tasks = [t for t in study.tasks if t in shared]
    if not tasks:
        return [], {}
    out = {}
    for agent in study.agents:
        names = study.of_agent(agent)
        if names:
            tables = [study.matrices[n].train_test for n in names]
            out[agent] = np.array([[table.at(-1, t) for t in tasks] for table in tables])
    return tasks, out


def thresholds(study: Study) -> Array:
    """Where profiles are taken: over what the measure can be, else over what was seen; without the
    upper end, which nothing is above."""
    _, scores = final_scores(study)
    seen = np.concatenate([s.ravel() for s in scores.values()]) if scores else np.zeros(0)
    seen = seen[~np.isnan(seen)]
    low, high = study.bounds or (
        (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
    )
    return np.linspace(low, high, THRESHOLDS, endpoint=False)


def profiles(study: Study) -> list[Record]:
    """The share of final scores above a threshold: agent, threshold, share, low, high, n. An agent
    without a final score has none."""
    at = thresholds(study)
    out = []
    for agent, scores in final_scores(study)[1].items():
        found = performance_profile(scores, at, LEVEL)
        if not found.n:
            continue
        for tau, share, low, high in zip(
            found.thresholds, found.value, found.low, found.high, strict=True
        ):
            row = {"agent": agent, "threshold": tau, "share": share, "low": low, "high": high}
            out.append({**row, "n": found.n, "dropped": found.dropped})
    return out


def improvement(study: Study) -> list[Record]:
    """The probability that a lifetime of A ends above one of B, mean over tasks: a, b, value, low,
    high, n, paired, method. Pairs are by seed where both agents have the same seeds. None where no
    pair has a value. Who acts at random is no contestant where there are two others."""
    _, scores = final_scores(study)
    contestants = {a: s for a, s in scores.items() if a not in study.results.chance}
    scores = contestants if len(contestants) > 1 else scores
    out = []
    for a, b in combinations(scores, 2):
        seeds = [[study.by_name[n].seed for n in study.of_agent(agent)] for agent in (a, b)]
        paired = seeds[0] == seeds[1] and None not in seeds[0]
        found = probability_of_improvement(scores[a], scores[b], paired=paired, level=LEVEL)
        row = {"a": a, "b": b, **estimate(found), "paired": paired, "method": found.method}
        out.append(row)
    return [] if all(isnan(r["value"]) for r in out) else out


def orders(study: Study) -> list[Record]:
    """Metrics by the order in which tasks were learned, where orders differ: agent (as its run
    calls it), order, metric, value, low, high, n."""
    order_of = {
        n: tuple(t for t in c.order)
        for c in study.schedules
        for n in c.names
        if n in study.histories
    }
    distinct = list(dict.fromkeys(order_of.values()))
    if len(distinct) < 2:
        return []
    out = []
    for metric in chosen(study):
        out += _by_order(study, metric, order_of, distinct)
    return out


def _by_order(
    study: Study,
    metric: Metric,
    order_of: dict[str, tuple[str, ...]],
    distinct: list[tuple[str, ...]],
) -> list[Record]:
    scores, bounds = study.scores(metric.name), study.results.bounds.get(metric.name)
    groups: dict[tuple[str, int], list[float]] = {}
    for name, score in scores.items():
        place = (study.by_name[name].base, distinct.index(order_of[name]))
        groups.setdefault(place, []).append(score.value)
    return [
        {
            "metric": metric.name, "agent": base, "order": number,
            "tasks": list(distinct[number]), **estimate(mean_interval(values, LEVEL, bounds)),
        }
        for (base, number), values in sorted(groups.items())
        if not all(map(isnan, values))
    ]  # fmt: skip
