"""PCGrad (Yu et al., 2020): tasks that are learned side by side do not pull against each other.

Projecting conflicting gradients. Each task's part of a minibatch gives a gradient g_i. It is compared
with those of the other tasks in random order, and where it points against one of them, loses that
part::

    g_i ← g_i − (g_i · g_j / g_j · g_j) g_j      if g_i · g_j < 0

The step follows the mean of what is left. Policy, critics and temperatures are compared apart, as each
has a loss of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.agents.strategies.base import Strategy
from perdure.types import Array


class PCGrad(Strategy):
    """Keeps nothing of the past: it is for tasks that are learned in parallel. With one task at a time
    it changes nothing."""

    needs = ("tasks",)

    def __init__(self, learner: TorchLearner) -> None:
        super().__init__(learner)
        self.groups = _losses_apart(learner)

    def split(self, batch: Minibatch) -> list[Minibatch]:
        tasks = batch["task"]
        each = [tasks == task for task in torch.unique(tasks)]
        if len(each) == 1:
            return [batch]
        return [{name: column[rows] for name, column in batch.items()} for rows in each]

    @torch.no_grad()
    def merge(self, gradients: Sequence[Tensor]) -> None:
        stacked = torch.stack(list(gradients))
        step = self.learner.optimizer.grads
        for where in self.groups:
            mine = stacked[:, where]
            shares = without_conflicts(to_array(mine @ mine.T), self.rng)
            step[where] = to_tensor(shares, step.device, step.dtype) @ mine


def without_conflicts(products: Array, rng: np.random.Generator) -> Array:
    """How much of each gradient is in the mean of the projected ones, from the inner products of all
    pairs. A projected gradient stays a sum of the given ones, so their products are all it takes."""
    tasks = len(products)
    products = products.astype(np.float64)
    mixed = np.eye(tasks)
    for i in range(tasks):
        for j in rng.permutation(tasks):
            along = mixed[i] @ products[:, j]
            if j != i and along < 0:
                mixed[i, j] -= along / products[j, j]
    share: Array = mixed.mean(0)
    return share


def _losses_apart(learner: TorchLearner) -> list[slice | Tensor]:
    """Where in the flat gradient the policy's weights lie, and those of each kind of parameters that
    only steer learning: a slice where they follow each other, since that needs no copy."""
    found: dict[str, list[tuple[int, int]]] = {}
    start = 0
    for name, p in learner.parameters().items():
        kind = next((k for k in learner.non_policy_parameters if name.startswith(k)), "")
        runs = found.setdefault(kind, [])
        first = runs.pop()[0] if runs and runs[-1][1] == start else start
        start += p.numel()
        runs.append((first, start))
    return [
        slice(*runs[0])
        if len(runs) == 1
        else torch.cat([torch.arange(*run, device=learner.device) for run in runs])
        for runs in found.values()
    ]


strategy = PCGrad
