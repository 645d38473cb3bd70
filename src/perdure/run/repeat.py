"""Do environments repeat? At its end a lifetime plays a few of its episodes again.

Resuming, videos and every claim that a result can be had again rest on one promise: the same seed and
the same actions give the same episode. What the loop keeps anyway, an episode's actions, return and
length, and its last observation are enough to see whether it is kept. It takes no more than ``SHARE``
of the lifetime's steps and time, or a few steps of a short one (``SOME``), but one episode of at most
``LONGEST`` steps is always played. Rows know nothing of it: it comes when the last is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perdure.arrays import has_pictures, same_leaves, without_pictures
from perdure.run.guards import Observer
from perdure.run.progress import BEAT
from perdure.run.runner import EndedEpisode
from perdure.run.vector import Environments
from perdure.suite import Episode

if TYPE_CHECKING:
    from perdure.run.config import LifetimeConfig

SHARE = 0.02
"""Of a lifetime's steps, and of its time, for playing again."""
SOME = (200, 0.25)
"""Steps and seconds that are no matter, however short a lifetime is."""
LONGEST = 1000
"""Steps of an episode that is played again, at most."""
EACH = 2
"""Episodes kept of each task, of those that it learned from and of those it was evaluated on. The
later is played first: where an episode depends on those before it, they differ."""
MOST = 16
"""Episodes kept."""
TOLD = 5
"""Differences that are described."""


class Repeater:
    """Keeps a few of a lifetime's episodes and plays them again."""

    def __init__(self, config: LifetimeConfig) -> None:
        self.config = config
        self.kept: dict[str, list[EndedEpisode]] = {}
        """By task."""
        self._began = time.monotonic()

    def on_episode_end(self, ended: EndedEpisode) -> None:
        """An episode ended. One that was resumed in its middle has not all of its actions."""
        every = sum(map(len, self.kept.values()))
        if every >= MOST or ended.steps > LONGEST or len(ended.actions) != ended.steps:
            return
        mine = self.kept.setdefault(ended.task.key, [])
        if sum(e.place.learning == ended.place.learning for e in mine) < EACH:
            mine.append(replace(ended, actions=list(ended.actions), last=deepcopy(ended.last)))

    def play(self, taken: int, beat: Callable[[], None]) -> dict[str, Any] | None:
        """Play them again, as many as that is worth after ``taken`` steps: how many were, how many
        agreed, and what differed. None if there was none to play."""
        from perdure.agents.adapters._globals import GlobalRng

        began, played, agreed, steps = time.monotonic(), 0, 0, 0
        most, seconds = (
            max(SHARE * spent, some)
            for spent, some in zip((taken, began - self._began), SOME, strict=True)
        )
        differences: list[str] = []
        groups = sorted(self.kept.values(), key=lambda g: sum(len(e.actions) for e in g))
        with GlobalRng(0).swapped_in():  # Global generators are others'.
            for group in filter(None, groups):
                chosen: list[EndedEpisode] = []
                for e in reversed(group):
                    steps += len(e.actions)
                    if played + len(chosen) and (
                        steps > most or time.monotonic() - began > seconds
                    ):
                        break
                    chosen.append(e)
                for e, difference in zip(chosen, self._differences(chosen, beat), strict=True):
                    played += 1
                    agreed += not difference
                    if difference and len(differences) < TOLD:
                        kind = "learning" if e.place.learning else "evaluation"
                        where = f"{e.task.id}, {kind} episode of seed {e.address.seed}"
                        differences.append(f"{where}: {difference}")
        if not played:
            return None
        return {"played": played, "agreed": agreed, "differences": differences}

    def _differences(self, chosen: Sequence[EndedEpisode], beat: Callable[[], None]) -> list[str]:
        """What is different of each episode; empty where nothing is."""
        if not chosen:
            return []
        config, task = self.config, chosen[0].task
        observer = Observer(config.observation_space, "environment")
        out: list[str] = []
        try:
            suite = config.suites[task.suite]
            envs = Environments([(suite, task)], 1, observer, config.action_space)
            try:
                if len(chosen) == 1:
                    # Another one before it, so that it is not the first of its environment again.
                    envs.reset(0, Episode.alone(chosen[0].address.seed ^ 1))
                    envs.step([0], list(chosen[0].actions[:1]))
                for e in chosen:
                    out.append(_difference(envs, e, beat))
            finally:
                envs.close(quietly=True)
        except Exception as error:
            # Any error of the environment's: the lifetime is over, and it went well.
            words = f"{type(error).__name__}: {error}"[:200]
            out += [f"it raised {words}"] * (len(chosen) - len(out))
        return out


def _difference(envs: Environments, e: EndedEpisode, beat: Callable[[], None]) -> str:
    last, ret, ended, next_beat = envs.reset(0, e.address), 0.0, False, 0.0
    for k, action in enumerate(e.actions):
        if ended:
            return f"it ended after {k} steps, first after {len(e.actions)}"
        envs.skip([0], [k + 1 < len(e.actions)])
        following, rewards, ends, cuts, _ = envs.step([0], [action])
        last, ret, ended = following[0], ret + rewards[0], ends[0] or cuts[0]
        if time.monotonic() >= next_beat:
            beat()
            next_beat = time.monotonic() + BEAT
    if not ended:
        return f"it went on after {len(e.actions)} steps, where it ended first"
    if ret != e.ret:
        return f"its return was {ret:g}, first {e.ret:g}"
    if not has_pictures(e.last):
        last = without_pictures(last)
    return "" if same_leaves(last, e.last) else "its last observation was another"
