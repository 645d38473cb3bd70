"""How far a run is, and how long the rest of it takes, from how long its lifetimes took so far.

Lifetimes of one agent take about as long as each other; those of another may take ten times that. So each
agent has a length of its own: what its finished lifetimes took, else what its running ones expect. The rest
is dealt out to as many workers as are at work now.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from perdure.store.places import place_of

NEARLY = 0.95
"""Who has taken this share of what others took goes by its own reckoning."""


@dataclass(frozen=True)
class JobTime:
    """One lifetime of a run at one moment."""

    id: str
    weight: float
    """Its planned length, beside those of others."""
    spent: float = 0.0
    """Seconds that it was worked on."""
    left: float | None = None
    """Seconds that it expects to take yet; None where it does not know."""
    running: bool = False
    over: bool = False
    """Whether it is done, or will not go on by itself."""

    @property
    def kind(self) -> tuple[str, str]:
        """Lifetimes that are alike: the agent, and of a single-task expert its task."""
        place = place_of(self.id)
        return (place.agent, place.task) if place is not None else (self.id, "")


def remaining(jobs: Sequence[JobTime]) -> dict[str, float]:
    """Seconds that each lifetime takes yet; empty where nothing is known of any."""
    done: dict[tuple[str, str], list[float]] = {}
    guess: dict[tuple[str, str], list[float]] = {}
    for job in jobs:
        if job.over and job.spent > 0:
            done.setdefault(job.kind, []).append(job.spent)
        elif job.left is not None:
            guess.setdefault(job.kind, []).append(job.spent + job.left)
    known = {kind: fmean(found) for kind, found in {**guess, **done}.items()}
    if not known:
        return {}
    weight = {job.kind: job.weight for job in jobs}
    usual = sum(known.values()) / sum(weight[kind] for kind in known)
    out = {}
    for job in jobs:
        whole = known.get(job.kind, usual * job.weight)
        own = whole - job.spent
        if job.left is not None and (job.kind not in done or job.spent > NEARLY * whole):
            own = job.left
        out[job.id] = 0.0 if job.over else max(own, 0.0)
    return out


def time_left(jobs: Sequence[JobTime]) -> float | None:
    """Seconds until all are over, if as many go on side by side as do now; None where nobody is at work or
    nothing is known."""
    left = remaining(jobs)
    free = [left[job.id] for job in jobs if job.running] if left else []
    if not free:
        return None
    heapq.heapify(free)
    waiting = (left[job.id] for job in jobs if not job.running and not job.over)
    for seconds in sorted(waiting, reverse=True):
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def share_done(jobs: Sequence[JobTime]) -> float | None:
    """The share of the work that is done, by time; None where nothing is known."""
    left = remaining(jobs)
    spent = sum(job.spent for job in jobs)
    return spent / (spent + sum(left.values())) if left and spent else None
