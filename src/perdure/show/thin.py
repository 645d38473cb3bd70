"""Many experiences in few points, without hiding a spike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from perdure.arrays import Array


class Thinned(NamedTuple):
    """One value a bin; NaN where a bin is empty."""

    mean: Array
    low: Array
    """The least value: however thin a downward spike, it is here."""
    high: Array
    n: Array
    """Experiences in each bin."""


def thin(at: Array, values: Array, bins: int) -> Thinned:
    """Values at places in (0, 1] in ``bins`` equal bins, each closed on the right; NaN values are
    left out."""
    kept = ~np.isnan(values)
    at, values = at[kept], values[kept]
    # A place on an edge ends its bin; rounding must not move it into the next one.
    bin_of = np.clip(np.ceil(at * bins - 1e-9).astype(np.int64) - 1, 0, bins - 1)
    n = np.bincount(bin_of, minlength=bins)
    full = n > 0
    mean = np.full(bins, np.nan)
    mean[full] = np.bincount(bin_of, values, minlength=bins)[full] / n[full]
    low, high = np.full(bins, np.inf), np.full(bins, -np.inf)
    np.minimum.at(low, bin_of, values)
    np.maximum.at(high, bin_of, values)
    low[~full] = high[~full] = np.nan
    return Thinned(mean, low, high, n)
