"""How long the rest of a lifetime takes, from how long each of its blocks took so far.

A step of learning may cost a hundred steps of evaluation or a hundredth of one, so each kind of block has
a pace of its own. And it may change from block to block: who replays all it ever saw needs longer for each
task than for the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

ENOUGH = 0.1
"""Share of a block that must be done for its pace to be known."""
RISE = 1.2
"""A pace that rose by this factor since the first block of its kind is expected to go on rising."""
MOST = 3.0
"""So many times the last pace is expected at most."""


class BlockWork(NamedTuple):
    """A block of a lifetime and how much of its work is done."""

    kind: str
    work: float
    done: float


def time_left(blocks: Sequence[BlockWork], spent: Mapping[int, float]) -> float | None:
    """Seconds that are left, if the work of block k took ``spent[k]`` seconds where that is known; None
    while nothing is."""
    known = {
        k: spent[k] / b.done
        for k, b in enumerate(blocks)
        if spent.get(k, 0.0) > 0 and b.done > 0 and b.done >= ENOUGH * b.work
    }
    if not known:  # The first block has just begun.
        known = {k: spent[k] / b.done for k, b in enumerate(blocks) if spent.get(k) and b.done > 0}
    if not known:
        return None
    total = sum(pace * blocks[k].done for k, pace in known.items())
    usual = total / sum(blocks[k].done for k in known)
    left = 0.0
    for k, block in enumerate(blocks):
        if block.done < block.work:
            pace = known.get(k) or expected(known, blocks, k)
            left += (block.work - block.done) * (usual if pace is None else pace)
    return left


def expected(known: Mapping[int, float], blocks: Sequence[BlockWork], place: int) -> float | None:
    """Seconds a step in a block to come, by the blocks of its kind that were before; None without any."""
    alike = [k for k in known if blocks[k].kind == blocks[place].kind]
    if not alike:
        return None
    first, last = min(alike), max(alike)
    if len(alike) > 1 and known[last] > RISE * known[first] and place > last:
        rise = (known[last] - known[first]) / (last - first)
        return min(known[last] + rise * (place - last), MOST * known[last])
    work = sum(blocks[k].done for k in alike)
    return sum(known[k] * blocks[k].done for k in alike) / work
