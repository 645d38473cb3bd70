"""MAML: a policy that a step of its own gradient makes fit for the task at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from perdure.agents.networks.adaptable import (
    AdaptablePolicy,
    Trial,
    Weights,
    columns_of,
    rows_at,
    trial_batch,
)
from perdure.agents.networks.checks import transitions_of
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import Minibatch, TorchAgent, network, pack, unpack
from perdure.agents.networks.meta_gradient import outer_gradient
from perdure.agents.networks.policies import policy_for
from perdure.agents.networks.products import products
from perdure.agents.networks.settings import Ranges, TorchSettings
from perdure.agents.networks.tensors import CACHE, CPU, to_array, to_float, to_tensor
from perdure.agents.networks.trust_region import natural_step
from perdure.errors import AgentFault, SpecError
from perdure.pools import thread_map
from perdure.spaces import FLAT, POLICIES
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Measures, Setup, State


@dataclass(frozen=True, kw_only=True)
class MAMLSettings(TorchSettings):
    """See :class:`MAMLAgent`."""

    agent = "maml"
    ranges: ClassVar[Ranges] = {
        **TorchSettings.ranges,
        "inner_lr": (0, inf),
        "inner_steps": (1, inf),
        "shots": (1, inf),
        "tasks": (1, inf),
        "gamma": (0, 1),
        "lam": (0, 1),
        "epochs": (1, inf),
        "clip": (0, inf),
        "kl": (1e-12, inf),
        "std": (1e-6, inf),
    }

    inner_lr: float = 0.05
    inner_steps: int = 1
    shots: int = 10
    tasks: int = 20
    gamma: float = 0.99
    lam: float = 1.0
    outer: Literal["ppo", "trpo"] = "ppo"
    lr: float = 1e-3
    epochs: int = 5
    clip: float = 0.3
    kl: float = 0.01
    hidden: Sequence[int] = (100, 100)
    std: float = 1.0
    greedy: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.outer not in ("ppo", "trpo"):
            raise SpecError(f"maml: outer must be 'ppo' or 'trpo', got {self.outer!r}")


class MAMLAgent(TorchAgent):
    """Model-agnostic meta-learning with policy gradients (Finn et al., 2017).

    In a trial the policy plays ``shots`` episodes and takes a gradient step of size ``inner_lr`` on what
    they returned, ``inner_steps`` times over; the trial's other episodes it plays with the weights that
    came of it. So a trial to learn from has more than ``shots`` × ``inner_steps`` episodes: as many again
    in the paper. After every ``tasks`` such trials, and at the end of a block that has fewer, the weights that all
    trials begin with are improved,
    by what the adapted policies returned, through the steps of adaptation and their second
    derivatives. The weights of all tasks are one batch.

    The inner objective is the mean of (π(a|s) / π_played(a|s)) A, whose gradient is the policy gradient
    and whose second derivative tells how the first episodes are best played (Rothfuss et al., 2019).
    Advantages are measured against a linear baseline for each trial and stage, and normalised.

    ``outer`` is ``ppo``: ``epochs`` steps of the ``optimizer`` on the clipped objective; or ``trpo``: one
    step within a bound of ``kl`` on the mean divergence of the adapted policies. In adapt blocks only the
    adapted weights change; evaluation after it does what is most probable if ``greedy``.

    The defaults are those of Meta-World's paper, with those of Rothfuss et al. and garage where it gives
    none. Presets: ``newer`` is Meta-World+ (its trials have 20 episodes); ``garage`` its example; ``quick``
    learns the toy families in minutes.
    """

    net: AdaptablePolicy
    learns_from = ("environments",)
    needs_rewards = True
    reads, acts_in = FLAT, POLICIES
    memory_scope = "trial"
    needs_trials = True
    closed = (
        "its steps go through the adaptation to whole trials, which a penalty or a mask on gradients "
        "would not pass; use it with rl2 or ppo"
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "newer": {"inner_lr": 0.1, "outer": "trpo", "hidden": (512, 512), "std": 1.0},
        "garage": {"inner_lr": 0.1, "outer": "trpo", "hidden": (100, 100)},
        "quick": {
            "inner_lr": 0.1,
            "shots": 5,
            "gamma": 0.95,
            "lam": 0.95,
            "lr": 3e-3,
            "hidden": (32, 32),
            "std": 0.5,
        },
    }

    @takes_fields(MAMLSettings)
    def __init__(self, setup: Setup, settings: MAMLSettings) -> None:
        super().__init__(setup, **settings.shared)
        s = self.settings = settings
        self.inputs = Inputs(setup.observation_space, self.device)
        self.policy = policy_for(setup.action_space, s.std)
        self.net = network(
            setup,
            self.device,
            lambda: AdaptablePolicy(self.inputs, self.policy, s.hidden),
            s.layer_norm,
        )
        self.weights: Weights = list(self.net.parameters())
        self.optimizer = s.make_optimizer(self.net.parameters()) if s.outer == "ppo" else None
        gaussian = self.net.spread and s.inner_steps == 1 and not s.layer_norm
        self.written_out = gaussian and s.outer == "ppo"
        """Whether the outer gradient needs no autograd."""
        self.trials: list[Trial] = []
        """Trials that are over and not yet learned from."""
        self.learned: Measures | None = None
        self.now: dict[str, Array] = {}
        """What acting found out, until learning is told what came of it."""
        slots = setup.slots
        self.rows: list[list[dict[str, Any]]] = [[] for _ in range(slots)]
        """The steps of each slot's trial."""
        self.episodes: Array = np.zeros(slots, np.int64)
        """Episodes of it that are over."""
        self.stage: Array = np.zeros(slots, np.int64)
        """Times it has adapted."""
        self.meta_training: Array = np.zeros(slots, bool)
        self.least_shots = s.shots * s.inner_steps
        self.least_trial = self.least_shots + 1
        self.updated = False
        """Whether the present block was learned from."""
        size = sum(w.numel() for w in self.weights)
        self.adapted: Tensor = torch.zeros(slots, size, device=self.device)
        """Each slot's weights, where it has adapted."""

    # Memory: the steps of a trial and the weights that came of them.

    def reset_memory(self, slots: Array) -> None:
        for slot in slots:
            if self.meta_training[slot]:
                self._finish(int(slot), whole=True)
        self._forget(slots)

    def _forget(self, slots: Array) -> None:
        for slot in slots:
            self.rows[slot] = []
        self.episodes[slots] = self.stage[slots] = 0
        self.meta_training[slots] = False

    def memory(self) -> State:
        out: dict[str, Array] = {
            "episodes": self.episodes.copy(),
            "stage": self.stage.copy(),
            "meta_training": self.meta_training.copy(),
            "adapted": to_array(self.adapted)[self.stage > 0],
        }
        for slot, mine in enumerate(self.rows):
            out |= {f"rows{slot}.{name}": column for name, column in columns_of(mine).items()}
        return out

    def load_memory(self, memory: State) -> None:
        if not memory:
            return
        self.episodes, self.stage = np.array(memory["episodes"]), np.array(memory["stage"])
        self.meta_training = np.array(memory["meta_training"])
        has_adapted = to_tensor(np.flatnonzero(self.stage), self.device)
        self.adapted[has_adapted] = to_tensor(memory["adapted"], self.device)
        for slot in range(len(self.rows)):
            columns = _below(f"rows{slot}.", memory)
            count = len(columns.get("rewards", ()))
            self.rows[slot] = [{n: c[k] for n, c in columns.items()} for k in range(count)]

    def _finish(self, slot: int, whole: bool) -> None:
        """A trial is over: keep it if it has episodes of the adapted policy."""
        columns = columns_of(self.rows[slot])
        if not columns:
            return
        ends = np.flatnonzero(columns["ended"])
        until = int(ends[-1]) + 1 if len(ends) else 0
        columns = {n: c[:until] for n, c in columns.items()}
        if (columns["stage"] == self.settings.inner_steps).any():
            self.trials.append(columns)
        elif whole:
            raise AgentFault(
                f"maml adapts to {self.least_shots} episodes of a trial and learns from "
                f"those after them, but a trial had {self.episodes[slot]}: give it trials of at least "
                f"{self.least_trial} (trial=… of the curriculum), or fewer shots"
            )

    # Acting and learning.

    def act(self, obs: Any, ctx: Context) -> Array:
        if ctx.learning and len(self.trials) >= self.settings.tasks:
            self.learned = self.update(ctx.progress)
        x, slots = self.inputs(obs), ctx.slots
        with torch.inference_mode():
            terms = self._terms_of(x, slots)
            outputs = terms[:, : self.policy.outputs]
            if not ctx.learning:
                sampled = self.policy.sample(outputs, None if self.settings.greedy else self.rng)
                return self.policy.to_space(sampled)
            sampled = self._sample(terms)
            log_prob = self.policy.scored(terms, to_tensor(sampled, self.device))
        self.now = {"obs": to_array(x), "sampled": sampled, "log_prob": to_array(log_prob)}
        return self.policy.to_space(sampled)

    def _terms_of(self, x: Tensor, slots: Array) -> Tensor:
        """What each slot's own policy says."""
        adapted = self.stage[slots] > 0
        out = self.net.terms(x.unsqueeze(0), [w.unsqueeze(0) for w in self.weights])
        if adapted.any():
            own = self._unflat(self.adapted[to_tensor(slots[adapted], self.device)])
            mine = to_tensor(np.flatnonzero(adapted), self.device)
            out[mine] = self.net.terms(x[mine].unsqueeze(1), own)
        return out

    def _sample(self, terms: Tensor) -> Array:
        if not self.net.spread:
            return self.policy.sample(terms, self.rng)
        mean, log_std = map(to_array, terms.chunk(2, dim=1))
        noisy: Array = mean + np.exp(log_std) * self.rng.standard_normal(mean.shape)
        return noisy.astype(np.float32)

    def _unflat(self, flat: Tensor) -> Weights:
        """(tasks, numbers) as weights."""
        parts = torch.split(flat, [w.numel() for w in self.weights], dim=1)
        return [p.view(-1, *w.shape) for p, w in zip(parts, self.weights, strict=True)]

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        moves, rewards = transitions_of("maml", batch)
        ended = moves.terminated | moves.truncated
        due = []
        for k, slot in enumerate(ctx.slots):
            self.meta_training[slot] = ctx.kind == "learn"
            if self.stage[slot] < self.settings.inner_steps or self.meta_training[slot]:
                row = {name: value[k] for name, value in self.now.items()}
                row |= {"rewards": np.float32(rewards[k]), "ended": ended[k]}
                row["stage"] = self.stage[slot]
                self.rows[slot].append(row)
            if ended[k]:
                self.episodes[slot] += 1
                over = self.episodes[slot] == self.settings.shots * (self.stage[slot] + 1)
                if over and self.stage[slot] < self.settings.inner_steps:
                    due.append(int(slot))
        if due:
            self._adapt(np.array(due))
        measures, self.learned = self.learned, None
        return measures

    def _adapt(self, slots: Array) -> None:
        """A gradient step of each of these slots on its last episodes."""
        before = torch.cat([w.detach().reshape(-1) for w in self.weights])
        flat = before.repeat(len(slots), 1)
        mine = to_tensor(slots, self.device)
        again = to_tensor(self.stage[slots] > 0, self.device).unsqueeze(1)
        flat = torch.where(again, self.adapted[mine], flat)
        columns = [columns_of(self.rows[slot]) for slot in slots]
        data = self.stage_data(
            [rows_at(c, int(self.stage[s])) for c, s in zip(columns, slots, strict=True)]
        )
        fast = self.inner_step(self._unflat(flat), data, False)
        self.adapted[mine] = torch.cat([w.flatten(1) for w in fast], 1)
        self.stage[slots] += 1

    def leave(self, ctx: Context) -> None:
        if not ctx.learning or ctx.kind != "learn":
            return
        for slot in np.flatnonzero(self.meta_training):
            self._finish(int(slot), whole=False)
        self._forget(np.arange(len(self.rows)))
        if self.trials and (2 * len(self.trials) >= self.settings.tasks or not self.updated):
            self.update(ctx.progress)
        self.trials, self.updated = [], False

    def enter(self, ctx: Context) -> None:
        if self.optimizer is not None and ctx.learning and ctx.event == "block":
            self.optimizer.restart_schedule()

    # The outer step.

    def update(self, progress: float = 0.0) -> Measures:
        """Improve the weights that trials begin with, then forget the trials."""
        stages = [
            self.stage_data([rows_at(trial, k) for trial in self.trials])
            for k in range(self.settings.inner_steps + 1)
        ]
        for trial in self.trials:
            self.probe_inputs(to_tensor(trial["obs"], self.device))
        self.trials, self.updated = [], True
        with torch.no_grad():
            old = self.net.terms(stages[-1]["obs"], self.adapt(stages))

        def surrogate() -> Tensor:
            return self.ratios(stages).mul(stages[-1]["advantages"]).sum(1).mean()

        def divergence() -> Tensor:
            new = self.net.terms(stages[-1]["obs"], self.adapt(stages))
            apart = self.policy.divergence(old, new).view_as(stages[-1]["share"])
            return (apart * stages[-1]["share"]).sum(1).mean()

        if self.optimizer is None:
            with self._products(stages):
                found = natural_step(surrogate, divergence, self.weights, self.settings.kl)
            return dict(zip(("gain", "kl", "step"), found, strict=True))
        before = 0.0
        for k in range(self.settings.epochs):
            self.optimizer.advance(progress)
            value = self.climb(stages)
            before = before if k else value
        with torch.no_grad():
            return {
                "gain": to_float(self.objective(stages)) - before,
                "kl": to_float(divergence()),
            }

    def climb(self, stages: Sequence[Minibatch]) -> float:
        """One step of the optimiser up the objective, and what it was. Tasks are taken together as far as their
        layers stay in a core's cache: more at a time save operations, and then cost more than that."""
        assert self.optimizer is not None
        tasks, rows = stages[-1]["log_prob"].shape
        room = 2 * CACHE if self.written_out else CACHE
        at_once = max(1, room // (rows * max(self.settings.hidden)))
        self.optimizer.zero_grad()
        total = 0.0
        groups = [
            [{n: v[first : first + at_once] for n, v in s.items()} for s in stages]
            for first in range(0, tasks, at_once)
        ]
        apart = len(groups) if self.written_out and self.device == CPU else 1
        with self._products(stages), thread_map(apart) as map_each:
            # Gradients are added in the order of the groups, whoever computed them.
            for value, found in map_each(self._gradient, groups):
                total += to_float(value) / tasks
                for w, g in zip(self.weights, found, strict=True):
                    assert w.grad is not None
                    w.grad += g
        for w in self.weights:
            assert w.grad is not None
            w.grad.div_(-tasks)
        self.optimizer.step()
        return total

    def _products(self, stages: Sequence[Minibatch]) -> AbstractContextManager[None]:
        """Each task's rows pass through weights of their own."""
        return products(stages[-1]["log_prob"].shape[1] * max(w.numel() for w in self.weights))

    def _gradient(self, stages: Sequence[Minibatch]) -> tuple[Tensor, Sequence[Tensor]]:
        """The objective, summed over tasks, and its gradient."""
        if not self.written_out:
            value = self.objective(stages) * len(stages[0]["obs"])
            return value.detach(), torch.autograd.grad(value, self.weights)
        with torch.no_grad():
            return outer_gradient(self.weights, stages, self.settings.inner_lr, self.settings.clip)

    def predict(self, batch: Minibatch) -> Tensor:
        """What the policy says that all trials begin with."""
        return self.net.terms(batch["obs"].unsqueeze(0), [w.unsqueeze(0) for w in self.weights])

    def objective(self, stages: Sequence[Minibatch]) -> Tensor:
        """PPO's clipped objective of the adapted policies, as a function of the weights that they
        were adapted from: the mean over tasks."""
        last = stages[-1]
        ratio, advantages = self.ratios(stages), last["advantages"]
        clipped = ratio.clamp(1 - self.settings.clip, 1 + self.settings.clip)
        return torch.min(ratio * advantages, clipped * advantages).sum(1).mean()

    def ratios(self, stages: Sequence[Minibatch]) -> Tensor:
        """How much more probable the adapted policies make what was done than those that did it."""
        return self._ratios(self.adapt(stages), stages[-1])

    def adapt(self, stages: Sequence[Minibatch]) -> Weights:
        """The weights of each task after all steps of adaptation. Where gradients are recorded, they
        go through these."""
        tasks, recorded = len(stages[0]["obs"]), torch.is_grad_enabled()
        fast = [w.unsqueeze(0).expand(tasks, *w.shape) for w in self.weights]
        for data in stages[:-1]:
            fast = self.inner_step(fast, data, recorded)
        return fast

    def inner_step(self, fast: Weights, data: Minibatch, recorded: bool) -> Weights:
        """A gradient step of every task on its own steps."""
        with torch.enable_grad():
            if not recorded:
                fast = [w.detach().clone().requires_grad_() for w in fast]
            gains = (self._ratios(fast, data) * data["advantages"]).sum()
            found = torch.autograd.grad(gains, fast, create_graph=recorded)
        stepped = [w + self.settings.inner_lr * g for w, g in zip(fast, found, strict=True)]
        return stepped if recorded else [w.detach() for w in stepped]

    def _ratios(self, weights: Weights, data: Minibatch) -> Tensor:
        terms = self.net.terms(data["obs"], weights)
        log_prob = self.policy.scored(terms, data["sampled"].flatten(0, 1))
        return torch.exp(log_prob.view_as(data["log_prob"]) - data["log_prob"])

    def stage_data(self, trials: Sequence[Trial]) -> Minibatch:
        """The steps of several tasks as one batch."""
        return trial_batch(trials, self.settings.gamma, self.settings.lam, self.device)

    def state(self) -> dict[str, Array]:
        out = pack(self.net, "net")
        if self.optimizer is not None:
            out |= self.optimizer.state("optimizer")
        for k, trial in enumerate(self.trials):
            out |= {f"trial{k}.{name}": column.copy() for name, column in trial.items()}
        out |= {"updated": np.array(self.updated)}
        out |= {} if self.probe is None else self.probe.state()
        out |= {f"learned.{name}": np.array(v) for name, v in (self.learned or {}).items()}
        return out

    def load(self, state: State) -> None:
        if self.probe is not None:  # Before the weights it began with are gone.
            self.probe.load(state)
        unpack(self.net, "net", state)
        if self.optimizer is not None:
            self.optimizer.load("optimizer", state)
        self.trials, self.updated = [], bool(state["updated"])
        while columns := _below(f"trial{len(self.trials)}.", state):
            self.trials.append(columns)
        self.learned = {k: float(v) for k, v in _below("learned.", state).items()} or None


def _below(prefix: str, state: State) -> dict[str, Array]:
    return {k[len(prefix) :]: np.asarray(v) for k, v in state.items() if k.startswith(prefix)}


agent = MAMLAgent
