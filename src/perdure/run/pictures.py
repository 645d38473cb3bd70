"""How tasks look: a picture of each one's first moment, drawn in several processes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass

import numpy as np

from perdure import registry
from perdure.errors import PerdureError
from perdure.pools import cores, worker_pool
from perdure.registry import extras_named
from perdure.run.vector import reset_env
from perdure.suite import Episode
from perdure.types import Array, Task

GROUP = 6
"""Neighbours that one process draws: tasks that follow each other often share a scene, and making one
costs more than drawing it."""
QUALITY = 90
Progress = Callable[[int, int], None]
"""Called with the number of pictures that are done, and of all."""


@dataclass(frozen=True)
class TaskPicture:
    """A task, what it asks for, and a JPEG of how it begins; or why there is none."""

    task: str
    about: str
    jpeg: bytes = b""
    problem: str = ""


def draw_tasks(
    tasks: Sequence[Task],
    seed: int = 0,
    workers: int | None = None,
    report: Progress | None = None,
) -> list[TaskPicture]:
    """Pictures of tasks, in their order."""
    wanted = cores() if workers is None else workers
    # What is in a file of the user's is known to this process alone.
    if wanted < 2 or len(tasks) <= GROUP or any(not _everywhere(t) for t in tasks):
        drawn = []
        for picture in _drawn(tasks, seed):
            drawn.append(picture)
            if report:
                report(len(drawn), len(tasks))
        return drawn
    groups = [list(tasks[k : k + GROUP]) for k in range(0, len(tasks), GROUP)]
    found: dict[int, list[TaskPicture]] = {}
    with worker_pool(wanted) as pool:
        waiting = {pool.submit(_drawn_there, g, seed): k for k, g in enumerate(groups)}
        for done in as_completed(waiting):
            found[waiting[done]] = done.result()
            if report:
                report(sum(map(len, found.values())), len(tasks))
    return [picture for k in range(len(groups)) for picture in found[k]]


def _everywhere(task: Task) -> bool:
    return task.suite in registry.entries("suites")


def _drawn_there(tasks: Sequence[Task], seed: int) -> list[TaskPicture]:
    return list(_drawn(tasks, seed))


def _drawn(tasks: Sequence[Task], seed: int) -> Iterator[TaskPicture]:
    before = None
    try:
        for task in tasks:
            suite = registry.suite_of(task)
            about = suite.about(task)
            try:
                env = suite.render_env(task)
                reset_env(suite, env, Episode.alone(seed))
                frame = env.render()
            except Exception as e:  # If one fails, the others are still drawn.
                problem = str(e) if isinstance(e, PerdureError) else f"{type(e).__name__}: {e}"
                yield TaskPicture(task.id, about, problem=problem)
                continue
            # Closed only now: the next may draw with what this one has made.
            if before is not None:
                before.close()
            before = env
            if not isinstance(frame, np.ndarray) or frame.ndim != 3:
                problem = f"its environment renders {type(frame).__name__}, expected an RGB array"
                yield TaskPicture(task.id, about, problem=problem)
                continue
            yield TaskPicture(task.id, about, _jpeg(frame))
    finally:
        if before is not None:
            before.close()


def _jpeg(frame: Array) -> bytes:
    with extras_named("a gallery"):
        from PIL import Image
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(frame, np.uint8)).save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()
