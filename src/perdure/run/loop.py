"""The only learn/eval loop in the project: one agent through one curriculum under one seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from perdure.agent import Agent
from perdure.errors import AgentFault, CurriculumError
from perdure.run.guards import agent_fault, check_measures
from perdure.run.progress import BEAT, Progress
from perdure.run.results import ResultsSoFar
from perdure.run.rollout import Rollout
from perdure.run.stream import Stream
from perdure.run.video import Recorder
from perdure.seeds import pack_rng, rng_for, unpack_rng
from perdure.store import state
from perdure.store.log import LifetimeLog
from perdure.store.rows import MEASURES, Row, params_json
from perdure.types import Array, Block, Choice, Context, Curriculum, Exposure, Suite, Task, World


@dataclass(frozen=True)
class Setting:
    """What stays the same for a whole lifetime."""

    curriculum: Curriculum
    suites: Mapping[str, Suite]
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    seed: int
    envs: int = 1
    hide_tasks: bool = False
    checkpoint: int = 50_000
    """A commit every so many steps (examples, for data). Part of the specification: where
    segments end must not depend on clocks."""

    def world(self) -> World:
        """What the agent is told at birth."""
        tasks = () if self.hide_tasks else tuple(t.id for t in self.curriculum.tasks)
        return World(
            self.observation_space,
            self.action_space,
            self.envs * self.curriculum.width,
            rng_seed(self.seed),
            tasks,
        )


def rng_seed(seed: int) -> int:
    """The agent's own seed in a lifetime."""
    from perdure.seeds import seed_for

    return seed_for(seed, "agent")


class Life:
    """Runs a lifetime from wherever its log stands."""

    def __init__(
        self,
        setting: Setting,
        agent: Agent,
        log: LifetimeLog,
        progress: Progress | None = None,
        beat: Callable[[], None] | None = None,
        film: Recorder | None = None,
    ) -> None:
        self.setting, self.agent, self.log, self.film = setting, agent, log, film
        self.progress = progress or Progress(setting.curriculum, None)
        self._beat = beat
        if not isinstance(getattr(agent, "rng", None), np.random.Generator):
            raise AgentFault(
                f"{type(agent).__name__}.__init__ must call super().__init__(world), which sets rng"
            )
        self._task: tuple[Any, str, str] = (None, "", "")
        self.place: tuple[int, int, int] = (0, 0, 0)
        """Block, phase and group under way."""
        self.heading: tuple[int, str, str, bool] = (0, "", "", False)
        """Block, phase, kind and learning: how the rows of this phase begin."""
        self.first_exposure = 0
        self.block: Block | None = None
        self.exp = self.learned = self.since = 0
        self.pending: list[Row] = []
        self.measures: dict[str, list[float]] = {}
        self.choices: list[int] = []
        self.snapshot: dict[str, Array] | None = None
        self.learning_rng: np.random.Generator | None = None
        """The agent's own generator, put aside during evaluation."""
        self.digest: dict[str, int] | None = None
        self.next_beat = 0.0
        generated = setting.curriculum.generate is not None
        self.results = ResultsSoFar(log.committed_rows() if generated else ())

    # Called by rollouts and streams.

    def context(
        self, learning: bool, tasks: Sequence[str], slots: Array, fresh: Array, event: str = ""
    ) -> Context:
        """Where in the lifetime this is."""
        assert self.block is not None or event == "lifetime"
        kind = self.block.kind if self.block else "learn"
        shown = None if self.setting.hide_tasks else tuple(tasks)
        return Context(kind, learning, self.place[0], shown, slots, fresh, event)

    @property
    def until_commit(self) -> int:
        """Steps left until the next commit."""
        return self.setting.checkpoint - self.since

    def count(self, steps: int, learning: bool) -> None:
        """Steps were taken."""
        self.since += steps
        self.progress.done_steps += steps
        if learning:
            self.learned += steps

    def note(self, measures: Mapping[str, float]) -> None:
        """Measures that learning returned; their mean goes into the next row."""
        for name, value in check_measures(measures, f"{type(self.agent).__name__}.learn").items():
            total = self.measures.setdefault(name, [0.0, 0])
            total[0] += value
            total[1] += 1

    def row(
        self,
        e: Exposure,
        exposure: int,
        slot: int,
        episode: int,
        seed: int | None,
        steps: int,
        status: str,
        terminated: bool,
        truncated: bool,
        measures: Mapping[str, float | None],
    ) -> None:
        """An experience ended."""
        if self.measures:
            measures = {**{k: s / c for k, (s, c) in self.measures.items()}, **measures}
            self.measures = {}
        more = None
        if len(measures) > 1:
            # In order of name: a resumed lifetime writes the same bytes.
            known = sorted((k, v) for k, v in measures.items() if v is not None)
            more = {k: float(v) for k, v in known if k not in MEASURES}
        task, name, params = self._words(e)
        row = Row(
            self.exp,
            *self.heading,
            exposure,
            name,
            task.variant,
            params,
            slot,
            episode,
            seed,
            steps,
            self.learned,
            status,
            terminated,
            truncated,
            measures.get("return"),
            measures.get("success"),
            measures.get("success_end"),
            measures.get("accuracy"),
            measures.get("loss"),
            more or None,
        )
        self.exp += 1
        self.pending.append(row)
        if self.setting.curriculum.generate is not None:
            self.results.add(row)
        self.progress.ended(steps, measures, self.place)

    def _words(self, e: Exposure) -> tuple[Task, str, str]:
        """A task as it stands in a row; the same for many rows."""
        if e.task is not self._task[0]:
            task = e.task
            self._task = (task, f"{task.suite}/{task.name}", params_json(task.params))
        return self._task

    def tick(self, session: Rollout | Stream) -> None:
        """Commit if enough steps have passed; show signs of life."""
        if self.until_commit <= 0:
            self._commit(session)
        now = time.monotonic()
        if now >= self.next_beat:
            self.next_beat = now + BEAT
            self.beat(session)

    def beat(self, session: Rollout | Stream | None = None, done: bool = False) -> None:
        """Write the progress file and tell the executor."""
        if self._beat is not None:
            self._beat()
        now = session.fraction if session is not None else []
        before = self.first_exposure
        if self.block is not None and self.place[1] == 1:
            before += len(self.block.exposures)
        self.progress.write(
            block=self.place[0],
            kind=self.block.kind if self.block else "",
            task=", ".join(e.task.id for e, _ in now),
            steps=self.learned,
            rows=self.exp,
            fraction=1.0 if done else self.progress.fraction(self.place[0], before, now),
        )

    # The lifetime.

    def run(self) -> None:
        """Live to the end."""
        position = self.log.position
        resume = None
        if position is None:
            self._event("enter", "lifetime", [])
        else:
            resume = self._restore(position)
        self.beat()
        first = resume["place"][0] if resume else 0
        for number, block in self._blocks():
            if number < first:
                continue
            self.block = block
            self._block(number, block, resume if resume and number == first else None)
            resume = None if number >= first else resume
        self.block = None
        self._event("leave", "lifetime", [])
        self._commit(None)
        self.beat(done=True)

    def _blocks(self) -> Iterator[tuple[int, Block]]:
        """The blocks in order; generated ones from the results of those before."""
        curriculum = self.setting.curriculum
        number = 0
        for block in curriculum.fixed:
            yield number, block
            number += 1
        if curriculum.generate is None:
            return
        allowed = {t.key for t in curriculum.tasks}
        generator = curriculum.generate()
        chosen = 0
        try:
            item = next(generator)
            while True:
                if isinstance(item, Choice):
                    item, chosen = self._choose(item, chosen, number), chosen + 1
                _check_generated(curriculum, item, number, allowed)
                yield number, item
                number += 1
                item = generator.send(self.results.until(number))
        except StopIteration:
            return

    def _choose(self, choice: Choice, nth: int, number: int) -> Block:
        if nth == len(self.choices):
            try:
                picked = self.agent.choose(choice.options, self.results.until(number))
            except Exception as e:
                raise agent_fault(self.agent, "choose", e) from e
            if (
                isinstance(picked, bool)
                or not isinstance(picked, (int, np.integer))
                or not (0 <= picked < len(choice.options))
            ):
                raise AgentFault(
                    f"{type(self.agent).__name__}.choose: expected a number from 0 to "
                    f"{len(choice.options) - 1}, got {picked!r}"
                )
            self.choices.append(int(picked))
        return choice.options[self.choices[nth]]

    def _block(self, number: int, block: Block, resume: Mapping[str, Any] | None) -> None:
        everything = [e.task.id for _, exposures in block.phases for e in exposures]
        self.place = (number, 0, 0)
        if resume is None:
            self._event("enter", "block", everything)
            if block.kind == "adapt":
                self.snapshot = self._saved_agent(must=True)
        for phase, (learning, exposures) in enumerate(block.phases):
            if resume is not None and phase < resume["place"][1]:
                continue
            here = resume if resume is not None and phase == resume["place"][1] else None
            self._phase(number, phase, block, learning, exposures, here)
        if block.kind == "adapt":
            assert self.snapshot is not None
            self._load_agent(self.snapshot)
            self.snapshot = None
        self.place = (number, len(block.phases) - 1, 0)
        self._event("leave", "block", everything)

    def _phase(
        self,
        number: int,
        phase: int,
        block: Block,
        learning: bool,
        exposures: tuple[Exposure, ...],
        resume: Mapping[str, Any] | None,
    ) -> None:
        groups = [exposures] if block.together else [(e,) for e in exposures]
        before = number < len(self.setting.curriculum.before)
        self.heading = (number, "before" if before else "life", block.kind, learning)
        if not learning and resume is None:
            self._begin_evaluation(number, phase)
        bases = [{(e.task.suite, e.task.name) for e in g} for g in groups]
        for g, group in enumerate(groups):
            if resume is not None and g < resume["place"][2]:
                continue
            self.place = (number, phase, g)
            self.first_exposure = 0 if block.together else g
            ids = [e.task.id for e in group]
            session: Rollout | Stream
            entering = resume is None or g > resume["place"][2]
            if entering:
                if g == 0 or bases[g - 1] != bases[g]:
                    self._event("enter", "task", ids, learning)
                self._event("enter", "variant", ids, learning)
            make = Stream if group[0].on_data else Rollout
            session = make(self, self.agent, group, learning)
            if not entering:
                assert resume is not None
                session.restore(resume["inner"], resume["arrays"])
            session.run()
            self._event("leave", "variant", ids, learning)
            if g == len(groups) - 1 or bases[g + 1] != bases[g]:
                self._event("leave", "task", ids, learning)
        if not learning:
            self._end_evaluation(number)

    def _event(self, method: str, event: str, ids: list[str], learning: bool | None = None) -> None:
        if learning is None:
            learning = self.block is not None and self.block.kind != "eval"
        none = np.zeros(0, int)
        ctx = self.context(learning, ids, none, np.zeros(0, bool), event)
        try:
            getattr(self.agent, method)(ctx)
        except Exception as e:
            raise agent_fault(self.agent, method, e) from e

    # Evaluation leaves no trace in the agent.

    def _begin_evaluation(self, number: int, phase: int) -> None:
        saved = self._agent_state()
        self.digest = None if saved is None else state.digest(saved)
        self.learning_rng = self.agent.rng
        self.agent.rng = rng_for(self.setting.seed, "agent in eval", number, phase)

    def _end_evaluation(self, number: int) -> None:
        assert self.learning_rng is not None
        self.agent.rng = self.learning_rng
        self.learning_rng = None
        saved = self._agent_state()
        if saved is None or self.digest is None:
            return
        after = state.digest(saved)
        names = sorted({*after, *self.digest})
        changed = [n for n in names if after.get(n) != self.digest.get(n)]
        if changed:
            raise AgentFault(
                f"{type(self.agent).__name__} changed in evaluation (block {number}): "
                f"state()[{', '.join(map(repr, changed[:5]))}] differs; act and observe must not "
                "learn when ctx.learning is False"
            )
        self.digest = None

    # Saving and restoring.

    def _agent_state(self) -> dict[str, Array] | None:
        try:
            saved = self.agent.state()
        except Exception as e:
            raise agent_fault(self.agent, "state", e) from e
        return None if saved is None else state.checked(type(self.agent).__name__, saved)

    def _saved_agent(self, must: bool = False) -> dict[str, Array] | None:
        saved = self._agent_state()
        if saved is None:
            if must:
                raise AgentFault(
                    f"{type(self.agent).__name__}.state() gives None: an agent that cannot be "
                    "saved cannot take part in an adapt block, which must restore it"
                )
            return None
        out = {f"agent/{k}": np.array(v) for k, v in saved.items()}
        out["rng"] = pack_rng(self.learning_rng or self.agent.rng)
        return out

    def _load_agent(self, saved: Mapping[str, Array]) -> None:
        mine = {k[6:]: v for k, v in saved.items() if k.startswith("agent/")}
        try:
            self.agent.load(mine)
        except Exception as e:
            raise agent_fault(self.agent, "load", e) from e
        self.agent.rng = unpack_rng(saved["rng"])

    def _commit(self, session: Rollout | Stream | None) -> None:
        """Everything up to this step, on disk. Without a session, the lifetime is over."""
        saved = self._saved_agent()
        inner: dict[str, Any] = {}
        if saved is not None and session is not None:
            inner, arrays = session.save()
            saved |= {f"inner/{k}": v for k, v in arrays.items()}
            if self.learning_rng is not None:
                saved["rng_eval"] = pack_rng(self.agent.rng)
            if self.snapshot is not None:
                saved |= {f"snapshot/{k}": v for k, v in self.snapshot.items()}
        position = {
            "place": list(self.place),
            "inner": inner,
            "exp": self.exp,
            "learned": self.learned,
            "choices": list(self.choices),
            "measures": self.measures,
            "digest": self.digest,
        }
        if self.film is not None:
            self.film.save(self.exp, lambda: self.beat(session))
        self.log.commit(self.pending, saved, position, done=session is None)
        self.pending = []
        self.since = 0

    def _restore(self, position: Mapping[str, Any]) -> dict[str, Any]:
        arrays = self.log.resumed
        assert arrays is not None
        self._load_agent(arrays)
        self.exp, self.learned = position["exp"], position["learned"]
        self.choices = list(position["choices"])
        self.measures = {k: list(v) for k, v in position["measures"].items()}
        self.digest = position["digest"]
        if "rng_eval" in arrays:
            self.learning_rng = self.agent.rng
            self.agent.rng = unpack_rng(arrays["rng_eval"])
        snapshot = {k[9:]: v for k, v in arrays.items() if k.startswith("snapshot/")}
        self.snapshot = snapshot or None
        inner = {k[6:]: v for k, v in arrays.items() if k.startswith("inner/")}
        return {"place": position["place"], "inner": position["inner"], "arrays": inner}


def _check_generated(curriculum: Curriculum, item: Any, number: int, allowed: set[str]) -> None:
    where = f"curriculum {curriculum.name}, generated block {number}"
    if not isinstance(item, Block):
        raise CurriculumError(f"{where}: expected a Block or a Choice, got {item!r}")
    if item.width > curriculum.width:
        raise CurriculumError(
            f"{where}: {item.width} exposures side by side; say Curriculum(width={item.width})"
        )
    for e in (*item.exposures, *item.then):
        if e.task.key not in allowed:
            raise CurriculumError(f"{where}: {e.task.id} is not among the curriculum's tasks")
