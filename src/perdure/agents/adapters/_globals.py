"""The process's global generators, lent to one guest at a time.

Libraries that draw from ``random``, ``numpy.random`` and ``torch`` without being handed a
generator are guests: each has states of its own, put in place around every call and taken out
after it. So the process outside sees nothing, two guests do not disturb each other, and a
guest's randomness can be written down.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure.types import Array


@dataclass
class _Seat:
    """Where the global generators stand."""

    python: tuple[Any, ...]
    bits: np.random.BitGenerator
    """numpy's generator itself: changing over to another is a hundred times cheaper than
    copying its state."""
    gauss: tuple[int, float]
    """The second number of numpy's last pair of normal draws, which a change-over loses."""
    mark: bytes = b""
    torch: Any = None
    cuda: Any = None


def _mark(bits: np.random.BitGenerator) -> bytes:
    """numpy's words as they lie in memory: whoever draws, changes them. Read only."""
    if type(bits) is not np.random.MT19937:
        return b""
    return ctypes.string_at(bits.ctypes.state_address, 625 * 4)


def _gauss(bits: np.random.BitGenerator, mark: bytes, before: _Seat | None) -> tuple[int, float]:
    """The spare normal draw. Asking numpy for it copies all words one by one, which costs as much
    as a forward pass; where nothing was drawn since there was none, there is none."""
    if before and before.bits is bits and mark and before.mark == mark and not before.gauss[0]:
        return 0, 0.0
    legacy: dict[str, Any] = np.random.get_state(legacy=False)
    return int(legacy["has_gauss"]), float(legacy["gauss"])


def _take(before: _Seat | None = None) -> _Seat:
    """Where the generators stand now; ``before`` is where they were last seen."""
    bits = np.random.get_bit_generator()  # type: ignore[attr-defined]
    mark = _mark(bits)
    seat = _Seat(random.getstate(), bits, _gauss(bits, mark, before), mark)
    # torch is asked for only where somebody has imported it: it is an optional dependency.
    torch = sys.modules.get("torch")
    if torch is not None:
        seat.torch = torch.get_rng_state()
        if torch.cuda.is_initialized():
            seat.cuda = torch.cuda.get_rng_state_all()
    return seat


def _put(seat: _Seat) -> None:
    random.setstate(seat.python)
    np.random.set_bit_generator(seat.bits)  # type: ignore[attr-defined]
    if seat.gauss[0]:
        legacy: dict[str, Any] = np.random.get_state(legacy=False)
        legacy["has_gauss"], legacy["gauss"] = seat.gauss
        np.random.set_state(legacy)
    torch = sys.modules.get("torch")
    if torch is not None and seat.torch is not None:
        torch.set_rng_state(seat.torch)
        if seat.cuda is not None:
            torch.cuda.set_rng_state_all(seat.cuda)


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


class Guest:
    """One guest's own states of the global generators, seeded at first."""

    _outside: _Seat | None = None
    """Where the process's own generators were put back last, for any guest."""

    def __init__(self, seed: int) -> None:
        self._first = seed
        self._seat: _Seat | None = None
        with self.lent():
            pass

    @contextmanager
    def lent(self, passing: int | None = None) -> Iterator[None]:
        """The global generators are the guest's inside, and as they were after.

        With ``passing``, a seed, the guest gets generators of that seed and its own stay
        where they are: for evaluation, which must leave no trace.
        """
        outer = Guest._outside = _take(Guest._outside)
        mine: _Seat | None = None
        try:
            if passing is not None or self._seat is None:
                fresh = np.random.MT19937(0)
                np.random.set_bit_generator(fresh)  # type: ignore[attr-defined]
                _seed(self._first if passing is None else passing)
            else:
                if self._seat.torch is None and "torch" in sys.modules:
                    sys.modules["torch"].manual_seed(self._first)
                mine = self._seat
                _put(mine)
            try:
                yield
            finally:
                if passing is None:
                    self._seat = _take(mine)
        finally:
            _put(outer)

    def state(self) -> dict[str, Array]:
        """The guest's generators as arrays."""
        assert self._seat is not None
        _, words, gauss = self._seat.python
        twister = self._seat.bits.state["state"]
        out: dict[str, Array] = {
            "python": np.array(words, np.uint32),
            "python.gauss": np.array([] if gauss is None else [gauss]),
            "numpy": np.append(twister["key"], twister["pos"]).astype(np.uint32),
            "numpy.gauss": np.array(self._seat.gauss[1:] if self._seat.gauss[0] else []),
        }
        if self._seat.torch is not None:
            out["torch"] = self._seat.torch.numpy().copy()
        for i, words in enumerate(self._seat.cuda or ()):
            out[f"cuda.{i}"] = words.numpy().copy()
        return out

    def load(self, state: Mapping[str, Array]) -> None:
        """Take over what :meth:`state` gave."""
        gauss = state["python.gauss"].tolist()
        bits = np.random.MT19937(0)
        bits.state = {
            "bit_generator": "MT19937",
            "state": {"key": state["numpy"][:-1], "pos": int(state["numpy"][-1])},
        }
        cached = state["numpy.gauss"].tolist()
        self._seat = _Seat(
            (3, tuple(state["python"].tolist()), gauss[0] if gauss else None),
            bits,
            (1, cached[0]) if cached else (0, 0.0),
        )
        if "torch" in state:
            import torch

            self._seat.torch = torch.from_numpy(np.array(state["torch"]))
            cards = sorted(k for k in state if k.startswith("cuda."))
            if cards:
                self._seat.cuda = [torch.from_numpy(np.array(state[k])) for k in cards]
