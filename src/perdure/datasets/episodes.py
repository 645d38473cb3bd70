"""An episode as a dataset holds it, whatever the dataset's format."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.errors import StoreError


@dataclass(frozen=True)
class DatasetEpisode:
    """One episode of T steps. Every array has time as its first axis."""

    observations: Mapping[str, Array]
    """By name, T or T + 1 of each: with the last, what was seen when it was over. ``""`` is the name of
    an observation that is a single array."""
    actions: Array
    rewards: Array
    terminations: Array
    truncations: Array
    successes: Array | None = None
    task: str = ""
    """In words, or its id."""
    seed: int | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    """Plain values."""
    infos: Mapping[str, Array] = field(default_factory=dict)
    """What else there is of each step, T or T + 1 of it: with the first, what was known at the reset."""

    def __post_init__(self) -> None:
        steps = len(self.actions)
        arrays = {
            "rewards": self.rewards,
            "terminations": self.terminations,
            "truncations": self.truncations,
        }
        if self.successes is not None:
            arrays["successes"] = self.successes
        for name, array in arrays.items():
            if np.shape(array) != (steps,):
                raise StoreError(
                    f"{name}: expected {steps}, one for each action, got {np.shape(array)}"
                )
        named = {**self.observations, **{f"infos/{n}": a for n, a in self.infos.items()}}
        for name, array in named.items():
            if len(array) not in (steps, steps + 1):
                raise StoreError(
                    f"observation {name!r}: expected {steps} or {steps + 1} steps, got {len(array)}"
                )
        if not steps:
            raise StoreError("an episode needs at least one step")

    def __len__(self) -> int:
        return len(self.actions)


def is_picture(array: Array) -> bool:
    """Whether an array of steps is of pictures: rows, columns and three colours of bytes."""
    return array.ndim == 4 and array.dtype == np.uint8 and array.shape[-1] == 3


@contextmanager
def new_folder(out: str | Path) -> Iterator[Path]:
    """A folder to write a dataset into, which becomes ``out`` at the end: one that is empty, or does not exist. If
    anything fails, nothing is left of it."""
    try:
        root = Path(out).resolve()
        taken = root.exists() and any(root.iterdir())
        beside = root.with_name(f"_{root.name}.{os.getpid()}.tmp")
        if not taken:
            beside.mkdir(parents=True)
    except (OSError, ValueError) as e:
        raise StoreError(f"{out!r:.80} cannot be the folder of a dataset: {e}") from e
    if taken:
        raise StoreError(f"{out} is not empty, and nothing is overwritten: name another folder")
    try:
        yield beside
        beside.rename(root)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
