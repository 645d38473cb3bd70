"""What came out: agents × metrics, with intervals, marks of significance, and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from perdure.measure.benchmark import Benchmark
from perdure.measure.compare import FEWEST, Comparison, Family, compare_metrics
from perdure.measure.metric import Metric
from perdure.measure.metric import estimate as mean_with_interval
from perdure.measure.summary import benchmarks_of
from perdure.measure.summary import headline as headline_metrics
from perdure.show.report.numbers import LEVEL, Record, estimate
from perdure.show.report.study import Study

FEW = 9
"""So many metrics are all headlines."""
ADAPTED = ("meta.after", "meta.before")
"""What leads where tasks are adapted to, and no benchmark of theirs says what does."""


def own_benchmarks(study: Study) -> list[Benchmark]:
    """The benchmarks that some of the tasks belong to, in the tasks' order."""
    return benchmarks_of(study.metrics, study.tasks)


def chosen(study: Study) -> list[Metric]:
    """The metrics of the first table: all of a few, else those that lead everywhere. Those that no
    lifetime has come last."""
    if len(study.metrics) <= FEW:
        return list(study.metrics)
    wanted = [m.name for m in headline_metrics(study.metrics, study.tasks)]
    if any(h.adapt.any() for h in study.histories.values()):
        # What counts is then measured after adapting, and only these metrics look there.
        adapted = [b.adapted for b in own_benchmarks(study) if b.adapted] or ADAPTED
        wanted = list(dict.fromkeys([*adapted, *wanted]))
    known = {m.name: m for m in study.metrics}
    found = [known[n] for n in wanted if n in known]
    return sorted(found, key=lambda m: all(isnan(s.value) for s in study.scores(m.name).values()))


def title(metric: Metric) -> str:
    """What people call the metric."""
    if metric.title:
        return metric.title
    name, colon, _ = metric.about.partition(":")
    return name if colon and len(name) < 40 else metric.name


def headline(study: Study) -> dict[str, Any]:
    """The first table.

    ``metrics``: name, title, about, better. ``cells``: one for each metric and agent, with value,
    low, high, n, dropped, reason, notes, the values of the lifetimes, and ``beats``: the agents
    that it is better than after Holm's correction. ``comparisons``: each pair on each metric.
    ``tests``: how many were corrected together; ``untested``: why there are none.
    """
    metrics = chosen(study)
    family = _family(study, metrics)
    better = {m.name: m.better for m in metrics}
    wins = [w for c in family.comparisons if (w := winner(c, better, family.level))]
    comparisons = [_comparison(c, better, family.level) for c in family.comparisons]
    return {
        "level": LEVEL,
        "tests": family.tests,
        "untested": _untested(family),
        "metrics": [_described(m) for m in metrics],
        "cells": cells(study, metrics, wins),
        "comparisons": comparisons,
    }


def everything(study: Study) -> dict[str, Any]:
    """All metrics, without comparisons: so many tests would leave nothing to tell."""
    return {
        "metrics": [_described(m) for m in study.metrics],
        "cells": cells(study, study.metrics, ()),
    }


def _described(metric: Metric) -> Record:
    return {
        "metric": metric.name, "title": title(metric), "about": metric.about,
        "better": metric.better,
    }  # fmt: skip


def _family(study: Study, metrics: Sequence[Metric]) -> Family:
    table = study.results.table()
    defined = {
        m.name: table[m.name]
        for m in metrics
        if any(not isnan(v) for by in table.get(m.name, {}).values() for v in by.values())
    }
    return compare_metrics(defined, level=LEVEL)


def _untested(family: Family) -> str:
    """Why no agents were told apart; empty where tests were made."""
    if family.tests:
        return ""
    if not family.comparisons:
        return "no metric is defined for two agents"
    if all(min(c.difference.n_a, c.difference.n_b) < FEWEST for c in family.comparisons):
        return f"too few lifetimes to test (at least {FEWEST} of each agent)"
    return "nothing varies between lifetimes, so there is nothing to test"


def winner(c: Comparison, better: Mapping[str, str], level: float) -> tuple[str, str, str] | None:
    """(metric, better agent, other) where the difference holds after correction."""
    if isnan(c.p_holm) or c.p_holm > 1 - level or c.difference.value == 0:
        return None
    high, low = (c.a, c.b) if c.difference.value > 0 else (c.b, c.a)
    return (c.metric, high, low) if better[c.metric] == "higher" else (c.metric, low, high)


def _comparison(c: Comparison, better: Mapping[str, str], level: float) -> Record:
    found = winner(c, better, level)
    return {
        "metric": c.metric, "a": c.a, "b": c.b, "value": c.difference.value,
        "low": c.difference.low, "high": c.difference.high, "n_a": c.difference.n_a,
        "n_b": c.difference.n_b, "test": c.difference.method, "effect": c.effect_as_said,
        "effect_name": c.effect.name, "p": c.difference.p, "p_holm": c.p_holm,
        "better": found[1] if found else "", "verdict": c.verdict,
    }  # fmt: skip


def cells(
    study: Study, metrics: Sequence[Metric], wins: Sequence[tuple[str, str, str]]
) -> list[Record]:
    """One record for each metric and agent."""
    out = []
    for metric in metrics:
        scores = study.scores(metric.name)
        for agent in study.agents:
            own = [scores[n] for n in study.of_agent(agent) if n in scores]
            found = mean_with_interval(own, LEVEL)
            reasons = Counter(s.reason for s in own if isnan(s.value))
            notes = Counter(note for s in own for note in s.notes)
            out.append(
                {"metric": metric.name, "agent": agent, **estimate(found)}
                | {
                    "reason": _why(reasons, len(own)) or ("" if own else "no lifetime measured"),
                    "interval": found.reason,
                    "values": [s.value for s in own],
                    "notes": [_of(note, k, len(own)) for note, k in notes.items()],
                    "beats": [b for m, a, b in wins if (m, a) == (metric.name, agent)],
                }
            )
    return out


def _why(reasons: Mapping[str, int], n: int) -> str:
    return "; ".join(_of(reason, k, n) for reason, k in reasons.items())


def _of(text: str, k: int, n: int) -> str:
    return text if k == n else f"{text} ({k} of {n} lifetimes)"
