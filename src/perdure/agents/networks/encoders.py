"""Observations to features: one function looks at the space and chooses the network."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

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
STACKS: Mapping[str, Sequence[Sequence[int]]] = {
    "small": ((8,), (16,), (32,)),
    "vgg16": ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)),
}
"""Widths of the 3 × 3 convolutions, each with a batch norm, before each halving of the picture.
``vgg16`` is Simonyan and Zisserman's (2015); ``small`` is one like it for two cores."""
Noise: TypeAlias = Callable[[], np.random.Generator]
"""Where random numbers come from at the moment of use: an agent's generator may be exchanged."""


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
        self._fits_bytes = self._offsets is not None or self._scale != 1

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
            y = torch.tensor(x, dtype=torch.float32).permute(self._permute)
            return laid_out(y).mul_(self._scale)
        return torch.tensor(x.reshape(n, -1), dtype=torch.float32)

    def packed(self, x: Tensor) -> Array:
        """The same rows as bytes where they came as bytes or are ones and zeros, else as they are."""
        if not self._fits_bytes:
            return x.detach().numpy()
        out: Array = x.detach().div(self._scale).round_().to(torch.uint8).numpy()
        return out

    def unpacked(self, rows: Tensor) -> Tensor:
        """Rows that :meth:`packed` gave, bit by bit as they were."""
        return rows.to(torch.float32).mul_(self._scale) if self._fits_bytes else rows


def laid_out(x: Tensor) -> Tensor:
    """Pictures with each pixel's channels side by side in memory, where convolutions are quickest;
    other tensors as they are."""
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


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


class Dropout(nn.Module):
    """Each number is 0 with this probability while the network learns, and the others are as much
    greater. The noise is the agent's own, so that a resumed lifetime draws the same."""

    def __init__(self, probability: float, noise: Noise) -> None:
        super().__init__()
        self.probability, self.noise = probability, noise

    def forward(self, x: Tensor) -> Tensor:
        """The numbers that stay."""
        if not self.training:
            return x
        drawn = self.noise().random(tuple(x.shape), dtype=np.float32)
        return x * (torch.tensor(drawn) >= self.probability) / (1 - self.probability)


def mlp(
    sizes: Sequence[int],
    activation: type[nn.Module] = nn.Tanh,
    dropout: Callable[[], nn.Module] | None = None,
) -> nn.Sequential:
    """Linear layers of these sizes, an activation after each, and a dropout if there is one."""
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), activation()]
        if dropout is not None:
            layers.append(dropout())
    return nn.Sequential(*layers)


def cnn(shape: Sequence[int]) -> nn.Sequential:
    """Two or three convolutions for images of (channels, height, width)."""
    channels, side = shape[0], min(shape[1:])
    plan = ((32, 8, 4), (64, 4, 2), (64, 3, 1)) if side >= 36 else ((16, 3, 1), (32, 3, 1))
    layers: list[nn.Module] = []
    for width, kernel, stride in plan:
        layers += [nn.Conv2d(channels, width, min(kernel, side), stride), nn.ReLU()]
        channels, side = width, (side - min(kernel, side)) // stride + 1
    return nn.Sequential(*layers, nn.Flatten())


def stack(shape: Sequence[int], widths: Sequence[Sequence[int]]) -> nn.Sequential:
    """Convolutions with batch norms; after each group of them the picture is halved."""
    channels, layers = shape[0], []
    for group in widths:
        for width in group:
            # Without a bias: the norm would take it away.
            layers += [
                nn.Conv2d(channels, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
            ]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten())


def check_widths(hidden: Sequence[int]) -> None:
    """Refuse what is no list of layers."""
    if isinstance(hidden, int) or not hidden or any(h < 1 for h in hidden):
        raise SpecError(f"'hidden' must be layer widths such as [64, 64], got {hidden!r}")


def encoder_for(
    inputs: Inputs,
    hidden: Sequence[int],
    activation: type[nn.Module] = nn.Tanh,
    convolutions: str = "plain",
    dropout: Callable[[], nn.Module] | None = None,
) -> tuple[nn.Module, int]:
    """The network that reads these inputs, and how many features it gives.

    Pictures pass convolutions first: few ``plain`` ones, then of ``hidden`` the last layer alone; or
    one of :data:`STACKS`, or ``none``, then all of ``hidden``.
    """
    check_widths(hidden)
    known = ("plain", "none", *STACKS)
    if convolutions not in known:
        raise SpecError(f"'convolutions' must be one of {', '.join(known)}, got {convolutions!r}")
    if len(inputs.shape) == 1:
        return mlp([inputs.shape[0], *hidden], activation, dropout), hidden[-1]
    if convolutions == "plain":
        return _headed(cnn(inputs.shape), inputs, hidden[-1:], nn.ReLU, dropout), hidden[-1]
    if convolutions == "none":
        return _headed(nn.Flatten(), inputs, hidden, activation, dropout), hidden[-1]
    side, least = min(inputs.shape[1:]), 2 ** len(STACKS[convolutions])
    if side < least:
        raise SpecError(
            f"convolutions={convolutions} halves a picture until {least} pixels are one, got "
            f"{side} pixels of a side"
        )
    layers = stack(inputs.shape, STACKS[convolutions])
    return _headed(layers, inputs, hidden, activation, dropout), hidden[-1]


def _headed(
    convolutions: nn.Module,
    inputs: Inputs,
    hidden: Sequence[int],
    activation: type[nn.Module],
    dropout: Callable[[], nn.Module] | None,
) -> nn.Sequential:
    """Convolutions with linear layers behind them."""
    convolutions.eval()
    with torch.no_grad():
        flat = convolutions(torch.zeros(1, *inputs.shape)).shape[1]
    convolutions.train()
    return nn.Sequential(convolutions, mlp([flat, *hidden], activation, dropout))


def with_linear_head(encoder: nn.Module, features: int, outputs: int, gain: float) -> nn.Sequential:
    """An encoder and a linear head, initialised orthogonally; the head's gain is small where the
    first answers should favour nothing."""
    head = nn.Linear(features, outputs)
    for layer in (*encoder.modules(), head):
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(layer.weight, gain if layer is head else 2**0.5)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return nn.Sequential(encoder, head)
