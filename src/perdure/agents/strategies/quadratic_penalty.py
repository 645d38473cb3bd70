"""The quadratic penalty on parameters that EWC, online EWC, SI and MAS share.

With importance Ω_i and anchor a_i of parameter i the penalty is (strength / 2) Σ_i Ω_i (θ_i − a_i)².
Two penalties on one parameter are, up to a constant, one: importances add up, and the anchor is the
mean of both weighed by them. So the penalties of all past tasks take two vectors, however many tasks
there were.
"""

from __future__ import annotations

import torch
from torch import Tensor

from perdure.agents.networks.optimizers import Optimizer
from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.types import Array, State


class QuadraticPenalty:
    """Importance and anchor of each parameter, as flat vectors in the order of the optimiser."""

    def __init__(self, device: torch.device = CPU) -> None:
        self.device = device
        self.importance: Tensor | None = None
        self.anchor: Tensor | None = None

    def set(self, importance: Tensor, anchor: Tensor) -> None:
        """This penalty instead of the one there was."""
        self.importance, self.anchor = importance.clone(), anchor.clone()

    def add(self, importance: Tensor, anchor: Tensor) -> None:
        """This penalty besides the one there is."""
        if self.importance is None or self.anchor is None:
            self.set(importance, anchor)
            return
        total = self.importance + importance
        # Where nothing matters, any anchor will do.
        share = torch.where(total > 0, importance / total, torch.ones_like(total))
        self.anchor = torch.lerp(self.anchor, anchor, share)
        self.importance = total

    def add_gradient(self, optimizer: Optimizer, strength: float) -> None:
        """Add the gradient of the penalty to those of the loss, without building a graph of it."""
        if self.importance is not None and self.anchor is not None:
            moved = optimizer.weights - self.anchor
            optimizer.grads.addcmul_(self.importance, moved, value=strength)

    def state(self) -> dict[str, Array]:
        """Copies of the vectors, if there are any."""
        if self.importance is None or self.anchor is None:
            return {}
        return {
            "importance": to_array(self.importance).copy(),
            "anchor": to_array(self.anchor).copy(),
        }

    def load(self, state: State) -> None:
        """Take over what :meth:`state` gave."""
        self.importance = self.anchor = None
        if "importance" in state:
            self.importance = to_tensor(state["importance"], self.device)
            self.anchor = to_tensor(state["anchor"], self.device)
