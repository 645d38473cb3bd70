"""Seeds are addresses: every random stream is derived from a root seed and a path of names.

There is no hidden history. The seed of episode 17 of block 3 does not depend on what ran
before it, so any part of a lifetime can be run again alone and gives the same rows.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


class Address:
    """A path of names under a root seed. Longer paths are made from it cheaply."""

    __slots__ = ("_hash",)

    def __init__(self, root: int, *path: str | int) -> None:
        if isinstance(root, bool) or not isinstance(root, int):
            raise TypeError(f"the root seed must be an int, got {root!r}")
        self._hash = hashlib.blake2b(f"i{root}".encode(), digest_size=8)
        self._extend(self._hash, path)

    @staticmethod
    def _extend(digest: Any, path: tuple[str | int, ...]) -> None:
        for part in path:
            # Type and length are part of the address: ("1",) and (1,), ("ab",) and ("a", "b")
            # differ.
            text = str(part)
            kind = "s" if isinstance(part, str) else "i"
            digest.update(f"/{kind}{len(text)}:{text}".encode())

    def seed(self, *path: str | int) -> int:
        """The 32-bit seed at this address followed by ``path``."""
        digest = self._hash.copy()
        self._extend(digest, path)
        return int.from_bytes(digest.digest()[:4], "little")


def seed_for(root: int, *path: str | int) -> int:
    """The 32-bit seed at an address. Equal on every platform, in every process.

    Seeds have 32 bits because simulators hand them to generators that accept no more.
    """
    return Address(root, *path).seed()


def rng_for(root: int, *path: str | int) -> np.random.Generator:
    """A numpy generator at an address."""
    return np.random.Generator(np.random.PCG64(seed_for(root, *path)))


_MASK = (1 << 64) - 1


def pack_rng(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A PCG64 generator's whole state as six 64-bit words, for a checkpoint."""
    state = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise TypeError(f"only PCG64 generators can be checkpointed, got {state['bit_generator']}")
    a, b = state["state"]["state"], state["state"]["inc"]
    words = [a & _MASK, a >> 64, b & _MASK, b >> 64, state["has_uint32"], state["uinteger"]]
    return np.array(words, dtype=np.uint64)


def unpack_rng(words: np.ndarray[Any, Any]) -> np.random.Generator:
    """The generator that :func:`pack_rng` packed, at the same point of its stream."""
    w = [int(x) for x in words]
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": w[0] | (w[1] << 64), "inc": w[2] | (w[3] << 64)},
        "has_uint32": w[4],
        "uinteger": w[5],
    }
    return np.random.Generator(bits)
