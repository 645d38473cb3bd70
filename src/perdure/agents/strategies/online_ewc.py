"""Online EWC (Schwarz et al., 2018): one quadratic penalty, around the newest parameters.

After task k, F̃ ← F^k + decay F̃, and every later task learns::

    L = ℓ + (strength / 2) Σ_i decay F̃_i (θ_i − θ^k_i)²
"""

from __future__ import annotations

from math import inf
from typing import Literal

import torch

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import TorchLearner
from perdure.agents.strategies.ewc import EWC
from perdure.agents.strategies.fisher import Labels


class OnlineEWC(EWC):
    """Importance adds up and fades by ``decay`` at each new task. The rest is as in EWC."""

    def __init__(
        self,
        learner: TorchLearner,
        strength: float = 100.0,
        decay: float = 1.0,
        samples: int = 256,
        labels: Labels = "predicted",
        group: int = 1,
        divisor: Literal["n", "n-1"] = "n",
    ) -> None:
        super().__init__(learner, strength, samples, labels, group, divisor)
        check_ranges("online_ewc", decay=(decay, 0, inf))
        self.decay = decay

    def end(self) -> None:
        found = self.importance()
        if found is not None:
            # The penalty keeps decay F̃: what it uses, and what the next F̃ begins with.
            old = self.penalty.importance
            total = found + (torch.zeros_like(found) if old is None else old)
            self.penalty.set(self.decay * total, self.learner.optimizer.weights)


strategy = OnlineEWC
