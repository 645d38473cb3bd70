"""TRPO: trust-region policy optimisation for discrete and continuous actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from perdure.agents.networks.checks import transitions_of
from perdure.agents.networks.encoders import encoder_for, with_linear_head
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import Minibatch, TorchAgent, network, pack, unpack
from perdure.agents.networks.policies import policy_for
from perdure.agents.networks.rollout_buffer import (
    Baseline,
    RolloutBuffer,
    advantages_and_returns,
    baseline_for,
)
from perdure.agents.networks.settings import Ranges, RolloutSettings
from perdure.agents.networks.tensors import to_float, to_tensor
from perdure.agents.networks.trust_region import fisher_product, line_search, natural_step
from perdure.spaces import ALL, POLICIES
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Measures, Setup, State


@dataclass(frozen=True, kw_only=True)
class TRPOSettings(RolloutSettings):
    """See :class:`TRPOAgent`."""

    agent = "trpo"
    ranges: ClassVar[Ranges] = {**RolloutSettings.ranges, "kl": (1e-12, inf)}

    kl: float = 0.01
    network: str = ""
    std: float = 2.0
    baseline: Baseline = "auto"
    normalise: bool = True


class TRPOAgent(TorchAgent):
    """Natural gradient steps of bounded length (Schulman et al., 2015).

    After every ``rollout`` steps of each task that runs side by side, the policy takes one step.
    With g the gradient of the surrogate, the mean over rows of (π(a|s) / π_old(a|s)) A, and F the
    Fisher information of the policy, the step is along s = (F + damping)⁻¹ g, found by conjugate
    gradients, and so long that to second order the mean KL divergence from the old policy is
    ``kl``. It is then shortened until the surrogate has improved and the true divergence is within
    the bound; if no length will do, the policy stays as it was.

    ``network=file.py:Net`` puts a network of one's own in the place of ``hidden``.

    ``baseline`` says what a step is compared with: a ``linear`` fit to the returns of the rollout,
    one for each task, or an ``mlp`` that learns them ``epochs`` times by the ``optimizer`` (``lr``) in
    minibatches of ``batch`` rows; ``auto`` is linear but for images. ``std`` is the first spread of continuous actions, in units of half their range.
    In evaluation it does what is most probable if ``greedy``. At the end of a learn block, what was
    gathered since the last step is learned if it is half a rollout; if not it is kept for the next
    block of the same tasks, and dropped if others come.

    The defaults are those of Meta-World's paper (ten episodes of 150 steps a task), completed by
    garage's where it gives none. Presets: ``garage``, its multi-task example; ``newer``, the outer
    step of Meta-World+'s MAML (ten episodes of 500 steps).
    """

    learns_from = ("environments",)
    needs_rewards = True
    reads, acts_in = ALL, POLICIES
    closed = (
        "a step of trust-region optimisation is found by conjugate gradients and a line search, "
        "which a penalty or a mask on gradients would not pass; use it with ppo"
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "garage": {"rollout": 1024, "baseline": "mlp", "std": 1.0, "lr": 2.5e-4, "epochs": 10},
        "newer": {"rollout": 5000, "lam": 1.0, "std": 1.0, "hidden": (512, 512)},
    }

    @takes_fields(TRPOSettings)
    def __init__(self, setup: Setup, settings: TRPOSettings) -> None:
        super().__init__(setup, **settings.shared)
        s = self.settings = settings
        self.inputs = Inputs(setup.observation_space, self.device)
        baseline = baseline_for("trpo", s.baseline, self.inputs)
        policy = self.policy = policy_for(setup.action_space, s.std)

        def build() -> nn.ModuleDict:
            def made(outputs: int, gain: float) -> nn.Sequential:
                encoder = encoder_for(self.inputs, s.hidden, network=s.network)
                return with_linear_head(*encoder, outputs, gain, bool(s.network))

            actor = made(policy.outputs, 0.01)
            parts = nn.ModuleDict({"policy": policy, "actor": actor})
            if baseline == "mlp":
                parts["critic"] = made(1, 1.0)
            return parts

        self.net = network(setup, self.device, build, s.layer_norm)
        self.actor = self.net["actor"]
        self.weights = [*policy.parameters(), *self.actor.parameters()]
        self.critic = self.net["critic"] if baseline == "mlp" else None
        self.optimizer = (
            s.make_optimizer(self.critic.parameters()) if self.critic is not None else None
        )
        self.rows = RolloutBuffer(setup, self.inputs, policy, s.rollout)

    def act(self, obs: Any, ctx: Context) -> Array:
        with torch.inference_mode():
            outputs = self.actor(self.inputs(obs))
            return self.rows.choose(outputs, ctx, self.rng, self.settings.greedy)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        moves, rewards = transitions_of("trpo", batch)
        return self.update(ctx.progress) if self.rows.add(moves, rewards, ctx) else None

    def enter(self, ctx: Context) -> None:
        if self.optimizer is not None and ctx.learning and ctx.event == "block":
            self.optimizer.restart_schedule()
        if self.rows.tasks.enter(ctx):
            self.rows.clear()

    def leave(self, ctx: Context) -> None:
        if ctx.learning and 2 * len(self.rows) >= self.rows.steps * self.rows.parallel_tasks:
            self.update(ctx.progress)
        elif ctx.learning and not ctx.tasks:
            # Nobody says whether the next block is of the same task.
            self.rows.clear()

    def update(self, progress: float = 0.0) -> Measures:
        """One step of the policy, some of the critic; then forget the rollout. ``progress`` is the
        part of the exposure that is done."""
        data = self.rollout_data()
        self.probe_inputs(data["obs"])
        measures = self.step(data)
        if self.critic is not None:
            measures["value_loss"] = self.fit(self.critic, data, progress)
        self.rows.clear()
        return measures

    def rollout_data(self) -> Minibatch:
        """The rollout as one batch: advantages, returns, and the policy that made it."""
        rows = self.rows.trajectories()
        obs, after = self.rows.observations(rows)
        sampled = to_tensor(rows["sampled_actions"], self.device)
        with torch.no_grad():
            outputs = self.actor(obs)
            log_prob, entropy = self.policy.log_prob(outputs, sampled)
        advantages, returns = advantages_and_returns(
            rows, obs, after, self.critic, self.settings.gamma, self.settings.lam
        )
        if self.settings.normalise:
            advantages = advantages - advantages.mean()
            advantages = advantages / advantages.std(unbiased=False).clamp(min=1e-8)
        return {
            "obs": obs,
            "sampled_actions": sampled,
            "log_prob": log_prob,
            "entropy": entropy,
            "terms": self.policy.terms(outputs).detach(),
            "advantages": advantages,
            "returns": returns,
        }

    def predict(self, batch: Minibatch) -> Tensor:
        outputs: Tensor = self.actor(batch["obs"])
        return outputs

    def predict_values(self, batch: Minibatch) -> Tensor | None:
        return self.critic(batch["obs"]) if self.critic is not None else None

    # The policy.

    def surrogate(self, data: Minibatch) -> Tensor:
        """How much better the policy does than the one that made the rows, as they tell it."""
        log_prob, _ = self.policy.log_prob(self.actor(data["obs"]), data["sampled_actions"])
        return (torch.exp(log_prob - data["log_prob"]) * data["advantages"]).mean()

    def divergence(self, data: Minibatch) -> Tensor:
        """The mean KL divergence of the policy from the one that made the rows."""
        now = self.policy.terms(self.actor(data["obs"]))
        return self.policy.divergence(data["terms"], now).mean()

    def fisher_product(self, data: Minibatch) -> Callable[[Tensor], Tensor]:
        """v ↦ F v, where F is the Fisher information."""
        return fisher_product(lambda: self.divergence(data), self.weights)

    def step(self, data: Minibatch) -> dict[str, float]:
        """The step of the policy; what it gained, how far it went and the part of its length."""
        gained, apart, part = natural_step(*self._aims(data), self.weights, self.settings.kl)
        entropy = to_float(data["entropy"].mean())
        return {"gain": gained, "kl": apart, "step": part, "entropy": entropy}

    def search(self, data: Minibatch, step: Tensor) -> tuple[float, float, float]:
        """Go the longest part of the step that improves the surrogate within the bound; the gain,
        the divergence and the part, all 0 if there is none."""
        return line_search(*self._aims(data), self.weights, self.settings.kl, step)

    def _aims(self, data: Minibatch) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
        return lambda: self.surrogate(data), lambda: self.divergence(data)

    # The critic.

    def fit(self, critic: nn.Module, data: Minibatch, progress: float) -> float:
        """Learn the returns; the mean squared error on the way."""
        assert self.optimizer is not None
        n, total, count = len(data["obs"]), 0.0, 0
        for _ in range(self.settings.epochs):
            order = to_tensor(self.rng.permutation(n), self.device)
            for rows in order.tensor_split(max(1, round(n / self.settings.batch))):
                self.optimizer.advance(progress)
                values = critic(data["obs"][rows]).squeeze(1)
                loss = nn.functional.mse_loss(values, data["returns"][rows])
                self.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                self.optimizer.step()
                total, count = total + to_float(loss), count + 1
        return total / count

    def state(self) -> dict[str, Array]:
        moments = self.optimizer.state("optimizer") if self.optimizer is not None else {}
        probe = {} if self.probe is None else self.probe.state()
        return {**pack(self.net, "net"), **moments, **self.rows.state(), **probe}

    def load(self, state: State) -> None:
        if self.probe is not None:  # Before the weights it began with are gone.
            self.probe.load(state)
        unpack(self.net, "net", state)
        if self.optimizer is not None:
            self.optimizer.load("optimizer", state)
        self.rows.load(state)


agent = TRPOAgent
