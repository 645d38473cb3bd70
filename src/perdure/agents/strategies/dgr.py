"""DGR (Shin et al., 2017): generated samples of the past are replayed, labelled by the network as it was.

Deep generative replay. A VAE (see ``vae.py``) learns the inputs beside the learner. In task t, with
the network f' and the decoder G' as they were when the task began, x' = G'(z) for as many latents
z ~ N(0, I) as there are rows in the minibatch::

    L = (1/t) ℓ(x, y) + (1 − 1/t) cross-entropy(f(x'), argmax f'(x'))
    VAE: (1/t) V(x) + (1 − 1/t) V(x')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, ClassVar

from torch import Tensor

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.strategies import distillation
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.frozen_copy import FrozenCopy, predictions
from perdure.agents.strategies.vae import VAE, AuxiliaryNetwork, Likelihood, chosen
from perdure.types import Array, State


class DGR(Strategy):
    """Keeps no rows. ``generator`` are the widths of the VAE's hidden layers; it learns with
    ``generator_lr``, or with 0 at the learner's rate. A ``weight`` takes the place of 1/t. As it is,
    the generator is that of OpenLORIS-Object's authors; ``openloris-small`` has one for two cores.
    """

    needs = ("data", "logits", "one head")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "openloris-small": {"generator": (200,), "latent": 50},
    }

    def __init__(
        self,
        learner: TorchLearner,
        latent: int = 100,
        generator: Sequence[int] = (400, 400),
        generator_lr: float = 0.0,
        likelihood: Likelihood = "fitting",
        weight: float = 0.0,
    ) -> None:
        super().__init__(learner)
        check_ranges("dgr", latent=(latent, 1, inf), generator_lr=(generator_lr, 0, inf))
        check_ranges("dgr", weight=(weight, 0, 1))
        self.weight = weight
        kind, shape = chosen("dgr", learner, likelihood), learner.inputs.shape
        self.generator = AuxiliaryNetwork(
            learner, generator_lr, lambda: VAE(latent, tuple(generator), shape, kind)
        )
        self.teacher = FrozenCopy(learner.net)

    def end(self) -> None:
        self.teacher.take()
        self.generator.before.take()

    def distance(self, student: Tensor, teacher: Tensor) -> Tensor:
        """How far the learner's predictions on replayed inputs are from those of its old copy."""
        return distillation.hard(student, teacher)

    def objective(self, batch: Minibatch, loss: Tensor) -> Tensor:
        vae, source, teacher = self.generator.net, self.generator.before.net, self.teacher.net
        reconstruction = vae.loss(batch["obs"], self.rng)
        if source is not None and teacher is not None:
            replayed = {"obs": source.decoder.sample(len(batch["obs"]), self.rng)}
            labels = predictions(self.learner, teacher, replayed)[:, 0]
            kept = self.distance(self.learner.predict(replayed), labels)
            loss = self.present * loss + (1 - self.present) * kept
            past = vae.loss(replayed["obs"], self.rng)
            reconstruction = self.present * reconstruction + (1 - self.present) * past
        # The VAE shares nothing with the learner, so that its step may come first.
        self.generator.descend(reconstruction)
        return loss

    def state(self) -> dict[str, Array]:
        return {**self.generator.state(), **self.teacher.state("teacher")}

    def load(self, state: State) -> None:
        self.generator.load(state)
        self.teacher.load("teacher", state)


strategy = DGR
