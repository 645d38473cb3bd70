"""Stable-Baselines3's two families of algorithms, driven from outside.

``learn()`` of Stable-Baselines3 owns the environment. Here the same steps are taken in the same
order by two calls, :meth:`act` and :meth:`take`, with the library's own policies, buffers,
exploration and ``train()``; so a model can be written down between any two steps. As long as all
slots are active, a model ends bit-equal to ``learn()``.

Two things ``learn()`` never meets are decided here:

- *A trajectory is cut* when its exposure ends in mid-episode. On-policy, the value of its next
  observation is added to its last reward, as Stable-Baselines3 does for time limits. Off-policy,
  its last transition is marked as truncated, which the value target sees through.
- *Some slots are idle* when their budget is used up, or in blocks narrower than the widest of the
  curriculum, but the buffers take only steps of all environments at once. On-policy, a rollout
  with such steps is trained on as one long column of the same number of rows, trajectory after
  trajectory, each closed as above. Off-policy, the rows wait until there are as many as slots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from perdure.types import Array


class StepOutcome(NamedTuple):
    """What a vector step of the active slots led to, in Stable-Baselines3's own types."""

    rewards: Array
    dones: Array
    timeouts: Array
    next_obs: Any


class Host(ABC):
    """One model, driven step by step."""

    def __init__(self, model: Any, total: int | None) -> None:
        self.model = model
        self.total = total
        self.n: int = model.n_envs
        self.open: Array = np.zeros(self.n, bool)
        """Slots whose trajectory goes on after the last step."""

    @abstractmethod
    def act(self, obs: Any, slots: Array, episode_start: Array) -> Array:
        """Exploring actions for the active slots."""

    @abstractmethod
    def take(self, slots: Array, outcome: StepOutcome) -> bool:
        """Store what the actions led to; True if it is time to train."""

    @abstractmethod
    def pause(self) -> bool:
        """The exposure is over, whatever goes on. True if it is time to train."""

    @abstractmethod
    def train(self) -> None:
        """Learn from what was stored."""

    @abstractmethod
    def state(self) -> dict[str, Array]:
        """What was stored, as arrays."""

    @abstractmethod
    def load(self, state: Mapping[str, Array]) -> None:
        """Take over what :meth:`state` gave."""

    def _noise_due(self, step: int) -> int:
        """How often gSDE's noise is drawn anew before this step of a rollout: like
        Stable-Baselines3, at its start and every so many steps, and then twice at the start."""
        if not self.model.use_sde:
            return 0
        every = self.model.sde_sample_freq
        return int(step == 0) + int(every > 0 and step % every == 0)

    def _progress(self) -> None:
        """Schedules move only if it is known where they end, and stay at their end."""
        if self.total is not None:
            steps = min(self.model.num_timesteps, self.total)
            self.model._update_current_progress_remaining(steps, self.total)


# Observations are arrays, or dicts of arrays; so these treat both.


def rows(part: Any, index: Any) -> Any:
    """These rows of a batch."""
    if isinstance(part, dict):
        return {k: v[index] for k, v in part.items()}
    return part[index]


def assign(part: Any, index: Any, values: Any) -> None:
    """Write these rows of a batch."""
    for mine, new in zip(_leaves(part), _leaves(values), strict=True):
        mine[index] = new


def _leaves(part: Any) -> list[Array]:
    return [part[k] for k in sorted(part)] if isinstance(part, dict) else [part]


def joined(steps: list[Any]) -> Any:
    """Named tuples of batches, one after the other in one."""

    def join(parts: list[Any]) -> Any:
        if isinstance(parts[0], dict):
            return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
        return np.concatenate(parts)

    return type(steps[0])(*(join(list(parts)) for parts in zip(*steps, strict=True)))


def flat(name: str, part: Any) -> dict[str, Array]:
    """A batch under a name in a state."""
    if isinstance(part, dict):
        return {f"{name}/{k}": v.copy() for k, v in part.items()}
    return {name: part.copy()}


def deep(name: str, state: Mapping[str, Array]) -> Any:
    """The batch that :func:`flat` put there."""
    if name in state:
        return np.array(state[name])
    return {k[len(name) + 1 :]: np.array(v) for k, v in state.items() if k.startswith(f"{name}/")}
