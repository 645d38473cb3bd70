"""How much the predictions depend on each parameter: the diagonal of the Fisher information."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.networks.tensors import to_tensor
from perdure.agents.strategies.persample import Score, chunks, evaluating, mean_gradients
from perdure.errors import SpecError

Labels = Literal["predicted", "sampled", "given"]
LABELS: tuple[Labels, ...] = ("predicted", "sampled", "given")


def check_labels(strategy: str, learner: TorchLearner, labels: Labels) -> None:
    """Refuse labels that are no choice, or none with this learner."""
    if labels not in LABELS:
        raise SpecError(f"{strategy}: labels must be one of {', '.join(LABELS)}, got {labels!r}")
    if learner.sequences and labels != "given":
        raise SpecError(
            f"{strategy}: {type(learner).__name__} answers whole sequences, whose likelihood is its "
            "own loss: use labels='given'"
        )
    if labels == "given" and "data" not in learner.learns_from:
        raise SpecError(
            f"{strategy}: labels='given' needs labelled data, and {type(learner).__name__} learns "
            "from environments. Use labels='sampled'"
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
    data (the gradient is then that of the learner's own loss). Real-valued predictions describe the
    distribution that the learner says, by its :meth:`~TorchLearner.output_fisher`: a Gaussian
    policy's mean and deviation, say. There the most probable y has no gradient, so that both
    ``predicted`` and ``sampled`` draw it.
    """
    score: Score = partial(_negative_log_likelihood, learner)
    if labels == "given":
        score = partial(_loss, learner)
    elif labels == "sampled" or learner.predicts == "regression":
        with torch.no_grad(), evaluating(learner.net):
            outputs = torch.cat([learner.predict(part) for part in chunks(rows)])
            draw = rng.gumbel if learner.predicts == "logits" else rng.standard_normal
            noise = to_tensor(draw(size=tuple(outputs.shape)), learner.device, torch.float32)
            if learner.predicts == "regression":
                noise *= learner.output_fisher(rows, outputs).sqrt()
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
    # The gradient of −log p in the outputs: of mean 0, and its variance is their Fisher information.
    return -(noise * found).sum(dim=1).mean()
