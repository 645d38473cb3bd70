"""Numbers that both presets share: window smoothing, the common scale, a robust slope."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Literal

import numpy as np

from perdure.arrays import Array

Window = Literal["flat", "hanning", "hamming", "bartlett", "blackman", "none"]
WINDOWS: tuple[Window, ...] = ("flat", "hanning", "hamming", "bartlett", "blackman", "none")

SCALE, OFFSET = 100.0, 1.0
"""Normalised performance lies in [1, 101]."""

SHARE = 0.2
LONGEST = 100
SHORTEST = 3
"""By default a window is a fifth of the curve, at most 100 samples. The reference smooths nothing
where that is under 3."""


def window_length(n: int, wanted: int | None = None, shortest: int = SHORTEST) -> int:
    """The window for a curve of ``n`` samples; 0 where it is too short to smooth."""
    length = wanted if wanted is not None and n >= wanted else min(int(n * SHARE), LONGEST)
    return length if length >= shortest else 0


def kernel(window: Window, length: int) -> Array:
    """Weights that sum to one."""
    weights = np.ones(length) if window == "flat" else getattr(np, window)(length)
    return np.asarray(weights / weights.sum())


def averages(window: Window, length: int, x: Array) -> Array:
    """The weighted mean of every stretch of ``length`` samples."""
    if window != "flat":
        return np.convolve(kernel(window, length), x, mode="valid")
    # Sums of 1, 2, 4, … samples, each of two of the former, and of them those that make up the
    # length: ten passes for a hundred samples, and smaller rounding.
    count, start, span, sums = len(x) - length + 1, 0, 1, x
    total = np.zeros(count)
    while True:
        if length & span:
            total += sums[start : start + count]
            start += span
        if 2 * span > length:
            return total / length
        sums = sums[:-span] + sums[span:]
        span *= 2


def smooth_reference(x: Array, window: Window = "flat", wanted: int | None = None) -> Array:
    """As l2metrics 3.1.0 smooths: the mirrored curve, a window that lies one sample to the past of
    its centre when even and 1.5 when odd."""
    length = window_length(len(x), wanted)
    if window == "none" or not length:
        return x
    mirrored = np.concatenate([x[length - 1 : 0 : -1], x, x[-2 : -length - 1 : -1]])
    # Not by sums: among equal means, its rounding decides which is the greatest.
    full = np.convolve(kernel(window, length), mirrored, mode="valid")
    offset = int(length / 2 - 1)
    return np.asarray(full[offset : offset + len(x)])


def smooth_centred(x: Array, window: Window = "flat", wanted: int | None = None) -> Array:
    """A window of odd length, centred on each sample, over the curve mirrored at its ends; a
    constant curve stays exactly constant. Short curves are smoothed too: a window of two, which has
    no centre, becomes three."""
    length = window_length(len(x), wanted, shortest=2)
    if window == "none" or not length or np.all(x == x[0]):
        return x
    length = max(length - 1 + length % 2, SHORTEST)
    half = length // 2
    mirrored = np.pad(x, half, mode="reflect")
    smoothed = averages(window, length, mirrored)
    # Rounding must not carry a mean outside of what it is the mean of.
    return np.asarray(np.clip(smoothed, x.min(), x.max()))


def theil_sen(x: Sequence[float], y: Sequence[float]) -> float:
    """The median slope between all pairs of points."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    i, j = np.triu_indices(len(b), 1)
    slopes = np.sort((b[j] - b[i]) / (a[j] - a[i]))
    # Not by np.median: that imports all of numpy.ma.
    if not len(slopes) or np.isnan(slopes[-1]):
        return nan
    return float(slopes[(len(slopes) - 1) // 2] + slopes[len(slopes) // 2]) / 2
