"""RtF (van de Ven and Tolias, 2018): the classifier also generates the samples of the past that it replays.

Replay through feedback. A latent is read from the learner's features, and a decoder leads back to
the inputs (see ``vae.py``). In task t, with network and decoder as they were when the task began and
x' = G'(z), z ~ N(0, I)::

    L = (1/t) [ℓ(x, y) + V(x)] + (1 − 1/t) [soft distillation_T (f(x'), f'(x')) + V(x')]

Encoder and head stay the learner's: any encoder will do, and prediction ignores the latent. Latent
and decoder are the strategy's, with an optimiser of their own. The original has no convolutions:
``rtf+classifier,convolutions=none,hidden=[400,400]``, which is also the preset ``openloris``. In few
batches such a network learns next to nothing, so that ``openloris-small`` keeps the convolutions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, ClassVar, Protocol, cast

import torch
from torch import Tensor, nn

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.strategies import distillation
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.frozen_copy import FrozenCopy, predictions
from perdure.agents.strategies.persample import evaluating
from perdure.agents.strategies.vae import (
    AuxiliaryNetwork,
    Decoder,
    Latent,
    Likelihood,
    chosen,
    negative_elbo,
)
from perdure.types import Array, State


class Encoded(Protocol):
    """What the need of an ``encoder`` means."""

    def encode(self, batch: Minibatch) -> Tensor:
        """Features of the inputs."""

    def decide(self, features: Tensor) -> Tensor:
        """Predictions from features."""


class Feedback(nn.Module):
    """From features to a latent, and back to inputs."""

    def __init__(self, latent: Latent, decoder: Decoder) -> None:
        super().__init__()
        self.latent, self.decoder = latent, decoder


class RtF(Strategy):
    """Keeps no rows. ``decoder`` are the widths of the decoder's hidden layers; it learns with
    ``decoder_lr``, or with 0 at the learner's rate. A ``weight`` takes the place of 1/t."""

    needs = ("data", "logits", "one head", "encoder")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "openloris": {"convolutions": "none", "hidden": (400, 400), "dropout": 0.0},
        "openloris-small": {"decoder": (200,), "latent": 50},
    }

    def __init__(
        self,
        learner: TorchLearner,
        latent: int = 100,
        decoder: Sequence[int] = (400, 400),
        decoder_lr: float = 0.0,
        likelihood: Likelihood = "fitting",
        weight: float = 0.0,
        temperature: float = 2.0,
    ) -> None:
        super().__init__(learner)
        check_ranges("rtf", weight=(weight, 0, 1))
        self.weight = weight
        check_ranges("rtf", latent=(latent, 1, inf), decoder_lr=(decoder_lr, 0, inf))
        check_ranges("rtf", temperature=(temperature, 1e-6, inf))
        self.temperature, self.parts = temperature, cast(Encoded, learner)
        kind, shape = chosen("rtf", learner, likelihood), learner.inputs.shape
        with torch.no_grad(), evaluating(learner.net):
            features = self.parts.encode(
                {"obs": torch.zeros(1, *shape, device=learner.device)}
            ).shape[1]
        self.feedback = AuxiliaryNetwork(
            learner,
            decoder_lr,
            lambda: Feedback(
                Latent(features, latent), Decoder(latent, tuple(decoder), shape, kind)
            ),
        )
        self.teacher = FrozenCopy(learner.net)

    def end(self) -> None:
        self.teacher.take()
        self.feedback.before.take()

    def reconstruction_loss(self, x: Tensor, features: Tensor) -> Tensor:
        """V(x), given the features of x."""
        net = self.feedback.net
        return negative_elbo(x, net.latent(features), net.decoder, self.rng)

    def objective(self, batch: Minibatch, loss: Tensor) -> Tensor:
        # One backward, that of the learner, serves both optimisers.
        self.feedback.optimizer.zero_grad()
        learner, source, teacher = self.learner, self.feedback.before.net, self.teacher.net
        features = learner.last_outputs.get("features")
        if features is None:
            features = self.parts.encode(batch)
        loss = loss + self.reconstruction_loss(batch["obs"], features)
        if source is None or teacher is None:
            return loss
        x = source.decoder.sample(len(batch["obs"]), self.rng)
        labels = predictions(learner, teacher, {"obs": x})[:, 0]
        features = self.parts.encode({"obs": x})
        kept = distillation.soft(self.parts.decide(features), labels, self.temperature)
        kept = kept + self.reconstruction_loss(x, features)
        return self.present * loss + (1 - self.present) * kept

    def stepped(self) -> None:
        self.feedback.optimizer.step()

    def state(self) -> dict[str, Array]:
        return {**self.feedback.state(), **self.teacher.state("teacher")}

    def load(self, state: State) -> None:
        self.feedback.load(state)
        self.teacher.load("teacher", state)


strategy = RtF
