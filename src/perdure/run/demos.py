"""Collecting demonstrations: experts play in several processes, and successes are kept.

Every success is at once a file of its own, so that a collection that is stopped in any way goes on
where it was; when a task has enough of them they become one. If more are wanted later, that is taken
apart again, and ends as if all had been collected at once. Which attempts succeed, and what is in them,
is decided by the seed alone, and not by how many processes there are.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perdure.errors import EnvironmentFault, PerdureError
from perdure.pools import worker_pool
from perdure.registry import suite
from perdure.seeds import seed_for
from perdure.suites._demonstrations import DemonstrationFile, assemble, h5, write_one
from perdure.types import Task

PARTS = "_unfinished"
TRIES = 4
"""Attempts for each demonstration, at most."""


@dataclass(frozen=True)
class CollectionProgress:
    """How far a collection is."""

    task: Task
    done: int
    wanted: int
    failed: int
    all_done: int
    all_wanted: int
    seconds_left: float | None


def collect(
    tasks: Sequence[Task],
    out: Path,
    per_task: int,
    seed: int = 0,
    workers: int = 1,
    note: Callable[[CollectionProgress], None] = lambda _: None,
) -> list[Path]:
    """Files of ``per_task`` successful episodes of each task: made, made larger, or found with as many."""
    h5()
    made: list[Path] = []
    began, fresh = time.monotonic(), 0
    with worker_pool(workers) if workers > 1 else nullcontext() as pool:
        for number, task in enumerate(tasks):
            name, attributes = suite(task.suite).demonstration_file(task)
            path = out / name
            there = _checked(path)
            if there >= per_task:
                made.append(path)
                continue
            parts = path.parent / PARTS / path.stem
            parts.mkdir(parents=True, exist_ok=True)
            if there:
                _take_apart(path, parts, task, attributes, per_task, seed)
            before = len(list(parts.glob("demo-*.hdf5")))

            clock = _Clock(began, fresh - before, number * per_task, len(tasks) * per_task)

            def tell(done: int, failed: int, task: Task = task, clock: _Clock = clock) -> None:
                note(
                    CollectionProgress(
                        task,
                        done,
                        per_task,
                        failed,
                        clock.before + done,
                        clock.wanted,
                        clock.left(done),
                    )
                )

            chosen = _attempts(task, parts, per_task, seed, pool, workers, tell)
            fresh += per_task - before
            assemble(path, chosen, attributes)
            shutil.rmtree(parts)
            made.append(path)
    for folder in {p.parent / PARTS for p in made}:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return made


@dataclass(frozen=True)
class _Clock:
    """How long the rest will take, by what was made since the beginning."""

    began: float
    fresh: int
    before: int
    wanted: int

    def left(self, done: int) -> float | None:
        made = self.fresh + done
        if made <= 0:
            return None
        return (time.monotonic() - self.began) / made * (self.wanted - self.before - done)


def _checked(path: Path) -> int:
    """How many demonstrations a file holds; none if it is not there."""
    if not path.exists():
        return 0
    file = DemonstrationFile(path)
    try:
        file.check()
        return len(file.names)
    finally:
        file.close()


def _take_apart(
    path: Path, parts: Path, task: Task, attributes: Mapping[str, Any], per_task: int, seed: int
) -> None:
    """Make the demonstrations of a file parts again, while it stays. A demonstration's seed tells which
    attempt it was; those between them had failed."""
    known = {_seed(task, seed, k): k for k in range(TRIES * per_task)}
    file = DemonstrationFile(path)
    try:
        other = [n for n, v in attributes.items() if not np.array_equal(file.data.attrs.get(n), v)]
        seeds = [file.data[name].attrs.get("seed") for name in file.names]
        numbers = [-1 if s is None else known.get(int(s), -1) for s in seeds]
        if -1 in numbers or numbers != sorted(set(numbers)):
            other.append("seed")
        if other:
            raise EnvironmentFault(
                f"{path} holds {len(file.names)} demonstrations, {per_task} are wanted, but it was made by "
                f"another {', '.join(other)}: collect as it was made, or into another folder"
            )
        for name, number in zip(file.names, numbers, strict=True):
            if not (part := _part(parts, number)).exists():
                write_one(part, file.read(name))
        for number in set(range(numbers[-1])) - set(numbers):
            _mark(parts, number).touch()
    finally:
        file.close()


def _part(parts: Path, number: int) -> Path:
    return parts / f"demo-{number:05d}.hdf5"


def _mark(parts: Path, number: int) -> Path:
    """Stands for an attempt that failed."""
    return parts / f"failed-{number:05d}"


def _seed(task: Task, seed: int, number: int) -> int:
    return seed_for(seed, "demonstration", task.id, number)


def _attempts(
    task: Task,
    parts: Path,
    wanted: int,
    seed: int,
    pool: ProcessPoolExecutor | None,
    workers: int,
    tell: Callable[[int, int], None],
) -> list[Path]:
    """The first ``wanted`` successes, in the order of their attempts."""
    results: dict[int, Path | None] = {}
    for path in parts.glob("demo-*.hdf5"):
        results[_number(path)] = path
    for path in parts.glob("failed-*"):
        results[_number(path)] = None
    running: dict[Future[Path | None], int] = {}
    following = 0

    def first() -> list[Path]:
        """Successes up to the first attempt whose end is not known."""
        found: list[Path] = []
        for k in range(TRIES * wanted):
            if k not in results or len(found) == wanted:
                break
            path = results[k]
            if path is not None:
                found.append(path)
        return found

    while len(found := first()) < wanted:
        failed = sum(p is None for p in results.values())
        tell(len(found), failed)
        while len(running) < workers and following < TRIES * wanted:
            if following not in results:
                if pool is None:
                    results[following] = attempt(task, parts, seed, following)
                    following += 1
                    break
                running[pool.submit(attempt, task, parts, seed, following)] = following
            following += 1
        else:
            if not running:
                raise PerdureError(
                    f"{task.id}: the expert succeeded {len(found)} times in {TRIES * wanted} attempts, "
                    f"{wanted} are wanted; less noise or a longer horizon may help"
                )
        if running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                results[running.pop(future)] = future.result()
    # Attempts that are not needed: none may still write when the parts are put together.
    for future in running:
        future.cancel()
    wait(running)
    tell(wanted, sum(p is None for p in results.values()))
    return found


def _number(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def attempt(task: Task, parts: Path, seed: int, number: int) -> Path | None:
    """One attempt: the file of a success, or None and a mark that it failed."""
    shown = suite(task.suite).demonstrate(task, _seed(task, seed, number))
    if shown is None:
        _mark(parts, number).touch()
        return None
    path = _part(parts, number)
    write_one(path, shown)
    return path
