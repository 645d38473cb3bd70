"""What came out: agents × metrics, with intervals, marks of significance, and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from perdure.measure.agent_comparison import better_of, compare_agents
from perdure.measure.benchmark import Benchmark
from perdure.measure.compare import Comparison
from perdure.measure.l2m import CORE
from perdure.measure.metric import Metric
from perdure.measure.metric import estimate as mean_with_interval
from perdure.measure.summary import benchmarks_of, distinct
from perdure.show.measured import ranked, significant, untested
from perdure.show.names import task_labels
from perdure.show.report.numbers import LEVEL, Record, estimate
from perdure.show.report.study import Study
from perdure.show.rounding import bounded_places

FEW = 9
"""So many metrics are all headlines."""


def own_benchmarks(study: Study) -> list[Benchmark]:
    """The benchmarks that some of the tasks belong to, in the tasks' order."""
    return benchmarks_of(study.metrics, study.tasks)


def chosen(study: Study) -> list[Metric]:
    """The metrics of the first table: all of a few, else those that lead everywhere; without those that
    no lifetime has, and those that say the same as another."""
    few = len(study.metrics) <= FEW
    names = [m.name for m in study.metrics] if few else study.results.headline
    known = {m.name: m for m in study.metrics}
    return [known[n] for n in distinct(names, [x.scores for x in study.results.lifetimes])]


def without_value(study: Study) -> list[Record]:
    """The core metrics, or all of a few, that no lifetime has, with the reason."""
    out: list[Record] = []
    first = ("summary.final", "summary.forgetting", *CORE)
    leads = [m.name for m in study.metrics] if len(study.metrics) <= FEW else first
    for m in study.metrics:
        scores = study.scores(m.name).values()
        if m.name in leads and all(isnan(s.value) for s in scores):
            reasons = Counter(s.reason for s in scores)
            if reasons:
                out.append({**_described(m), "reason": _why(reasons, len(scores))})
    return out


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
    family = compare_agents(study.results, metrics, level=LEVEL)
    better = {m.name: m.better for m in metrics}
    wins = [
        (c.metric, *found)
        for c in family.comparisons
        if (found := better_of(c, better[c.metric], family.level))
    ]
    comparisons = [_comparison(c, better, family.level) for c in family.comparisons]
    return {
        "level": LEVEL,
        "tests": family.tests,
        "untested": untested(family),
        "significant": significant(family, better, {m.name: title(m).lower() for m in metrics}),
        "without": without_value(study),
        "agents": _ranked(study, metrics),
        "metrics": [_described(m, study.measure) for m in metrics],
        "cells": cells(study, metrics, wins),
        "comparisons": comparisons,
    }


def everything(study: Study) -> dict[str, Any]:
    """All metrics, without comparisons: so many tests would leave nothing to tell."""
    return {
        "metrics": [_described(m, study.measure) for m in study.metrics],
        "cells": cells(study, study.metrics, ()),
    }


def _described(metric: Metric, measure: str = "") -> Record:
    name, colon, rest = metric.about.partition(": ")
    plain = rest[:1].upper() + rest[1:] if colon and name == title(metric) else metric.about
    return {
        "metric": metric.name, "title": title(metric), "about": metric.about, "plain": plain,
        "better": metric.better, "unit": metric.unit_with(measure),
        "places": bounded_places(metric.bounds_with(measure)),
    }  # fmt: skip


def _ranked(study: Study, metrics: Sequence[Metric]) -> list[str]:
    """The agents, the best on the first metric first; those without a measured lifetime last."""
    first = metrics[0] if metrics else None
    order = ranked(study.results, first.name, first.better) if first else []
    return [*order, *(a for a in study.agents if a not in order)]


def _comparison(c: Comparison, better: Mapping[str, str], level: float) -> Record:
    found = better_of(c, better[c.metric], level)
    return {
        "metric": c.metric, "a": c.a, "b": c.b, "value": c.difference.value,
        "low": c.difference.low, "high": c.difference.high, "n_a": c.difference.n_a,
        "n_b": c.difference.n_b, "test": c.difference.method, "effect": c.effect_as_said,
        "effect_name": c.effect.name, "p": c.difference.p, "p_holm": c.p_holm,
        "better": found[0] if found else "", "verdict": c.verdict,
    }  # fmt: skip


def cells(
    study: Study, metrics: Sequence[Metric], wins: Sequence[tuple[str, str, str]]
) -> list[Record]:
    """One record for each metric and agent."""
    out = []
    raw = _raw(study)
    for metric in metrics:
        scores = study.scores(metric.name)
        changes = metric.keeping or metric.name == "summary.final"
        for agent in study.agents:
            own = [scores[n] for n in study.of_agent(agent) if n in scores]
            found = mean_with_interval(own, LEVEL, study.results.bounds.get(metric.name))
            reasons = Counter(s.reason for s in own if isnan(s.value))
            notes = Counter(note for s in own for note in s.notes)
            out.append(
                {"metric": metric.name, "agent": agent, **estimate(found)}
                | {
                    "reason": _why(reasons, len(own)) or ("" if own else "no lifetime measured"),
                    "interval": found.reason,
                    "values": [s.value for s in own],
                    "raw": raw.get(agent, []) if changes else [],
                    "notes": [_of(note, k, len(own)) for note, k in notes.items()],
                    "beats": [b for m, a, b in wins if (m, a) == (metric.name, agent)],
                }
            )
    return out


def _raw(study: Study) -> dict[str, list[str]]:
    """For each agent: what every task scored right after learning, and at the end."""
    labels = task_labels(study.tasks)
    return {
        a.agent: [
            f"{labels[t.task]}: {t.learned.value:.2f} → {t.kept.value:.2f}"
            + (" (never learned)" if t.never else "")
            for t in a.tasks
        ]
        for a in study.results.kept
    }


def _why(reasons: Mapping[str, int], n: int) -> str:
    return "; ".join(_of(reason, k, n) for reason, k in reasons.items())


def _of(text: str, k: int, n: int) -> str:
    return text if k == n else f"{text} ({k} of {n} lifetimes)"
