"""Recurrent PPO: a GRU that remembers through an episode, or through all episodes of a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.checks import transitions_of
from perdure.agents.networks.encoders import encoder_for
from perdure.agents.networks.gru import GRU
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import Minibatch, TorchLearner, network, new_rows
from perdure.agents.networks.policies import Policy, policy_for
from perdure.agents.networks.rollout_buffer import gae
from perdure.agents.networks.settings import Ranges, RolloutSettings
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.errors import SpecError
from perdure.spaces import ALL, POLICIES
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Measures, Scope, Setup, State, Transitions


@dataclass(frozen=True, kw_only=True)
class RecurrentPPOSettings(RolloutSettings):
    """See :class:`RecurrentPPOAgent`."""

    agent = "recurrent_ppo"
    ranges: ClassVar[Ranges] = {
        **RolloutSettings.ranges,
        "sequence": (1, inf),
        "width": (1, inf),
        "clip": (0, inf),
        "entropy": (0, inf),
    }

    scope: Scope = "episode"
    lr: float = 2e-3
    gamma: float = 0.95
    rollout: int = 512
    sequence: int = 32
    batch: int = 16
    epochs: int = 4
    clip: float = 0.2
    entropy: float = 0.02
    hidden: Sequence[int] = (32,)
    width: int = 32
    std: float = 0.5
    max_grad: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scope not in ("episode", "trial"):
            raise SpecError(f"{self.agent}: scope must be 'episode' or 'trial', got {self.scope!r}")


class RecurrentActorCritic(nn.Module):
    """An encoder of each step's inputs, a GRU over the steps, and two linear heads."""

    def __init__(
        self, inputs: Inputs, extras: int, policy: Policy, hidden: Sequence[int], width: int
    ) -> None:
        super().__init__()
        self.policy, self.flat = policy, int(np.prod(inputs.shape))
        self.shape = inputs.shape
        self.encoder, features = encoder_for(inputs, hidden)
        self.gru = GRU(features + extras, width)
        self.actor, self.critic = nn.Linear(width, policy.outputs), nn.Linear(width, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)
        nn.init.zeros_(self.actor.bias)

    def forward(self, x: Tensor, memory: Tensor, start: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(sequences, steps, inputs) to the policy's outputs and values of every step, and the
        memory after the last."""
        n, steps = x.shape[:2]
        obs = x[..., : self.flat].reshape(n * steps, *self.shape)
        encoded = torch.cat([self.encoder(obs).view(n, steps, -1), x[..., self.flat :]], 2)
        seen, after = self.gru(encoded, memory, start)
        return self.actor(seen), self.critic(seen).squeeze(2), after


class RecurrentPPOAgent(TorchLearner):
    """Clipped PPO with a recurrent policy (GRU). Each step it reads the observation, its last
    action, the reward that this brought and whether an episode has just begun.

    ``scope`` says how long it remembers: through an ``episode``; or through a ``trial``, whose
    episodes are then one long one to it: their rewards add up, and only the trial's end is an end
    (the RL² objective of Duan et al., 2016, and Wang et al., 2016). In evaluation the last reward
    is 0 where the block does not show rewards.

    After ``rollout`` steps of all slots together it learns them ``epochs`` times, in sequences of
    at most ``sequence`` steps, each begun with the memory that it had when it was played;
    ``batch`` of them in a minibatch.
    """

    learns_from = ("environments",)
    needs_rewards = True
    reads, acts_in = ALL, POLICIES
    sequences = True
    net: RecurrentActorCritic
    value_weight = 0.5

    settings: RecurrentPPOSettings

    @takes_fields(RecurrentPPOSettings)
    def __init__(self, setup: Setup, settings: RecurrentPPOSettings) -> None:
        self.begin(setup, settings)

    def begin(self, setup: Setup, settings: RecurrentPPOSettings) -> None:
        """What the constructor does, whose settings may be a record with more in it."""
        super().__init__(setup, **settings.shared)
        s = self.settings = settings
        self.memory_scope = s.scope
        self.inputs = Inputs(setup.observation_space, self.device)
        self.policy = policy_for(setup.action_space, s.std)
        self.predicts = self.policy.predicts
        extras = self.policy.outputs + 2
        self.net = network(
            setup,
            self.device,
            lambda: RecurrentActorCritic(self.inputs, extras, self.policy, s.hidden, s.width),
            s.layer_norm,
        )
        self.optimizer, self.max_grad = s.make_optimizer(self.net.parameters()), s.max_grad
        self.hidden: Array = np.zeros((setup.slots, s.width), np.float32)
        self.extras: Array = np.zeros((setup.slots, extras), np.float32)
        """For each slot: its last action, the reward it brought, and whether an episode begins."""
        self.rows: list[list[dict[str, Any]]] = [[] for _ in range(setup.slots)]
        """The steps of each slot since the last update."""
        self.now: dict[str, Array] = {}
        """What acting found out, until learning is told what came of it."""
        self.learned: Measures | None = None

    # Memory.

    def reset_memory(self, slots: Array) -> None:
        self.hidden[slots] = 0.0
        self.extras[slots] = 0.0

    def memory(self) -> State:
        return {"hidden": self.hidden.copy(), "extras": self.extras.copy()}

    def load_memory(self, memory: State) -> None:
        if memory:
            self.hidden, self.extras = np.array(memory["hidden"]), np.array(memory["extras"])

    def _remember(self, slots: Array, sampled: Array, rewards: Array | None, ended: Array) -> None:
        """The last action and its reward, for the next step."""
        self.extras[slots] = 0.0
        self.extras[slots, : self.policy.outputs] = self.policy.as_inputs(sampled)
        if rewards is not None:
            self.extras[slots, -2] = rewards
        self.extras[slots, -1] = ended

    # Acting and learning.

    def act(self, obs: Any, ctx: Context) -> Array:
        slots = ctx.slots
        x = self._inputs(obs, slots)
        outputs, values, after = self._forward(x, slots)
        training = self.trains(ctx)
        if training and self.due(ctx):
            self._bootstrap(slots, values, ctx)
            self.learned = self.update(ctx.progress)
            outputs, values, after = self._forward(x, slots)
        explore = ctx.learning or not self.settings.greedy
        sampled = self.policy.sample(outputs, self.rng if explore else None)
        if training:
            with torch.inference_mode():
                log_prob, _ = self.policy.log_prob(outputs, self._tensor(sampled))
            start = ctx.trial_start if self.memory_scope == "trial" else ctx.episode_start
            self.now = {
                "inputs": x, "hidden": self.hidden[slots].copy(), "sampled": sampled,
                "log_prob": to_array(log_prob), "value": values, "start": start[slots].copy(),
            }  # fmt: skip
        else:
            self.now = {"sampled": sampled}
        self.hidden[slots] = after
        return self.policy.to_space(sampled)

    def trains(self, ctx: Context) -> bool:
        """Whether the steps here are kept and learned from."""
        return ctx.learning

    def due(self, ctx: Context) -> bool:
        """Whether there are enough steps to learn from."""
        return sum(map(len, self.rows)) >= self.settings.rollout

    def _inputs(self, obs: Any, slots: Array) -> Array:
        flat = to_array(self.inputs(obs).flatten(1))
        return np.concatenate([flat, self.extras[slots]], axis=1)

    def _forward(self, x: Array, slots: Array) -> tuple[Tensor, Array, Array]:
        with torch.inference_mode():
            never = self._tensor(np.zeros((len(x), 1), bool))
            memory = self._tensor(self.hidden[slots])
            outputs, values, after = self.net(self._tensor(x)[:, None], memory, never)
        return outputs[:, 0], to_array(values[:, 0]), to_array(after)

    def _tensor(self, array: Array) -> Tensor:
        return to_tensor(array, self.device)

    def observe(self, batch: Transitions, ctx: Context) -> None:
        ended = batch.terminated | batch.truncated
        self._remember(ctx.slots, self.now["sampled"], batch.rewards, ended)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        moves, rewards = transitions_of("recurrent_ppo", batch)
        ended = moves.terminated | moves.truncated
        self._remember(ctx.slots, self.now["sampled"], rewards, ended)
        last = np.zeros(len(moves), np.float32)
        if self.memory_scope == "episode" and moves.truncated.any():
            # An episode that was cut short is continued by the value of what it would have seen.
            follow = self._forward(self._inputs(moves.next_obs, ctx.slots), ctx.slots)[1]
            last = np.where(moves.truncated & ~moves.terminated, follow, 0.0)
        for k, slot in enumerate(ctx.slots):
            row = {name: value[k] for name, value in self.now.items()}
            row |= {"reward": rewards[k], "last_value": last[k], "cut": False}
            if self.memory_scope == "episode":
                row["cut"] = bool(ended[k])
            mine = self.rows[slot]
            if mine and row["start"]:
                mine[-1]["cut"] = True
            mine.append(row)
        measures, self.learned = self.learned, None
        return measures

    def _bootstrap(self, slots: Array, values: Array, ctx: Context) -> None:
        """Continue what goes on by the value of what is seen now; a trial that is over is over."""
        start = ctx.trial_start if self.memory_scope == "trial" else ctx.episode_start
        for k, slot in enumerate(slots):
            mine = self.rows[slot]
            if mine and not mine[-1]["cut"] and not start[slot]:
                mine[-1]["last_value"] = values[k]

    def leave(self, ctx: Context) -> None:
        # The innermost boundary comes first and leaves nothing for the outer ones.
        if ctx.learning and 2 * sum(map(len, self.rows)) >= self.settings.rollout:
            self.update(ctx.progress)
        elif ctx.learning:
            self._clear()

    def _clear(self) -> None:
        self.rows = [[] for _ in self.rows]

    def update(self, progress: float = 0.0) -> Measures:
        """Learn the rollout, then forget it. ``progress`` is the part of the exposure that is done."""
        data = self.rollout_data()
        self.collect(new_rows(data))
        n = len(data["obs"])
        parts = max(1, round(n / self.settings.batch))
        totals: dict[str, float] = {}
        for _ in range(self.settings.epochs):
            order = self._tensor(self.rng.permutation(n))
            for some in order.tensor_split(parts):
                self.optimizer.advance(progress)
                for name, value in self.descend({k: v[some] for k, v in data.items()}).items():
                    totals[name] = totals.get(name, 0.0) + value
        self._clear()
        return {name: total / (self.settings.epochs * parts) for name, total in totals.items()}

    def rollout_data(self) -> Minibatch:
        """The rollout as sequences of one length, padded at their ends; ``mask`` says what counts."""
        sequences: list[dict[str, Array]] = []
        for mine in (rows for rows in self.rows if rows):
            columns = {name: np.array([row[name] for row in mine]) for name in mine[0]}
            cut = columns["cut"].copy()
            cut[-1] = True
            after = np.where(cut, columns["last_value"], np.append(columns["value"][1:], 0.0))
            columns["advantages"] = gae(
                columns["reward"],
                columns["value"],
                after,
                cut,
                self.settings.gamma,
                self.settings.lam,
            )
            columns["returns"] = columns["advantages"] + columns["value"]
            for first in range(0, len(mine), self.settings.sequence):
                part = {k: v[first : first + self.settings.sequence] for k, v in columns.items()}
                sequences.append({**part, "hidden": columns["hidden"][first]})
        for part in sequences:
            part["mask"] = np.ones(len(part["cut"]), bool)
        names = ("mask", "start", "sampled", "log_prob", "advantages", "returns")
        padded = {n: self._tensor(_padded(sequences, n, self.settings.sequence)) for n in names}
        return {
            "obs": self._tensor(_padded(sequences, "inputs", self.settings.sequence)),
            "hidden": self._tensor(np.stack([s["hidden"] for s in sequences])),
            **padded,
        }

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        s = self.settings
        outputs, values, _ = self.net(batch["obs"], batch["hidden"], batch["start"])
        mask = batch["mask"]
        log_prob, entropy = self.policy.log_prob(outputs[mask], batch["sampled"][mask])
        advantages = batch["advantages"][mask]
        advantages = (advantages - advantages.mean()) / (advantages.std(unbiased=False) + 1e-8)
        ratio = torch.exp(log_prob - batch["log_prob"][mask])
        clipped = ratio.clamp(1 - s.clip, 1 + s.clip)
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        value_loss = nn.functional.mse_loss(values[mask], batch["returns"][mask])
        loss = policy_loss + self.value_weight * value_loss - s.entropy * entropy.mean()
        measures = {"loss": loss, "value_loss": value_loss, "entropy": entropy.mean()}
        return loss, {name: value.detach() for name, value in measures.items()}

    def predict(self, batch: Minibatch) -> Tensor:
        outputs: Tensor = self.net(batch["obs"], batch["hidden"], batch["start"])[0]
        return outputs.flatten(0, 1)

    def state(self) -> dict[str, Array]:
        out = super().state()
        for slot, mine in enumerate(self.rows):
            for name in mine[0] if mine else ():
                out[f"rows{slot}.{name}"] = np.array([row[name] for row in mine])
        for name, value in (self.learned or {}).items():
            out[f"learned.{name}"] = np.array(value)
        return out

    def load(self, state: State) -> None:
        super().load(state)
        self._clear()
        for slot, mine in enumerate(self.rows):
            columns = _below(f"rows{slot}.", state)
            for k in range(len(columns.get("cut", ()))):
                mine.append({name: column[k] for name, column in columns.items()})
        self.learned = {k: float(v) for k, v in _below("learned.", state).items()} or None


def _padded(sequences: Sequence[Mapping[str, Array]], name: str, length: int) -> Array:
    first = sequences[0][name]
    out = np.zeros((len(sequences), length, *first.shape[1:]), first.dtype)
    for k, sequence in enumerate(sequences):
        out[k, : len(sequence[name])] = sequence[name]
    return out


def _below(prefix: str, state: State) -> dict[str, Array]:
    return {k[len(prefix) :]: np.asarray(v) for k, v in state.items() if k.startswith(prefix)}


agent = RecurrentPPOAgent
