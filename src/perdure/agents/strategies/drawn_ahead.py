"""Rows of the past drawn one minibatch ahead, so that their examples are looked up while the one before is
learned from.

What is drawn does not depend on how long that takes, nor on whether a thread does it: the next references are
drawn in any case, and are part of the strategy's state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from perdure import arrays
from perdure.agents.networks.learner import Minibatch
from perdure.agents.strategies.row_memory import RowFormat, joined
from perdure.types import Array, Examples, State

WORTHWHILE = 5e-4
"""Seconds that the look-ups of a minibatch take at least for another thread to make the next ones."""
Drawn = Sequence[Mapping[str, Array]]
"""Columns of rows, in parts."""


class DrawnAhead:
    """The next minibatch of references. It is dropped when another task begins or more rows are wanted; of fewer,
    as an epoch's last minibatch has, the first are taken. Rows that are not kept as references are drawn when they
    are wanted."""

    def __init__(self, form: RowFormat) -> None:
        self.form = form
        self._next: Mapping[str, Array] = {}
        self._task = 0
        """How many tasks had begun when they were drawn."""
        self._asked: dict[int, Future[Examples]] = {}
        """Their examples, by source, where a thread looks them up."""
        self._pool: ThreadPoolExecutor | None = None
        self._slow = 0
        """Minibatches in a row that took their time: the first one may have opened files."""

    def __len__(self) -> int:
        return len(self._next.get("source", ()))

    def draw(self, rows: int, task: int, drawn: Callable[[int], Drawn]) -> Minibatch:
        """So many rows, in the task of this number; ``drawn(n)`` draws n of what is kept."""
        if task != self._task or len(self) < rows:
            self._forget()
            parts = drawn(rows)
            if not all(_are_references(part) for part in parts):
                return joined([self.form.unpack(part) for part in parts])
            self._next, self._task = _together(parts), task
        now = {name: column[:rows] for name, column in self._next.items()}
        batch = self.form.unpack(now, self._looked_up(now))
        self._next = _together(drawn(len(self)))
        if self._slow > 1:
            self._ask()
        return batch

    def _looked_up(self, now: Mapping[str, Array]) -> dict[int, Examples]:
        """Examples by source, in the order of their rows."""
        found: dict[int, Examples] = {}
        began = time.perf_counter()
        for source in map(int, np.unique(now["source"])):
            index = now["index"][now["source"] == source]
            if source in self._asked:
                found[source] = _first(self._asked[source].result(), len(index))
            else:
                found[source] = self.form.examples(source, index)
        if not self._asked:
            self._slow = self._slow + 1 if time.perf_counter() - began >= WORTHWHILE else 0
        return found

    def _ask(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="look-up")
        source = self._next["source"]
        self._asked = {
            k: self._pool.submit(self.form.examples, k, self._next["index"][source == k])
            for k in map(int, np.unique(source))
        }

    def _forget(self) -> None:
        for future in self._asked.values():
            future.cancel()
        self._next, self._asked, self._slow = {}, {}, 0

    def state(self, prefix: str) -> dict[str, Any]:
        """What is drawn; its examples are looked up again."""
        out: dict[str, Any] = {f"{prefix}.rows.{n}": column for n, column in self._next.items()}
        return {**out, f"{prefix}.of": np.array(self._task)}

    def load(self, prefix: str, state: State) -> None:
        """Take over what :meth:`state` gave."""
        self._forget()
        head = f"{prefix}.rows."
        self._next = {k.removeprefix(head): v for k, v in state.items() if k.startswith(head)}
        self._task = int(state[f"{prefix}.of"])


def _are_references(part: Mapping[str, Array]) -> bool:
    return "source" in part and "targets" not in part


def _together(parts: Drawn) -> dict[str, Array]:
    """Columns below each other, of those that all parts have."""
    names = [name for name in parts[0] if all(name in part for part in parts)]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def _first(examples: Examples, count: int) -> Examples:
    if len(examples) == count:
        return examples
    rows = np.arange(count)
    indices = None if examples.indices is None else examples.indices[:count]
    inputs, targets = arrays.rows_of(examples.inputs, rows), examples.targets[:count]
    return replace(examples, inputs=inputs, targets=targets, indices=indices)
