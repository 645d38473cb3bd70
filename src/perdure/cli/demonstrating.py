"""The body of demos."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.cli.terminal import say, tell
from perdure.errors import SpecError
from perdure.names import join_task_id, split_task_id

if TYPE_CHECKING:
    from perdure.suites._demonstrations import DemonstrationFile

EVERY = 2.0
"""Seconds between two lines of progress."""


def demos(
    what: str, out: Path, per_task: int, seed: int, workers: int, params: dict[str, Any]
) -> int:
    """Collect demonstrations and say where they are."""
    from perdure.registry import suite
    from perdure.run.demos import CollectionProgress, collect

    name, short, variant = split_task_id(what)
    if not name or not short:
        raise SpecError(f"demonstrations of what? SUITE/LIST or SUITE/TASK, got {what!r}")
    tasks = suite(name).demonstration_tasks(join_task_id("", short, variant), params)
    shown = 0.0

    def note(p: CollectionProgress) -> None:
        nonlocal shown
        if p.done < p.wanted and time.monotonic() < shown + EVERY:
            return
        shown = time.monotonic()
        left = "" if p.seconds_left is None else f", {_clock(p.seconds_left)} to go"
        failed = f", {p.failed} failed" if p.failed else ""
        tell(f"{p.task.id} {p.done}/{p.wanted}{failed}; {p.all_done}/{p.all_wanted} in all{left}")

    for path in collect(tasks, out, per_task, seed, workers, note):
        say(str(path))
    return 0


def check(out: Path, again: bool = False) -> int:
    """Read every file of demonstrations below a folder; name those that are damaged. With ``again``, also play
    what they show and say how many succeed."""
    from perdure.errors import EnvironmentFault
    from perdure.suites._demonstrations import SUFFIX, DemonstrationFile

    paths = sorted(out.rglob(f"*{SUFFIX}"))
    bad = 0
    for path in paths:
        if path.name.startswith("_"):
            continue
        try:
            file = DemonstrationFile(path)
            file.check()
            whole = "whole" if file.has_digests else "readable (it has no digests)"
            text = f"{path}: {len(file.names)} demonstrations, {sum(file.lengths)} steps, {whole}"
            say(text + (f"; {_played_again(file)}" if again else ""))
            file.close()
        except EnvironmentFault as e:
            bad += 1
            tell(str(e))
    if not paths:
        raise SpecError(f"there are no demonstrations below {out}")
    return 1 if bad else 0


def _played_again(file: DemonstrationFile) -> str:
    """How many of a file's demonstrations succeed again, and which do not."""
    from perdure.registry import suite

    task = file.task()
    lost = [n for n in file.names if not suite(task.suite).replay(task, file.read(n))]
    found = f"{len(file.names) - len(lost)} of {len(file.names)} succeed again"
    return found + (f", not {', '.join(lost[:6])}" if lost else "")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
