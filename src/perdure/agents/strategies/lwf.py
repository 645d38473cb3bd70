"""LwF (Li and Hoiem, 2017): what the network said before this task is learned along with it.

Learning without forgetting, on the inputs x of the present task. With the network f' as it was when
the task began, and the heads k of the tasks before it::

    L = ℓ + strength Σ_k D(f_k(x), f'_k(x))

Where all tasks share one head there is one such term. D is soft distillation at ``temperature``, or
with ``hard`` the cross-entropy with the class that f' finds most probable. Where predictions are
real numbers D is half the squared distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.networks.tensors import to_tensor
from perdure.agents.strategies import distillation
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.frozen_copy import FrozenCopy, predictions
from perdure.errors import SpecError
from perdure.types import Array, State

Weighting = Literal["sum", "share"]


class LwF(Strategy):
    """Keeps one copy of the network and no rows.

    ``strength`` is λ_o of the authors, who have 1, as is ``temperature`` their 2. With
    ``weighting="share"`` task t learns ℓ / t + (1 − 1/t) mean_k D instead, as van de Ven and, after
    him, the authors of OpenLORIS-Object do (the presets ``openloris`` and ``openloris-small``; their
    README has soft targets, their script hard ones).
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "openloris": {"weighting": "share"},
        "openloris-small": {"weighting": "share"},
    }

    def __init__(
        self,
        learner: TorchLearner,
        strength: float = 1.0,
        temperature: float = 2.0,
        hard: bool = False,
        weighting: Weighting = "sum",
    ) -> None:
        super().__init__(learner)
        check_ranges("lwf", temperature=(temperature, 1e-6, inf), strength=(strength, 0, inf))
        if weighting not in ("sum", "share"):
            raise SpecError(f"lwf: weighting must be 'sum' or 'share', got {weighting!r}")
        if hard and learner.predicts != "logits":
            raise SpecError(
                f"lwf: hard=true needs classes, and {type(learner).__name__} predicts real numbers here"
            )
        self.strength, self.temperature, self.hard = strength, temperature, hard
        self.weighting = weighting
        self.teacher = FrozenCopy(learner.net)
        self.old_heads: list[int] = []
        """Heads of the tasks before this one."""

    def end(self) -> None:
        self.teacher.take()
        self.old_heads = sorted({*self.old_heads, *self.present_heads()})

    def objective(self, batch: Minibatch, loss: Tensor) -> Tensor:
        heads = [k for k in self.old_heads if k not in self.present_heads()]
        if self.learner.heads == 1:
            heads = [0]
        if self.teacher.net is None or not heads:
            return loss
        before = predictions(self.learner, self.teacher.net, batch)
        now = self.learner.last_outputs.get("heads")
        if now is None:
            now = self.learner.predict_heads(batch)
        old = to_tensor(np.array(heads), now.device)
        rows = now[:, old].flatten(0, 1), before[:, old].flatten(0, 1)
        kept = self._distance(*rows)
        if self.weighting == "share":
            return self.present * loss + (1 - self.present) * kept
        # A mean over the rows of all heads is the mean over heads.
        return loss + self.strength * len(heads) * kept

    def _distance(self, now: Tensor, before: Tensor) -> Tensor:
        if self.learner.predicts != "logits":
            return distillation.squared_error(now, before)
        if self.hard:
            return distillation.hard(now, before)
        return distillation.soft(now, before, self.temperature)

    def state(self) -> dict[str, Array]:
        return {**self.teacher.state("teacher"), "old_heads": np.array(self.old_heads, np.int64)}

    def load(self, state: State) -> None:
        self.teacher.load("teacher", state)
        self.old_heads = [int(k) for k in state["old_heads"]]


strategy = LwF
