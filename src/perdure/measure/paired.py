"""Policies on the same episodes: success with its interval, and whether two differ.

Episodes of the same task that were reset with the same seed began alike, so two policies are compared on
each of them: what both solve, or neither does, says nothing about which is better. McNemar's test looks at
the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, sqrt

from perdure.errors import MeasureError
from perdure.measure.stats import Estimate, share_interval

Episodes = Mapping[tuple[str, int, int], float]
"""Success (0 or 1) by task, number and seed of the episode."""
CERTAIN = 0.05
Z = 1.959964 + 0.841621
"""Of a two-sided test at 5 % that finds a difference in four of five cases."""


@dataclass(frozen=True)
class PairedTest:
    """Two policies on the episodes that both played."""

    n: int
    both: int
    first: int
    """Episodes that only the first solved."""
    second: int
    neither: int
    p: float
    """McNemar's exact test, two-sided."""

    @property
    def difference(self) -> float:
        """Success of the first minus that of the second."""
        return (self.first - self.second) / self.n

    @property
    def smallest(self) -> float:
        """The difference that this many episodes would find in four of five cases, where as many of
        them differ as did here."""
        return min(1.0, Z * sqrt(max(self.first + self.second, 1)) / self.n)

    @property
    def doubt(self) -> str:
        """Why the test cannot tell, if it cannot."""
        differing = self.first + self.second
        if 2 * 0.5**differing > CERTAIN:
            return (
                f"only {differing} of {self.n} episodes ended differently, and with fewer than 6 no test "
                "can tell at 5 %"
            )
        if self.p > CERTAIN:
            points = 100 * self.smallest
            return f"{self.n} episodes find differences of about {points:.0f} points and more"
        return ""


def mcnemar(first: Episodes, second: Episodes) -> PairedTest:
    """Compare two policies on the episodes that both played.

    With b and c the episodes that only one of them solved, p = 2 Σ_{i ≤ min(b, c)} C(b+c, i) / 2^(b+c), at
    most 1.
    """
    common = [key for key in first if key in second]
    if not common:
        raise MeasureError(
            "the two played no episode in common: the same tasks, seed and protocol are needed"
        )
    pairs = [(bool(first[k]), bool(second[k])) for k in common]
    b, c = pairs.count((True, False)), pairs.count((False, True))
    tail = sum(comb(b + c, i) for i in range(min(b, c) + 1))
    p = min(1.0, 2 * tail / 2 ** (b + c))
    return PairedTest(len(common), pairs.count((True, True)), b, c, pairs.count((False, False)), p)


def success_by_task(episodes: Episodes) -> dict[str, Estimate]:
    """Each task's share of episodes that succeeded, with its interval."""
    by_task: dict[str, list[float]] = {}
    for (task, _, _), success in episodes.items():
        by_task.setdefault(task, []).append(float(success > 0))
    return {t: share_interval([(sum(s) / len(s), len(s))], 1) for t, s in by_task.items()}


def overall(by_task: Mapping[str, Estimate]) -> Estimate:
    """The mean over tasks, each counted alike."""
    shares: Sequence[tuple[float, int]] = [(e.value, e.episodes or 1) for e in by_task.values()]
    if not shares:
        raise MeasureError("no episode was played to its end")
    return share_interval(shares, 1)
