"""Does a curriculum hold together? Asked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from perdure.errors import CurriculumError, PerdureError
from perdure.registry import suite_of
from perdure.run.signals import patient
from perdure.run.spec import DEADLINE
from perdure.spaces import differences, joined
from perdure.suite import Suite
from perdure.types import Block, Curriculum, Task


@dataclass(frozen=True)
class ResolvedCurriculum:
    """What validation finds of a curriculum: its suites, and the spaces that its agent is made for."""

    suites: Mapping[str, Suite]
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    joins: bool = False
    """Whether the observation space holds those of several tasks that differ."""


def resolve(curriculum: Curriculum, joins: bool = False) -> ResolvedCurriculum:
    """Suites and spaces of a curriculum that has been validated. Unless its tasks' spaces were found to
    differ then (``joins``), all share the first one's."""
    suites = {task.suite: suite_of(task) for task in curriculum.tasks}
    first, *others = curriculum.tasks
    seen, done = suites[first.suite].spaces(first)
    for task in others if joins else ():
        seen = joined(seen, suites[task.suite].spaces(task)[0]) or seen
    return ResolvedCurriculum(suites, seen, done, joins)


def validate(curriculum: Curriculum, patience: float = DEADLINE) -> ResolvedCurriculum:
    """Check every task with its own parameters; an error says where in the curriculum. A task that
    takes longer than ``patience`` seconds to make and close is taken to hang."""
    wheres: dict[str, str] = {}
    on_data: dict[str, set[bool]] = {}
    for number, block in enumerate(curriculum.fixed):
        _check_block(block, f"curriculum {curriculum.name}, block {number} ({block.kind})")
    for where, exposure in curriculum.placed_exposures():
        wheres.setdefault(exposure.task.key, f"curriculum {curriculum.name}, {where}")
        on_data.setdefault(exposure.task.key, set()).add(exposure.on_data)
    suites: dict[str, Suite] = {}
    first: tuple[Task, gymnasium.Space[Any], gymnasium.Space[Any]] | None = None
    called: dict[str, Task] = {}
    joins = False
    for task in curriculum.tasks:
        where = wheres.get(task.key, f"curriculum {curriculum.name}, task {task.id}")
        if called.setdefault(task.id, task) is not task:
            raise CurriculumError(
                f"{where}: {task.id} comes with parameters {dict(task.params)} and with "
                f"{dict(called[task.id].params)}; these are two tasks: give one of them a variant, so "
                "that their rows can be told apart"
            )
        try:
            suites.setdefault(task.suite, suite_of(task))
            with patient(task.id, patience):
                spaces = suites[task.suite].spaces(task)
                if True in on_data.get(task.key, ()):
                    suites[task.suite].data(task, True)
                if False in on_data.get(task.key, ()):
                    suites[task.suite].env(task).close()
        except PerdureError as e:
            raise CurriculumError(f"{where}: {e}") from e
        except Exception as e:
            raise CurriculumError(
                f"{where}: {task.id} cannot be made with params {dict(task.params)}: "
                f"{type(e).__name__}: {e}"
            ) from e
        if first is None:
            first = (task, *spaces)
        # To see more than one task shows is safe; to do more than one allows is not.
        both = joined(first[1], spaces[0])
        if both is None:
            raise _apart(where, "observation", task, spaces[0], first[0], first[1])
        if first[2] != spaces[1]:
            raise _apart(where, "action", task, spaces[1], first[0], first[2])
        joins = joins or first[1] != spaces[0]
        first = (first[0], both, first[2])
    assert first is not None
    return ResolvedCurriculum(suites, first[1], first[2], joins)


def _apart(
    where: str,
    name: str,
    task: Task,
    got: gymnasium.Space[Any],
    other: Task,
    expected: gymnasium.Space[Any],
) -> CurriculumError:
    """Spaces that one agent cannot have both of, and the way out."""
    fix = "all tasks of a curriculum must share their spaces"
    if type(got) is type(expected) and isinstance(got, (Box, Discrete, MultiDiscrete)):
        fix += "; perdure.shared_spaces.padded(tasks) makes them alike by wrappers (docs/spaces.md)"
    return CurriculumError(
        f"{where}: the {name} space of {task.id} is not that of {other.id}: "
        f"{differences(got, expected)}; {fix}"
    )


def _check_block(block: Block, where: str) -> None:
    for phase in block.phases:
        if block.parallel and len({e.on_data for e in phase.exposures}) > 1:
            raise CurriculumError(
                f"{where}: exposures side by side must all be in episodes or steps, or all in "
                "epochs or batches"
            )
