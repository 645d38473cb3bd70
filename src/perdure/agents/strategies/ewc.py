"""EWC (Kirkpatrick et al., 2017): a quadratic penalty on moving what mattered to a task.

After task k with parameters θ^k and Fisher information F^k, every later task learns::

    L = ℓ + (strength / 2) Σ_k Σ_i F^k_i (θ_i − θ^k_i)²
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import NewRows, TorchLearner
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.fisher import Labels, check_labels, fisher
from perdure.agents.strategies.persample import summed
from perdure.agents.strategies.quadratic_penalty import QuadraticPenalty
from perdure.agents.strategies.row_memory import Keep, Reservoir, RowFormat, rows_of
from perdure.errors import SpecError
from perdure.types import Array, State


class EWC(Strategy):
    """One penalty a task and parameter.

    The Fisher information is the mean over ``samples`` rows of the task, drawn uniformly, each with
    a gradient of its own; ``labels`` says which class a sample stands for. What others compute can
    be had: ``group`` rows that share one gradient (LIBERO and Avalanche square the mean gradient of
    a minibatch), and ``divisor="n-1"`` (the code of OpenLORIS-Object). ``keep`` and ``megabytes`` of the
    samples are those of ``replay``.

    The preset ``openloris`` is that of OpenLORIS-Object's authors, with as many samples as a task has
    frames; ``openloris-small`` has their strength and fewer samples.
    Presets for LIBERO are those of ``online_ewc``.
    """

    needs = ("rows or data",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "openloris": {"strength": 5240.0, "samples": 12_283, "divisor": "n-1"},
        "openloris-small": {"strength": 5240.0},
    }

    def __init__(
        self,
        learner: TorchLearner,
        strength: float = 100.0,
        samples: int = 256,
        labels: Labels = "predicted",
        group: int = 1,
        divisor: Literal["n", "n-1"] = "n",
        keep: Keep = "references",
        megabytes: float = 0.0,
    ) -> None:
        super().__init__(learner)
        check_labels("ewc", learner, labels)
        check_ranges("ewc", strength=(strength, 0, inf), group=(group, 1, samples))
        if divisor not in ("n", "n-1"):
            raise SpecError(f"ewc: divisor must be 'n' or 'n-1', got {divisor!r}")
        self.strength, self.labels, self.group, self.divisor = strength, labels, group, divisor
        self.seen = Reservoir(samples, RowFormat(learner, keep, megabytes))
        self.penalty = QuadraticPenalty(learner.device)

    def begin(self) -> None:
        self.seen.clear()

    def collect(self, rows: NewRows) -> None:
        self.seen.offer(rows, self.rng)

    def importance(self) -> Tensor | None:
        """The Fisher information of the task that ends; None if nothing was learned in it."""
        if not len(self.seen):
            return None
        if self.learner.sequences:
            return self._importance_of_sequences()
        rows = self.seen.all()
        found = fisher(self.learner, rows, self.labels, self.rng, self.group)
        n = rows_of(rows) // self.group
        return found * (n / (n - 1)) if self.divisor == "n-1" and n > 1 else found

    def _importance_of_sequences(self) -> Tensor:
        """The same, a group of rows at a time: sequences of pictures are large, and with given labels
        rows do not depend on each other. Rows that fill no group are left out."""
        group = min(self.group, len(self.seen))
        groups = len(self.seen) // group
        parts = (self.seen.at(np.arange(k * group, (k + 1) * group)) for k in range(groups))
        found = summed(fisher(self.learner, p, self.labels, self.rng, group) for p in parts)
        return found / (groups - 1 if self.divisor == "n-1" and groups > 1 else groups)

    def end(self) -> None:
        found = self.importance()
        if found is not None:
            self.penalty.add(found, self.learner.optimizer.weights)

    def project(self) -> None:
        self.penalty.add_gradient(self.learner.optimizer, self.strength)

    def state(self) -> dict[str, Array]:
        return {**self.seen.state("seen"), **self.penalty.state()}

    def load(self, state: State) -> None:
        self.seen.load("seen", state)
        self.penalty.load(state)


strategy = EWC
