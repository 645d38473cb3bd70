"""PPO: proximal policy optimisation for discrete (one or several at once) and continuous actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from perdure.agents.networks.checks import transitions_of
from perdure.agents.networks.encoders import encoder_for, with_linear_head
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import (
    LEAST_STD,
    Minibatch,
    TorchLearner,
    network,
    new_rows,
)
from perdure.agents.networks.policies import Policy, policy_for
from perdure.agents.networks.rollout_buffer import (
    Baseline,
    RolloutBuffer,
    advantages_and_returns,
    baseline_for,
)
from perdure.agents.networks.settings import Ranges, RolloutSettings
from perdure.agents.networks.tensors import to_tensor
from perdure.spaces import ALL, POLICIES
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Measures, Setup, State


@dataclass(frozen=True, kw_only=True)
class PPOSettings(RolloutSettings):
    """See :class:`PPOAgent`."""

    agent = "ppo"
    ranges: ClassVar[Ranges] = {
        **RolloutSettings.ranges,
        "batch": (2, inf),
        "clip": (0, inf),
        "entropy": (0, inf),
        "floor": (0, inf),
    }

    lr: float = 3e-4
    network: str = ""
    rollout: int = 2048
    clip: float = 0.2
    entropy: float = 0.0
    floor: float = 0.0
    baseline: Baseline = "mlp"
    normalise: bool = True
    max_grad: float = 0.5


class ActorCritic(nn.Module):
    """Two networks: the policy's outputs, and the value unless a linear baseline does its work. They
    share nothing, because errors of the value may be of any size and would drown the policy in a
    common encoder."""

    def __init__(
        self,
        inputs: Inputs,
        policy: Policy,
        hidden: Sequence[int],
        baseline: Baseline,
        network: str = "",
    ) -> None:
        super().__init__()
        self.policy = policy

        def made(outputs: int, gain: float) -> nn.Sequential:
            encoder = encoder_for(inputs, hidden, network=network)
            return with_linear_head(*encoder, outputs, gain, bool(network))

        self.actor = made(policy.outputs, 0.01)
        self.critic = made(1, 1.0) if baseline == "mlp" else None


class PPOAgent(TorchLearner):
    """Clipped PPO with generalised advantages.

    After every ``rollout`` steps of each task that runs side by side, it learns them ``epochs``
    times in minibatches of ``batch`` rows of each such task. In evaluation it does what is most
    probable if ``greedy``. ``std`` is the first spread of continuous actions, in units of half
    their range. ``network=file.py:Net`` puts networks of one's own in the place of ``hidden``, one for
    the policy and one for the values.

    ``baseline`` says what a step is compared with: a network of values, or a ``linear`` fit to the
    returns of the rollout, one for each task.

    Advantages are divided by their spread, or by ``floor`` where that is more. Where nothing is
    earned, as when the task has just changed, advantages are noise; blown up to unit spread it
    would drown the entropy, and a policy that settled on the last task would never try anything
    else. A floor of 0 is the textbook's normalisation. Without ``normalise`` they are left as they
    are.

    Each slot's steps are a trajectory of their own, so slots may come and go. A trajectory is cut
    where an episode ends, where the rollout ends and where the task ends; except at a true end it
    is continued by the value of the observation that followed. At the end of a task, what was
    gathered since the last update is learned at once if it makes a minibatch and dropped if not:
    nothing is carried into the next task.

    The defaults are Stable-Baselines3's. Presets: ``quick`` learns small tasks in some thousand steps
    and holds on to exploring, for lifetimes of many short tasks; ``paper`` is Meta-World's of 2019 (ten episodes of 150 steps a task), completed by
    garage's values where the paper gives none; ``newer`` is that of Meta-World+.
    """

    learns_from = ("environments",)
    needs_rewards = True
    reads, acts_in = ALL, POLICIES
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "lr": 2e-3,
            "gamma": 0.95,
            "rollout": 128,
            "epochs": 8,
            "entropy": 0.03,
            "floor": 1.0,
            "std": 0.5,
        },
        "paper": {
            "lr": 2.5e-4,
            "gamma": 0.99,
            "rollout": 1500,
            "epochs": 10,
            "entropy": 0.0,
            "floor": 0.0,
            "baseline": "linear",
            "std": 2.0,
            "max_grad": inf,
        },
        "newer": {
            "lr": 3e-4,
            "gamma": 0.99,
            "lam": 0.97,
            "rollout": 10_000,
            "batch": 312,
            "epochs": 16,
            "entropy": 5e-3,
            "hidden": (400, 400, 400),
            "baseline": "linear",
            "std": 1.0,
            "normalise": False,
            "max_grad": 1.0,
        },
    }

    non_policy_parameters = ("policy.log_std", "critic.")
    net: ActorCritic
    value_weight = 0.5

    @takes_fields(PPOSettings)
    def __init__(self, setup: Setup, settings: PPOSettings) -> None:
        super().__init__(setup, **settings.shared)
        s = self.settings = settings
        self.inputs = Inputs(setup.observation_space, self.device)
        baseline = baseline_for("ppo", s.baseline, self.inputs)
        self.policy = policy_for(setup.action_space, s.std)
        self.predicts = self.policy.predicts
        self.net = network(
            setup,
            self.device,
            lambda: ActorCritic(self.inputs, self.policy, s.hidden, baseline, s.network),
            s.layer_norm,
        )
        self.optimizer, self.max_grad = s.make_optimizer(self.net.parameters()), s.max_grad
        self.rows = RolloutBuffer(setup, self.inputs, self.policy, s.rollout)

    def act(self, obs: Any, ctx: Context) -> Array:
        with torch.inference_mode():
            outputs = self.net.actor(self.inputs(obs))
            return self.rows.choose(outputs, ctx, self.rng, self.settings.greedy)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        moves, rewards = transitions_of("ppo", batch)
        return self.update(ctx.progress) if self.rows.add(moves, rewards, ctx) else None

    def leave(self, ctx: Context) -> None:
        # The innermost boundary comes first and leaves nothing for the outer ones.
        if ctx.learning and len(self.rows) >= self.settings.batch * self.rows.parallel_tasks:
            self.update(ctx.progress)
        elif ctx.learning:
            self.rows.clear()

    def update(self, progress: float = 0.0) -> Measures:
        """Learn the rollout, then forget it. ``progress`` is the part of the exposure that is done."""
        data = self.rollout_data()
        self.collect(new_rows(data))
        n = len(data["obs"])
        parts = max(1, round(n / (self.settings.batch * self.rows.parallel_tasks)))
        totals: dict[str, float] = {}
        for _ in range(self.settings.epochs):
            order = to_tensor(self.rng.permutation(n), self.device)
            # Minibatches as even as can be: a last one of a few rows would be mostly noise.
            for rows in order.tensor_split(parts):
                self.optimizer.advance(progress)
                for name, value in self.descend({k: v[rows] for k, v in data.items()}).items():
                    totals[name] = totals.get(name, 0.0) + value
        self.rows.clear()
        return {name: total / (self.settings.epochs * parts) for name, total in totals.items()}

    def rollout_data(self) -> Minibatch:
        """The rollout as one batch, with advantages and returns by the policy that made it."""
        rows = self.rows.trajectories()
        obs, after = self.rows.observations(rows)
        sampled = to_tensor(rows["sampled_actions"], self.device)
        with torch.inference_mode():
            log_prob, _ = self.policy.log_prob(self.net.actor(obs), sampled)
        advantages, returns = advantages_and_returns(
            rows, obs, after, self.net.critic, self.settings.gamma, self.settings.lam
        )
        return {
            "obs": obs,
            "sampled_actions": sampled,
            # Cloned because tensors made in inference mode may not meet autograd.
            "log_prob": log_prob.clone(),
            "advantages": advantages,
            "returns": returns,
        }

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        s = self.settings
        log_prob, entropy = self.policy.log_prob(self.predict(batch), batch["sampled_actions"])
        advantages = batch["advantages"]
        if s.normalise:
            advantages = advantages - advantages.mean()
            advantages = advantages / advantages.std(unbiased=False).clamp(min=max(s.floor, 1e-8))
        ratio = torch.exp(log_prob - batch["log_prob"])
        clipped = ratio.clamp(1 - s.clip, 1 + s.clip)
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        spread = entropy.mean()
        loss = policy_loss - s.entropy * spread
        measures: dict[str, Tensor] = {}
        if self.net.critic is not None:
            values = self.net.critic(batch["obs"]).squeeze(1)
            value_loss = nn.functional.mse_loss(values, batch["returns"])
            loss = loss + self.value_weight * value_loss
            measures["value_loss"] = value_loss.detach()
        return loss, {"loss": loss.detach(), **measures, "entropy": spread.detach()}

    def predict(self, batch: Minibatch) -> Tensor:
        outputs: Tensor = self.net.actor(batch["obs"])
        return outputs

    def predict_values(self, batch: Minibatch) -> Tensor | None:
        return None if self.net.critic is None else self.net.critic(batch["obs"])

    def output_fisher(self, batch: Minibatch, outputs: Tensor) -> Tensor:
        return self.policy.fisher(outputs).clamp(max=LEAST_STD**-2)

    def state(self) -> dict[str, Array]:
        return {**super().state(), **self.rows.state()}

    def load(self, state: State) -> None:
        super().load(state)
        self.rows.load(state)


agent = PPOAgent
