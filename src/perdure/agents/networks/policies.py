"""From network outputs to actions: categorical and Gaussian policies, sampled with numpy."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.spaces import choices_of
from perdure.types import Array


class Policy(nn.Module):
    """A distribution over one action space, given the network's outputs."""

    predicts: Literal["logits", "regression"] = "regression"
    """What the outputs are to strategies: logits of one choice, or real numbers."""

    def __init__(self, outputs: int, row: tuple[int, ...], dtype: type) -> None:
        super().__init__()
        self.outputs = outputs
        """How many numbers it needs from the network."""
        self.row, self.dtype = row, dtype
        """Shape and type of a sampled action, as the learner keeps it."""

    @abstractmethod
    def sample(self, outputs: Tensor, rng: np.random.Generator | None) -> Array:
        """An action for each row; without a generator the most probable one."""

    @abstractmethod
    def to_space(self, sampled: Array) -> Array:
        """Sampled actions as members of the action space."""

    @abstractmethod
    def as_inputs(self, sampled: Array) -> Array:
        """Sampled actions as a network reads them: ``outputs`` numbers a row."""

    @abstractmethod
    def log_prob(self, outputs: Tensor, sampled: Tensor) -> tuple[Tensor, Tensor]:
        """For each row, the log-probability of the sampled action, and the entropy."""

    @abstractmethod
    def terms(self, outputs: Tensor) -> Tensor:
        """All that fixes each row's distribution, learned spreads included."""

    def fisher(self, outputs: Tensor) -> Tensor:
        """The diagonal of the Fisher information about the distribution in real-valued outputs."""
        return torch.ones_like(outputs)

    @abstractmethod
    def scored(self, terms: Tensor, sampled: Tensor) -> Tensor:
        """Each row's log-probability of the sampled action, given its :meth:`terms`."""

    @abstractmethod
    def divergence(self, old: Tensor, new: Tensor) -> Tensor:
        """Kullback and Leibler's D(old ‖ new) of each row, given the :meth:`terms` of both."""


class Categorical(Policy):
    """One of n actions; the outputs are logits."""

    predicts = "logits"

    def __init__(self, space: spaces.Discrete) -> None:
        super().__init__(int(space.n), (), np.int64)
        self.start = int(space.start)

    def sample(self, outputs: Tensor, rng: np.random.Generator | None) -> Array:
        """The largest logit, after Gumbel noise if a generator is given."""
        logits = to_array(outputs)
        if rng is not None:
            logits = logits + rng.gumbel(size=logits.shape)
        best: Array = logits.argmax(axis=1)
        return best

    def to_space(self, sampled: Array) -> Array:
        """Counted from the space's first action."""
        return sampled + self.start if self.start else sampled

    def from_space(self, actions: Array) -> Array:
        """Counted from 0."""
        return np.asarray(actions, np.int64) - self.start

    def as_inputs(self, sampled: Array) -> Array:
        """One-hot."""
        return np.eye(self.outputs, dtype=np.float32)[sampled]

    def log_prob(self, outputs: Tensor, sampled: Tensor) -> tuple[Tensor, Tensor]:
        """Of the chosen logit; and the entropy."""
        logs = torch.log_softmax(outputs, dim=1)
        entropy = -(logs.exp() * logs).sum(dim=1)
        return logs.gather(1, sampled.unsqueeze(1)).squeeze(1), entropy

    def terms(self, outputs: Tensor) -> Tensor:
        """Log-probabilities."""
        return torch.log_softmax(outputs, dim=1)

    def scored(self, terms: Tensor, sampled: Tensor) -> Tensor:
        """Of the chosen one."""
        return terms.gather(1, sampled.unsqueeze(1)).squeeze(1)

    def divergence(self, old: Tensor, new: Tensor) -> Tensor:
        """Σ p (log p − log q)."""
        return (old.exp() * (old - new)).sum(dim=1)


class MultiCategorical(Policy):
    """Several choices at once, each one of its own number of values; the outputs are the logits of
    all of them side by side, and the choices are independent given these.

    To strategies the outputs are real numbers: they are no logits of one class.
    """

    slots: Tensor
    real: Tensor
    kept: Tensor
    firsts: Tensor

    def __init__(self, space: spaces.MultiDiscrete | spaces.MultiBinary) -> None:
        sizes = np.array(choices_of(space))
        super().__init__(int(sizes.sum()), (len(sizes),), np.int64)
        self.shape, self.space_dtype = space.shape, space.dtype
        self.start: Array = np.ravel(getattr(space, "start", 0))
        self.offsets: Array = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        # Choices below each other, filled up to the longest by logits that nothing can choose.
        real = np.arange(sizes.max()) < sizes[:, None]
        places = np.where(real, self.offsets[:, None] + np.arange(sizes.max()), 0)
        self.register_buffer("slots", to_tensor(places, CPU), persistent=False)
        self.register_buffer("real", to_tensor(real, CPU), persistent=False)
        self.register_buffer("kept", to_tensor(np.flatnonzero(real), CPU), persistent=False)
        self.register_buffer("firsts", to_tensor(self.offsets, CPU), persistent=False)

    def sample(self, outputs: Tensor, rng: np.random.Generator | None) -> Array:
        """The largest logit of each choice, after Gumbel noise if a generator is given."""
        logits = to_array(outputs)
        if rng is not None:
            logits = logits + rng.gumbel(size=logits.shape)
        below = np.where(to_array(self.real), logits[:, to_array(self.slots)], -np.inf)
        best: Array = below.argmax(axis=2)
        return best

    def to_space(self, sampled: Array) -> Array:
        """Counted from the space's first values."""
        return (sampled + self.start).reshape(-1, *self.shape).astype(self.space_dtype)

    def from_space(self, actions: Array) -> Array:
        """Counted from 0, side by side."""
        given = np.asarray(actions, np.int64)
        return given.reshape(len(given), -1) - self.start

    def as_inputs(self, sampled: Array) -> Array:
        """A one-hot for each choice, side by side."""
        hot = np.zeros((len(sampled), self.outputs), np.float32)
        np.put_along_axis(hot, sampled + self.offsets, 1.0, axis=1)
        return hot

    def log_prob(self, outputs: Tensor, sampled: Tensor) -> tuple[Tensor, Tensor]:
        """Of all choices together; and the entropy."""
        logs = self.terms(outputs)
        return self.scored(logs, sampled), -(logs.exp() * logs).sum(dim=1)

    def terms(self, outputs: Tensor) -> Tensor:
        """Log-probabilities of every value of every choice."""
        below = outputs[:, self.slots].masked_fill(~self.real, -1e9)
        logs = torch.log_softmax(below, dim=2).flatten(1)
        return logs[:, self.kept]

    def fisher(self, outputs: Tensor) -> Tensor:
        """p (1 − p) of each logit."""
        p = self.terms(outputs).exp()
        return p * (1 - p)

    def scored(self, terms: Tensor, sampled: Tensor) -> Tensor:
        """Of the chosen ones."""
        return terms.gather(1, sampled + self.firsts).sum(dim=1)

    def divergence(self, old: Tensor, new: Tensor) -> Tensor:
        """Σ p (log p − log q)."""
        return (old.exp() * (old - new)).sum(dim=1)


class Gaussian(Policy):
    """Numbers around a mean, with a learned deviation that does not depend on the state.

    The outputs are means in units of the space: 0 is the middle of a bounded range and ±1 its
    ends. A sampled action may lie outside; it is clipped on its way into the space, while learning
    keeps the number that was sampled, so that its probability is right.
    """

    def __init__(self, space: spaces.Box, std: float = 0.5) -> None:
        numbers = int(np.prod(space.shape))
        super().__init__(numbers, (numbers,), np.float32)
        self.low, self.high = space.low.reshape(-1), space.high.reshape(-1)
        self.shape, self.space_dtype = space.shape, space.dtype
        bounded = np.isfinite(self.low) & np.isfinite(self.high)
        low, high = np.where(bounded, self.low, -1.0), np.where(bounded, self.high, 1.0)
        self.middle, self.reach = (high + low) / 2, (high - low) / 2
        self.log_std = nn.Parameter(torch.full((numbers,), math.log(std), device=CPU))

    def sample(self, outputs: Tensor, rng: np.random.Generator | None) -> Array:
        """The mean, with noise if a generator is given."""
        mean = to_array(outputs)
        if rng is None:
            return mean
        std = to_array(self.log_std.detach().exp())
        return (mean + std * rng.standard_normal(mean.shape)).astype(np.float32)

    def to_space(self, sampled: Array) -> Array:
        """Scaled to the space's range and clipped to its bounds."""
        inside: Array = np.clip(self.middle + self.reach * sampled, self.low, self.high)
        return inside.astype(self.space_dtype).reshape(-1, *self.shape)

    def as_inputs(self, sampled: Array) -> Array:
        """The numbers themselves."""
        return sampled

    def log_prob(self, outputs: Tensor, sampled: Tensor) -> tuple[Tensor, Tensor]:
        """Of the unclipped number, in units of the space; and the entropy."""
        z = (sampled - outputs) * torch.exp(-self.log_std)
        constant = self.log_std + 0.5 * math.log(2 * math.pi)
        entropy = (constant + 0.5).sum().expand(len(sampled))
        return -(0.5 * z * z + constant).sum(dim=1), entropy

    def terms(self, outputs: Tensor) -> Tensor:
        """Means and log standard deviations."""
        return torch.cat([outputs, self.log_std.expand_as(outputs)], dim=1)

    def fisher(self, outputs: Tensor) -> Tensor:
        """1/σ² of each mean."""
        return torch.exp(-2 * self.log_std).expand_as(outputs)

    def scored(self, terms: Tensor, sampled: Tensor) -> Tensor:
        """Of the unclipped number."""
        mean, log_std = terms.chunk(2, dim=1)
        z = (sampled - mean) * torch.exp(-log_std)
        return -(0.5 * z * z + log_std + 0.5 * math.log(2 * math.pi)).sum(dim=1)

    def divergence(self, old: Tensor, new: Tensor) -> Tensor:
        """Σ log(τ/σ) + (σ² + (μ − ν)²) / 2τ² − ½, for N(μ, σ) and N(ν, τ)."""
        (mean, log_std), (other, other_std) = old.chunk(2, dim=1), new.chunk(2, dim=1)
        ratio = torch.exp(2 * (log_std - other_std))
        apart = (mean - other).square() * torch.exp(-2 * other_std)
        return (other_std - log_std + (ratio + apart - 1) / 2).sum(dim=1)


def choices_for(space: gymnasium.Space[Any]) -> Categorical | MultiCategorical | None:
    """The policy that chooses among values; None where actions are real numbers."""
    match space:
        case spaces.Discrete():
            return Categorical(space)
        case spaces.MultiDiscrete() | spaces.MultiBinary():
            return MultiCategorical(space)
    return None


def policy_for(space: gymnasium.Space[Any], std: float = 0.5) -> Policy:
    """The policy that acts in this space, of those in :data:`perdure.spaces.POLICIES`; ``std`` is the
    first deviation of a Gaussian."""
    choices = choices_for(space)
    if choices is not None:
        return choices
    assert isinstance(space, spaces.Box)
    return Gaussian(space, std)
