"""ReDo (Sokar et al., 2023): dormant units are reinitialised.

Every ``period`` steps a hidden unit whose mean absolute activation on the minibatch is at most
``threshold`` of its layer's mean gets newly drawn incoming weights, and outgoing weights of 0.
"""

from __future__ import annotations

from math import inf

import numpy as np

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.networks.plasticity import is_dormant
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.unit_resets import UnitResets
from perdure.types import Array, State


class ReDo(Strategy):
    """Looks for dormant units every ``period`` steps, and reinitialises them."""

    needs = ("units", "layers")

    def __init__(self, learner: TorchLearner, threshold: float = 0.1, period: int = 1000) -> None:
        super().__init__(learner)
        check_ranges("redo", threshold=(threshold, 0, inf), period=(period, 1, inf))
        self.threshold, self.period, self.steps = threshold, period, 0
        self.units = UnitResets("redo", learner)
        self.batch: Minibatch = {}

    def extend(self, batch: Minibatch) -> Minibatch:
        self.batch = batch
        return batch

    def stepped(self) -> None:
        self.steps += 1
        if self.steps % self.period == 0:
            seen = self.units.watch(self.batch)
            self.units.reset((layer, is_dormant(h, self.threshold)) for layer, h in seen)

    def state(self) -> dict[str, Array]:
        return {"steps": np.array(self.steps)}

    def load(self, state: State) -> None:
        self.steps = int(state["steps"])


strategy = ReDo
