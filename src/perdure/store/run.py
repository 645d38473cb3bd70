"""Reading a run: its lifetimes, their state, and their rows as one table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from perdure.errors import StoreError
from perdure.store import rows
from perdure.store.layout import SPEC, LifetimeFolder, RunFolder
from perdure.store.log import Lifetime

_KEYS = {"format", "seed", "expert"}


@dataclass(frozen=True)
class LifetimeInfo:
    """One lifetime of a run, as its folder says."""

    id: str
    path: Path
    agent: str
    seed: int
    expert: str
    """Task id of a single-task expert, empty for a lifelong agent."""
    status: str
    """``done``, ``running``, ``failed`` or ``interrupted``."""
    error: str
    progress: dict[str, Any]
    rows: int

    @property
    def description(self) -> dict[str, Any]:
        """What the lifetime is made of: agent, seed, curriculum outline."""
        return LifetimeFolder(self.path).description() or {}


class Run:
    """A run's folder. ``Run("runs/x").rows()`` is all that the lifelong agents went through, as a
    table; ``rows(experts=True)`` is the single-task experts'."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.folder = RunFolder(self.path)
        if not self.folder.exists():
            raise StoreError(f"{self.path} is not a Perdure run: it has no {SPEC}")

    @property
    def spec(self) -> dict[str, Any]:
        """The resolved specification."""
        found: dict[str, Any] = self.folder.spec()
        return found

    def lifetimes(self) -> list[LifetimeInfo]:
        """Every lifetime that has begun."""
        infos = [self._info(job) for job in self.folder.lifetimes()]
        return sorted(infos, key=lambda i: (i.expert, i.agent, i.seed))

    def _info(self, job: str) -> LifetimeInfo:
        folder = self.folder.lifetime(job)
        description = folder.description() or {}
        if not description.keys() >= _KEYS:
            raise StoreError(
                f"{folder.described_in} does not describe a lifetime: expected {sorted(_KEYS)}"
            )
        if description["format"] > rows.FORMAT:
            raise StoreError(
                f"{folder.path} has log format {description['format']}, this Perdure reads up to "
                f"{rows.FORMAT}: upgrade it"
            )
        status = folder.status()
        error = folder.error() if status != "done" else None
        return LifetimeInfo(
            job,
            folder.path,
            job.partition("/")[0],
            description["seed"],
            description["expert"],
            status,
            str(error["error"]) if error else "",
            folder.progress(),
            sum(c.count for c in folder.journal().commits),
        )

    def rows(self, *, experts: bool = False) -> pa.Table:
        """All committed rows as one Arrow table; ``.to_pandas()`` for a data frame.

        ``experts`` chooses the single-task experts' rows instead of the lifelong agents'. Every
        measure is a column.
        """
        tables = [
            table
            for info in self.lifetimes()
            if bool(info.expert) == experts
            for table in Lifetime.read(info.path).tables()
        ]
        if not tables:
            return rows.flatten(rows.SCHEMA.empty_table())
        return rows.flatten(pa.concat_tables(tables))

    def verify(self) -> list[str]:
        """What is damaged, a sentence each; empty if all is well."""
        problems: list[str] = []
        for info in self.lifetimes():
            life = Lifetime.read(info.path, verify=True)
            problems += life.notes
            last = life.commits[-1] if life.commits else None
            if last is None or last.checkpoint is None or last.n in life.damaged:
                continue
            # What a lifetime resumes from must be there, and load; when it is done, it may be gone.
            if not life.done or last in life.held():
                try:
                    life.load_state(last)
                except StoreError as e:
                    problems.append(str(e))
        return problems
