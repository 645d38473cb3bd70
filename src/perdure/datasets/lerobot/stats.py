"""Statistics of features, as LeRobot keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.datasets.episodes import is_picture

QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
SAMPLED = 32
"""Pictures of an episode that its statistics are of."""


def stats_of(array: Array) -> dict[str, Array]:
    """Of the numbers of a feature, each for itself; of pictures, of each colour, from 0 to 1."""
    count = len(array)
    if is_picture(array):
        some = array[np.linspace(0, count - 1, min(SAMPLED, count)).astype(int)]
        values, count = some.reshape(-1, 3) / 255.0, len(some)
    else:
        values = array.reshape(count, -1).astype(np.float64)
    found = {
        "min": values.min(0),
        "max": values.max(0),
        "mean": values.mean(0),
        "std": values.std(0),
        "count": np.array([count]),
        **{name: np.quantile(values, q, axis=0) for name, q in QUANTILES.items()},
    }
    if is_picture(array):
        found = {n: v if n == "count" else v.reshape(3, 1, 1) for n, v in found.items()}
    return found


def together(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """The statistics of several episodes as one; quantiles are means of theirs, weighed by length, as
    LeRobot joins them."""
    counts = np.array([float(p["count"][0]) for p in parts])
    weights = counts / counts.sum()

    def mean(name: str) -> Array:
        found: Array = sum(w * p[name] for w, p in zip(weights, parts, strict=True))
        return found

    centre = mean("mean")
    spread = sum(
        w * (p["std"] ** 2 + (p["mean"] - centre) ** 2) for w, p in zip(weights, parts, strict=True)
    )
    return {
        "min": np.min([p["min"] for p in parts], axis=0),
        "max": np.max([p["max"] for p in parts], axis=0),
        "mean": centre,
        "std": np.sqrt(spread),
        "count": np.array([int(counts.sum())]),
        **{name: mean(name) for name in QUANTILES},
    }


def listed(stats: Mapping[str, Array]) -> dict[str, Any]:
    """As plain lists, for JSON."""
    return {name: value.tolist() for name, value in stats.items()}
