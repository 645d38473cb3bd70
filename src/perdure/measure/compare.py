"""Agents compared over lifetimes: differences, effect sizes, Holm's correction, verdicts.

Lifetimes of two agents under the same seed saw the same tasks in the same order, so they are
compared in pairs where every seed is shared. What a verdict claims is corrected for the number of
tests in its whole family: all metrics × all pairs of agents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp, isnan, lgamma, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from perdure.arrays import Array
from perdure.errors import MeasureError, UnknownName
from perdure.measure.stats import (
    LARGEST,
    Bounds,
    Estimate,
    both_samples,
    check_level,
    mean_and_error,
    mean_interval,
    t_quantile,
)
from perdure.store.plain import plain

FEWEST = 3
"""Pairs, or lifetimes on each side, below which ``compare`` gives no verdict."""
STILL = 1e-12
"""Scores that differ by less than this share of the largest of them differ by rounding alone."""


@dataclass(frozen=True)
class Difference:
    """Mean of A minus mean of B."""

    value: float
    low: float
    high: float
    p: float
    """Two-sided; NaN where the test is undefined."""
    t: float
    df: float
    n_a: int
    n_b: int
    dropped: int
    """Pairs, or lifetimes of both sides, left out because a score is undefined."""
    paired: bool
    method: str
    reason: str = ""


@dataclass(frozen=True)
class Effect:
    """A difference in units of standard deviations; ``name`` says of which."""

    value: float
    name: str
    n_a: int
    n_b: int
    reason: str = ""


@dataclass(frozen=True)
class Summary:
    """One agent on one metric."""

    metric: str
    agent: str
    estimate: Estimate


@dataclass(frozen=True)
class Comparison:
    """Agents A and B on one metric."""

    metric: str
    a: str
    b: str
    difference: Difference
    effect: Effect
    p_holm: float
    """``difference.p`` corrected over the whole family."""
    verdict: str

    @property
    def effect_as_said(self) -> float:
        """The effect in the verdict's direction, which names the higher agent first."""
        return -self.effect.value if self.difference.value < 0 else self.effect.value


@dataclass(frozen=True)
class Family:
    """Comparisons whose p values are corrected together."""

    level: float
    baseline: str | None
    tests: int
    """How many p values were corrected together."""
    summaries: tuple[Summary, ...]
    comparisons: tuple[Comparison, ...]

    def as_dict(self) -> dict[str, Any]:
        """For strict JSON: undefined numbers are None."""
        out: dict[str, Any] = plain(self)
        return out


def _scaled(a: ArrayLike, b: ArrayLike, paired: bool) -> tuple[Array, Array, float, int]:
    """One score a lifetime, divided by the largest so that squares neither overflow nor vanish;
    that largest; and how many were left out."""
    left, right, dropped = both_samples(a, b, paired)
    if left.ndim != 1:
        raise MeasureError(f"scores of shape {left.shape}: average over tasks first")
    scale = float(np.abs(np.concatenate([left, right, [0.0]])).max()) or 1.0
    return left / scale, right / scale, scale, dropped


def _still(x: Array) -> bool:
    """Whether scaled scores vary by no more than rounding."""
    return bool(np.ptp(x) <= STILL)


def difference(
    a: ArrayLike, b: ArrayLike, *, paired: bool = False, level: float = 0.95
) -> Difference:
    """Mean of ``a`` − mean of ``b`` with the interval and p value of the paired t test, or of
    Welch's.

    Where nothing varies no test is defined: the interval has no width, p is NaN, and ``reason``
    says whether the scores are identical or differ.
    """
    check_level(level)
    left, right, scale, dropped = _scaled(a, b, paired)
    n_a, n_b = len(left), len(right)
    method = "paired t" if paired else "Welch t"
    out = Difference(nan, nan, nan, nan, nan, nan, n_a, n_b, dropped, paired, method)
    if min(n_a, n_b) == 0:
        return replace(out, reason=f"n = {n_a} and {n_b}: a difference needs lifetimes of both")
    samples = [np.sort(left - right)] if paired else [left, right]
    moments = [mean_and_error(x) for x in samples]
    value = moments[0][0] - (0.0 if paired else moments[1][0])
    if min(n_a, n_b) == 1:
        reason = f"n = {n_a} and {n_b}: a test needs at least 2 lifetimes of each"
        return replace(out, value=value * scale, reason=reason)
    if all(_still(x) for x in samples):
        same = abs(value) <= STILL
        reason = f"the scores {'are identical' if same else 'differ'} and nothing varies: no test"
        value = 0.0 if same else value * scale
        return replace(out, value=value, low=value, high=value, reason=reason)
    squares = np.array([error**2 for _, error in moments])
    shares = squares / squares.sum()
    df = float(1 / (shares**2 / [len(x) - 1 for x in samples]).sum())
    error = sqrt(squares.sum())
    half = t_quantile(df, level) * error
    low, high = (value - half) * scale, (value + half) * scale
    t = value / error
    return replace(out, value=value * scale, low=low, high=high, p=_two_sided(t, df), t=t, df=df)


def _two_sided(t: float, df: float) -> float:
    """The probability of a t at least as far from 0."""
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(t)))


def _small_sample(df: int) -> float:
    """Hedges' exact factor, which takes the bias out of a standardised difference."""
    return exp(lgamma(df / 2) - lgamma((df - 1) / 2)) / sqrt(df / 2)


def effect_size(a: ArrayLike, b: ArrayLike, *, paired: bool = False) -> Effect:
    """The difference of means in standard deviations, with Hedges' small-sample correction.

    Unpaired: Hedges' g, in pooled standard deviations of the scores. Paired: d_z, in standard
    deviations of the differences; the two are not on one scale.
    """
    left, right, _, _ = _scaled(a, b, paired)
    n_a, n_b = len(left), len(right)
    name = "d_z (Hedges-corrected)" if paired else "Hedges' g"
    df = n_a - 1 if paired else n_a + n_b - 2
    if df < 2 or min(n_a, n_b) < 1:
        sizes = f"{n_a} pairs" if paired else f"{n_a} and {n_b}"
        reason = f"n = {sizes}: the corrected effect size needs more lifetimes"
        return Effect(nan, name, n_a, n_b, reason)
    samples = [left - right] if paired else [left, right]
    if all(_still(x) for x in samples):
        return Effect(nan, name, n_a, n_b, "nothing varies: there is no standard deviation")
    pooled = sqrt(sum(float(((x - x.mean()) ** 2).sum()) for x in samples) / df)
    value = float(left.mean() - right.mean()) / pooled * _small_sample(df)
    return Effect(value, name, n_a, n_b)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down adjusted p values; NaN stays NaN and is not counted as a test."""
    p = np.asarray(p_values, dtype=float)
    if np.any((p < 0) | (p > 1)):
        raise MeasureError(f"p values {list(p_values)}: each must be between 0 and 1, or NaN")
    order = np.argsort(p, kind="stable")[: int((~np.isnan(p)).sum())]
    steps = p[order] * np.arange(len(order), 0, -1)
    out = np.full(len(p), nan)
    out[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return tuple(out.tolist())


Scores = Mapping[str, Mapping[int, float]]
"""Agent → seed → score of that lifetime; NaN where the score is undefined."""


def compare(
    scores: Scores, *, metric: str = "score", baseline: str | None = None, level: float = 0.95
) -> Family:
    """``compare_metrics`` of one metric."""
    return compare_metrics({metric: scores}, baseline=baseline, level=level)


def compare_metrics(
    scores: Mapping[str, Scores],
    *,
    baseline: str | None = None,
    level: float = 0.95,
    bounds: Mapping[str, Bounds] | None = None,
) -> Family:
    """Each agent's mean, and each pair of agents (or each agent and ``baseline``) on each metric.

    A pair is compared by the paired t test when both agents have the same seeds and at least two
    of these have a score on both sides, else by Welch's test. Holm's correction runs over all
    metrics × pairs together; a difference is claimed when the corrected p is at most 1 − level.

    Too few to tell: fewer than 3 pairs, or fewer than 3 lifetimes on a side. With two, one degree
    of freedom carries the whole test: the limits are 12.7 standard errors wide, and normality
    cannot be judged. Such a comparison keeps its interval and has no p value, so that it does not
    count in the correction. Scores that do not vary are told apart before that, from two on.

    ``bounds`` says what the values of some metrics lie between: no interval reaches beyond that, nor
    one of a difference beyond what two such values can differ by.
    """
    check_level(level)
    limits = bounds or {}
    agents = list(dict.fromkeys(agent for by_agent in scores.values() for agent in by_agent))
    if baseline is not None and baseline not in agents:
        raise UnknownName("baseline", baseline, agents, f"Agents here: {', '.join(agents)}.")
    pairs = list(combinations(agents, 2))
    if baseline is not None:
        pairs = [(agent, baseline) for agent in agents if agent != baseline]
    for metric, by_agent in scores.items():
        for agent, by_seed in by_agent.items():
            for seed, score in by_seed.items():
                if abs(score) > LARGEST:
                    raise MeasureError(
                        f"{metric} of {agent} under seed {seed} is {score}: give a finite score, "
                        "or NaN where it is undefined"
                    )
    summaries = tuple(
        Summary(
            metric,
            agent,
            mean_interval(list(by_agent.get(agent, {}).values()), level, limits.get(metric)),
        )
        for metric, by_agent in scores.items()
        for agent in agents
    )
    found = [
        (
            metric,
            a,
            b,
            *_contrast(by_agent.get(a, {}), by_agent.get(b, {}), level, limits.get(metric)),
        )
        for metric, by_agent in scores.items()
        for a, b in pairs
    ]
    raw = [differ.p for _, _, _, differ, _ in found]
    tests = sum(not isnan(p) for p in raw)
    comparisons = tuple(
        Comparison(metric, a, b, differ, effect, p, _verdict(a, b, differ, p, tests, level))
        for (metric, a, b, differ, effect), p in zip(found, holm(raw), strict=True)
    )
    return Family(level, baseline, tests, summaries, comparisons)


def _contrast(
    a: Mapping[int, float], b: Mapping[int, float], level: float, bounds: Bounds | None
) -> tuple[Difference, Effect]:
    """Two agents on one metric, in pairs where their seeds allow it. The test's interval is cut to what
    two values can differ by, which takes nothing from what it covers."""
    shared = sum(not isnan(a[seed]) and not isnan(b[seed]) for seed in a.keys() & b.keys())
    paired = a.keys() == b.keys() and shared >= 2
    x, y = list(a.values()), [b[seed] for seed in (a if paired else b)]
    differ = difference(x, y, paired=paired, level=level)
    if bounds is not None:
        most = bounds[1] - bounds[0]
        low, high = (float(np.clip(v, -most, most)) for v in (differ.low, differ.high))
        differ = replace(differ, low=low, high=high)
    if _too_few(differ):
        differ = replace(differ, p=nan, reason=f"{_sizes(differ)} are too few to tell")
    return differ, effect_size(x, y, paired=paired)


def _too_few(differ: Difference) -> bool:
    """The rule of ``compare_metrics``; scores that do not vary (no t) need two lifetimes only."""
    return min(differ.n_a, differ.n_b) < (2 if isnan(differ.t) else FEWEST)


def _sizes(differ: Difference) -> str:
    """How many lifetimes a difference rests on."""
    n = f"{differ.n_a} pairs" if differ.paired else f"{differ.n_a} and {differ.n_b} lifetimes"
    return f"n = {n}" + (f" ({differ.dropped} undefined left out)" if differ.dropped else "")


def _verdict(a: str, b: str, differ: Difference, p_holm: float, tests: int, level: float) -> str:
    """What can be said of A and B, in one sentence."""
    if _too_few(differ):
        return f"{differ.reason}: at least {FEWEST} {'pairs' if differ.paired else 'of each'} are needed"
    if differ.value < 0:
        a, b = b, a
        differ = replace(differ, value=-differ.value, low=-differ.high, high=-differ.low)
    if isnan(p_holm):
        if differ.value == 0:
            return f"{a} and {b} are identical in every lifetime, {_sizes(differ)}"
        by = f"{_number(differ.value)} in every {'pair' if differ.paired else 'lifetime'}"
        return (
            f"{a} is higher than {b} by {by}, {_sizes(differ)}; nothing varies, so p is undefined"
        )
    span = f"{_number(differ.value)} [{_number(differ.low)}, {_number(differ.high)}]"
    facts = f"{_sizes(differ)}, Holm p {'< 0.001' if p_holm < 0.001 else f'= {p_holm:.3g}'}"
    if p_holm <= 1 - level:
        return f"{a} is higher than {b} by {span}, {facts}"
    after = f" after correction for {tests} tests" if differ.p <= 1 - level else ""
    return f"no difference can be told{after}: {a} − {b} = {span}, {facts}"


def _number(x: float) -> str:
    """Three significant digits, without an exponent for scores in the thousands."""
    return f"{x + 0.0:.0f}" if 1000 <= abs(x) < 1e6 else f"{x + 0.0:.3g}"
