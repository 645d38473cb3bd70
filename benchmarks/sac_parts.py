"""What every side of the SAC benchmark has in common: sizes, settings, a replay. Needs numpy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

OBS, ACTIONS, REPLAY = 39, 4, 10_000
LR, GAMMA, TAU = 3e-4, 0.99, 0.005


@dataclass(frozen=True)
class Size:
    """Networks, and rows of a minibatch, as many of each task."""

    hidden: tuple[int, ...]
    batch: int
    tasks: int
    updates: int
    """How many are timed at once."""


SIZES = {
    "2 × 256, batch 128": Size((256, 256), 128, 1, 200),
    "3 × 400, batch 1280, ten tasks": Size((400, 400, 400), 1280, 10, 20),
}


def widths(size):
    """Numbers of the policy's input, with a place for each task where there are many; hidden units."""
    return OBS + (size.tasks if size.tasks > 1 else 0), size.hidden


def rows(size):
    """A replay for each task."""
    rng = np.random.default_rng(0)
    inputs, _ = widths(size)
    return [
        {
            "obs": rng.standard_normal((REPLAY, inputs), np.float32),
            "actions": rng.uniform(-1, 1, (REPLAY, ACTIONS)).astype(np.float32),
            "rewards": rng.random(REPLAY, np.float32),
            "terminated": np.zeros(REPLAY, bool),
            "next_obs": rng.standard_normal((REPLAY, inputs), np.float32),
        }
        for _ in range(size.tasks)
    ]
