"""PPO: proximal policy optimisation for discrete and continuous actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.adam import Adam
from perdure.agents.networks.checks import check_ranges, transitions_of
from perdure.agents.networks.encoders import Inputs, encoder_for
from perdure.agents.networks.learner import Minibatch, TorchLearner, network
from perdure.agents.networks.policies import Categorical, Policy, policy_for
from perdure.agents.networks.ring import Ring
from perdure.types import Array, Batch, Context, Measures, State, World


class ActorCritic(nn.Module):
    """Two networks: the policy's outputs, and the value. They share nothing, because errors of the
    value may be of any size and would drown the policy in a common encoder."""

    def __init__(self, inputs: Inputs, policy: Policy, hidden: Sequence[int]) -> None:
        super().__init__()
        self.policy = policy
        # The last gain is small where the first policy should favour nothing.
        self.actor = _network(inputs, hidden, policy.outputs, 0.01)
        self.critic = _network(inputs, hidden, 1, 1.0)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The policy's outputs and the values."""
        return self.actor(x), self.critic(x).squeeze(1)


def _network(inputs: Inputs, hidden: Sequence[int], outputs: int, gain: float) -> nn.Module:
    encoder, features = encoder_for(inputs, hidden)
    head = nn.Linear(features, outputs)
    for layer in (*encoder.modules(), head):
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(layer.weight, gain if layer is head else 2**0.5)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return nn.Sequential(encoder, head)


class PPOAgent(TorchLearner):
    """Clipped PPO with generalised advantages.

    After every ``rollout`` steps, counted over all slots, it learns them ``epochs`` times in
    minibatches of ``batch``. In evaluation it does what is most probable if ``greedy``.

    Advantages are divided by their spread, or by ``floor`` where that is more. Where nothing is
    earned, as when the task has just changed, advantages are noise; blown up to unit spread it
    would drown the entropy, and a policy that settled on the last task would never try anything
    else. A floor of 0 is the textbook's normalisation.

    Each slot's steps are a trajectory of their own, so slots may come and go. A trajectory is cut
    where an episode ends, where the rollout ends and where the task ends; except at a true end it
    is continued by the value of the observation that followed. At the end of a task, what was
    gathered since the last update is learned at once if it makes a minibatch and dropped if not:
    nothing is carried into the next task.
    """

    learns_from = ("environments",)

    net: ActorCritic
    max_grad = 0.5
    value_weight = 0.5

    def __init__(
        self,
        world: World,
        lr: float = 2e-3,
        gamma: float = 0.95,
        lam: float = 0.95,
        rollout: int = 128,
        batch: int = 64,
        epochs: int = 8,
        clip: float = 0.2,
        entropy: float = 0.03,
        floor: float = 1.0,
        hidden: Sequence[int] = (64, 64),
        greedy: bool = True,
    ) -> None:
        super().__init__(world)
        check_ranges("ppo", gamma=(gamma, 0, 1), lam=(lam, 0, 1), epochs=(epochs, 1, np.inf))
        check_ranges("ppo", rollout=(rollout, 2, np.inf), batch=(batch, 2, np.inf))
        for name, value in {"lr": lr, "clip": clip, "entropy": entropy, "floor": floor}.items():
            check_ranges("ppo", **{name: (value, 0, np.inf)})
        self.inputs = Inputs(world.observation_space)
        self.policy = policy_for("ppo", world.action_space)
        self.predicts = "logits" if isinstance(self.policy, Categorical) else "numbers"
        self.net = network(world, lambda: ActorCritic(self.inputs, self.policy, hidden))
        self.optimizer = Adam(self.net.parameters(), lr)
        self.gamma, self.lam, self.clip, self.entropy = gamma, lam, clip, entropy
        self.floor = max(floor, 1e-8)
        self.rollout, self.batch, self.epochs, self.greedy = rollout, batch, epochs, greedy
        seen = (self.inputs.row, self.inputs.dtype)
        self.rows = Ring(
            # A step of all slots may start one row before the rollout is full.
            rollout + world.slots,
            {
                "obs": seen,
                "drawn": (self.policy.row, self.policy.dtype),
                "rewards": ((), np.float32),
                "terminated": ((), np.bool_),
                "truncated": ((), np.bool_),
                "next_obs": seen,
                "slot": ((), np.int64),
            },
        )
        self.drawn: Array = np.empty((0, *self.policy.row), self.policy.dtype)

    def act(self, obs: Any, ctx: Context) -> Array:
        with torch.inference_mode():
            outputs = self.net.actor(self.inputs(obs))
            if not ctx.learning:
                rng = None if self.greedy else self.rng
                return self.policy.to_space(self.policy.draw(outputs, rng))
            # Kept until learn(): clipping into the space must not change what is learned.
            self.drawn = self.policy.draw(outputs, self.rng)
        return self.policy.to_space(self.drawn)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        moves, rewards = transitions_of("ppo", batch)
        self.rows.add(
            len(moves),
            obs=moves.obs,
            drawn=self.drawn,
            rewards=rewards,
            terminated=moves.terminated,
            truncated=moves.truncated,
            next_obs=moves.next_obs,
            slot=ctx.slots,
        )
        self.drawn = self.drawn[:0]
        return self.update() if len(self.rows) >= self.rollout else None

    def leave(self, ctx: Context) -> None:
        # The innermost boundary comes first and leaves nothing for the outer ones.
        if ctx.learning and len(self.rows) >= self.batch:
            self.update()
        elif ctx.learning:
            self.rows.clear()

    def update(self) -> Measures:
        """Learn the rollout, then forget it."""
        data = self.rollout_data()
        n = len(data["obs"])
        totals: dict[str, float] = {}
        count = 0
        for _ in range(self.epochs):
            order = torch.from_numpy(self.rng.permutation(n))
            # Minibatches as even as can be: a last one of a few rows would be mostly noise.
            for rows in order.tensor_split(max(1, round(n / self.batch))):
                for name, value in self.descend({k: v[rows] for k, v in data.items()}).items():
                    totals[name] = totals.get(name, 0.0) + value
                count += 1
        self.rows.clear()
        return {name: total / count for name, total in totals.items()}

    def rollout_data(self) -> Minibatch:
        """The rollout as one batch, with advantages and returns by the policy that made it."""
        # By slot, then by time: each slot's trajectory in one piece.
        order = np.argsort(self.rows["slot"], kind="stable")
        rows = self.rows.take(order)
        obs, drawn = self.inputs(rows["obs"]), torch.tensor(rows["drawn"])
        with torch.inference_mode():
            outputs, values = self.net(obs)
            log_prob, _ = self.policy.log_prob(outputs, drawn)
            after = self.net.critic(self.inputs(rows["next_obs"])).squeeze(1).numpy()
        cut = rows["terminated"] | rows["truncated"]
        cut[:-1] |= rows["slot"][1:] != rows["slot"][:-1]
        advantages = gae(
            rows["rewards"], values.numpy(), after * ~rows["terminated"], cut, self.gamma, self.lam
        )
        return {
            "obs": obs,
            "drawn": drawn,
            # Cloned because tensors made in inference mode may not meet autograd.
            "log_prob": log_prob.clone(),
            "advantages": torch.tensor(advantages),
            "returns": torch.tensor(advantages + values.numpy()),
        }

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        outputs, values = self.net(batch["obs"])
        log_prob, entropy = self.policy.log_prob(outputs, batch["drawn"])
        advantages = batch["advantages"] - batch["advantages"].mean()
        advantages = advantages / advantages.std(unbiased=False).clamp(min=self.floor)
        ratio = torch.exp(log_prob - batch["log_prob"])
        clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        value_loss = nn.functional.mse_loss(values, batch["returns"])
        spread = entropy.mean()
        loss = policy_loss + self.value_weight * value_loss - self.entropy * spread
        return loss, {
            "loss": loss.detach(),
            "value_loss": value_loss.detach(),
            "entropy": spread.detach(),
        }

    def predict(self, batch: Minibatch) -> Tensor:
        outputs: Tensor = self.net.actor(batch["obs"])
        return outputs

    def state(self) -> dict[str, Array]:
        return {**super().state(), **self.rows.state("rollout"), "drawn": self.drawn.copy()}

    def load(self, state: State) -> None:
        super().load(state)
        self.rows.load("rollout", state)
        self.drawn = np.array(state["drawn"])


def gae(rewards: Array, values: Array, after: Array, cut: Array, gamma: float, lam: float) -> Array:
    """Generalised advantages of trajectories that lie one after another.

    ``after`` is the value of what followed each step, zero after a true end; ``cut`` marks the last
    step of each trajectory.
    """
    errors = (rewards + gamma * after - values).tolist()
    carry = (gamma * lam * ~cut).tolist()
    out = np.empty(len(errors), np.float32)
    running = 0.0
    for i in range(len(errors) - 1, -1, -1):
        running = errors[i] + carry[i] * running
        out[i] = running
    return out


agent = PPOAgent
