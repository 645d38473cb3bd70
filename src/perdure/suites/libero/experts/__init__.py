"""Scripted experts: they do what a task's goal asks for, with the actions that a policy has.

An expert is told the whole state of the simulation (:meth:`Simulation.privileged`). It reads the goal formula,
chooses skills for it (pick and place, put in from above or from the side, open and close drawers and
doors, turn knobs), finds grasps and places from the shapes of things, and tries again what failed. It
knows no task by name, so it plays generated ones as well::

    from perdure.suites.libero.experts import solve

    attempt = solve(env, seed=3)         # env: a Libero environment, of any task file
    attempt.success, len(attempt.actions)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure.seeds import rng_for
from perdure.suites.libero.env import Libero
from perdure.suites.libero.experts.plan import script
from perdure.suites.libero.experts.planning_scene import PlanningScene
from perdure.suites.libero.scene import Scene
from perdure.types import Array

__all__ = ["Attempt", "Expert", "solve"]


class Expert:
    """Plays one episode of a scene after another, an action at a time."""

    def __init__(self, scene: Scene) -> None:
        self.world = PlanningScene(scene)
        self.reset()

    def reset(self) -> None:
        """A new episode begins."""
        self._script = script(self.world)

    def act(self, seen: Array) -> Array:
        """The next action, from what :meth:`Simulation.privileged` gives now."""
        self.world.see(seen)
        return np.clip(next(self._script), -1.0, 1.0)


@dataclass(frozen=True)
class Attempt:
    """An episode that an expert played."""

    success: bool
    actions: Array
    """What the environment was told, noise and all: steps × 7."""


def solve(
    env: Libero,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    noise: float = 0.0,
    before_step: Callable[[Mapping[str, Array], Array], None] | None = None,
) -> Attempt:
    """Let the expert play the episode that ``env.reset(seed=seed, options=options)`` begins.

    ``noise`` is the standard deviation of what is added to the six numbers that move the hand, drawn
    by the seed: what the expert does about it makes demonstrations that also show how to come back.
    ``before_step`` is shown every observation with the action that is taken on it.
    """
    seen, _ = env.reset(seed=seed, options=dict(options or {}))
    assert env.simulation is not None
    expert = Expert(env.simulation.scene)
    draws = rng_for(seed, "expert noise")
    actions: list[Array] = []
    done = cut = False
    while not (done or cut):
        wanted = expert.act(env.simulation.privileged())
        wanted[:6] += draws.normal(0.0, noise, 6) if noise else 0.0
        action = np.clip(wanted, -1, 1).astype(np.float32)
        if before_step is not None:
            before_step(seen, action)
        seen, _, done, cut, _ = env.step(action)
        actions.append(action)
    return Attempt(done, np.array(actions))
