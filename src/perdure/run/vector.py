"""Environments side by side in one process, reset one by one with a seed per episode.

Stepping several environments in one process costs a tenth of what worker processes cost for
cheap environments; lifetimes, not environments, are what runs in parallel. A suite that can step
many environments of a task in one call offers :class:`perdure.suite.BatchedEnv`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.errors import EnvironmentFault, PerdureError
from perdure.relayed import file_and_line
from perdure.run.guards import Observer, check_flag, check_reward
from perdure.spaces import joined
from perdure.suite import OF_SLOTS, BatchedEnv, Episode, Suite, is_restorable
from perdure.types import Array, Task

MOST_ACTIONS = 1_000_000
"""Of an episode under way that a checkpoint holds: they grow with it, and resuming plays them."""
Stepped = tuple[Any, list[float], list[bool], list[bool], Mapping[int, Mapping[str, Any]]]
"""Observations, rewards, terminated and truncated, one for each slot stepped; infos by row, where
there are any."""


def fault(where: str, error: Exception, episode: str = "") -> PerdureError:
    """An environment's exception as one that says where it came from, in the original words, and
    which ``episode`` it was."""
    if isinstance(error, EnvironmentFault):
        return EnvironmentFault(f"{error}{episode}")
    if isinstance(error, PerdureError):
        return error
    words = f"{where} raised {type(error).__name__}: {error} ({file_and_line(error)})"
    return EnvironmentFault(f"{words}{episode}")


def make(
    suite: Suite, task: Task, observer: Observer, action_space: Any
) -> gymnasium.Env[Any, Any]:
    """A new environment whose spaces are the ones that were planned for."""
    try:
        env = suite.env(task)
    except Exception as e:
        raise fault(f"making {task.id}", e) from e
    for name, expected, got, fits in (
        # The curriculum's space holds the observations of all its tasks.
        (
            "observation",
            observer.space,
            env.observation_space,
            joined(observer.space, env.observation_space) == observer.space,
        ),
        ("action", action_space, env.action_space, action_space == env.action_space),
    ):
        if not fits:
            env.close()
            raise EnvironmentFault(f"{task.id}: expected {name} space {expected}, got {got}")
    return env


def reset_env(suite: Suite, env: gymnasium.Env[Any, Any], episode: Episode) -> Any:
    """Begin an episode: by its seed, and by its trial's where the suite reads that."""
    if suite.reset_options:
        return env.reset(seed=episode.seed, options=episode.options)
    return env.reset(seed=episode.seed)


class _Numbers(dict[int, np.int64]):
    """Whole numbers as numpy has them, each made once: Gymnasium's own check of a Python int costs
    more than the whole step of a simple environment."""

    def __missing__(self, number: int) -> np.int64:
        self[number] = made = np.int64(number)
        return made


class Singles:
    """Gymnasium environments of one task, stepped one after another."""

    def __init__(
        self, suite: Suite, task: Task, count: int, observer: Observer, action_space: Any
    ) -> None:
        self.suite, self.where, self.observer = suite, f"{task.id}.step", observer
        self.envs: list[gymnasium.Env[Any, Any]] = []
        try:
            for _ in range(count):
                self.envs.append(make(suite, task, observer, action_space))
        except BaseException:
            self.close()
            raise
        self._steps = [env.step for env in self.envs]
        self.failed: int | None = None
        """The slot whose step raised."""
        self._numbers = _Numbers() if isinstance(action_space, spaces.Discrete) else None

    def reset(self, slot: int, episode: Episode) -> Any:
        """Begin an episode."""
        result = reset_env(self.suite, self.envs[slot], episode)
        if not isinstance(result, tuple) or len(result) != 2:
            raise EnvironmentFault(f"expected (observation, info), got {result!r:.120}")
        return result[0]

    def expect(self, episodes: Sequence[Episode]) -> None:
        """Of no use to environments that know nothing of each other."""

    def step(self, slots: Sequence[int], actions: Sequence[Any]) -> Stepped:
        """One step of some of the environments; everything they give is checked."""
        observer, where = self.observer, self.where
        shape, dtype, numbers = observer.shape, observer.dtype, self._numbers
        alone = len(slots) == 1 and observer.simple
        following: Any = None if alone else observer.empty(len(slots))
        rewards: list[float] = []
        ends: list[bool] = []
        cuts: list[bool] = []
        infos: dict[int, Mapping[str, Any]] = {}
        slot = 0
        try:
            for k, slot in enumerate(slots):
                action = actions[k] if numbers is None else numbers[actions[k]]
                seen, reward, end, cut, info = self._steps[slot](action)
                if (
                    type(seen) is not np.ndarray
                    or seen.shape != shape
                    or (seen.dtype is not dtype and seen.dtype != dtype)
                ):
                    seen = observer.admit(seen, where)
                if alone:  # Half the time of an empty batch and a row of it.
                    following = seen[None].copy()
                else:
                    following[k] = seen
                if type(reward) is not float or reward - reward != 0.0:
                    reward = check_reward(reward, where)
                if (end is not True and end is not False) or (cut is not True and cut is not False):
                    end = check_flag(end, "terminated", where)
                    cut = check_flag(cut, "truncated", where)
                rewards.append(reward)
                ends.append(end)
                cuts.append(cut)
                if info:
                    infos[k] = info
        except Exception:
            self.failed = slot
            raise
        return following, rewards, ends, cuts, infos

    def state_of(self, slot: int) -> Any:
        """The environment itself, if it can save itself."""
        env = self.envs[slot]
        return env.unwrapped if is_restorable(env) else None

    def close(self) -> None:
        """Close them all; one that raises does not keep the others open."""
        first: Exception | None = None
        for env in self.envs:
            try:
                env.close()
            except Exception as e:
                first = first or e
        self.envs = []
        if first is not None:
            raise first


class Environments:
    """One environment for each slot, made when a group of exposures begins, closed at its end."""

    def __init__(
        self, tasks: Sequence[tuple[Suite, Task]], count: int, observer: Observer, action_space: Any
    ) -> None:
        self.tasks = [task for _, task in tasks for _ in range(count)]
        self.resets = [f"{task.id}.reset" for task in self.tasks]
        """What each slot's reset is called where it fails."""
        self.count, self.observer, self.action_space = count, observer, action_space
        self.parts: list[BatchedEnv] = []
        self.episodes: dict[int, Episode] = {}
        """What each slot was last reset with."""
        try:
            for suite, task in tasks:
                try:
                    part = suite.batched_env(task, count)
                except Exception as e:
                    raise fault(f"making {task.id}", e) from e
                self.parts.append(part or Singles(suite, task, count, observer, action_space))
        except BaseException:
            self.close(quietly=True)
            raise
        self.step: Callable[[list[int], list[Any]], Stepped] = (
            self._step_of(self.parts[0]) if len(self.parts) == 1 else self._step_several
        )
        self._shared: tuple[list[int], list[tuple[int, list[int], slice]]] = ([], [])

    def _part(self, slot: int) -> tuple[BatchedEnv, int]:
        part, own = divmod(slot, self.count)
        return self.parts[part], own

    def reset(self, slot: int, episode: Episode) -> Any:
        """Begin an episode."""
        part, own = self._part(slot)
        where = self.resets[slot]
        self.episodes[slot] = episode
        try:
            obs = part.reset(own, episode)
        except EnvironmentFault as e:
            raise EnvironmentFault(f"{where}: {e}{self._played([slot])}") from e
        except Exception as e:
            raise fault(where, e, self._played([slot])) from e
        try:
            return self.observer.admit_first(obs, where)
        except EnvironmentFault as e:
            raise fault(where, e, self._played([slot])) from e

    def _played(self, slots: Sequence[int], part: BatchedEnv | None = None) -> str:
        """The seed of the episode that failed, in words; of several that may have, all of a few."""
        failed = getattr(part, "failed", None)
        known = [s for s in slots if s in self.episodes and failed in (None, s % self.count)]
        seeds = [str(self.episodes[s].seed) for s in known]
        if not seeds:
            return ""
        some = ", ".join(seeds[:4]) + ", …" * (len(seeds) > 4)
        return (
            f", in the episode of seed {some}" if len(seeds) == 1 else f", in one of seeds {some}"
        )

    def _step_of(self, part: BatchedEnv) -> Callable[[list[int], list[Any]], Stepped]:
        """How the only part steps. Nothing is looked up that stays the same: this is called for every step."""
        step, simple = part.step, self.observer.simple

        def step_one(slots: list[int], actions: list[Any]) -> Stepped:
            try:
                stepped = step(slots, actions)
                return stepped if simple else self._admitted(0, stepped)
            except Exception as e:
                raise fault(f"{self.tasks[0].id}.step", e, self._played(slots, part)) from e

        return step_one

    def _step_several(self, slots: list[int], actions: list[Any]) -> Stepped:
        following = self.observer.empty(len(slots))
        rewards: list[float] = []
        ends: list[bool] = []
        cuts: list[bool] = []
        infos: dict[int, Mapping[str, Any]] = {}
        shares = self._shares(slots)
        number = 0
        try:
            for number, mine, rows in shares:
                step_async = getattr(self.parts[number], "step_async", None)
                if step_async is not None:
                    step_async(mine, actions[rows])
            for number, mine, rows in shares:
                stepped = self.parts[number].step(mine, actions[rows])
                if not self.observer.simple:
                    stepped = self._admitted(number, stepped)
                seen, paid, ended, cut, told = stepped
                following[rows] = seen
                rewards += paid
                ends += ended
                cuts += cut
                infos |= {rows.start + k: info for k, info in told.items()}
        except Exception as e:
            mine = [s for s in slots if s // self.count == number]
            episode = self._played(mine, self.parts[number])
            raise fault(f"{self.tasks[number * self.count].id}.step", e, episode) from e
        return following, rewards, ends, cuts, infos

    def _admitted(self, part: int, stepped: Stepped) -> Stepped:
        """Nested observations of a batched environment, made right or refused. (Single ones were when they came.)"""
        if isinstance(self.parts[part], Singles):
            return stepped
        seen, *rest = stepped
        if isinstance(seen, Mapping):
            raise EnvironmentFault(OF_SLOTS)
        where = f"{self.tasks[part * self.count].id}.step"
        return [self.observer.admit(obs, where) for obs in seen], *rest  # type: ignore[return-value]

    def skips(self) -> bool:
        """Whether some of them need not draw observations that are not looked at."""
        return any(hasattr(part, "skip_pictures") for part in self.parts)

    def skip(self, slots: Sequence[int], skipped: Sequence[bool] | Array) -> None:
        """Of these slots, those whose next observations are not looked at; for the next step alone."""
        for number, part in enumerate(self.parts):
            skip_pictures = getattr(part, "skip_pictures", None)
            if skip_pictures is not None:
                own = zip(slots, skipped, strict=True)
                skip_pictures([s % self.count for s, m in own if m and s // self.count == number])

    def _shares(self, slots: list[int]) -> list[tuple[int, list[int], slice]]:
        """Which of the slots belong to which part, under its own numbers; the same for many
        steps."""
        if self._shared[0] is not slots:
            shares, start = [], 0
            for number in range(len(self.parts)):
                mine = [s % self.count for s in slots if s // self.count == number]
                if mine:
                    shares.append((number, mine, slice(start, start + len(mine))))
                    start += len(mine)
            self._shared = (slots, shares)
        return self._shared[1]

    # A commit in mid-episode: environments that can save themselves do; for all others the
    # episode's actions are kept and played again.

    def restorable(self, slot: int) -> bool:
        """Whether the environment can save itself."""
        part, own = self._part(slot)
        return isinstance(part, Singles) and part.state_of(own) is not None

    def save(self, slot: int, actions: list[Any]) -> dict[str, Array]:
        """What :meth:`restore` needs to bring the slot back to this step."""
        part, own = self._part(slot)
        if isinstance(part, Singles) and (inner := part.state_of(own)) is not None:
            return {f"env/{k}": np.asarray(v) for k, v in inner.save_state().items()}
        if len(actions) > MOST_ACTIONS:
            raise EnvironmentFault(
                f"{self.tasks[slot].id}: an episode of {len(actions):,} steps that has not ended "
                f"cannot be saved: an environment without save_state() and load_state() is played "
                f"again from its beginning, for at most {MOST_ACTIONS:,} steps. Give it those two, or "
                "end its episodes (max_episode_steps, or gymnasium.wrappers.TimeLimit)"
            )
        return {"actions": pack_actions(self.action_space, actions)}

    def restore(
        self, slot: int, episode: Episode, saved: Mapping[str, Array]
    ) -> tuple[Any, list[Any]]:
        """Bring a slot back: its current observation (None if it cannot be asked for) and the
        episode's actions so far."""
        obs = self.reset(slot, episode)
        part, own = self._part(slot)
        if "actions" not in saved:
            assert isinstance(part, Singles)
            part.state_of(own).load_state(
                {k[4:]: v for k, v in saved.items() if k.startswith("env/")}
            )
            return None, []
        actions = unpack_actions(self.action_space, saved["actions"])
        try:
            for k, action in enumerate(actions, 1):
                self.skip([slot], [k < len(actions)])
                obs = part.step([own], [action])[0][0]
        except Exception as e:
            raise fault(f"{self.tasks[slot].id}.step", e, self._played([slot])) from e
        return obs, actions

    def close(self, quietly: bool = False) -> None:
        """Close everything; ``quietly`` when another error is already on its way."""
        first: Exception | None = None
        for k, part in enumerate(self.parts):
            try:
                part.close()
            except Exception as e:
                first = first or fault(f"{self.tasks[k * self.count].id}.close", e)
        self.parts = []
        if first is not None and not quietly:
            raise first


def pack_actions(space: spaces.Space[Any], actions: Sequence[Any]) -> Array:
    """An episode's actions as one array."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        flat = [spaces.flatten(space, a) for a in actions]
        return np.array(flat).reshape(len(actions), spaces.flatdim(space))
    return np.array(actions, dtype=space.dtype).reshape(len(actions), *(space.shape or ()))


def unpack_actions(space: spaces.Space[Any], packed: Array) -> list[Any]:
    """The actions that :func:`pack_actions` packed."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return [spaces.unflatten(space, a) for a in packed]
    return list(packed)
