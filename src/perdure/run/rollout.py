"""Driving environments: exposures in episodes or steps, alone or side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.agent import Agent
from perdure.errors import EnvironmentFault
from perdure.run.guards import (
    Observer,
    action_guard,
    agent_fault,
    check_flag,
    check_reward,
    stack_actions,
)
from perdure.run.vector import Environments, fault
from perdure.seeds import Address
from perdure.types import Array, Context, Exposure, Transitions

if TYPE_CHECKING:
    from perdure.run.loop import Life


@dataclass(eq=False)
class _Slot:
    """One environment's current episode, and the row it will become."""

    number: int
    exposure: int
    episode: int = -1
    """-1: no episode under way."""
    seed: int = 0
    steps: int = 0
    """Steps of the current row (a window of the episode for continuing tasks)."""
    ret: float = 0.0
    success: float | None = None
    success_end: float | None = None
    measures: dict[str, float] = field(default_factory=dict)
    actions: list[Any] = field(default_factory=list)
    obs: Any = None


@dataclass(eq=False)
class _Budget:
    """What is left of one exposure."""

    exposure: Exposure
    window: int | None
    address: Address
    episodes: int = 0
    """Episodes begun."""
    steps: int = 0

    def next_episode(self) -> int:
        """The next episode's number, or -1 if the budget holds none."""
        e = self.exposure
        if (e.unit == "episodes" and self.episodes >= e.amount) or self.left == 0:
            return -1
        self.episodes += 1
        return self.episodes - 1

    @property
    def left(self) -> int | None:
        """Steps left, None where episodes are counted."""
        return self.exposure.amount - self.steps if self.exposure.unit == "steps" else None


def _forget(action: Any) -> None:
    return None


class Rollout:
    """One group of exposures on their environments."""

    def __init__(
        self, life: Life, agent: Agent, exposures: Sequence[Exposure], learning: bool
    ) -> None:
        self.life, self.agent, self.learning = life, agent, learning
        self.exposures = exposures
        job, n = life.setting, life.setting.envs
        self.observer = Observer(job.observation_space, "environment")
        self.action_space = job.action_space
        self.guard = action_guard(job.action_space, type(agent).__name__)
        self.watching = type(agent).observe is not Agent.observe
        suites = [job.suites[e.task.suite] for e in exposures]
        self.budgets = [
            _Budget(e, s.window(e.task), self._address(j, e))
            for j, (e, s) in enumerate(zip(exposures, suites, strict=True))
        ]
        self.slots = [_Slot(j * n + i, j) for j in range(len(exposures)) for i in range(n)]
        self.envs = Environments(
            [(suites[s.exposure], exposures[s.exposure].task) for s in self.slots],
            self.observer,
            job.action_space,
        )
        self.fresh: Array = np.ones(len(self.slots), bool)

    def _address(self, j: int, e: Exposure) -> Address:
        # Evaluation plays the same episodes of a task every time, so that a change of score is a
        # change of the agent. Learning episodes are new in every block.
        seed = self.life.setting.seed
        if not self.learning:
            return Address(seed, "eval", e.task.key, "episode")
        return Address(seed, "learn", *self.life.place, j, "episode")

    # Saving and restoring.

    def save(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Everything needed to go on from this step: plain values and arrays."""
        arrays: dict[str, Array] = {}
        plain = []
        for s in self.slots:
            plain.append(
                [s.episode, s.seed, s.steps, s.ret, s.success, s.success_end, dict(s.measures)]
            )
            if s.episode >= 0:
                for k, v in self.envs.save(s.number, s.actions).items():
                    arrays[f"slot{s.number}/{k}"] = v
                if self.observer.simple:
                    arrays[f"slot{s.number}/obs"] = np.asarray(s.obs)
        position = {
            "slots": plain,
            "budgets": [[b.episodes, b.steps] for b in self.budgets],
            "fresh": self.fresh.tolist(),
        }
        return position, arrays

    def restore(self, position: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Go back to a saved step: environments are reset to their seeds and brought forward."""
        for b, (b.episodes, b.steps) in zip(self.budgets, position["budgets"], strict=True):
            pass
        self.fresh[:] = position["fresh"]
        for s, values in zip(self.slots, position["slots"], strict=True):
            s.episode, s.seed, s.steps, s.ret, s.success, s.success_end, measures = values
            s.measures = dict(measures)
            if s.episode < 0:
                continue
            prefix = f"slot{s.number}/"
            saved = {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
            was = saved.pop("obs", None)
            obs, s.actions[:] = self.envs.restore(s.number, s.seed, saved)
            s.obs = obs if was is None else was
            if obs is not None and was is not None and not np.array_equal(obs, was, equal_nan=True):
                task = self.envs.tasks[s.number]
                raise EnvironmentFault(
                    f"{task.id}: playing episode seed {s.seed} again for {len(s.actions)} steps did "
                    "not lead to the same observation, so this block cannot be resumed exactly; "
                    f"perdure check {task.id} shows where its reset(seed) is not honest"
                )

    # The loop.

    def run(self) -> None:
        """Run until every budget is used up."""
        try:
            self._begin()
            while slots := self._active():
                self._drive(slots)
            for s in self.slots:
                if s.steps:
                    self._finish(s, "incomplete", False, False)
        except BaseException:
            self.envs.close(quietly=True)
            raise
        self.envs.close()

    def _begin(self) -> None:
        """Give every idle slot its next episode, in slot order."""
        for s in self.slots:
            if s.episode < 0:
                budget = self.budgets[s.exposure]
                s.episode = budget.next_episode()
                if s.episode < 0:
                    continue
                s.seed = budget.address.seed(s.episode)
                s.obs = self.envs.reset(s.number, s.seed)
                s.actions.clear()
                self.fresh[s.number] = True

    def _active(self) -> list[_Slot]:
        """The slots that take the next step: an episode under way and budget left for it."""
        left = [b.left for b in self.budgets]
        out = []
        for s in self.slots:
            steps = left[s.exposure]
            if s.episode < 0 or steps == 0:
                continue
            if steps is not None:
                left[s.exposure] = steps - 1
            out.append(s)
        return out

    def _drive(self, slots: list[_Slot]) -> None:
        """Step while this set of slots is the active one.

        The hot path: all that stays the same between steps is set up once, and budgets are
        looked at only when an episode ends or one of them may run out.
        """
        n, life, agent, observer = len(slots), self.life, self.agent, self.observer
        learning, watching, simple = self.learning, self.watching, observer.simple
        shape, dtype, floats = observer.shape, observer.dtype, observer.float
        guard, act, take = self.guard, agent.act, agent.learn if self.learning else agent.observe
        finite, total, now = np.isfinite, np.add.reduce, time.monotonic
        steps = [(k, s, self.envs.steps[s.number], self._memory(s)) for k, s in enumerate(slots)]
        numbers = np.array([s.number for s in slots])
        ids = [self.exposures[s.exposure].task.id for s in slots]
        ctx = life.context(learning, ids, numbers, self.fresh)
        obs = self._current(slots)
        horizon, taken, over, stale = self._horizon(slots), 0, False, True
        while True:
            try:
                actions = act(obs, ctx)
            except Exception as e:
                raise agent_fault(agent, "act", e) from e
            chosen = guard(actions, n)
            following = observer.empty(n)
            rewards: list[float] = []
            ends: list[bool] = []
            cuts: list[bool] = []
            for k, s, step, remember in steps:
                action = chosen[k]
                try:
                    seen, reward, end, cut, info = step(action)
                except Exception as e:
                    raise fault(self._where(s), e) from e
                if type(seen) is not np.ndarray or seen.shape != shape or seen.dtype != dtype:
                    seen = observer.admit(seen, self._where(s))
                following[k] = seen
                if type(reward) is not float or reward - reward != 0.0:
                    reward = check_reward(reward, self._where(s))
                if (end is not True and end is not False) or (cut is not True and cut is not False):
                    end = check_flag(end, "terminated", self._where(s))
                    cut = check_flag(cut, "truncated", self._where(s))
                remember(action)
                s.ret += reward
                s.steps += 1
                if info:
                    self._note(s, info)
                rewards.append(reward)
                ends.append(end)
                cuts.append(cut)
                if end or cut:
                    over = True
            if floats and not finite(total(following, axis=None)):
                observer.check_finite(following, lambda k: self._where(slots[k]))
            next_obs = following if simple else observer.batch(following)
            if learning or watching:
                batch = Transitions(
                    obs,
                    actions
                    if type(actions) is np.ndarray
                    else stack_actions(self.action_space, chosen),
                    np.array(rewards) if learning else None,
                    np.array(ends),
                    np.array(cuts),
                    next_obs,
                )
                try:
                    measures = take(batch, ctx)
                except Exception as e:
                    raise agent_fault(agent, take.__name__, e) from e
                if measures is not None and learning:
                    life.note(measures)
            if stale:
                self.fresh[numbers] = False
                stale = False
            obs = next_obs
            taken += 1
            if over or taken >= horizon or now() >= life.next_beat:
                self._settle(slots, following, ends, cuts, taken)
                if self._active() != slots:
                    return
                if over:
                    obs, over, stale = self._current(slots), False, True
                horizon, taken = self._horizon(slots), 0

    def _memory(self, s: _Slot) -> Callable[[Any], None]:
        """Where an episode's actions go: to a list, unless the environment can save itself."""
        return _forget if self.envs.restorable(s.number) else s.actions.append

    def _current(self, slots: list[_Slot]) -> Any:
        batch = self.observer.empty(len(slots))
        for k, s in enumerate(slots):
            batch[k] = s.obs
        if self.observer.float:
            self.observer.check_finite(batch, lambda k: f"{self._where(slots[k])} (reset)")
        return self.observer.batch(batch)

    def _horizon(self, slots: list[_Slot]) -> int:
        """How many vector steps may pass before a budget, a window or a commit needs a look."""
        horizon = -(-self.life.until_commit // len(slots))
        for j, b in enumerate(self.budgets):
            mine = [s for s in slots if s.exposure == j]
            if mine and b.left is not None:
                horizon = min(horizon, b.left // len(mine))
            if mine and b.window is not None:
                horizon = min(horizon, *(b.window - s.steps for s in mine))
        return max(horizon, 1)

    def _settle(
        self, slots: list[_Slot], following: Any, ends: list[bool], cuts: list[bool], taken: int
    ) -> None:
        """Count the steps, end the rows that are complete, begin new episodes, commit if due."""
        for s in slots:
            self.budgets[s.exposure].steps += taken
        self.life.count(taken * len(slots), self.learning)
        for k, s in enumerate(slots):
            s.obs = following[k]
            if ends[k] or cuts[k]:
                self._finish(s, "complete", ends[k], cuts[k])
                s.episode = -1
            elif s.steps == self.budgets[s.exposure].window:
                self._finish(s, "window", False, False)
        self._begin()
        self.life.tick(self)

    def _finish(self, s: _Slot, status: str, terminated: bool, truncated: bool) -> None:
        e = self.exposures[s.exposure]
        self.life.row(
            e,
            exposure=self.life.first_exposure + s.exposure,
            slot=s.number,
            episode=s.episode,
            seed=s.seed,
            steps=s.steps,
            status=status,
            terminated=terminated,
            truncated=truncated,
            measures={
                "return": s.ret,
                "success": s.success,
                "success_end": s.success_end,
                **s.measures,
            },
        )
        s.steps, s.ret, s.success, s.success_end, s.measures = 0, 0.0, None, None, {}

    def _note(self, s: _Slot, info: Mapping[str, Any]) -> None:
        success = info.get("success", info.get("is_success"))
        if success is not None:
            s.success_end = float(success)
            s.success = max(s.success or 0.0, s.success_end)
        measures = info.get("measures")
        if measures:
            s.measures = {k: float(v) for k, v in measures.items()}

    def _where(self, s: _Slot) -> str:
        return f"{self.exposures[s.exposure].task.id}.step"

    @property
    def fraction(self) -> list[tuple[Exposure, float]]:
        """How far each exposure is."""
        done = []
        for b in self.budgets:
            amount = b.steps if b.exposure.unit == "steps" else max(b.episodes - 1, 0)
            done.append((b.exposure, min(amount / b.exposure.amount, 1.0)))
        return done
