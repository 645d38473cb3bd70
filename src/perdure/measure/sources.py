"""What can be measured: a run, an L2Logger log, or a folder of either."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perdure.errors import MeasureError, PerdureError
from perdure.store.history import History, read_experts, read_lifetime
from perdure.store.l2logger import LogError, find_logs, read_log
from perdure.store.run import LifetimeInfo, Run

Experts = Mapping[str, tuple[History, ...]]


@dataclass(frozen=True)
class Source:
    """One lifetime that can be read."""

    name: str
    load: Callable[[], History]
    problem: str = ""
    """Why it cannot be measured: the lifetime did not end."""


@dataclass(frozen=True)
class Found:
    """The lifetimes found under a path."""

    path: Path
    sources: tuple[Source, ...]
    curricula: Mapping[str, str] = field(default_factory=dict)
    """For each run among them: the fingerprint of its curriculum."""


def find(path: Path, ste: Sequence[str] = (), measure: str | None = None) -> Found:
    """The lifetimes at or below ``path``.

    ``ste`` names single-task experts: a folder of logs or a run, matched to tasks by what they
    train, or ``TASK=FOLDER``. A run brings its own experts, and logs of scenario type ``ste`` under
    ``path`` count as experts too.
    """
    if not path.is_dir():
        raise MeasureError(f"{path} is not a folder: expected a run or an L2Logger log")
    given = _given_experts(ste, measure)
    runs = (
        [path] if _is_run(path) else sorted(p.parent.parent for p in path.rglob("_meta/spec.json"))
    )
    if runs:
        many = len(runs) > 1
        sources: list[Source] = []
        curricula = {}
        for folder in runs:
            run = Run(folder)
            prefix = f"{folder.relative_to(path)}/" if many else ""
            sources += _run_sources(run, prefix, given, measure)
            curricula[prefix.rstrip("/") or folder.name] = _fingerprint(run)
        return Found(path, tuple(sources), curricula)
    logs = find_logs(path)
    if not logs:
        raise MeasureError(
            f"{path} holds neither a Perdure run (_meta/spec.json) nor an L2Logger log "
            "(logger_info.json)"
        )
    return Found(path, tuple(_log_sources(path, logs, given, measure)))


def merge(found: Sequence[Found]) -> Found:
    """The lifetimes of several paths together; names get the path's in front where they clash."""
    if len(found) == 1:
        return found[0]
    sources: list[Source] = []
    curricula: dict[str, str] = {}
    for one in found:
        sources += [replace(s, name=f"{one.path.name}/{s.name}") for s in one.sources]
        curricula |= {
            n if n == one.path.name else f"{one.path.name}/{n}": c for n, c in one.curricula.items()
        }
    return Found(found[0].path, tuple(sources), curricula)


def refuse_different(found: Found) -> None:
    """Runs of different curricula are not comparable."""
    if len(set(found.curricula.values())) > 1:
        each = "\n".join(f"  {name}: curriculum {c[:12]}" for name, c in found.curricula.items())
        raise MeasureError(
            f"these runs are of different curricula, so their numbers do not compare:\n{each}\n"
            "--anyway compares them all the same"
        )


def _is_run(path: Path) -> bool:
    return (path / "_meta" / "spec.json").is_file()


def _fingerprint(run: Run) -> str:
    for info in run.lifetimes():
        if not info.expert:
            return str(info.description.get("fingerprint", ""))
    return ""


def _run_sources(run: Run, prefix: str, given: Experts, measure: str | None) -> list[Source]:
    cache: dict[str, dict[str, tuple[History, ...]]] = {}

    def loader(info: LifetimeInfo) -> Callable[[], History]:
        def load() -> History:
            if not cache:
                cache.update(read_experts(run, measure) or {"": {}})
            name = f"{prefix}{info.id}"
            history = read_lifetime(info.path, name, info.agent, info.seed, measure)
            return replace(history, experts={**cache.get(info.agent, {}), **given})

        return load

    out = []
    for info in run.lifetimes():
        if not info.expert:
            problem = "" if info.status == "done" else f"{info.status} {info.error}".strip()
            out.append(Source(f"{prefix}{info.id}", loader(info), problem))
    return out


def _log_sources(
    path: Path, logs: Sequence[Path], given: Experts, measure: str | None
) -> list[Source]:
    names = [p.name for p in logs]
    if len(set(names)) < len(names):
        names = [str(p.relative_to(path)) for p in logs]
    wanted = None if measure is None else [measure]
    lives, found = [], dict(given)
    if not given and len(logs) > 1:
        own = [p for p in logs if _is_expert(p)]
        found |= group_experts([_read_expert(p, wanted) for p in reversed(own)])
        lives = [(n, p) for n, p in zip(names, logs, strict=True) if p not in own]
    if not lives:
        lives = list(zip(names, logs, strict=True))

    def loader(name: str, folder: Path) -> Callable[[], History]:
        return lambda: replace(read_log(folder, wanted), name=name, experts=found)

    return [Source(name, loader(name, folder)) for name, folder in lives]


def _is_expert(log: Path) -> bool:
    from perdure.store.l2logger.read import scenario_info

    return scenario_info(log).get("scenario_type") == "ste"


def _read_expert(log: Path, measures: Sequence[str] | None) -> History:
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


def _given_experts(ste: Sequence[str], measure: str | None) -> dict[str, tuple[History, ...]]:
    out: dict[str, tuple[History, ...]] = {}
    wanted = None if measure is None else [measure]
    for text in ste:
        task, eq, folder = text.partition("=")
        path = Path(folder if eq and not Path(text).is_dir() else text)
        if not path.is_dir():
            raise MeasureError(f"--ste {text}: {path} is not a folder")
        if _is_run(path):
            found: dict[str, tuple[History, ...]] = {}
            for by_task in read_experts(Run(path), measure).values():
                for name, runs in by_task.items():
                    found[name] = (*found.get(name, ()), *runs)
        else:
            logs = find_logs(path)
            if not logs:
                raise MeasureError(f"--ste {text}: no L2Logger log below {path}")
            # Newest name first: the order in which the reference holds its stored experts.
            found = group_experts([_read_expert(p, wanted) for p in reversed(logs)])
        if eq and not Path(text).is_dir():
            found = {task.lower(): tuple(h for runs in found.values() for h in runs)}
        for name, runs in found.items():
            out[name] = (*out.get(name, ()), *runs)
    return out


def load(source: Source) -> History:
    """Read a lifetime; what cannot be measured is a typed error."""
    if source.problem:
        raise MeasureError(f"not measured, the lifetime is {source.problem}")
    try:
        return source.load()
    except (LogError, MeasureError):
        raise
    except PerdureError as e:
        raise MeasureError(str(e)) from e
