"""Which episode a slot plays next, and what is left of an exposure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.errors import EnvironmentFault
from perdure.run.runner import Experience
from perdure.seeds import Address
from perdure.suite import Episode
from perdure.types import Exposure

AHEAD = 256
"""How many episodes' seeds are worked out at a time."""


@dataclass(eq=False, slots=True)
class Slot:
    """One environment's current episode, and the row it will become."""

    number: int
    exposure: int
    episode: int = -1
    """-1: no episode under way."""
    address: Episode = field(default_factory=lambda: Episode.alone(0))
    steps: int = 0
    """Steps of the current row (a window of the episode for continuing tasks)."""
    ret: float = 0.0
    success: float | None = None
    success_end: float | None = None
    measures: dict[str, float] = field(default_factory=dict)
    actions: list[Any] = field(default_factory=list)
    obs: Any = None

    def note(self, info: Mapping[str, Any], where: str) -> None:
        """Take in what a step's info says of success, and measures."""
        try:
            success = info.get("success", info.get("is_success"))
            if success is not None:
                self.success_end = float(success)
                self.success = max(self.success or 0.0, self.success_end)
            measures = info.get("measures")
            if measures:
                self.measures = {k: float(v) for k, v in measures.items()}
        except (AttributeError, TypeError, ValueError):
            raise EnvironmentFault(
                f"{where}: expected an info whose success is a number and whose measures map names to "
                f"numbers, got {info!r:.120}"
            ) from None

    def ended(self, e: Exposure, status: str, terminated: bool, truncated: bool) -> Experience:
        """The row that this has become; the next begins."""
        measures: dict[str, float | None] = {"return": self.ret}
        if self.success is not None:
            measures["success"], measures["success_end"] = self.success, self.success_end
        if self.measures:
            measures |= self.measures
        found = Experience(
            e,
            self.exposure,
            self.number,
            self.episode,
            self.episode // e.episodes_per_trial,
            self.address.seed,
            self.address.trial_seed,
            self.steps,
            status,
            terminated,
            truncated,
            measures,
        )
        self.steps, self.ret = 0, 0.0
        self.success, self.success_end, self.measures = None, None, {}
        return found


@dataclass(eq=False)
class Budget:
    """What is left of one exposure."""

    exposure: Exposure
    window: int | None
    episode_seeds: Address
    trial_seeds: Address | None
    """None: a trial's seed is that of its first episode."""
    phrasings: tuple[str, ...]
    evaluating: bool = False
    """Whether instances are played in turn."""
    adapted: Mapping[int, int] = field(default_factory=dict)
    """Which trial of the task comes in the place of some of the first: what their slots adapted to."""
    trials: int = 0
    """Trials begun."""
    episodes: int = 0
    """Episodes ended."""
    steps: int = 0
    known: dict[int, list[Episode]] = field(default_factory=dict)
    """Addresses of the episodes around the next ones."""

    def next_episode(self, last: int) -> int:
        """The number of the episode that follows a slot's last one (-1: none), or -1 if the budget
        holds none. A trial that has begun goes on; trials are taken in turn."""
        e, per = self.exposure, self.exposure.episodes_per_trial
        if self.left == 0:
            return -1
        if last >= 0 and (last + 1) % per:
            return last + 1
        if e.unit == "episodes" and self.trials * per >= e.amount:
            return -1
        self.trials += 1
        return (self.trials - 1) * per

    def episode(self, number: int) -> tuple[Episode, Sequence[Episode]]:
        """The address of an episode; and of those after it, where they were worked out just now."""
        chunk, place = divmod(number, AHEAD)
        if chunk in self.known:
            return self.known[chunk][place], ()
        if len(self.known) > 3:
            del self.known[min(self.known)]
        per, seed = self.exposure.episodes_per_trial, self.episode_seeds.seed
        self.known[chunk] = found = []
        end = (chunk + 1) * AHEAD
        if self.exposure.unit == "episodes":
            end = min(end, self.exposure.amount)
        for n in range(chunk * AHEAD, end):
            own = seed(n)
            if self.trial_seeds is not None:
                trial = self.trial_seeds.seed(self._trial(n // per))
            else:
                trial = own if n % per == 0 else seed(n - n % per)
            found.append(Episode(own, trial, n, n // per if self.evaluating else None))
        return found[place], found[place:]

    def _trial(self, number: int) -> int:
        """Which of the task's trials comes as this one: what was adapted to where that is known, and all
        others in order."""
        if number in self.adapted:
            return self.adapted[number]
        other = number - sum(k < number for k in self.adapted)
        for taken in sorted(set(self.adapted.values())):
            other += taken <= other
        return other

    @property
    def left(self) -> int | None:
        """Steps left, None where episodes are counted."""
        return self.exposure.amount - self.steps if self.exposure.unit == "steps" else None
