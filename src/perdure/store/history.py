"""One lifetime as columns: what every metric reads, whoever wrote the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from perdure.arrays import Array
from perdure.errors import StoreError, UnknownName
from perdure.names import join_task_id, without_variant
from perdure.store import rows
from perdure.store.code import Record
from perdure.store.log import Lifetime
from perdure.store.run import LifetimeInfo, Run

PREFERRED = ("success", "accuracy", "return")


@dataclass(frozen=True, eq=False)
class History:
    """A lifetime's experiences, one entry of each column an experience, in order of ``exp``.

    A metric reads nothing else. ``experts`` holds the single-task experts' histories by task.
    """

    name: str
    """Folder name of a log; ``agent/seed`` of a run's lifetime."""
    tasks: tuple[str, ...]
    """Task ids in order of first appearance; ``task`` holds indices into it."""
    exp: Array
    """Running number of the experience."""
    block: Array
    task: Array
    learning: Array
    """Whether the agent learned from the experience."""
    adapt: Array
    """Whether it belongs to an adapt block: a probe that leaves no trace in the agent."""
    sleep: Array
    """Whether it belongs to a block of subtype sleep (L2Logger only)."""
    before: Array
    """Whether it came before deployment."""
    complete: Array
    """Not so for an episode that the budget cut off."""
    steps: Array
    """Length of the experience."""
    columns: Mapping[str, Any]
    """The measures as Arrow columns, null where an experience has none."""
    measure: str
    """The measure to take where none is named."""
    agent: str = ""
    seed: int | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    """What the log says of itself."""
    experts: Mapping[str, tuple[History, ...]] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    """Experts that were planned and are not in ``experts``, and why."""
    notes: tuple[str, ...] = ()
    """What a reader should know before trusting the numbers."""
    code: tuple[Record, ...] = ()
    """What it executed, and its experts; empty where that is not known."""
    chance: bool = False
    """Whether its agent acts at random."""

    def __len__(self) -> int:
        return len(self.exp)

    def values(self, measure: str | None = None) -> Array:
        """A measure as floats, NaN where an experience has none."""
        name = measure or self.measure
        if name not in self.columns:
            raise UnknownName(
                f"measure of {self.name}",
                name,
                self.columns,
                f"(it has: {', '.join(self.columns)})",
            )
        return floats(self.columns[name])

    @cached_property
    def learned_tasks(self) -> tuple[str, ...]:
        """Tasks learned after deployment, in the order of their first learning."""
        mask = self.learning & ~self.adapt & ~self.before
        codes, first = np.unique(self.task[mask], return_index=True)
        return tuple(self.tasks[c] for c in codes[np.argsort(first)])

    @property
    def goals(self) -> dict[str, str]:
        """What is adapted to and never learned: goals of a test task, with the task they are variants of."""
        learned = set(self.task[self.learning & ~self.adapt].tolist())
        adapted = set(self.task[self.adapt].tolist())
        return {self.tasks[c]: without_variant(self.tasks[c]) for c in adapted - learned}

    def renamed(self, tasks: Mapping[str, str]) -> History:
        """The same with other names for some tasks; those of one name become one."""
        names = [tasks.get(t, t) for t in self.tasks]
        if names == list(self.tasks):
            return self
        found = tuple(dict.fromkeys(names))
        place = np.array([found.index(n) for n in names], self.task.dtype)
        return replace(self, tasks=found, task=place[self.task])

    def only(self, mask: Array) -> History:
        """The history of some experiences."""
        if np.all(mask):
            return self
        chosen = rows.truths(mask)
        taken = {n: c.filter(chosen) for n, c in self.columns.items()}
        per_row = ("exp", "block", "task", "learning", "adapt", "sleep", "before", "complete")
        cut = {name: getattr(self, name)[mask] for name in (*per_row, "steps")}
        return replace(self, columns=taken, **cut)


def numbers(column: pa.ChunkedArray | pa.Array) -> Array:
    """A column of numbers or truth values without nulls as an array.

    Not by ``to_numpy``: that imports pandas where it is installed, which takes longer than reading
    a million rows.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    to_array = _bits if pa.types.is_boolean(column.type) else np.from_dlpack
    parts = [to_array(chunk) for chunk in chunks if len(chunk)]
    if not parts:
        return np.zeros(0, column.type.to_pandas_dtype())
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _bits(chunk: pa.Array) -> Array:
    bits = np.unpackbits(np.frombuffer(chunk.buffers()[1], np.uint8), bitorder="little")
    return bits[chunk.offset : chunk.offset + len(chunk)].view(bool)


def floats(column: pa.ChunkedArray) -> Array:
    """A column of numbers as float64, NaN for null."""
    if not column.null_count:
        return np.asarray(numbers(column), np.float64)
    column = column.cast(pa.float64())
    # A scalar made of a Python number would import pandas, too.
    known = numbers(column.is_valid())
    bare = [
        pa.Array.from_buffers(c.type, len(c), [None, c.buffers()[1]], offset=c.offset)
        for c in column.chunks
    ]
    return np.where(known, numbers(pa.chunked_array(bare, pa.float64())), np.nan)


def codes(column: pa.ChunkedArray) -> tuple[list[Any], Array]:
    """The different values of a column in order of first appearance, and an index for each row."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries()
    if column.num_chunks == 0:
        return [], np.zeros(0, np.int32)
    labels = column.chunk(0).dictionary.to_pylist()
    if len(labels) == 1 and len(column) and not column.null_count:
        return labels, np.zeros(len(column), np.int32)
    index = numbers(pa.chunked_array([c.indices for c in column.chunks]))
    return _in_order(labels, index)


FEW = 64


def _in_order(labels: Sequence[Any], index: Array) -> tuple[list[Any], Array]:
    """Labels in order of first use, without those that are never used."""
    used = np.flatnonzero(np.bincount(index, minlength=len(labels)))
    if len(used) <= FEW:  # A scan for each beats a sort of all.
        first = [int(np.argmax(index == u)) for u in used]
    else:
        first = np.unique(index, return_index=True)[1].tolist()
    used = used[np.argsort(first)]
    place = np.zeros(len(labels), np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    if np.array_equal(place, np.arange(len(labels))):
        return list(labels), index
    return [labels[int(u)] for u in used], place[index]


_NEEDED = ("exp", "block", "deployed", "kind", "learning", "task", "variant", "steps", "status")


def read_lifetime(
    log: Lifetime | Path, name: str, agent: str = "", seed: int | None = None, shown: bool = False
) -> History:
    """The history in a lifetime's log, or in its folder: what is committed, or all that is ``shown``."""
    found = log if isinstance(log, Lifetime) else Lifetime.read(log)
    table = (found.shown if shown else found.table)([*_NEEDED, *rows.MEASURES, "more"])
    return from_table(table, name, agent, seed)


def from_table(table: pa.Table, name: str, agent: str = "", seed: int | None = None) -> History:
    """The history of one lifetime's rows."""
    table = table.select([c for c in table.column_names if c in (*_NEEDED, *rows.MEASURES, "more")])
    if "more" in table.column_names:
        table = rows.flatten(table)
    tasks, task = task_ids(table)
    measures = {
        n: c
        for n, c in zip(table.column_names, table.columns, strict=True)
        if n not in _NEEDED and c.null_count < len(c)
    }
    kinds, kind = codes(table.column("kind"))
    statuses, status = codes(table.column("status"))
    return History(
        name=name,
        tasks=tuple(tasks),
        exp=numbers(table.column("exp")),
        block=numbers(table.column("block")),
        task=task,
        learning=numbers(table.column("learning")),
        adapt=equals("adapt", kinds, kind),
        sleep=np.zeros(len(task), bool),
        before=~numbers(table.column("deployed")),
        complete=~equals("incomplete", statuses, status),
        steps=numbers(table.column("steps")),
        columns=measures,
        measure=next((m for m in PREFERRED if m in measures), "return"),
        agent=agent,
        seed=seed,
    )


def equals(value: str, labels: Sequence[Any], index: Array) -> Array:
    """Which rows of :func:`codes` hold this value."""
    return index == labels.index(value) if value in labels else np.zeros(len(index), bool)


def task_ids(table: pa.Table) -> tuple[list[str], Array]:
    """The different task ids of rows in order of first appearance, and an index for each row."""
    tasks, task = codes(table.column("task"))
    variants, variant = codes(table.column("variant"))
    if variants == [""]:
        return tasks, task
    pairs, index = np.unique(task.astype(np.int64) * len(variants) + variant, return_inverse=True)
    labels = []
    for pair in pairs.tolist():
        name, kind = tasks[pair // len(variants)], variants[pair % len(variants)]
        labels.append(join_task_id("", name, kind))
    return _in_order(labels, index)


def common_measure(histories: Sequence[History]) -> str:
    """The first of success, accuracy and return that any of them has."""
    own = {h.measure for h in histories}
    return next((m for m in PREFERRED if m in own), next(iter(own), "return"))


def read_run(run: Run) -> list[History]:
    """The lifelong lifetimes of a run that have rows, by agent and seed; without the damaged."""
    return [
        replace(read_lifetime(i.read(), i.id, i.agent, i.seed), code=i.code, chance=i.chance)
        for i in run.lifetimes()
        if not i.expert and i.rows and i.status != "damaged"
    ]


Experts = dict[str, dict[str, tuple[History, ...]]]


def read_experts(lifetimes: Sequence[LifetimeInfo]) -> tuple[Experts, dict[str, str]]:
    """For each agent and task of a run: its finished single-task experts, by seed. And which of them
    cannot be read, and why."""
    found: dict[str, dict[str, list[History]]] = {}
    lost: dict[str, str] = {}
    for info in lifetimes:
        if info.expert and info.status == "done":
            try:
                history = read_lifetime(info.read(), info.id, info.agent, info.seed)
            except StoreError as e:
                lost[info.id] = str(e)
                continue
            history = replace(history, code=info.code)
            found.setdefault(info.agent, {}).setdefault(info.expert, []).append(history)
    return {a: {t: tuple(h) for t, h in tasks.items()} for a, tasks in found.items()}, lost
