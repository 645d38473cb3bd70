"""SI (Zenke et al., 2017): a quadratic penalty by each parameter's part in the fall of the loss.

Synaptic intelligence. In every step, with the gradient g of the whole loss and the move Δθ that the
optimiser made::

    w_i ← w_i − g_i Δθ_i

At the end of a task that led from θ^start to θ^k, Ω_i ← Ω_i + w_i / ((θ^k_i − θ^start_i)² + damping)
and w ← 0. Later tasks learn::

    L = ℓ + strength Σ_i Ω_i (θ_i − θ^k_i)²
"""

from __future__ import annotations

from math import inf

import torch

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import TorchLearner
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.quadratic_penalty import QuadraticPenalty
from perdure.types import Array, State


class SI(Strategy):
    """Keeps account of every step; no rows, no second pass."""

    def __init__(self, learner: TorchLearner, strength: float = 0.3, damping: float = 0.2) -> None:
        super().__init__(learner)
        check_ranges("si", strength=(strength, 0, inf), damping=(damping, 1e-12, inf))
        self.strength, self.damping = strength, damping
        self.penalty = QuadraticPenalty(learner.device)
        weights = learner.optimizer.weights
        self.start = weights.clone()
        """Parameters when the task began."""
        self.path = torch.zeros_like(weights)
        self.before, self.gradient = torch.empty_like(weights), torch.empty_like(weights)

    def begin(self) -> None:
        self.start.copy_(self.learner.optimizer.weights)
        self.path.zero_()

    def project(self) -> None:
        optimizer = self.learner.optimizer
        self.penalty.add_gradient(optimizer, 2 * self.strength)
        # Copied because clipping shortens the gradient: the fall of the loss is by the whole one.
        self.gradient.copy_(optimizer.grads)
        self.before.copy_(optimizer.weights)

    def stepped(self) -> None:
        self.before.sub_(self.learner.optimizer.weights)
        self.path.addcmul_(self.gradient, self.before)

    def end(self) -> None:
        weights = self.learner.optimizer.weights
        found = self.path / ((weights - self.start).square_() + self.damping)
        if self.penalty.importance is not None:
            found += self.penalty.importance
        self.penalty.set(found, weights)

    def state(self) -> dict[str, Array]:
        mine = {"start": to_array(self.start).copy(), "path": to_array(self.path).copy()}
        return {**mine, **self.penalty.state()}

    def load(self, state: State) -> None:
        self.start.copy_(to_tensor(state["start"], self.start.device))
        self.path.copy_(to_tensor(state["path"], self.path.device))
        self.penalty.load(state)


strategy = SI
