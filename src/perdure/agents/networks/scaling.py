"""Numbers in comparable units: inputs by the first minibatch, actions by the range of their space."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from perdure.agents.networks.tensors import CPU, to_float
from perdure.types import Array

LEAST_INPUT_STD = 0.1
"""The least deviation that is divided by: numbers that hardly vary are not to become large."""
LEAST_STATE_STD = 0.03
"""The same for states in metres and parts of a turn, of which centimetres decide: the fingers of a
gripper move by four, and an object's place differs by a few from episode to episode."""
CONSTANT = 1e-4
"""The deviation of a number that does not vary at all."""


class Standardise(nn.Module):
    """Shifts and scales each input by mean and deviation of the first minibatch, and never changes
    again.

    Statistics that went on moving would change what was learned about earlier tasks. An input that
    is the same in the whole minibatch, such as a one-hot of the task, may well vary later, and is
    to count beside the others then: it is divided by :data:`LEAST_INPUT_STD`, and one that varies by
    no less than ``least``.
    """

    mean: Tensor
    std: Tensor
    fitted: Tensor

    def __init__(self, shape: tuple[int, ...], least: float = LEAST_INPUT_STD) -> None:
        super().__init__()
        self.least = least
        self.register_buffer("mean", torch.zeros(shape, device=CPU))
        self.register_buffer("std", torch.ones(shape, device=CPU))
        self.register_buffer("fitted", torch.zeros((), device=CPU))

    @property
    def is_fitted(self) -> bool:
        """Whether a minibatch gave the statistics."""
        return bool(to_float(self.fitted))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Standardise:
        # Stays on the CPU: it is asked at every minibatch, and a GPU's answer is waited for.
        fitted = self.fitted
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.fitted = fitted
        return self

    def fit(self, inputs: Tensor) -> None:
        """Take the statistics of a minibatch, if it is the first."""
        if self.is_fitted or len(inputs) < 2:
            return
        self.mean.copy_(inputs.mean(dim=0))
        std = inputs.std(dim=0)
        self.std.copy_(std.clamp(min=self.least).masked_fill_(std < CONSTANT, LEAST_INPUT_STD))
        self.fitted.fill_(1.0)

    def forward(self, inputs: Tensor) -> Tensor:
        """The inputs, standardised."""
        return (inputs - self.mean) / self.std


class RealActions:
    """Actions of a Box in units of its range, where that is bounded."""

    def __init__(self, space: spaces.Box) -> None:
        self.space = space
        low, high = space.low.astype(np.float32).ravel(), space.high.astype(np.float32).ravel()
        bounded = np.isfinite(low) & np.isfinite(high)
        low, high = np.where(bounded, low, -1), np.where(bounded, high, 1)
        self.middle: Array = ((low + high) / 2).astype(np.float32)
        self.half: Array = ((high - low) / 2).astype(np.float32)

    def to_space(self, scaled: Array) -> Array:
        """Members of the space; what lies beyond its bounds is cut off."""
        actions = (scaled * self.half + self.middle).reshape(-1, *self.space.shape)
        inside: Array = np.clip(actions, self.space.low, self.space.high)
        return inside.astype(self.space.dtype)

    def from_space(self, actions: Array) -> Array:
        """In units of the range."""
        given = np.asarray(actions, np.float32).reshape(len(actions), -1)
        scaled: Array = (given - self.middle) / self.half
        return scaled
