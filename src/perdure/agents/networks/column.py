"""Preallocated rows that are saved in chunks: saving, comparing and restoring them costs what
changed since the last time."""

from __future__ import annotations

import weakref
from math import prod
from typing import Any

import numpy as np

from perdure.arrays import Array, Chunk, ChunkedArray, Content

STRETCH = 1 << 20
"""Bytes of a chunk."""


class _Known:
    """What stands for one stretch of rows as they are now."""

    __slots__ = ("chunk", "content", "rows")

    def __init__(self, rows: int, content: Content) -> None:
        self.rows, self.content = rows, content
        self.chunk: weakref.ref[Chunk] | None = None
        """A view of the stretch, if somebody still holds it."""


class Column:
    """Room for ``capacity`` rows, written by :meth:`write` and :meth:`load` alone.

    The rows lie in one array, so that reading them is as fast as it can be; the system commits its
    memory only as it is written. For saving they are cut into stretches. A stretch keeps the content
    it was last saved under until it is written; a chunk of it that somebody holds then gets a copy of
    its rows, and any other costs nothing.
    """

    def __init__(self, capacity: int, row: tuple[int, ...], dtype: np.dtype[Any] | type) -> None:
        self._memory = np.empty((capacity, *row), dtype)
        self.row, self.dtype = self._memory.shape[1:], self._memory.dtype
        self.rows: Array = self._memory.view()
        """All rows, to be read."""
        self.rows.flags.writeable = False
        self.stretch = max(1, STRETCH // max(1, self.dtype.itemsize * prod(row)))
        """Rows of a chunk."""
        self._known: dict[int, _Known] = {}
        self._free = (0, 0)
        """Rows of which no stretch is known: nothing to do before they are written."""

    def write(self, where: slice | Array, values: Any) -> None:
        """Write rows: a slice with a start and a stop, or their indices."""
        if isinstance(where, slice):
            if not (self._free[0] <= where.start and where.stop <= self._free[1]):
                self._forget(where.start, where.stop)
        else:
            for k in np.unique(np.asarray(where) // self.stretch).tolist():
                self._forget(k * self.stretch, k * self.stretch + 1)
        self._memory[where] = values

    def _forget(self, start: int, stop: int) -> None:
        """The stretches of these rows are about to be written."""
        if stop <= start:
            return
        last = (stop - 1) // self.stretch
        for k in range(start // self.stretch, last + 1):
            known = self._known.pop(k, None)
            chunk = known.chunk() if known is not None and known.chunk is not None else None
            if chunk is not None:
                chunk.detach()
        self._free = (start, (last + 1) * self.stretch)

    def state(self, rows: int) -> ChunkedArray:
        """The first rows. What it gives costs nothing until they are written."""
        chunks = []
        for k, start in enumerate(range(0, rows, self.stretch)):
            size = min(self.stretch, rows - start)
            known = self._known.get(k)
            if known is None or known.rows != size:
                self._forget(start, start + 1)
                known = self._known[k] = _Known(size, Content())
            chunk = known.chunk() if known.chunk is not None else None
            if chunk is None:
                chunk = Chunk(self._memory[start : start + size], known.content)
                known.chunk = weakref.ref(chunk)
            chunks.append(chunk)
        self._free = (0, 0)
        return ChunkedArray(chunks, self.row, self.dtype)

    def load(self, value: Array | ChunkedArray, rows: int) -> None:
        """Take over rows that :meth:`state` gave. Chunks that are as the rows are now cost nothing, and
        the others are known by their content from then on: a resumed lifetime does not save them
        again."""
        if len(value) != rows:
            raise ValueError(f"expected {rows} rows, got {len(value)}")
        if not isinstance(value, ChunkedArray):
            self.write(slice(0, rows), np.asarray(value))
            return
        start = 0
        for chunk in value.chunks:
            stop = start + len(chunk)
            k, into = divmod(start, self.stretch)
            whole = into == 0 and len(chunk) <= self.stretch
            whole &= chunk.array.dtype == self.dtype
            known = self._known.get(k) if whole else None
            if known is None or known.content is not chunk.content:
                self._forget(start, stop)
                self._memory[start:stop] = chunk.array
                if whole:
                    self._known[k] = _Known(len(chunk), chunk.content)
            start = stop
        self._free = (0, 0)


class GrowingColumn:
    """Rows that are appended, without a bound: room doubles as it is needed."""

    def __init__(self, row: tuple[int, ...], dtype: np.dtype[Any] | type) -> None:
        self._column = Column(0, row, dtype)
        self.row, self.dtype = self._column.row, self._column.dtype
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Array:
        """All rows, to be read."""
        return self._column.rows[: self._count]

    def append(self, values: Array) -> None:
        """Add rows."""
        end = self._count + len(values)
        if end > len(self._column.rows):
            # Memory is committed only as it is written.
            larger = Column(max(64, 2 * end), self.row, self.dtype)
            larger.load(self._column.state(self._count), self._count)
            self._column = larger
        self._column.write(slice(self._count, end), values)
        self._count = end

    def state(self) -> ChunkedArray:
        """All rows. What it gives costs nothing until the last of them share a chunk with new ones."""
        return self._column.state(self._count)

    def load(self, value: Array | ChunkedArray) -> None:
        """Take over rows that :meth:`state` gave."""
        if len(value) > len(self._column.rows):
            self._column = Column(2 * len(value), self.row, self.dtype)
        self._column.load(value, len(value))
        self._count = len(value)
