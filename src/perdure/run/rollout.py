"""Driving environments: exposures in episodes or steps, alone or side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.agent import Agent
from perdure.errors import EnvironmentFault
from perdure.run.guards import Observer, action_guard, agent_fault, stack_actions
from perdure.run.vector import Environments
from perdure.seeds import Address
from perdure.types import Array, Exposure, Transitions

if TYPE_CHECKING:
    from perdure.run.loop import Life


AHEAD = 256
"""How many episodes' seeds are worked out at a time."""


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
    seeds: list[int] = field(default_factory=list)
    """Of the episodes around the next one."""

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
        method = "learn" if learning else "observe"
        self.taking = getattr(type(agent), method) is not getattr(Agent, method)
        """Whether the agent cares what happened; one that only acts is told nothing."""
        suites = [job.suites[e.task.suite] for e in exposures]
        self.budgets = [
            _Budget(e, s.window(e.task), self._address(j, e))
            for j, (e, s) in enumerate(zip(exposures, suites, strict=True))
        ]
        self.windows = any(b.window is not None for b in self.budgets)
        self.slots = [_Slot(j * n + i, j) for j in range(len(exposures)) for i in range(n)]
        tasks = [(s, e.task) for s, e in zip(suites, exposures, strict=True)]
        self.envs = Environments(tasks, n, self.observer, job.action_space)
        self.film = None if learning else life.film
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
        for b, (episodes, steps) in zip(self.budgets, position["budgets"], strict=True):
            b.episodes, b.steps = episodes, steps
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
            for s in self.slots:
                if s.episode < 0:
                    self._begin(s)
            while slots := self._active():
                self._drive(slots)
            for s in self.slots:
                if s.steps:
                    self._finish(s, "incomplete", False, False)
        except BaseException:
            self.envs.close(quietly=True)
            raise
        self.envs.close()

    def _begin(self, s: _Slot) -> bool:
        """Give an idle slot its next episode; False if the budget holds none."""
        budget = self.budgets[s.exposure]
        s.episode = budget.next_episode()
        if s.episode < 0:
            return False
        ahead = s.episode % AHEAD
        if ahead == 0 or not budget.seeds:
            first = s.episode - ahead
            budget.seeds = [budget.address.seed(first + i) for i in range(AHEAD)]
            self.envs.parts[s.exposure].expect(budget.seeds[ahead:])
        s.seed = budget.seeds[ahead]
        s.obs = self.envs.reset(s.number, s.seed)
        s.actions.clear()
        self.fresh[s.number] = True
        return True

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
        learning, taking, simple = self.learning, self.taking, observer.simple
        floats, step, guard, act = observer.float, self.envs.step, self.guard, agent.act
        take = agent.learn if learning else agent.observe
        dubious, now = observer.dubious, time.monotonic
        numbers = [s.number for s in slots]
        remember = [self._memory(s) for s in slots]
        ids = [self.exposures[s.exposure].task.id for s in slots]
        ctx = life.context(learning, ids, np.array(numbers), self.fresh)
        mine: Any = slice(None) if n == len(self.slots) else ctx.slots
        obs = self._current(slots)
        horizon, taken, over, stale = self._horizon(slots), 0, False, True
        while True:
            try:
                actions = act(obs, ctx)
            except Exception as e:
                raise agent_fault(agent, "act", e) from e
            chosen = guard(actions, n)
            following, rewards, ends, cuts, infos = step(numbers, chosen)
            for k, s in enumerate(slots):
                remember[k](chosen[k])
                s.ret += rewards[k]
                s.steps += 1
                if ends[k] or cuts[k]:
                    over = True
            for k, info in infos.items():
                self._note(slots[k], info)
            if floats and dubious(following):
                observer.check_finite(following, lambda k: self._where(slots[k]))
            next_obs = following if simple else observer.batch(following)
            if taking:
                batch = Transitions(
                    obs,
                    actions
                    if type(actions) is np.ndarray
                    else stack_actions(self.action_space, chosen),
                    np.array(rewards) if learning else None,
                    np.array(ends) if over else np.zeros(n, bool),
                    np.array(cuts) if over else np.zeros(n, bool),
                    next_obs,
                )
                try:
                    measures = take(batch, ctx)
                except Exception as e:
                    raise agent_fault(agent, take.__name__, e) from e
                if measures is not None and learning:
                    life.note(measures)
            if stale:
                self.fresh[mine] = False
                stale = False
            obs = next_obs
            taken += 1
            if over or taken >= horizon or now() >= life.next_beat:
                began = self._settle(slots, following, ends, cuts, taken)
                if began is None:
                    return
                if began:
                    obs, over, stale = self._renewed(slots, following, began), False, True
                horizon, taken = self._horizon(slots), 0

    def _memory(self, s: _Slot) -> Callable[[Any], None]:
        """Where an episode's actions go: to a list, unless the environment can save itself and
        nobody films an episode that will end."""
        if self.film is not None and self.budgets[s.exposure].window is None:
            return s.actions.append
        return _forget if self.envs.restorable(s.number) else s.actions.append

    def _current(self, slots: list[_Slot]) -> Any:
        batch = self.observer.empty(len(slots))
        for k, s in enumerate(slots):
            batch[k] = s.obs
        return self.observer.batch(batch)

    def _renewed(self, slots: list[_Slot], following: Any, began: list[int]) -> Any:
        """The observations to act on, where some episodes have just begun."""
        batch = following.copy()
        for k in began:
            batch[k] = slots[k].obs
        return self.observer.batch(batch)

    def _horizon(self, slots: list[_Slot]) -> int:
        """How many vector steps may pass before a budget, a window or a commit needs a look."""
        horizon = -(-self.life.until_commit // len(slots))
        for b in self.budgets:
            if b.left is not None:
                # A budget is shared by its environments; some may be idle, so this is a lower
                # bound, and a look too early costs nothing but time.
                horizon = min(horizon, b.left // self.life.setting.envs)
        if self.windows:
            for s in slots:
                window = self.budgets[s.exposure].window
                if window is not None:
                    horizon = min(horizon, window - s.steps)
        return max(horizon, 1)

    def _settle(
        self, slots: list[_Slot], following: Any, ends: list[bool], cuts: list[bool], taken: int
    ) -> list[int] | None:
        """Count the steps, end the rows that are complete, begin new episodes, commit if due.

        The rows of the batch whose episodes are new; None if the set of active slots changed.
        """
        budgets, life, changed, began = self.budgets, self.life, False, []
        life.count(taken * len(slots), self.learning)
        if len(budgets) == 1:
            budgets[0].steps += taken * len(slots)
        else:
            for s in slots:
                budgets[s.exposure].steps += taken
        for k, s in enumerate(slots):
            if ends[k] or cuts[k]:
                self._finish(s, "complete", ends[k], cuts[k])
                began.append(k)
                changed |= not self._begin(s)
            elif self.windows and s.steps == budgets[s.exposure].window:
                self._finish(s, "window", False, False)
        envs = life.setting.envs
        for b in budgets:
            # A step budget that can no longer feed every slot.
            changed |= b.left is not None and b.left < envs
        if changed or life.until_commit <= 0:
            for k, s in enumerate(slots):
                if k not in began:
                    s.obs = following[k]
        life.tick(self)
        return None if changed and self._active() != slots else began

    def _finish(self, s: _Slot, status: str, terminated: bool, truncated: bool) -> None:
        measures: dict[str, float | None] = {"return": s.ret}
        if s.success is not None:
            measures["success"], measures["success_end"] = s.success, s.success_end
        if s.measures:
            measures |= s.measures
        if self.film is not None and status == "complete":
            task, kind = self.exposures[s.exposure].task, self.life.heading[2]
            where = (self.life.exp, self.life.place[0], kind, s.episode, s.seed)
            self.film.saw(task, *where, s.steps, s.ret, s.success, s.actions)
        self.life.row(
            self.exposures[s.exposure],
            self.life.first_exposure + s.exposure,
            s.number,
            s.episode,
            s.seed,
            s.steps,
            status,
            terminated,
            truncated,
            measures,
        )
        s.steps, s.ret, s.success, s.success_end, s.measures = 0, 0.0, None, None, {}

    def _note(self, s: _Slot, info: Mapping[str, Any]) -> None:
        try:
            success = info.get("success", info.get("is_success"))
            if success is not None:
                s.success_end = float(success)
                s.success = max(s.success or 0.0, s.success_end)
            measures = info.get("measures")
            if measures:
                s.measures = {k: float(v) for k, v in measures.items()}
        except (AttributeError, TypeError, ValueError):
            raise EnvironmentFault(
                f"{self._where(s)}: expected an info whose success is a number and whose measures "
                f"map names to numbers, got {info!r:.120}"
            ) from None

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
