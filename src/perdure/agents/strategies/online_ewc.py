"""Online EWC (Schwarz et al., 2018): one quadratic penalty, around the newest parameters.

After task k, F̃ ← F^k + decay F̃, and every later task learns::

    L = ℓ + (strength / 2) Σ_i decay F̃_i (θ_i − θ^k_i)²
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar, Literal

import torch

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import TorchLearner
from perdure.agents.strategies.ewc import EWC
from perdure.agents.strategies.fisher import Labels
from perdure.agents.strategies.row_memory import Keep

LIBERO: Mapping[str, Any] = {"strength": 2 * 5e4 / 0.9, "decay": 0.9, "labels": "given"}


class OnlineEWC(EWC):
    """Importance adds up and fades by ``decay`` at each new task. The rest is as in EWC.

    The preset ``libero`` is LIBERO's EWC, which is this one: its code adds 50,000 Σ F (θ − θ*)² with
    F ← F^k + 0.9 F, so that strength / 2 · decay is 50,000; the gradients of minibatches of 32 are
    squared. ``libero-small`` takes fewer samples, in groups of the larger minibatches there.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        **EWC.presets,
        "libero": {**LIBERO, "samples": 10_240, "group": 32},
        "libero-small": {**LIBERO, "samples": 2048, "group": 128},
    }

    def __init__(
        self,
        learner: TorchLearner,
        strength: float = 100.0,
        decay: float = 1.0,
        samples: int = 256,
        labels: Labels = "predicted",
        group: int = 1,
        divisor: Literal["n", "n-1"] = "n",
        keep: Keep = "references",
        megabytes: float = 0.0,
    ) -> None:
        super().__init__(learner, strength, samples, labels, group, divisor, keep, megabytes)
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
