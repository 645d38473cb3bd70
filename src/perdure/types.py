"""The nouns: Task, Exposure, Block, Curriculum, and what passes between loop and agent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from perdure.arrays import Array as Array
from perdure.arrays import State as State
from perdure.errors import CurriculumError
from perdure.names import check_name, join_task_id, split_task_id
from perdure.protocol import EvalProtocol

if TYPE_CHECKING:
    import gymnasium

Measures: TypeAlias = Mapping[str, float]
Scope = Literal["episode", "trial", "block"]
Unit = Literal["episodes", "steps", "epochs", "batches"]
Kind = Literal["learn", "eval", "adapt"]

UNITS: tuple[Unit, ...] = ("episodes", "steps", "epochs", "batches")
SCOPES: tuple[Scope, ...] = ("episode", "trial", "block")
KINDS: tuple[Kind, ...] = ("learn", "eval", "adapt")
DATA_UNITS = ("epochs", "batches")


@dataclass(frozen=True, slots=True)
class Task:
    """A capability to learn: one variant of one task of one suite, with its parameters."""

    suite: str
    name: str
    variant: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name("suite", self.suite)
        check_name("task", self.name)
        if self.variant:
            check_name("variant", self.variant)
        try:
            json.dumps(dict(self.params), sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as e:
            raise CurriculumError(
                f"task {self.suite}/{self.name}: params must be plain JSON values, got "
                f"{dict(self.params)!r} ({e})"
            ) from e

    @property
    def id(self) -> str:
        """``suite/name`` or ``suite/name@variant``: what logs and agents see."""
        return join_task_id(self.suite, self.name, self.variant)

    @property
    def key(self) -> str:
        """Identity including parameters: equal keys mean the same environment."""
        return f"{self.id} {json.dumps(dict(self.params), sort_keys=True)}"

    def __hash__(self) -> int:
        return hash(self.key)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form, as stored in a run's ``_meta``."""
        out: dict[str, Any] = {"suite": self.suite, "name": self.name}
        if self.variant:
            out["variant"] = self.variant
        if self.params:
            out["params"] = dict(self.params)
        return out

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Task:
        """The task that :meth:`to_json` wrote."""
        return cls(**values)


def _checked_task(where: str, task: object) -> Task:
    """The task itself, or CurriculumError."""
    if isinstance(task, Task):
        return task
    made = "Task('suite', 'name')"
    if isinstance(task, str) and "/" in task:
        made = f"Task({', '.join(repr(part) for part in split_task_id(task) if part)})"
    raise CurriculumError(f"{where}: expected a Task such as {made}, got {task!r}")


@dataclass(frozen=True, slots=True)
class Exposure:
    """A task and how much of it. Episodes and steps drive its environment; epochs and batches
    its data.

    ``episodes_per_trial`` consecutive episodes of a slot make a trial: they share the trial's
    address, and with it the hidden goal or task instance that a suite draws from it.
    """

    task: Task
    amount: int
    unit: Unit = "episodes"
    episodes_per_trial: int = 1

    def __post_init__(self) -> None:
        where = f"exposure of {_checked_task('exposure', self.task).id}"
        if self.unit not in UNITS:
            raise CurriculumError(f"{where}: unit must be one of {UNITS}, got {self.unit!r}")
        for name in ("amount", "episodes_per_trial"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise CurriculumError(
                    f"{where}: {name} must be a whole number"
                    f"{f' of {self.unit}' if name == 'amount' else ''}, got {value!r}"
                )
            if value < 1:
                raise CurriculumError(f"{where}: {name} must be at least 1, got {value}")
            object.__setattr__(self, name, int(value))
        per = self.episodes_per_trial
        if per > 1 and self.on_data:
            raise CurriculumError(f"{where}: data has no episodes, so no trials of {per} either")
        if self.unit == "episodes" and self.amount % per:
            raise CurriculumError(
                f"{where}: {self.amount} episodes are not whole trials of {per} episodes each"
            )

    @property
    def on_data(self) -> bool:
        """Whether this exposure reads the task's data rather than drives its environment."""
        return self.unit in DATA_UNITS

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        out = {"task": self.task.to_json(), "amount": self.amount, "unit": self.unit}
        if self.episodes_per_trial > 1:
            out["episodes_per_trial"] = self.episodes_per_trial
        return out

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Exposure:
        """The exposure that :meth:`to_json` wrote."""
        return cls(**{**values, "task": Task.from_json(values["task"])})

    def __str__(self) -> str:
        unit = self.unit
        if self.amount == 1:
            unit = {"episodes": "episode", "steps": "step", "epochs": "epoch"}.get(unit, "batch")  # type: ignore[assignment]
        trials = f" in trials of {self.episodes_per_trial}" if self.episodes_per_trial > 1 else ""
        return f"{self.task.id} × {self.amount:,} {unit}{trials}"


@dataclass(frozen=True, slots=True)
class Visibility:
    """What a phase of a block shows to the agent beside observations."""

    rewards: bool | None = None
    """None: while it learns, and not while it is evaluated."""
    task_ids: bool = True
    """Hidden everywhere where the run says so (``hide_tasks``)."""
    instructions: bool | None = None
    """None: where task ids are shown."""

    def __post_init__(self) -> None:
        for name in ("rewards", "task_ids", "instructions"):
            value, open_too = getattr(self, name), name != "task_ids"
            if isinstance(value, np.bool_):
                object.__setattr__(self, name, bool(value))
            elif not (isinstance(value, bool) or (open_too and value is None)):
                known = "True, False or None" if open_too else "True or False"
                raise CurriculumError(f"Visibility: {name} must be {known}, got {value!r}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form: what is not the default."""
        values = {n: getattr(self, n) for n in ("rewards", "task_ids", "instructions")}
        return {n: v for n, v in values.items() if v is not getattr(SHOWN, n)}


SHOWN = Visibility()


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a block: what is gone through, and whether the agent learns from it."""

    learning: bool
    exposures: tuple[Exposure, ...]
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class Block:
    """Exposures of one kind, in sequence or side by side (``parallel``).

    An ``adapt`` block snapshots the agent, learns ``exposures``, evaluates ``then``, and restores
    the agent: meta-testing and probes. In it, the first trial that a slot plays of a task of ``then``
    is the one it adapted to last, if that was of the same task, and begins with the memory that this
    left: adaptation is tested on what was adapted to. All other trials begin without memory; they are
    the task's other trials in order. So of several tasks that a slot adapts to one after another only
    the last is remembered, and side by side (``parallel``) each has slots of its own.

    ``visibility`` says what the agent is shown; ``then_visibility``, what in ``then``.
    """

    kind: Kind
    exposures: tuple[Exposure, ...]
    parallel: bool = False
    then: tuple[Exposure, ...] = ()
    visibility: Visibility = Visibility()
    then_visibility: Visibility = Visibility()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise CurriculumError(f"block kind must be one of {KINDS}, got {self.kind!r}")
        where = f"{self.kind} block"
        for name in ("exposures", "then"):
            value: Any = getattr(self, name)
            if not isinstance(value, Iterable):
                raise CurriculumError(
                    f"{where}: {name} must be Exposures one by one, got {value!r}"
                )
            object.__setattr__(self, name, tuple(value))
        if not isinstance(self.parallel, bool):
            raise CurriculumError(f"{where}: parallel must be True or False, got {self.parallel!r}")
        for name in ("visibility", "then_visibility"):
            if not isinstance(shown := getattr(self, name), Visibility):
                raise CurriculumError(
                    f"{where}: {name} must be a Visibility, such as Visibility(rewards=False), got {shown!r}"
                )
        if not self.exposures:
            raise CurriculumError(f"empty {self.kind} block: give it at least one exposure")
        for e in (*self.exposures, *self.then):
            if not isinstance(e, Exposure):
                raise CurriculumError(f"a {self.kind} block holds Exposures, got {e!r}")
        if self.then and self.kind != "adapt":
            raise CurriculumError(f"only an adapt block may have 'then', not a {self.kind} block")
        if self.kind == "adapt" and not self.then:
            raise CurriculumError("an adapt block needs 'then': what to evaluate after adapting")
        if self.parallel and self.then:
            adapted = [e.task.key for e in self.exposures]
            for j, e in enumerate(self.then):
                if e.task.key in adapted and adapted[j : j + 1] != [e.task.key]:
                    raise CurriculumError(
                        f"an adapt block side by side evaluates {e.task.id} in other slots than those that "
                        "adapted to it, which alone remember: give 'then' the tasks in the order of the "
                        "exposures, or leave out parallel"
                    )

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases in the order they run: two of an adapt block, else one."""
        first = Phase(self.kind != "eval", self.exposures, self.visibility)
        if self.kind == "adapt":
            return (first, Phase(False, self.then, self.then_visibility))
        return (first,)

    @property
    def width(self) -> int:
        """How many exposures run side by side at most."""
        return max(len(self.exposures), len(self.then)) if self.parallel else 1

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        out: dict[str, Any] = {
            "kind": self.kind,
            "exposures": [e.to_json() for e in self.exposures],
        }
        if self.parallel:
            out["parallel"] = True
        if self.then:
            out["then"] = [e.to_json() for e in self.then]
        for name in ("visibility", "then_visibility"):
            if (shown := getattr(self, name)) != SHOWN:
                out[name] = shown.to_json()
        return out

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Block:
        """The block that :meth:`to_json` wrote."""
        made = dict(values)
        for name in ("exposures", "then"):
            made[name] = tuple(Exposure.from_json(e) for e in values.get(name, ()))
        for name in ("visibility", "then_visibility"):
            made[name] = Visibility(**values.get(name, {}))
        return cls(**made)


def learn(*exposures: Exposure, parallel: bool = False, visibility: Visibility = SHOWN) -> Block:
    """A learn block."""
    return Block("learn", exposures, parallel, visibility=visibility)


def evaluate(*exposures: Exposure, parallel: bool = False, visibility: Visibility = SHOWN) -> Block:
    """An eval block: rewards are hidden from the agent unless ``visibility`` shows them."""
    return Block("eval", exposures, parallel, visibility=visibility)


def adapt(
    *exposures: Exposure,
    then: Sequence[Exposure],
    parallel: bool = False,
    visibility: Visibility = SHOWN,
    then_visibility: Visibility = SHOWN,
) -> Block:
    """An adapt block: snapshot, learn a little, evaluate ``then``, restore."""
    return Block("adapt", exposures, parallel, then, visibility, then_visibility)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class BlockChoice:
    """What a generated curriculum may yield instead of a block: the agent picks one.

    The loop asks ``agent.choose(options, results)`` and records the answer, so that a resumed
    lifetime walks the same way.
    """

    options: tuple[Block, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(self.options))
        if not self.options:
            raise CurriculumError("a BlockChoice needs at least one block to choose from")


class ResultsSoFar(Protocol):
    """What a generated curriculum sees: the results so far."""

    def mean(
        self,
        measure: str,
        *,
        task: str | None = None,
        block: int = -1,
        learning: bool | None = None,
    ) -> float:
        """Mean of a measure over the rows of a block (default: the last one that ran), NaN if
        there are none."""

    def steps(self, *, learning: bool = True) -> int:
        """Environment steps (or batches) taken so far."""

    @property
    def blocks(self) -> int:
        """How many blocks have ended."""


BlockGenerator: TypeAlias = Generator["Block | BlockChoice", ResultsSoFar, None]


@dataclass(frozen=True)
class Curriculum:
    """A lifetime's blocks, or a function that generates them from the results so far.

    ``before`` holds pre-deployment blocks; they come first and their rows say so. ``generate`` is
    called with no argument and must be deterministic: a resumed lifetime calls it again and sends
    it the same results. ``tasks`` must then name every task it may use.
    """

    name: str
    blocks: tuple[Block, ...] = ()
    before: tuple[Block, ...] = ()
    generate: Callable[[], BlockGenerator] | None = None
    tasks: tuple[Task, ...] = ()
    shown: tuple[Task, ...] | None = None
    """Of a generated one: the tasks that the agent is told of when it is made, which its blocks must show;
    None: all of ``tasks``. Give none where tasks are hidden, or are not to be known before they come."""
    least_trial: int | None = None
    """How many episodes the trials have at least that are learned from; counted from the blocks unless they
    are generated. None: not known."""
    least_shots: int | None = None
    """The same of the trials of adapt blocks: of how many episodes of a task one adapts to it."""
    width: int = 1
    """The most exposures side by side; counted from the blocks unless they are generated."""
    about: str = ""
    protocol: EvalProtocol | None = None
    """By which it evaluates, where that has a name."""

    def __post_init__(self) -> None:
        check_name("curriculum", self.name)
        for attr in ("blocks", "before", "tasks"):
            object.__setattr__(self, attr, tuple(getattr(self, attr)))
        for task in (*self.tasks, *(self.shown or ())):
            _checked_task(f"curriculum {self.name}", task)
        for b in self.fixed:
            if not isinstance(b, Block):
                raise CurriculumError(f"curriculum {self.name}: blocks must be Block, got {b!r}")
        if self.generate is None:
            if not self.blocks:
                raise CurriculumError(
                    f"curriculum {self.name} is empty: give it at least one block"
                )
            every = (e for b in self.fixed for e in (*b.exposures, *b.then))
            if self.shown is not None:
                raise CurriculumError(
                    f"curriculum {self.name}: its blocks' visibility tells what is shown; only a generated "
                    "one says it with 'shown'"
                )
            object.__setattr__(self, "tasks", distinct_tasks(every))
            for attr, kind in (("least_trial", "learn"), ("least_shots", "adapt")):
                driven = (e for b in self.fixed if b.kind == kind for e in b.exposures)
                least = min((e.episodes_per_trial for e in driven if not e.on_data), default=None)
                object.__setattr__(self, attr, least)
            object.__setattr__(self, "width", max(b.width for b in self.fixed))
        elif self.blocks:
            raise CurriculumError(f"curriculum {self.name}: give blocks or generate, not both")
        elif not self.tasks:
            raise CurriculumError(
                f"curriculum {self.name} is generated: name every task it may use in 'tasks'"
            )
        elif unknown := [t.id for t in self.shown or () if t not in self.tasks]:
            raise CurriculumError(
                f"curriculum {self.name}: shown {', '.join(unknown)} is not among its tasks"
            )
        else:
            for i, b in enumerate(self.before):
                self.check_shown(b, f"curriculum {self.name}, block {i} ({b.kind})")

    @property
    def fixed(self) -> tuple[Block, ...]:
        """All blocks known before running: ``before`` then ``blocks``."""
        return self.before + self.blocks

    @property
    def shown_tasks(self) -> tuple[Task, ...]:
        """The tasks whose identity some block shows to the agent; of a generated curriculum, those that it
        says are ``shown``."""
        return self._tasks_where(lambda visibility: visibility.task_ids)

    @property
    def told_tasks(self) -> tuple[Task, ...]:
        """Those of :attr:`shown_tasks` of which some block shows identity and instruction together: which
        sentence is whose."""
        return self._tasks_where(lambda v: v.task_ids and v.instructions is not False)

    def _tasks_where(self, shows: Callable[[Visibility], bool]) -> tuple[Task, ...]:
        if self.generate is not None:
            return self.tasks if self.shown is None else self.shown
        phases = (p for b in self.fixed for p in b.phases if shows(p.visibility))
        return distinct_tasks(e for p in phases for e in p.exposures)

    def check_shown(self, block: Block, where: str) -> None:
        """CurriculumError if a block of a generated curriculum shows or hides other tasks than the agent is
        told when it is made."""
        for phase in block.phases:
            if not phase.visibility.task_ids and self.shown is None:
                raise CurriculumError(
                    f"{where} hides which task it is, but the agent is told of all tasks when it is made: say "
                    "shown=() if no block shows any, else shown= those that are shown"
                )
            for e in phase.exposures if phase.visibility.task_ids else ():
                if e.task not in self.shown_tasks:
                    raise CurriculumError(
                        f"{where} shows {e.task.id}, of which the agent was not told when it was made: add it "
                        "to shown=, or hide it (Visibility(task_ids=False))"
                    )

    def placed_exposures(self) -> Iterator[tuple[str, Exposure]]:
        """Every exposure known before running, with words that say where it stands."""
        for i, block in enumerate(self.fixed):
            where = f"block {i} ({block.kind})"
            for j, e in enumerate(block.exposures):
                yield f"{where}, exposure {j}", e
            for j, e in enumerate(block.then):
                yield f"{where}, then {j}", e

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form: the outline stored with every lifetime."""
        out: dict[str, Any] = {"name": self.name, "blocks": [b.to_json() for b in self.blocks]}
        if self.before:
            out["before"] = [b.to_json() for b in self.before]
        if self.generate is not None:
            out["generated"] = True
            out["tasks"] = [t.to_json() for t in self.tasks]
            if self.shown is not None:
                out["shown"] = [t.id for t in self.shown]
        if self.protocol is not None:
            out["protocol"] = self.protocol.to_json()
        return out

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Curriculum:
        """The curriculum that :meth:`to_json` wrote, of one that is not generated."""
        if values.get("generated"):
            raise CurriculumError(
                f"curriculum {values['name']} is generated as it runs: its outline holds no blocks"
            )
        blocks, before = (map(Block.from_json, values.get(n, ())) for n in ("blocks", "before"))
        protocol = EvalProtocol.from_json(values["protocol"]) if "protocol" in values else None
        return cls(values["name"], tuple(blocks), tuple(before), protocol=protocol)

    def __repr__(self) -> str:
        """In a line: a notebook shows it."""
        blocks = f"{len(self.fixed)} blocks" + ", then generated ones" * (self.generate is not None)
        return f"Curriculum({self.name!r}: {len(self.tasks)} tasks, {blocks})"

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits that change when anything that runs changes."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def distinct_tasks(exposures: Iterable[Exposure]) -> tuple[Task, ...]:
    """The tasks of some exposures, each once, in the order they first come."""
    seen: dict[str, Task] = {}
    for e in exposures:
        seen.setdefault(e.task.key, e.task)
    return tuple(seen.values())


@dataclass(frozen=True, slots=True)
class Setup:
    """What an agent is made with."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    slots: int
    """The most environments it will ever see side by side."""
    seed: int
    tasks: tuple[str, ...] = ()
    """Ids of the tasks whose identity the curriculum shows; empty when identity is hidden."""
    instructions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The phrasings of each of those tasks' instructions, where they have any."""
    examples: Callable[[int, Array], Examples] | None = None
    """Looks examples up again: ``examples(batch.source, batch.indices)``. For strategies that keep
    references into past data instead of copies."""
    protocol: EvalProtocol | None = None
    """By which the curriculum evaluates, where that has a name: how a policy is to be spoken to."""
    shown_tasks: tuple[Task, ...] = ()
    """The tasks behind those ids, with their parameters."""
    least_trial: int | None = None
    """How many episodes the trials have at least that are learned from; None: not known."""


def _no_progress() -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Context:
    """Where in the lifetime a call happens. One object serves many steps."""

    kind: Kind
    learning: bool
    """True in learn blocks and in the learning part of adapt blocks."""
    block: int
    tasks: tuple[str, ...] | None
    """Task id of each row of the batch; None when identity is hidden."""
    slots: Array
    """Slot number of each row of the batch. Slots whose budget is used up drop out."""
    episode_start: Array
    """For every slot (index it with ``slots``): is this the first step of an episode?"""
    event: str = ""
    """In enter and leave: ``lifetime``, ``block``, ``task`` or ``variant``."""
    trial_start: Array = None  # type: ignore[assignment]
    """For every slot: is this the first step of a trial? As ``episode_start`` unless it is given."""
    instructions: tuple[str, ...] | None = None
    """The instruction of each row's task, in the phrasing of this episode; None when it is hidden
    or there is none."""
    length: int | None = None
    """Steps (batches, for data) of the exposure, or of all side by side; None if not known."""
    fraction: Callable[[], float] = _no_progress
    stage: tuple[float, float] = (0.0, 1.0)
    """Where this learn block lies among consecutive ones of the same tasks (evaluations may come
    between them): the part of them that was done before it, and the part that it is."""

    def __post_init__(self) -> None:
        if self.trial_start is None:
            object.__setattr__(self, "trial_start", self.episode_start)

    @classmethod
    def evaluation(
        cls, count: int = 1, task: str | None = None, episode_start: bool = False
    ) -> Context:
        """The context in which a trained agent acts outside a run, on ``count`` observations side by
        side; ``task`` is the id of their task, where the agent is to know it."""
        slots, starts = np.arange(count), np.full(count, episode_start)
        return cls("eval", False, 0, None if task is None else (task,) * count, slots, starts)

    @property
    def task(self) -> str | None:
        """The task id where one task runs alone; None when hidden. In a parallel block, the
        first."""
        return self.tasks[0] if self.tasks else None

    @property
    def progress(self) -> float:
        """How much of the exposure is done, from 0 to 1; of all together in a parallel block. A
        learning-rate schedule reads it."""
        return self.fraction()

    @property
    def stage_progress(self) -> float:
        """How much is done of all consecutive learn blocks of these tasks, from 0 to 1: where a task
        is learned in several blocks, so that it can be evaluated in between, a schedule may go over
        all of them."""
        before, share = self.stage
        return before + share * self.fraction()


@dataclass(slots=True, eq=False)
class Transitions:
    """One step of every active slot. Rows match ``ctx.slots``."""

    obs: Any
    actions: Array
    rewards: Array | None
    """None where they are hidden: in evaluation, unless the block shows them."""
    terminated: Array
    truncated: Array
    next_obs: Any
    """The true final observation where the episode ended, never that of the next episode."""

    def __len__(self) -> int:
        return len(self.terminated)


@dataclass(slots=True, eq=False)
class Examples:
    """A minibatch of labelled data or demonstrations.

    ``inputs`` is an array, or a (nested) dict of arrays, whose first axis is the minibatch;
    sequences have time as their second axis.
    """

    inputs: Any
    targets: Array
    source: int = -1
    """Which of the lifetime's data sets they are from; -1 if they cannot be looked up again."""
    indices: Array | None = None
    """Where in that data set each of them is."""

    def __len__(self) -> int:
        return len(self.targets)


Batch: TypeAlias = Transitions | Examples
