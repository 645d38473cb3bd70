"""The norms between convolutions, what becomes of their statistics when tasks change; and layer norms."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perdure.agents.networks.tensors import CPU, to_float
from perdure.errors import SpecError

ACTIVE = (
    nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Hardtanh, nn.Hardswish,
)  # fmt: skip
"""Modules that make hidden units."""
NORMS = ("batch", "frozen", "group", "none")
GROUP = 4
"""Channels of a group, or all where there are fewer."""


class FrozenBatchNorm(nn.BatchNorm2d):
    """A batch norm until it is frozen; from then on it scales by the statistics it has, in learning
    too. Weight and bias go on learning."""

    frozen: Tensor

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.register_buffer("frozen", torch.zeros((), device=CPU))

    def forward(self, x: Tensor) -> Tensor:
        """The maps, normalised."""
        if not to_float(self.frozen):
            return super().forward(x)
        return nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


def check_norm(norm: str) -> None:
    """Refuse what is no norm."""
    if norm not in NORMS:
        raise SpecError(f"'norm' must be one of {', '.join(NORMS)}, got {norm!r}")


def norm_for(norm: str, width: int) -> list[nn.Module]:
    """The norm of this name for so many channels, if it is one."""
    if norm == "group":
        return [nn.GroupNorm(max(width // GROUP, 1), width)]
    if norm == "frozen":
        return [FrozenBatchNorm(width)]
    return [nn.BatchNorm2d(width)] if norm == "batch" else []


def freeze_norms(net: nn.Module) -> None:
    """Freeze the statistics of all norms that can be."""
    for layer in net.modules():
        if isinstance(layer, FrozenBatchNorm):
            layer.frozen.fill_(1.0)


def add_layer_norms(net: nn.Module) -> None:
    """A layer norm (Ba et al., 2016) between each linear layer and its activation; those of
    :class:`~perdure.agents.networks.sac_networks.Layers` have no weights of their own."""
    found = 0
    for module in list(net.modules()):
        if isinstance(module, nn.Sequential):
            found += _between_linear_and_activation(module)
        elif hasattr(module, "layer_norm"):
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
