"""Shrink and perturb (Ash and Adams, 2020): when a task begins, a step back towards a new network.

    θ ← shrink θ + perturb θ'        θ': weights drawn as at first

The optimiser begins anew with it. With ``period`` it happens after so many steps instead, and the
optimiser goes on.
"""

from __future__ import annotations

from math import inf

import numpy as np
import torch

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import TorchLearner
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.initial_weights import InitialWeights
from perdure.types import Array, State


class ShrinkPerturb(Strategy):
    """Shrinks all weights and adds new ones, at every new task or every so many steps."""

    def __init__(
        self, learner: TorchLearner, shrink: float = 0.4, perturb: float = 0.1, period: int = 0
    ) -> None:
        super().__init__(learner)
        check_ranges("shrink_perturb", shrink=(shrink, 0, 1), perturb=(perturb, 0, inf))
        check_ranges("shrink_perturb", period=(period, 0, inf))
        self.shrink, self.perturb, self.period = shrink, perturb, period
        self.initial = InitialWeights(learner)
        self.steps = 0

    @torch.no_grad()
    def _apply(self) -> None:
        new = self.initial.drawn(self.rng)
        self.learner.optimizer.weights.mul_(self.shrink).add_(new, alpha=self.perturb)

    def begin(self) -> None:
        if self.tasks > 1 and not self.period:
            self._apply()
            self.learner.optimizer.forget()

    def stepped(self) -> None:
        self.steps += 1
        if self.period and self.steps % self.period == 0:
            self._apply()

    def state(self) -> dict[str, Array]:
        return {"steps": np.array(self.steps)}

    def load(self, state: State) -> None:
        self.steps = int(state["steps"])


strategy = ShrinkPerturb
