"""A-GEM (Chaudhry et al., 2019): no step may go against the gradient of the past.

Averaged gradient episodic memory. With the gradient g of the present minibatch and g_ref of one of
the past, where g · g_ref < 0 the step follows::

    g − (g · g_ref / g_ref · g_ref) g_ref

which is orthogonal to g_ref: to first order, the loss of the past does not rise.
"""

from __future__ import annotations

from math import inf

import torch

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import Minibatch, NewRows, TorchLearner
from perdure.agents.networks.tensors import to_float
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.drawn_ahead import DrawnAhead
from perdure.agents.strategies.row_memory import Keep, PerTaskBuffer, RowFormat, rows_of
from perdure.types import Array, State


class AGEM(Strategy):
    """Keeps a uniform sample of ``quota`` rows for each task. A minibatch of the past is drawn
    uniformly from the rows of all finished tasks; it has ``rows`` rows, or with 0 as many as that
    of the present. ``keep`` and ``megabytes`` are those of ``replay``."""

    needs = ("replay",)

    def __init__(
        self,
        learner: TorchLearner,
        quota: int = 256,
        rows: int = 0,
        keep: Keep = "references",
        megabytes: float = 0.0,
    ) -> None:
        super().__init__(learner)
        check_ranges("agem", rows=(rows, 0, inf))
        self.rows, self.now = rows, 0
        form = RowFormat(learner, keep, megabytes)
        self.memory, self.ahead = PerTaskBuffer(quota, form), DrawnAhead(form)

    def begin(self) -> None:
        self.memory.begin(self.rng)

    def collect(self, rows: NewRows) -> None:
        self.memory.offer(rows, self.rng)

    def extend(self, batch: Minibatch) -> Minibatch:
        self.now = rows_of(batch)
        return batch

    def project(self) -> None:
        if not self.memory.held(self.past):
            return
        optimizer = self.learner.optimizer
        present = optimizer.grads.clone()
        optimizer.zero_grad()
        past = self.ahead.draw(
            self.rows or self.now,
            self.tasks,
            lambda n: self.memory.draw(n, self.rng, self.past),
        )
        self.learner.loss(past)[0].backward()  # type: ignore[no-untyped-call]
        reference = optimizer.grads
        conflict = torch.dot(present, reference)
        if to_float(conflict) < 0:
            present.sub_(reference * (conflict / torch.dot(reference, reference)))
        reference.copy_(present)

    def state(self) -> dict[str, Array]:
        return {**self.memory.state("memory"), **self.ahead.state("ahead")}

    def load(self, state: State) -> None:
        self.memory.load("memory", state)
        self.ahead.load("ahead", state)


strategy = AGEM
