"""PPO, A2C and whatever else fills a rollout buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import obs_as_tensor

from perdure.agents.adapters.sb3.host import Host, StepOutcome, assign, deep, flat, joined, rows
from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.types import Array


class _Step(NamedTuple):
    slots: Array
    obs: Any
    actions: Array
    rewards: Array
    starts: Array
    values: Array
    log_probs: Array


class OnPolicy(Host):
    """PPO, A2C and whatever else fills a rollout buffer."""

    model: OnPolicyAlgorithm

    def __init__(self, model: Any, total: int | None, flush: bool) -> None:
        super().__init__(model, total)
        self.full: int = model.n_steps * self.n
        # A few rows left over make a poor update: fewer than a minibatch wait for the next task.
        self.least = min(int(getattr(model, "batch_size", self.full)), self.full)
        self.flush = flush
        self.steps: list[_Step] = []
        self.rows = 0
        # From the environment, because images come as transposed views, and convolutions round by
        # how their input lies in memory.
        self.tail: Any = model.env.reset()
        self._chosen: Any = None

    def act(self, obs: Any, slots: Array, episode_start: Array) -> Array:
        model, policy = self.model, self.model.policy
        self._cut(slots[episode_start & self.open[slots]])
        if not self.steps:
            policy.set_training_mode(False)
        for _ in range(self._noise_due(len(self.steps))):
            policy.reset_noise(self.n)
        with torch.no_grad():
            drawn, values, log_probs = policy(obs_as_tensor(obs, model.device))
        actions = to_array(drawn)
        self._chosen = (
            obs,
            actions,
            episode_start.copy(),
            to_array(values),
            to_array(log_probs),
        )
        if isinstance(model.action_space, spaces.Box):
            if policy.squash_output:
                return policy.unscale_action(actions)
            return np.clip(actions, model.action_space.low, model.action_space.high)
        return actions

    def take(self, slots: Array, outcome: StepOutcome) -> bool:
        model = self.model
        obs, actions, starts, values, log_probs = self._chosen
        model.num_timesteps += len(slots)
        if isinstance(model.action_space, spaces.Discrete):
            actions = actions.reshape(-1, 1)
        rewards = outcome.rewards.copy()
        for i in np.flatnonzero(outcome.timeouts):
            # One by one, because a batch of several rounds differently.
            final = model.policy.obs_to_tensor(rows(outcome.next_obs, i))[0]
            rewards[i] += self._discounted(final)[0]
        self.steps.append(_Step(slots, obs, actions, rewards, starts, values, log_probs))
        self.rows += len(slots)
        self.open[slots] = ~outcome.dones
        assign(self.tail, slots, outcome.next_obs)
        return self.rows >= self.full

    def _discounted(self, obs: Any) -> Array:
        with torch.no_grad():
            values = self.model.policy.predict_values(obs)
        return to_array(self.model.gamma * values).reshape(-1)

    def _cut(self, slots: Array) -> None:
        """Close these slots' trajectories: the value of what would come next is their last
        reward's."""
        if not len(slots):
            return
        worth = self._discounted(obs_as_tensor(rows(self.tail, slots), self.model.device))
        for slot, value in zip(slots, worth, strict=True):
            for step in reversed(self.steps):
                row = np.flatnonzero(step.slots == slot)
                if len(row):
                    step.rewards[row[0]] += value
                    break
        self.open[slots] = False

    def pause(self) -> bool:
        # What goes on is cut by training, or by the fresh episode that takes its slot.
        return self.flush and self.rows >= self.least

    def train(self) -> None:
        model = self.model
        if len(self.steps) == model.n_steps and self.rows == self.full:
            buffer = model.rollout_buffer
            buffer.reset()
            for s in self.steps:
                self._add(buffer, s)
            with torch.no_grad():
                last = model.policy.predict_values(obs_as_tensor(self.tail, model.device))
            buffer.compute_returns_and_advantage(last_values=last, dones=~self.open)
            self._train()
        else:
            usual = model.rollout_buffer
            model.rollout_buffer = self._column()
            self._train()
            model.rollout_buffer = usual
        self.steps, self.rows = [], 0

    def _train(self) -> None:
        self._progress()
        self.model.train()

    @staticmethod
    def _add(buffer: Any, s: _Step) -> None:
        values, log_probs = to_tensor(s.values, CPU), to_tensor(s.log_probs, CPU)
        buffer.add(s.obs, s.actions, s.rewards, s.starts, values, log_probs)

    def _column(self) -> Any:
        """The rollout as one environment's: trajectory after trajectory."""
        going_on = self.open.copy()
        self._cut(np.flatnonzero(self.open))
        self.open = going_on
        model = self.model
        assert model.rollout_buffer_class is not None
        buffer = model.rollout_buffer_class(
            self.rows,
            model.observation_space,
            model.action_space,
            device=model.device,
            gamma=model.gamma,
            gae_lambda=model.gae_lambda,
            n_envs=1,
            **model.rollout_buffer_kwargs,
        )
        long = joined(self.steps)
        order = np.argsort(long.slots, kind="stable")
        slots = long.slots[order]
        long.starts[order[np.flatnonzero(np.diff(slots, prepend=-1))]] = True
        for i in order[:, None]:
            self._add(buffer, _Step(*(rows(part, i) for part in long)))
        buffer.compute_returns_and_advantage(torch.zeros(1, device=CPU), np.ones(1, bool))
        return buffer

    def state(self) -> dict[str, Array]:
        out = {"open": self.open.copy(), **flat("tail", self.tail)}
        if self.steps:
            out["sizes"] = np.array([len(s.slots) for s in self.steps])
            for name, part in joined(self.steps)._asdict().items():
                out |= flat(name, part)
        return out

    def load(self, state: Mapping[str, Array]) -> None:
        self.open = np.array(state["open"], bool)
        assign(self.tail, slice(None), deep("tail", state))
        self.steps, self.rows = [], 0
        self.model.policy.set_training_mode(False)
        if "sizes" in state:
            parts = [deep(name, state) for name in _Step._fields]
            ends = np.cumsum(state["sizes"])
            for a, b in zip(ends - state["sizes"], ends, strict=True):
                self.steps.append(_Step(*(rows(p, slice(a, b)) for p in parts)))
            self.rows = int(ends[-1])
