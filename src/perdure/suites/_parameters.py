"""The checks that suites share of what a task's parameters say."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from perdure.errors import CurriculumError, UnknownName
from perdure.types import Task


def checked_parameters(
    task: Task,
    record: type[Any],
    choices: Mapping[str, Collection[Any]],
    integers: Mapping[str, int],
) -> dict[str, Any]:
    """A task's parameters, each a field of a dataclass; some are one of a few values, others whole
    numbers that have a least."""
    names = [f.name for f in dataclasses.fields(record)]
    for name in task.params:
        if name not in names:
            raise UnknownName(
                f"parameter of {task.id}", name, names, f"(it takes: {', '.join(names)})"
            )
    given: dict[str, Any] = dict(task.params)
    for name, known in choices.items():
        if name in given and given[name] not in known:
            raise CurriculumError(
                f"{task.id}: {name} must be one of {', '.join(map(str, known))}, got {given[name]!r}"
            )
    for name, least in integers.items():
        if name in given and (type(given[name]) is not int or given[name] < least):
            raise CurriculumError(
                f"{task.id}: {name} must be a whole number of at least {least}, got {given[name]!r}"
            )
    return given
