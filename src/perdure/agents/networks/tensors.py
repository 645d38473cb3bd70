"""Devices, and the one place where tensors become arrays and arrays become tensors.

Everything that leaves torch for numpy goes through :func:`to_array` or :func:`to_float`, everything
that enters through :func:`to_tensor`. So no other module has to know where a tensor lies, and what is
written to disk is the same whatever the device.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from perdure.errors import SpecError
from perdure.types import Array

CPU = torch.device("cpu")
"""Where networks are initialised, and where computations on arrays stay."""
CACHE = 1 << 18
"""Numbers that a core keeps at hand (1 MB)."""

FREED = 128 << 20
"""Bytes that a process keeps when they are freed."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep what is freed, unless the environment tells it what to do.

    Large tensors come and go with every minibatch. By default (glibc) their memory goes back to the
    system, which has to clear it page by page when it is asked for again: a tenth of a recurrent
    learner's update.
    """
    if sys.platform == "linux" and not any(name.startswith("MALLOC_") for name in os.environ):
        trim_threshold, mmap_threshold = -1, -3  # malloc.h
        with suppress(AttributeError, OSError):
            library = ctypes.CDLL(None)
            library.mallopt(trim_threshold, FREED)
            library.mallopt(mmap_threshold, 32 << 20)


def available_devices() -> tuple[str, ...]:
    """The devices of this machine, the one that ``auto`` takes first."""
    found = [f"cuda:{k}" for k in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return (*found, "cpu")


def resolve_device(name: str) -> torch.device:
    """The device of this name: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``. ``cuda`` is the
    first of them."""
    there = available_devices()
    if name == "auto":
        return torch.device(there[0])
    full = f"{name}:0" if name == "cuda" else name
    if full not in there:
        raise SpecError(
            f"device={name!r} is not on this machine, which has {', '.join(there)}: choose one of "
            "these or auto"
        )
    return torch.device(full)


def to_array(tensor: Tensor) -> Array:
    """The numbers of a tensor. On the CPU the array shares its memory: copy what is to be kept."""
    array: Array = tensor.detach().cpu().numpy()
    return array


def to_float(tensor: Tensor) -> float:
    """The number in a tensor that holds one."""
    return float(tensor.item())


def to_floats(measures: Mapping[str, Tensor]) -> dict[str, float]:
    """Named numbers, such as the measures of a loss."""
    return {name: to_float(value) for name, value in measures.items()}


def to_tensor(array: Any, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A new tensor with the numbers of an array.

    Always a copy, made by torch even where numpy's memory would do: torch aligns to 64 bytes, and
    matrix products may round otherwise on memory that is aligned otherwise.
    """
    if device == CPU:
        return torch.tensor(array, dtype=dtype, device=device)
    values = np.asarray(array)
    if values.dtype == np.uint8:
        # Images cross to the device as bytes and become floats there.
        moved = torch.tensor(values).to(device)
        return moved if dtype is None else moved.to(dtype)
    # Numbers are converted first: not every device knows float64.
    return torch.tensor(values, dtype=dtype).to(device)
