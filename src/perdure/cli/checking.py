"""The body of check: what a name is, and whether it keeps its promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from perdure import registry
from perdure.cli.terminal import say, tell
from perdure.curricula.named import curriculum_of
from perdure.errors import NameRefused, SpecError, UnknownName
from perdure.names import join_task_id, split_task_id
from perdure.own_files import kind_of
from perdure.specs import Spec, call_with, is_file_reference


def check(name: str, on: str | None = None) -> int:
    """Find out what a name is, and check it; an agent or a strategy on a curriculum of one's own."""
    from perdure.store.files import is_folder
    from perdure.store.layout import SPEC, is_run
    from perdure.store.urls import place

    if "\0" in name:
        raise NameRefused(f"{name!r} holds a NUL character")
    path = place(name)
    if is_run(path):
        return _check_run(path)
    if is_folder(path):
        raise SpecError(f"{name} is a folder but not a Perdure run: it has no {SPEC}")
    spec = Spec.parse(name)
    kind = _kind(spec)
    if on is None:
        return _CHECKS[kind](name, spec)
    from perdure.testing import check_agent, check_strategy
    from perdure.testing.shortened import shortened_name

    curriculum_of(Spec.parse(on))
    short = shortened_name(on)
    if kind == "agent":
        problems = _problems(check_agent, name, (short,))
    elif kind == "strategy":
        problems = _problems(check_strategy, name, None, (short,))
    else:
        raise SpecError(f"--on is for agents and strategies, and {name} is a {kind}")
    return _verdict(name, [p.replace(short, on) for p in problems])


def _kind(spec: Spec) -> str:
    """What a name stands for; UnknownName if nothing does."""
    *strategies, base = spec.parts
    for part, kind in (("suites", "suite"), ("executors", "executor"), ("strategies", "strategy")):
        if spec.name in registry.entries(part):
            return kind
    if not strategies:
        if is_file_reference(spec.name):
            return _kind_of(spec.name, registry.load_file(spec.name))
        if _known_metric(spec.name) is not None:
            return "metric"
        if spec.name in registry.curricula():
            return "curriculum"
    if is_file_reference(base) or base in registry.entries("agents"):
        return "agent"
    family, short, variant = split_task_id(spec.name)
    if family in registry.entries("suites"):
        suite = registry.suite(family)
        try:
            suite.task(join_task_id("", short, variant))
        except UnknownName as e:
            names = [f"{family}/{n}" for n in suite.curricula()]
            raise UnknownName("task or curriculum", spec.name, names, f"({e})") from e
        return "task"
    parts = ("suites", "agents", "strategies", "executors")
    known = [*(n for part in parts for n in registry.entries(part)), *registry.curricula()]
    what = "task, suite, curriculum, agent, strategy, metric, executor or run folder"
    raise UnknownName(what, str(spec), known)


def _kind_of(name: str, thing: Any) -> str:
    """What an object in a file is."""
    found = kind_of(thing)
    if found == "network":
        raise SpecError(f"{name} is a network: check it in a learner, classifier,network={name}")
    if found:
        return found
    if hasattr(thing, "better") and hasattr(thing, "needs"):
        return "metric"
    if isinstance(thing, type):
        return "executor" if hasattr(thing, "run") and not hasattr(thing, "act") else "agent"
    return "agent" if callable(thing) and "setup" in signature(thing).parameters else "curriculum"


def _check_suite(name: str, spec: Spec) -> int:
    from perdure.testing import check_suite

    found = registry.load("suites", spec.name)
    made = call_with(f"suite {spec.name}", found) if isinstance(found, type) else found
    return _verdict(name, _problems(check_suite, made))


def _check_executor(name: str, spec: Spec) -> int:
    from perdure.run.executors import make_executor
    from perdure.testing import check_executor

    return _verdict(name, _problems(check_executor, make_executor(name)))


def _check_strategy(name: str, spec: Spec) -> int:
    from perdure.testing import check_strategy

    return _verdict(name, _problems(check_strategy, name))


def _check_agent(name: str, spec: Spec) -> int:
    from perdure.testing import check_agent

    return _verdict(name, _problems(check_agent, name))


def _check_metric(name: str, spec: Spec) -> int:
    from perdure.testing import check_metric

    found = registry.load_file(name) if is_file_reference(name) else _known_metric(spec.name)
    return _verdict(name, _problems(check_metric, found))


def _check_task(name: str, spec: Spec) -> int:
    from perdure.testing import check_task

    family, *_ = split_task_id(spec.name)
    suite, task = registry.suite(family), registry.task(spec.name)
    # The parameters may be the task's, or say how much of it: as where it is run by its name.
    made = curriculum_of(spec).tasks[0] if spec.params else suite.task_to_check(task)
    return _verdict(name, _problems(check_task, suite, made))


def _problems(checker: Callable[..., list[str] | None], *args: Any) -> list[str]:
    from perdure.testing import CheckFailed

    try:
        for note in checker(*args) or ():
            tell(f"left out: {note}")
    except CheckFailed as e:
        return e.problems
    return []


def _known_metric(name: str) -> Any:
    """The metric of this name; None if there is none."""
    paper, dot, _ = name.partition(".")
    return registry.metrics().get(name) if dot and paper in registry.entries("metrics") else None


def _check_curriculum(name: str, spec: Spec) -> int:
    from perdure.run.validate import resolve
    from perdure.show.outline import outline
    from perdure.testing import check_curriculum

    curriculum = curriculum_of(spec)
    say("\n".join(outline(curriculum)))
    problems = _problems(check_curriculum, curriculum)
    resolved = resolve(curriculum)
    say(f"  observations {resolved.observation_space}\n  actions {resolved.action_space}")
    return _verdict(name, problems)


_CHECKS: dict[str, Callable[[str, Spec], int]] = {
    "suite": _check_suite,
    "executor": _check_executor,
    "strategy": _check_strategy,
    "agent": _check_agent,
    "metric": _check_metric,
    "task": _check_task,
    "curriculum": _check_curriculum,
}


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
