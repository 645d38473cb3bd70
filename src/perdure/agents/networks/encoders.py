"""Observations to features: one function looks at the inputs and chooses the network."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from perdure import registry
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.norms import norm_for
from perdure.agents.networks.tensors import CPU, to_tensor
from perdure.errors import SpecError

STACKS: Mapping[str, Sequence[Sequence[int]]] = {
    "small": ((8,), (16,), (32,)),
    "vgg16": ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)),
}
"""Widths of the 3 × 3 convolutions, each with a norm, before each halving of the picture.
``vgg16`` is Simonyan and Zisserman's (2015); ``small`` is one like it for two cores."""
RngSource: TypeAlias = Callable[[], np.random.Generator]
"""The generator at the moment of use: that of an agent may be exchanged."""


class Dropout(nn.Module):
    """Each number is 0 with this probability while the network learns, and the others are as much
    greater; with ``whole_rows`` all numbers of a row together. The noise is the agent's own, so that
    a resumed lifetime draws the same."""

    def __init__(self, probability: float, rng: RngSource, whole_rows: bool = False) -> None:
        super().__init__()
        self.probability, self.rng, self.whole_rows = probability, rng, whole_rows

    def forward(self, x: Tensor) -> Tensor:
        """The numbers that stay."""
        if not self.training or not self.probability:
            return x
        shape = (len(x), *[1] * (x.dim() - 1)) if self.whole_rows else tuple(x.shape)
        noise = to_tensor(self.rng().random(shape, dtype=np.float32), x.device)
        return x * (noise >= self.probability) / (1 - self.probability)


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


def stack(
    shape: Sequence[int], widths: Sequence[Sequence[int]], norm: str = "batch"
) -> nn.Sequential:
    """Convolutions with norms; after each group of them the picture is halved."""
    channels = shape[0]
    layers: list[nn.Module] = []
    for group in widths:
        for width in group:
            # No bias before a norm, which would take it away.
            layers.append(nn.Conv2d(channels, width, 3, padding=1, bias=norm == "none"))
            layers += [*norm_for(norm, width), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten())


def check_widths(hidden: Sequence[int]) -> None:
    """Refuse what is no list of layers."""
    if isinstance(hidden, int) or not hidden or any(h < 1 for h in hidden):
        raise SpecError(f"'hidden' must be layer widths such as [64, 64], got {hidden!r}")


def convolutions_for(shape: Sequence[int], convolutions: str, norm: str = "batch") -> nn.Sequential:
    """The convolutions of this name for images of (channels, height, width): few ``plain`` ones, one
    of :data:`STACKS` with such a norm, or ``none``."""
    if convolutions == "plain":
        return cnn(shape)
    if convolutions == "none":
        return nn.Sequential(nn.Flatten())
    side, least = min(shape[1:]), 2 ** len(STACKS[convolutions])
    if side < least:
        raise SpecError(
            f"convolutions={convolutions} halves a picture until {least} pixels are one, got "
            f"{side} pixels of a side"
        )
    return stack(shape, STACKS[convolutions], norm)


def features_of(convolutions: nn.Module, shape: Sequence[int]) -> int:
    """How many features convolutions give for an image of this shape."""
    convolutions.eval()
    with torch.no_grad():
        found = convolutions(torch.zeros(1, *shape, device=CPU)).shape[1]
    convolutions.train()
    return int(found)


class PartsEncoder(nn.Module):
    """Takes the flat inputs of a nested space apart: images pass convolutions, all else stays as it
    is, and what comes out is flat again."""

    def __init__(self, inputs: Inputs, convolutions: str, norm: str = "batch") -> None:
        super().__init__()
        self.inputs = inputs
        self.sizes = [math.prod(part.shape) for part in inputs.parts.values()]
        self.images = nn.ModuleDict()
        self.features = 0
        for k, (size, part) in enumerate(zip(self.sizes, inputs.parts.values(), strict=True)):
            if part.is_image:
                layers = convolutions_for(part.shape, convolutions, norm)
                self.images[str(k)] = layers
                size = features_of(layers, part.shape)
            self.features += size

    def forward(self, x: Tensor) -> Tensor:
        """(rows, numbers) to (rows, features)."""
        found = list(torch.split(x, self.sizes, dim=1))
        for k, part in enumerate(self.inputs.parts.values()):
            if part.is_image:
                found[k] = self.images[str(k)](part.to_image(found[k]))
        return torch.cat(found, 1)


def image_encoder(
    inputs: Inputs, convolutions: str = "plain", norm: str = "batch"
) -> tuple[nn.Module | None, int]:
    """What makes inputs flat, and how many features it gives; None if they are flat already."""
    known = ("plain", "none", *STACKS)
    if convolutions not in known:
        raise SpecError(f"'convolutions' must be one of {', '.join(known)}, got {convolutions!r}")
    if not inputs.has_images:
        return None, inputs.shape[0]
    if inputs.nested:
        parts = PartsEncoder(inputs, convolutions, norm)
        return parts, parts.features
    layers = convolutions_for(inputs.shape, convolutions, norm)
    return layers, features_of(layers, inputs.shape)


def encoder_for(
    inputs: Inputs,
    hidden: Sequence[int],
    activation: type[nn.Module] = nn.Tanh,
    convolutions: str = "plain",
    dropout: Callable[[], nn.Module] | None = None,
    network: str = "",
    norm: str = "batch",
) -> tuple[nn.Module, int]:
    """The network that reads these inputs, and how many features it gives: that of :func:`own_encoder`,
    where there is one.

    Images pass convolutions first (see :func:`convolutions_for`), each image of a nested space its
    own. Then come the layers of ``hidden``; of a single image with ``plain`` convolutions the last
    layer alone.
    """
    if network:
        return own_encoder(network, inputs)
    check_widths(hidden)
    first, features = image_encoder(inputs, convolutions, norm)
    if first is None:
        return mlp([features, *hidden], activation, dropout), hidden[-1]
    if convolutions == "plain" and not inputs.nested:
        hidden, activation = hidden[-1:], nn.ReLU
    return nn.Sequential(first, mlp([features, *hidden], activation, dropout)), hidden[-1]


def with_linear_head(
    encoder: nn.Module, features: int, outputs: int, gain: float, own: bool = False
) -> nn.Sequential:
    """An encoder and a linear head, initialised orthogonally; the head's gain is small where the
    first answers should favour nothing. An encoder of one's ``own`` stays as it is."""
    head = nn.Linear(features, outputs)
    for layer in (head,) if own else (*encoder.modules(), head):
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(layer.weight, gain if layer is head else 2**0.5)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return nn.Sequential(encoder, head)


def own_encoder(reference: str | Callable[..., nn.Module], inputs: Inputs) -> tuple[nn.Module, int]:
    """A network of one's own (``file.py:Net``) as an encoder, and how many features it gives.

    ``Net(shape)`` is called with the shape of one input, flat or (channels, height, width), and must
    give a module that turns a batch of them into rows of features.
    """
    make = registry.load_file(reference) if isinstance(reference, str) else reference
    expected = f"network={reference}: expected a class or function of an input's shape that gives"
    if not callable(make):
        raise SpecError(f"{expected} an nn.Module, got {type(make).__name__}")
    made = make(inputs.shape)
    if not isinstance(made, nn.Module):
        raise SpecError(f"{expected} an nn.Module, got {type(made).__name__}")
    made.eval()
    try:
        with torch.no_grad():
            out = made(torch.zeros(2, *inputs.shape, device=CPU))
    except RuntimeError as e:
        raise SpecError(
            f"network={reference} cannot read inputs of shape {inputs.shape}: {e}"
        ) from e
    made.train()
    if not isinstance(out, Tensor) or out.dim() != 2 or len(out) != 2:
        got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise SpecError(f"{expected} one row of features for each input, got {got} for two inputs")
    return made, out.shape[1]
