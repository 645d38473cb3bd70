"""What happened in an evaluation, written down where it was played and passed to the lifetime's loop later.

Evaluation leaves no trace in the agent, its episodes have addresses, and so have the agent's draws in it.
So a task may be evaluated anywhere, in any order: what it gave is a :class:`Transcript`, and
:class:`TranscriptRunner` gives the loop the rows, commits and videos that it would have had by playing itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gymnasium import spaces

from perdure.agent import Agent
from perdure.run.agent_state import AgentState
from perdure.run.boundaries import Group, tell
from perdure.run.config import LifetimeConfig
from perdure.run.data_runner import DataRunner
from perdure.run.env_runner import EnvRunner
from perdure.run.guards import ARRAYS, Observer
from perdure.run.progress import BEAT
from perdure.run.repeat import Repeater
from perdure.run.runner import EndedEpisode, Experience, LastTrials, Loop, Place, Runner
from perdure.run.vector import pack_actions, unpack_actions
from perdure.run.video import Recorder
from perdure.suite import Episode
from perdure.types import Array, Exposure, Task

NEVER = 1 << 62
"""Steps until a commit, for a loop that makes none."""


@dataclass
class Transcript:
    """What the evaluation of one group gave, in order.

    Events are lists of plain values, of which the first says what it was: ``count`` (steps, slots), ``row``,
    ``seen`` (an episode that may be played again) and ``video`` (one that may be recorded). Of these two,
    ``arrays`` hold the actions and the last observation, by number.
    """

    events: list[list[Any]] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)


class TranscribingLoop:
    """What a runner sees in place of the lifetime's loop: nothing is committed, all is written down."""

    def __init__(
        self,
        config: LifetimeConfig,
        agent: Agent,
        videos: bool,
        repeats: bool,
        adapted: LastTrials,
        beat: Callable[[Runner], None],
    ) -> None:
        self.config, self.agent, self.adapted, self._beat = config, agent, adapted, beat
        self.recorder: Any = _Writer(self, "video") if videos else None
        self.repeater: Any = _Writer(self, "seen") if repeats else None
        self.observer = Observer(config.observation_space, "environment")
        self.next_beat = 0.0
        self.experiences, self.until_commit = 0, NEVER
        self.transcript = Transcript()

    def visit(self, state: AgentState, group: Group, enters: bool, leaves: bool) -> Transcript:
        """Evaluate a group; it may be the first of its task, and the last. What was written down is also
        there if this raises."""
        self.transcript = Transcript()
        (place, exposures), here = group, [group]
        state.begin_group(self.config.seed, *place.address)
        if enters:
            tell(self.agent, self.config, place.number, "enter", "task", here)
        tell(self.agent, self.config, place.number, "enter", "variant", here)
        runner_for(self, place, exposures).run()
        tell(self.agent, self.config, place.number, "leave", "variant", here)
        if leaves:
            tell(self.agent, self.config, place.number, "leave", "task", here)
        return self.transcript

    def count(self, taken: int, width: int, learning: bool) -> None:
        """Steps were taken."""
        last: list[Any] = self.transcript.events[-1] if self.transcript.events else [""]
        if last[0] == "count" and last[2] == width:
            last[1] += taken
        else:
            self.transcript.events.append(["count", taken, width])

    def log_measures(self, measures: Mapping[str, float]) -> None:
        """Nothing that evaluates gives measures beside its rows."""
        raise AssertionError(measures)

    def add_row(self, place: Place, experience: Experience) -> None:
        """An experience ended."""
        self.transcript.events.append(["row", *experience[1:]])

    def tick(self, runner: Runner) -> None:
        """Show signs of life."""
        if (now := time.monotonic()) >= self.next_beat:
            self.next_beat = now + BEAT
            self._beat(runner)

    def keep(self, actions: Sequence[Any], last: Any = None) -> str | None:
        """Where an episode's actions, and its last observation if there is one to keep, stand in the
        transcript's arrays; None if they are not made of arrays."""
        space, arrays = self.config.action_space, self.transcript.arrays
        if not isinstance(space, (*ARRAYS, spaces.Dict, spaces.Tuple)):
            return None
        seen = {} if last is None else self.observer.pack(last)
        if seen is None:
            return None
        name = str(len(self.transcript.events))
        arrays[f"{name}/actions"] = pack_actions(space, actions)
        arrays |= {f"{name}/{key}": value for key, value in seen.items()}
        return name


class _Writer:
    """Takes the place of a recorder of videos, or of a repeater."""

    def __init__(self, loop: TranscribingLoop, what: str) -> None:
        self.loop, self.what = loop, what

    def on_episode_end(self, ended: EndedEpisode) -> None:
        """An episode ended."""
        if len(ended.actions) != ended.steps:
            return
        if (name := self.loop.keep(ended.actions, ended.last)) is not None:
            where = [self.what, name, ended.task.to_json(), list(ended.address)]
            self.loop.transcript.events.append([*where, ended.steps, ended.ret, ended.success])


def runner_for(loop: Loop, place: Place, group: Sequence[Exposure]) -> Runner:
    """What runs a group: on its data, or in its environments."""
    return (DataRunner if group[0].on_data else EnvRunner)(loop, place, group)


class TranscriptRunner:
    """A runner that plays nothing: it passes on to the loop what a transcript says.

    The loop commits after the same rows as if it had played. It has no environments to save then, only
    how much was passed on: a lifetime that resumes evaluates the group again, and skips that much.
    """

    def __init__(
        self,
        loop: Loop,
        group: Group,
        transcript: Transcript,
        told: Sequence[int] = (0, 0),
        shown: tuple[Place, Callable[[], list[tuple[Exposure, float]]]] | None = None,
    ) -> None:
        self.loop, self.transcript = loop, transcript
        self.here, self.exposures = group
        # Where it shows to be: several groups may be under way.
        self.place = self.here if shown is None else shown[0]
        self._fractions = None if shown is None else shown[1]
        self.skip_steps, self.skip_rows = told
        self.steps = self.rows = 0
        self.over = False

    def run(self) -> None:
        """Pass everything on."""
        for what, *values in self.transcript.events:
            if what == "count":
                self._count(*values)
            elif what == "row":
                self._row(*values)
            elif self.rows >= self.skip_rows:
                self._episode(what, *values)
        self.over = True
        if self.loop.until_commit <= 0:
            self.loop.tick(self)

    def _count(self, taken: int, width: int) -> None:
        past = min(taken * width, max(self.skip_steps - self.steps, 0))
        self.steps += past
        taken -= past // width
        while taken:
            if self.loop.until_commit <= 0:
                self.loop.tick(self)
            now = min(taken, -(-self.loop.until_commit // width))
            self.loop.count(now, width, False)
            self.steps += now * width
            taken -= now

    def _row(self, number: int, *values: Any) -> None:
        experience = Experience(self.exposures[number], number, *values)
        if self.rows >= self.skip_rows:
            if experience.status == "incomplete" and self.loop.until_commit <= 0:
                self.loop.tick(self)  # It is cut off by the end, which comes after a commit.
            self.loop.add_row(self.here, experience)
        self.rows += 1

    def _episode(
        self, what: str, name: str, task: Mapping[str, Any], address: Any, *values: Any
    ) -> None:
        """An episode for the videos, or to be played again."""
        mine = {
            key[len(name) + 1 :]: array
            for key, array in self.transcript.arrays.items()
            if key.startswith(f"{name}/")
        }
        actions = unpack_actions(self.loop.config.action_space, mine.pop("actions"))
        here = (Task.from_json(task), self.here, self.loop.experiences, Episode(*address))
        ended = EndedEpisode(*here, actions, *values)
        recorder: Recorder | None = self.loop.recorder
        repeater: Repeater | None = self.loop.repeater
        if what == "video" and recorder is not None:
            recorder.on_episode_end(ended)
        elif what == "seen" and repeater is not None:
            observer = Observer(self.loop.config.observation_space, "environment")
            repeater.on_episode_end(replace(ended, last=observer.unpack(mine)))

    def save(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """How much was passed on."""
        return {"told": [self.steps, self.rows], "over": self.over}, {}

    def restore(self, position: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Skip what was passed on before."""
        self.skip_steps, self.skip_rows = position["told"]

    @property
    def fractions(self) -> list[tuple[Exposure, float]]:
        """How much of each exposure is done."""
        return self._fractions() if self._fractions else [(e, 1.0) for e in self.exposures]
