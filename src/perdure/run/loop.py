"""The only learn/eval loop in the project: one agent through one curriculum under one seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.errors import AgentFault
from perdure.names import join_task_id
from perdure.run.agent_state import AgentState
from perdure.run.boundaries import Group, groups_of, tasks_end, tell
from perdure.run.config import LifetimeConfig
from perdure.run.eval_pool import EvalPool
from perdure.run.generated import check_generated, check_named, checked_choice, generated_items
from perdure.run.guards import agent_fault, check_measures, check_memory_scope
from perdure.run.memories import reset_memory
from perdure.run.progress import BEAT, Progress
from perdure.run.pruning import PruningGate
from perdure.run.repeat import Repeater
from perdure.run.results import RunningResults
from perdure.run.runner import Experience, LastTrials, Place, Runner, last_trials
from perdure.run.split import can_be_split, evaluate_again, evaluate_split
from perdure.run.transcript import runner_for
from perdure.run.video import Recorder
from perdure.store.log import LifetimeLog
from perdure.store.rows import MEASURES, Row, params_json
from perdure.types import Block, BlockChoice

_Columns = tuple[int, bool, str, bool, int, str, str, str]
"""Of a row: block, deployed, kind, learning, exposure, task, variant and params."""


SHOW = 5.0
"""Seconds between two times that rows are shown which are not committed yet, at least."""
SHARE = 0.01
"""Of the time, at most, to show rows that are not committed yet."""
LONGEST = 60.0
"""Seconds between two such looks at most, however long one takes."""


@dataclass(frozen=True)
class Services:
    """What a lifetime uses while it runs, beside its agent and its log; its rows are the same without."""

    progress: Progress | None = None
    beat: Callable[[], None] | None = None
    """Called at every sign of life."""
    recorder: Recorder | None = None
    repeater: Repeater | None = None
    gate: PruningGate | None = None
    """Breaks a trial of a sweep off."""
    pool: EvalPool | None = None
    """Processes that evaluate tasks side by side; without them the loop evaluates by itself."""


class LifetimeLoop:
    """Runs a lifetime from wherever its log stands."""

    def __init__(
        self,
        config: LifetimeConfig,
        agent: Agent,
        log: LifetimeLog,
        services: Services | None = None,
    ) -> None:
        services = services or Services()
        self.config, self.agent, self.log = config, agent, log
        self.recorder, self.repeater = services.recorder, services.repeater
        self.gate, self.pool, self._beat = services.gate, services.pool, services.beat
        self.progress = services.progress or Progress(config.curriculum, None)
        if not isinstance(getattr(agent, "rng", None), np.random.Generator):
            raise AgentFault(
                f"{type(agent).__name__}.__init__ must call super().__init__(setup), which sets rng"
            )
        check_memory_scope(agent)
        self.state = AgentState(agent)
        self._placed: tuple[Any, Any, _Columns | None] = (None, None, None)
        self.position: tuple[int, int, int] = (0, 0, 0)
        """Block, phase and group under way."""
        self.block: Block | None = None
        self.exp = self.learned = self.since = 0
        self.pending: list[Row] = []
        self.measures: dict[str, list[float]] = {}
        self.choices: list[int] = []
        self.adapted: LastTrials = {}
        self.next_beat = self.next_show = 0.0
        self._counts = self.gate is not None or config.curriculum.generate is not None
        """Whether the gate or the curriculum uses the results so far."""
        self.results = RunningResults(log.committed_rows() if self._counts else ())

    # What runners ask for.

    @property
    def experiences(self) -> int:
        """How many rows there are: the number of the next."""
        return self.exp

    @property
    def until_commit(self) -> int:
        """Steps left until the next commit."""
        return self.config.checkpoint - self.since

    def count(self, taken: int, width: int, learning: bool) -> None:
        """Steps were taken, each by so many slots at once."""
        steps = taken * width
        self.since += steps
        self.progress.done_steps += steps
        if learning:
            self.learned += steps

    def log_measures(self, measures: Mapping[str, float], source: str = "learn") -> None:
        """Measures that a method of the agent returned; their mean goes into the next row."""
        where = f"{type(self.agent).__name__}.{source}"
        for name, value in check_measures(measures, where).items():
            total = self.measures.setdefault(name, [0.0, 0])
            total[0] += value
            total[1] += 1

    def add_row(self, place: Place, experience: Experience) -> None:
        """An experience ended."""
        measures = experience.measures
        if self.measures:
            measures = {**{k: s / c for k, (s, c) in self.measures.items()}, **measures}
            self.measures = {}
        more = None
        if len(measures) > 1:
            # In order of name: a resumed lifetime writes the same bytes.
            known = sorted((k, v) for k, v in measures.items() if v is not None)
            more = {k: float(v) for k, v in known if k not in MEASURES}
        row = Row(
            self.exp,
            *self._place(place, experience),
            *experience[2:8],
            self.learned,
            *experience[8:11],
            measures.get("return"),
            measures.get("success"),
            measures.get("success_end"),
            measures.get("accuracy"),
            measures.get("loss"),
            more or None,
        )
        if place.adapts and experience.trial_seed is not None:
            self.adapted[experience.slot] = (experience.exposure.task.key, experience.trial)
        self.exp += 1
        self.pending.append(row)
        if self._counts:
            self.results.add(row)
        self.progress.ended(experience.steps, measures, self.position)

    def _place(self, place: Place, experience: Experience) -> _Columns:
        """Where a row stands, and its task: the same for many rows."""
        known, exposure, columns = self._placed
        if columns is None or known is not place or exposure is not experience.exposure:
            task = experience.exposure.task
            columns = (
                place.number,
                place.deployed,
                place.block.kind,
                place.learning,
                place.first_exposure + experience.number,
                join_task_id(task.suite, task.name),
                task.variant,
                params_json(task.params),
            )
            self._placed = (place, experience.exposure, columns)
        return columns

    def tick(self, runner: Runner) -> None:
        """Commit if enough steps have passed; show signs of life."""
        if self.until_commit <= 0:
            self._commit(runner)
        now = time.monotonic()
        if now >= self.next_beat:
            self.next_beat = now + BEAT
            self.beat(runner)
        if self.pending and now >= self.next_show:
            began = time.process_time()
            self.log.show(self.pending)
            took = time.process_time() - began
            self.next_show = now + max(SHOW, min(took / SHARE, LONGEST))

    def beat(self, runner: Runner | None = None, done: bool = False) -> None:
        """Write the progress file and tell the executor."""
        if self._beat is not None:
            self._beat()
        number, phase, _ = self.position
        now = runner.fractions if runner is not None else []
        before = runner.place.first_exposure if runner is not None else 0
        if self.block is not None and phase == 1:
            before += len(self.block.exposures)
        self.progress.write(
            block=number,
            kind=self.block.kind if self.block else "",
            task=", ".join(e.task.id for e, done in now if done < 1 or len(now) == 1),
            steps=self.learned,
            rows=self.exp,
            fraction=1.0 if done else self.progress.fraction(number, before, now),
        )

    # The lifetime.

    def run(self) -> None:
        """Run the remaining blocks."""
        position = self.log.position
        resume = None
        if position is None:
            self._event("enter", "lifetime")
        else:
            resume = self._restore(position)
        self.beat()
        first = resume["place"][0] if resume else 0
        evaluations: list[int] = []
        for number, block in self._blocks():
            if block.kind == "eval":
                evaluations.append(number)
            if number < first:
                continue
            self.block = block
            self._block(number, block, resume if resume and number == first else None)
            resume = None if number >= first else resume
            if self.gate is not None and block.kind == "eval":
                self.gate.passed(self.results, evaluations)
        self.block = None
        self._event("leave", "lifetime")
        self._commit(None)
        self.log.show(())
        self.beat(done=True)

    def _blocks(self) -> Iterator[tuple[int, Block]]:
        """The blocks in order; generated ones from the results of those before."""
        curriculum = self.config.curriculum
        number = 0
        for block in curriculum.fixed:
            yield number, block
            number += 1
        if curriculum.generate is None:
            return
        allowed = {t.key for t in curriculum.tasks}
        generator = generated_items(curriculum)
        chosen = 0
        try:
            item = next(generator)
            while True:
                if isinstance(item, BlockChoice):
                    item, chosen = self._choose(item, chosen, number), chosen + 1
                check_generated(curriculum, item, number, allowed, self.config.hide_tasks)
                yield number, item
                number += 1
                item = generator.send(self.results.until(number))
        except StopIteration:
            return

    def _choose(self, choice: BlockChoice, nth: int, number: int) -> Block:
        if nth == len(self.choices):
            check_named(self.config.curriculum, choice, number, self.config.hide_tasks)
            try:
                picked = self.agent.choose(choice.options, self.results.until(number))
            except Exception as e:
                raise agent_fault(self.agent, "choose", e) from e
            self.choices.append(checked_choice(self.agent, picked, choice))
        return choice.options[self.choices[nth]]

    def _block(self, number: int, block: Block, resume: Mapping[str, Any] | None) -> None:
        self.position = (number, 0, 0)
        places = [groups_of(self.config, number, i, block) for i in range(len(block.phases))]
        every = [place for phase in places for place in phase]
        if resume is None:
            self._event("enter", "block", every)
            if block.kind == "adapt":
                self.state.begin_adapt(self.config.seed, number)
            if self.agent.memory_scope == "block":
                reset_memory(self.agent, range(self.config.envs * block.width))
        for phase, groups in enumerate(places):
            if resume is not None and phase < resume["place"][1]:
                continue
            here = resume if resume is not None and phase == resume["place"][1] else None
            self._phase(groups, here)
        if block.kind == "adapt":
            self.state.end_adapt()
            self.adapted = {}
        self.position = (number, len(places) - 1, 0)
        self._event("leave", "block", every)

    def _phase(self, groups: Sequence[Group], resume: Mapping[str, Any] | None) -> None:
        number, phase, _ = groups[0][0].address
        learning = groups[0][0].learning
        if not learning and resume is None:
            self.state.begin_evaluation(self.config.seed, number, phase)
            if groups[0][0].block.kind == "eval":
                self._diagnose()
        first, told, away = 0, None, False
        if resume is not None:
            # What was evaluated elsewhere has left no episode to go on with, only rows.
            first, told = resume["place"][2], resume["inner"].get("told")
            away = told is not None
            if away and resume["inner"]["over"]:
                first, told = first + 1, None
            resume = None if away else resume
        ends = tasks_end(groups)
        for g, group in enumerate(groups):
            if g < first:
                continue
            going_on = resume if g == first else None
            enters = g == 0 or g - 1 in ends or (away and g == first)
            if not learning and enters and going_on is None and self._split(groups[g:], told):
                break
            self.position = group[0].address
            if told is not None:
                evaluate_again(self, group, told, enters, g in ends)
            else:
                self._group(group, enters, g in ends, going_on)
            told = None
        if not learning:
            self.state.end_evaluation(number)

    def _split(self, groups: Sequence[Group], told: Sequence[int] | None) -> bool:
        """Let others evaluate what is left of a phase, if there are any and the agent allows it."""
        if self.pool is None or not can_be_split(self.agent, groups):
            return False
        return evaluate_split(self, self.pool, groups, told)

    def _group(
        self, group: Group, enters: bool, leaves: bool, resume: Mapping[str, Any] | None
    ) -> None:
        """Run one group, which may be the first of its task, and the last."""
        (place, exposures), here = group, [group]
        if resume is None:
            if not place.learning:
                self.state.begin_group(self.config.seed, *place.address)
            if enters:
                self._event("enter", "task", here)
            self._event("enter", "variant", here)
        runner = runner_for(self, place, exposures)
        if resume is not None:
            runner.restore(resume["inner"], resume["arrays"])
        runner.run()
        self._event("leave", "variant", here)
        if leaves:
            self._event("leave", "task", here)

    def _diagnose(self) -> None:
        """Ask the agent for measures of itself; the next row has them."""
        try:
            found = self.agent.diagnose()
        except Exception as e:
            raise agent_fault(self.agent, "diagnose", e) from e
        if found:
            self.log_measures(found, "diagnose")

    def _event(self, method: str, event: str, groups: Sequence[Group] = ()) -> None:
        """Tell the agent of a boundary."""
        tell(self.agent, self.config, self.position[0], method, event, groups)

    # Saving and restoring.

    def _commit(self, runner: Runner | None) -> None:
        """Everything up to this step, on disk. Without a runner, the lifetime is over."""
        saved = self.state.save(self.position[0] if runner is not None else None)
        inner: dict[str, Any] = {}
        if saved is not None and runner is not None:
            inner, arrays = runner.save()
            saved |= {f"inner/{k}": v for k, v in arrays.items()}
        position = {
            "place": list(self.position),
            "inner": inner,
            "exp": self.exp,
            "learned": self.learned,
            "choices": list(self.choices),
            "measures": self.measures,
            "digest": self.state.digest,
        }
        if self.adapted:
            position["adapted"] = list(self.adapted.items())
        if self.recorder is not None:
            self.log.show(self.pending)  # Videos take their time.
            self.recorder.save(self.exp, lambda: self.beat(runner, done=runner is None))
        self.log.commit(self.pending, saved, position, done=runner is None)
        self.pending = []
        self.since = 0

    def _restore(self, position: Mapping[str, Any]) -> dict[str, Any]:
        # Taken from the log, so that nothing keeps a large state alive.
        arrays, self.log.resumed = self.log.resumed, None
        assert arrays is not None
        self.state.restore(arrays, position["digest"])
        self.exp, self.learned = position["exp"], position["learned"]
        self.choices = list(position["choices"])
        self.adapted = last_trials(position.get("adapted", ()))
        self.measures = {k: list(v) for k, v in position["measures"].items()}
        inner = {k[6:]: v for k, v in arrays.items() if k.startswith("inner/")}
        return {"place": position["place"], "inner": position["inner"], "arrays": inner}
