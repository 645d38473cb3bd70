"""What of a run is there, against what was planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import StoreError
from perdure.store.layout import RunFolder
from perdure.store.membership import agents_of, seeds_of
from perdure.store.places import EXPERTS, job_of

WAITING = "the lifetime has not begun"
SHOWN = 10
"""Gaps that one message names."""


@dataclass(frozen=True)
class MissingPart:
    """One thing that keeps a run from being whole."""

    id: str
    """A lifetime, or whatever else it is, below the run's folder; empty for the plan itself."""
    what: str
    damage: bool
    """Not so for lifetimes that have not begun, or not ended."""

    @property
    def expert(self) -> bool:
        """Whether it is a single-task expert."""
        return f"/{EXPERTS}/" in self.id

    def __str__(self) -> str:
        return f"{self.id}: {self.what}" if self.id else self.what


def listed(path: Path, gaps: Sequence[MissingPart]) -> str:
    """Gaps in a message."""
    more = f"\n  … and {len(gaps) - SHOWN} more" if len(gaps) > SHOWN else ""
    return f"{path} is not whole:" + "".join(f"\n  {gap}" for gap in gaps[:SHOWN]) + more


def missing(run: RunFolder, known: Mapping[str, tuple[str, str]]) -> list[MissingPart]:
    """The gaps of a run of which some lifetimes are ``known``, with their status and error."""
    planned, why = _planned(run)
    gaps = [MissingPart("", why, False)] if why else []
    for job in dict.fromkeys((*planned, *known)):
        status, error = known.get(job, ("waiting", ""))
        if status == "damaged":
            gaps.append(MissingPart(job, error, True))
        elif status == "waiting":
            gaps.append(MissingPart(job, WAITING, False))
        elif status != "done":
            gaps.append(MissingPart(job, f"the lifetime is {status} {error}".strip(), False))
    strange = [job for job, place in run.places().items() if place is None]
    return gaps + [MissingPart(job, _why_strange(run, job), True) for job in strange]


def _planned(run: RunFolder) -> tuple[list[str], str]:
    """The lifetimes that are planned, and what is not known of that."""
    why = run.jobs_problem()
    if not why:
        return list(run.jobs()), ""
    spec = run.spec()
    agents, seeds = agents_of(spec), seeds_of(spec)
    jobs = [job_of(agent, seed) for seed in seeds or () for agent in agents or ()]
    if jobs and spec.get("experts"):
        why += " (until then it is not known which single-task experts are missing)"
    return jobs, why if jobs else ""


def _why_strange(run: RunFolder, job: str) -> str:
    try:
        run.store.folders(job)
    except StoreError as e:
        return str(e)
    return "is no lifetime's folder, and nothing in it counts: remove it, or move it elsewhere"
