"""Driving environments: exposures in episodes or steps, alone or side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.arrays import same_leaves, without_pictures
from perdure.errors import EnvironmentFault
from perdure.run.boundaries import context_of
from perdure.run.budget import Budget, Slot
from perdure.run.guards import Observer, action_guard, agent_fault, stack_actions
from perdure.run.memories import EpisodeBoundaries, adapted_trials
from perdure.run.repeat import EACH
from perdure.run.runner import EndedEpisode, Loop, Place, shared_fraction
from perdure.run.vector import Environments
from perdure.seeds import Address
from perdure.suite import Episode
from perdure.types import Array, Context, Exposure, Transitions


def _forget(action: Any) -> None:
    return None


class EnvRunner:
    """One group of exposures on their environments."""

    def __init__(self, loop: Loop, place: Place, exposures: Sequence[Exposure]) -> None:
        self.loop, self.agent, self.place = loop, loop.agent, place
        self.learning, self.exposures = place.learning, exposures
        job, n = loop.config, loop.config.envs
        self.observer = Observer(job.observation_space, "environment")
        self.action_space = job.action_space
        self.guard = action_guard(job.action_space, type(self.agent).__name__)
        method = "learn" if self.learning else "observe"
        self.taking = getattr(type(self.agent), method) is not getattr(Agent, method)
        """Whether the agent takes transitions; one that only acts gets none."""
        suites = [job.suites[e.task.suite] for e in exposures]
        adapted = adapted_trials({} if self.learning else loop.adapted, exposures, n)
        self.budgets = [
            Budget(
                e,
                s.window(e.task),
                *self._addresses(j, e),
                job.phrasings(e.task),
                # What is adapted to is drawn, and what is evaluated then is the same.
                place.block.kind == "eval",
                adapted[j],
            )
            for j, (e, s) in enumerate(zip(exposures, suites, strict=True))
        ]
        self.windows = any(b.window is not None for b in self.budgets)
        self.phrased = any(len(b.phrasings) > 1 for b in self.budgets)
        self.slots = [Slot(j * n + i, j) for j in range(len(exposures)) for i in range(n)]
        tasks = [(s, e.task) for s, e in zip(suites, exposures, strict=True)]
        self.envs = Environments(tasks, n, self.observer, job.action_space)
        skips = type(self.agent).skips_observation is not Agent.skips_observation
        self.skipping = skips and not self.taking and self.envs.skips()
        """Whether some observations have black pictures, which the agent does not look at."""
        self.recorder = None if self.learning else loop.recorder
        self.offered = 0 if loop.repeater is not None else EACH
        """Episodes that were offered to be played again."""
        carried = {j * n + i for j, trials in enumerate(adapted) for i in trials}
        self.boundaries = EpisodeBoundaries(self.agent, exposures, len(self.slots), carried)
        self.taken = 0
        """Vector steps since budgets were last looked at."""

    def _addresses(self, j: int, e: Exposure) -> tuple[Address, Address | None]:
        # Evaluation plays the same episodes of a task every time, so that a change of score is a
        # change of the agent. Learning episodes are new in every block.
        seed, fixed = self.loop.config.seed, ("eval", e.task.key)
        own = Address(seed, "learn", *self.place.address, j, "episode")
        if not self.learning:
            own = Address(seed, *fixed, "episode")
        # What is adapted to is what is evaluated then.
        adapting = self.place.block.kind == "adapt"
        return own, Address(seed, *fixed, "trial") if adapting else None

    # Saving and restoring.

    def save(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Everything needed to go on from this step: plain values and arrays."""
        arrays: dict[str, Array] = {}
        plain = []
        for s in self.slots:
            plain.append(
                [s.episode, *s.address, s.steps, s.ret, s.success, s.success_end, dict(s.measures)]
            )
            if s.episode >= 0:
                saved = self.envs.save(s.number, s.actions)
                saved |= self.observer.pack(s.obs) or {}
                arrays |= {f"slot{s.number}/{k}": v for k, v in saved.items()}
        position = {
            "slots": plain,
            "budgets": [[b.trials, b.episodes, b.steps] for b in self.budgets],
            **self.boundaries.save(),
        }
        return position, arrays

    def restore(self, position: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Go back to a saved step: environments are reset to their seeds and brought forward."""
        for b, counts in zip(self.budgets, position["budgets"], strict=True):
            b.trials, b.episodes, b.steps = counts
        self.boundaries.restore(position)
        for s, values in zip(self.slots, position["slots"], strict=True):
            s.episode, seed, *address, s.steps, s.ret, s.success, s.success_end, more = values
            s.address, s.measures = Episode(seed, *address), dict(more)
            if s.episode < 0:
                continue
            prefix = f"slot{s.number}/"
            saved = {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
            packed = {k: saved.pop(k) for k in list(saved) if k == "obs" or k.startswith("obs/")}
            obs, s.actions[:] = self.envs.restore(s.number, s.address, saved)
            was = self.observer.unpack(packed) if packed else None
            s.obs = obs if was is None else was
            task = self.envs.tasks[s.number]
            if s.obs is None:
                raise EnvironmentFault(
                    f"{task.id} saves itself but shows observations of {self.observer.space}, which "
                    "are not made of arrays: it cannot be resumed in mid-episode"
                )
            told = without_pictures if self.skipping else lambda seen: seen
            if obs is not None and was is not None and not same_leaves(told(obs), told(was)):
                raise EnvironmentFault(
                    f"{task.id}: playing episode seed {seed} again for {len(s.actions)} steps did "
                    "not lead to the same observation, so this block cannot be resumed exactly; "
                    f"perdure check {task.id} shows where its reset(seed) is not honest"
                )

    # The loop.

    def run(self) -> None:
        """Run until every budget is used up."""
        try:
            # All are told what comes before one begins, so that they can begin together.
            for s in [s for s in self.slots if s.episode < 0 and self._assign(s)]:
                self._reset(s)
            while slots := self._active():
                self._drive(slots)
            for s in self.slots:
                if s.steps:
                    self._finish(s, "incomplete", False, False)
        except BaseException:
            self.envs.close(quietly=True)
            raise
        self.envs.close()

    def _begin(self, s: Slot) -> bool:
        """Begin an idle slot's next episode; False if the budget holds none."""
        if not self._assign(s):
            return False
        self._reset(s)
        return True

    def _assign(self, s: Slot) -> bool:
        """Give an idle slot its next episode; False if the budget holds none."""
        budget = self.budgets[s.exposure]
        s.episode = budget.next_episode(s.episode)
        if s.episode < 0:
            return False
        s.address, upcoming = budget.episode(s.episode)
        if upcoming:
            self.envs.parts[s.exposure].expect(upcoming)
        return True

    def _reset(self, s: Slot) -> None:
        s.obs = self.envs.reset(s.number, s.address)
        s.actions.clear()
        per = self.budgets[s.exposure].exposure.episodes_per_trial
        self.boundaries.begin(s.number, s.episode, per)

    def _active(self) -> list[Slot]:
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

    def _drive(self, slots: list[Slot]) -> None:
        """Step while this set of slots is the active one.

        The hot path: all that stays the same between steps is set up once, and budgets are
        looked at only when an episode ends or one of them may run out.
        """
        n, loop, agent, observer = len(slots), self.loop, self.agent, self.observer
        learning, taking, simple = self.learning, self.taking, observer.simple
        skipping = self.skipping
        rewarded = self.place.shows_rewards
        floats, step, guard, act = observer.float, self.envs.step, self.guard, agent.act
        take = agent.learn if learning else agent.observe
        dubious, now = observer.dubious, time.monotonic
        numbers = [s.number for s in slots]
        remember = [self._played(s) for s in slots]
        ctx = self._context(slots)
        self.boundaries.reset_memories(numbers)
        mine: Any = slice(None) if n == len(self.slots) else ctx.slots
        obs = self._current(slots)
        horizon, self.taken, over, stale = self._horizon(slots), 0, False, True
        while True:
            try:
                actions = act(obs, ctx)
            except Exception as e:
                raise agent_fault(agent, "act", e) from e
            chosen = guard(actions, n)
            if skipping:
                self._skip(numbers, ctx)
            following, rewards, ends, cuts, infos = step(numbers, chosen)
            for k, s in enumerate(slots):
                remember[k](chosen[k])
                s.ret += rewards[k]
                s.steps += 1
            if True in ends or True in cuts:
                over = True
            if infos:
                for k, info in infos.items():
                    slots[k].note(info, self._where(slots[k]))
            if floats and dubious(following):
                observer.check_finite(following, lambda k: self._where(slots[k]))
            next_obs = following if simple else observer.batch(following)
            if taking:
                batch = Transitions(
                    obs,
                    actions
                    if type(actions) is np.ndarray
                    else stack_actions(self.action_space, chosen),
                    np.array(rewards) if rewarded else None,
                    np.array(ends) if over else np.zeros(n, bool),
                    np.array(cuts) if over else np.zeros(n, bool),
                    next_obs,
                )
                try:
                    measures = take(batch, ctx)
                except Exception as e:
                    raise agent_fault(agent, take.__name__, e) from e
                if measures is not None and learning:
                    loop.log_measures(measures)
            if stale:
                self.boundaries.stepped(mine)
                stale = False
            obs = next_obs
            self.taken += 1
            if over or self.taken >= horizon or now() >= loop.next_beat:
                began = self._settle(slots, following, ends, cuts)
                if began is None:
                    return
                if began:
                    obs, over, stale = self._renewed(slots, following, began), False, True
                    self.boundaries.reset_memories(numbers)
                    if self.phrased:
                        ctx = self._context(slots)
                horizon = self._horizon(slots)

    def _skip(self, numbers: list[int], ctx: Context) -> None:
        """Say whose next pictures need not be drawn."""
        skipped = self.agent.skips_observation(ctx.slots)
        if skipped is not None:
            self.envs.skip(numbers, skipped)

    def _context(self, slots: list[Slot]) -> Context:
        budgets = [self.budgets[s.exposure] for s in slots]
        said = [
            b.phrasings[s.address.seed % len(b.phrasings)] if b.phrasings else ""
            for b, s in zip(budgets, slots, strict=True)
        ]
        steps = [b.exposure.amount for b in self.budgets if b.exposure.unit == "steps"]
        return context_of(
            self.loop.config,
            self.place,
            [b.exposure for b in budgets],
            np.array([s.number for s in slots]),
            self.boundaries.episode_start,
            trial_start=self.boundaries.trial_start,
            instructions=said,
            length=sum(steps) if len(steps) == len(self.budgets) else None,
            fraction=shared_fraction(self),
        )

    def _played(self, s: Slot) -> Callable[[Any], None]:
        """Where an episode's actions go: to a list, unless the environment can save itself and
        no episode that will end is recorded, or played again."""
        wanted = self.recorder is not None or self.offered < EACH
        if wanted and self.budgets[s.exposure].window is None:
            return s.actions.append
        return _forget if self.envs.restorable(s.number) else s.actions.append

    def _current(self, slots: list[Slot]) -> Any:
        batch = self.observer.empty(len(slots))
        for k, s in enumerate(slots):
            batch[k] = s.obs
        return self.observer.batch(batch)

    def _renewed(self, slots: list[Slot], following: Any, began: list[int]) -> Any:
        """The observations to act on, where some episodes have just begun."""
        batch = following.copy()
        for k in began:
            batch[k] = slots[k].obs
        return self.observer.batch(batch)

    def _horizon(self, slots: list[Slot]) -> int:
        """How many vector steps may pass before a budget, a window or a commit needs a look."""
        horizon = -(-self.loop.until_commit // len(slots))
        for b in self.budgets:
            if (left := b.left) is not None:
                # A budget is shared by its environments; some may be idle, so this is a lower
                # bound, and a look too early costs nothing but time.
                horizon = min(horizon, left // self.loop.config.envs)
        if self.windows:
            for s in slots:
                window = self.budgets[s.exposure].window
                if window is not None:
                    horizon = min(horizon, window - s.steps)
        return max(horizon, 1)

    def _settle(
        self, slots: list[Slot], following: Any, ends: list[bool], cuts: list[bool]
    ) -> list[int] | None:
        """Count the steps, end the rows that are complete, begin new episodes, commit if due.

        The rows of the batch whose episodes are new; None if the set of active slots changed.
        """
        budgets, loop, changed, began = self.budgets, self.loop, False, []
        taken, self.taken = self.taken, 0
        loop.count(taken, len(slots), self.learning)
        if len(budgets) == 1:
            budgets[0].steps += taken * len(slots)
        else:
            for s in slots:
                budgets[s.exposure].steps += taken
        for k, s in enumerate(slots):
            if ends[k] or cuts[k]:
                if self.offered < EACH:
                    self._offer(s, following[k])
                self._finish(s, "complete", ends[k], cuts[k])
                began.append(k)
                changed |= not self._begin(s)
            elif self.windows and s.steps == budgets[s.exposure].window:
                self._finish(s, "window", False, False)
        envs = loop.config.envs
        for b in budgets:
            # A step budget that can no longer feed every slot.
            changed |= (left := b.left) is not None and left < envs
        if changed or loop.until_commit <= 0:
            for k, s in enumerate(slots):
                if k not in began:
                    s.obs = following[k]
        loop.tick(self)
        return None if changed and self._active() != slots else began

    def _offer(self, s: Slot, last: Any) -> None:
        self.offered += 1
        if self.loop.repeater is not None:
            last = without_pictures(last) if self.skipping else last
            self.loop.repeater.on_episode_end(self._ended(s, last))

    def _ended(self, s: Slot, last: Any = None) -> EndedEpisode:
        return EndedEpisode(
            self.exposures[s.exposure].task,
            self.place,
            self.loop.experiences,
            s.address,
            s.actions,
            s.steps,
            s.ret,
            s.success,
            last,
        )

    def _finish(self, s: Slot, status: str, terminated: bool, truncated: bool) -> None:
        place, e = self.place, self.exposures[s.exposure]
        if self.recorder is not None and status == "complete":
            self.recorder.on_episode_end(self._ended(s))
        if status == "complete":
            self.budgets[s.exposure].episodes += 1
        self.loop.add_row(place, s.ended(e, status, terminated, truncated))

    def _where(self, s: Slot) -> str:
        return f"{self.exposures[s.exposure].task.id}.step"

    @property
    def fractions(self) -> list[tuple[Exposure, float]]:
        """How much of each exposure is done."""
        out = []
        for b in self.budgets:
            done = b.episodes
            if b.exposure.unit == "steps":
                done = b.steps + self.taken * self.loop.config.envs
            out.append((b.exposure, min(done / b.exposure.amount, 1.0)))
        return out
