"""MAS (Aljundi et al., 2018): a quadratic penalty by how sensitive the outputs are to a parameter.

Memory aware synapses. After task k, over rows x of it and with the predictions f(x)::

    Ω_i ← Ω_i + mean over x of |∂ ‖f(x)‖² / ∂θ_i|

Later tasks learn::

    L = ℓ + strength Σ_i Ω_i (θ_i − θ^k_i)²
"""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import Minibatch, NewRows, TorchLearner
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.persample import mean_gradients
from perdure.agents.strategies.quadratic_penalty import QuadraticPenalty
from perdure.agents.strategies.row_memory import Keep, Reservoir, RowFormat
from perdure.types import Array, State


class MAS(Strategy):
    """Needs no labels: importance is asked of ``samples`` inputs, each with a gradient of its own.
    ``keep`` and ``megabytes`` of the samples are those of ``replay``."""

    def __init__(
        self,
        learner: TorchLearner,
        strength: float = 1.0,
        samples: int = 256,
        keep: Keep = "references",
        megabytes: float = 0.0,
    ) -> None:
        super().__init__(learner)
        check_ranges("mas", strength=(strength, 0, inf))
        self.strength = strength
        self.seen = Reservoir(samples, RowFormat(learner, keep, megabytes))
        self.penalty = QuadraticPenalty(learner.device)

    def begin(self) -> None:
        self.seen.clear()

    def collect(self, rows: NewRows) -> None:
        self.seen.offer(rows, self.rng)

    def end(self) -> None:
        if not len(self.seen):
            return
        learner = self.learner

        def length(rows: Minibatch) -> Tensor:
            return learner.predict(rows).square().sum(dim=1).mean()

        found = mean_gradients(learner, self.seen.all(), length, torch.abs)
        if self.penalty.importance is not None:
            found += self.penalty.importance
        self.penalty.set(found, learner.optimizer.weights)

    def project(self) -> None:
        self.penalty.add_gradient(self.learner.optimizer, 2 * self.strength)

    def state(self) -> dict[str, Array]:
        return {**self.seen.state("seen"), **self.penalty.state()}

    def load(self, state: State) -> None:
        self.seen.load("seen", state)
        self.penalty.load(state)


strategy = MAS
