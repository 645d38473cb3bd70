"""DQN: double Q-learning with a network, a target network and replay."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.checks import transitions_of
from perdure.agents.networks.encoders import encoder_for
from perdure.agents.networks.exploration import EpsilonGreedy
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.joint_actions import JointActions
from perdure.agents.networks.learner import (
    Minibatch,
    NewRows,
    TorchLearner,
    network,
    pack,
    unpack,
)
from perdure.agents.networks.ring import Ring
from perdure.agents.networks.settings import Ranges, ReplaySettings
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.spaces import ALL, JOINT
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Measures, Setup, State


@dataclass(frozen=True, kw_only=True)
class DQNSettings(ReplaySettings):
    """See :class:`DQNAgent`."""

    agent = "dqn"
    ranges: ClassVar[Ranges] = {
        **ReplaySettings.ranges,
        "target": (1, inf),
        "tau": (0, 1),
        "epsilon": (0, 1),
        "explore": (0, inf),
        "repeat": (1, inf),
    }

    lr: float = 5e-4
    hidden: Sequence[int] = (128, 128)
    network: str = ""
    batch: int = 64
    every: int = 2
    target: int = 1
    tau: float = 0.01
    epsilon: float = 0.05
    explore: int = 8000
    repeat: float = 1
    max_grad: float = 10.0


class DQNAgent(TorchLearner):
    """Deep Q-learning for Discrete actions, and for MultiDiscrete and MultiBinary ones, of which every
    combination is an action.

    One minibatch of ``batch`` replayed transitions is learned for every ``every`` steps taken, once
    the replay holds ``batch`` of them; every ``target`` minibatches the target network moves the part
    ``tau`` of the way to the network. ``network=file.py:Net`` puts a network of one's own in the place
    of ``hidden``.
    Epsilon falls to ``epsilon`` over ``explore`` learned steps; a random action is done ``repeat`` times
    in a row on average. At a new task (see EpsilonGreedy)
    exploration starts again and the replay is emptied, unless ``restart`` is false: then both go
    on, and the replay mixes tasks. An adapt block is learned from a replay of its own in the same way.

    Presets: ``quick`` learns small tasks in some thousand steps; ``persistent`` explores longer, and
    with actions held for 20 steps on average, for tasks like MountainCar, which the defaults have not
    learned.
    """

    learns_from = ("environments",)
    needs_rewards = True
    reads, acts_in = ALL, JOINT
    replayable = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "lr": 1e-3,
            "gamma": 0.95,
            "replay": 10_000,
            "batch": 64,
            "every": 4,
            "target": 25,
            "tau": 1.0,
            "explore": 1500,
            "hidden": (64, 64),
            "optimizer": {"eps": 1e-5},
        },
        "persistent": {"lr": 1e-3, "explore": 20_000, "repeat": 20},
    }

    @takes_fields(DQNSettings)
    def __init__(self, setup: Setup, settings: DQNSettings) -> None:
        super().__init__(setup, **settings.shared)
        s = self.settings = settings
        self.actions = JointActions(setup.action_space)
        self.inputs = Inputs(setup.observation_space, self.device)

        def build() -> nn.Module:
            encoder, features = encoder_for(self.inputs, s.hidden, nn.ReLU, network=s.network)
            return nn.Sequential(encoder, nn.Linear(features, self.actions.count))

        self.net = network(setup, self.device, build, s.layer_norm)
        self.target_net = copy.deepcopy(self.net).requires_grad_(False)
        self.optimizer, self.max_grad = s.make_optimizer(self.net.parameters()), s.max_grad
        self.target_weights = self.optimizer.weights.clone()
        """All of the target network, which is made of views of it."""
        parts = torch.split(self.target_weights, [p.numel() for p in self.net.parameters()])
        for p, part in zip(self.target_net.parameters(), parts, strict=True):
            p.data = part.view_as(p)
        self.explore = EpsilonGreedy(s.epsilon, s.explore, s.restart, s.repeat)
        self.replay = self._empty()
        self.aside: Ring | None = None
        """In an adapt block: the replay of before."""
        self.steps = self.updates = 0

    def _empty(self) -> Ring:
        return Ring(
            self.settings.replay,
            {
                **self.inputs.columns("obs"),
                **self.inputs.columns("next_obs"),
                "actions": ((), np.int64),
                "rewards": ((), np.float32),
                "terminated": ((), np.bool_),
            },
        )

    def act(self, obs: Any, ctx: Context) -> Array:
        with torch.inference_mode():
            values = to_array(self.net(self.inputs(obs)))
        return self.actions.to_space(self.explore.choose(values, self.rng, ctx))

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        moves, rewards = transitions_of("dqn", batch)
        self.replay.add(
            len(moves),
            actions=self.actions.numbers(moves.actions),
            rewards=rewards,
            terminated=moves.terminated,
            **self.inputs.rows("obs", moves.obs),
            **self.inputs.rows("next_obs", moves.next_obs),
        )
        newest = self.replay.newest(len(moves))
        self.collect(NewRows(len(moves), lambda which: self._minibatch(newest[which])))
        due = (self.steps + len(moves)) // self.settings.every - self.steps // self.settings.every
        self.steps += len(moves)
        self.explore.learned += len(moves)
        if len(self.replay) < self.settings.batch:
            return None
        measures: Measures | None = None
        for _ in range(due):
            self.optimizer.advance(ctx.progress)
            measures = self.descend(self.sample(self.settings.batch))
            self.updates += 1
            if self.updates % self.settings.target == 0:
                self.target_weights.lerp_(self.optimizer.weights, self.settings.tau)
        return measures

    def sample(self, rows: int) -> Minibatch:
        """A minibatch of the replay."""
        return self._minibatch(self.rng.integers(len(self.replay), size=rows))

    def _minibatch(self, indices: Array) -> Minibatch:
        found = self.replay.take(indices)
        return {
            "obs": self.inputs(self.inputs.gather("obs", found)),
            "actions": to_tensor(found["actions"], self.device),
            "rewards": to_tensor(found["rewards"], self.device),
            "alive": to_tensor(~found["terminated"], self.device, torch.float32),
            "next_obs": self.inputs(self.inputs.gather("next_obs", found)),
        }

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        with torch.no_grad():
            # Double DQN: the network chooses, its older copy says what the choice is worth. Only a
            # true end is worth nothing more; after a truncation life would have gone on.
            best = self.net(batch["next_obs"]).argmax(dim=1, keepdim=True)
            future = self.target_net(batch["next_obs"]).gather(1, best).squeeze(1)
            goal = batch["rewards"] + self.settings.gamma * batch["alive"] * future
        values = self.predict(batch).gather(1, batch["actions"].unsqueeze(1)).squeeze(1)
        # Squared: under Huber's loss a true end counts no more than any small error, and values ran
        # far ahead of the rewards in a run of CartPole in which they do not so (see the test of it).
        loss = nn.functional.mse_loss(values, goal)
        return loss, {"loss": loss.detach(), "q": values.detach().mean()}

    def predict(self, batch: Minibatch) -> Tensor:
        values: Tensor = self.net(batch["obs"])
        return values

    def enter(self, ctx: Context) -> None:
        super().enter(ctx)
        if self.explore.enter(ctx) and self.settings.restart:
            self.replay.clear()
        elif self.explore.boundary.adapts(ctx) and self.settings.restart:
            self.aside, self.replay = self.replay, self._empty()

    def state(self) -> dict[str, Array]:
        return {
            **super().state(),
            **pack(self.target_net, "target"),
            **self.replay.state("replay"),
            **self.explore.state(),
            "counts": np.array([self.steps, self.updates]),
        }

    def load(self, state: State) -> None:
        super().load(state)
        unpack(self.target_net, "target", state)
        if self.aside is not None:
            # It holds what the adapt block began with, so that next to nothing is to be loaded.
            self.replay, self.aside = self.aside, None
        self.replay.load("replay", state)
        self.explore.load(state)
        self.steps, self.updates = (int(n) for n in state["counts"])


agent = DQNAgent
