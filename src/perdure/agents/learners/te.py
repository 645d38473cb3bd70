"""TE: task embeddings; PPO by a policy that knows its task as a point in a small space."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.checks import transitions_of
from perdure.agents.networks.encoders import mlp, with_linear_head
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import (
    LEAST_STD,
    Minibatch,
    NewRows,
    TorchLearner,
    network,
)
from perdure.agents.networks.policies import Policy, policy_for
from perdure.agents.networks.rollout_buffer import RolloutBuffer, advantages_and_returns
from perdure.agents.networks.settings import Ranges, RolloutSettings
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.errors import SpecError
from perdure.spaces import FLAT, POLICIES
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Measures, Setup, State

LEAST, FIRST, GUESS = 1e-6, 0.1, 2.0
"""The least spread of a latent, the first of the encoder's and the first of the inferred."""
CHUNK = 4096
"""Windows held at a time."""


@dataclass(frozen=True, kw_only=True)
class TESettings(RolloutSettings):
    """See :class:`TEAgent`."""

    agent = "te"
    ranges: ClassVar[Ranges] = {
        **RolloutSettings.ranges,
        "batch": (2, inf),
        "embedding": (1, inf),
        "window": (1, inf),
        "widest": (LEAST, inf),
        "clip": (0, inf),
    }

    embedding: int = 6
    window: int = 20
    widest: float = 2.0
    inference: float = 0.05
    entropy: float = 0.02
    encoder_entropy: float = 2e-4
    lam: float = 0.98
    batch: int = 32
    clip: float = 0.2
    hidden: Sequence[int] = (32, 16)


class Embedding(nn.Module):
    """Three networks: the encoder p(z|task), the policy π(a|s, z), and the inference q(z|window),
    which infers z from the last observations."""

    def __init__(
        self,
        tasks: int,
        width: int,
        policy: Policy,
        hidden: Sequence[int],
        latent: int,
        window: int,
    ) -> None:
        super().__init__()

        def of(inputs: int, layers: Sequence[int], outputs: int, gain: float) -> nn.Module:
            return with_linear_head(mlp([inputs, *layers]), layers[-1], outputs, gain)

        self.policy = policy
        # Tasks lie apart from the first: a policy that sees no difference could not make any.
        self.encoder = of(tasks, (20, 20), 2 * latent, 1.0)
        self.actor = of(width + latent, hidden, policy.outputs, 0.01)
        self.inference = of(window * width, (20, 10), 2 * latent, 1.0)


class TEAgent(TorchLearner):
    """PPO with task embeddings (Hausman et al., 2018).

    At the beginning of an episode a latent z of ``embedding`` numbers is drawn from the Gaussian that
    the encoder gives the task, as z = mean + std ε; the policy sees the observation and z, never the task. In
    evaluation z is the mean. The encoder learns through the policy: the loss works z out again from
    the same ε, so that at first its ratios are 1.

    Rewards are augmented, without gradients::

        r − inference · softplus(clip(−log q(z|window), −3, 3)) + entropy · softplus(−log π(a|s, z))

    so that a task's behaviour shows which z it follows, and varies. The window is the last ``window``
    observations of the episode up to the one that followed the action; before the first it repeats
    the first. The inference network is trained beside, on its log-likelihood of z discounted by the
    time in the episode. ``encoder_entropy`` keeps these Gaussians wide; ``widest`` is the most
    they may be. A linear baseline for each task reads the observation and z.

    ``rollout`` and ``batch`` count for each task that runs side by side, as in PPO. ``std`` is the
    first spread of continuous actions, in units of half their range. At the end of a task, what was
    gathered since the last update is learned if it makes a minibatch and dropped if not.

    The defaults are those of Meta-World's paper, completed by garage's where it gives none; the
    preset ``garage`` is garage's own.
    """

    learns_from = ("environments",)
    needs_rewards = True
    reads, acts_in = FLAT, POLICIES
    needs_task_ids = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "garage": {"embedding": 4, "window": 6, "widest": 0.2, "rollout": 1024},
    }

    non_policy_parameters = ("policy.log_std", "inference.")
    net: Embedding

    @takes_fields(TESettings)
    def __init__(self, setup: Setup, settings: TESettings) -> None:
        super().__init__(setup, **settings.shared)
        s = self.settings = settings
        if not setup.tasks:
            raise SpecError("te embeds tasks, so it must be told them: do not hide their identity")
        self.inputs = Inputs(setup.observation_space, self.device)
        policy = self.policy = policy_for(setup.action_space, s.std)
        self.predicts = policy.predicts
        width, tasks = self.inputs.shape[0], len(setup.tasks)
        self.net = network(
            setup,
            self.device,
            lambda: Embedding(tasks, width, policy, s.hidden, s.embedding, s.window),
            s.layer_norm,
        )
        self.optimizer, self.max_grad = s.make_optimizer(self.net.parameters()), s.max_grad
        noise = {"noise": ((s.embedding,), np.float32)}
        self.rows = RolloutBuffer(setup, self.inputs, policy, s.rollout, noise)
        self.noise = np.zeros((setup.slots, s.embedding), np.float32)
        """The ε of each slot's episode."""

    # Latents.

    def encode_task(self, task: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation of p(z|task)."""
        hot = nn.functional.one_hot(task, len(self.setup.tasks)).to(torch.float32)
        return gaussian(self.net.encoder(hot), FIRST, self.settings.widest)

    def sample_latent(self, task: Tensor, noise: Tensor) -> Tensor:
        """z of each row."""
        mean, log_std = self.encode_task(task)
        return mean + log_std.exp() * noise

    def latent_log_prob(self, window: Tensor, z: Tensor) -> Tensor:
        """log q(z|window) of each row."""
        return log_density(z, *gaussian(self.net.inference(window), GUESS, inf))

    # A life.

    def act(self, obs: Any, ctx: Context) -> Array:
        slots, noise = ctx.slots, np.zeros((len(ctx.slots), self.noise.shape[1]), np.float32)
        if ctx.learning:
            new = slots[ctx.episode_start[slots]]
            self.noise[new] = self.rng.standard_normal((len(new), noise.shape[1]))
            noise = self.noise[slots]
        with torch.inference_mode():
            task = to_tensor(self.rows.tasks.of(ctx), self.device)
            z = self.sample_latent(task, to_tensor(noise, self.device))
            outputs = self.net.actor(torch.cat([self.inputs(obs), z], 1))
            return self.rows.choose(outputs, ctx, self.rng, self.settings.greedy)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        moves, rewards = transitions_of("te", batch)
        full = self.rows.add(moves, rewards, ctx, noise=self.noise[ctx.slots])
        return self.update(ctx.progress) if full else None

    def leave(self, ctx: Context) -> None:
        # The innermost boundary comes first and leaves nothing for the outer ones.
        if ctx.learning and len(self.rows) >= self.settings.batch * self.rows.parallel_tasks:
            self.update(ctx.progress)
        elif ctx.learning:
            self.rows.clear()

    def update(self, progress: float = 0.0) -> Measures:
        """Learn the rollout, then forget it. ``progress`` is the part of the exposure that is done."""
        data, windows = self.rollout_data()
        n = len(data["obs"])
        self.collect(
            NewRows(n, lambda rows: self._rows(data, windows, to_tensor(rows, self.device)))
        )
        parts = max(1, round(n / (self.settings.batch * self.rows.parallel_tasks)))
        totals: dict[str, float] = {}
        for _ in range(self.settings.epochs):
            order = to_tensor(self.rng.permutation(n), self.device)
            for rows in order.tensor_split(parts):
                self.optimizer.advance(progress)
                some = self._rows(data, windows, rows)
                for name, value in self.descend(some).items():
                    totals[name] = totals.get(name, 0.0) + value
        self.rows.clear()
        return {name: total / (self.settings.epochs * parts) for name, total in totals.items()}

    @staticmethod
    def _rows(data: Minibatch, windows: Callable[[Tensor], Tensor], rows: Tensor) -> Minibatch:
        return {"window": windows(rows), **{k: v[rows] for k, v in data.items()}}

    def rollout_data(self) -> tuple[Minibatch, Callable[[Tensor], Tensor]]:
        """The rollout as one batch, with advantages of the augmented rewards; and the function that
        gives the windows of some rows, which would take much room all at once."""
        rows = self.rows.trajectories()
        obs, after = self.rows.observations(rows)
        sampled, task, noise = (
            to_tensor(rows[name], self.device) for name in ("sampled_actions", "task", "noise")
        )
        history = to_tensor(earlier(rows["cut"], self.settings.window - 1), self.device)

        def windows(some: Tensor) -> Tensor:
            past = obs[history[some].flatten()].view(len(some), -1)
            return torch.cat([past, after[some]], 1)

        with torch.no_grad():
            z = self.sample_latent(task, noise)
            log_prob, _ = self.policy.log_prob(self.net.actor(torch.cat([obs, z], 1)), sampled)
            log_q = torch.cat(
                [self.latent_log_prob(windows(k), z[k]) for k in chunks(len(obs), self.device)]
            )
        rewards = to_tensor(rows["rewards"], self.device)
        rows["rewards"] = to_array(self.augmented(rewards, log_q, log_prob))
        known, following = torch.cat([obs, z], 1), torch.cat([after, z], 1)
        advantages, _ = advantages_and_returns(
            rows, known, following, None, self.settings.gamma, self.settings.lam
        )
        advantages = advantages - advantages.mean()
        data = {
            "obs": obs,
            "sampled_actions": sampled,
            "log_prob": log_prob,
            "advantages": advantages / advantages.std(unbiased=False).clamp(min=1e-8),
            "task": task,
            "noise": noise,
            "z": z,
            "discount": self.settings.gamma ** to_tensor(rows["time"], self.device, torch.float32),
        }
        return data, windows

    def augmented(self, rewards: Tensor, log_q: Tensor, log_prob: Tensor) -> Tensor:
        """Rewards with a price on latents that cannot be inferred and a prize on varied actions."""
        softplus = nn.functional.softplus
        unclear, varied = softplus((-log_q).clamp(-3, 3)), softplus(-log_prob)
        return rewards - self.settings.inference * unclear + self.settings.entropy * varied

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        s = self.settings
        log_prob, entropy = self.policy.log_prob(self.predict(batch), batch["sampled_actions"])
        ratio = torch.exp(log_prob - batch["log_prob"])
        clipped = ratio.clamp(1 - s.clip, 1 + s.clip)
        advantages = batch["advantages"]
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        _, log_std = self.encode_task(batch["task"])
        # The entropy of a Gaussian but for its constant.
        policy_loss = policy_loss - s.encoder_entropy * log_std.sum(1).mean()
        # The inference network has parameters of its own, so one sum trains both.
        unclear = -(batch["discount"] * self.latent_log_prob(batch["window"], batch["z"])).mean()
        return policy_loss + unclear, {
            "loss": policy_loss.detach(),
            "inference_loss": unclear.detach(),
            "entropy": entropy.detach().mean(),
        }

    def predict(self, batch: Minibatch) -> Tensor:
        z = self.sample_latent(batch["task"], batch["noise"])
        outputs: Tensor = self.net.actor(torch.cat([batch["obs"], z], 1))
        return outputs

    def output_fisher(self, batch: Minibatch, outputs: Tensor) -> Tensor:
        return self.policy.fisher(outputs).clamp(max=LEAST_STD**-2)

    def state(self) -> dict[str, Array]:
        return {**super().state(), **self.rows.state(), "noise": self.noise.copy()}

    def load(self, state: State) -> None:
        super().load(state)
        self.rows.load(state)
        self.noise = np.array(state["noise"])


def gaussian(outputs: Tensor, first: float, widest: float) -> tuple[Tensor, Tensor]:
    """Mean in (−1, 1) and log standard deviation, which is about that of ``first`` at first."""
    mean, log_std = outputs.chunk(2, dim=1)
    return torch.tanh(mean), (log_std + math.log(first)).clamp(math.log(LEAST), math.log(widest))


def log_density(z: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Of each row, under independent Gaussians."""
    scaled = (z - mean) * torch.exp(-log_std)
    return -(0.5 * scaled.square() + log_std + 0.5 * math.log(2 * math.pi)).sum(1)


def earlier(cut: Array, length: int) -> Array:
    """The rows of the last ``length`` steps up to each row, oldest first; before the first row of
    its trajectory, that row again."""
    lasts, here = np.flatnonzero(cut), np.arange(len(cut))
    firsts = np.concatenate([[0], lasts[:-1] + 1])[np.searchsorted(lasts, here)]
    back = here[:, None] - np.arange(length)[::-1]
    found: Array = np.maximum(back, firsts[:, None])
    return found


def chunks(rows: int, device: torch.device) -> Iterator[Tensor]:
    """All row numbers, some at a time."""
    yield from torch.arange(rows, device=device).split(CHUNK)  # type: ignore[no-untyped-call]


agent = TEAgent
