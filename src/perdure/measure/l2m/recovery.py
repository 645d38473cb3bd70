"""L2M metrics of a task's return: how far it drooped and how soon it was back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from perdure.measure.l2m.curves import NOTHING, first_at, means, names, over_tasks
from perdure.measure.l2m.preprocess import Prepared
from perdure.measure.l2m.smoothing import theil_sen
from perdure.measure.metric import Moment, Score

MANY = 2000
"""Beyond this many points the slopes of all pairs would not fit into memory."""


@dataclass(frozen=True)
class Recovery:
    """A learning block of a task that was learned before."""

    block: int
    ordinal: int
    """Of the block among the task's, from 0."""
    time: int
    """Experiences until performance is back where the former block ended, that one included; 0 if
    it is there from the start."""
    back: bool
    """If not, ``time`` is one more than the block has: a lower bound."""
    droop: float
    """How far performance lay under that level at worst before it was back."""

    @property
    def rate(self) -> float:
        """What was lost, per experience until it was back."""
        return self.droop / self.time


def recoveries(life: Prepared, task: str) -> list[Recovery]:
    """Of each learning block after the first of a task that has a learning curve."""
    found = []
    for (_, before), (ordinal, after) in pairwise(life.curves[task]):
        level, n = before.terminal, len(after.values)
        time = first_at(after.values, level, life.tie(task))
        below = after.values[: time - 1 if time else n]
        droop = level - float(below.min()) if len(below) else 0.0
        needed = 0 if time == 1 else time or n + 1
        found.append(Recovery(after.block, ordinal, needed, time > 0, droop))
    return found


def recovery(life: Prepared) -> dict[str, Score]:
    """Performance recovery, recovery time, droop and recovery rate."""
    every = {task: recoveries(life, task) for task in life.curves}
    again = {task: found for task, found in every.items() if found}
    fallen = {t: [r for r in found if r.droop > 0] for t, found in again.items()}
    fallen = {task: found for task, found in fallen.items() if found}
    slopes = {
        task: -robust_slope([r.ordinal for r in found], [r.time for r in found])
        for task, found in again.items()
        if len(found) > 1
    }
    once = {t: "learned in one block only" for t in every if t not in again} | life.curveless
    few = {t: "fewer than two recovery times" for t in again if t not in slopes}
    still = {t: "performance never drooped" for t in again if t not in fallen}
    thinned = [t for t in slopes if len(again[t]) > MANY]
    incomplete = [
        f"{names(thinned)}: over {MANY} recovery times, slope by Theil's incomplete method"
    ]
    return {
        "pr": over_tasks(
            slopes,
            once | few,
            NOTHING,
            notes=[*_bounds(again, "recovery times", "lower"), *(incomplete if thinned else [])],
        ),
        "rt": over_tasks(
            means({t: [r.time for r in found] for t, found in again.items()}),
            once,
            NOTHING,
            (Moment(r.block, t, float(r.time)) for t, found in again.items() for r in found),
            _bounds(again, "recovery times", "lower"),
        ),
        "droop": over_tasks(
            means({t: [r.droop for r in found] for t, found in again.items()}),
            once,
            NOTHING,
            (Moment(r.block, t, r.droop) for t, found in again.items() for r in found),
        ),
        "rr": over_tasks(
            means({t: [r.rate for r in found] for t, found in fallen.items()}),
            once | still,
            NOTHING,
            (Moment(r.block, t, r.rate) for t, found in fallen.items() for r in found),
            _bounds(fallen, "recovery rates", "upper"),
        ),
    }


def _bounds(found: dict[str, list[Recovery]], what: str, kind: str) -> list[str]:
    """Says how many values stand for a recovery that never came."""
    every = [r for mine in found.values() for r in mine]
    never = sum(not r.back for r in every)
    text = (
        f"{never} of {len(every)} {what} are {kind} bounds: performance was not back in the block"
    )
    return [text] if never else []


def robust_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Theil and Sen's slope; of more than ``MANY`` points the median slope between each of the
    first half and its fellow of the second (Theil's incomplete method)."""
    if len(x) <= MANY:
        return theil_sen(x, y)
    at, value = np.asarray(x, np.float64), np.asarray(y, np.float64)
    half = len(at) // 2
    return float(np.median((value[-half:] - value[:half]) / (at[-half:] - at[:half])))
