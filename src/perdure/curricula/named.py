"""The curriculum that a specification names: a suite's, one task alone, or what is in a file."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import Any

from perdure import registry
from perdure.curricula import one_task
from perdure.errors import CurriculumError, PerdureError, SpecError, UnknownName
from perdure.names import check_name, join_task_id, plain_task_id, split_task_id
from perdure.specs import Spec, call_with, is_file_reference
from perdure.types import Curriculum

_EVAL = "eval-"
"""How the names of curricula begin that evaluate a list of tasks."""


def builder_of(spec: Spec) -> Any:
    """What makes the curriculum a spec names: a function, or the curriculum itself. A task's name
    stands for :func:`perdure.curricula.one_task`."""
    if is_file_reference(spec.name):
        return registry.load_file(spec.name)
    family, name, variant = split_task_id(spec.name)
    check_name("curriculum", plain_task_id(spec.name))
    if family not in registry.entries("suites"):
        raise UnknownName("curriculum", spec.name, registry.curricula(), "(perdure ls curricula)")
    mine, rest = registry.suite(family), join_task_id("", name, variant)
    protocols = mine.curricula()
    if rest in protocols:
        return protocols[rest]
    try:
        task = mine.task(rest)
    except PerdureError as e:
        names = [f"{family}/{n}" for n in protocols]
        hint = f"(perdure ls curricula, perdure ls tasks {family})"
        lists = [n.removeprefix(_EVAL) for n in protocols if n.startswith(_EVAL)]
        for near in difflib.get_close_matches(rest, lists, n=1, cutoff=0.8):
            hint = f"(the tasks of {near} are evaluated by {family}/{_EVAL}{near}; {hint[1:]}"
        if isinstance(e, UnknownName):
            names += [f"{family}/{n}" for n in e.known]
        raise UnknownName("curriculum or task", spec.name, names, hint) from e
    return functools.partial(one_task, task, mine.has_env(task))


def curriculum_of(spec: Spec, seed: int = 0, builder: Any = None) -> Curriculum:
    """The curriculum a spec names, built for one lifetime's curriculum seed; ``builder`` stands for
    what its name would find."""
    builder = builder_of(spec) if builder is None else builder
    if isinstance(builder, Curriculum):
        return builder
    if not callable(builder):
        raise SpecError(
            f"curriculum {spec.name} is of type {type(builder).__name__}, expected a Curriculum or a "
            "function that gives one"
        )
    params = dict(spec.params)
    if "seed" in inspect.signature(builder).parameters:
        params.setdefault("seed", seed)
    try:
        made = call_with(f"curriculum {spec.name}", builder, **params)
    except PerdureError:
        raise
    except Exception as e:
        raise CurriculumError(f"curriculum {spec.name} raised {type(e).__name__}: {e}") from e
    if not isinstance(made, Curriculum):
        raise SpecError(f"curriculum {spec.name} gave {type(made).__name__}, expected Curriculum")
    return made
