"""The weights that a learner began with, and new ones like them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from perdure.agents.networks.learner import TorchLearner
from perdure.agents.networks.tensors import to_tensor


class InitialWeights:
    """A copy of all weights as they were at first, as one vector in the order of the optimiser. It is no
    part of a strategy's state: whoever makes the agent again begins with the same."""

    def __init__(self, learner: TorchLearner) -> None:
        self.optimizer = learner.optimizer
        self.weights = self.optimizer.weights.clone()

    def drawn(self, rng: np.random.Generator) -> Tensor:
        """New weights. Those of a layer are drawn from the values that it had, so that they are
        distributed as at first, however that was done."""
        parts = []
        for p in self.optimizer.parameters:
            values = self.optimizer.part_of(self.weights, p).reshape(-1)
            which = to_tensor(rng.integers(p.numel(), size=p.numel()), values.device)
            parts.append(values[which])
        return torch.cat(parts)
