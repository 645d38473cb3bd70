"""How much the predictions depend on each parameter: the diagonal of the Fisher information."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.strategies.memory import rows_of

Labels = Literal["predicted", "sampled", "given"]
LABELS: tuple[Labels, ...] = ("predicted", "sampled", "given")
CHUNK = 64
"""Samples whose gradients are held at once."""


class _Scored(nn.Module):
    """A learner's network with a function of one sample, so that its parameters can be swapped."""

    def __init__(self, net: nn.Module, score: Callable[[Minibatch], Tensor]) -> None:
        super().__init__()
        self.net, self.score = net, score

    def forward(self, row: Minibatch) -> Tensor:
        """The score of one row."""
        return self.score({name: value.unsqueeze(0) for name, value in row.items()})


def mean_gradients(
    learner: TorchLearner,
    rows: Minibatch,
    score: Callable[[Minibatch], Tensor],
    of: Callable[[Tensor], Tensor],
) -> Tensor:
    """Mean over samples of ``of``(the gradient of a sample's score), as one flat vector in the order
    of the optimiser. Each sample has a gradient of its own: squaring the mean gradient of a batch
    is another, smaller thing."""
    names = list(learner.parameters())
    weights = {f"net.{n}": p.detach() for n, p in learner.parameters().items()}
    scored = _Scored(learner.net, score)

    def one(p: dict[str, Tensor], row: Minibatch) -> Tensor:
        found: Tensor = functional_call(scored, p, (row,))
        return found

    each = vmap(grad(one), in_dims=(None, 0))
    n = rows_of(rows)
    total = torch.zeros_like(learner.optimizer.weights)
    training = learner.net.training
    learner.net.eval()
    for start in range(0, n, CHUNK):
        part = {name: v[start : start + CHUNK] for name, v in rows.items()}
        found = each(weights, part)
        total += torch.cat([of(found[f"net.{k}"]).sum(0).reshape(-1) for k in names]).detach()
    learner.net.train(training)
    return total / n


def fisher(
    learner: TorchLearner, rows: Minibatch, labels: Labels, rng: np.random.Generator
) -> Tensor:
    """Mean over samples of (∂ −log p(y|x) / ∂θ)².

    ``y`` is the most probable class, one drawn from the predictions, or the one given with the
    data. A learner that predicts numbers has no p: there the gradient is that of its own loss.
    """
    if learner.predicts != "logits" or labels == "given":
        return mean_gradients(learner, rows, lambda row: learner.loss(row)[0], torch.square)
    with torch.no_grad():
        logits = learner.predict(rows)
        if labels == "sampled":
            noise = torch.tensor(rng.gumbel(size=tuple(logits.shape)), dtype=logits.dtype)
            logits = logits + noise
        chosen = logits.argmax(dim=1)

    def surprise(row: Minibatch) -> Tensor:
        logs = torch.log_softmax(learner.predict(row), dim=1)
        return -logs.gather(1, row["fisher label"].unsqueeze(1)).sum()

    return mean_gradients(learner, {**rows, "fisher label": chosen}, surprise, torch.square)
