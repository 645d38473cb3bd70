"""Rows of the past: uniform reservoirs, over all of life or a quota for each task; or every row."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from perdure.agents.networks.column import Column
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import Minibatch
from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.errors import SpecError
from perdure.types import Array, State


class Reservoir:
    """A uniform sample of all rows it was ever offered (Vitter's algorithm R).

    Rows of minibatches, whatever columns they have; room is made when the first come.
    """

    def __init__(self, capacity: int, device: torch.device = CPU) -> None:
        if capacity < 1:
            raise SpecError(f"a memory needs room for at least one row, got {capacity}")
        self.capacity, self.device = capacity, device
        self._columns: dict[str, Column] = {}
        self.offered = 0

    @property
    def columns(self) -> dict[str, Array]:
        """All rows of each column, to be read."""
        return {name: column.rows for name, column in self._columns.items()}

    def __len__(self) -> int:
        return min(self.offered, self.capacity)

    def offer(self, batch: Minibatch, rng: np.random.Generator) -> None:
        """Keep each row with the probability that makes the sample uniform."""
        rows = {name: to_array(value) for name, value in batch.items()}
        n = len(next(iter(rows.values())))
        if not self._columns:
            self._columns = {
                name: Column(self.capacity, v.shape[1:], v.dtype) for name, v in rows.items()
            }
        numbers = np.arange(self.offered, self.offered + n)
        # Row number i (from 0) takes any of i + 1 places; those beyond the capacity are none. Of
        # several rows with the same place the last stays, as if they had come one by one.
        places = np.where(numbers < self.capacity, numbers, rng.integers(numbers + 1))
        keep = places < self.capacity
        for name, v in rows.items():
            self._columns[name].write(places[keep], v[keep])
        self.offered += n

    def draw(self, rows: int, rng: np.random.Generator) -> Minibatch:
        """Rows drawn uniformly, with replacement."""
        return self.at(rng.integers(len(self), size=rows))

    def at(self, indices: Array) -> Minibatch:
        """The rows at these places."""
        return {name: to_tensor(v[indices], self.device) for name, v in self.columns.items()}

    def all(self) -> Minibatch:
        """Every row."""
        return self.at(np.arange(len(self)))

    def clear(self) -> None:
        """Forget every row."""
        self.offered = 0

    def state(self, prefix: str) -> dict[str, Any]:
        """The rows in chunks, and how many were offered."""
        out: dict[str, Any] = {
            f"{prefix}.{name}": column.state(len(self)) for name, column in self._columns.items()
        }
        out[f"{prefix}.offered"] = np.array(self.offered)
        return out

    def load(self, prefix: str, state: State) -> None:
        """Take over rows that :meth:`state` gave."""
        self.offered = int(state[f"{prefix}.offered"])
        before, self._columns = self._columns, {}
        for key, value in state.items():
            if key.startswith(f"{prefix}.") and key != f"{prefix}.offered":
                name, row = key.removeprefix(f"{prefix}."), tuple(value.shape[1:])
                column = before.get(name)
                if column is None or (column.row, column.dtype) != (row, value.dtype):
                    column = Column(self.capacity, row, value.dtype)
                column.load(value, len(self))
                self._columns[name] = column


class Quotas:
    """A reservoir of ``quota`` rows for each task."""

    def __init__(self, quota: int, device: torch.device = CPU) -> None:
        self.quota, self.device = quota, device
        self.tasks: list[Reservoir] = []

    def held(self, past: int | None = None) -> int:
        """How many rows there are of the first ``past`` tasks, or of all."""
        return sum(map(len, self.tasks[:past]))

    def begin(self) -> None:
        """What is offered from now on belongs to another task."""
        self.tasks.append(Reservoir(self.quota, self.device))

    def offer(self, batch: Minibatch, rng: np.random.Generator) -> None:
        """Rows of the task that began last."""
        self.tasks[-1].offer(batch, rng)

    def draw(self, rows: int, rng: np.random.Generator, past: int | None = None) -> Minibatch:
        """Rows drawn uniformly from those of the first ``past`` tasks, or of all."""
        chosen = [t for t in self.tasks[:past] if len(t)]
        sizes = np.array([len(t) for t in chosen])
        which = rng.integers(sizes.sum(), size=rows)
        ends = np.cumsum(sizes)
        owner = np.searchsorted(ends, which, side="right")
        parts = [
            t.at(which[owner == k] - (ends[k] - sizes[k]))
            for k, t in enumerate(chosen)
            if np.any(owner == k)
        ]
        return joined(parts)

    def state(self, prefix: str) -> dict[str, Any]:
        """Every task's rows."""
        out: dict[str, Any] = {f"{prefix}.tasks": np.array(len(self.tasks))}
        for k, task in enumerate(self.tasks):
            out |= task.state(f"{prefix}{k}")
        return out

    def load(self, prefix: str, state: State) -> None:
        """Take over rows that :meth:`state` gave."""
        self.tasks = [
            Reservoir(self.quota, self.device) for _ in range(int(state[f"{prefix}.tasks"]))
        ]
        for k, task in enumerate(self.tasks):
            task.load(f"{prefix}{k}", state)


class Distinct:
    """Every row it was ever offered, once: rows come again with every epoch. Observations that came
    as bytes are kept as bytes."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.columns: dict[str, Array] = {}
        self.rows = 0
        self.known: set[bytes] = set()

    def __len__(self) -> int:
        return self.rows

    def offer(self, batch: Minibatch) -> None:
        """Keep the rows that are new."""
        rows = {name: to_array(value) for name, value in batch.items()}
        self._keep({**rows, "obs": self.inputs.packed(batch["obs"])})

    def _keep(self, rows: dict[str, Array]) -> None:
        new = []
        for i in range(len(next(iter(rows.values())))):
            digest = hashlib.blake2b(digest_size=16)
            for name in sorted(rows):
                digest.update(rows[name][i].tobytes())
            key = digest.digest()
            if key not in self.known:
                self.known.add(key)
                new.append(i)
        end = self.rows + len(new)
        for name, v in rows.items():
            room = self.columns.get(name)
            if room is None or end > len(room):
                # Twice the room each time; memory is committed only as it is written.
                larger = np.empty((max(64, 2 * end), *v.shape[1:]), v.dtype)
                if room is not None:
                    larger[: self.rows] = room[: self.rows]
                self.columns[name] = room = larger
            room[self.rows : end] = v[new]
        self.rows = end

    def at(self, indices: Array) -> Minibatch:
        """The rows at these places."""
        device = self.inputs.device
        rows = {name: to_tensor(v[indices], device) for name, v in self.columns.items()}
        return {**rows, "obs": self.inputs.unpacked(rows["obs"])}

    def state(self, prefix: str) -> dict[str, Array]:
        """Copies of the rows."""
        return {f"{prefix}.{name}": v[: self.rows].copy() for name, v in self.columns.items()}

    def load(self, prefix: str, state: State) -> None:
        """Take over rows that :meth:`state` gave."""
        rows = {
            key.removeprefix(f"{prefix}."): np.asarray(value)
            for key, value in state.items()
            if key.startswith(f"{prefix}.")
        }
        self.columns, self.rows, self.known = {}, 0, set()
        if rows:
            self._keep(rows)


def joined(parts: list[Minibatch]) -> Minibatch:
    """Minibatches of the same columns, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return {name: torch.cat([p[name] for p in parts]) for name in parts[0]}


def rows_of(batch: Mapping[str, Tensor]) -> int:
    """How many rows a minibatch has."""
    return len(next(iter(batch.values())))
