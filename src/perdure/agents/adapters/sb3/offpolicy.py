"""DQN, SAC, TD3, DDPG and whatever else fills a replay buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import TrainFreq
from stable_baselines3.common.utils import should_collect_more_steps

from perdure.agents.adapters.sb3.host import Host, StepOutcome, deep, flat, joined, rows
from perdure.agents.adapters.sb3.state import ReplayChunks, pack_replay, unpack_replay
from perdure.types import Array


class _Waiting(NamedTuple):
    obs: Any
    next_obs: Any
    actions: Array
    rewards: Array
    dones: Array
    timeouts: Array


class OffPolicy(Host):
    """DQN, SAC, TD3, DDPG and whatever else fills a replay buffer."""

    model: OffPolicyAlgorithm

    def __init__(self, model: Any, total: int | None) -> None:
        super().__init__(model, total)
        self.waiting: list[_Waiting] = []
        """Single transitions of steps that not all slots took."""
        self.collected = np.zeros(3, np.int64)
        """Vector steps, episodes and transitions since the last training."""
        self.joined = False
        """Whether the buffer's last row is the last step of all slots."""
        self.gradient_steps = 0
        self._chosen: Any = None
        self._chunks = ReplayChunks()

    def act(self, obs: Any, slots: Array, episode_start: Array) -> Array:
        model: Any = self.model
        if self.collected[0] == 0:
            model.policy.set_training_mode(False)
        for _ in range(self._noise_due(int(self.collected[0]))):
            model.actor.reset_noise(self.n)
        model._last_obs = obs
        noise = model.action_noise
        if noise is not None and len(slots) < self.n:
            everyone = noise

            def noise() -> Array:
                return np.stack([everyone.noises[s]() for s in slots])

        actions, stored = model._sample_action(model.learning_starts, noise, len(slots))
        self._chosen = stored
        chosen: Array = actions
        return chosen

    def take(self, slots: Array, outcome: StepOutcome) -> bool:
        model: Any = self.model
        rewards, dones, timeouts, next_obs = outcome
        model.num_timesteps += len(slots)
        if len(slots) == self.n:
            infos = [{"TimeLimit.truncated": bool(t)} for t in timeouts]
            model._store_transition(
                model.replay_buffer, self._chosen, next_obs, rewards, dones, infos
            )
            self.joined = True
        else:
            self._wait(outcome)
        self.open[slots] = ~dones
        self._progress()
        model._on_step()
        for slot in slots[dones]:
            model._episode_num += 1
            self._reset_noise(int(slot))
        self.collected += (1, int(dones.sum()), len(slots))
        assert isinstance(model.train_freq, TrainFreq)
        steps, episodes, transitions = (int(c) for c in self.collected)
        if should_collect_more_steps(model.train_freq, steps, episodes):
            return False
        self.collected[:] = 0
        self.gradient_steps = model.gradient_steps if model.gradient_steps >= 0 else transitions
        ready = model.num_timesteps > model.learning_starts and model.replay_buffer.size() > 0
        return bool(ready and self.gradient_steps > 0)

    def _reset_noise(self, slot: int) -> None:
        noise: Any = self.model.action_noise
        if noise is not None:
            noise.reset(**({"indices": [slot]} if self.n > 1 else {}))

    def _wait(self, outcome: StepOutcome) -> None:
        """Keep transitions until there is one for every column of the buffer."""
        model: Any = self.model
        buffer = model.replay_buffer
        self._cut()
        rewards, dones, timeouts, next_obs = outcome
        if buffer.handle_timeout_termination:
            # What stands below in the column will not be what came next.
            timeouts = timeouts | ~dones
            dones = np.ones_like(dones)
        step = _Waiting(model._last_obs, next_obs, self._chosen, rewards, dones, timeouts)
        self.waiting += [
            _Waiting(*(rows(part, slice(i, i + 1)) for part in step)) for i in range(len(dones))
        ]
        while len(self.waiting) >= self.n:
            row = joined(self.waiting[: self.n])
            infos = [{"TimeLimit.truncated": bool(t)} for t in row.timeouts]
            buffer.add(row.obs, row.next_obs, row.actions, row.rewards, row.dones, infos)
            self.waiting = self.waiting[self.n :]

    def _cut(self) -> None:
        """Mark the ends of trajectories that the buffer's next row will not go on with."""
        if not self.joined:
            return
        buffer: Any = self.model.replay_buffer
        last = buffer.pos - 1
        if buffer.handle_timeout_termination:
            buffer.timeouts[last, self.open] = 1.0
            buffer.dones[last, self.open] = 1.0
        elif buffer.optimize_memory_usage:
            # Its next observation is about to be overwritten, so nothing can follow; this is
            # what Stable-Baselines3 does itself where learn() begins anew.
            buffer.dones[last, self.open] = 1.0
        self.joined = False

    def pause(self) -> bool:
        self._cut()
        for slot in np.flatnonzero(self.open):
            self._reset_noise(int(slot))
        self.open[:] = False
        return False

    def train(self) -> None:
        model = self.model
        model.train(batch_size=model.batch_size, gradient_steps=self.gradient_steps)

    def state(self) -> dict[str, Any]:
        assert self.model.replay_buffer is not None
        replay = pack_replay(self.model.replay_buffer, self._chunks)
        out = {f"replay/{k}": v for k, v in replay.items()}
        out |= {
            "open": self.open.copy(),
            "collected": self.collected.copy(),
            "joined": np.array(self.joined),
        }
        if self.waiting:
            for name, part in joined(self.waiting)._asdict().items():
                out |= flat(f"waiting/{name}", part)
        return out

    def load(self, state: Mapping[str, Array]) -> None:
        assert self.model.replay_buffer is not None
        replay = {k[7:]: v for k, v in state.items() if k.startswith("replay/")}
        unpack_replay(self.model.replay_buffer, replay)
        self.open = np.array(state["open"], bool)
        self.collected = np.array(state["collected"], np.int64)
        self.joined = bool(state["joined"])
        self.model.policy.set_training_mode(False)
        self.waiting = []
        if "waiting/dones" in state:
            parts = [deep(f"waiting/{name}", state) for name in _Waiting._fields]
            for i in range(len(state["waiting/dones"])):
                self.waiting.append(_Waiting(*(rows(p, slice(i, i + 1)) for p in parts)))
