"""The bodies of the verbs."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from rich.markup import escape

from perdure import registry
from perdure.cli.terminal import say, tell
from perdure.errors import Interrupted, SpecError, UnknownName
from perdure.registry import Part
from perdure.show.screen import SafeConsole
from perdure.specs import Spec, is_file_reference
from perdure.types import Curriculum


def run(curriculum: str | None, quiet: bool, flags: Mapping[str, Any], video: bool = False) -> int:
    """Plan, execute, summarise."""
    from perdure.run.executors import make_executor
    from perdure.run.experiment import execute
    from perdure.run.plan import make_plan
    from perdure.run.signals import interruptible
    from perdure.run.spec import RunSpec
    from perdure.show.live import LiveView
    from perdure.show.summary import by_task, summarise
    from perdure.store.run import Run

    given = {k: v for k, v in flags.items() if v not in (None, ())}
    if curriculum is None:
        raise SpecError("name a curriculum (perdure ls curricula), file.py:function or spec.toml")
    if curriculum.endswith(".toml"):
        spec = RunSpec.from_toml(Path(curriculum), **given)
    else:
        if "agents" not in given:
            raise SpecError("name at least one agent: --agent NAME (perdure ls agents)")
        spec = RunSpec(curriculum, **given)
    make_executor(spec.executor)
    screen = SafeConsole(stderr=True, quiet=quiet)
    try:
        with interruptible():
            plan = make_plan(spec)
            plan.save()
            count, where = len(plan.jobs), escape(str(plan.path))
            what = escape(plan.spec.curriculum)
            many = f"{count} lifetime{'s' * (count != 1)}"
            screen.print(f"{many} of {what} into {where}", highlight=False)
            with LiveView(plan.path, screen):
                outcomes = execute(plan, video=video)
    except Interrupted as e:
        again = shlex.join(["perdure", *sys.argv[1:]])
        tell(f"\nstopped by signal {e.signum}; nothing is lost. To resume: {again}")
        return 128 + e.signum
    failed = [o for o in outcomes if o.status == "failed"]
    finished = Run(plan.path)
    if not quiet and len(failed) < len(outcomes):
        by_task(finished).show()
        summarise(finished)[0].show()
    for o in failed:
        tell(f"failed: {o.job.id}: {o.error}")
    if failed:
        trace = finished.folder.lifetime(failed[0].job.id).error_in
        tell(
            f"{len(failed)} of {len(outcomes)} lifetimes failed (traceback: {trace}); mend the cause "
            "and run the same command to go on"
        )
    if not quiet:
        say(f"rows: {plan.path}")
    return 1 if failed else 0


def ls(parts: Sequence[str], as_json: bool) -> None:
    """Names and descriptions."""
    found: dict[str, list[dict[str, str]]] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for part in parts:
            if part == "curricula":
                found[part] = _curricula()
            elif part == "metrics":
                found[part] = _metrics()
            elif part == "tasks":
                found[part] = _tasks()
            elif part == "strategies":
                found[part] = [_with_learners(entry) for entry in _entries("strategies")]
            else:
                found[part] = _entries(part)  # type: ignore[arg-type]
    for w in caught:
        tell(f"warning: {w.message}")
    if as_json:
        print(json.dumps(found if len(parts) > 1 else found[parts[0]], indent=1))
        return
    from rich.table import Table

    screen = SafeConsole()
    for part, items in found.items():
        table = Table(title=part, title_justify="left", box=None, pad_edge=False)
        table.add_column("name", no_wrap=True)
        table.add_column("what")
        for item in _folded(items):
            details = [item[k] for k in DETAILS if item.get(k)]
            detail = f"\n[dim]{escape(' · '.join(details))}[/dim]" if details else ""
            table.add_row(escape(item["name"]), escape(item["about"]) + detail)
        screen.print(table if items else f"{part}: none")
        screen.print()


DETAILS = ("budget", "better", "needs", "works with", "presets")
"""What is shown in small print below a line."""
FAMILY = 6
"""So many names that differ in their last part alone are shown as one line."""


def _tasks() -> list[dict[str, str]]:
    out = []
    for entry in _entries("suites"):
        for task in registry.load("suites", entry["name"]).tasks():
            about = ", ".join(f"{k}={v}" for k, v in task.params.items())
            out.append({"name": task.id, "about": about})
    return out


def _folded(items: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The list with each large family as one line; ``--json`` has them all."""
    families: dict[str, list[dict[str, str]]] = {}
    for item in items:
        families.setdefault(item["name"].rpartition("/")[0], []).append(item)
    out = []
    for prefix, family in families.items():
        if prefix.count("/") and len(family) >= FAMILY:
            first, last = (
                family[0]["name"].rpartition("/")[2],
                family[-1]["name"].rpartition("/")[2],
            )
            about = f"{len(family)} of a kind, {first} … {last}: {family[0]['about']}"
            out.append({"name": f"{prefix}/…", "about": about})
        else:
            out += family
    return out


def _entries(part: Part) -> list[dict[str, str]]:
    out = []
    for entry in registry.entries(part).values():
        if not entry.source.startswith("perdure."):
            try:
                entry.load()
            except (Exception, SystemExit) as e:
                warnings.warn(f"plugin {entry.name} ({entry.source}) is broken: {e}", stacklevel=1)
                continue
        item = {"name": entry.name, "about": entry.about, "source": entry.source}
        if entry.presets:
            item["presets"] = f"presets: {', '.join(entry.presets)}"
        out.append(item)
    return out


def _with_learners(item: dict[str, str]) -> dict[str, str]:
    """A strategy's line with the learners it works with."""
    try:
        from perdure.agents.strategies.base import works_with
    except ModuleNotFoundError:
        return item  # Without torch there is nothing it could work with.
    able, _ = works_with(registry.load("strategies", item["name"]))
    return {**item, "works with": f"works with {', '.join(able)}"}


def _metrics() -> list[dict[str, str]]:
    return [
        {
            "name": m.name,
            "about": m.about,
            "better": f"{m.better} is better",
            "needs": f"needs {', '.join(m.needs)}" if m.needs else "",
        }
        for m in registry.metrics().values()
    ]


def _curricula() -> list[dict[str, str]]:
    from perdure.show.outline import budget

    out = []
    for name, builder in registry.curricula().items():
        about = (builder.__doc__ or "").strip().split("\n")[0]
        try:
            made = registry.curriculum(Spec(name))
        except Exception as e:
            # Some protocols cannot be built without parameters; they are still worth naming.
            out.append({"name": name, "about": about, "budget": f"needs parameters: {e}"})
            continue
        out.append({"name": name, "about": made.about or about, "budget": budget(made)})
    return out


def check(name: str) -> int:
    """Find out what a name is, and check it."""
    from perdure.run.executors import make_executor
    from perdure.store.layout import SPEC, is_run
    from perdure.testing import (
        check_agent,
        check_executor,
        check_metric,
        check_suite,
        check_task,
    )

    path = Path(name)
    if is_run(path):
        return _check_run(path)
    if path.is_dir():
        raise SpecError(f"{name} is a folder but not a Perdure run: it has no {SPEC}")
    spec = Spec.parse(name)
    if spec.name in registry.entries("suites"):
        return _verdict(name, _problems(check_suite, registry.suite(spec.name)))
    if spec.name in registry.entries("executors"):
        return _verdict(name, _problems(check_executor, make_executor(name)))
    *strategies, base = spec.parts
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
        from dataclasses import replace

        task = replace(task, params={**task.params, **spec.params})
        return _verdict(name, _problems(check_task, suite, task))
    known = [*registry.entries("suites"), *registry.entries("agents"), *registry.curricula()]
    raise UnknownName("task, suite, curriculum, agent, metric, executor or run folder", name, known)


def _problems(checker: Callable[..., list[str] | None], *args: Any) -> list[str]:
    from perdure.testing import CheckFailed

    try:
        for note in checker(*args) or ():
            tell(f"left out: {note}")
    except CheckFailed as e:
        return e.problems
    return []


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
    for info in found.lifetimes():
        say(f"{info.status:11} {info.id}  {info.rows:,} rows  {info.error}")
        if info.status != "done":
            problems.append(f"{info.id} is {info.status} {info.error}".strip())
    return _verdict(str(path), problems)


def _verdict(name: str, problems: Sequence[str]) -> int:
    for problem in problems:
        tell(f"problem: {problem}")
    n = len(problems)
    say(f"{name}: {f'{n} problem' + 's' * (n != 1) if n else 'ok'}")
    return 1 if problems else 0


def watch(folder: Path) -> None:
    """A live table."""
    from perdure.show.live import watch as follow
    from perdure.store.run import Run

    try:
        follow(Run(folder).path, SafeConsole())
    except KeyboardInterrupt:
        return


def gallery(name: str, out: Path) -> None:
    """Contact sheets, where a suite can draw them."""
    draw = getattr(registry.suite(name), "gallery", None)
    if draw is None:
        raise SpecError(f"suite {name} has no gallery: it has no method gallery(out)")
    for path in draw(out):
        print(path)


def doctor() -> int:
    """What works here."""
    from perdure.cli.doctor import diagnose

    return diagnose(SafeConsole())
