"""What is wrong with what a policy is shown, and with what becomes of its actions, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from perdure.arrays import Array

TURNS: Mapping[str, Callable[[Array], Array]] = {
    "upside down": lambda p: p[::-1],
    "mirrored": lambda p: p[:, ::-1],
    "turned by 180 degrees": lambda p: p[::-1, ::-1],
    "turned on its side": lambda p: p.swapaxes(0, 1),
    "with red and blue exchanged": lambda p: p[:, :, ::-1],
}
STRANGE = "shows something else"
LIKE = 2.0
"""Mean difference of two pictures' bytes that redrawing and resizing may make."""


def looked_at(expected: Mapping[str, Array], parts: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with what a policy is shown when an episode begins."""
    for name in sorted(expected.keys() - parts.keys()):
        yield f"{name} is not shown"
    found: list[str] = []
    common = sorted(expected.keys() & parts.keys())
    for name in common:
        want, has = expected[name], np.asarray(parts[name])
        found += (_pictured if want.ndim == 3 else _numbered)(name, want, has)
    yield from found
    pictures = sum(expected[n].ndim == 3 for n in common)
    if pictures and sum(STRANGE in f for f in found) == pictures:
        yield (
            "the episode begins with other things to see: another initial state, other settle steps, another "
            "look or rendering"
        )


def _pictured(name: str, want: Array, has: Array) -> Iterator[str]:
    if want.shape != has.shape:
        yield f"{name} has {has.shape[0]} pixels a side, expected {want.shape[0]}"
        if want.shape[0] < has.shape[0] and has.shape[0] == has.shape[1]:
            from perdure.policies.pictures import resized

            has = resized(np.ascontiguousarray(has), want.shape[0])
        if want.shape != has.shape:
            return
    if _apart(want, has) <= LIKE:
        return
    for words, turned in TURNS.items():
        other = turned(has)
        if other.shape == want.shape and _apart(want, other) <= LIKE:
            yield f"{name} is {words}"
            return
    yield f"{name} {STRANGE}, by {_apart(want, has):.0f} of 255 on average"


def _apart(a: Array, b: Array) -> float:
    return float(np.abs(a.astype(np.float64) - b).mean())


def _numbered(name: str, want: Array, has: Array) -> Iterator[str]:
    if want.shape != has.shape:
        yield f"{name} has shape {has.shape}, expected {want.shape}"
    elif not np.allclose(want, has, atol=1e-5):
        turn = slice(3, 6)
        rest = np.delete(want, turn), np.delete(has, turn)
        if len(want) == 8 and np.allclose(*rest, atol=1e-5):
            angles = [float(np.linalg.norm(v[turn])) for v in (want, has)]
            same = abs(sum(angles) - 2 * np.pi) < 1e-3
            how = "of the other sign: the same turn the other way round" if same else "another one"
            yield f"{name}: the turn (axis times angle) is {how}"
        elif np.allclose(np.sort(want), np.sort(has), atol=1e-5):
            yield f"{name} has the same numbers in another order"
        else:
            yield f"{name} differs by up to {float(np.abs(want - has).max()):.3g}"


def done_as(want: Array, has: Array) -> Iterator[str]:
    """What became of a policy's actions on their way: those that were meant, those that arrived."""
    grips = want[:, -1], has[:, -1]
    if not np.allclose(want[:, :-1], has[:, :-1], atol=1e-5):
        worst = float(np.abs(want[:, :-1] - has[:, :-1]).max())
        yield f"actions arrive otherwise than they were sent, by up to {worst:.3g}"
    binary = np.sign(grips[0])
    if np.allclose(*grips, atol=1e-5):
        return
    if np.allclose(binary, np.sign(grips[1])):
        if not set(np.unique(np.abs(grips[1]))) <= {0.0, 1.0}:
            yield "the gripper's command arrives with another strength"
        return
    if np.allclose(binary, -np.sign(grips[1])):
        yield "the gripper is the other way round: what opens it closes it"
        return
    yield "the gripper's command arrives as another one: zero-one and as-is are mixed up"
