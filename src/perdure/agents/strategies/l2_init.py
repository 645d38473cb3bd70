"""L2-init (Kumar et al., 2023): stay near the initial weights, to stay able to learn.

Regenerative regularisation. Every loss has a penalty besides::

    L = ℓ + strength Σ_i (θ_i − θ_i^initial)²
"""

from __future__ import annotations

from math import inf

import torch

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import TorchLearner
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.initial_weights import InitialWeights
from perdure.agents.strategies.quadratic_penalty import QuadraticPenalty


class L2Init(Strategy):
    """A quadratic penalty that is the same for all weights."""

    def __init__(self, learner: TorchLearner, strength: float = 1e-3) -> None:
        super().__init__(learner)
        check_ranges("l2_init", strength=(strength, 0, inf))
        self.strength = strength
        initial = InitialWeights(learner).weights
        self.penalty = QuadraticPenalty(learner.device)
        self.penalty.set(torch.ones_like(initial), initial)

    def project(self) -> None:
        self.penalty.add_gradient(self.learner.optimizer, 2 * self.strength)


strategy = L2Init
