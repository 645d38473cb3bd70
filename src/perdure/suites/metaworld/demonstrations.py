"""Demonstrations: what Meta-World's scripted experts do, as inputs and targets.

Episodes are those of seeds of their own, others for learning than for holding out. While an expert
demonstrates, noise is added to what it does, so that it also shows how to come back; the target is
what it wanted to do. An episode ends a little after its first success; one without is left out.
Demonstrations are made once, when they are first asked for, and kept on disk.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import warnings
from functools import cached_property
from typing import Any

import numpy as np
from metaworld.policies import ENV_POLICY_MAP

from perdure.errors import CurriculumError
from perdure.seeds import rng_for, seed_for
from perdure.suites.metaworld.cache import folder, read_checked, write_checked
from perdure.suites.metaworld.env import Sawyer
from perdure.suites.metaworld.models import versions
from perdure.suites.metaworld.tasks import NUMBERS, Settings
from perdure.types import Array, Examples, Task

# Experts want more than an arm can do and warn of it at every step.
warnings.filterwarnings("ignore", "Constant", UserWarning, "metaworld")

AFTER = 10
"""Steps shown after the first success."""
TRIES = 5
"""Episodes tried for each demonstration; the worst expert needs little more than one."""
WIDTH = NUMBERS + 4
RECIPE = 1
"""Changes when demonstrations are made in another way."""


class Demonstrations:
    """A task's expert episodes, step by step."""

    def __init__(self, task: Task, settings: Settings, learning: bool) -> None:
        if settings.observation != "state":
            raise CurriculumError(
                f"{task.id}: demonstrations are of states; set observation = state"
            )
        self.task, self.settings, self.learning = task, settings, learning
        self.batch_size = settings.batch_size

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def targets(self) -> Array:
        """The expert's actions."""
        targets: Array = self._steps[:, NUMBERS:].astype(np.float32)
        return targets

    @cached_property
    def inputs(self) -> Array:
        """The states it saw, as the task shows them."""
        inputs: Array = self._steps[:, :NUMBERS].copy()
        if self.settings.hide_goal:
            inputs[:, 36:] = 0.0
        if self.settings.one_hot is not None:
            place, count = self.settings.one_hot
            inputs = np.hstack([inputs, np.tile(np.eye(count)[place], (len(inputs), 1))])
        return inputs

    def batch(self, indices: Array) -> Examples:
        """The steps at these indices."""
        return Examples(self.inputs[indices], self.targets[indices])

    @cached_property
    def _steps(self) -> Array:
        s, split = self.settings, "learning" if self.learning else "held out"
        names = (
            "horizon",
            "goals",
            "benchmark",
            "benchmark_seed",
            "goal",
            "demonstrations",
            "noise",
        )
        recipe = [RECIPE, self.task.name, split, versions(), *(getattr(s, n) for n in names)]
        digest = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:16]
        path = folder("demonstrations") / f"{self.task.name}-{digest}.f8"
        stored = read_checked(path)
        if stored is None:
            stored = demonstrate(self.task, s, split).tobytes()
            write_checked(path, stored)
        return np.frombuffer(stored).reshape(-1, WIDTH)


def demonstrate(task: Task, settings: Settings, split: str) -> Array:
    """Let the expert play until it has succeeded often enough: states and actions side by side."""
    plain = dataclasses.replace(settings, reward="v2", hide_goal=False, one_hot=None, persist=1)
    policy: Any = ENV_POLICY_MAP[f"{task.name}-v3"]
    env, expert = Sawyer(task.name, plain), policy()
    shown: list[Array] = []
    missing = settings.demonstrations
    for k in range(TRIES * settings.demonstrations):
        episode = _episode(env, expert, settings, ("demonstration", task.name, split, k))
        if episode:
            shown += episode
            missing -= 1
        if not missing:
            break
    env.close()
    if missing:
        raise CurriculumError(
            f"{task.id}: the expert succeeded {settings.demonstrations - missing} times in {k + 1} "
            f"episodes of {settings.horizon} steps, {settings.demonstrations} are needed; give it a "
            "longer horizon or less noise"
        )
    return np.array(shown)


def _episode(
    env: Sawyer, expert: Any, settings: Settings, address: tuple[str | int, ...]
) -> list[Array]:
    """The steps of one episode, none if it does not succeed."""
    noise = rng_for(0, *address, "noise").normal(0, settings.noise, (settings.horizon, 4))
    obs, steps = env.begin(seed_for(0, *address)), []
    left: int | None = None  # Steps still to show, once it has succeeded.
    for added in noise:
        # A copy, because some experts write into what they are given.
        wanted = np.clip(expert.get_action(obs.copy()), -1, 1)
        steps.append(np.concatenate([obs, wanted]))
        obs, _, _, _, info = env.step(np.clip(wanted + added, -1, 1).astype(np.float32))
        if left is None and info["success"]:
            left = AFTER
        elif left is not None:
            left -= 1
        if left == 0:
            break
    return [] if left is None else steps
