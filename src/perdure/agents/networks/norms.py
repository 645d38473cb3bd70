"""The norms between convolutions, and what becomes of their statistics when tasks change."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perdure.agents.networks.tensors import CPU, to_float
from perdure.errors import SpecError

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
