"""Where lifetimes are below a run: ``<agent>/<seed>``, ``<agent>/experts/<task>/<seed>``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

EXPERTS = "experts"
_SEED = re.compile(r"0|-?[1-9]\d*")


class LifetimePlace(NamedTuple):
    """Whose folder a folder is, by its name."""

    agent: str
    seed: int
    task: str
    """The folder of a single-task expert's task; empty for a lifelong agent."""


def job_of(agent: str, seed: int, task: str = "") -> str:
    """A lifetime's id; ``task`` is the folder of a single-task expert's."""
    return f"{agent}/{EXPERTS}/{task}/{seed}" if task else f"{agent}/{seed}"


def place_of(job: str) -> LifetimePlace | None:
    """The place that a lifetime's id names; None if it is no lifetime's."""
    if "/" not in job:
        return None
    agent, *between, seed = job.split("/")
    if not agent or not _SEED.fullmatch(seed) or len(seed) > 40:
        return None
    if not between:
        return LifetimePlace(agent, int(seed), "")
    if len(between) == 2 and between[0] == EXPERTS:
        return LifetimePlace(agent, int(seed), between[1])
    return None


def parts_of(path: Path) -> tuple[str, ...]:
    """The names of folders from the run's to a lifetime's."""
    parts = path.absolute().parts
    return parts[-4:] if parts[-3:-2] == (EXPERTS,) else parts[-2:]


def run_of(path: Path) -> Path:
    """The folder of the run that a lifetime's folder is in."""
    for _ in parts_of(path):
        path = path.parent
    return path
