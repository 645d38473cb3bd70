"""Environments side by side in one process, reset one by one with a seed per episode.

Stepping several environments in one process costs a tenth of what worker processes cost for
cheap environments; lifetimes, not environments, are what runs in parallel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.errors import EnvironmentFault, PerdureError
from perdure.run.guards import Observer
from perdure.types import Array, Suite, Task


def fault(where: str, error: Exception) -> PerdureError:
    """An environment's exception as one that says where it came from, in the original words."""
    if isinstance(error, PerdureError):
        return error
    return EnvironmentFault(f"{where} raised {type(error).__name__}: {error}")


class Environments:
    """One environment for each slot, made when a group of exposures begins, closed at its end."""

    def __init__(
        self, slots: list[tuple[Suite, Task]], observer: Observer, action_space: Any
    ) -> None:
        self.tasks = [task for _, task in slots]
        self.observer = observer
        self.action_space = action_space
        self.envs: list[gymnasium.Env[Any, Any]] = []
        try:
            for suite, task in slots:
                try:
                    env = suite.env(task)
                except Exception as e:
                    raise fault(f"making {task.id}", e) from e
                self.envs.append(env)
                self._check_spaces(task, env)
        except BaseException:
            self.close(quietly=True)
            raise
        self.steps = [env.step for env in self.envs]

    def _check_spaces(self, task: Task, env: gymnasium.Env[Any, Any]) -> None:
        for name, expected, got in (
            ("observation", self.observer.space, env.observation_space),
            ("action", self.action_space, env.action_space),
        ):
            if expected != got:
                raise EnvironmentFault(f"{task.id}: expected {name} space {expected}, got {got}")

    def reset(self, slot: int, seed: int) -> Any:
        """Begin the episode of this seed."""
        where = f"{self.tasks[slot].id}.reset"
        try:
            result = self.envs[slot].reset(seed=seed)
        except Exception as e:
            raise fault(where, e) from e
        if not isinstance(result, tuple) or len(result) != 2:
            raise EnvironmentFault(f"{where}: expected (observation, info), got {result!r:.120}")
        return self.observer.admit(result[0], where)

    # A commit in mid-episode: environments that can save themselves do; for all others the
    # episode's actions are kept and played again.

    def restorable(self, slot: int) -> bool:
        """Whether the environment can save itself."""
        inner = self.envs[slot].unwrapped
        return hasattr(inner, "save_state") and hasattr(inner, "load_state")

    def save(self, slot: int, actions: list[Any]) -> dict[str, Array]:
        """What :meth:`restore` needs to bring the slot back to this step."""
        if self.restorable(slot):
            saved: Mapping[str, Array] = self.envs[slot].unwrapped.save_state()  # type: ignore[attr-defined]
            return {f"env/{k}": np.asarray(v) for k, v in saved.items()}
        return {"actions": self._pack(actions)}

    def restore(self, slot: int, seed: int, saved: Mapping[str, Array]) -> tuple[Any, list[Any]]:
        """Bring a slot back: its current observation (None if it cannot be asked for) and the
        episode's actions so far."""
        obs = self.reset(slot, seed)
        if "actions" not in saved:
            inner = self.envs[slot].unwrapped
            inner.load_state({k[4:]: v for k, v in saved.items() if k.startswith("env/")})  # type: ignore[attr-defined]
            return None, []
        actions = self._unpack(saved["actions"])
        where = f"{self.tasks[slot].id}.step"
        for action in actions:
            try:
                obs = self.steps[slot](action)[0]
            except Exception as e:
                raise fault(where, e) from e
        return obs, actions

    def _pack(self, actions: list[Any]) -> Array:
        space = self.action_space
        if isinstance(space, (spaces.Dict, spaces.Tuple)):
            flat = [spaces.flatten(space, a) for a in actions]
            return np.array(flat).reshape(len(actions), -1)
        return np.array(actions, dtype=space.dtype).reshape(len(actions), *space.shape)

    def _unpack(self, packed: Array) -> list[Any]:
        space = self.action_space
        if isinstance(space, (spaces.Dict, spaces.Tuple)):
            return [spaces.unflatten(space, a) for a in packed]
        return packed.tolist() if isinstance(space, spaces.Discrete) else list(packed)

    def close(self, quietly: bool = False) -> None:
        """Close them all; one that raises does not keep the others open."""
        first: Exception | None = None
        for task, env in zip(self.tasks, self.envs, strict=False):
            try:
                env.close()
            except Exception as e:
                first = first or fault(f"{task.id}.close", e)
        self.envs = []
        if first is not None and not quietly:
            raise first
