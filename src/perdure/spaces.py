"""Kinds of spaces, the parts of nested ones, and spaces that hold several others.

Agents declare the kinds they take (``reads`` and ``acts_in`` of their class), and what refuses a space
says who takes it, by ``perdure.agents.networks.checks``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.errors import SpecError

VECTOR, IMAGE, DISCRETE, MULTI_DISCRETE, MULTI_BINARY, DICT, TUPLE = (
    "Box", "image", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple",
)  # fmt: skip
UNBOUNDED, WHOLE, MANY = "unbounded Box", "Box of whole numbers", "more than 4,096 joint actions"
MOST_JOINT = 4096
"""Joint actions of a MultiDiscrete or MultiBinary space that are told apart one by one."""

SYMBOLS, SYMBOL_SIDE = 11, 16
"""A uint8 image whose bounds allow no more numbers than this, and which is no wider or higher than
that, is a map of symbols, not a picture: MiniGrid's 7×7×3 holds object, colour and state numbers,
where 8 is not "nearly 9"."""
PLAIN_SIDE = 8
"""Rows and columns of bytes without an axis of channels are an image if there are as many of both as
this; fewer are a few vectors, such as the memory of a game in stacked frames."""

NESTED = (spaces.Dict, spaces.Tuple)
"""Spaces of several parts."""
FLAT = frozenset({VECTOR, DISCRETE, MULTI_DISCRETE, MULTI_BINARY, DICT, TUPLE})
"""Observations that are numbers side by side; of Dicts and Tuples, those of such parts."""
ALL = FLAT | {IMAGE}
JOINT = frozenset({DISCRETE, MULTI_DISCRETE, MULTI_BINARY})
"""Actions that can be numbered."""
BOUNDED = frozenset({VECTOR})
POLICIES = JOINT | {MANY, VECTOR, UNBOUNDED}
"""Actions of a policy with a distribution over them."""


def image_axes(space: gymnasium.Space[Any]) -> tuple[int, ...] | None:
    """The axes of an image in the order (frames, channels, height, width), where it has the first two;
    None if observations are no image."""
    if not isinstance(space, spaces.Box):
        return None
    shape = space.shape
    if len(shape) == 2:
        return (0, 1) if space.dtype == np.uint8 and min(shape) >= PLAIN_SIDE else None
    if len(shape) not in (3, 4):
        return None
    frames = len(shape) - 3
    last = shape[frames + 2] <= shape[frames]
    channels, height, width = (2, 0, 1) if last else (0, 1, 2)
    axes = (*range(frames), frames + channels, frames + height, frames + width)
    return axes if min(shape[axes[-2]], shape[axes[-1]]) > 1 else None


def is_image(space: gymnasium.Space[Any]) -> bool:
    """Whether observations have rows and columns, and perhaps channels and stacked frames."""
    return image_axes(space) is not None


def is_symbols(space: gymnasium.Space[Any]) -> bool:
    """Whether observations are a small map of symbol numbers, such as MiniGrid's. Its bounds say so:
    those of a picture go up to 255."""
    return (
        isinstance(space, spaces.Box)
        and space.dtype == np.uint8
        and len(space.shape) == 3
        and max(space.shape) <= SYMBOL_SIDE
        and int(space.high.max()) < SYMBOLS
        and is_image(space)
    )


def space_leaves(space: gymnasium.Space[Any], name: str = "") -> dict[str, gymnasium.Space[Any]]:
    """The parts of a nested space by the paths that :func:`perdure.arrays.leaves` gives to the
    arrays of its observations; a space that is not nested is its only part."""
    if isinstance(space, spaces.Dict):
        parts = [(str(key), part) for key, part in space.spaces.items()]
    elif isinstance(space, spaces.Tuple):
        parts = [(str(k), part) for k, part in enumerate(space.spaces)]
    else:
        return {name: space}
    found: dict[str, gymnasium.Space[Any]] = {}
    for key, part in parts:
        more = space_leaves(part, f"{name}/{key}" if name else key)
        for path in more.keys() & found.keys():
            raise SpecError(
                f"two parts of observations have the path {path!r}, expected one: keys of a Dict are "
                f"joined by '/', so rename one of them in {space}"
            )
        found |= more
    return found


def of_parts(space: gymnasium.Space[Any], parts: Mapping[str, Any], name: str = "") -> Any:
    """The observation of a space that has these arrays as its parts, by the paths of
    :func:`space_leaves`: the paths alone do not tell a Tuple from a Dict with the keys "0", "1", …"""
    head = f"{name}/" if name else ""
    if isinstance(space, spaces.Dict):
        return {key: of_parts(part, parts, f"{head}{key}") for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(of_parts(part, parts, f"{head}{k}") for k, part in enumerate(space.spaces))
    return parts[name]


def observation_kinds(space: gymnasium.Space[Any]) -> frozenset[str]:
    """What an agent must be able to read: the kinds of a space and of all its parts."""
    if isinstance(space, NESTED):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return frozenset({type(space).__name__}).union(*map(observation_kinds, parts))
    return frozenset({IMAGE if is_image(space) and not is_symbols(space) else type(space).__name__})


def action_kind(space: gymnasium.Space[Any]) -> str:
    """In what an agent must be able to act."""
    if isinstance(space, spaces.Box):
        if not np.issubdtype(space.dtype, np.floating):
            return WHOLE
        return VECTOR if space.is_bounded() else UNBOUNDED
    if isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
        return type(space).__name__ if prod(choices_of(space)) <= MOST_JOINT else MANY
    return type(space).__name__


def choices_of(
    space: spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary,
) -> tuple[int, ...]:
    """How many choices each part of an action has."""
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(int(n) for n in space.nvec.ravel())
    return (2,) * prod(space.shape)


def joined(one: gymnasium.Space[Any], other: gymnasium.Space[Any]) -> gymnasium.Space[Any] | None:
    """The least space that holds the observations of both, where these are alike but for their
    bounds or their number of values; None if they are not."""
    if one == other:
        return one
    match one, other:
        case spaces.Box(), spaces.Box() if one.shape == other.shape and one.dtype == other.dtype:
            low, high = np.minimum(one.low, other.low), np.maximum(one.high, other.high)
            return spaces.Box(low, high, dtype=one.dtype)
        case spaces.Discrete(), spaces.Discrete() if one.start == other.start:
            return spaces.Discrete(max(one.n, other.n), start=one.start)
        case spaces.MultiDiscrete(), spaces.MultiDiscrete() if (
            one.shape == other.shape
            and one.dtype == other.dtype
            and np.array_equal(one.start, other.start)
        ):
            most = np.maximum(one.nvec, other.nvec)
            return spaces.MultiDiscrete(most, dtype=one.dtype, start=one.start)
        case spaces.Dict(), spaces.Dict() if list(one.spaces) == list(other.spaces):
            parts = {key: joined(part, other[key]) for key, part in one.spaces.items()}
            return None if None in parts.values() else spaces.Dict(parts)  # type: ignore[arg-type]
        case spaces.Tuple(), spaces.Tuple() if len(one) == len(other):
            found = [joined(a, b) for a, b in zip(one.spaces, other.spaces, strict=True)]
            return None if None in found else spaces.Tuple(found)  # type: ignore[arg-type]
    return None


NAMED = 6
"""Parts of a space that a message names, before it counts the rest."""


def differences(here: gymnasium.Space[Any], there: gymnasium.Space[Any]) -> str:
    """How a space that is here differs from the one that was there, part by part; nothing if it does not."""
    if here == there:
        return ""
    if not (isinstance(here, NESTED) and isinstance(there, NESTED)):
        return f"it is {here}, not {there}"
    mine, theirs = space_leaves(here), space_leaves(there)
    found = []
    for what, names in (
        ("lacks", [n for n in theirs if n not in mine]),
        ("has besides", [n for n in mine if n not in theirs]),
    ):
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            found.append(f"it {what} {', '.join(names[:NAMED])}{more}")
    apart = [n for n in mine if n in theirs and mine[n] != theirs[n]]
    found += [f"{n} is {mine[n]}, not {theirs[n]}" for n in apart[:NAMED]]
    if len(apart) > NAMED:
        found.append(f"{len(apart) - NAMED} more parts differ")
    return "; ".join(found) or f"it is {here}, not {there}"
