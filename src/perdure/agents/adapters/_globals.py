"""The process's global generators, with states of its own for each agent that draws from them.

Libraries draw from ``random``, ``numpy.random`` and ``torch`` without being handed a generator. The
states of an agent that is made of one are put in place around every call and taken out after it. So the
process outside sees nothing, two such agents do not disturb each other, and their randomness can be
written down.
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
class RngState:
    """States of the global generators."""

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


def _gauss(bits: np.random.BitGenerator, mark: bytes, before: RngState | None) -> tuple[int, float]:
    """The spare normal draw. Asking numpy for it copies all words one by one, which costs as much
    as a forward pass; where nothing was drawn since there was none, there is none."""
    if before and before.bits is bits and mark and before.mark == mark and not before.gauss[0]:
        return 0, 0.0
    legacy: dict[str, Any] = np.random.get_state(legacy=False)
    return int(legacy["has_gauss"]), float(legacy["gauss"])


def _take(before: RngState | None = None) -> RngState:
    """Where the generators stand now; ``before`` is where they were last seen."""
    bits = np.random.get_bit_generator()  # type: ignore[attr-defined]
    mark = _mark(bits)
    state = RngState(random.getstate(), bits, _gauss(bits, mark, before), mark)
    # torch is asked for only where somebody has imported it: it is an optional dependency.
    torch = sys.modules.get("torch")
    if torch is not None:
        state.torch = torch.get_rng_state()
        if torch.cuda.is_initialized():
            state.cuda = torch.cuda.get_rng_state_all()
    return state


def _put(state: RngState) -> None:
    random.setstate(state.python)
    np.random.set_bit_generator(state.bits)  # type: ignore[attr-defined]
    if state.gauss[0]:
        legacy: dict[str, Any] = np.random.get_state(legacy=False)
        legacy["has_gauss"], legacy["gauss"] = state.gauss
        np.random.set_state(legacy)
    torch = sys.modules.get("torch")
    if torch is not None and state.torch is not None:
        torch.set_rng_state(state.torch)
        if state.cuda is not None:
            torch.cuda.set_rng_state_all(state.cuda)


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


class GlobalRng:
    """One agent's own states of the global generators, seeded at first."""

    _outside: RngState | None = None
    """Where the process's own generators were put back last, for any agent."""

    def __init__(self, seed: int) -> None:
        self._first = seed
        self._state: RngState | None = None
        with self.swapped_in():
            pass

    @contextmanager
    def swapped_in(self, passing: int | None = None) -> Iterator[None]:
        """The global generators have these states inside, and are as they were after.

        With ``passing``, a seed, they are seeded with it inside, and these states stay as
        they are: for evaluation, which must leave no trace.
        """
        outer = GlobalRng._outside = _take(GlobalRng._outside)
        mine: RngState | None = None
        try:
            if passing is not None or self._state is None:
                fresh = np.random.MT19937(0)
                np.random.set_bit_generator(fresh)  # type: ignore[attr-defined]
                _seed(self._first if passing is None else passing)
            else:
                if self._state.torch is None and "torch" in sys.modules:
                    sys.modules["torch"].manual_seed(self._first)
                mine = self._state
                _put(mine)
            try:
                yield
            finally:
                if passing is None:
                    self._state = _take(mine)
        finally:
            _put(outer)

    def state(self) -> dict[str, Array]:
        """The generators as arrays."""
        assert self._state is not None
        _, words, gauss = self._state.python
        twister = self._state.bits.state["state"]
        out: dict[str, Array] = {
            "python": np.array(words, np.uint32),
            "python.gauss": np.array([] if gauss is None else [gauss]),
            "numpy": np.append(twister["key"], twister["pos"]).astype(np.uint32),
            "numpy.gauss": np.array(self._state.gauss[1:] if self._state.gauss[0] else []),
        }
        if self._state.torch is not None:
            out["torch"] = self._state.torch.numpy().copy()
        for i, words in enumerate(self._state.cuda or ()):
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
        self._state = RngState(
            (3, tuple(state["python"].tolist()), gauss[0] if gauss else None),
            bits,
            (1, cached[0]) if cached else (0, 0.0),
        )
        if "torch" in state:
            import torch

            self._state.torch = torch.from_numpy(np.array(state["torch"]))
            cards = sorted(k for k in state if k.startswith("cuda."))
            if cards:
                self._state.cuda = [torch.from_numpy(np.array(state[k])) for k in cards]
