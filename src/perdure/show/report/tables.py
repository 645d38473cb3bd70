"""Tables of the page: numbers in words, small plots, columns that line up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from perdure.show.report.numbers import Record, rounded
from perdure.show.rounding import column_places, number

__all__ = [
    "benchmark_tables",
    "number",
    "order_table",
    "small_plot",
    "spread_cells",
    "table",
]

WIDTH, PAD = 112.0, 5.0
"""Of the small plots, in the template's units."""


def table(found: Mapping[str, Any]) -> list[Record]:
    """Metrics with their cells by agent and the scale of their small plots."""
    out = []
    for metric in found["metrics"]:
        cells = [c for c in found["cells"] if c["metric"] == metric["metric"]]
        seen = [
            v
            for c in cells
            for v in (*c["values"], c["low"], c["high"])
            if isfinite(v)
        ]  # fmt: skip
        scale = (min(seen), max(seen)) if seen else (0.0, 1.0)
        places = metric["places"] or column_places(None, spans(cells))
        drawn = {c["agent"]: small_plot(c, scale) | {"places": places} for c in cells}
        out.append({**metric, "cells": drawn})
    return out


def spans(cells: Sequence[Record]) -> list[tuple[float, float]]:
    """The intervals of cells."""
    return [(c["low"], c["high"]) for c in cells]


def small_plot(cell: Record, scale: tuple[float, float]) -> Record:
    """The cell with the places of its small plot."""
    low, high = scale
    width = WIDTH - 2 * PAD

    def at(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(PAD + share * width, 1)

    dots = [at(v) for v in cell["values"] if isfinite(v)]
    ends = [at(cell["low"]), at(cell["high"])] if isfinite(cell["low"]) else None
    mean = at(cell["value"]) if isfinite(cell["value"]) else None
    zero = at(0.0) if low < 0 < high else None
    return {**cell, "dots": dots, "ends": ends, "mean": mean, "zero": zero}


def order_table(records: Sequence[Record]) -> dict[str, Any]:
    """Orders compared: rows of agent and order, a column a metric."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for r in records:
        row = rows.setdefault(
            (r["agent"], r["order"]),
            {"agent": r["agent"], "order": r["order"], "tasks": r["tasks"], "cells": {}},
        )
        row["cells"][r["metric"]] = r
    orders = {r["order"]: r["tasks"] for r in records}
    by_metric: dict[str, list[Record]] = {}
    for r in records:
        by_metric.setdefault(r["metric"], []).append(r)
    return {
        "rows": list(rows.values()),
        "metrics": {metric: column_places(None, spans(own)) for metric, own in by_metric.items()},
        "orders": [orders[k] for k in sorted(orders)],
    }


def benchmark_tables(found: Record) -> Record:
    """What the page's text shows of a benchmark: its own table (agents down, metrics across) where
    that is its picture, and what was published."""
    table: dict[str, dict[str, Record]] = {}
    for r in found["rows"] if found["picture"] == "table" else ():
        table.setdefault(r["agent"], {})[r["metric"]] = r
    published: dict[str, dict[str, float]] = {}
    for r in found["published"]:
        published.setdefault(r["algorithm"], {})[r["metric"]] = r["value"]
    keep = ("title", "about", "metrics")
    return {**{k: found[k] for k in keep}, "table": table, "published": published}


def spread_cells(head: Mapping[str, Any]) -> Any:
    """The means and intervals that go with the distributions."""
    keep = ("metric", "agent", "value", "low", "high", "n", "dropped", "reason")
    cells = [{k: c[k] for k in keep} for c in head["cells"]]
    return rounded({"metrics": head["metrics"], "cells": cells})
