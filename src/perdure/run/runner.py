"""What the loop and its two runners know of each other.

A runner takes the agent through one group of exposures: through their environments
(:mod:`env_runner`) or their data (:mod:`data_runner`). The loop owns the lifetime: it gives the
runner its place, and takes its rows, measures, counts and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from perdure.suite import Episode
from perdure.types import Array, Block, Exposure, Task, Visibility

if TYPE_CHECKING:
    from perdure.agent import Agent
    from perdure.run.config import LifetimeConfig
    from perdure.run.repeat import Repeater
    from perdure.run.video import Recorder


@dataclass(frozen=True)
class Place:
    """Where in the lifetime a group of exposures stands."""

    number: int
    """Of the block."""
    block: Block
    phase: int
    group: int
    learning: bool
    visibility: Visibility
    first_exposure: int
    """Number of the group's first exposure within its phase."""
    deployed: bool

    @property
    def address(self) -> tuple[int, int, int]:
        """Block, phase and group: what seeds are derived from."""
        return (self.number, self.phase, self.group)

    @property
    def adapts(self) -> bool:
        """Whether it is adapted to what comes here."""
        return self.learning and self.block.kind == "adapt"

    @property
    def shows_rewards(self) -> bool:
        """Whether the agent sees rewards here."""
        shown = self.visibility.rewards
        return self.learning if shown is None else shown


class Experience(NamedTuple):
    """What a runner tells of one experience; the loop makes a row of it."""

    exposure: Exposure
    number: int
    """Of the exposure within its group."""
    slot: int
    episode: int
    trial: int
    seed: int | None
    trial_seed: int | None
    steps: int
    status: str
    terminated: bool
    truncated: bool
    measures: Mapping[str, float | None]


@dataclass(frozen=True)
class EndedEpisode:
    """An episode that ran to its end, as it may be recorded or played again."""

    task: Task
    place: Place
    exp: int
    """The number of its row."""
    address: Episode
    actions: Sequence[Any]
    """Fewer than its steps if it was resumed in its middle."""
    steps: int
    ret: float
    success: float | None
    last: Any = None
    """Its last observation, where that was kept; without pictures where the agent did not look at them."""


LastTrials: TypeAlias = dict[int, tuple[str, int]]
"""For each slot that adapted in a block: the key of the task, and which of its trials, it played last."""


def last_trials(saved: Iterable[tuple[int, tuple[str, int]]]) -> LastTrials:
    """The items of :data:`LastTrials`, as plain JSON values, put together again."""
    return {slot: (key, trial) for slot, (key, trial) in saved}


class Loop(Protocol):
    """What a runner may ask of the lifetime's loop."""

    config: LifetimeConfig
    agent: Agent
    recorder: Recorder | None
    repeater: Repeater | None
    next_beat: float
    adapted: LastTrials
    """In an adapt block; empty elsewhere."""

    @property
    def experiences(self) -> int:
        """How many rows there are: the number of the next."""

    @property
    def until_commit(self) -> int:
        """Steps left until the next commit."""

    def count(self, taken: int, width: int, learning: bool) -> None:
        """Steps were taken, each by so many slots at once (or one, with so many examples)."""

    def log_measures(self, measures: Mapping[str, float]) -> None:
        """Measures that learning returned; their mean goes into the next row."""

    def add_row(self, place: Place, experience: Experience) -> None:
        """An experience ended."""

    def tick(self, runner: Runner) -> None:
        """Commit if enough steps have passed; show signs of life."""


class Runner(Protocol):
    """What the loop asks of a runner."""

    place: Place

    def run(self) -> None:
        """Run until every budget is used up."""

    def save(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Everything needed to go on from this step: plain values and arrays."""

    def restore(self, position: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Go back to a saved step."""

    @property
    def fractions(self) -> list[tuple[Exposure, float]]:
        """How much of each exposure is done, from 0 to 1."""


def shared_fraction(runner: Runner) -> Callable[[], float]:
    """How much of a group of exposures is done, when asked: the mean over its exposures."""

    def fraction() -> float:
        parts = runner.fractions
        return sum(done for _, done in parts) / len(parts)

    return fraction
