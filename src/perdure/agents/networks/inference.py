"""Networks that read a task beside the observation, and infer it from what was seen of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from perdure.agents.networks.encoders import mlp
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.sac_networks import SACNetworks

LEAST_VARIANCE = 1e-7


def product_of_gaussians(means: Tensor, variances: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of ∏ N(μ_i, σ_i²) over the factors that the mask names: (rows, factors,
    numbers) to (rows, numbers). The standard normal where there are none."""
    precisions = mask.unsqueeze(2) / variances.clamp(min=LEAST_VARIANCE)
    total = precisions.sum(1)
    none = ~mask.any(1, keepdim=True)
    variance = 1 / torch.where(none, 1.0, total)
    return variance * (precisions * means).sum(1), variance


class InferenceNetworks(nn.Module):
    """The networks of soft actor-critic, which read the task beside the observation, and an encoder
    that makes of each step a factor of what is believed of the task."""

    def __init__(
        self,
        inputs: Inputs,
        actions: int,
        hidden: Sequence[int],
        encoder: Sequence[int],
        row: int,
        latent: int,
        alpha: float,
    ) -> None:
        super().__init__()
        # First, so that the critics lie where their targets expect them.
        self.soft = SACNetworks(inputs, actions, hidden, 1, 1, alpha, latent)
        self.encoder = nn.Sequential(
            mlp([row, *encoder], nn.ReLU), nn.Linear(encoder[-1], 2 * latent)
        )

    def posterior(self, context: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """What is believed of the task after some steps: (rows, steps, numbers) to a mean and a
        variance."""
        means, spread = self.encoder(context).chunk(2, dim=2)
        return product_of_gaussians(means, nn.functional.softplus(spread), mask)
