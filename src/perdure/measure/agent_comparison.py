"""Who is compared with whom, and on what: the same in the terminal and in the report.

All metrics that lead × all pairs of agents are one family, corrected together. An agent that acts at
random is no contestant where there are two others, and who never learned most of its tasks does not
compete on how much was kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

from perdure.measure.compare import Comparison, Family, compare_metrics
from perdure.measure.metric import Metric
from perdure.measure.results import Results


def compare_agents(
    results: Results, metrics: Sequence[Metric], *, baseline: str | None = None, level: float = 0.95
) -> Family:
    """The comparisons of the agents on these metrics, or of all with ``baseline``."""
    table = results.table()
    aside = {a for a in results.chance if a != baseline}
    if len(set(results.agents) - aside) < 2:
        aside = set()  # A single agent has nothing but chance to be compared with.
    scores = {}
    for m in metrics:
        out = aside | (set(results.little) if m.keeping else set())
        by_agent = {a: by_seed for a, by_seed in table.get(m.name, {}).items() if a not in out}
        if any(not isnan(v) for by_seed in by_agent.values() for v in by_seed.values()):
            scores[m.name] = by_agent
    found = compare_metrics(scores, baseline=baseline, level=level, bounds=results.bounds)
    # Who was put aside on a metric alone has no test there, and nothing to be said.
    return replace(
        found,
        summaries=tuple(s for s in found.summaries if s.agent in scores[s.metric]),
        comparisons=tuple(
            c for c in found.comparisons if c.a in scores[c.metric] and c.b in scores[c.metric]
        ),
    )


def better_of(c: Comparison, better: str, level: float) -> tuple[str, str] | None:
    """(better agent, other) where the difference holds after correction."""
    if isnan(c.p_holm) or c.p_holm > 1 - level or c.difference.value == 0:
        return None
    high, low = (c.a, c.b) if c.difference.value > 0 else (c.b, c.a)
    return (high, low) if better == "higher" else (low, high)
