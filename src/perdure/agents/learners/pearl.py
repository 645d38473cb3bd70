"""PEARL: soft actor-critic given a task that is inferred from what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from perdure.agents.networks.checks import check_ranges, transitions_of
from perdure.agents.networks.encoders import check_widths
from perdure.agents.networks.inference import InferenceNetworks
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import Minibatch, TorchLearner, network, new_rows
from perdure.agents.networks.sac_networks import SeenFeatures, followed_by_targets, soft_losses
from perdure.agents.networks.settings import Ranges, TorchSettings
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.agents.networks.trial_replay import TrialReplay
from perdure.spaces import BOUNDED, FLAT
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Measures, Setup, State, Transitions


@dataclass(frozen=True, kw_only=True)
class PEARLSettings(TorchSettings):
    """See :class:`PEARLAgent`."""

    agent = "pearl"
    ranges: ClassVar[Ranges] = {
        **TorchSettings.ranges,
        "gamma": (0, 1),
        "tau": (0, 1),
        "tasks": (1, inf),
        "batch": (1, inf),
        "context": (1, inf),
        "embedding": (1, inf),
        "kl": (0, inf),
        "rate": (0, inf),
        "start": (0, inf),
        "alpha": (1e-8, inf),
    }

    lr: float = 3e-4
    gamma: float = 0.99
    tau: float = 0.005
    tasks: int = 16
    batch: int = 256
    context: int = 64
    embedding: int = 7
    kl: float = 0.1
    rate: float = 10 / 12
    start: int = 4000
    replay: int = 1_000_000
    reward_scale: float = 10.0
    alpha: float = 1.0
    learn_alpha: bool = False
    next_obs: bool = False
    hidden: Sequence[int] = (300, 300, 300)
    encoder: Sequence[int] = (200, 200, 200)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_widths(self.encoder)


class PEARLAgent(TorchLearner):
    """Probabilistic embeddings for actor-critic reinforcement learning (Rakelly et al., 2019).

    What is believed of the task is a Gaussian of ``embedding`` numbers, z: the product of a factor for each
    step that was seen, which an encoder makes of observation, action and reward, and of the
    observation after it if ``next_obs``. Policy and critics read a sample of z. It is drawn when an
    episode begins, the first one of a trial from the standard normal, and stays through the episode.

    A task is a trial: that its episodes are of one task is all that the agent has to be told, so
    no ids are needed. The replay keeps trials, ``replay`` rows in all. A minibatch is ``batch`` rows of each
    of ``tasks`` trials, with what was known at some moment of each, ``context`` steps at most. The encoder
    learns from the loss of the critics and from ``kl`` times the divergence of z from the standard
    normal, summed over the minibatch's trials.

    ``rate`` is the number of minibatches for each step of the environment, after ``start`` random steps.
    In adapt blocks nothing but the belief changes; evaluation after it is by the mean of z and the most
    probable action.

    The defaults are those of Meta-World's paper, with garage's where it gives none, but for these: the
    critics have targets of their own in place of a value network; ``start`` and ``replay`` are of all tasks together,
    not of each; and contexts are drawn from all that was seen of a trial, also when it acts: what is believed then,
    at test too, is of ``context`` of the trial's steps (64), where the paper's reads all of them. Critics learn rewards times
    ``reward_scale``; that stands for the temperature, ``alpha``, unless ``learn_alpha`` learns it, as newer
    versions of SAC do. Preset: ``quick`` learns the toy families in minutes.
    """

    learns_from = ("environments",)
    needs_rewards = True
    reads, acts_in = FLAT, BOUNDED
    sequences = True
    memory_scope = "trial"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "lr": 3e-3,
            "gamma": 0.9,
            "tau": 0.02,
            "tasks": 8,
            "batch": 32,
            "rate": 0.25,
            "start": 1000,
            "replay": 100_000,
            "embedding": 5,
            "hidden": (64, 64),
            "encoder": (64, 64),
            "kl": 1e-4,
            "reward_scale": 1.0,
            "learn_alpha": True,
        },
    }
    non_policy_parameters = ("soft.log_alpha",)
    net: InferenceNetworks

    @takes_fields(PEARLSettings)
    def __init__(self, setup: Setup, settings: PEARLSettings) -> None:
        super().__init__(setup, **settings.shared)
        s = self.settings = settings
        check_ranges("pearl", replay=(s.replay, setup.slots, inf))
        space = setup.action_space
        assert isinstance(space, spaces.Box)
        self.inputs = Inputs(setup.observation_space, self.device)
        self.low, self.high = space.low.reshape(-1), space.high.reshape(-1)
        self.shape, self.dtype = space.shape, space.dtype
        actions, width = len(self.low), self.inputs.shape[0]
        row = (2 if s.next_obs else 1) * width + actions + 1
        self.net = network(
            setup,
            self.device,
            lambda: InferenceNetworks(
                self.inputs, actions, s.hidden, s.encoder, row, s.embedding, s.alpha
            ),
            s.layer_norm,
        )
        self.optimizer, self.max_grad = s.make_optimizer(self.net.parameters()), s.max_grad
        self.followed = followed_by_targets(self.net.soft)
        self.target: Tensor = self.optimizer.weights[self.followed].clone()
        """What the critics were a while ago."""
        sizes = [p.numel() for p in self._critics()]
        parts = torch.split(self.target, sizes)
        self.target_critics = [t.view_as(p) for t, p in zip(parts, self._critics(), strict=True)]
        self.entropy = -float(actions)
        columns = {
            **self.inputs.columns("obs"),
            **self.inputs.columns("next_obs"),
            "actions": ((actions,), np.float32),
            "rewards": ((), np.float32),
            "terminated": ((), np.bool_),
        }
        self.replay = TrialReplay(s.replay, columns, setup.slots)
        self.steps = 0
        self.context: Array = np.zeros((setup.slots, s.context, row), np.float32)
        """For each slot: steps of the trial, a random choice of them where there are more."""
        self.seen: Array = np.zeros(setup.slots, np.int64)
        """For each slot: how many steps the trial has had."""
        self.z: Array = np.zeros((setup.slots, s.embedding), np.float32)

    def _critics(self) -> list[nn.Parameter]:
        return list(self.net.soft.critics.parameters())

    # Memory: what was seen of the trial, and what is believed of it in this episode.

    def reset_memory(self, slots: Array) -> None:
        self.seen[slots] = 0

    def memory(self) -> State:
        return {"context": self.context.copy(), "seen": self.seen.copy(), "z": self.z.copy()}

    def load_memory(self, memory: State) -> None:
        if memory:
            self.context, self.seen = np.array(memory["context"]), np.array(memory["seen"])
            self.z = np.array(memory["z"])

    def _remember(self, moves: Transitions, rewards: Array, slots: Array) -> None:
        rows = self._rows(moves.obs, self._squashed(moves.actions), rewards, moves.next_obs)
        room = self.context.shape[1]
        for slot, row in zip(slots, rows, strict=True):
            place = int(self.seen[slot])
            self.seen[slot] += 1
            if place >= room:
                # Each step of the trial is as likely to be among those that are kept.
                place = int(self.rng.integers(place + 1))
            if place < room:
                self.context[slot, place] = row

    def _rows(self, obs: Any, actions: Array, rewards: Array, after: Any) -> Array:
        """Steps as the encoder reads them."""
        parts = [to_array(self.inputs(obs)), actions, np.asarray(rewards)[:, None]]
        if self.settings.next_obs:
            parts.append(to_array(self.inputs(after)))
        return np.concatenate(parts, axis=1).astype(np.float32)

    def infer(self, slots: Array, explore: bool) -> None:
        """Believe something of the task that is before these slots: a sample if they explore, else
        what is most probable."""
        mask = np.arange(self.context.shape[1]) < self.seen[slots, None]
        with torch.inference_mode():
            given = to_tensor(self.context[slots], self.device)
            mean, variance = map(to_array, self.net.posterior(given, to_tensor(mask, self.device)))
        noise = self.rng.standard_normal(mean.shape) if explore else 0.0
        self.z[slots] = mean + np.sqrt(variance) * noise

    # Acting and learning.

    def act(self, obs: Any, ctx: Context) -> Array:
        slots, n = ctx.slots, len(ctx.slots)
        begun = slots[ctx.episode_start[slots]]
        if len(begun):
            self.infer(begun, ctx.learning)
        if ctx.learning and ctx.kind == "learn" and self.steps < self.settings.start:
            squashed = self.rng.uniform(-1, 1, (n, len(self.low)))
        else:
            with torch.inference_mode():
                seen = torch.cat([self.inputs(obs), to_tensor(self.z[slots], self.device)], 1)
                none = torch.zeros(n, dtype=torch.int64, device=self.device)
                mean, log_std = map(to_array, self.net.soft.gaussian(seen, none))
            noise = self.rng.standard_normal(mean.shape) if ctx.learning else 0.0
            squashed = np.tanh(mean + np.exp(log_std) * noise)
        inside = self.low + (squashed + 1) / 2 * (self.high - self.low)
        chosen: Array = np.clip(inside, self.low, self.high)
        return chosen.astype(self.dtype).reshape(n, *self.shape)

    def _squashed(self, actions: Array) -> Array:
        flat = np.asarray(actions).reshape(len(actions), -1)
        squashed: Array = 2 * (flat - self.low) / (self.high - self.low) - 1
        return squashed

    def observe(self, batch: Transitions, ctx: Context) -> None:
        # After an adaptation every episode begins with what that left.
        if batch.rewards is not None and ctx.kind != "adapt":
            self._remember(batch, batch.rewards, ctx.slots)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        moves, rewards = transitions_of("pearl", batch)
        self._remember(moves, rewards, ctx.slots)
        if ctx.kind != "learn":
            return None
        begun = ctx.slots[ctx.trial_start[ctx.slots]]
        if len(begun):
            self.replay.begin(begun)
        self.replay.add(
            ctx.slots,
            actions=self._squashed(moves.actions),
            rewards=rewards,
            terminated=moves.terminated,
            **self.inputs.rows("obs", moves.obs),
            **self.inputs.rows("next_obs", moves.next_obs),
        )
        before, self.steps = self.steps, self.steps + len(moves)
        if self.steps < self.settings.start:
            return None
        measures: Measures | None = None
        for _ in range(int(self.steps * self.settings.rate) - int(before * self.settings.rate)):
            measures = self.update(ctx.progress)
        return measures

    def update(self, progress: float = 0.0) -> Measures:
        """Learn one minibatch, and let the targets follow."""
        self.optimizer.advance(progress)
        batch = self.sample()
        # A row is a trial at a moment that is drawn for it, so each is new.
        self.collect(new_rows(batch))
        measures = self.descend(batch)
        self.target.lerp_(self.optimizer.weights[self.followed], self.settings.tau)
        return measures

    def sample(self) -> Minibatch:
        """Rows of some trials, and what was known of each at some moment."""
        rows, known, mask = self.replay.sample(
            self.rng, self.settings.tasks, self.settings.batch, self.context.shape[1]
        )
        noise = self.rng.standard_normal((2, *rows["actions"].shape), np.float32)
        latent = self.rng.standard_normal((self.settings.tasks, self.z.shape[1]), np.float32)
        flat = {name: v.reshape(-1, *v.shape[2:]) for name, v in known.items()}
        gather = self.inputs.gather
        seen = self._rows(
            gather("obs", flat), flat["actions"], flat["rewards"], gather("next_obs", flat)
        )
        arrays = {
            "actions": rows["actions"],
            "rewards": rows["rewards"],
            "noise": noise[0],
            "next_noise": noise[1],
            "latent_noise": latent,
            "context": seen.reshape(*mask.shape, -1),
            "mask": mask,
        }
        flat = {name: v.reshape(-1, *v.shape[2:]) for name, v in rows.items()}
        shape = (self.settings.tasks, self.settings.batch, -1)
        return {
            "obs": self.inputs(gather("obs", flat)).view(shape),
            "next_obs": self.inputs(gather("next_obs", flat)).view(shape),
            "alive": to_tensor(~rows["terminated"], self.device, torch.float32),
            **{name: to_tensor(v, self.device) for name, v in arrays.items()},
        }

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        soft = self.net.soft
        mean, variance = self.net.posterior(batch["context"], batch["mask"])
        z = mean + variance.sqrt() * batch["latent_noise"]
        rows = {name: batch[name].flatten(0, 1) for name in _ROWS}
        rows["rewards"] = self.settings.reward_scale * rows["rewards"]
        z = z.repeat_interleave(batch["obs"].shape[1], 0)
        # The critics alone move what is believed.
        following = torch.cat([rows["next_obs"], z.detach()], 1)
        none = torch.zeros(len(z), dtype=torch.int64, device=z.device)
        seen = SeenFeatures(torch.cat([rows["obs"], z], 1), following, following, none)
        noise, alpha = (rows["noise"], rows["next_noise"]), soft.log_alpha.detach().exp()
        critic, actor, values, log_prob = soft_losses(
            soft, rows, seen, noise, alpha, self.settings.gamma, self.target_critics
        )
        divergence = 0.5 * (variance + mean.square() - 1 - variance.log()).sum()
        loss = critic + actor + self.settings.kl * divergence
        if self.settings.learn_alpha:
            loss = loss - (soft.log_alpha * (log_prob.detach() + self.entropy)).mean()
        measures = {
            "loss": critic,
            "q": values.mean(),
            "entropy": -log_prob.mean(),
            "alpha": alpha.mean(),
            "kl": divergence / len(mean),
        }
        return loss, {name: value.detach() for name, value in measures.items()}

    def predict(self, batch: Minibatch) -> Tensor:
        """The policy's mean and log deviation for each row, by what is most probably the task."""
        mean, _ = self.net.posterior(batch["context"], batch["mask"])
        z = mean.unsqueeze(1).expand(-1, batch["obs"].shape[1], -1)
        obs = torch.cat([batch["obs"], z], 2).flatten(0, 1)
        none = torch.zeros(len(obs), dtype=torch.int64, device=obs.device)
        return torch.cat(self.net.soft.gaussian(obs, none), 1)

    def state(self) -> dict[str, Array]:
        out = {**super().state(), **self.replay.state("replay"), "steps": np.array(self.steps)}
        out["target"] = to_array(self.target).copy()
        return out

    def load(self, state: State) -> None:
        super().load(state)
        self.steps = int(state["steps"])
        self.replay.load("replay", state)
        self.target.copy_(to_tensor(state["target"], self.device))


_ROWS = ("obs", "next_obs", "actions", "rewards", "alive", "noise", "next_noise")

agent = PEARLAgent
