"""The body of check: what a name is, and whether it keeps its promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from perdure import registry
from perdure.cli.terminal import say, tell
from perdure.errors import NameRefused, SpecError, UnknownName
from perdure.specs import Spec, is_file_reference
from perdure.types import Curriculum


def check(name: str) -> int:
    """Find out what a name is, and check it."""
    from perdure.run.executors import make_executor
    from perdure.store.files import is_folder
    from perdure.store.layout import SPEC, is_run
    from perdure.testing import (
        check_agent,
        check_executor,
        check_metric,
        check_strategy,
        check_suite,
        check_task,
    )

    if "\0" in name:
        raise NameRefused(f"{name!r} holds a NUL character")
    path = Path(name)
    if is_run(path):
        return _check_run(path)
    if is_folder(path):
        raise SpecError(f"{name} is a folder but not a Perdure run: it has no {SPEC}")
    spec = Spec.parse(name)
    if spec.name in registry.entries("suites"):
        return _verdict(name, _problems(check_suite, registry.suite(spec.name)))
    if spec.name in registry.entries("executors"):
        return _verdict(name, _problems(check_executor, make_executor(name)))
    *strategies, base = spec.parts
    if spec.name in registry.entries("strategies") or (not strategies and _is_strategy(base)):
        return _verdict(name, _problems(check_strategy, name))
    if not strategies:
        metric = _find_metric(spec.name)
        if metric is not None:
            return _verdict(name, _problems(check_metric, metric))
        found = _find_curriculum(spec)
        if found is not None:
            return _check_curriculum(found)
    if is_file_reference(base) or base in registry.entries("agents"):
        return _verdict(name, _problems(check_agent, name))
    family, slash, rest = spec.name.partition("/")
    if slash and family in registry.entries("suites"):
        suite = registry.suite(family)
        try:
            task = suite.task(rest)
        except UnknownName as e:
            names = [f"{family}/{n}" for n in suite.curricula()]
            raise UnknownName("task or curriculum", name, names, f"({e})") from e
        task = replace(task, params={**task.params, **spec.params})
        return _verdict(name, _problems(check_task, suite, task))
    parts = ("suites", "agents", "strategies", "executors")
    known = [*(n for part in parts for n in registry.entries(part)), *registry.curricula()]
    what = "task, suite, curriculum, agent, strategy, metric, executor or run folder"
    raise UnknownName(what, name, known)


def _problems(checker: Callable[..., list[str] | None], *args: Any) -> list[str]:
    from perdure.testing import CheckFailed

    try:
        for note in checker(*args) or ():
            tell(f"left out: {note}")
    except CheckFailed as e:
        return e.problems
    return []


def _is_strategy(name: str) -> bool:
    """Whether a file holds a strategy under this name. No strategy exists without torch, which is
    not loaded to find out."""
    thing = registry.load_file(name) if is_file_reference(name) else None
    bases = thing.__mro__ if isinstance(thing, type) else ()
    return "perdure.agents.strategies.base.Strategy" in (
        f"{b.__module__}.{b.__qualname__}" for b in bases
    )


def _find_metric(name: str) -> Any:
    """The metric of this name or in this file; None if it is something else."""
    if is_file_reference(name):
        thing = registry.load_file(name)
        return thing if hasattr(thing, "better") and hasattr(thing, "needs") else None
    paper, dot, _ = name.partition(".")
    return registry.metrics().get(name) if dot and paper in registry.entries("metrics") else None


def _find_curriculum(spec: Spec) -> Curriculum | None:
    if not is_file_reference(spec.name):
        return registry.curriculum(spec) if spec.name in registry.curricula() else None
    thing = registry.load_file(spec.name)
    if isinstance(thing, type) or (callable(thing) and "setup" in signature(thing).parameters):
        return None  # An agent: a class, or a function of a set-up.
    return registry.curriculum(spec)


def _check_curriculum(curriculum: Curriculum) -> int:
    from perdure.run.validate import validate
    from perdure.show.outline import outline

    say("\n".join(outline(curriculum)))
    ground = validate(curriculum)
    say(f"  observations {ground.observation_space}\n  actions {ground.action_space}")
    print("ok")
    return 0


def _check_run(path: Path) -> int:
    from perdure.store.run import Run

    found = Run(path)
    problems = found.verify()
    lifetimes = found.lifetimes()
    for info in lifetimes:
        said = "" if info.status == "damaged" else info.error
        say(f"{info.status:11} {info.id}  {info.rows:,} rows  {said}".rstrip())
    problems += [str(gap) for gap in found.gaps(lifetimes) if not gap.damage]
    return _verdict(str(path), problems)


def _verdict(name: str, problems: Sequence[str]) -> int:
    for problem in problems:
        tell(f"problem: {problem}")
    n = len(problems)
    say(f"{name}: {f'{n} problem' + 's' * (n != 1) if n else 'ok'}")
    return 1 if problems else 0
