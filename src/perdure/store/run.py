"""Reading a run: its lifetimes, their state, what is missing, and their rows as one table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from perdure import registry
from perdure.errors import Corrupt, PartialRun, StoreError
from perdure.store import rows
from perdure.store.code import Record, recorded
from perdure.store.completeness import MissingPart, listed, missing
from perdure.store.layout import SPEC, LifetimeFolder, RunFolder
from perdure.store.log import Lifetime
from perdure.store.places import LifetimePlace
from perdure.store.urls import place

if TYPE_CHECKING:
    from perdure.agent import Agent


CHANCE = "random"
"""The agent that acts at random."""


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
    """``done``, ``running``, ``failed``, ``interrupted``, or ``damaged``: its folder, its description,
    its journal and the plan do not agree, and nothing that it holds counts."""
    error: str
    """Why it failed, or what is damaged."""
    progress: dict[str, Any]
    rows: int
    """How many are committed."""
    code: tuple[Record, ...] = ()
    """What it executed (:mod:`perdure.store.code`): one record, or several where versions were
    mixed."""
    chance: bool = False
    """Whether its agent acts at random: what others are compared with, not a contestant."""

    @property
    def folder(self) -> LifetimeFolder:
        """What there is of it but rows and checkpoints."""
        return LifetimeFolder(self.path)

    @property
    def description(self) -> dict[str, Any]:
        """What the lifetime is made of: agent, seed, curriculum outline."""
        return self.folder.description() or {}

    def read(self, verify: bool = False) -> Lifetime:
        """Its log, whose rows must be this lifetime's own."""
        return Lifetime.read(self.path, verify, (self.agent, self.seed, self.expert))


class Run:
    """A run's folder. ``Run("runs/x").rows()`` is all that the lifelong agents went through, as a
    table; ``rows(experts=True)`` is the single-task experts'."""

    def __init__(self, path: str | Path) -> None:
        self.path = place(path)
        self.folder = RunFolder(self.path)
        if not self.folder.exists():
            raise StoreError(f"{self.path} is not a Perdure run: it has no {SPEC}")

    def __repr__(self) -> str:
        try:
            spec, gaps = self.spec, self.gaps()
        except StoreError as e:
            return f"Run({str(self.path)!r}: {e})"
        agents, planned = spec.get("agents", {}), len(self.folder.jobs())
        lacking = len([gap for gap in gaps if gap.id])
        many = f"{planned} lifetime{'s' * (planned != 1)}"
        state = f"{planned - lacking} of {many} done" if lacking else many
        return (
            f"Run({str(self.path)!r}: {spec.get('curriculum', '')}, {', '.join(agents)}, {state})"
        )

    @property
    def spec(self) -> dict[str, Any]:
        """The resolved specification."""
        found = self.folder.spec()
        if not isinstance(found, dict):
            raise StoreError(f"{self.folder.spec_in} is not the specification of a run; restore it")
        return found

    def lifetimes(self) -> list[LifetimeInfo]:
        """Every lifetime that has begun. Folders that are no lifetime of this run are not among them
        (:meth:`gaps` names them)."""
        _ = self.spec  # StoreError if there is none: then it is not known whose they are.
        places = [(job, p) for job, p in self.folder.places().items() if p is not None]
        infos = [self._info(job, place) for job, place in places]
        infos = [info for info in infos if info.status != "waiting"]
        return sorted(infos, key=lambda i: (i.expert, i.agent, i.seed))

    def _info(self, job: str, place: LifetimePlace) -> LifetimeInfo:
        folder = self.folder.lifetime(job)
        status: str = folder.status()
        if status == "damaged":
            return LifetimeInfo(job, folder.path, *place, status, folder.trouble(), {}, 0)
        found, journal = folder.looked
        described, error = found or {}, ""
        if status != "done" and (told := folder.error()):
            error = str(told["error"])
        expert = described.get("expert", place.task)
        count = sum(c.count for c in journal.commits)
        chance = str(described.get("agent", "")).partition(",")[0] == CHANCE
        return LifetimeInfo(
            job, folder.path, *place[:2], expert, status, error, folder.progress(), count,
            recorded(described), chance,
        )  # fmt: skip

    def gaps(
        self, lifetimes: Sequence[LifetimeInfo] | None = None, *, verify: bool = False
    ) -> list[MissingPart]:
        """What keeps the run from being whole, against its plan: lifetimes that have not begun or not
        ended, that are damaged, and folders that are none of its. ``lifetimes``, where they have just
        been asked for, are not looked up again; with ``verify`` their rows are read too."""
        infos = self.lifetimes() if lifetimes is None else lifetimes
        known = {i.id: (i.status, i.error) for i in infos}
        for info in infos if verify else ():
            try:
                if info.status != "damaged":
                    info.read().check_rows()
            except StoreError as e:
                known[info.id] = ("damaged", str(e))
        return missing(self.folder, known)

    def rows(self, *, experts: bool = False, partial: bool = False) -> pa.Table:
        """All committed rows as one Arrow table; ``.to_pandas()`` for a data frame.

        ``experts`` chooses the single-task experts' rows instead of the lifelong agents'. Every
        measure is a column. Damage is an error, and lifetimes that did not end are a warning
        (:class:`PartialRun`); with ``partial`` the good rows come without either.
        """
        lifetimes = self.lifetimes()
        if not partial:
            gaps = self.gaps(lifetimes)
            damaged = [gap for gap in gaps if gap.damage]
            if damaged:
                raise Corrupt(
                    f"{listed(self.path, damaged)}; rows(partial=True) gives what is good"
                )
            if gaps:
                warnings.warn(listed(self.path, gaps), PartialRun, stacklevel=2)
        tables = []
        for info in lifetimes:
            if bool(info.expert) == experts and info.status != "damaged":
                try:
                    tables += list(info.read().tables())
                except StoreError:
                    if not partial:
                        raise
        if not tables:
            return rows.flatten(rows.SCHEMA.empty_table())
        return rows.flatten(pa.concat_tables(tables))

    def agent(
        self, label: str = "", seed: int | None = None, commit: int = -1, expert: str = ""
    ) -> Agent:
        """A trained agent, live and set up as it was: that of this label, of the lifetime with this
        seed (the first), as it was at this commit (the last). ``expert`` is the task of a
        single-task expert. ``agent.act(observations, Context.evaluation())`` is what it does."""
        # Found by its name: what makes agents is above what reads runs.
        made: Agent = registry.load("agents", "from_run").again(
            self.path, label, seed, commit, expert
        )
        return made

    def verify(self) -> list[str]:
        """What is damaged, a sentence each; empty if all is well. Lifetimes that have not ended are
        no damage."""
        problems = [str(gap) for gap in self.gaps() if gap.damage]
        for info in self.lifetimes():
            try:
                problems += info.folder.side_problems()
                problems += self._damage(info)
            except StoreError as e:
                problems.append(str(e))
        return [p for p in dict.fromkeys(problems) if not any(p in q for q in problems if p != q)]

    def _damage(self, info: LifetimeInfo) -> list[str]:
        # Whose the rows of a lifetime are that is not where it belongs is no news.
        life = (
            info.read(verify=True) if info.status != "damaged" else Lifetime.read(info.path, True)
        )
        last = life.commits[-1] if life.commits else None
        if last is None or last.checkpoint is None or last.n in life.damaged:
            return life.notes
        # What a lifetime resumes from must be there, and load; when it is done, it may be gone.
        if not life.done or last in life.held():
            try:
                life.load_state(last)
            except StoreError as e:
                return [*life.notes, str(e)]
        return life.notes
