"""Demonstrations: what Meta-World's scripted experts do, as inputs and targets.

Episodes are those of seeds of their own, others for learning than for holding out. While an expert
demonstrates, noise is added to what it does, so that it also shows how to come back; the target is
what it wanted to do. An episode ends a little after its first success; one without is left out.
Demonstrations are made once, when they are first asked for, and kept on disk; so are the pictures of
them where the task shows images. (An expert reads states all the same.)
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from metaworld.policies import ENV_POLICY_MAP

from perdure.arrays import rows_of
from perdure.errors import CurriculumError
from perdure.seeds import rng_for, seed_for
from perdure.suites.metaworld.cache import folder, read_checked, write_checked
from perdure.suites.metaworld.env import Sawyer
from perdure.suites.metaworld.models import versions
from perdure.suites.metaworld.tasks import HAND, NUMBERS, Settings
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
    def inputs(self) -> Any:
        """What was to be seen, as the task shows it."""
        hot = None
        if self.settings.one_hot is not None:
            place, count = self.settings.one_hot
            hot = np.tile(np.eye(count)[place], (len(self), 1))
        if self.settings.observation != "state":
            images = self._pictures
            hand = self.settings.observation == "image+hand"
            parts = {"hand": self._steps[:, :HAND].copy()} if hand else {}
            parts |= {} if hot is None else {"task": hot.astype(np.float32)}
            return {"image": images, **parts} if parts else images
        inputs: Array = self._steps[:, :NUMBERS].copy()
        if self.settings.hide_goal:
            inputs[:, 36:] = 0.0
        return inputs if hot is None else np.hstack([inputs, hot])

    def batch(self, indices: Array) -> Examples:
        """The steps at these indices."""
        return Examples(rows_of(self.inputs, indices), self.targets[indices])

    @cached_property
    def _steps(self) -> Array:
        path = self._path(".f8")
        stored = read_checked(path)
        if stored is None:
            stored = demonstrate(self.task, self.settings, self.split)[0].tobytes()
            write_checked(path, stored)
        return np.frombuffer(stored).reshape(-1, WIDTH)

    @cached_property
    def _pictures(self) -> Array:
        s = self.settings
        where = () if s.camera_position is None else (s.camera_position,)
        path = self._path(".u1", s.size, s.camera, s.hide_goal, *where)
        stored = read_checked(path)
        if stored is None:
            steps, pictures = demonstrate(self.task, s, self.split)
            assert np.array_equal(steps, self._steps)
            stored = pictures.tobytes()
            write_checked(path, stored)
        return np.frombuffer(stored, np.uint8).reshape(-1, s.size, s.size, 3)

    @property
    def split(self) -> str:
        """Which of the two halves of the data."""
        return "learning" if self.learning else "held out"

    def _path(self, suffix: str, *more: Any) -> Path:
        names = (
            "horizon",
            "goals",
            "benchmark",
            "benchmark_seed",
            "goal",
            "demonstrations",
            "noise",
        )
        shown = (getattr(self.settings, n) for n in names)
        recipe = [RECIPE, self.task.name, self.split, versions(), *shown, *more]
        digest = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:16]
        return folder("demonstrations") / f"{self.task.name}-{digest}{suffix}"


def demonstrate(task: Task, settings: Settings, split: str) -> tuple[Array, Array]:
    """Let the expert play until it has succeeded often enough: states and actions side by side, and
    pictures where the task shows images."""
    plain = dataclasses.replace(
        settings,
        reward="v2",
        observation="state",
        hide_goal=False,
        one_hot=None,
        persist=1,
        end_on_success=False,
    )
    policy: Any = ENV_POLICY_MAP[f"{task.name}-v3"]
    env, expert = Sawyer(task.name, plain), policy()
    seen: Callable[[], Array] | None = None
    if settings.observation != "state":
        seen = _picture_of(env, settings)
    shown: list[tuple[Array, Array | None]] = []
    missing = settings.demonstrations
    for k in range(TRIES * settings.demonstrations):
        episode = _episode(env, expert, settings, ("demonstration", task.name, split, k), seen)
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
    steps, pictures = zip(*shown, strict=True)
    return np.array(steps), np.array(pictures if seen is not None else (), np.uint8)


def _picture_of(env: Sawyer, settings: Settings) -> Callable[[], Array]:
    """What the task's camera sees of an environment, which closes it."""
    from perdure.suites.metaworld.camera import Camera

    def picture() -> Array:
        assert env.robot is not None
        if env.camera is None:
            kind, s = env.robot.task_class, settings
            env.camera = Camera(kind, s.camera, s.size, s.hide_goal, s.camera_position)
        return env.camera.picture(env.robot)

    return picture


def _episode(
    env: Sawyer,
    expert: Any,
    settings: Settings,
    address: tuple[str | int, ...],
    seen: Callable[[], Array] | None,
) -> list[tuple[Array, Array | None]]:
    """The steps of one episode, none if it does not succeed."""
    noise = rng_for(0, *address, "noise").normal(0, settings.noise, (settings.horizon, 4))
    obs = env.begin(seed_for(0, *address))
    steps: list[tuple[Array, Array | None]] = []
    left: int | None = None  # Steps still to show, once it has succeeded.
    for added in noise:
        # A copy, because some experts write into what they are given.
        wanted = np.clip(expert.get_action(obs.copy()), -1, 1)
        steps.append((np.concatenate([obs, wanted]), None if seen is None else seen()))
        obs, _, _, _, info = env.step(np.clip(wanted + added, -1, 1).astype(np.float32))
        if left is None and info["success"]:
            left = AFTER
        elif left is not None:
            left -= 1
        if left == 0:
            break
    return [] if left is None else steps
