"""What arrays are called in signatures, and nested observations taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
State: TypeAlias = Mapping[str, Array]


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


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """A nested observation of the same structure with a function applied to each array."""
    if isinstance(tree, Mapping):
        return {key: map_leaves(function, value) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return tuple(map_leaves(function, value) for value in tree)
    return function(tree)


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


def same_leaves(a: Any, b: Any) -> bool:
    """Whether two nested observations are equal; NaN equals NaN."""
    mine, theirs = leaves(a), leaves(b)
    return mine.keys() == theirs.keys() and all(
        np.array_equal(np.asarray(v), np.asarray(theirs[k]), equal_nan=_is_float(v))
        for k, v in mine.items()
    )


def _is_float(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fc"
