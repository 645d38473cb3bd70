"""Any Stable-Baselines3 algorithm: PPO, A2C, DQN, SAC, TD3, DDPG, or module:Class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecTransposeImage

from perdure.agent import Agent
from perdure.agents.adapters._globals import GlobalRng
from perdure.agents.adapters.sb3.build import algorithm, build
from perdure.agents.adapters.sb3.host import Host, StepOutcome
from perdure.agents.adapters.sb3.offpolicy import OffPolicy
from perdure.agents.adapters.sb3.onpolicy import OnPolicy
from perdure.agents.adapters.sb3.saved import digest, read_model
from perdure.agents.adapters.sb3.state import pack_model, unpack_model
from perdure.agents.networks.checks import transitions_of
from perdure.errors import AgentFault, SpecError
from perdure.seeds import pack_rng, seed_for, unpack_rng
from perdure.types import Array, Batch, Context, Setup, State

EXPLORING = 100_000
"""Steps after which schedules end for algorithms whose exploration follows one, as DQN's does."""
NO_DATA = "sb3 learns from rewards: expose it to episodes or steps, not to labelled data"


class SB3Agent(Agent):
    """A Stable-Baselines3 model that Perdure drives.

    ``algo`` is the algorithm and ``policy`` its policy's name; ``auto`` takes the one that fits
    the observations. All other parameters are the algorithm's own, with its own defaults, except
    that ``device`` is the CPU. Where Stable-Baselines3 wants an object, a plain value will do:
    ``learning_rate="lin_3e-4"`` falls to zero, ``action_noise=0.1`` is Gaussian,
    ``policy_kwargs={activation_fn="torch.nn:ReLU"}`` names a class.

    ``total_timesteps`` is where schedules end; they stay there. Without it they stay at their
    beginning, so a plain learning rate is not touched; but an algorithm with an exploration
    schedule (DQN) would explore for ever, so there it is 100,000.

    At the end of an exposure an on-policy algorithm trains on what it has if that is at least a
    minibatch (``flush=False``: it goes on filling the same rollout in the next exposure). So
    what is evaluated has learned from its block, even if the block was shorter than a rollout
    of ``n_steps`` times the slots.

    ``load`` is a model that Stable-Baselines3 saved: its weights and optimisers, and of its settings
    those that are not given here and are plain numbers, words and tables. Nothing in the file is
    unpickled, so that a model with settings of other kinds (a schedule, an activation function) needs
    them here again. ``weights`` is written by the plan: the digest of that file. A ``frozen`` model acts as in evaluation and learns
    nothing.
    """

    learns_from = ("environments",)
    needs_rewards = True

    def __init__(
        self,
        setup: Setup,
        algo: str = "PPO",
        policy: str = "auto",
        total_timesteps: int | None = None,
        flush: bool = True,
        load: str = "",
        frozen: bool = False,
        weights: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(setup)
        self.frozen = frozen
        saved = read_model(load) if load else None
        if saved is not None:
            if weights and digest(load) != weights:
                raise SpecError(
                    f"sb3: {load} is not the file that this run was planned with: its digest is "
                    f"{digest(load)}, expected {weights}"
                )
            kwargs = saved.settings(algorithm(algo), kwargs)
        if total_timesteps is not None and total_timesteps < 1:
            raise SpecError(f"sb3: total_timesteps must be at least 1, got {total_timesteps!r}")
        # As in our own learners: the order in which threads add up must not show in the results.
        torch.set_num_threads(1)
        seed = seed_for(setup.seed, "init")
        self.global_rng = GlobalRng(seed)
        with self.global_rng.swapped_in():
            if saved is None:
                self.model = build(setup, seed, algo, policy, kwargs)
            else:
                self.model = saved.put_into(lambda: build(setup, seed, algo, policy, kwargs))
        if total_timesteps is None and hasattr(self.model, "exploration_schedule"):
            total_timesteps = EXPLORING
        self.host: Host
        if isinstance(self.model, OnPolicyAlgorithm):
            self.host = OnPolicy(self.model, total_timesteps, flush)
        else:
            self.host = OffPolicy(self.model, total_timesteps)

    @classmethod
    def pinned(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Which file of weights the parameters mean now."""
        return {"weights": digest(str(params["load"])), **params} if "load" in params else {}

    def act(self, obs: Any, ctx: Context) -> Array:
        if len(ctx.slots) > self.setup.slots:
            raise AgentFault(NO_DATA)
        seen = self._observations(obs)
        if ctx.learning and not self.frozen:
            with self.global_rng.swapped_in():
                actions = self.host.act(seen, ctx.slots, ctx.episode_start[ctx.slots])
        else:
            with self.global_rng.swapped_in(passing=int(self.rng.integers(2**32))):
                actions, _ = self.model.predict(seen, deterministic=True)
        space = self.setup.action_space
        if isinstance(space, spaces.Box):
            # Going from [-1, 1] to the bounds and back may miss them by the last bit.
            actions = np.clip(actions, space.low, space.high)
        return np.asarray(actions).astype(space.dtype, copy=False)

    def learn(self, batch: Batch, ctx: Context) -> dict[str, float] | None:
        moves, rewards = transitions_of("sb3", batch)
        if self.frozen:
            return None
        ended = moves.terminated | moves.truncated
        outcome = StepOutcome(
            rewards.astype(np.float32),
            ended,
            moves.truncated & ~moves.terminated,
            self._observations(moves.next_obs),
        )
        return self._train() if self.host.take(ctx.slots, outcome) else None

    def leave(self, ctx: Context) -> None:
        learns = ctx.learning and not self.frozen
        if learns and ctx.event == "variant" and self.host.pause():
            self._train()

    def _train(self) -> dict[str, float]:
        """Train, and give what the model recorded about it."""
        log = self.model.logger
        log.dump()
        with self.global_rng.swapped_in():
            self.host.train()
        recorded = log.name_to_value
        measures = {
            k.removeprefix("train/"): float(v)
            for k, v in recorded.items()
            if k.startswith("train/") and isinstance(v, float | int | np.number) and np.isfinite(v)
        }
        log.dump()
        return measures

    def _observations(self, obs: Any) -> Any:
        """A batch as the model's buffers hold it: images with their channels first."""
        space = self.setup.observation_space
        seen: Any
        if isinstance(space, spaces.Dict):
            seen = {k: np.asarray(obs[k], part.dtype) for k, part in space.spaces.items()}
        else:
            seen = np.asarray(obs, space.dtype)
        if isinstance(self.model.env, VecTransposeImage):
            seen = self.model.env.transpose_observations(seen)
        return seen

    def state(self) -> dict[str, Array]:
        return {
            **pack_model(self.model),
            **{f"host/{k}": v for k, v in self.host.state().items()},
            **{f"rng/{k}": v for k, v in self.global_rng.state().items()},
            "action_space": pack_rng(self.model.action_space.np_random),
        }

    def load(self, state: State) -> None:
        unpack_model(self.model, state)
        self.host.load({k[5:]: v for k, v in state.items() if k.startswith("host/")})
        self.global_rng.load({k[4:]: v for k, v in state.items() if k.startswith("rng/")})
        self.model.action_space._np_random = unpack_rng(state["action_space"])


agent = SB3Agent
