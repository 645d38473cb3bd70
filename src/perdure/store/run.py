"""Reading a run: its lifetimes, their state, and their rows as one table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from perdure.errors import StoreError
from perdure.store import files, rows
from perdure.store.lock import Lock
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
        found: dict[str, Any] = files.read_json(self.path / "_meta" / "lifetime.json")
        return found


def is_run(path: Path) -> bool:
    """Whether a folder is a run."""
    return (path / "_meta" / "spec.json").is_file()


def runs_below(folder: Path) -> Iterator[Path]:
    """Every run at or below a folder, in order; a run is not searched for others."""
    for root, below, _ in os.walk(folder):
        if is_run(Path(root)):
            yield Path(root)
            below.clear()
        below[:] = sorted(d for d in below if not d.startswith((".", "_")))


class Run:
    """A run's folder. ``Run("runs/x").rows()`` is all that the lifelong agents went through, as a
    table; ``rows(experts=True)`` is the single-task experts'."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not is_run(self.path):
            raise StoreError(f"{self.path} is not a Perdure run: it has no _meta/spec.json")

    @property
    def spec(self) -> dict[str, Any]:
        """The resolved specification."""
        found: dict[str, Any] = files.read_json(self.path / "_meta" / "spec.json")
        return found

    def lifetimes(self) -> list[LifetimeInfo]:
        """Every lifetime that has begun."""
        found = sorted(self.path.glob("*/*/_meta/lifetime.json"))
        found += sorted(self.path.glob("*/experts/*/*/_meta/lifetime.json"))
        infos = [self._info(p.parent.parent) for p in found]
        return sorted(infos, key=lambda i: (i.expert, i.agent, i.seed))

    def _info(self, path: Path) -> LifetimeInfo:
        described = path / "_meta" / "lifetime.json"
        description = files.read_json(described)
        if not isinstance(description, dict) or not description.keys() >= _KEYS:
            raise StoreError(f"{described} does not describe a lifetime: expected {sorted(_KEYS)}")
        if description["format"] > rows.FORMAT:
            raise StoreError(
                f"{path} has log format {description['format']}, this Perdure reads up to "
                f"{rows.FORMAT}: upgrade it"
            )
        life = Lifetime.read(path)
        error = path / "_meta" / "error.json"
        progress = path / "_meta" / "progress.json"
        text = str(files.read_json(error)["error"]) if error.exists() else ""
        if life.done:
            status, text = "done", ""
        elif Lock.held(path / "_meta" / "lock"):
            status = "running"
        else:
            status = "failed" if text else "interrupted"
        relative = path.relative_to(self.path)
        return LifetimeInfo(
            str(relative),
            path,
            relative.parts[0],
            description["seed"],
            description["expert"],
            status,
            text,
            files.read_json(progress) if progress.exists() else {},
            sum(c.count for c in life.commits),
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
            if last is None or last.state is None or last.state in life.damaged:
                continue
            # What a lifetime resumes from must be there, and load; when it is done, it may be gone.
            if not life.done or (info.path / last.state).exists():
                try:
                    life.load_state(last)
                except StoreError as e:
                    problems.append(str(e))
        return problems
