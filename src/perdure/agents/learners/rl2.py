"""RL²: a recurrent policy that learns within a trial by what it remembers, trained by PPO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
import torch

from perdure.agents.learners.recurrent_ppo import RecurrentPPOAgent, RecurrentPPOSettings
from perdure.agents.networks.learner import Minibatch
from perdure.agents.networks.rollout_buffer import Baseline, baseline_for, features, gae, ridge
from perdure.agents.networks.settings import Ranges
from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.errors import SpecError
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Measures, Scope, Setup, State, Transitions


@dataclass(frozen=True, kw_only=True)
class RL2Settings(RecurrentPPOSettings):
    """See :class:`RL2Agent`."""

    agent = "rl2"
    ranges: ClassVar[Ranges] = {**RecurrentPPOSettings.ranges, "trials": (1, inf)}

    scope: Scope = "trial"
    lr: float = 1e-3
    gamma: float = 0.99
    trials: int = 40
    sequence: int = 250
    batch: int = 32
    epochs: int = 10
    entropy: float = 5e-3
    hidden: Sequence[int] = (64,)
    width: int = 64
    std: float = 2.0
    max_grad: float = inf
    baseline: Baseline = "auto"
    reward_scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scope != "trial":
            raise SpecError(f"rl2 remembers through a trial, got scope={self.scope!r}")


class RL2Agent(RecurrentPPOAgent):
    """Recurrent PPO over trials (Duan et al., 2016; Wang et al., 2016).

    Each step the GRU reads the observation, the last action, the reward that this brought, times
    ``reward_scale``, and whether an episode has just ended. Its memory lasts through a trial, whose
    episodes are one long one to it. In learn blocks the weights are learned after every ``trials``
    trials, and at the end of a block that has fewer; in adapt blocks they stay as they are, and memory alone adapts. Each evaluation episode of
    an adapt block begins with the memory that adaptation left, so that none learns from another.

    ``baseline`` is what a step is compared with: a ``linear`` fit to the returns of these trials, which
    reads the GRU's inputs and the time within the trial; or ``mlp``, a head of the GRU; ``auto`` is
    linear but for images.

    The defaults are those of Meta-World's paper, and garage's where it gives none, but for these: a GRU of
    garage's size, behind a layer of as many units, in place of the LSTM; gradients through ``sequence`` steps at most
    and ``entropy`` as in Meta-World+; advantages are normalised in each minibatch. Presets: ``newer`` has the sizes and
    rates of Meta-World+, without its overlapping sequences; ``quick`` learns the toy families in minutes.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "newer": {
            "lr": 5e-4,
            "trials": 20,
            "hidden": (256, 256),
            "width": 256,
            "std": 1.0,
            "reward_scale": 0.1,
            "max_grad": 1.0,
        },
        "quick": {
            "lr": 2e-3,
            "gamma": 0.95,
            "trials": 32,
            "sequence": 60,
            "batch": 8,
            "epochs": 8,
            "hidden": (32,),
            "width": 32,
            "std": 0.5,
            "max_grad": 0.5,
        },
    }

    memory_scope = "trial"
    settings: RL2Settings

    @takes_fields(RL2Settings)
    def __init__(self, setup: Setup, settings: RL2Settings) -> None:
        self.begin(setup, settings)
        self.linear = baseline_for("rl2", settings.baseline, self.inputs) == "linear"
        if self.linear:
            self.value_weight = 0.0
        self.time: Array = np.zeros(setup.slots, np.int64)
        """Steps that each slot's trial has had."""
        self.updated = False
        """Whether the present block was learned from."""
        self.adapted = self._carried()
        """For each slot: what it carried when the adaptation ended."""

    # Memory.

    def _carried(self) -> dict[str, Array]:
        return {name: v.copy() for name, v in super().memory().items()}

    def reset_memory(self, slots: Array) -> None:
        super().reset_memory(slots)
        self.time[slots] = 0

    def memory(self) -> State:
        adapted = {f"adapted.{name}": value.copy() for name, value in self.adapted.items()}
        return {**super().memory(), **adapted, "time": self.time.copy()}

    def load_memory(self, memory: State) -> None:
        super().load_memory(memory)
        if memory:
            self.time = np.array(memory["time"])
            self.adapted = {name: np.array(memory[f"adapted.{name}"]) for name in self.adapted}

    def _begin_evaluation(self, ctx: Context) -> None:
        """Begin every episode after an adaptation with what that left."""
        begun = ctx.slots[ctx.episode_start[ctx.slots]]
        for slot in begun:
            if ctx.trial_start[slot]:
                for name, value in super().memory().items():
                    self.adapted[name][slot] = value[slot]
            else:
                self.hidden[slot] = self.adapted["hidden"][slot]
                self.extras[slot] = self.adapted["extras"][slot]

    # Acting and learning.

    def trains(self, ctx: Context) -> bool:
        return ctx.learning and ctx.kind == "learn"

    def act(self, obs: Any, ctx: Context) -> Array:
        if ctx.kind == "adapt" and not ctx.learning:
            self._begin_evaluation(ctx)
        chosen = super().act(obs, ctx)
        if self.trains(ctx):
            self.now["time"] = self.time[ctx.slots]
            self.time[ctx.slots] += 1
        return chosen

    def _remember(self, slots: Array, sampled: Array, rewards: Array | None, ended: Array) -> None:
        scaled = None if rewards is None else self.settings.reward_scale * np.asarray(rewards)
        super()._remember(slots, sampled, scaled, ended)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        if self.trains(ctx):
            return super().learn(batch, ctx)
        assert isinstance(batch, Transitions)
        self.observe(batch, ctx)
        return None

    def due(self, ctx: Context) -> bool:
        starts = [s for s in ctx.slots if ctx.trial_start[s] and self.rows[s]]
        if not starts:
            return False
        over = sum(bool(row["cut"]) for mine in self.rows for row in mine)
        return over + sum(not self.rows[s][-1]["cut"] for s in starts) >= self.settings.trials

    def leave(self, ctx: Context) -> None:
        if not self.trains(ctx):
            return
        # The rows of a block's last trials end where they end.
        over = sum(bool(row["cut"]) for mine in self.rows for row in mine)
        there = over + sum(bool(mine) for mine in self.rows)
        if there and (2 * there >= self.settings.trials or not self.updated):
            self.update(ctx.progress)
        else:
            self._clear()
        self.updated = False

    def update(self, progress: float = 0.0) -> Measures:
        self.updated = True
        return super().update(progress)

    def rollout_data(self) -> Minibatch:
        if self.linear:
            self._fit_baseline()
        return super().rollout_data()

    def _fit_baseline(self) -> None:
        """Values of all steps, fitted to the returns of the trials they are of."""
        every = [row for mine in self.rows for row in mine]
        lasts = np.cumsum([len(mine) for mine in self.rows if mine]) - 1
        cut = np.array([row["cut"] for row in every])
        cut[lasts] = True
        none, rewards = np.zeros(len(every)), np.array([row["reward"] for row in every])
        returns = gae(rewards, none, none, cut, self.settings.gamma, 1.0)
        seen = to_tensor(np.stack([row["inputs"] for row in every]), CPU)
        basis = features(seen, np.array([row["time"] for row in every]))
        fit = ridge(basis, to_tensor(returns, CPU, torch.float64))
        for row, value in zip(every, to_array(basis @ fit).astype(np.float32), strict=True):
            row["value"], row["last_value"] = value, np.float32(0.0)

    def state(self) -> dict[str, Array]:
        return {**super().state(), "updated": np.array(self.updated)}

    def load(self, state: State) -> None:
        super().load(state)
        self.updated = bool(state["updated"])


agent = RL2Agent
