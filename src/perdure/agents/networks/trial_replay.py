"""A replay that knows which trial each row is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perdure.agents.networks.ring import Ring
from perdure.arrays import ChunkedArray
from perdure.types import Array, State


class TrialReplay:
    """Rows of many trials, in the order they were played; the oldest give way when there is no more
    room. A trial is what tasks are to a learner that is told nothing but where one begins."""

    def __init__(
        self, capacity: int, columns: Mapping[str, tuple[tuple[int, ...], Any]], slots: int
    ) -> None:
        self.ring = Ring(capacity, {**columns, "trial": ((), np.int64)})
        self.current: Array = np.full(slots, -1, np.int64)
        """The trial of each slot."""
        self.begun = 0
        """Trials ever begun."""
        self._where: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self.ring)

    def begin(self, slots: Array) -> None:
        """New trials begin in these slots."""
        # In order of slots, as rows come: so trials are known in the order of their numbers.
        self.current[np.sort(slots)] = self.begun + np.arange(len(slots))
        self.begun += len(slots)

    def add(self, slots: Array, **values: Any) -> None:
        """A row of each of these slots."""
        ring, n = self.ring, len(slots)
        trials = self.current[slots]
        places = (ring.written + np.arange(n)) % ring.capacity
        overwritten = min(n, max(0, ring.written + n - ring.capacity))
        for place in places[n - overwritten :]:
            self._drop(int(ring.columns["trial"][place]))
        ring.add(n, trial=trials, **values)
        for place, trial in zip(places.tolist(), trials.tolist(), strict=True):
            self._where.setdefault(trial, []).append(place)

    def _drop(self, trial: int) -> None:
        """The oldest row of a trial is about to be overwritten."""
        rows = self._where[trial]
        rows.pop(0)
        if not rows:
            del self._where[trial]

    def sample(
        self, rng: np.random.Generator, trials: int, rows: int, context: int
    ) -> tuple[dict[str, Array], dict[str, Array], Array]:
        """Rows of some trials: (trials, rows, …) to learn from, and (trials, context, …) of what was
        known at some moment of each trial, with a mask of those that count.

        The moment is drawn from all of the trial. Of the rows before it, ``context`` are taken at
        most, none twice.
        """
        known = list(self._where)
        chosen = [self._where[known[k]] for k in rng.integers(len(known), size=trials)]
        learned = np.empty((trials, rows), np.int64)
        seen = np.zeros((trials, context), np.int64)
        mask = np.zeros((trials, context), bool)
        for k, places in enumerate(chosen):
            length = len(places)
            of = np.array(places)
            learned[k] = of[rng.integers(length, size=rows)]
            until = int(rng.integers(1, length + 1))
            few = of[:until] if until <= context else of[rng.permutation(until)[:context]]
            seen[k, : len(few)], mask[k, : len(few)] = few, True
        return self.ring.take(learned), self.ring.take(seen), mask

    def state(self, prefix: str) -> dict[str, Any]:
        """The rows, and which trials are under way."""
        return {
            **self.ring.state(prefix),
            f"{prefix}.current": self.current.copy(),
            f"{prefix}.begun": np.array(self.begun),
        }

    def load(self, prefix: str, state: State) -> None:
        """Take over what :meth:`state` gave."""
        before = self.ring.state(prefix)
        self.ring.load(prefix, state)
        self.current = np.array(state[f"{prefix}.current"])
        self.begun = int(state[f"{prefix}.begun"])
        ring = self.ring
        if _same_trials(before, state, prefix):
            # As at the end of an adapt block: to look at every row again may take seconds.
            return
        oldest = ring.written if ring.written > ring.capacity else 0
        order = (oldest + np.arange(len(ring))) % ring.capacity
        trials = ring["trial"][order]
        self._where = {t: [] for t in np.unique(trials).tolist()}
        for place, trial in zip(order.tolist(), trials.tolist(), strict=True):
            self._where[trial].append(place)


def _same_trials(one: State, other: State, prefix: str) -> bool:
    """Whether two states hold rows of the same trials at the same places, as far as that can be told
    without a look at them."""
    trials = [state[f"{prefix}.trial"] for state in (one, other)]
    if not all(isinstance(t, ChunkedArray) for t in trials):
        return False
    written = [int(state[f"{prefix}.written"]) for state in (one, other)]
    return written[0] == written[1] and trials[0].contents == trials[1].contents
