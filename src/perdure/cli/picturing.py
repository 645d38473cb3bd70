"""The bodies of gallery and generate."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from perdure import registry
from perdure.cli.terminal import say, tell
from perdure.curricula.named import curriculum_of
from perdure.errors import NameRefused, SpecError, UnknownName
from perdure.specs import Spec
from perdure.types import Task

ENDINGS = (".html", ".png")
FOLDERS = "/eval-folder"
"""What a suite calls the curriculum of the tasks that are files in a folder."""


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time that is left; elsewhere than on a terminal, nothing."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from perdure.show.screen import SafeConsole

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(what, *columns, console=SafeConsole(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def gallery(name: str, out: Path | None, looks: Sequence[str]) -> int:
    """Pictures of a suite's tasks, or of a curriculum's."""
    spec = Spec.parse(name)
    own = getattr(registry.suite(spec.name), "gallery", None) if _is_suite(spec) else None
    if own is not None:
        for path in own(out or Path(f"{spec.name}.png")):
            say(str(path))
        return 0
    target = out or Path(f"{spec.name.replace('/', '-')}.html")
    if target.suffix not in ENDINGS:
        raise SpecError(f"{target}: expected a file that ends in {' or '.join(ENDINGS)}")
    try:
        tasks = tasks_of(spec)
    except (UnknownName, NameRefused) as e:
        if not os.path.isdir(spec.name):
            raise
        takers = [f"{n},folder={spec.name}" for n in registry.curricula() if n.endswith(FOLDERS)]
        raise SpecError(
            f"{spec.name} is a folder, expected a suite or a curriculum; the tasks of its files are "
            f"{' or '.join(takers)}"
        ) from e
    if not tasks:
        raise SpecError(f"{name} has no task that can be played, so there is nothing to see")
    shown = [
        dataclasses.replace(t, params={**t.params, "look": look}) for t in tasks for look in looks
    ]
    failed = draw(shown or tasks, [target], name)
    return 1 if failed else 0


def _is_suite(spec: Spec) -> bool:
    return "/" not in spec.name and registry.is_suite(spec.name)


def tasks_of(spec: Spec) -> list[Task]:
    """The tasks that a suite or a curriculum has; parameters behind a suite's name are its tasks'."""
    if _is_suite(spec):
        suite = registry.suite(spec.name)
        found = [t for t in suite.tasks() if suite.has_env(t)]
        return [dataclasses.replace(t, params={**t.params, **spec.params}) for t in found]
    return list(curriculum_of(spec).tasks)


def draw(
    tasks: Sequence[Task], targets: Sequence[Path], title: str, unsolved: Collection[str] = ()
) -> int:
    """Draw tasks into pages and contact sheets, marked where no expert solved them; how many could not be drawn."""
    from perdure.run.pictures import draw_tasks
    from perdure.show.gallery import Captioned, contact_sheet, page
    from perdure.store.files import write_output

    with progress("drawing") as report:
        pictures = draw_tasks(tasks, report=report)
    several = len({t.params.get("look") for t in tasks}) > 1
    cells = [
        Captioned(
            p.task
            + (f" ({t.params['look']})" if several else "")
            + (" (unsolved)" if t.name in unsolved else ""),
            p.about,
            p.jpeg,
            p.problem,
        )
        for p, t in zip(pictures, tasks, strict=True)
    ]
    failed = [p for p in pictures if p.problem]
    about = f"{len(cells)} pictures of how tasks begin"
    about += "; unsolved: scripted experts tried and never succeeded" if unsolved else ""
    for target in targets:
        made = (
            contact_sheet(cells) if target.suffix == ".png" else page(title, about, cells).encode()
        )
        write_output(target, made)
        say(str(target))
    for picture in failed[:3]:
        tell(f"no picture of {picture.task}: {picture.problem}")
    return len(failed)


def generate(name: str, folder: Path, count: int, seed: int, pictures: bool, **options: Any) -> int:
    """New tasks of a suite into a folder, and how they look."""
    make = getattr(registry.suite(name), "generate", None)
    if make is None:
        raise SpecError(f"suite {name} cannot generate tasks: it has no method generate(folder, …)")
    try:
        with progress("generating") as report:
            made = make(folder, count=count, seed=seed, report=report, **options)
    except OSError as e:
        raise SpecError(f"{folder} cannot be written to: {e.strerror or e}") from e
    say(made.summary)
    say(f"to run them: perdure run {shlex.quote(made.curriculum)} -a AGENT")
    if not pictures:
        return 0
    tasks = tasks_of(Spec.parse(made.curriculum))
    targets = [folder / "index.html", folder / "sheet.png"]
    return 1 if draw(tasks, targets, str(folder), getattr(made, "unsolved", ())) else 0
