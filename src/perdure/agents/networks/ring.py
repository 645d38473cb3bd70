"""Rows in preallocated columns: a rollout, or a replay that overwrites its oldest rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from perdure.agents.networks.column import Column
from perdure.types import Array, State


class Ring:
    """Named columns with room for ``capacity`` rows, of which those that were written are saved."""

    def __init__(
        self, capacity: int, columns: Mapping[str, tuple[tuple[int, ...], np.dtype[Any] | type]]
    ) -> None:
        self.capacity = capacity
        self._columns = {
            name: Column(capacity, shape, dtype) for name, (shape, dtype) in columns.items()
        }
        self.columns: dict[str, Array] = {name: c.rows for name, c in self._columns.items()}
        """All rows of each column, to be read."""
        self.clear()

    def __len__(self) -> int:
        return min(self.written, self.capacity)

    def __getitem__(self, name: str) -> Array:
        """A column's written rows: a view, to be read."""
        return self.columns[name][: len(self)]

    def clear(self) -> None:
        """Forget every row."""
        self.written = 0

    def add(self, rows: int, **values: Any) -> None:
        """Append rows; the oldest give way when there is no more room."""
        start = self.written % self.capacity
        where: slice | Array = slice(start, start + rows)
        if start + rows > self.capacity:
            where = np.arange(start, start + rows) % self.capacity
        for name, value in values.items():
            self._columns[name].write(where, value)
        self.written += rows

    def newest(self, rows: int) -> Array:
        """Indices of the rows added last, the oldest of them first."""
        return np.arange(self.written - rows, self.written) % self.capacity

    def take(self, indices: Array, names: Iterable[str] = ()) -> dict[str, Array]:
        """The rows at these indices, of all columns or of those named."""
        return {name: self.columns[name][indices] for name in names or self.columns}

    def state(self, prefix: str) -> dict[str, Any]:
        """The written rows in chunks, and how many were ever written."""
        out: dict[str, Any] = {
            f"{prefix}.{name}": column.state(len(self)) for name, column in self._columns.items()
        }
        out[f"{prefix}.written"] = np.array(self.written)
        return out

    def load(self, prefix: str, state: State) -> None:
        """Take over rows that :meth:`state` gave."""
        self.written = int(state[f"{prefix}.written"])
        for name, column in self._columns.items():
            column.load(state[f"{prefix}.{name}"], len(self))
