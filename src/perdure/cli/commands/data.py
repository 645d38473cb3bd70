"""generate, demos and record."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from perdure.cli.group import AnyPath, main, one_thread
from perdure.datasets import WRITTEN


@main.command()
@click.argument("suite")
@click.argument("folder", type=AnyPath(file_okay=False))
@click.option("--kind", default="all", show_default=True,
              help="What varies from task to task: spatial, object, goal or all.")  # fmt: skip
@click.option("--n", "-n", "count", type=click.IntRange(1, 100_000), default=10, show_default=True)
@click.option("--seed", "-s", type=click.IntRange(0), default=0, show_default=True)
@click.option("--look", "looks", multiple=True, help="To check tasks in; repeatable.")
@click.option("--experts", type=click.IntRange(0, 1000), default=1, show_default=True,
              help="Initial states from which scripted experts try each task.")  # fmt: skip
@click.option("--pictures/--no-pictures", default=True, help="Also index.html and sheet.png.")
def generate(suite: str, folder: Path, looks: tuple[str, ...], **what: Any) -> None:
    """Generate new tasks of SUITE into FOLDER: task files, an index, pictures.

    A seed decides them. The same command again goes on where it was stopped; a larger --n adds more.
    """
    from perdure.cli import picturing

    if looks:
        what["looks"] = looks
    sys.exit(picturing.generate(suite, folder, **what))


@main.command()
@click.argument("what", required=False)
@click.argument("out", required=False, type=AnyPath(file_okay=False))
@click.option("--per-task", type=click.IntRange(1, 100_000), default=50, show_default=True)
@click.option("--noise", type=float, help="Standard deviation added to the expert's actions.")
@click.option("--cameras", help="Whose pictures: names with commas, none for no pictures.")
@click.option("--size", type=int, help="Width and height of a picture.")
@click.option("--look", help="Of LIBERO: primitive or official.")
@click.option(
    "--folder", help="Of LIBERO: where the tasks' files are, if they are none of the 130."
)
@click.option("--seed", "-s", type=int, default=0, show_default=True)
@click.option("--workers", "-w", type=click.IntRange(1, 256), default=1, show_default=True,
              help="Processes.")  # fmt: skip
@click.option("--check", type=AnyPath(file_okay=False), metavar="OUT",
              help="Only read all files there and name the damaged ones.")  # fmt: skip
@click.option("--replay", is_flag=True,
              help="With --check: play all of them again and count those that succeed.")  # fmt: skip
def demos(
    what: str | None, out: Path | None, check: Path | None, replay: bool, **flags: Any
) -> None:
    """Collect demonstrations of scripted experts into OUT: of WHAT, as in libero/object,
    libero/spatial-3, metaworld/reach or metaworld/all; libero/all with --folder. Called again it goes on where it was.

    One HDF5 file a task, in the layout of robomimic and LIBERO; only successful episodes.
    """
    from perdure.cli import demonstrating

    if check is not None:
        sys.exit(demonstrating.check(check, replay))
    if what is None or out is None:
        raise click.UsageError("WHAT and OUT are needed, as in: perdure demos libero/object demos/")
    if flags["workers"] > 1:
        one_thread()
    names = flags.pop("cameras")
    params = {k: flags.pop(k) for k in ("noise", "size", "look", "folder")}
    if names is not None:
        params["cameras"] = [] if names == "none" else names.split(",")
    given = {k: v for k, v in params.items() if v is not None}
    sys.exit(demonstrating.demos(what, out, params=given, **flags))


@main.command()
@click.argument("suite")
@click.option("--policy", "-p", default="", help="Who plays (the suite's own expert).")
@click.option("--protocol", default="", help="As it is seen by whom.")
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="As for eval; repeatable."
)
@click.option("--episodes", "-n", type=click.IntRange(1, 100_000), default=10, show_default=True,
              help="Of each task.")  # fmt: skip
@click.option("--out", "-o", required=True, help="A new folder.")
@click.option(
    "--format", "-f", "kind", type=click.Choice(WRITTEN), default="lerobot", show_default=True
)
@click.option("--seed", "-s", type=int, default=0, show_default=True)
@click.option("--successful", is_flag=True, help="Episodes alone in which it succeeded.")
def record(suite: str, protocol: str, changes: tuple[str, ...], **flags: Any) -> None:
    """Play episodes of SUITE and write them as a LeRobotDataset (v3.0) or for Minari.

    Nothing is lost, but by lerobot-video.
    """
    from perdure.cli import evaluating
    from perdure.run.evaluation import evaluation_spec

    sys.exit(evaluating.record(evaluation_spec(suite, protocol, None, changes), **flags))


@main.command()
@click.argument("source", type=AnyPath(exists=True, file_okay=False))
@click.argument("out")
@click.option(
    "--format", "-f", "kind", type=click.Choice(WRITTEN), default="lerobot", show_default=True
)
@click.option(
    "--fps", type=click.IntRange(1, 1000), help="Steps a second, where SOURCE does not say."
)
def convert(source: Path, out: str, **flags: Any) -> None:
    """Write the dataset in folder SOURCE again into folder OUT: LeRobot's, Minari's, RLDS and
    demonstrations in HDF5 (perdure demos) are read."""
    from perdure.cli import evaluating

    sys.exit(evaluating.convert(str(source), out, **flags))
