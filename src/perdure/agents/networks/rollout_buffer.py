"""The steps of a policy until it learns from them, and how much better each was than expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.policies import Policy
from perdure.agents.networks.ring import Ring
from perdure.agents.networks.tasks import Tasks
from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.errors import SpecError
from perdure.types import Array, Context, Setup, State, Transitions

Baseline = Literal["mlp", "linear", "auto"]
RIDGE = 1e-5


def baseline_for(agent: str, baseline: str, inputs: Inputs) -> Literal["mlp", "linear"]:
    """The baseline for these observations: what was asked for, or with ``auto`` the linear one where
    they are flat. One that is no choice, or none for them, is refused."""
    if baseline not in ("mlp", "linear", "auto"):
        raise SpecError(f"{agent}: baseline must be 'mlp', 'linear' or 'auto', got {baseline!r}")
    if baseline == "linear" and inputs.has_images:
        raise SpecError(
            f"{agent}: baseline='linear' reads flat observations, not images; use baseline='mlp'"
        )
    return "mlp" if baseline == "mlp" or inputs.has_images else "linear"


class RolloutBuffer:
    """Rows of what a policy did, until there are ``steps`` of each task that runs side by side.

    Each slot's steps are a trajectory of their own, so slots may come and go. Each row knows its
    task, and its time: the number of steps before it in its episode. ``more`` are columns of the
    learner's own. Sampled actions are kept from acting until learning: clipping into the space must
    not change what is learned.
    """

    def __init__(
        self,
        setup: Setup,
        inputs: Inputs,
        policy: Policy,
        steps: int,
        more: Mapping[str, tuple[tuple[int, ...], Any]] | None = None,
    ) -> None:
        self.steps, self.tasks, self.policy, self.inputs = steps, Tasks(setup), policy, inputs
        # A step of all slots may start one row before the rollout is full.
        self.ring = Ring(
            steps * min(len(self.tasks), setup.slots) + setup.slots,
            {
                **inputs.columns("obs"),
                **inputs.columns("next_obs"),
                "sampled_actions": (policy.row, policy.dtype),
                "rewards": ((), np.float32),
                "terminated": ((), np.bool_),
                "truncated": ((), np.bool_),
                "slot": ((), np.int64),
                "task": ((), np.int64),
                "time": ((), np.int64),
                **(more or {}),
            },
        )
        self.sampled_actions: Array = np.empty((0, *policy.row), policy.dtype)
        self.time: Array = np.zeros(setup.slots, np.int64)
        """Steps that each slot's episode has had."""

    def __len__(self) -> int:
        return len(self.ring)

    def __getitem__(self, column: str) -> Array:
        return self.ring[column]

    @property
    def parallel_tasks(self) -> int:
        """How many tasks the rows are of."""
        return max(1, len(np.unique(self.ring["task"])))

    def choose(
        self, outputs: Tensor, ctx: Context, rng: np.random.Generator, greedy: bool
    ) -> Array:
        """Actions by the policy's outputs: sampled and kept while learning, else what is most
        probable if ``greedy``."""
        if not ctx.learning:
            return self.policy.to_space(self.policy.sample(outputs, None if greedy else rng))
        self.sampled_actions = self.policy.sample(outputs, rng)
        return self.policy.to_space(self.sampled_actions)

    def add(self, batch: Transitions, rewards: Array, ctx: Context, **more: Array) -> bool:
        """Take in a step of every active slot; whether the rollout is now full."""
        slots = ctx.slots
        time = np.where(ctx.episode_start[slots], 0, self.time[slots])
        self.ring.add(
            len(batch),
            sampled_actions=self.sampled_actions,
            rewards=rewards,
            terminated=batch.terminated,
            truncated=batch.truncated,
            slot=slots,
            task=self.tasks.of(ctx),
            time=time,
            **self.inputs.rows("obs", batch.obs),
            **self.inputs.rows("next_obs", batch.next_obs),
            **more,
        )
        self.time[slots] = time + 1
        self.sampled_actions = self.sampled_actions[:0]
        return len(self.ring) >= self.steps * self.tasks.parallel_tasks(ctx)

    def trajectories(self) -> dict[str, Array]:
        """All rows by slot, then by time. ``cut`` marks the last row of each trajectory: where the
        episode ended or was left, or where the rows of the slot end."""
        rows = self.ring.take(np.argsort(self.ring["slot"], kind="stable"))
        rows["cut"] = rows["terminated"] | rows["truncated"]
        rows["cut"][:-1] |= (rows["slot"][1:] != rows["slot"][:-1]) | (rows["time"][1:] == 0)
        rows["cut"][-1:] = True
        return rows

    def observations(self, rows: Mapping[str, Array]) -> tuple[Tensor, Tensor]:
        """What was seen in some rows, and what followed, as the networks read it."""
        obs, next_obs = (self.inputs.gather(name, rows) for name in ("obs", "next_obs"))
        return self.inputs(obs), self.inputs(next_obs)

    def clear(self) -> None:
        """Forget every row; episodes go on."""
        self.ring.clear()

    def state(self) -> dict[str, Array]:
        """Copies of the rows, and where each slot's episode is."""
        return {
            **self.ring.state("rollout"),
            **self.tasks.state(),
            "sampled_actions": self.sampled_actions.copy(),
            "time": self.time.copy(),
        }

    def load(self, state: State) -> None:
        """Take over what :meth:`state` gave."""
        self.ring.load("rollout", state)
        self.tasks.load(state)
        self.sampled_actions = np.array(state["sampled_actions"])
        self.time = np.array(state["time"])


def advantages_and_returns(
    rows: Mapping[str, Array],
    obs: Tensor,
    next_obs: Tensor,
    critic: Callable[[Tensor], Tensor] | None,
    gamma: float,
    lam: float,
) -> tuple[Tensor, Tensor]:
    """The advantage of each row of :meth:`RolloutBuffer.trajectories`, and the returns that a critic
    should foretell. Without a critic the linear baseline judges.

    A trajectory that was cut is continued by the value of the observation that followed, except at
    a true end.
    """
    if critic is None:
        values, after = linear_values(rows, obs, next_obs, gamma)
    else:
        with torch.inference_mode():
            values = to_array(critic(obs).squeeze(1))
            after = to_array(critic(next_obs).squeeze(1)) * ~rows["terminated"]
    advantages = gae(rows["rewards"], values, after, rows["cut"], gamma, lam)
    return to_tensor(advantages, obs.device), to_tensor(advantages + values, obs.device)


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


def features(obs: Tensor, time: Array) -> Tensor:
    """What the linear baseline reads (Duan et al., 2016): the observation, its square, the time in
    hundreds of steps with its square and cube, and 1. On the CPU: not every device knows float64."""
    x = to_tensor(to_array(obs), CPU, torch.float64)
    t = to_tensor(time, CPU, torch.float64).unsqueeze(1) / 100
    return torch.cat([x, x**2, t, t**2, t**3, torch.ones_like(t)], 1)


def ridge(basis: Tensor, targets: Tensor, weight: float = RIDGE) -> Tensor:
    """The coefficients c that make |basis c − targets|² + weight |c|² least."""
    gram = basis.T @ basis + weight * torch.eye(
        basis.shape[1], dtype=basis.dtype, device=basis.device
    )
    found: Tensor = torch.linalg.lstsq(gram, (basis.T @ targets).unsqueeze(1)).solution
    return found.squeeze(1)


def linear_values(
    rows: Mapping[str, Array], obs: Tensor, next_obs: Tensor, gamma: float
) -> tuple[Array, Array]:
    """Values of what was seen and of what followed, by a linear baseline for each task.

    It is fitted to the discounted returns of this very rollout, as Meta-World's newer code does it,
    not of the one before as in rllab: the one before may be of another task, and nothing need be
    kept. With far more rows than features that costs little bias. Returns stop where the episode
    does, by whatever end, and the time is among the features, so nothing is expected after the last
    step. Where the rollout stops in mid-episode the return is not known: such rows are judged by the
    fit but are no part of it, unless the task has no others.
    """
    ended = rows["terminated"] | rows["truncated"]
    none = np.zeros(len(ended))
    returns = gae(rows["rewards"], none, none, rows["cut"], gamma, 1.0)
    lasts = np.flatnonzero(rows["cut"])
    whole = ended[lasts[np.searchsorted(lasts, np.arange(len(ended)))]]
    values, after = np.empty(len(ended), np.float32), np.empty(len(ended), np.float32)
    obs, next_obs = (to_tensor(to_array(x), CPU) for x in (obs, next_obs))
    for task in np.unique(rows["task"]):
        mine = np.flatnonzero(rows["task"] == task)
        known = whole[mine] if whole[mine].any() else np.ones(len(mine), bool)
        basis = features(obs[mine], rows["time"][mine])
        fit = ridge(basis[known], to_tensor(returns[mine][known], CPU, torch.float64))
        values[mine] = to_array(basis @ fit)
        after[mine] = to_array(features(next_obs[mine], rows["time"][mine] + 1) @ fit)
    return values, after * ~ended
