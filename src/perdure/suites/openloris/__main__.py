"""``python -m perdure.suites.openloris``: render, check and look at OpenLORIS data."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from perdure.errors import PerdureError
from perdure.suites.openloris import data, layouts
from perdure.suites.openloris.features import SIZE
from perdure.suites.openloris.rendering.dataset import render_dataset
from perdure.suites.openloris.rendering.gallery import gallery

SMALL_FRAMES, SMALL_SIZE = 10, 128


@click.group()
def main() -> None:
    """Render, check and look at OpenLORIS data."""


@main.command("render")
@click.argument("root", type=click.Path(path_type=Path), required=False)
@click.option("--instances", default=121, show_default=True, help="Objects, 1 to 121.")
@click.option("--frames", default=SMALL_FRAMES, show_default=True, help="Frames in a segment.")
@click.option(
    "--size", default=SMALL_SIZE, show_default=True, help="Width of a frame; the dataset's is 424."
)
@click.option("--workers", default=2, show_default=True, help="Processes.")
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--depth-and-masks/--no-depth-and-masks", default=True, help="Annotations beside the frames."
)
def _render(
    root: Path | None,
    instances: int,
    frames: int,
    size: int,
    workers: int,
    seed: int,
    depth_and_masks: bool,
) -> None:
    """Render a dataset into ROOT, by default where the suite looks for one. Run again to resume."""
    with _bar("rendering") as report:
        where = render_dataset(
            root or data.rendered(),
            instances,
            frames,
            size,
            workers,
            seed,
            depth_and_masks,
            report=report,
        )
    click.echo(f"{where}: {instances} objects, 36 segments of {frames} frames each")


@main.command("features")
@click.argument("root", required=False)
@click.option("--size", default=SIZE, show_default=True, help="Pixels of a side.")
def _features(root: str | None, size: int) -> None:
    """Compute the features of all frames in ROOT, for runs with track=features. Run again to resume.

    Without it, runs compute them as they need them.
    """
    with _bar("features") as report:
        rows = data.embed_all(root, size, report)
    click.echo(f"{rows:,} frames have features")


@main.command("check")
@click.argument("root", required=False)
def _check(root: str | None) -> None:
    """Say what is in ROOT (or where the suite finds its data), and what is missing there."""
    found = layouts.load(data.where(root))
    problems = layouts.missing(found)
    frames = found.counts()
    total = {s: sum(n for (split, _, _), n in frames.items() if split == s) for s in layouts.SPLITS}
    objects = len({c.object for c in found.clips})
    counts = ", ".join(f"{n:,} {s}" for s, n in total.items())
    click.echo(f"{found.root}: layout {found.layout}, {objects} objects, {counts} frames")
    click.echo(f"{len(found.empty)} empty object folders")
    for p in problems:
        click.echo(p)
    sys.exit(1 if problems else 0)


@main.command("gallery")
@click.argument("out", type=click.Path(path_type=Path))
def _gallery(out: Path) -> None:
    """Draw all 121 objects into OUT, and every factor and level beside it."""
    for made in gallery(out):
        click.echo(str(made))


@contextlib.contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None]]:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(name, *columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def entry() -> None:
    """Run the command; errors that are meant for the user are printed without a traceback."""
    try:
        main()
    except PerdureError as e:
        click.echo(f"error: {e}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    entry()
