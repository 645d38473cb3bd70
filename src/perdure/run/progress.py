"""How far a lifetime is: what `watch` shows and what tells a hung worker from a slow one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from perdure.store.layout import LifetimeFolder
from perdure.types import Curriculum, Exposure

BEAT = 0.5
"""Seconds between two signs of life."""
GUESS = 50.0
"""Steps per episode until some have been seen."""


class Progress:
    """Counts work in steps; episodes are counted at their mean length so far."""

    def __init__(self, curriculum: Curriculum, folder: LifetimeFolder | None) -> None:
        self.folder = folder
        self.blocks = len(curriculum.fixed) if curriculum.generate is None else None
        self._plan = [[e for p in b.phases for e in p.exposures] for b in curriculum.fixed]
        if curriculum.generate is not None:
            self._plan = []
        self._episodes, self._steps = 0, 0.0
        self._scores: deque[float] = deque(maxlen=20)
        self._place: tuple[int, int, int] | None = None
        self._began = time.monotonic()
        self._first: float | None = None
        self.done_steps = 0
        self.measure = ""

    def ended(
        self, steps: int, measures: Mapping[str, float | None], place: tuple[int, int, int]
    ) -> None:
        """An episode or batch ended. The running score is that of one place in the lifetime."""
        self._episodes += 1
        self._steps += steps
        if place != self._place:
            self._scores.clear()
            self._place = place
        for name in ("success", "accuracy", "return"):
            value = measures.get(name)
            if value is not None:
                if name != self.measure:
                    self._scores.clear()
                    self.measure = name
                self._scores.append(value)
                return

    def _weight(self, e: Exposure) -> float:
        mean = self._steps / self._episodes if self._episodes else GUESS
        if e.unit == "epochs":
            return e.amount * 256.0
        return float(e.amount) * (1.0 if e.unit == "steps" else mean)

    def fraction(self, block: int, before: int, now: list[tuple[Exposure, float]]) -> float | None:
        """Share of the lifetime that is done; None when its length is not known beforehand.

        ``before`` exposures of this block are behind, ``now`` are under way.
        """
        if not self._plan:
            return None
        weights = [[self._weight(e) for e in b] for b in self._plan]
        total = sum(map(sum, weights))
        done = sum(map(sum, weights[:block])) + sum(weights[block][:before])
        done += sum(self._weight(e) * f for e, f in now)
        return min(done / total, 1.0)

    def write(self, **values: Any) -> None:
        """Give a sign of life."""
        if self.folder is None:
            return
        fraction = values.get("fraction")
        elapsed = time.monotonic() - self._began
        eta = None
        if fraction is not None:
            if self._first is None:
                self._first = fraction
            gained = fraction - self._first
            eta = elapsed * (1 - fraction) / gained if gained > 0 else None
        score = sum(self._scores) / len(self._scores) if self._scores else None
        self.folder.write_progress(
            {
                **values,
                "blocks": self.blocks,
                "eta": eta,
                "elapsed": elapsed,
                "rate": self.done_steps / elapsed if elapsed > 0 else None,
                "score": score,
                "measure": self.measure,
            }
        )
