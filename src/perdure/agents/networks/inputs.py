"""Observations as tensors: vectors, discrete values, images, and nested spaces of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.arrays import leaves
from perdure.errors import SpecError
from perdure.spaces import SYMBOLS, image_axes, is_symbols, space_leaves
from perdure.types import Array

BRIGHTEST = 65535
"""The largest number of a picture of whole numbers; bounds beyond it say nothing about a picture."""


def channels_last(x: Tensor) -> Tensor:
    """Images with each pixel's channels side by side in memory, where convolutions are quickest;
    other tensors as they are."""
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def scale_of(space: spaces.Box) -> float:
    """What bytes and images are multiplied by, so that their bounds are 1 at most. Vectors of other
    types are read as they are."""
    if not space.is_bounded() or (space.dtype != np.uint8 and image_axes(space) is None):
        return 1.0
    most = float(max(np.abs(space.low).max(), np.abs(space.high).max()))
    return 1 / most if 1 < most <= BRIGHTEST else 1.0


class InputLeaf:
    """One space that is not nested: how its rows become floats."""

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        self.dtype: np.dtype[Any] = np.dtype(space.dtype or np.float32)
        self.row = tuple(space.shape or ())
        """Shape of an observation."""
        self.shape: tuple[int, ...]
        """Shape of a row as networks read it: flat, or (channels, height, width)."""
        self.scale = 1.0
        self._offsets: Array | None = None
        self._axes: tuple[int, ...] | None = None
        self.in_unit = True
        """Whether what networks read lies in [0, 1]."""
        match space:
            case spaces.Discrete():
                self._offsets, self.shape = np.array([-space.start]), (int(space.n),)
            case spaces.MultiDiscrete():
                sizes = space.nvec.ravel()
                starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
                self._offsets = starts - space.start.ravel()
                self.shape = (int(sizes.sum()),)
            case spaces.MultiBinary():
                self.shape = (prod(self.row),)
            case spaces.Box() if is_symbols(space):
                cells = prod(self.row)
                self._offsets, self.shape = np.arange(cells) * SYMBOLS, (cells * SYMBOLS,)
            case spaces.Box():
                self._axes, self.shape = image_axes(space), (prod(self.row),)
                if self._axes is not None:
                    # Channels last becomes channels first, and stacked frames are channels.
                    *channels, height, width = (self.row[i] for i in self._axes)
                    self.shape = (prod(channels), height, width)
                self.scale = scale_of(space)
                most = 1.0 if self.scale != 1 else space.high.max(initial=0)
                self.in_unit = bool(space.low.min(initial=0) >= 0 and most <= 1)
            case _:
                raise SpecError(
                    f"a network cannot read observations of {space}: expected Box, Discrete, "
                    "MultiDiscrete, MultiBinary, or a Dict or Tuple of these; change it by wrappers "
                    "of the task (docs/spaces.md)"
                )
        self.is_image = self._axes is not None
        self.is_real = not self.is_image and self._offsets is None and self.dtype.kind == "f"
        """Whether its numbers are read as they are."""
        self.fits_bytes = self._offsets is not None or self.dtype == np.uint8
        """Whether what networks read are bytes, scaled."""

    def __call__(self, obs: Any, device: torch.device) -> Tensor:
        """A batch as the network of this part reads it."""
        if self.is_image:
            y = self.to_image(to_tensor(np.asarray(obs), device, torch.float32))
            return channels_last(y).mul_(self.scale)
        return self.flat(obs, device)

    def flat(self, obs: Any, device: torch.device) -> Tensor:
        """A batch with one axis beside the rows; images in the order of their space."""
        x = np.asarray(obs)
        n = len(x)
        if self._offsets is not None:
            index = x.reshape(n, -1) + (self._offsets + np.arange(n)[:, None] * self.shape[0])
            out = torch.zeros(n, *self.shape, device=device)
            out.view(-1)[to_tensor(index.ravel(), device)] = 1.0
            return out
        y = to_tensor(x.reshape(n, -1), device, torch.float32)
        return y if self.scale == 1 else y.mul_(self.scale)

    def to_image(self, rows: Tensor) -> Tensor:
        """Rows in the order of the space, flat or not, as images with their channels first."""
        assert self._axes is not None
        images = rows.reshape(-1, *self.row).permute(0, *(1 + axis for axis in self._axes))
        return images if images.dim() == 4 else images.reshape(-1, *self.shape)


class Inputs:
    """A batch of observations as one float32 tensor.

    A space that is not nested is read as it is: flat, or images with channels first. Of a Dict or
    Tuple the tensor is (rows, numbers): its parts flat, one after the other in the order of the
    space, so that minibatches stay plain tensors for learners and strategies. The encoder (see
    ``encoders.py``) takes them apart again.

    Rows keep their own type (uint8 stays a byte) until they come here, so that rollouts and replay
    stay small. Of a nested space they are kept in a column for each part: ``obs/camera``.
    """

    def __init__(self, space: gymnasium.Space[Any], device: torch.device = CPU) -> None:
        self.device = device
        self.nested = isinstance(space, (spaces.Dict, spaces.Tuple))
        self.parts = {path: InputLeaf(part) for path, part in space_leaves(space).items()}
        if not self.parts:
            raise SpecError(f"a network cannot read observations of {space}: it has no parts")
        self._only = next(iter(self.parts.values()))
        self.shape: tuple[int, ...] = self._only.shape
        """Of a row of the tensor."""
        if self.nested:
            self.shape = (sum(prod(part.shape) for part in self.parts.values()),)
        self.has_images = any(part.is_image for part in self.parts.values())
        self._real = all(part.is_real for part in self.parts.values())

    def __call__(self, obs: Any) -> Tensor:
        """The tensor of a batch; rows of ``obs``, or of each of its parts, are observations."""
        if not self.nested:
            return self._only(obs, self.device)
        found = leaves(obs)
        if self._real:  # One tensor of all parts: a copy and a cast instead of one for each.
            rows = [np.asarray(found[path]) for path in self.parts]
            flat = np.concatenate([x.reshape(len(x), -1) for x in rows], 1)
            return to_tensor(flat, self.device, torch.float32)
        return torch.cat([p.flat(found[path], self.device) for path, p in self.parts.items()], 1)

    # Rows in the columns of a replay or rollout.

    def columns(self, name: str) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and type of each column that keeps observations."""
        return {self._column(name, path): (p.row, p.dtype) for path, p in self.parts.items()}

    def rows(self, name: str, obs: Any) -> dict[str, Any]:
        """A batch of observations, by column."""
        if not self.nested:
            return {name: obs}
        return {self._column(name, path): value for path, value in leaves(obs).items()}

    def gather(self, name: str, rows: Mapping[str, Array]) -> Any:
        """The observations in some rows, as :meth:`__call__` reads them."""
        if not self.nested:
            return rows[name]
        return {path: rows[self._column(name, path)] for path in self.parts}

    def _column(self, name: str, path: str) -> str:
        return f"{name}/{path}" if self.nested else name

    # Rows of tensors, kept by strategies.

    def packed(self, x: Tensor) -> Array:
        """The same rows as bytes where they came as bytes or are ones and zeros, else as they are."""
        if self.nested or not self._only.fits_bytes:
            return to_array(x)
        return to_array(x.detach().div(self._only.scale).round_().to(torch.uint8))

    def unpacked(self, rows: Tensor) -> Tensor:
        """Rows that :meth:`packed` gave, bit by bit as they were."""
        if self.nested or not self._only.fits_bytes:
            return rows
        return rows.to(torch.float32).mul_(self._only.scale)
