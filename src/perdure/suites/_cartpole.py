"""CartPole in plain numbers: bit-equal to Gymnasium's own environment, several times faster.

Gymnasium computes each step with numpy scalars and checks around them; here the same operations,
in the same order, run on Python floats, which are the same IEEE doubles. A numpy may have a cosine of
its own, which differs from the C library's in the last bit of many results; there numpy's is called. The
dynamics are those of Barto, Sutton and Anderson (1983) with Gymnasium's constants.

An episode of a bad policy is ten steps long, so its seeding counts: making a numpy generator costs
more than all ten steps. Its first four numbers are therefore computed here, by the algorithms that
numpy documents: SeedSequence (O'Neill's seed_seq_fe), then PCG64 (XSL-RR).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from perdure.suite import Episode
from perdure.types import Array

GRAVITY, CART, POLE, LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
MASS = POLE + CART
POLE_LENGTH = POLE * LENGTH
FALLEN = 12 * 2 * np.pi / 360
EDGE = 2.4
HORIZON = 500
WIDTH = 0.05 - -0.05


def _as_numpy(name: str) -> Callable[[float], float]:
    """The C library's function, a third of the time, if it and numpy's agree on 2,000 angles that an episode may
    have."""
    ours, theirs = getattr(math, name), getattr(np, name)
    angles = np.linspace(-0.25, 0.25, 2000)
    if [ours(a) for a in angles.tolist()] == theirs(angles).tolist():
        return ours  # type: ignore[no-any-return]
    return lambda angle: float(theirs(angle))


COS, SIN = _as_numpy("cos"), _as_numpy("sin")

PCG_HIGH, PCG_LOW = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)
PAIRS = [(a, b) for a in range(4) for b in range(4) if a != b]


def _hashes(start: int, factor: int, count: int) -> list[tuple[np.uint32, np.uint32]]:
    """The constants a hash uses, in turn: they do not depend on what is hashed."""
    words = [start * pow(factor, i, 1 << 32) % (1 << 32) for i in range(count + 1)]
    return [(np.uint32(a), np.uint32(b)) for a, b in pairwise(words)]


_POOL = _hashes(0x43B0D7E5, 0x931E8875, 16)
_DRAW = _hashes(0x8B51F9DD, 0x58F38DED, 8)
_LEFT, _RIGHT, _HALF = np.uint32(0xCA01F9DD), np.uint32(0x4973F715), np.uint32(16)


def _hashed(value: Array, constants: tuple[np.uint32, np.uint32]) -> Array:
    mixed: Array = (value ^ constants[0]) * constants[1]
    out: Array = mixed ^ mixed >> _HALF
    return out


def first_doubles(seeds: Sequence[int]) -> list[list[float]]:
    """``np.random.Generator(np.random.PCG64(seed)).random(4)`` for each of some 32-bit seeds."""
    words = np.zeros((4, len(seeds)), np.uint32)
    words[0] = seeds
    pool = [_hashed(w, h) for w, h in zip(words, _POOL[:4], strict=True)]
    for (a, b), h in zip(PAIRS, _POOL[4:], strict=True):
        mixed: Array = _LEFT * pool[b] - _RIGHT * _hashed(pool[a], h)
        pool[b] = mixed ^ mixed >> _HALF
    drawn = np.stack([_hashed(pool[i & 3], h) for i, h in enumerate(_DRAW)], axis=1)
    high, low, stream_high, stream_low = drawn.view("<u8").T.copy()
    inc = stream_high << _ONE | stream_low >> _LAST, stream_low << _ONE | _ONE
    state = _advanced(_sum(inc, (high, low)), inc)
    doubles = []
    for _ in range(4):
        state = high, low = _advanced(state, inc)
        folded, turn = high ^ low, high >> _TURN
        doubles.append((folded >> turn | folded << (-turn & _LAST)) >> _BITS)
    out: list[list[float]] = (np.stack(doubles, axis=1) * 2.0**-53).tolist()
    return out


_ONE, _LAST, _TURN, _BITS, _WORD = (np.uint64(n) for n in (1, 63, 58, 11, 32))
_LOWER = np.uint64(2**32 - 1)
CartState = tuple[float, float, float, float]
"""Position, velocity, angle and its velocity."""
Wide = tuple[Array, Array]
"""Numbers of 128 bits as their higher and lower halves."""


def _sum(a: Wide, b: Wide) -> Wide:
    low = a[1] + b[1]
    return a[0] + b[0] + (low < b[1]), low


def _advanced(state: Wide, inc: Wide) -> Wide:
    """``state * PCG + inc``."""
    high, low = state
    # The upper half of low × PCG_LOW, from products of 32 bits.
    a, b, c, d = low & _LOWER, low >> _WORD, PCG_LOW & _LOWER, PCG_LOW >> _WORD
    left, right = b * c, a * d
    middle = (a * c >> _WORD) + (left & _LOWER) + (right & _LOWER)
    carried = b * d + (left >> _WORD) + (right >> _WORD) + (middle >> _WORD)
    return _sum((high * PCG_LOW + low * PCG_HIGH + carried, low * PCG_LOW), inc)


def _pushed(state: CartState, action: Any) -> CartState:
    """One step of the physics."""
    x, x_dot, theta, theta_dot = state
    force = FORCE if action == 1 else -FORCE
    c, s = COS(theta), SIN(theta)
    temp = (force + POLE_LENGTH * (theta_dot * theta_dot) * s) / MASS
    theta_acc = (GRAVITY * s - c * temp) / (LENGTH * (4.0 / 3.0 - POLE * (c * c) / MASS))
    x_acc = temp - POLE_LENGTH * theta_acc * c / MASS
    return (
        x + TAU * x_dot,
        x_dot + TAU * x_acc,
        theta + TAU * theta_dot,
        theta_dot + TAU * theta_acc,
    )


def _over(state: CartState) -> bool:
    """Whether the cart has left the track or the pole has fallen."""
    x, _, theta, _ = state
    return not (-EDGE <= x <= EDGE and -FALLEN <= theta <= FALLEN)


class CartPoles:
    """``count`` carts with a pole each."""

    def __init__(self, count: int) -> None:
        self.states: list[CartState] = [(0.0, 0.0, 0.0, 0.0)] * count
        self.taken = [0] * count
        self.starts: dict[int, list[float]] = {}

    def expect(self, episodes: Sequence[Episode]) -> None:
        """Compute the starts of the coming episodes together: a third of the cost."""
        seeds = [e.seed for e in episodes]
        self.starts = dict(zip(seeds, first_doubles(seeds), strict=True))

    def reset(self, slot: int, episode: Episode) -> Array:
        """Begin an episode."""
        seed = episode.seed
        if seed not in self.starts:
            self.expect([episode])
        a, b, c, d = self.starts[seed]
        # The difference is taken as Gymnasium's call of uniform(low, high) takes it.
        state = (WIDTH * a - 0.05, WIDTH * b - 0.05, WIDTH * c - 0.05, WIDTH * d - 0.05)
        self.states[slot], self.taken[slot] = state, 0
        return np.array(state, np.float32)

    def step(
        self, slots: Sequence[int], actions: Sequence[Any]
    ) -> tuple[Array, list[float], list[bool], list[bool], Mapping[int, Mapping[str, Any]]]:
        """Push each cart left or right."""
        states, taken = self.states, self.taken
        if len(slots) == 1:  # A list of one in the place of each loop.
            slot = slots[0]
            states[slot] = state = _pushed(states[slot], actions[0])
            taken[slot] = steps = taken[slot] + 1
            return np.array(state, np.float32)[None], [1.0], [_over(state)], [steps >= HORIZON], {}
        seen: list[float] = []
        ends, cuts = [], []
        for k, slot in enumerate(slots):
            states[slot] = state = _pushed(states[slot], actions[k])
            taken[slot] = steps = taken[slot] + 1
            seen += state
            ends.append(_over(state))
            cuts.append(steps >= HORIZON)
        obs = np.array(seen, np.float32).reshape(len(slots), 4)
        return obs, [1.0] * len(slots), ends, cuts, {}

    def close(self) -> None:
        """Nothing to let go of."""
