"""The nouns: Task, Exposure, Block, Curriculum, and what passes between loop and agent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from perdure.arrays import Array as Array
from perdure.arrays import State as State
from perdure.errors import CurriculumError, UnknownName
from perdure.names import check_name

if TYPE_CHECKING:
    import gymnasium

Measures: TypeAlias = Mapping[str, float]
Unit = Literal["episodes", "steps", "epochs", "batches"]
Kind = Literal["learn", "eval", "adapt"]

UNITS: tuple[Unit, ...] = ("episodes", "steps", "epochs", "batches")
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
        base = f"{self.suite}/{self.name}"
        return f"{base}@{self.variant}" if self.variant else base

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


@dataclass(frozen=True, slots=True)
class Exposure:
    """A task and how much of it. Episodes and steps drive its environment; epochs and batches
    its data."""

    task: Task
    amount: int
    unit: Unit = "episodes"

    def __post_init__(self) -> None:
        where = f"exposure of {self.task.id}"
        if self.unit not in UNITS:
            raise CurriculumError(f"{where}: unit must be one of {UNITS}, got {self.unit!r}")
        if isinstance(self.amount, bool) or not isinstance(self.amount, (int, np.integer)):
            raise CurriculumError(
                f"{where}: the amount must be a whole number of {self.unit}, got {self.amount!r}"
            )
        if self.amount < 1:
            raise CurriculumError(
                f"{where}: the amount must be at least 1 {self.unit}, got {self.amount}"
            )
        object.__setattr__(self, "amount", int(self.amount))

    @property
    def on_data(self) -> bool:
        """Whether this exposure reads the task's data rather than drives its environment."""
        return self.unit in DATA_UNITS

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {"task": self.task.to_json(), "amount": self.amount, "unit": self.unit}

    def __str__(self) -> str:
        unit = self.unit
        if self.amount == 1:
            unit = {"episodes": "episode", "steps": "step", "epochs": "epoch"}.get(unit, "batch")  # type: ignore[assignment]
        return f"{self.task.id} × {self.amount:,} {unit}"


@dataclass(frozen=True, slots=True)
class Block:
    """Exposures of one kind, in sequence or side by side (``together``).

    An ``adapt`` block snapshots the agent, learns ``exposures``, evaluates ``then``, and restores
    the agent: meta-testing and probes.
    """

    kind: Kind
    exposures: tuple[Exposure, ...]
    together: bool = False
    then: tuple[Exposure, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "exposures", tuple(self.exposures))
        object.__setattr__(self, "then", tuple(self.then))
        if self.kind not in KINDS:
            raise CurriculumError(f"block kind must be one of {KINDS}, got {self.kind!r}")
        if not self.exposures:
            raise CurriculumError(f"empty {self.kind} block: give it at least one exposure")
        for e in (*self.exposures, *self.then):
            if not isinstance(e, Exposure):
                raise CurriculumError(f"a {self.kind} block holds Exposures, got {e!r}")
        if self.then and self.kind != "adapt":
            raise CurriculumError(f"only an adapt block may have 'then', not a {self.kind} block")
        if self.kind == "adapt" and not self.then:
            raise CurriculumError("an adapt block needs 'then': what to evaluate after adapting")

    @property
    def phases(self) -> tuple[tuple[bool, tuple[Exposure, ...]], ...]:
        """(learning?, exposures) in the order they run."""
        if self.kind == "adapt":
            return ((True, self.exposures), (False, self.then))
        return ((self.kind == "learn", self.exposures),)

    @property
    def width(self) -> int:
        """How many exposures run side by side at most."""
        return max(len(self.exposures), len(self.then)) if self.together else 1

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        out: dict[str, Any] = {
            "kind": self.kind,
            "exposures": [e.to_json() for e in self.exposures],
        }
        if self.together:
            out["together"] = True
        if self.then:
            out["then"] = [e.to_json() for e in self.then]
        return out


def learn(*exposures: Exposure, together: bool = False) -> Block:
    """A learn block."""
    return Block("learn", exposures, together)


def evaluate(*exposures: Exposure, together: bool = False) -> Block:
    """An eval block: rewards are hidden from the agent."""
    return Block("eval", exposures, together)


def adapt(*exposures: Exposure, then: Sequence[Exposure], together: bool = False) -> Block:
    """An adapt block: snapshot, learn a little, evaluate ``then``, restore."""
    return Block("adapt", exposures, together, tuple(then))


@dataclass(frozen=True, slots=True)
class Choice:
    """What a generated curriculum may yield instead of a block: the agent picks one.

    The loop asks ``agent.choose(options, results)`` and records the answer, so that a resumed
    lifetime walks the same way.
    """

    options: tuple[Block, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(self.options))
        if not self.options:
            raise CurriculumError("a Choice needs at least one block to choose from")


class Results(Protocol):
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


BlockGenerator: TypeAlias = Generator["Block | Choice", Results, None]


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
    width: int = 1
    """The most exposures side by side; counted from the blocks unless they are generated."""
    about: str = ""

    def __post_init__(self) -> None:
        check_name("curriculum", self.name)
        for attr in ("blocks", "before", "tasks"):
            object.__setattr__(self, attr, tuple(getattr(self, attr)))
        for b in self.fixed:
            if not isinstance(b, Block):
                raise CurriculumError(f"curriculum {self.name}: blocks must be Block, got {b!r}")
        if self.generate is None:
            if not self.blocks:
                raise CurriculumError(
                    f"curriculum {self.name} is empty: give it at least one block"
                )
            object.__setattr__(self, "tasks", _tasks_of(self.fixed))
            object.__setattr__(self, "width", max(b.width for b in self.fixed))
        elif self.blocks:
            raise CurriculumError(f"curriculum {self.name}: give blocks or generate, not both")
        elif not self.tasks:
            raise CurriculumError(
                f"curriculum {self.name} is generated: name every task it may use in 'tasks'"
            )

    @property
    def fixed(self) -> tuple[Block, ...]:
        """All blocks known before running: ``before`` then ``blocks``."""
        return self.before + self.blocks

    def walk(self) -> Iterator[tuple[str, Exposure]]:
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
        return out

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits that change when anything that runs changes."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _tasks_of(blocks: Sequence[Block]) -> tuple[Task, ...]:
    seen: dict[str, Task] = {}
    for b in blocks:
        for e in (*b.exposures, *b.then):
            seen.setdefault(e.task.key, e.task)
    return tuple(seen.values())


@dataclass(frozen=True, slots=True)
class World:
    """What an agent is told when its life begins."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    slots: int
    """The most environments it will ever see side by side."""
    seed: int
    tasks: tuple[str, ...] = ()
    """Task ids of the whole curriculum, empty when identity is hidden."""


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
    fresh: Array
    """For every slot (index it with ``slots``): is this the first step of an episode?"""
    event: str = ""
    """In enter and leave: ``lifetime``, ``block``, ``task`` or ``variant``."""

    @property
    def task(self) -> str | None:
        """The task id where one task runs alone; None when hidden. In a together block, the
        first."""
        return self.tasks[0] if self.tasks else None


@dataclass(slots=True, eq=False)
class Transitions:
    """One step of every active slot. Rows match ``ctx.slots``."""

    obs: Any
    actions: Array
    rewards: Array | None
    """None in evaluation."""
    terminated: Array
    truncated: Array
    next_obs: Any
    """The true final observation where the episode ended, never that of the next episode."""

    def __len__(self) -> int:
        return len(self.terminated)


@dataclass(slots=True, eq=False)
class Examples:
    """A minibatch of labelled data or demonstrations."""

    inputs: Any
    targets: Array

    def __len__(self) -> int:
        return len(self.targets)


Batch: TypeAlias = Transitions | Examples


class Data(Protocol):
    """What a task offers to data exposures."""

    batch_size: int

    def __len__(self) -> int: ...

    def batch(self, indices: Array) -> Examples:
        """The examples at these indices."""


class Suite(Protocol):
    """A family of tasks: its environments or data and its protocols. Subclass it.

    Built-in suites are modules of ``perdure.suites`` with a module-level ``suite``; plugins use
    the entry-point group ``perdure.suites``.
    """

    name: str

    def tasks(self) -> Sequence[Task]:
        """The tasks to list and check; an open family lists examples."""
        ...

    def env(self, task: Task) -> gymnasium.Env[Any, Any]:
        """A new environment; its ``reset(seed=s)`` alone decides an episode."""
        raise CurriculumError(f"{task.id} has no environment: give it epochs or batches")

    def film(self, task: Task) -> gymnasium.Env[Any, Any]:
        """A new environment that plays the same episodes and, if it can be seen at all, renders
        them as ``rgb_array``."""
        return self.env(task)

    def many(self, task: Task, count: int) -> Many | None:
        """``count`` environments stepped by one call, or None: then they are made by ``env``."""
        return None

    def data(self, task: Task, learning: bool) -> Data:
        """The task's training or held-out data."""
        raise CurriculumError(f"{task.id} has no data: give it episodes or steps")

    def task(self, name: str) -> Task:
        """The task of this name (``name`` or ``name@variant``); UnknownName otherwise."""
        known = {t.id.split("/", 1)[1]: t for t in self.tasks()}
        if name not in known:
            raise UnknownName(f"{self.name} task", name, known)
        return known[name]

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        """Observation and action space of the task with its own parameters."""
        env = self.env(task)
        try:
            return env.observation_space, env.action_space
        finally:
            env.close()

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        """Protocols by name. A function that takes ``seed`` gets one of its own per lifetime."""
        return {}

    def window(self, task: Task) -> int | None:
        """For a continuing task: a row is written every so many steps. None if episodic."""
        return None


class Many(Protocol):
    """Several environments of one task, stepped by one call. Optional: a suite that can do this
    faster than one environment after another returns it from :meth:`Suite.many`."""

    def reset(self, slot: int, seed: int) -> Any:
        """Begin the episode of this seed in one slot; its first observation."""

    def expect(self, seeds: Sequence[int]) -> None:
        """Which episodes come next, should it help to know. Not all of them need come."""

    def step(
        self, slots: Sequence[int], actions: Sequence[Any]
    ) -> tuple[Any, list[float], list[bool], list[bool], Mapping[int, Mapping[str, Any]]]:
        """Step some of the slots: observations (a new array each time), finite rewards,
        terminated, truncated, and infos by row where there are any. Actions have been checked;
        those of a Discrete space are Python ints."""

    def close(self) -> None:
        """Let go of everything."""


class Startable(Protocol):
    """A :class:`Many` whose steps may begin before they are asked for. Where several tasks run side
    by side, all of them are started before the first is stepped, so that their work can overlap."""

    def start(self, slots: Sequence[int], actions: Sequence[Any]) -> None:
        """The next ``step`` will be with these slots and actions."""


class Restorable(Protocol):
    """An environment whose unwrapped form can save itself. Without it, a block resumed in
    mid-episode replays the episode's actions."""

    def save_state(self) -> dict[str, Array]: ...

    def load_state(self, state: Mapping[str, Array]) -> None: ...
