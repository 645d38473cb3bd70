"""Rows of the past: uniform reservoirs, over all of life or a quota for each task; or every row."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from math import inf, prod
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from perdure import arrays
from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.column import Column, GrowingColumn
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import Minibatch, NewRows, TorchLearner
from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.arrays import leaves
from perdure.errors import AgentFault, SpecError
from perdure.spaces import of_parts
from perdure.types import Array, Examples, State

TOLD = ("task", "instruction")
"""Columns that say what each row is about, which its data do not: they are kept beside it."""
Keep = Literal["references", "copies"]
KEEPS: tuple[Keep, ...] = ("references", "copies")


class RowFormat:
    """How a strategy keeps rows of minibatches: as references into past data where they have a source,
    or as copies in their own type; and how much room they may take.

    A reference is two numbers, and the data is asked for the example again when it is needed. Who cannot
    ask again, such as a robot that does not store what it saw, keeps copies: of the inputs as they came
    (an image as bytes), taken as they are shown. Rows without a source, such as those of an environment,
    are copied as the learner had them.

    ``megabytes`` bounds all rows that the strategy keeps, 0 for no bound.
    """

    def __init__(
        self,
        learner: TorchLearner | None = None,
        keep: Keep = "references",
        megabytes: float = 0.0,
    ) -> None:
        if keep not in KEEPS:
            raise SpecError(f"keep must be one of {', '.join(KEEPS)}, got {keep!r}")
        check_ranges("rows kept", megabytes=(megabytes, 0, inf))
        self.learner, self.keep, self.max_bytes = learner, keep, int(megabytes * 1e6)
        self.device = CPU if learner is None else learner.device

    def pack(self, rows: NewRows, which: Array) -> dict[str, Array]:
        """What is kept of these rows, by column."""
        batch = rows.at(which)
        if "source" not in batch or self.learner is None:
            return {name: to_array(value) for name, value in batch.items()}
        where = {n: to_array(batch[n]) for n in ("source", "index", *TOLD) if n in batch}
        if self.keep == "references":
            return where
        given = rows.examples
        if given is None:
            raise AgentFault(
                f"{type(self.learner).__name__} shows rows without the examples they were made of, "
                "which keep=copies copies: expected collect(new_rows(rows, examples))"
            )
        inputs = leaves(arrays.rows_of(given.inputs, which))
        named = {f"inputs/{k}" if k else "inputs": v for k, v in inputs.items()}
        return {**where, **named, "targets": np.asarray(given.targets)[which]}

    def unpack(
        self, columns: Mapping[str, Array], found: Mapping[int, Examples] | None = None
    ) -> Minibatch:
        """Rows as the learner's loss takes them; ``found`` are their examples by source, where they have been
        looked up."""
        if "source" not in columns:
            return {name: to_tensor(v, self.device) for name, v in columns.items()}
        assert self.learner is not None
        parts, order = [], []
        for source in np.unique(columns["source"]):
            rows = np.flatnonzero(columns["source"] == source)
            given = None if found is None else found.get(int(source))
            if given is None:
                given = self._again(int(source), rows, columns)
            again = self.learner.minibatch(given)
            told = {n: to_tensor(columns[n][rows], self.device) for n in TOLD if n in columns}
            parts.append({**again, **told})
            order.append(rows)
        if len(parts) == 1:
            return parts[0]
        back = to_tensor(np.argsort(np.concatenate(order), kind="stable"), self.device)
        return {name: torch.cat([p[name] for p in parts])[back] for name in parts[0]}

    def _again(self, source: int, rows: Array, columns: Mapping[str, Array]) -> Examples:
        index = columns["index"][rows]
        if "targets" not in columns:
            return self.examples(source, index)
        assert self.learner is not None
        kept = {k: v[rows] for k, v in columns.items() if k.startswith("inputs")}
        inputs = of_parts(self.learner.observation_space, kept, "inputs")
        return Examples(inputs, columns["targets"][rows], source, index)

    def examples(self, source: int, index: Array) -> Examples:
        """Examples looked up again."""
        assert self.learner is not None and self.learner.setup.examples is not None
        return self.learner.setup.examples(source, index)


class Reservoir:
    """A uniform sample of all rows it was ever offered (Vitter's algorithm R).

    Rows of minibatches, whatever columns they have; room is made when the first come: for
    ``capacity`` rows, or for as many of them as the format's bytes hold, of which it has one part in
    ``shares``.
    """

    def __init__(self, capacity: int, form: RowFormat | None = None, shares: int = 1) -> None:
        if capacity < 1:
            raise SpecError(f"a memory needs room for at least one row, got {capacity}")
        self.capacity, self.form, self.shares = capacity, form or RowFormat(), shares
        self._columns: dict[str, Column] = {}
        self.offered = 0

    @property
    def columns(self) -> dict[str, Array]:
        """All rows of each column, to be read."""
        return {name: column.rows for name, column in self._columns.items()}

    def __len__(self) -> int:
        return min(self.offered, self.capacity)

    def offer(self, rows: NewRows, rng: np.random.Generator) -> None:
        """Keep each row with the probability that makes the sample uniform."""
        n = rows.count
        if not self._columns:
            self._make_room(self.form.pack(rows, np.arange(1)))
        numbers = np.arange(self.offered, self.offered + n)
        # Row number i (from 0) takes any of i + 1 places; those beyond the capacity are none. Of
        # several rows with the same place the last stays, as if they had come one by one.
        places = np.where(numbers < self.capacity, numbers, rng.integers(numbers + 1))
        keep = places < self.capacity
        self.offered += n
        if not keep.any():
            return
        for name, v in self.form.pack(rows, np.flatnonzero(keep)).items():
            self._columns[name].write(places[keep], v)

    def _make_room(self, row: Mapping[str, Array]) -> None:
        self.capacity = self._room(sum(v.nbytes for v in row.values()))
        self._columns = {
            name: Column(self.capacity, v.shape[1:], v.dtype) for name, v in row.items()
        }

    def _room(self, row: int) -> int:
        """How many rows of so many bytes there is room for."""
        if not self.form.max_bytes:
            return self.capacity
        return max(1, min(self.capacity, self.form.max_bytes // self.shares // row))

    def share(self, shares: int, rng: np.random.Generator) -> None:
        """Give room to others. Of rows that are too many now, a uniform sample stays."""
        self.shares = shares
        columns = self._columns.values()
        room = self._room(sum(c.dtype.itemsize * prod(c.row) for c in columns) or 1)
        if columns and room < self.capacity:
            stay = np.sort(rng.permutation(len(self))[:room])
            rows = {name: v[stay] for name, v in self.columns.items()}
            self.capacity = room
            self._make_room({name: v[:1] for name, v in rows.items()})
            for name, v in rows.items():
                self._columns[name].write(slice(0, len(v)), v)

    def draw(self, rows: int, rng: np.random.Generator) -> list[dict[str, Array]]:
        """Columns of rows drawn uniformly, with replacement; a single part."""
        return [self.kept_at(rng.integers(len(self), size=rows))]

    def at(self, indices: Array) -> Minibatch:
        """The rows at these places."""
        return self.form.unpack(self.kept_at(indices))

    def kept_at(self, indices: Array) -> dict[str, Array]:
        """What is kept at these places."""
        return {name: v[indices] for name, v in self.columns.items()}

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
        out[f"{prefix}.offered"] = np.array([self.offered, self.capacity])
        return out

    def load(self, prefix: str, state: State) -> None:
        """Take over rows that :meth:`state` gave."""
        self.offered, self.capacity = (int(n) for n in state[f"{prefix}.offered"])
        before, self._columns = self._columns, {}
        for key, value in state.items():
            if key.startswith(f"{prefix}.") and key != f"{prefix}.offered":
                name, row = key.removeprefix(f"{prefix}."), tuple(value.shape[1:])
                column = before.get(name)
                if column is None or (column.row, column.dtype) != (row, value.dtype):
                    column = Column(self.capacity, row, value.dtype)
                column.load(value, len(self))
                self._columns[name] = column


class PerTaskBuffer:
    """A reservoir of ``quota`` rows for each task. Where bytes are bounded, all tasks so far share them
    equally: older ones give up rows for each that begins."""

    def __init__(self, quota: int, form: RowFormat | None = None) -> None:
        self.quota, self.form = quota, form or RowFormat()
        self.tasks: list[Reservoir] = []

    def held(self, past: int | None = None) -> int:
        """How many rows there are of the first ``past`` tasks, or of all."""
        return sum(map(len, self.tasks[:past]))

    def begin(self, rng: np.random.Generator) -> None:
        """What is offered from now on belongs to another task."""
        shares = len(self.tasks) + 1
        for task in self.tasks:
            task.share(shares, rng)
        self.tasks.append(Reservoir(self.quota, self.form, shares))

    def offer(self, rows: NewRows, rng: np.random.Generator) -> None:
        """Rows of the task that began last; those of an adapt block before the first are of none."""
        if self.tasks:
            self.tasks[-1].offer(rows, rng)

    def draw(
        self, rows: int, rng: np.random.Generator, past: int | None = None
    ) -> list[dict[str, Array]]:
        """Columns of rows drawn uniformly from those of the first ``past`` tasks, or of all; a part for each task
        that some are of."""
        chosen = [t for t in self.tasks[:past] if len(t)]
        sizes = np.array([len(t) for t in chosen])
        which = rng.integers(sizes.sum(), size=rows)
        ends = np.cumsum(sizes)
        owner = np.searchsorted(ends, which, side="right")
        return [
            t.kept_at(which[owner == k] - (ends[k] - sizes[k]))
            for k, t in enumerate(chosen)
            if np.any(owner == k)
        ]

    def state(self, prefix: str) -> dict[str, Any]:
        """Every task's rows."""
        out: dict[str, Any] = {f"{prefix}.tasks": np.array(len(self.tasks))}
        for k, task in enumerate(self.tasks):
            out |= task.state(f"{prefix}{k}")
        return out

    def load(self, prefix: str, state: State) -> None:
        """Take over rows that :meth:`state` gave."""
        n = int(state[f"{prefix}.tasks"])
        self.tasks = [Reservoir(self.quota, self.form, n) for _ in range(n)]
        for k, task in enumerate(self.tasks):
            task.load(f"{prefix}{k}", state)


class UniqueBuffer:
    """Every row it was ever offered, once: rows come again with every epoch. Kept as references where
    rows have a source; else observations that came as bytes are kept as bytes."""

    def __init__(self, inputs: Inputs, form: RowFormat | None = None) -> None:
        self.inputs, self.form = inputs, form or RowFormat()
        self._columns: dict[str, GrowingColumn] = {}
        self.known: set[bytes] = set()

    @property
    def columns(self) -> dict[str, Array]:
        """All rows of each column, to be read."""
        return {name: column.rows for name, column in self._columns.items()}

    def __len__(self) -> int:
        return len(self.known)

    def offer(self, rows: NewRows) -> None:
        """Keep the rows that are new."""
        every = np.arange(rows.count)
        kept = self.form.pack(rows, every)
        if "obs" in kept:
            kept["obs"] = self.inputs.packed(rows.at(every)["obs"])
        new = self._unknown(kept)
        for name, v in kept.items():
            if name not in self._columns:
                self._columns[name] = GrowingColumn(v.shape[1:], v.dtype)
            self._columns[name].append(v[new])

    def _unknown(self, rows: Mapping[str, Array]) -> list[int]:
        """The rows that were not there before, which are known from now on."""
        new = []
        for i in range(len(next(iter(rows.values())))):
            digest = hashlib.blake2b(digest_size=16)
            for name in sorted(rows):
                digest.update(rows[name][i].tobytes())
            key = digest.digest()
            if key not in self.known:
                self.known.add(key)
                new.append(i)
        return new

    def at(self, indices: Array) -> Minibatch:
        """The rows at these places."""
        columns = {name: v[indices] for name, v in self.columns.items()}
        if "obs" not in columns:
            return self.form.unpack(columns)
        rows = {name: to_tensor(v, self.inputs.device) for name, v in columns.items()}
        return {**rows, "obs": self.inputs.unpacked(rows["obs"])}

    def state(self, prefix: str) -> dict[str, Any]:
        """The rows in chunks."""
        return {f"{prefix}.{name}": column.state() for name, column in self._columns.items()}

    def load(self, prefix: str, state: State) -> None:
        """Take over rows that :meth:`state` gave."""
        before, self._columns = self._columns, {}
        for key, value in state.items():
            if key.startswith(f"{prefix}."):
                name, row = key.removeprefix(f"{prefix}."), tuple(value.shape[1:])
                column = before.get(name)
                if column is None or (column.row, column.dtype) != (row, value.dtype):
                    column = GrowingColumn(row, value.dtype)
                column.load(value)
                self._columns[name] = column
        self.known = set()
        if self._columns:
            self._unknown(self.columns)


def joined(parts: list[Minibatch]) -> Minibatch:
    """Minibatches one after the other, of the columns that all of them have."""
    if len(parts) == 1:
        return parts[0]
    names = [name for name in parts[0] if all(name in p for p in parts)]
    return {name: torch.cat([p[name] for p in parts]) for name in names}


def rows_of(batch: Mapping[str, Tensor]) -> int:
    """How many rows a minibatch has."""
    return len(next(iter(batch.values())))
