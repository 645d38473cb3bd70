"""How much the predictions depend on each parameter: the diagonal of the Fisher information."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.networks.tensors import to_tensor
from perdure.agents.strategies.persample import Score, evaluating, mean_gradients
from perdure.agents.strategies.row_memory import rows_of
from perdure.errors import SpecError

Labels = Literal["predicted", "sampled", "given"]
LABELS: tuple[Labels, ...] = ("predicted", "sampled", "given")


def check_labels(strategy: str, learner: TorchLearner, labels: Labels) -> None:
    """Refuse labels that are no choice, or none with this learner."""
    if labels not in LABELS:
        raise SpecError(f"{strategy}: labels must be one of {', '.join(LABELS)}, got {labels!r}")
    if labels == "given" and not learner.replayable:
        raise SpecError(
            f"{strategy}: labels='given' needs a loss that means something on a single row; that of "
            f"{type(learner).__name__} compares the rows of a minibatch. Use labels='sampled'"
        )


def fisher(
    learner: TorchLearner,
    rows: Minibatch,
    labels: Labels,
    rng: np.random.Generator,
    group: int = 1,
) -> Tensor:
    """Mean over samples of (∂ −log p(y|x) / ∂θ)².

    ``y`` is the most probable class, one drawn from the predictions, or the one given with the
    data (the gradient is then that of the learner's own loss). Real-valued predictions are taken as
    means of Gaussians of unit variance. There the most probable y has no gradient, so that
    both ``predicted`` and ``sampled`` draw it.
    """
    score: Score = partial(_negative_log_likelihood, learner)
    if labels == "given":
        score = partial(_loss, learner)
    elif labels == "sampled" or learner.predicts == "regression":
        with torch.no_grad(), evaluating(learner.net):
            width = learner.predict({name: v[:1] for name, v in rows.items()}).shape[1]
        draw = rng.gumbel if learner.predicts == "logits" else rng.standard_normal
        drawn = draw(size=(rows_of(rows), width))
        noise = to_tensor(drawn, learner.device, torch.float32)
        rows = {**rows, "fisher noise": noise}
    return mean_gradients(learner, rows, score, torch.square, group)


def _loss(learner: TorchLearner, rows: Minibatch) -> Tensor:
    return learner.loss(rows)[0]


def _negative_log_likelihood(learner: TorchLearner, rows: Minibatch) -> Tensor:
    """Mean over rows of −log p(y|x) for the most probable y after noise, if there is any."""
    found, noise = learner.predict(rows), rows.get("fisher noise")
    if learner.predicts == "logits":
        scores = found.detach() if noise is None else found.detach() + noise
        return nn.functional.cross_entropy(found, scores.argmax(dim=1))
    assert noise is not None
    # With y = mean + noise the gradient of ½(y − mean)² is that of −noise · mean.
    return -(noise * found).sum(dim=1).mean()
