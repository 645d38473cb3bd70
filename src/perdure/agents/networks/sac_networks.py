"""The networks of soft actor-critic: policy, two critics, temperatures; convolutions for images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from perdure.agents.networks.encoders import image_encoder
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.tensors import CPU

LOG_STD = (-20.0, 2.0)


class Layers(nn.Module):
    """A stack of ``copies`` networks of the same shape, computed together.

    They start as torch's linear layers do. With the wider start of Meta-World+ (He-uniform, last
    layers near zero) drawer-close was learned later with every seed that was tried.
    """

    def __init__(self, sizes: Sequence[int], copies: int) -> None:
        super().__init__()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        self.layer_norm = False
        for a, b in pairwise(sizes):
            bound = 1 / math.sqrt(a)
            for kind, rows in ((self.weights, a), (self.biases, 1)):
                start = torch.empty(copies, rows, b, device=CPU).uniform_(-bound, bound)
                kind.append(nn.Parameter(start))

    def forward(self, x: Tensor, parameters: Sequence[Tensor] | None = None) -> Tensor:
        """(rows, inputs) to (copies, rows, outputs), by other parameters where they are given."""
        p = [*self.weights, *self.biases] if parameters is None else parameters
        depth = len(self.weights)
        h = x.unsqueeze(0).expand(p[0].shape[0], -1, -1)
        for k in range(depth - 1):
            h = torch.baddbmm(p[depth + k], h, p[k])
            if self.layer_norm:
                h = nn.functional.layer_norm(h, h.shape[2:])
            h = torch.relu_(h)
        # A batched product with one column takes the CPU as long as ten plain ones.
        last = zip(p[2 * depth - 1], h, p[depth - 1], strict=True)
        return torch.stack([torch.addmm(bias, rows, weight) for bias, rows, weight in last])


class ActorCritic(nn.Module):
    """The policy, two critics, and a temperature for each task. Where there are images, the
    convolutions that all of them share come first: ``obs`` below are their features, with ``more``
    numbers of the learner's own behind them."""

    def __init__(
        self,
        inputs: Inputs,
        actions: int,
        hidden: Sequence[int],
        heads: int,
        tasks: int,
        alpha: float,
        more: int = 0,
    ) -> None:
        super().__init__()
        self.heads, self.actions = heads, actions
        encoder, width = image_encoder(inputs)
        width += more
        self.actor = Layers([width, *hidden, 2 * actions * heads], 1)
        # Beside the critics: both are followed by targets, and so lie together in the optimiser.
        self.encoder = encoder
        self.critics = Layers([width + actions, *hidden, heads], 2)
        self.log_alpha = nn.Parameter(torch.full((tasks,), math.log(alpha), device=CPU))

    def features(self, obs: Tensor) -> Tensor:
        """What policy and critics read of the observations."""
        if self.encoder is None:
            return obs
        found: Tensor = self.encoder(obs)
        return found

    def policy(self, obs: Tensor, task: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions in (−1, 1) and their log-probabilities."""
        mean, log_std = self.gaussian(obs, task)
        raw = mean + log_std.exp() * noise
        gauss = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
        # log(1 − tanh²) in a form that does not lose its digits where tanh is near 1.
        squash = 2 * (math.log(2) - raw - nn.functional.softplus(-2 * raw))
        return torch.tanh(raw), (gauss - squash).sum(1)

    def gaussian(self, obs: Tensor, task: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation before the squashing."""
        mean, log_std = self.pick(self.gaussians(obs), task).chunk(2, dim=1)
        return mean, log_std

    def gaussians(self, obs: Tensor) -> Tensor:
        """Means and log standard deviations of every head, (rows, heads, 2 × actions)."""
        mean, log_std = self.actor(obs)[0].view(len(obs), self.heads, -1).chunk(2, dim=2)
        return torch.cat([mean, log_std.clamp(*LOG_STD)], 2)

    def values(
        self, obs: Tensor, actions: Tensor, task: Tensor, parameters: Sequence[Tensor] | None = None
    ) -> Tensor:
        """What both critics say, (2, rows)."""
        out: Tensor = self.critics(torch.cat([obs, actions], 1), parameters)
        if self.heads > 1:
            out = out.gather(2, task.expand(2, -1).unsqueeze(2))
        return out.squeeze(2)

    def pick(self, out: Tensor, task: Tensor) -> Tensor:
        """Each row's own head."""
        return (
            out[:, 0] if self.heads == 1 else out[torch.arange(len(out), device=out.device), task]
        )


class SeenFeatures(NamedTuple):
    """What policy and critics read of a minibatch: features, and the tasks they are of."""

    obs: Tensor
    following: Tensor
    """Of the observation after it, for the policy."""
    judged: Tensor
    """The same for the target critics."""
    task: Tensor


class SoftLosses(NamedTuple):
    """The losses of critics and policy, the critics' values and the policy's log-probabilities."""

    critic: Tensor
    actor: Tensor
    values: Tensor
    log_prob: Tensor


def soft_losses(
    net: ActorCritic,
    batch: Mapping[str, Tensor],
    seen: SeenFeatures,
    noise: tuple[Tensor, Tensor],
    alpha: Tensor,
    gamma: float,
    targets: Sequence[Tensor],
) -> SoftLosses:
    """The losses on a minibatch of ``actions``, ``rewards`` and ``alive``. ``noise`` is that of the actions
    now and then, ``targets`` are the target critics' parameters.

    The critics judge the policy and are not moved by it; nor is what made the features.
    """
    with torch.no_grad():
        after, log_after = net.policy(seen.following, seen.task, noise[1])
        future = net.values(seen.judged, after, seen.task, targets).amin(0) - alpha * log_after
        goal = batch["rewards"] + gamma * batch["alive"] * future
    values = net.values(seen.obs, batch["actions"], seen.task)
    critic = (values - goal).square().mean(1).sum()
    obs = seen.obs.detach()
    chosen, log_prob = net.policy(obs, seen.task, noise[0])
    fixed = [p.detach() for p in (*net.critics.weights, *net.critics.biases)]
    worth = net.values(obs, chosen, seen.task, fixed).amin(0)
    return SoftLosses(critic, (alpha * log_prob - worth).mean(), values, log_prob)


def followed_by_targets(net: ActorCritic) -> slice:
    """Where in the flat vector of all parameters those lie that targets follow."""
    start, found = 0, []
    for name, p in net.named_parameters():
        if name.startswith(("encoder.", "critics.")):
            found.append(slice(start, start + p.numel()))
        start += p.numel()
    return slice(found[0].start, found[-1].stop)
