"""Meta-World's own scripted policies as an agent: ``-a expert`` plays them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.errors import AgentFault, SpecError
from perdure.names import split_task_id
from perdure.registry import extras_named
from perdure.types import Array, Context, Setup

STATE = 39
GOAL = slice(36, 39)


class ExpertAgent(Agent):
    """Reads the whole state, with the goal in it, and must know which task it is at."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        if not setup.tasks:
            raise SpecError("expert must know which task it plays: do not hide task identity")
        strange = [t for t in setup.tasks if split_task_id(t)[0] != "metaworld"]
        if strange:
            raise SpecError(f"expert knows Meta-World's tasks only, not {strange[0]}")
        shape = setup.observation_space.shape or ()
        if len(shape) != 1 or shape[0] < STATE:
            raise SpecError(
                f"expert reads states of {STATE} numbers, got {setup.observation_space}; set "
                "observation = state"
            )
        with extras_named("agent expert"):
            from metaworld.policies import ENV_POLICY_MAP
        # They want more than an arm can do and warn of it at every step.
        warnings.filterwarnings("ignore", "Constant", UserWarning, "metaworld")
        known: dict[str, Any] = ENV_POLICY_MAP
        self.policies = {t: known[f"{split_task_id(t)[1]}-v3"]() for t in setup.tasks}

    def act(self, obs: Any, ctx: Context) -> Array:
        assert ctx.tasks is not None
        actions = np.empty((len(obs), 4), np.float32)
        for k, (task, seen) in enumerate(zip(ctx.tasks, obs, strict=True)):
            if not seen[GOAL].any():
                raise AgentFault(f"expert cannot see the goal of {task}: set hide_goal = false")
            # A copy, because some policies write into what they are given.
            actions[k] = np.clip(self.policies[task].get_action(seen[:STATE].copy()), -1, 1)
        return actions
