"""The eighteen tasks: six families, three variants each, with TELLA 2.1.0's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.errors import UnknownName
from perdure.types import Task

VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "SimpleCrossing": {
        "S9N1": {"size": 9, "crossings": 1},
        "S9N2": {"size": 9, "crossings": 2},
        "S9N3": {"size": 9, "crossings": 3},
    },
    "DistShift": {"R2": {"row": 2}, "R5": {"row": 5}, "R3": {"row": 3}},
    "DynObstacles": {
        "S6N1": {"size": 6, "obstacles": 1},
        "S8N2": {"size": 8, "obstacles": 2},
        "S10N3": {"size": 10, "obstacles": 3},
    },
    "CustomFetch": {
        "S5T1N2": {"size": 5, "targets": 1, "others": 2},
        "S8T1N2": {"size": 8, "targets": 1, "others": 2},
        "S10T2N4": {"size": 10, "targets": 2, "others": 4},
    },
    "CustomUnlock": {"S5": {"size": 5}, "S7": {"size": 7}, "S9": {"size": 9}},
    "DoorKey": {"S5": {"size": 5}, "S6": {"size": 6}, "S7": {"size": 7}},
}
"""Family to variant to constructor parameters, in the order in which TELLA evaluates them."""

TASKS = tuple(Task("minigrid", name, v) for name, variants in VARIANTS.items() for v in variants)


def find(name: str, variant: str) -> Task:
    """The task of this family and variant; UnknownName otherwise."""
    variants = family(name)
    if variant not in variants:
        raise UnknownName(
            f"variant of minigrid/{name}", variant, variants, f"(it has: {', '.join(variants)})"
        )
    return Task("minigrid", name, variant)


def family(name: str) -> Mapping[str, Mapping[str, Any]]:
    """The variants of a family; UnknownName if there is no such family."""
    if name not in VARIANTS:
        raise UnknownName("minigrid task", name, VARIANTS, f"(families: {', '.join(VARIANTS)})")
    return VARIANTS[name]


def parameters(task: Task) -> Mapping[str, Any]:
    """The constructor parameters of a task: its variant's own, overridden by the task's.

    A variant of one's own making is a free label and brings all parameters itself, as in
    ``Task("minigrid", "DoorKey", "S8", {"size": 8})``.
    """
    variants = family(task.name)
    if task.variant not in variants and not task.params:
        find(task.name, task.variant)
    return {**variants.get(task.variant, {}), **task.params}
