"""A mixture of Gaussians over actions, as LIBERO's and robomimic's policies end in.

For features x, with M modes k and actions of n numbers, shared layers h = MLP(x) give::

    p(a | x) = Σ_k w_k Π_i N(a_i; μ_ki, σ_ki)
    w = softmax(W_w h),   μ = tanh(W_μ h),   σ = softplus(W_σ h) + 1e-4
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.encoders import mlp
from perdure.agents.networks.tensors import to_array
from perdure.types import Array

MIN_STD = 1e-4
"""Added to every deviation, and all there is of it where noise is to be low."""


class GaussianMixtureHead(nn.Module):
    """Features to the numbers that describe a mixture: raw means, raw deviations, logits of the modes."""

    def __init__(
        self, features: int, actions: int, hidden: int = 1024, layers: int = 2, modes: int = 5
    ) -> None:
        super().__init__()
        self.actions, self.modes = actions, modes
        # The last shared layer has no activation, as in the published code.
        self.shared = nn.Sequential(
            mlp([features, *[hidden] * layers], nn.ReLU), nn.Linear(hidden, hidden)
        )
        self.means = nn.Linear(hidden, actions * modes)
        self.deviations = nn.Linear(hidden, actions * modes)
        self.logits = nn.Linear(hidden, modes)

    def forward(self, features: Tensor) -> Tensor:
        """(…, features) to (…, modes · (2 · actions + 1))."""
        h = self.shared(features)
        return torch.cat([self.means(h), self.deviations(h), self.logits(h)], -1)

    def split(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """μ and σ, both (…, modes, actions), and log w, (…, modes)."""
        size = self.actions * self.modes
        means, deviations, logits = torch.split(outputs, [size, size, self.modes], -1)
        shape = (*outputs.shape[:-1], self.modes, self.actions)
        mean = torch.tanh(means).view(shape)
        std = nn.functional.softplus(deviations).view(shape) + MIN_STD
        return mean, std, torch.log_softmax(logits, -1)

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """log p(a), (…)."""
        mean, std, log_weight = self.split(outputs)
        z = (actions.unsqueeze(-2) - mean) / std
        log_density = -(0.5 * z * z + std.log() + 0.5 * math.log(2 * math.pi)).sum(-1)
        return torch.logsumexp(log_weight + log_density, -1)

    def sample(self, outputs: Tensor, rng: np.random.Generator, low_noise: bool = False) -> Array:
        """An action drawn from each mixture, (…, actions): a mode by Gumbel noise on log w, then a
        number around its mean."""
        mean, std, log_weight = (to_array(part) for part in self.split(outputs))
        mode = np.argmax(log_weight + rng.gumbel(size=log_weight.shape), -1)[..., None, None]
        mean = np.take_along_axis(mean, mode, -2)[..., 0, :]
        std = np.take_along_axis(std, mode, -2)[..., 0, :]
        noise = rng.standard_normal(mean.shape)
        drawn: Array = mean + (MIN_STD if low_noise else std) * noise
        return drawn.astype(np.float32)
