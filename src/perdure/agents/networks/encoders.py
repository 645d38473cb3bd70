"""Observations to features: one function looks at the space and chooses the network."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from perdure.errors import SpecError
from perdure.types import Array

SYMBOL_SIDE = 16
"""A uint8 image no wider or higher than this is a map of symbols, not a picture: MiniGrid's 7×7×3
holds object, colour and state numbers, where 8 is not "nearly 9"."""
SYMBOLS = 11
"""Symbols told apart in each channel of such a map; greater numbers share the last one."""


class Inputs:
    """A batch of observations as a float32 tensor, flat or channels first.

    Rows keep their own type (uint8 stays a byte) until they come here, so that rollouts and replay
    stay small.
    """

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        self.dtype: np.dtype[Any] = np.dtype(space.dtype or np.float32)
        self.row = tuple(space.shape or ())
        self._offsets: Array | None = None
        self._scale = 1.0
        self.shape: tuple[int, ...]
        self._permute: tuple[int, ...] | None = None
        match space:
            case spaces.Discrete():
                self._offsets, self.shape = np.array([-space.start]), (int(space.n),)
            case spaces.MultiDiscrete():
                sizes = space.nvec.ravel()
                starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
                self._offsets = starts - space.start.ravel()
                self.shape = (int(sizes.sum()),)
            case spaces.MultiBinary():
                self.shape = (int(np.prod(self.row)),)
            case spaces.Box() if is_symbols(space):
                cells = int(np.prod(self.row))
                self._offsets, self.shape = np.arange(cells) * SYMBOLS, (cells * SYMBOLS,)
            case spaces.Box() if is_image(space):
                # Channels last becomes channels first, whole bytes become fractions.
                last = self.row[2] <= self.row[0]
                self._permute = (0, 3, 1, 2) if last else (0, 1, 2, 3)
                self.shape = tuple(self.row[i - 1] for i in self._permute[1:])
                if self.dtype == np.uint8:
                    self._scale = 1 / 255
            case spaces.Box():
                self.shape = (int(np.prod(self.row)),)
            case _:
                raise SpecError(
                    f"a network cannot read observations of {space}: expected Box, Discrete, "
                    "MultiDiscrete or MultiBinary; flatten it with a wrapper such as "
                    "gymnasium.wrappers.FlattenObservation"
                )
        self._symbols = isinstance(space, spaces.Box) and is_symbols(space)

    def __call__(self, obs: Any) -> Tensor:
        """The tensor of a batch; rows of ``obs`` are observations."""
        x = np.asarray(obs)
        n = len(x)
        if self._offsets is not None:
            hot = x.reshape(n, -1)
            if self._symbols:
                hot = np.minimum(hot, SYMBOLS - 1)
            index = hot + (self._offsets + np.arange(n)[:, None] * self.shape[0])
            out = torch.zeros(n, *self.shape)
            out.view(-1)[torch.from_numpy(index.ravel())] = 1.0
            return out
        if self._permute is not None:
            # Tensors are made by torch even where numpy's memory would do: it aligns to 64 bytes,
            # and matrix products may round otherwise on memory that is aligned otherwise.
            y = torch.tensor(x, dtype=torch.float32).permute(self._permute).contiguous()
            return y.mul_(self._scale)
        return torch.tensor(x.reshape(n, -1), dtype=torch.float32)


def is_image(space: gymnasium.Space[Any]) -> bool:
    """Whether observations have rows, columns and channels."""
    return isinstance(space, spaces.Box) and len(space.shape) == 3 and min(space.shape[:2]) > 1


def is_symbols(space: gymnasium.Space[Any]) -> bool:
    """Whether observations are a small map of symbol numbers, such as MiniGrid's."""
    return (
        is_image(space)
        and np.dtype(space.dtype) == np.uint8
        and max(space.shape or (0,)) <= SYMBOL_SIDE
    )


def mlp(sizes: Sequence[int], activation: type[nn.Module] = nn.Tanh) -> nn.Sequential:
    """Linear layers of these sizes, an activation after each."""
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers)


def cnn(shape: Sequence[int], features: int) -> nn.Sequential:
    """Three convolutions and a linear layer for images of (channels, height, width)."""
    channels, side = shape[0], min(shape[1:])
    plan = ((32, 8, 4), (64, 4, 2), (64, 3, 1)) if side >= 36 else ((16, 3, 1), (32, 3, 1))
    layers: list[nn.Module] = []
    for width, kernel, stride in plan:
        layers += [nn.Conv2d(channels, width, min(kernel, side), stride), nn.ReLU()]
        channels, side = width, (side - min(kernel, side)) // stride + 1
    convolutions = nn.Sequential(*layers, nn.Flatten())
    with torch.no_grad():
        flat = convolutions(torch.zeros(1, *shape)).shape[1]
    return nn.Sequential(convolutions, nn.Linear(flat, features), nn.ReLU())


def encoder_for(
    inputs: Inputs, hidden: Sequence[int], activation: type[nn.Module] = nn.Tanh
) -> tuple[nn.Module, int]:
    """The network that reads these inputs, and how many features it gives."""
    if isinstance(hidden, int) or not hidden or any(h < 1 for h in hidden):
        raise SpecError(f"'hidden' must be layer widths such as [64, 64], got {hidden!r}")
    if len(inputs.shape) == 1:
        return mlp([inputs.shape[0], *hidden], activation), hidden[-1]
    return cnn(inputs.shape, hidden[-1]), hidden[-1]
