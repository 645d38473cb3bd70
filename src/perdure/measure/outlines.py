"""Stored curricula, as lifetimes describe them on disk.

They are read as they stand, not as a :class:`~perdure.types.Curriculum`: that one refuses names that
it would not run, and a report must also show those that others have written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perdure.names import join_task_id


@dataclass(frozen=True, slots=True)
class StoredExposure:
    """A task and how much of it."""

    task: str
    """Its id."""
    params: Mapping[str, Any]
    amount: int
    unit: str


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block of a stored curriculum."""

    kind: str
    before: bool
    """Whether it comes before deployment."""
    parallel: bool
    exposures: tuple[StoredExposure, ...]
    then: tuple[StoredExposure, ...]

    @property
    def purposes(self) -> Iterator[tuple[str, StoredExposure]]:
        """Every exposure with what it is for: ``learning`` or ``evaluation``."""
        what = "evaluation" if self.kind == "eval" else "learning"
        yield from ((what, e) for e in self.exposures)
        yield from (("evaluation", e) for e in self.then)


def stored_blocks(curriculum: Mapping[str, Any]) -> Iterator[StoredBlock]:
    """The blocks that are stored, in order; generated ones are not."""
    for part in ("before", "blocks"):
        for block in curriculum.get(part, ()):
            yield StoredBlock(
                block["kind"],
                part == "before",
                bool(block.get("parallel")),
                _exposures(block["exposures"]),
                _exposures(block.get("then", ())),
            )


def stored_task_id(task: Mapping[str, Any]) -> str:
    """The id of a stored task."""
    return join_task_id(task["suite"], task["name"], task.get("variant", ""))


def _exposures(exposures: Iterable[Mapping[str, Any]]) -> tuple[StoredExposure, ...]:
    return tuple(
        StoredExposure(
            stored_task_id(e["task"]), e["task"].get("params", {}), e["amount"], e["unit"]
        )
        for e in exposures
    )
