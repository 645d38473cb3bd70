"""What can be measured: a run, an L2Logger log, or a folder of either."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perdure.errors import MeasureError
from perdure.measure.outlines import StoredExposure, stored_blocks, stored_task_id
from perdure.names import is_task_folder
from perdure.store.files import is_folder
from perdure.store.history import History, read_experts, read_lifetime
from perdure.store.layout import SPEC, is_run, runs_below
from perdure.store.places import place_of
from perdure.store.run import LifetimeInfo, Run
from perdure.store.urls import is_url, place

Experts = Mapping[str, tuple[History, ...]]


@dataclass(frozen=True)
class Source:
    """One lifetime that can be read."""

    name: str
    load: Callable[[], History]
    problem: str = ""
    """Why it cannot be measured: the lifetime did not begin or not end, is damaged, or is none."""
    agent: str = ""
    """Of a log, if it says so."""


PROTOCOL = "protocol "
"""How the lines of an outline begin that are of a named protocol."""


@dataclass(frozen=True)
class Found:
    """The lifetimes found under a path."""

    path: Path
    sources: tuple[Source, ...]
    curricula: Mapping[str, str] = field(default_factory=dict)
    """For each run among them: the fingerprint of its curriculum."""
    outlines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each of these: the blocks of the curriculum, a line each."""

    @property
    def protocols(self) -> dict[str, str]:
        """For each run that evaluates by a named protocol: its name and hash."""
        first = {name: next(iter(o[1:2]), "") for name, o in self.outlines.items()}
        return {n: p.removeprefix(PROTOCOL) for n, p in first.items() if p.startswith(PROTOCOL)}


def find(path: Path, ste: Sequence[str] = (), measure: str | None = None) -> Found:
    """The lifetimes at or below ``path``.

    ``ste`` names single-task experts: a folder of logs or a run, matched to tasks by what they
    train, or ``TASK=FOLDER``. A run brings its own experts, and logs of scenario type ``ste`` under
    ``path`` count as experts too.
    """
    if not path.is_dir():
        raise MeasureError(f"{path} is not a folder: expected a run or an L2Logger log")
    given, missing = _given_experts(ste, measure)
    runs = list(runs_below(path))
    if runs:
        many = len(runs) > 1
        sources: list[Source] = []
        curricula, outlines = {}, {}
        for folder in runs:
            run = Run(folder)
            prefix = f"{folder.relative_to(path)}/" if many else ""
            infos = run.lifetimes()
            sources += _run_sources(run, infos, prefix, given)
            name = prefix.rstrip("/") or folder.name
            curricula[name], outlines[name] = _curriculum(infos)
        return Found(path, (*sources, *missing), curricula, outlines)
    from perdure.store.l2logger.read import find_logs

    logs = [] if is_url(path) else find_logs(path)
    if not logs:
        raise MeasureError(
            f"{path} holds neither a Perdure run ({SPEC}) nor an L2Logger log (logger_info.json)"
        )
    return Found(path, (*_log_sources(path, logs, given, measure), *missing))


def merge(found: Sequence[Found]) -> Found:
    """The lifetimes of several paths together: names of lifetimes and agents get the path's in front,
    so that the same agent in two runs stays two."""
    if len(found) == 1:
        return found[0]
    labels = [one.path.name for one in found]
    if len(set(labels)) < len(labels):
        labels = [str(one.path) for one in found]
    sources: list[Source] = []
    curricula: dict[str, str] = {}
    outlines: dict[str, tuple[str, ...]] = {}
    for label, one in zip(labels, found, strict=True):
        sources += [_labelled(source, label) for source in one.sources]
        for old in one.curricula:
            new = label if old == one.path.name else f"{label}/{old}"
            curricula[new] = one.curricula[old]
            outlines[new] = one.outlines.get(old, ())
    return Found(found[0].path, tuple(sources), curricula, outlines)


def _labelled(source: Source, label: str) -> Source:
    def load() -> History:
        history = source.load()
        agent = f"{label}/{history.agent}" if history.agent else label
        return replace(history, name=f"{label}/{history.name}", agent=agent)

    return replace(source, name=f"{label}/{source.name}", load=load)


def refuse_different(found: Found) -> None:
    """Runs of different curricula are not comparable; what differs is said block by block."""
    if len(set(found.curricula.values())) > 1:
        each = "\n".join(f"  {name}: curriculum {c[:12]}" for name, c in found.curricula.items())
        raise MeasureError(
            f"these runs are of different curricula, so their numbers do not compare:\n{each}\n"
            f"{_difference(found)}--anyway compares them all the same"
        )


SHOWN = 30
"""Lines of a difference that are shown."""


def _difference(found: Found) -> str:
    """How the first run's blocks differ from those of the first run of another curriculum."""
    first, *others = found.curricula
    other = next(n for n in others if found.curricula[n] != found.curricula[first])
    a, b = found.outlines.get(first, ()), found.outlines.get(other, ())
    lines = list(difflib.unified_diff(a, b, first, other, lineterm="", n=1))
    if len(lines) > SHOWN:
        lines = [*lines[:SHOWN], f"… and {len(lines) - SHOWN} more lines"]
    return "".join(f"  {line}\n" for line in lines)


def _curriculum(lifetimes: Sequence[LifetimeInfo]) -> tuple[str, tuple[str, ...]]:
    """The fingerprint of the curriculum of a run's lifetimes, and its blocks in words."""
    for info in lifetimes:
        if not info.expert and info.status != "damaged":
            described = info.description
            outline = described.get("curriculum")
            lines = _outline(outline) if isinstance(outline, Mapping) else ()
            return str(described.get("fingerprint", "")), tuple(lines)
    return "", ()


def _outline(curriculum: Mapping[str, Any]) -> list[str]:
    """A stored curriculum in words, a line for each block, without numbers that shift."""
    lines = [f"curriculum {curriculum.get('name', '')}"]
    protocol = curriculum.get("protocol")
    if isinstance(protocol, Mapping):
        lines.append(f"{PROTOCOL}{protocol.get('name', '')} ({protocol.get('hash', '')})")
        values = protocol.get("values")
        for key, value in sorted(values.items()) if isinstance(values, Mapping) else ():
            lines.append(f"{PROTOCOL}{key} = {json.dumps(value, sort_keys=True)}")
    for block in stored_blocks(curriculum):
        mark = "before deployment: " if block.before else ""
        how = " side by side" if block.parallel else ""
        line = f"{mark}{block.kind}{how} {_exposures(block.exposures)}"
        lines.append(line + (f"; then {_exposures(block.then)}" if block.then else ""))
    if curriculum.get("generated"):
        tasks = ", ".join(
            _task(stored_task_id(t), t.get("params", {})) for t in curriculum.get("tasks", ())
        )
        lines.append(f"then blocks generated from the results, on {tasks}")
    return lines


def _exposures(exposures: Sequence[StoredExposure]) -> str:
    return ", ".join(f"{_task(e.task, e.params)} × {e.amount:,} {e.unit}" for e in exposures)


def _task(task: str, params: Mapping[str, Any]) -> str:
    return f"{task} {json.dumps(params, sort_keys=True)}" if params else task


def _run_sources(
    run: Run, infos: Sequence[LifetimeInfo], prefix: str, given: Experts
) -> list[Source]:
    """Every lifelong lifetime that is planned or there, and whatever else the run lacks: what
    :func:`load` refuses."""
    experts, lost = read_experts(infos)
    gaps = run.gaps(infos)
    lost |= {gap.id: gap.what for gap in gaps if gap.expert}

    def loader(info: LifetimeInfo) -> Callable[[], History]:
        def load() -> History:
            name = f"{prefix}{info.id}"
            running = info.status == "running"
            history = read_lifetime(info.read(), name, info.agent, info.seed, shown=running)
            own = {**experts.get(info.agent, {}), **given}
            taught = (
                r for lives in experts.get(info.agent, {}).values() for e in lives for r in e.code
            )
            return replace(
                history, experts=own, lost=_lost(history, lost, given),
                code=(*info.code, *taught), chance=info.chance,
            )  # fmt: skip

        return load

    problems = {**lost, **{gap.id or "plan": gap.what for gap in gaps}}
    out = []
    for info in infos:
        if not info.expert:
            out.append(Source(f"{prefix}{info.id}", loader(info), problems.pop(info.id, "")))
    return out + [Source(f"{prefix}{name}", _nothing, why) for name, why in problems.items()]


def _nothing() -> History:
    raise MeasureError("there is nothing to read")


def _lost(history: History, lost: Mapping[str, str], given: Experts) -> tuple[str, ...]:
    """The experts that a lifetime is measured without, and why."""
    tasks = [task for task in history.learned_tasks if task not in given]
    places = {job: place_of(job) for job in lost}
    return tuple(
        f"{job}: {lost[job]}"
        for job, place in places.items()
        if place is not None
        and place.agent == history.agent
        and any(is_task_folder(place.task, task) for task in tasks)
    )


def _log_sources(
    path: Path, logs: Sequence[Path], given: Experts, measure: str | None
) -> list[Source]:
    from perdure.store.l2logger.read import read_log

    names = [p.name for p in logs]
    if len(set(names)) < len(names):
        names = [str(p.relative_to(path)) for p in logs]
    wanted = None if measure is None else [measure]
    said = {p: _said(p) for p in logs}
    own = [p for p in logs if said[p].get("scenario_type") == "ste"] if not given else []
    if len(own) == len(logs):
        own = []  # Nothing but experts: then they are what is to be measured.
    experts = [_read_expert(p, wanted) for p in reversed(own)]

    def loader(name: str, folder: Path) -> Callable[[], History]:
        def load() -> History:
            history = replace(read_log(folder, wanted), name=name)
            # In a folder of several agents, each is measured against its own experts.
            mine = [e for e in experts if e.agent in ("", history.agent)] or experts
            return replace(history, experts=given or group_experts(mine))

        return load

    return [
        Source(n, loader(n, p), agent=str(said[p].get("agent_name") or ""))
        for n, p in zip(names, logs, strict=True)
        if p not in own
    ]


def _said(log: Path) -> dict[str, Any]:
    """What a log says of its scenario; nothing if that cannot be read, which reading it will tell."""
    from perdure.store.l2logger.check import LogError
    from perdure.store.l2logger.read import scenario_info

    try:
        return scenario_info(log)
    except LogError:
        return {}


def _read_expert(log: Path, measures: Sequence[str] | None) -> History:
    from perdure.store.l2logger.read import read_log

    history = read_log(log, measures)
    if len(history.learned_tasks) != 1:
        trained = ", ".join(history.learned_tasks) or "none"
        raise MeasureError(
            f"{log} is not a single-task expert: it must train exactly one task, and trains {trained}"
        )
    return history


def group_experts(histories: Sequence[History]) -> dict[str, tuple[History, ...]]:
    """Experts by the task they were trained on."""
    found: dict[str, list[History]] = {}
    for history in histories:
        found.setdefault(history.learned_tasks[0], []).append(history)
    return {task: tuple(runs) for task, runs in found.items()}


def _given_experts(
    ste: Sequence[str], measure: str | None
) -> tuple[dict[str, tuple[History, ...]], list[Source]]:
    """The experts that ``--ste`` names, and what is missing of them."""
    out: dict[str, tuple[History, ...]] = {}
    missing: list[Source] = []
    wanted = None if measure is None else [measure]
    for text in ste:
        task, eq, folder = text.partition("=")
        path = place(folder if eq and not is_folder(text) else text)
        if not is_folder(path):
            raise MeasureError(f"--ste {text}: {path} is not a folder")
        if is_run(path):
            found, lost = _experts_of(Run(path))
            missing += [Source(f"--ste {text}: {job}", _nothing, why) for job, why in lost.items()]
        else:
            from perdure.store.l2logger.read import find_logs

            logs = find_logs(path)
            if not logs:
                raise MeasureError(f"--ste {text}: no L2Logger log below {path}")
            # Newest name first: the order in which the reference holds its stored experts.
            found = group_experts([_read_expert(p, wanted) for p in reversed(logs)])
        if eq and not is_folder(text):
            found = {task.lower(): tuple(h for runs in found.values() for h in runs)}
        for name, runs in found.items():
            out[name] = (*out.get(name, ()), *runs)
    return out, missing


def _experts_of(
    run: Run,
) -> tuple[dict[str, tuple[History, ...]], dict[str, str]]:
    """A run's experts by task, whichever agent's, and those that it lacks."""
    infos = run.lifetimes()
    experts, lost = read_experts(infos)
    lost |= {gap.id: gap.what for gap in run.gaps(infos) if gap.expert}
    found: dict[str, tuple[History, ...]] = {}
    for by_task in experts.values():
        for name, runs in by_task.items():
            found[name] = (*found.get(name, ()), *runs)
    return found, lost


def load(source: Source) -> History:
    """Read a lifetime; what cannot be measured is a typed error."""
    if source.problem:
        raise MeasureError(source.problem)
    return source.load()
