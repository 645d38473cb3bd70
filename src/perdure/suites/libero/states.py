"""The official initial states: fifty of each task, in the order in which episodes play them."""

from __future__ import annotations

import functools

import numpy as np

from perdure.errors import EnvironmentFault
from perdure.suites.libero import assets
from perdure.types import Array

COUNT = 50


@functools.lru_cache(maxsize=32)
def official(folder: str, name: str) -> Array:
    """Fifty rows of time, positions and velocities. Not to be written to."""
    path = assets.file("states", f"{folder}/{name}.pruned_init.npz")
    with np.load(path, allow_pickle=False) as stored:
        states: Array = stored["states"]
    if states.ndim != 2 or len(states) != COUNT:
        raise EnvironmentFault(f"{path}: expected {COUNT} states, got an array of {states.shape}")
    states.setflags(write=False)
    return states


def numbered(folder: str, name: str, number: int) -> Array:
    """State ``number``; there is none beyond the fifty."""
    if not 0 <= number < COUNT:
        raise EnvironmentFault(
            f"{name}: there are {COUNT} official initial states, 0 to {COUNT - 1}, and episode "
            f"{number} would repeat one; set initial_states to cycle if that is meant, or to random"
        )
    row: Array = official(folder, name)[number]
    return row
