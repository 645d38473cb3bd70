"""Spaces as Minari writes them down, and the arrays that an observation consists of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from perdure.arrays import Array
from perdure.errors import StoreError
from perdure.policies.pictures import decoded

Spaced = spaces.Space[Any]
FLAT = (spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)
"""Spaces of arrays of a fixed shape."""
KNOWN = "Box, Discrete, MultiDiscrete, MultiBinary, Text, Dict and Tuple are known"
SMALLEST = 32
"""Rows and columns of what Minari takes for a picture."""
LeafPath = tuple[str | int, ...]
"""Where a part is: keys of Dicts, numbers in Tuples."""


def leaves(space: Spaced, place: LeafPath = ()) -> Iterator[tuple[LeafPath, Spaced]]:
    """The parts of a space that are arrays or texts, and their places."""
    if isinstance(space, spaces.Dict):
        for name, part in space.spaces.items():
            yield from leaves(part, (*place, name))
    elif isinstance(space, spaces.Tuple):
        for k, part in enumerate(space.spaces):
            yield from leaves(part, (*place, k))
    else:
        yield place, space


def part_name(place: LeafPath) -> str:
    """What an episode calls a part."""
    return "/".join(map(str, place))


def is_image_space(space: Spaced) -> bool:
    """What Minari takes for pictures: bytes from 0 to 255 in rows and columns, 32 or more of each."""
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8:
        return False
    large = len(space.shape) in (2, 3) and min(space.shape[:2]) >= SMALLEST
    return large and bool((space.low == 0).all() and (space.high == 255).all())


def picture(data: bytes, space: Spaced) -> Array:
    """A picture of a space, from its JPEG file."""
    found = decoded(data)
    return found[..., 0] if len(space.shape or ()) == 2 else found


def space_json(space: Spaced) -> dict[str, Any]:
    """A space as Minari writes it down."""
    if isinstance(space, spaces.Box):
        shape = {"dtype": str(space.dtype), "shape": list(space.shape)}
        return {"type": "Box", **shape, "low": space.low.tolist(), "high": space.high.tolist()}
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "dtype": "int64", "start": int(space.start), "n": int(space.n)}
    if isinstance(space, spaces.MultiDiscrete):
        counts = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
        return {"type": "MultiDiscrete", "dtype": str(space.dtype), **counts}
    if isinstance(space, spaces.MultiBinary):
        n = space.n if isinstance(space.n, int) else [int(k) for k in space.n]
        return {"type": "MultiBinary", "n": n}
    if isinstance(space, spaces.Text):
        lengths = {"max_length": space.max_length, "min_length": space.min_length}
        return {"type": "Text", **lengths, "charset": space.characters}
    if isinstance(space, spaces.Dict):
        parts = {name: space_json(part) for name, part in space.spaces.items()}
        return {"type": "Dict", "subspaces": parts}
    if isinstance(space, spaces.Tuple):
        return {"type": "Tuple", "subspaces": [space_json(part) for part in space.spaces]}
    raise StoreError(f"{space} is not written: {KNOWN}")


def space_of(found: Any) -> Spaced:
    """The space that Minari wrote down."""
    kind = found.get("type") if isinstance(found, dict) else None
    if kind == "Box":
        dtype = np.dtype(found["dtype"])
        low, high = (np.array(found[k], dtype).reshape(found["shape"]) for k in ("low", "high"))
        return spaces.Box(low, high, tuple(found["shape"]), dtype.type)
    if kind == "Discrete":
        return spaces.Discrete(found["n"], start=found["start"])
    if kind == "MultiDiscrete":
        dtype = np.dtype(found["dtype"])
        return spaces.MultiDiscrete(
            np.array(found["nvec"], dtype), dtype.type, start=np.array(found["start"], dtype)
        )
    if kind == "MultiBinary":
        return spaces.MultiBinary(found["n"])
    if kind == "Text":
        lengths = {"min_length": found["min_length"], "charset": found["charset"]}
        return spaces.Text(found["max_length"], **lengths)
    if kind == "Dict":
        return spaces.Dict({n: space_of(part) for n, part in found["subspaces"].items()})
    if kind == "Tuple":
        return spaces.Tuple([space_of(part) for part in found["subspaces"]])
    raise StoreError(f"a space of type {kind!r} is not read: {KNOWN}")
