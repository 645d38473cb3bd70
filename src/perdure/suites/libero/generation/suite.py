"""Generating a folder of tasks: candidates are drawn in order, checked side by side, kept in order.

The folder depends on kind, seed, looks and number alone, byte for byte, however many processes check
and wherever it was interrupted: what was found of each candidate is noted in the folder, and the same
call again goes on from there. More tasks of the same seed begin with the same ones.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.errors import EnvironmentFault, SpecError, UnknownName
from perdure.pools import cores, worker_pool
from perdure.specs import Spec
from perdure.suites.libero import bddl
from perdure.suites.libero.folders import ENDING, INDEX
from perdure.suites.libero.generation.checks import check
from perdure.suites.libero.generation.contacts import Failed
from perdure.suites.libero.generation.draft import Draft, NoRoom, problem_of_draft
from perdure.suites.libero.generation.identity import Key, key, official_keys
from perdure.suites.libero.generation.kinds import FAMILIES, family
from perdure.suites.libero.generation.solving import share, solve_tasks
from perdure.suites.libero.problem import Problem
from perdure.suites.libero.tasks import Settings

VERSION = 2
"""Changes when the same seed would give other tasks."""
KINDS = tuple(FAMILIES)
NOTES = "_checked.jsonl"
"""What was found of every candidate; its first line says of which suite."""
MOST_CANDIDATES = 400
"""Of a family."""
STALE = 40
"""Candidates in a row that give nothing new; then the family ends."""
BARREN = 8
"""The same at the beginning of a family, where things rather do not fit at all."""
MOST_BARREN = 60
"""Families in a row that give nothing."""

Progress = Callable[[int, int], None]
"""Called with the number of tasks that are done, and of all."""


@dataclass(frozen=True)
class Candidate:
    """A task that is to be checked, and which it is."""

    family: int
    number: int
    draft: Draft
    problem: Problem
    key: Key


@dataclass(frozen=True)
class Report:
    """What a call made."""

    folder: Path
    names: tuple[str, ...]
    families: int
    rejected: Mapping[str, int]
    """How many candidates broke which promise."""
    solved: Mapping[str, int] = field(default_factory=dict)
    """From how many initial states experts solve each task."""
    states: int = 0
    """How many were tried."""

    @property
    def unsolved(self) -> tuple[str, ...]:
        """Tasks that experts tried and never solved."""
        return tuple(name for name, times in self.solved.items() if not times)

    @property
    def curriculum(self) -> str:
        """What evaluates them, as a specification."""
        return str(Spec("libero/eval-folder", {"folder": str(self.folder)}))

    @property
    def summary(self) -> str:
        """What came of it, in a line."""
        count, lost = len(self.names), sum(self.rejected.values())
        why = ", ".join(f"{w} {n}" for w, n in sorted(self.rejected.items(), key=lambda i: -i[1]))
        many = f"{self.families} famil{'y' if self.families == 1 else 'ies'}"
        of = f"; {lost} of {count + lost} candidates rejected ({why})" if lost else ""
        tried = f"; {share(self.solved, self.states)}" if self.solved else ""
        return f"{self.folder}: {count} tasks of {many}{of}{tried}"


def generate(
    folder: str | Path,
    kind: str = "all",
    count: int = 10,
    seed: int = 0,
    looks: Sequence[str] = (Settings.look,),
    experts: int = 0,
    workers: int | None = None,
    report: Progress | None = None,
) -> Report:
    """Write ``count`` new tasks of a kind into a folder, with an index; each has passed every check in
    each of the looks. The scripted experts try each from ``experts`` initial states, in the first look:
    the index says from how many they solve it. Called again it goes on, or adds to what is there."""
    if kind not in KINDS:
        raise UnknownName("kind of generated tasks", kind, KINDS)
    for what, value, least in (("count", count, 1), ("seed", seed, 0), ("experts", experts, 0)):
        if type(value) is not int or value < least:
            raise SpecError(f"{what} must be a whole number of at least {least}, got {value!r}")
    root = Path(folder).expanduser()
    settings = {"version": VERSION, "kind": kind, "seed": seed, "looks": list(looks)}
    notes = _Notes(root, settings)
    rejected: Counter[str] = Counter()
    entries: list[dict[str, Any]] = []
    families: set[int] = set()
    if report:
        report(0, count)
    checked = _Checked(notes, tuple(looks), cores() if workers is None else workers)
    with checked:
        for candidate in _accepted(kind, seed, checked, rejected):
            name = f"{kind}-s{seed}-{len(entries):03d}"
            entries.append(_write(root, name, candidate))
            families.add(candidate.family)
            if report:
                report(len(entries), count)
            if len(entries) == count:
                break
    solved: dict[str, int] = {}
    if experts:
        digests = {e["name"]: e["sha256"] for e in entries}
        many = cores() if workers is None else workers
        solved = solve_tasks(root, digests, looks[0], experts, many, report)
        for entry in entries:
            entry["solved"] = [solved[entry["name"]], experts]
    index = {"suite": "libero", **settings, "rejected": dict(sorted(rejected.items()))}
    _write_text(root / INDEX, json.dumps({**index, "tasks": entries}, indent=1) + "\n")
    names = tuple(e["name"] for e in entries)
    return Report(root, names, len(families), rejected, solved, experts)


def _write(root: Path, name: str, candidate: Candidate) -> dict[str, Any]:
    """Write a task's file; its entry in the index."""
    text = bddl.write(candidate.problem)
    _write_text(root / f"{name}{ENDING}", text)
    return {
        "name": name,
        "instruction": candidate.problem.language,
        "template": candidate.draft.template,
        "surface": candidate.draft.surface,
        "family": candidate.family,
        "goal": [str(r) for r in candidate.problem.goal],
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def _write_text(path: Path, text: str) -> None:
    """Completely or not at all."""
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


# Candidates.


def _accepted(
    kind: str, seed: int, checked: _Checked, rejected: Counter[str]
) -> Iterator[Candidate]:
    """Tasks that are new and have passed every check, in order, without end."""
    known: set[Key] = set(official_keys())
    number = barren = 0
    while barren < MOST_BARREN:
        kept, stale = 0, 0
        for candidate, problem in checked(_candidates(kind, seed, number, known)):
            known.add(candidate.key)
            if problem:
                rejected[problem.split(":")[0]] += 1
                stale += 1
                if stale >= (STALE if kept else BARREN):
                    break
                continue
            kept, stale = kept + 1, 0
            yield candidate
        barren = 0 if kept else barren + 1
        number += 1
    raise EnvironmentFault(
        f"{MOST_BARREN} families of kind {kind} in a row gave no task that passes every check: "
        + ", ".join(f"{n} by {why}" for why, n in rejected.most_common(3))
    )


def _candidates(kind: str, seed: int, number: int, known: set[Key]) -> Iterator[Candidate]:
    """The tasks of a family that are not known yet, each once, however far ahead they are drawn."""
    drawn: set[Key] = set()
    try:
        make = family(kind, seed, number)
    except NoRoom:
        return
    for k in range(MOST_CANDIDATES):
        try:
            draft = make(k)
        except NoRoom:
            continue
        problem = problem_of_draft(draft)
        identity = key(problem)
        if identity not in known and identity not in drawn:
            drawn.add(identity)
            yield Candidate(number, k, draft, problem, identity)


class _Checked:
    """Checks candidates ahead of who takes them, in processes; gives them back in order."""

    def __init__(self, notes: _Notes, looks: tuple[str, ...], workers: int) -> None:
        self.notes, self.looks, self.workers = notes, looks, workers
        self._pool = worker_pool(workers) if workers > 1 else None
        self._submit: Callable[..., Future[str]] | None = None

    def __enter__(self) -> None:
        if self._pool is not None:
            self._submit = self._pool.__enter__().submit

    def __exit__(self, *error: Any) -> None:
        if self._pool is not None:
            self._pool.__exit__(*error)

    def __call__(self, candidates: Iterator[Candidate]) -> Iterator[tuple[Candidate, str]]:
        """Candidates, and what is wrong with each."""
        ahead: deque[tuple[Candidate, Callable[[], str]]] = deque()
        for candidate in candidates:
            ahead.append((candidate, self._begun(candidate)))
            if len(ahead) > 2 * self.workers:
                yield self._noted(*ahead.popleft())
        while ahead:
            yield self._noted(*ahead.popleft())

    def _begun(self, candidate: Candidate) -> Callable[[], str]:
        known = self.notes.known.get((candidate.family, candidate.number))
        if known is not None:
            return lambda: known
        if self._submit is None:
            return lambda: problem_with(candidate.problem, self.looks)
        return self._submit(problem_with, candidate.problem, self.looks).result

    def _noted(self, candidate: Candidate, result: Callable[[], str]) -> tuple[Candidate, str]:
        problem = result()
        self.notes.add(candidate, problem)
        return candidate, problem


def problem_with(problem: Problem, looks: Sequence[str]) -> str:
    """Which promise a task breaks; nothing if it keeps all."""
    try:
        check(problem, looks)
    except Failed as e:
        return str(e)
    return ""


class _Notes:
    """What was found of candidates, in the folder, a line each."""

    def __init__(self, root: Path, settings: Mapping[str, Any]) -> None:
        self.path = root / NOTES
        self.known: dict[tuple[int, int], str] = {}
        first = json.dumps(settings)
        if not self.path.is_file():
            root.mkdir(parents=True, exist_ok=True)
            if any(root.glob(f"*{ENDING}")):
                raise SpecError(f"{root} holds other task files: choose another folder")
            _write_text(self.path, first + "\n")
            return
        lines = self.path.read_text(encoding="utf-8").splitlines()
        if not lines or lines[0] != first:
            raise SpecError(
                f"{root} holds other tasks ({lines[0] if lines else 'unknown'}; asked for {first}): "
                "choose another folder, or remove it"
            )
        for line in lines[1:]:
            try:
                number, k, problem = json.loads(line)
            except ValueError:
                break  # The last line of a call that was killed.
            self.known[number, k] = problem
        kept = [first, *(json.dumps([*at, problem]) for at, problem in self.known.items())]
        _write_text(self.path, "\n".join(kept) + "\n")

    def add(self, candidate: Candidate, problem: str) -> None:
        """Note a finding."""
        at = candidate.family, candidate.number
        if at not in self.known:
            self.known[at] = problem
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([*at, problem]) + "\n")
