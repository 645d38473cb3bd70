"""Everything the page shows, as plain values: one function for each part.

Each takes a :class:`~perdure.show.report.study.Study` and gives tidy tables (lists of records) with
full precision; :func:`page_data` gathers, rounds and packs them. Figures draw from the same
functions::

    from perdure.show.report import data, load

    study = load([Path("runs/demo")], metrics)
    data.lifetime_curves(study)["evaluations"]
"""

from __future__ import annotations

from typing import Any

from perdure.show.colours import Style
from perdure.show.names import task_labels
from perdure.show.report.benchmarks import benchmarks
from perdure.show.report.curves import lifetime_curves, single_lifetimes, tidy
from perdure.show.report.episodes import episodes
from perdure.show.report.experts import expert_curves
from perdure.show.report.facts import method, outline, unmeasured
from perdure.show.report.headline import everything, headline
from perdure.show.report.matrices import forgetting, matrices, transfer
from perdure.show.report.numbers import Record, packed, rounded
from perdure.show.report.spread import distributions, final_scores, improvement, orders, profiles
from perdure.show.report.study import Study

__all__ = [
    "benchmarks",
    "distributions",
    "episodes",
    "everything",
    "expert_curves",
    "final_scores",
    "forgetting",
    "headline",
    "improvement",
    "lifetime_curves",
    "matrices",
    "method",
    "orders",
    "outline",
    "page_data",
    "profiles",
    "single_lifetimes",
    "tidy",
    "transfer",
    "unmeasured",
]  # fmt: skip


def page_data(study: Study) -> dict[str, Any]:
    """What the page's charts are drawn from. Tables are packed by columns."""
    curves, experts, matrix = lifetime_curves(study), expert_curves(study), matrices(study)
    spread, labels, played = distributions(study), task_labels(study.tasks), episodes(study)
    return {
        "measure": study.measure,
        "bounds": study.bounds,
        "tasks": [
            {"name": t, "label": labels[t], **_style(s)} for t, s in study.task_styles.items()
        ],
        "agents": [{"name": a, **_style(s)} for a, s in study.agent_styles.items()],
        "schedules": rounded(curves["schedules"], 6),
        "spans": rounded(curves["spans"], 6),
        "evaluations": packed(curves["evaluations"], 5),
        "learning": packed(curves["learning"], 5),
        "singles": _singles(single_lifetimes(study)),
        "lifetimes": len(study.timelines),
        "experts": packed(experts["curves"]),
        "expert_scores": rounded(experts["scores"]),
        "matrix_rows": rounded(matrix["rows"], 6),
        "matrix_cells": packed(matrix["cells"], 3),
        "transfer": packed(transfer(study), 3),
        "forgetting": packed(forgetting(study)),
        "distributions": packed(spread["values"]),
        "aggregates": rounded(spread["aggregates"]),
        "profiles": packed(profiles(study)),
        "improvement": rounded(improvement(study)),
        "orders": rounded(orders(study)),
        "benchmarks": rounded(benchmarks(study)),
        "played": played["lifetimes"],
        "episodes": packed(played["rows"], 3),
    }


def _style(style: Style) -> dict[str, str]:
    return {"dash": style.dash, "mark": style.mark, "letter": style.letter}


def _singles(found: list[Record]) -> list[dict[str, Any]]:
    """Single lifetimes by schedule: where their points are once, then each one's values; three digits
    do for a line among many."""
    out = []
    for schedule in dict.fromkeys(s["schedule"] for s in found):
        own = [s for s in found if s["schedule"] == schedule]
        evaluations = dict.fromkeys((r["block"], r["task"]) for s in own for r in s["evaluations"])
        learning = dict.fromkeys(
            (r["block"], r["task"], r["x"]) for s in own for r in s["learning"]
        )
        lifetimes = []
        for s in own:
            scores = {(r["block"], r["task"]): r["value"] for r in s["evaluations"]}
            points = {(r["block"], r["task"], r["x"]): r for r in s["learning"]}
            values = {"value": [scores.get(key) for key in evaluations]}
            for name in ("mean", "min", "max"):
                values[name] = [points[key][name] if key in points else None for key in learning]
            about = {k: s[k] for k in ("lifetime", "agent", "seed", "finished")}
            lifetimes.append(about | rounded(values, 3))
        out.append(
            {
                "schedule": schedule,
                "evaluations": packed([{"block": b, "task": t} for b, t in evaluations]),
                "learning": packed([{"block": b, "task": t, "x": x} for b, t, x in learning], 6),
                "lifetimes": lifetimes,
            }
        )
    return out
