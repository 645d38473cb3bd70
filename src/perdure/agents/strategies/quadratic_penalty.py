"""Springs on parameters, which EWC, online EWC, SI and MAS share.

A spring of stiffness s_i holds parameter i to a_i with the energy (strength / 2) s_i (θ_i − a_i)².
Two springs on one parameter act as one: their stiffnesses add up, and it rests at their weighted
mean. So the springs of all past tasks take two vectors, however many tasks there were.
"""

from __future__ import annotations

import torch
from torch import Tensor

from perdure.agents.networks.adam import Adam
from perdure.types import Array, State


class QuadraticPenalty:
    """One spring for each parameter, as flat vectors in the order of the optimiser."""

    def __init__(self) -> None:
        self.stiffness: Tensor | None = None
        self.anchor: Tensor | None = None

    def hold(self, stiffness: Tensor, anchor: Tensor) -> None:
        """These springs instead of those there were."""
        self.stiffness, self.anchor = stiffness.clone(), anchor.clone()

    def add(self, stiffness: Tensor, anchor: Tensor) -> None:
        """These springs besides those there are."""
        if self.stiffness is None or self.anchor is None:
            self.hold(stiffness, anchor)
            return
        total = self.stiffness + stiffness
        # Where nothing holds, any anchor will do.
        share = torch.where(total > 0, stiffness / total, torch.ones_like(total))
        self.anchor = torch.lerp(self.anchor, anchor, share)
        self.stiffness = total

    def pull(self, optimizer: Adam, strength: float) -> None:
        """Add the gradient of the energy, without building a graph of it."""
        if self.stiffness is not None and self.anchor is not None:
            stretch = optimizer.weights - self.anchor
            optimizer.grads.addcmul_(self.stiffness, stretch, value=strength)

    def state(self) -> dict[str, Array]:
        """Copies of the vectors, if there are any."""
        if self.stiffness is None or self.anchor is None:
            return {}
        return {
            "stiffness": self.stiffness.numpy().copy(),
            "anchor": self.anchor.numpy().copy(),
        }

    def load(self, state: State) -> None:
        """Take over what :meth:`state` gave."""
        self.stiffness = self.anchor = None
        if "stiffness" in state:
            self.hold(torch.tensor(state["stiffness"]), torch.tensor(state["anchor"]))
