"""Several environments of one task, their physics on all cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perdure.suite import Episode
from perdure.suites._threads import pool
from perdure.suites.libero.env import Libero


class BatchedLibero:
    """Environments that are stepped by one call. Pictures are drawn by the calling thread, while
    others move what is still to be drawn."""

    def __init__(self, envs: Sequence[Libero]) -> None:
        self.envs, self.pool, self.started = list(envs), pool(), False
        self.skipped: frozenset[int] = frozenset()
        """Slots whose next pictures nobody looks at."""

    def reset(self, slot: int, episode: Episode) -> Any:
        """Begin an episode."""
        return self.envs[slot].reset(seed=episode.seed, options=episode.options)[0]

    def expect(self, episodes: Sequence[Episode]) -> None:
        """Not of use: a state is set in milliseconds."""

    def step_async(self, slots: Sequence[int], actions: Sequence[Any]) -> None:
        """Tell the robots what to do; their physics may run from now on."""
        envs = [self.envs[slot] for slot in slots]
        for env, action in zip(envs, actions, strict=True):
            env.push(action)
        self.pool.add(envs)
        self.started = True

    def skip_pictures(self, slots: Sequence[int]) -> None:
        """Draw nothing for these in the next step."""
        self.skipped = frozenset(slots)

    def step(
        self, slots: Sequence[int], actions: Sequence[Any]
    ) -> tuple[Any, list[float], list[bool], list[bool], Mapping[int, Mapping[str, Any]]]:
        """Move all, look at all."""
        if not self.started:
            self.step_async(slots, actions)
        self.started = False
        self.pool.work()
        seen: list[Any] = []
        rewards: list[float] = []
        ends: list[bool] = []
        cuts: list[bool] = []
        infos: dict[int, Mapping[str, Any]] = {}
        for k, slot in enumerate(slots):
            env = self.envs[slot]
            self.pool.wait(env)
            obs, reward, end, cut, infos[k] = env.settled(drawn=slot not in self.skipped)
            seen.append(obs)
            rewards.append(reward)
            ends.append(end)
            cuts.append(cut)
        self.skipped = frozenset()
        return seen, rewards, ends, cuts, infos

    def close(self) -> None:
        """Let go of all of them."""
        for env in self.envs:
            env.close()
