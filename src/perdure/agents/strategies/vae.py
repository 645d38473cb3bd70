"""Variational autoencoders (Kingma and Welling, 2014) of fully connected layers, for replay.

With an encoder's mean μ and variance σ² of the latent z, and n numbers in an input, the loss is::

    V(x) = mean over rows of [−log p(x | z) + ½ Σ_j (μ_j² + σ_j² − 1 − log σ_j²)] / n

p(x | z) is a Bernoulli for each number where inputs lie in [0, 1] (images, one-hot vectors); there
−log p is the binary cross-entropy, and what is replayed is its mean. Elsewhere it is a Gaussian with
a learned deviation for each number, as features have scales of their own; what is replayed is a
sample.
The constant ½ log 2π is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Generic, Literal

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.encoders import mlp
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import N, TorchLearner, network, pack, unpack
from perdure.agents.networks.optimizers import Adam
from perdure.agents.networks.tensors import CPU, to_tensor
from perdure.agents.strategies.frozen_copy import FrozenCopy
from perdure.errors import SpecError
from perdure.seeds import seed_for
from perdure.types import Array, State

Likelihood = Literal["fitting", "bernoulli", "gaussian"]
MIN_LOG_STD = -4.0
"""The smallest log of a deviation, so that inputs without any noise have a finite density."""


def fitting(space: gymnasium.Space[Any]) -> Likelihood:
    """Bernoulli where all that a learner reads lies in [0, 1], else Gaussian."""
    inside = all(part.in_unit for part in Inputs(space).parts.values())
    return "bernoulli" if inside else "gaussian"


class Latent(nn.Module):
    """Mean and log-variance of the latent, read from features."""

    def __init__(self, features: int, latent: int) -> None:
        super().__init__()
        self.mean = nn.Linear(features, latent)
        self.logvar = nn.Linear(features, latent, bias=False)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """(mean, log-variance)."""
        return self.mean(features), self.logvar(features)


class Decoder(nn.Module):
    """From latents to distributions of inputs of one shape."""

    def __init__(
        self,
        latent: int,
        hidden: Sequence[int],
        shape: tuple[int, ...],
        likelihood: Likelihood,
    ) -> None:
        super().__init__()
        self.latent, self.shape, self.numbers = latent, shape, prod(shape)
        self.net = nn.Sequential(
            mlp([latent, *hidden], nn.ReLU), nn.Linear([latent, *hidden][-1], self.numbers)
        )
        self.raw: nn.Parameter | None = None
        if likelihood == "gaussian":
            self.raw = nn.Parameter(torch.zeros(self.numbers, device=CPU))

    def log_std(self) -> Tensor | None:
        """Logs of the Gaussians' deviations; None with Bernoullis. They come near the smallest value
        but never stick to it: the next task may be noisier."""
        if self.raw is None:
            return None
        return MIN_LOG_STD + nn.functional.softplus(self.raw - MIN_LOG_STD)

    def negative_log_likelihood(self, z: Tensor, x: Tensor) -> Tensor:
        """−log p(x | z) of each row."""
        x = x.flatten(1)
        outputs: Tensor = self.net(z)
        log = self.log_std()
        if log is None:
            each = nn.functional.binary_cross_entropy_with_logits(outputs, x, reduction="none")
            return each.sum(dim=1)
        z_score = (x - outputs) * torch.exp(-log)
        return (z_score.square() / 2 + log).sum(dim=1)

    @torch.no_grad()
    def sample(self, rows: int, rng: np.random.Generator) -> Tensor:
        """Inputs of latents drawn from N(0, I)."""
        device = next(self.parameters()).device
        x: Tensor = self.net(normal(rng, device, rows, self.latent))
        log = self.log_std()
        if log is None:
            x = torch.sigmoid(x)
        else:
            x = x + torch.exp(log) * normal(rng, device, rows, self.numbers)
        return x.view(rows, *self.shape)


class VAE(nn.Module):
    """An encoder of its own beside the decoder."""

    def __init__(
        self, latent: int, hidden: Sequence[int], shape: tuple[int, ...], likelihood: Likelihood
    ) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), mlp([prod(shape), *hidden], nn.ReLU))
        self.latent = Latent([prod(shape), *hidden][-1], latent)
        self.decoder = Decoder(latent, hidden[::-1], shape, likelihood)

    def loss(self, x: Tensor, rng: np.random.Generator) -> Tensor:
        """V(x)."""
        return negative_elbo(x, self.latent(self.encoder(x)), self.decoder, rng)


def negative_elbo(
    x: Tensor, latent: tuple[Tensor, Tensor], decoder: Decoder, rng: np.random.Generator
) -> Tensor:
    """V(x), given the latent's mean and log-variance."""
    mean, logvar = latent
    z = mean + torch.exp(logvar / 2) * normal(rng, mean.device, *mean.shape)
    divergence = (mean.square() + logvar.exp() - 1 - logvar).sum(dim=1) / 2
    return (decoder.negative_log_likelihood(z, x) + divergence).mean() / decoder.numbers


def normal(rng: np.random.Generator, device: torch.device, *shape: int) -> Tensor:
    """Standard normal noise from the agent's generator."""
    return to_tensor(rng.standard_normal(shape, dtype=np.float32), device)


class AuxiliaryNetwork(Generic[N]):
    """A network that learns beside the learner, with an optimiser and a copy of its own past."""

    def __init__(self, learner: TorchLearner, lr: float, build: Callable[[], N]) -> None:
        # An address of its own, which published runs have: not the learner's random numbers.
        setup = replace(learner.setup, seed=seed_for(learner.setup.seed, "companion"))
        self.net = network(setup, learner.device, build)
        self.optimizer = Adam(self.net.parameters(), lr or learner.optimizer.lr)
        self.before = FrozenCopy(self.net)

    def descend(self, loss: Tensor) -> None:
        """One step down a loss."""
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def state(self) -> dict[str, Array]:
        """Everything, as arrays."""
        return {
            **pack(self.net, "auxiliary"),
            **self.optimizer.state("auxiliary optimizer"),
            **self.before.state("auxiliary before"),
        }

    def load(self, state: State) -> None:
        """Take over what :meth:`state` gave."""
        unpack(self.net, "auxiliary", state)
        self.optimizer.load("auxiliary optimizer", state)
        self.before.load("auxiliary before", state)


def chosen(strategy: str, learner: TorchLearner, likelihood: Likelihood) -> Likelihood:
    """The likelihood asked for, or that which fits what the learner reads."""
    if likelihood not in ("fitting", "bernoulli", "gaussian"):
        raise SpecError(
            f"{strategy}: likelihood must be fitting, bernoulli or gaussian, got {likelihood!r}"
        )
    return fitting(learner.setup.observation_space) if likelihood == "fitting" else likelihood
