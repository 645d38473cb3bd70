"""Means over lifetimes for many cells at once, and tables in a form that embeds small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from perdure.arrays import Array
from perdure.measure.stats import Bounds, Estimate, bounded_limits, t_quantiles, within

LEVEL = 0.95
DIGITS = 4

Record = dict[str, Any]
"""One row of a tidy table: plain values by column, NaN where undefined."""


class Band(NamedTuple):
    """Cells of means over lifetimes with their intervals; NaN where undefined."""

    mean: Array
    low: Array
    high: Array
    n: Array
    """Lifetimes that have a value there."""


def band(values: Array, bounds: Bounds | None = None) -> Band:
    """Over the first axis, what ``mean_interval`` gives for each cell by itself."""
    there = ~np.isnan(values)
    n = there.sum(axis=0)
    filled = np.where(there, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(n > 0, filled.sum(axis=0) / n, np.nan)
        rest = np.where(there, values - mean, 0.0)
        error = np.sqrt((rest**2).sum(axis=0) / (n - 1) / n)
    if bounds is not None and within(values[there], bounds):
        with np.errstate(invalid="ignore"):
            low, high = bounded_limits(mean, error, n, LEVEL, bounds)
        return Band(mean, np.where(n > 1, low, np.nan), np.where(n > 1, high, np.nan), n)
    half = np.where(n > 1, t_quantiles(n - 1, LEVEL) * error, np.nan)
    return Band(mean, mean - half, mean + half, n)


def estimate(found: Estimate) -> Record:
    """An estimate as columns of a table."""
    return {
        "value": found.value, "low": found.low, "high": found.high, "n": found.n,
        "dropped": found.dropped, "reason": found.reason, "episodes": found.episodes,
    }  # fmt: skip


def rounded(value: Any, digits: int = DIGITS) -> Any:
    """Plain values, floats with few digits, None for what is not finite; mappings and sequences at
    any depth."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, float):
        if not isfinite(value):
            return None
        short = float(f"{value:.{digits}g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    if isinstance(value, Mapping):
        return {str(k): rounded(v, digits) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        # Few different numbers in long lists are the rule: each is rounded once.
        known: dict[Any, Any] = {}
        out = []
        for v in value:
            if type(v) is float:
                if v not in known:
                    known[v] = rounded(v, digits)
                out.append(known[v])
            else:
                out.append(rounded(v, digits))
        return out
    return value


def packed(records: Sequence[Record], digits: int = DIGITS) -> dict[str, Any]:
    """A tidy table by columns: words as codes into their levels, a column of one value once."""
    columns: dict[str, Any] = {}
    for name in records[0] if records else ():
        values = [r[name] for r in records]
        if any(isinstance(v, str) for v in values):
            levels = list(dict.fromkeys(values))
            code = {level: i for i, level in enumerate(levels)}
            columns[name] = {"levels": levels, "codes": [code[v] for v in values]}
        else:
            short = rounded(values, digits)
            alike = all(v == short[0] and type(v) is type(short[0]) for v in short)
            columns[name] = {"all": short[0]} if alike else short
    return {"n": len(records), "columns": columns}
