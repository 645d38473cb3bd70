"""LwF (Li and Hoiem, 2016): what the network said before this task is learned along with it.

Learning without forgetting, on the inputs of this task. In task t, with the network f' as it was when
the task began, and weighed as van de Ven does::

    L = (1/t) ℓ + (1 − 1/t) D(f(x), f'(x))

D is soft distillation at ``temperature``, or with ``hard`` the cross-entropy with the class that f'
finds most probable. Where predictions are real numbers D is half the squared distance.
"""

from __future__ import annotations

from math import inf

from torch import Tensor

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.strategies import distillation
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.frozen_copy import FrozenCopy, predictions
from perdure.errors import SpecError
from perdure.types import Array, State


class LwF(Strategy):
    """Keeps one copy of the network and no rows. A ``weight`` takes the place of 1/t.

    The authors of OpenLORIS-Object published both: their README has soft targets, their script hard
    ones.
    """

    def __init__(
        self,
        learner: TorchLearner,
        temperature: float = 2.0,
        hard: bool = False,
        weight: float = 0.0,
    ) -> None:
        super().__init__(learner)
        check_ranges("lwf", temperature=(temperature, 1e-6, inf), weight=(weight, 0, 1))
        self.weight = weight
        if hard and learner.predicts != "logits":
            raise SpecError(
                f"lwf: hard=true needs classes, and {type(learner).__name__} predicts real numbers here"
            )
        self.temperature, self.hard = temperature, hard
        self.teacher = FrozenCopy(learner.net)

    def end(self) -> None:
        self.teacher.take()

    def objective(self, batch: Minibatch, loss: Tensor) -> Tensor:
        if self.teacher.net is None:
            return loss
        before = predictions(self.learner, self.teacher.net, batch)
        now = self.learner.last_outputs.get("predictions")
        if now is None:
            now = self.learner.predict(batch)
        if self.learner.predicts != "logits":
            kept = distillation.squared_error(now, before)
        elif self.hard:
            kept = distillation.hard(now, before)
        else:
            kept = distillation.soft(now, before, self.temperature)
        return self.present * loss + (1 - self.present) * kept

    def state(self) -> dict[str, Array]:
        return self.teacher.state("teacher")

    def load(self, state: State) -> None:
        self.teacher.load("teacher", state)


strategy = LwF
