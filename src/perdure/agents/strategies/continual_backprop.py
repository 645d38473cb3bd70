"""Continual backpropagation (Dohare et al., 2024): the least useful units are reinitialised, a few at a time.

A hidden unit's utility is a running mean of what it contributes to the next layer::

    u ← decay u + (1 − decay) mean|h| Σ|w_out|

In every step the part ``replacement_rate`` of the units older than ``maturity`` steps comes due in each layer. Once
that makes a unit, the one of the least utility (its bias at the start of the mean corrected) gets newly
drawn incoming weights, and outgoing weights of 0. Unlike its authors' code, it does not add what a unit
gave on average to the biases that come after it.
"""

from __future__ import annotations

from math import inf

import numpy as np
import torch

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.networks.tensors import to_array, to_float, to_tensor
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.unit_resets import UnitResets
from perdure.types import Array, State


class ContinualBackprop(Strategy):
    """Keeps the utility and the age of every hidden unit."""

    needs = ("units", "layers")

    def __init__(
        self,
        learner: TorchLearner,
        replacement_rate: float = 1e-4,
        decay: float = 0.99,
        maturity: int = 20,
    ) -> None:
        super().__init__(learner)
        check_ranges(
            "continual_backprop", replacement_rate=(replacement_rate, 0, 1), decay=(decay, 0, 1)
        )
        check_ranges("continual_backprop", maturity=(maturity, 1, inf))
        self.replacement_rate, self.decay, self.maturity = replacement_rate, decay, maturity
        self.units = UnitResets("continual_backprop", learner)
        sizes = [layer.units for layer in self.units.every_layer]
        self.utility = [torch.zeros(n, device=learner.device) for n in sizes]
        self.age = [torch.zeros(n, device=learner.device) for n in sizes]
        self.due = [0.0 for _ in sizes]
        self.batch: Minibatch = {}

    def extend(self, batch: Minibatch) -> Minibatch:
        self.batch = batch
        return batch

    def stepped(self) -> None:
        numbers = {id(layer): k for k, layer in enumerate(self.units.every_layer)}
        chosen = []
        for layer, h in self.units.watch(self.batch):
            k = numbers[id(layer)]
            utility, age = self.utility[k], self.age[k]
            utility.mul_(self.decay).add_(
                h.abs().mean(0) * layer.outgoing.sums(), alpha=1 - self.decay
            )
            age.add_(1)
            grown = age > self.maturity
            self.due[k] += self.replacement_rate * to_float(grown.sum())
            count = int(self.due[k])
            if count:
                self.due[k] -= count
                fair = utility / (1 - self.decay**age)
                worst = torch.where(grown, fair, inf).argsort()[:count]
                mask = torch.zeros_like(grown)
                mask[worst] = True
                utility[mask], age[mask] = 0.0, 0.0
                chosen.append((layer, mask))
        if chosen:
            self.units.reset(chosen)

    def state(self) -> dict[str, Array]:
        out = {"due": np.array(self.due)}
        for k, (utility, age) in enumerate(zip(self.utility, self.age, strict=True)):
            out[f"utility{k}"], out[f"age{k}"] = to_array(utility).copy(), to_array(age).copy()
        return out

    def load(self, state: State) -> None:
        self.due = [float(v) for v in state["due"]]
        for k, (utility, age) in enumerate(zip(self.utility, self.age, strict=True)):
            utility.copy_(to_tensor(state[f"utility{k}"], utility.device))
            age.copy_(to_tensor(state[f"age{k}"], age.device))


strategy = ContinualBackprop
