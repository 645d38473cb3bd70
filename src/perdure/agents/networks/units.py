"""The hidden units of a network: what they gave on some inputs, and the weights that lead into and out
of each.

Activations are seen where torch computes them, so that any network can be looked at, one's own too.
The weights of a unit are known where layers follow each other in an ``nn.Sequential`` of linear
layers and convolutions, or in :class:`~perdure.agents.networks.sac_networks.Layers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from perdure.agents.networks.encoders import Dropout
from perdure.agents.networks.sac_networks import Layers
from perdure.agents.networks.tensors import CPU
from perdure.errors import SpecError

ACTIVATIONS = frozenset(
    {"relu", "leaky_relu", "elu", "gelu", "silu", "mish", "tanh", "hardtanh", "hardswish"}
)
"""What makes a hidden unit. Sigmoids are not among them: they are the gates of recurrent layers."""


class Activations(TorchFunctionMode):
    """Keeps what every activation function gives while it is the mode, in the order of computation::

    with Activations() as seen:
        learner.predict(batch)
    seen.outputs
    """

    def __init__(self) -> None:
        super().__init__()
        self.outputs: list[Tensor] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "").rstrip("_") in ACTIVATIONS:
            # A later operation may work in place.
            self.outputs.append(out.detach().clone())
        return out


def by_unit(activation: Tensor, rows: int) -> Tensor:
    """What each unit gave, (samples, units).

    The samples of a convolution are the places of all pictures, of a sequence its steps. The units of
    networks that are computed together, (copies, rows, units), lie side by side; with ``rows`` 0 nothing
    is taken for such.
    """
    if activation.dim() == 4:
        return activation.movedim(1, 3).flatten(0, 2)
    if activation.dim() == 3 and rows and activation.shape[0] != rows == activation.shape[1]:
        return activation.movedim(0, 1).flatten(1)
    return activation.flatten(0, -2)


@dataclass(frozen=True)
class Connections:
    """The weights of a parameter, by the units of a layer that they belong to."""

    parameter: Tensor
    axes: tuple[int, ...]
    """Along which the units lie."""
    repeats: int = 1
    """How many neighbours along the last of them belong to one unit: the places of a channel."""

    def spread(self, values: Tensor) -> Tensor:
        """A value for each unit, as one for each weight."""
        shape = [1] * self.parameter.dim()
        for axis in self.axes:
            shape[axis] = self.parameter.shape[axis]
        return values.repeat_interleave(self.repeats).view(shape).expand_as(self.parameter)

    def sums(self) -> Tensor:
        """The sum of the absolute weights of each unit."""
        rest = [k for k in range(self.parameter.dim()) if k not in self.axes]
        found = self.parameter.detach().abs()
        found = found.sum(rest) if rest else found
        return found.reshape(-1, self.repeats).sum(1)


@dataclass(frozen=True)
class HiddenLayer:
    """The units of one layer, and the weights that lead into and out of them."""

    units: int
    incoming: tuple[Connections, ...]
    """Weights and biases."""
    outgoing: Connections


def hidden_layers(net: nn.Module) -> dict[nn.Module, list[HiddenLayer]]:
    """The hidden layers of a network, under the module that computes their activations: one layer under
    an activation, those of a stack of networks in the order in which it computes them. What is built
    in another way has none."""
    found: dict[nn.Module, list[HiddenLayer]] = {}
    for stack in _stacks(net):
        found |= _of_copies(stack) if isinstance(stack, Layers) else _of_sequence(stack)
    return found


def _stacks(module: nn.Module) -> Iterator[nn.Module]:
    """The outermost stacks of layers."""
    if isinstance(module, (Layers, nn.Sequential)):
        yield module
        return
    for child in module.children():
        yield from _stacks(child)


def _of_copies(stack: Layers) -> dict[nn.Module, list[HiddenLayer]]:
    out = []
    for k in range(len(stack.weights) - 1):
        copies, _, width = stack.weights[k].shape
        incoming = tuple(Connections(p[k], (0, 2)) for p in (stack.weights, stack.biases))
        outgoing = Connections(stack.weights[k + 1], (0, 1))
        out.append(HiddenLayer(copies * width, incoming, outgoing))
    return {stack: out} if out else {}


ACTIVE = (
    nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Hardtanh, nn.Hardswish,
)  # fmt: skip
"""Modules that make hidden units."""
PASSES = (
    nn.Sequential, nn.Flatten, nn.MaxPool2d, nn.AvgPool2d, nn.Identity, nn.Dropout, Dropout,
    nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm,
)  # fmt: skip
"""Layers that keep units apart, or only scale them."""


def _of_sequence(stack: nn.Module) -> dict[nn.Module, list[HiddenLayer]]:
    """A layer counts if an activation follows it and then one that reads its units."""
    out: dict[nn.Module, list[HiddenLayer]] = {}
    before: nn.Linear | nn.Conv2d | None = None
    active: nn.Module | None = None
    for part in stack.modules():
        if isinstance(part, ACTIVE):
            active = part
        elif isinstance(part, (nn.Linear, nn.Conv2d)):
            if before is not None and active is not None:
                out[active] = [_between(before, part)]
            before, active = part, None
        elif not isinstance(part, PASSES):
            before = None
    return out


def _between(before: nn.Linear | nn.Conv2d, after: nn.Linear | nn.Conv2d) -> HiddenLayer:
    """The units that one layer gives and the next reads."""
    units, read = before.weight.shape[0], after.weight.shape[1]
    own = [p for p in (before.weight, before.bias) if p is not None]
    incoming = tuple(Connections(p, (0,)) for p in own)
    return HiddenLayer(units, incoming, Connections(after.weight, (1,), read // units))


def watch_units(
    layers: dict[nn.Module, list[HiddenLayer]], run: Callable[[], object], rows: int
) -> list[tuple[HiddenLayer, Tensor]]:
    """What the units of layers give, as (samples, units), while ``run`` computes something of ``rows``
    inputs. Of a module that computes several times, the first counts."""
    seen = Activations()
    begun: dict[nn.Module, int] = {}
    stretches: dict[nn.Module, tuple[int, int]] = {}

    def before(module: nn.Module, _: Any) -> None:
        begun[module] = len(seen.outputs)

    def after(module: nn.Module, _: Any, __: Any) -> None:
        stretches.setdefault(module, (begun[module], len(seen.outputs)))

    handles = [module.register_forward_pre_hook(before) for module in layers]
    handles += [module.register_forward_hook(after) for module in layers]
    try:
        with torch.no_grad(), seen:
            run()
    finally:
        for handle in handles:
            handle.remove()
    out = []
    for module, (start, stop) in stretches.items():
        given = zip(layers[module], seen.outputs[start:stop], strict=True)
        out += [(layer, by_unit(activation, rows)) for layer, activation in given]
    return out


def add_layer_norms(net: nn.Module) -> None:
    """A layer norm (Ba et al., 2016) between each linear layer and its activation; those of
    :class:`Layers` have no weights of their own."""
    found = 0
    for module in list(net.modules()):
        if isinstance(module, nn.Sequential):
            found += _between_linear_and_activation(module)
        elif isinstance(module, Layers):
            module.layer_norm = True
            found += 1
    if not found:
        raise SpecError("layer_norm: this network has no linear layer before an activation")


def _between_linear_and_activation(stack: nn.Sequential) -> int:
    parts = list(stack)
    with_norms: list[nn.Module] = []
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        with_norms.append(part)
        if isinstance(part, nn.Linear) and isinstance(after, ACTIVE):
            with_norms.append(nn.LayerNorm(part.out_features, device=CPU))
    for k, part in enumerate(with_norms):
        stack.add_module(str(k), part)
    return len(with_norms) - len(parts)
