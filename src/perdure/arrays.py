"""What arrays are called in signatures, arrays in chunks that cost what changed, and nested
observations taken apart."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
State: TypeAlias = Mapping[str, Any]
"""Names to arrays; an array that is large and changes in parts may be a :class:`ChunkedArray`."""


class Content:
    """Stands for the rows of a chunk: the same object means the same rows, in the same order. It is
    small and may be kept where the rows need not be."""

    __slots__ = ("digest",)

    def __init__(self, digest: str | None = None) -> None:
        self.digest = digest
        """The SHA-256 of the rows' bytes, once somebody has asked for it."""


class Chunk:
    """Some rows of a larger array, which never change.

    The rows may be a view into an owner's memory. Before the owner writes there, it calls
    :meth:`detach`, which copies them. So hold on to the chunk, and take ``array`` from it each time.
    """

    __slots__ = ("__weakref__", "_rows", "content")

    def __init__(self, rows: Array, content: Content | None = None) -> None:
        self._rows = rows.view()
        self._rows.flags.writeable = False
        self.content = content or Content()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def array(self) -> Array:
        """The rows; they cannot be written."""
        return self._rows

    @property
    def digest(self) -> str:
        """The SHA-256 of the rows' bytes, computed once."""
        if self.content.digest is None:
            self.content.digest = hashlib.sha256(raw_bytes(self._rows)).hexdigest()
        return self.content.digest

    def detach(self) -> None:
        """Copy the rows: their memory is about to be written."""
        self._rows = self._rows.copy()
        self._rows.flags.writeable = False


class ChunkedArray:
    """An array whose rows, along the first axis, are in chunks one after another.

    A state of such arrays costs what changed: chunks that were saved before are not saved again, and
    whether anything changed is seen without a look at the rows. ``np.asarray`` gives a plain copy.
    """

    __slots__ = ("chunks", "dtype", "shape")

    def __init__(
        self, chunks: Iterable[Chunk], row: tuple[int, ...], dtype: np.dtype[Any] | type
    ) -> None:
        self.chunks = tuple(chunks)
        self.dtype = np.dtype(dtype)
        self.shape = (sum(map(len, self.chunks)), *row)
        for chunk in self.chunks:
            if chunk.array.dtype != self.dtype or chunk.array.shape[1:] != row:
                raise ValueError(
                    f"a chunk of {chunk.array.dtype} rows {chunk.array.shape[1:]} in an array of "
                    f"{self.dtype} rows {row}"
                )

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """The size of all rows."""
        return sum(chunk.array.nbytes for chunk in self.chunks)

    @property
    def contents(self) -> tuple[Content, ...]:
        """What the array holds, to compare with what it held before."""
        return tuple(chunk.content for chunk in self.chunks)

    def copy(self) -> Array:
        """A plain array of the same rows."""
        return self.__array__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a ChunkedArray becomes a plain array only by a copy")
        out = np.empty(self.shape, self.dtype if dtype is None else dtype)
        at = 0
        for chunk in self.chunks:
            out[at : at + len(chunk)] = chunk.array
            at += len(chunk)
        return out


def mean(values: Any) -> float:
    """``np.mean`` of numbers, digit for digit: without its checks, which take longer than to add up a few."""
    array = np.asarray(values, np.float64)
    return float(np.add.reduce(array) / len(array))


def raw_bytes(array: Array) -> memoryview:
    """An array's bytes in C order, without a copy where it is stored so."""
    if not array.nbytes:
        return memoryview(b"")
    rows: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(rows)


def leaves(tree: Any, name: str = "") -> dict[str, Any]:
    """The arrays of a nested observation (dicts and tuples), named by their path: ``camera/rgb``."""
    if isinstance(tree, Mapping):
        parts = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, (tuple, list)):
        parts = [(str(k), value) for k, value in enumerate(tree)]
    else:
        return {name: tree}
    found: dict[str, Any] = {}
    for key, value in parts:
        found |= leaves(value, f"{name}/{key}" if name else key)
    return found


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """A nested observation of the same structure with a function applied to each array; to those at the
    same place of several observations, where others are given."""
    if isinstance(tree, Mapping):
        return {
            key: map_leaves(function, value, *(o[key] for o in others))
            for key, value in tree.items()
        }
    if isinstance(tree, (tuple, list)):
        return tuple(
            map_leaves(function, value, *(o[k] for o in others)) for k, value in enumerate(tree)
        )
    return function(tree, *others)


def rows_of(tree: Any, rows: Any) -> Any:
    """Some rows of a batch of (nested) observations: an index, a slice, an array or a mask."""
    return map_leaves(lambda a: np.asarray(a)[rows], tree)


def all_finite(tree: Any) -> bool:
    """Whether every number in a nested observation is finite."""
    for leaf in leaves(tree).values():
        if isinstance(leaf, (np.ndarray, float, np.floating)):
            array = np.asarray(leaf)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                return False
    return True


def _is_picture(value: Any) -> bool:
    """Whether an array is a picture: rows, columns and channels of bytes."""
    array = np.asarray(value)
    return array.dtype == np.uint8 and array.ndim == 3


def has_pictures(tree: Any) -> bool:
    """Whether there is a picture in a nested observation."""
    return any(map(_is_picture, leaves(tree).values()))


def without_pictures(tree: Any) -> dict[str, Any]:
    """The arrays of a nested observation by their paths, but for pictures."""
    return {name: leaf for name, leaf in leaves(tree).items() if not _is_picture(leaf)}


def same_leaves(a: Any, b: Any) -> bool:
    """Whether two nested observations are equal; NaN equals NaN."""
    mine, theirs = leaves(a), leaves(b)
    return mine.keys() == theirs.keys() and all(
        np.array_equal(np.asarray(v), np.asarray(theirs[k]), equal_nan=_is_float(v))
        for k, v in mine.items()
    )


def _is_float(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fc"
