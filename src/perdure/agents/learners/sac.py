"""SAC: soft actor-critic for continuous actions, for one task, many tasks, or a head for each."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from perdure.agents.networks.checks import transitions_of
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import (
    LEAST_STD,
    Minibatch,
    NewRows,
    TorchLearner,
    network,
)
from perdure.agents.networks.ring import Ring
from perdure.agents.networks.sac_networks import (
    SACNetworks,
    SeenFeatures,
    SoftLosses,
    SoftNetworks,
    followed_by_targets,
    soft_losses,
)
from perdure.agents.networks.settings import Ranges, ReplaySettings
from perdure.agents.networks.tasks import Tasks
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.arrays import rows_of
from perdure.spaces import ALL, BOUNDED
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Measures, Setup, State

PAPER: Mapping[str, Any] = {
    "batch": 128,
    "start": 1000,
    "hidden": (400, 400, 400),
    "optimizer": {"eps": 1e-5},
}


@dataclass(frozen=True, kw_only=True)
class SACSettings(ReplaySettings):
    """See :class:`SACAgent`."""

    agent = "sac"
    ranges: ClassVar[Ranges] = {
        **ReplaySettings.ranges,
        "tau": (0, 1),
        "start": (0, inf),
        "every": (0, inf),
        "alpha": (1e-8, inf),
    }

    lr: float = 3e-4
    batch: int = 128
    hidden: Sequence[int] = (256, 256)
    tau: float = 0.005
    start: int = 100
    alpha: float = 1.0
    multihead: bool = False
    task_weights: bool = False


class SACAgent(TorchLearner):
    """Off-policy actor-critic that maximises return and entropy (Haarnoja et al., 2018).

    One minibatch of ``batch`` rows for each task is learned for every ``every`` steps, counted over
    all slots (0: whenever all slots have stepped), after ``start`` steps of random actions for each
    task that runs side by side. Each task has a replay of ``replay`` rows and a temperature, learned
    towards an entropy of minus the number of actions. With ``multihead`` the networks share all but
    their last layer. With ``task_weights`` a task counts by 1 / its temperature, in units of their mean: one
    that is already sure of its actions more (Yang et al., 2020). At a new task the replay is emptied and random actions start again unless
    ``restart`` is false; then an adapt block is learned from a replay of its own, too.

    The losses of critics, policy and temperature are one sum: what must not be moved by a part of
    it is held constant there, so one backward pass and one optimiser serve all, and strategies see
    one loss. Images pass convolutions that policy and critics share; they are learned from the loss
    of the critics alone, as in SAC+AE (Yarats et al., 2021), and the critics' targets have their own.

    The defaults are Stable-Baselines3's, with a shorter replay and minibatches half as large, which learn as much
    in as many steps (benchmarks/results/learners.md). Presets: ``paper`` is that of
    Meta-World's paper; ``newer`` is Meta-World+ but for the start of its networks; ``quick`` learns the easy tasks in minutes, values first: theirs is a time
    constant of 1/(τ(1 − γ)) updates, 20,000 in the others; ``cw`` is Continual World without its layer
    norms, leaky units and resets of the optimiser.
    """

    learns_from = ("environments",)
    needs_rewards = True
    reads, acts_in = ALL, BOUNDED
    replayable = rows_tell_task = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": PAPER,
        "newer": {**PAPER, "start": 4000, "every": 0, "max_grad": 1.0},
        "quick": {
            **PAPER,
            "lr": 1e-3,
            "gamma": 0.97,
            "tau": 0.01,
            "every": 2,
            "hidden": (256, 256),
        },
        "cw": {
            **PAPER,
            "lr": 1e-3,
            "replay": 1_000_000,
            "start": 10_000,
            "multihead": True,
            "hidden": (256, 256, 256, 256),
        },
    }
    non_policy_parameters = ("critics.", "log_alpha")
    net: SoftNetworks
    settings: SACSettings

    @takes_fields(SACSettings)
    def __init__(self, setup: Setup, settings: SACSettings) -> None:
        self.begin(setup, settings)

    def begin(self, setup: Setup, settings: SACSettings) -> None:
        """What the constructor does, whose settings may be a record with more in it."""
        super().__init__(setup, **settings.shared)
        s = self.settings = settings
        space = setup.action_space
        assert isinstance(space, spaces.Box)
        self.inputs = Inputs(setup.observation_space, self.device)
        self.low, self.high = space.low.reshape(-1), space.high.reshape(-1)
        self.shape, self.dtype = space.shape, space.dtype
        actions = len(self.low)
        self.tasks = Tasks(setup)
        tasks = len(self.tasks)
        self.heads = heads = tasks if s.multihead else 1
        self.net = network(
            setup,
            self.device,
            lambda: self.build(actions, heads, tasks),
            s.layer_norm,
        )
        self.target_encoder = copy.deepcopy(self.net.encoder)
        self.optimizer, self.max_grad = s.make_optimizer(self.net.parameters()), s.max_grad
        self.followed = followed_by_targets(self.net)
        self.target: Tensor = self.optimizer.weights[self.followed].clone()
        """What the critics, and the convolutions before them, were a while ago."""
        self.target_critics = self._view_target()
        self.entropy = -float(actions)
        self.columns: dict[str, tuple[tuple[int, ...], Any]] = {
            **self.inputs.columns("obs"),
            **self.inputs.columns("next_obs"),
            "actions": ((actions,), np.float32),
            "rewards": ((), np.float32),
            "terminated": ((), np.bool_),
        }
        self.replays = self._empty()
        self.aside: list[Ring] | None = None
        """In an adapt block: the replays of before."""
        self.steps = 0

    def build(self, actions: int, heads: int, tasks: int) -> SoftNetworks:
        """The networks."""
        s = self.settings
        return SACNetworks(self.inputs, actions, s.hidden, heads, tasks, s.alpha)

    def _empty(self) -> list[Ring]:
        return [Ring(self.settings.replay, self.columns) for _ in range(len(self.tasks))]

    def _view_target(self) -> list[Tensor]:
        """The target critics' parameters as views of the target; so become the target encoder's."""
        encoder: list[nn.Parameter] = []
        if self.target_encoder is not None:
            encoder = list(self.target_encoder.requires_grad_(False).parameters())
        shapes = [*encoder, *self.net.critics.parameters()]
        parts = torch.split(self.target, [p.numel() for p in shapes])
        views = [part.view_as(p) for part, p in zip(parts, shapes, strict=True)]
        for p, view in zip(encoder, views, strict=False):
            p.data = view
        return views[len(encoder) :]

    @property
    def starting(self) -> bool:
        """Whether actions are still random."""
        return self.steps < self.settings.start * self.tasks.boundary.parallel_tasks

    def act(self, obs: Any, ctx: Context) -> Array:
        n = len(ctx.slots)
        if ctx.learning and self.starting:
            squashed = self.rng.uniform(-1, 1, (n, len(self.low)))
        else:
            with torch.inference_mode():
                task = to_tensor(self.tasks.of(ctx), self.device)
                seen = self.net.features(self.inputs(obs))
                mean, log_std = map(to_array, self.net.gaussian(seen, task))
            noise = self.rng.standard_normal(mean.shape) if ctx.learning else 0.0
            squashed = np.tanh(mean + np.exp(log_std) * noise)
        inside = self.low + (squashed + 1) / 2 * (self.high - self.low)
        chosen: Array = np.clip(inside, self.low, self.high)
        return chosen.astype(self.dtype).reshape(n, *self.shape)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        moves, rewards = transitions_of("sac", batch)
        n = len(moves)
        actions = np.asarray(moves.actions).reshape(n, -1)
        squashed = 2 * (actions - self.low) / (self.high - self.low) - 1
        task = self.tasks.of(ctx)
        for k in np.unique(task):
            mine = task == k
            self.replays[k].add(
                int(mine.sum()),
                actions=squashed[mine],
                rewards=rewards[mine],
                terminated=moves.terminated[mine],
                **self.inputs.rows("obs", rows_of(moves.obs, mine)),
                **self.inputs.rows("next_obs", rows_of(moves.next_obs, mine)),
            )
            self._collect(int(k), int(mine.sum()))
        before, self.steps = self.steps, self.steps + n
        if self.starting:
            return None
        due = (
            self.steps // self.settings.every - before // self.settings.every
            if self.settings.every
            else 1
        )
        measures: Measures | None = None
        for _ in range(due):
            measures = self.update(ctx.progress)
        return measures

    def _collect(self, task: int, count: int) -> None:
        replay = self.replays[task]
        newest = replay.newest(count)

        def at(which: Array) -> Minibatch:
            return self._minibatch(replay.take(newest[which]), np.full(len(which), task))

        self.collect(NewRows(count, at))

    def update(self, progress: float = 0.0) -> Measures:
        """Learn one minibatch. ``progress`` is the part of the exposure that is done."""
        self.optimizer.advance(progress)
        return self.descend(self.sample())

    def descend(self, batch: Minibatch) -> dict[str, float]:
        """One step, after which the target follows; also where a strategy learns rows once more."""
        measures = super().descend(batch)
        self.target.lerp_(self.optimizer.weights[self.followed], self.settings.tau)
        return measures

    def sample(self) -> Minibatch:
        """``batch`` rows of each task that has any."""
        parts, tasks = [], []
        for k, replay in enumerate(self.replays):
            if len(replay):
                parts.append(replay.take(self.rng.integers(len(replay), size=self.settings.batch)))
                tasks.append(np.full(self.settings.batch, k))
        rows = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        return self._minibatch(rows, np.concatenate(tasks))

    def _minibatch(self, rows: Mapping[str, Array], task: Array) -> Minibatch:
        return {
            "obs": self.inputs(self.inputs.gather("obs", rows)),
            "next_obs": self.inputs(self.inputs.gather("next_obs", rows)),
            "alive": to_tensor(~rows["terminated"], self.device, torch.float32),
            "actions": to_tensor(rows["actions"], self.device),
            "rewards": to_tensor(rows["rewards"], self.device),
            "task": to_tensor(task, self.device),
        }

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        net, task = self.net, batch["task"]
        drawn = self.rng.standard_normal((2, *batch["actions"].shape), np.float32)
        noise, next_noise = to_tensor(drawn, self.device)
        log_alpha = net.log_alpha[task]
        alpha = log_alpha.detach().exp()
        judged = batch["next_obs"]
        with torch.no_grad():
            following = net.features(judged)
            if self.target_encoder is not None:
                judged = self.target_encoder(judged)
        seen = SeenFeatures(net.features(batch["obs"]), following, judged, task)
        critic, actor, values, log_prob = self.soft_losses(batch, seen, (noise, next_noise), alpha)
        temperature_loss = -(log_alpha * (log_prob.detach() + self.entropy)).mean()
        measures = {
            "loss": critic.detach(),
            "q": values.detach().mean(),
            "entropy": -log_prob.detach().mean(),
            "alpha": alpha.mean(),
        }
        return critic + actor + temperature_loss, measures

    def soft_losses(
        self, batch: Minibatch, seen: SeenFeatures, noise: tuple[Tensor, Tensor], alpha: Tensor
    ) -> SoftLosses:
        """The losses of critics and policy."""
        weights = (1 / alpha) / (1 / alpha).mean() if self.settings.task_weights else 1.0
        return soft_losses(
            self.net,
            batch,
            seen,
            noise,
            alpha,
            self.settings.gamma,
            self.target_critics,
            lambda rows: rows * weights,
        )

    def predict(self, batch: Minibatch) -> Tensor:
        """The policy's mean and log deviation: what distillation keeps."""
        return torch.cat(self.net.gaussian(self.net.features(batch["obs"]), batch["task"]), 1)

    def predict_heads(self, batch: Minibatch) -> Tensor:
        return self.net.gaussians(self.net.features(batch["obs"]), batch["task"])

    def predict_values(self, batch: Minibatch) -> Tensor:
        obs = self.net.features(batch["obs"])
        return self.net.values(obs, batch["actions"], batch["task"])

    def head_parameters(self) -> Mapping[str, int]:
        return self.net.head_parameters()

    def output_fisher(self, batch: Minibatch, outputs: Tensor) -> Tensor:
        mean, log_std = outputs.chunk(2, dim=1)
        precision = torch.exp(-2 * log_std).clamp(max=LEAST_STD**-2)
        return torch.cat([precision, torch.full_like(mean, 2.0)], 1)

    def enter(self, ctx: Context) -> None:
        super().enter(ctx)
        if self.tasks.enter(ctx) and self.settings.restart:
            # New ones, not cleared ones: a long life would hold the memory of all its tasks.
            self.replays = self._empty()
            self.steps = 0
        elif self.tasks.boundary.adapts(ctx) and self.settings.restart:
            self.aside, self.replays = self.replays, self._empty()

    def state(self) -> dict[str, Array]:
        out = {**super().state(), **self.tasks.state(), "steps": np.array(self.steps)}
        out["target"] = to_array(self.target).copy()
        for k, replay in enumerate(self.replays):
            out |= replay.state(f"replay{k}")
        return out

    def load(self, state: State) -> None:
        super().load(state)
        self.steps = int(state["steps"])
        self.tasks.load(state)
        if self.aside is not None:
            # They hold what the adapt block began with, so that next to nothing is to be loaded.
            self.replays, self.aside = self.aside, None
        self.target.copy_(to_tensor(state["target"], self.device))
        for k, replay in enumerate(self.replays):
            replay.load(f"replay{k}", state)


agent = SACAgent
