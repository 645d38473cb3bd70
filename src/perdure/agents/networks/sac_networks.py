"""The networks of soft actor-critic: policy, two critics, temperatures; convolutions for images."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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


class ParameterStack(nn.Module):
    """The parameters of ``copies`` networks of the same shape, in the order in which they are computed with,
    so that others can be put in their place: those of the target critics."""

    def __init__(self, copies: int) -> None:
        super().__init__()
        self.copies = copies
        self.stack = nn.ParameterList()

    def add(self, start: Tensor) -> None:
        """One more parameter."""
        self.stack.append(nn.Parameter(start))

    def add_linear(self, a: int, b: int, beside: int = 1) -> None:
        """Weights and biases of ``beside`` linear layers in each network, which start as torch's do."""
        bound = 1 / math.sqrt(a)
        for rows in (a, 1):
            start = torch.empty(self.copies * beside, rows, b, device=CPU)
            self.add(start.uniform_(-bound, bound))

    def reader(self, parameters: Sequence[Tensor] | None) -> Iterator[Tensor]:
        """The parameters one by one, or others in their place."""
        return iter(list(self.stack) if parameters is None else parameters)


def linear(x: Tensor, read: Iterator[Tensor]) -> Tensor:
    """(copies, rows, inputs) to (copies, rows, outputs) by the next weights and biases."""
    weight, bias = next(read), next(read)
    return torch.baddbmm(bias, x, weight)


class SoftNetworks(nn.Module):
    """A policy, two critics, and a temperature for each task. Where there are images, the convolutions
    that all of them share come first: ``obs`` below are their features."""

    actor: nn.Module
    critics: nn.Module

    def __init__(
        self,
        actor: nn.Module,
        encoder: nn.Module | None,
        critics: nn.Module,
        tasks: int,
        alpha: float,
    ) -> None:
        super().__init__()
        self.actor = actor
        # Beside the critics: both are followed by targets, and so lie together in the optimiser.
        self.encoder = encoder
        self.critics = critics
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
        mean, log_std = self.actor(obs, task)[0].chunk(2, dim=1)
        return mean, log_std.clamp(*LOG_STD)

    def gaussians(self, obs: Tensor, task: Tensor) -> Tensor:
        """The same of every head, (rows, heads, 2 × actions)."""
        return torch.cat(self.gaussian(obs, task), 1).unsqueeze(1)

    def values(
        self, obs: Tensor, actions: Tensor, task: Tensor, parameters: Sequence[Tensor] | None = None
    ) -> Tensor:
        """What both critics say, (2, rows)."""
        out: Tensor = self.critics(torch.cat([obs, actions], 1), task, parameters)
        return out.squeeze(2)

    def head_parameters(self) -> Mapping[str, int]:
        """See :meth:`~perdure.agents.networks.learner.TorchLearner.head_parameters`."""
        return {}


class SACNetworks(SoftNetworks):
    """Networks of linear layers, with one head or a head for each task. ``more`` numbers of the learner's
    own lie behind the features."""

    actor: Layers
    critics: Layers

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
        encoder, width = image_encoder(inputs)
        width += more
        actor = Layers([width, *hidden, 2 * actions * heads], 1)
        critics = Layers([width + actions, *hidden, heads], 2)
        super().__init__(actor, encoder, critics, tasks, alpha)
        self.heads, self.actions = heads, actions

    def gaussian(self, obs: Tensor, task: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self.pick(self.gaussians(obs, task), task).chunk(2, dim=1)
        return mean, log_std

    def gaussians(self, obs: Tensor, task: Tensor) -> Tensor:
        mean, log_std = self.actor(obs)[0].view(len(obs), self.heads, -1).chunk(2, dim=2)
        return torch.cat([mean, log_std.clamp(*LOG_STD)], 2)

    def values(
        self, obs: Tensor, actions: Tensor, task: Tensor, parameters: Sequence[Tensor] | None = None
    ) -> Tensor:
        out: Tensor = self.critics(torch.cat([obs, actions], 1), parameters)
        if self.heads > 1:
            out = out.gather(2, task.expand(2, -1).unsqueeze(2))
        return out.squeeze(2)

    def pick(self, out: Tensor, task: Tensor) -> Tensor:
        """Each row's own head."""
        return (
            out[:, 0] if self.heads == 1 else out[torch.arange(len(out), device=out.device), task]
        )

    def head_parameters(self) -> Mapping[str, int]:
        last = len(self.actor.weights) - 1
        names = (f"actor.weights.{last}", f"actor.biases.{last}") if self.heads > 1 else ()
        return dict.fromkeys(names, 2)


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
    net: SoftNetworks,
    batch: Mapping[str, Tensor],
    seen: SeenFeatures,
    noise: tuple[Tensor, Tensor],
    alpha: Tensor,
    gamma: float,
    targets: Sequence[Tensor],
    weigh: Callable[[Tensor], Tensor] = lambda rows: rows,
) -> SoftLosses:
    """The losses on a minibatch of ``actions``, ``rewards`` and ``alive``. ``noise`` is that of the actions
    now and then, ``targets`` are the target critics' parameters, ``weigh`` gives rows another weight.

    The critics judge the policy and are not moved by it; nor is what made the features.
    """
    with torch.no_grad():
        after, log_after = net.policy(seen.following, seen.task, noise[1])
        future = net.values(seen.judged, after, seen.task, targets).amin(0) - alpha * log_after
        goal = batch["rewards"] + gamma * batch["alive"] * future
    values = net.values(seen.obs, batch["actions"], seen.task)
    critic = weigh((values - goal).square()).mean(1).sum()
    obs = seen.obs.detach()
    chosen, log_prob = net.policy(obs, seen.task, noise[0])
    fixed = [p.detach() for p in net.critics.parameters()]
    worth = net.values(obs, chosen, seen.task, fixed).amin(0)
    return SoftLosses(critic, weigh(alpha * log_prob - worth).mean(), values, log_prob)


def followed_by_targets(net: SoftNetworks) -> slice:
    """Where in the flat vector of all parameters those lie that targets follow."""
    start, found = 0, []
    for name, p in net.named_parameters():
        if name.startswith(("encoder.", "critics.")):
            found.append(slice(start, start + p.numel()))
        start += p.numel()
    return slice(found[0].start, found[-1].stop)
