"""DGR with distillation (van de Ven and Tolias, 2018): with old probabilities instead of labels.

As in deep generative replay (see ``dgr.py``), with T the ``temperature``::

    L = (1/t) ℓ(x, y) + (1 − 1/t) soft distillation_T (f(x'), f'(x'))
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from torch import Tensor

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import TorchLearner
from perdure.agents.strategies import distillation
from perdure.agents.strategies.dgr import DGR
from perdure.agents.strategies.vae import Likelihood


class DistilledDGR(DGR):
    """Soft targets; the rest is as in DGR."""

    def __init__(
        self,
        learner: TorchLearner,
        latent: int = 100,
        generator: Sequence[int] = (400, 400),
        generator_lr: float = 0.0,
        likelihood: Likelihood = "fitting",
        weight: float = 0.0,
        temperature: float = 2.0,
    ) -> None:
        super().__init__(learner, latent, generator, generator_lr, likelihood, weight)
        check_ranges("dgr_distill", temperature=(temperature, 1e-6, inf))
        self.temperature = temperature

    def distance(self, student: Tensor, teacher: Tensor) -> Tensor:
        return distillation.soft(student, teacher, self.temperature)


strategy = DistilledDGR
