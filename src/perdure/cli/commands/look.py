"""watch, view, play and gallery."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from perdure.cli.group import AnyPath, main


@main.command()
@click.argument("folder", type=AnyPath())
def watch(folder: Path) -> None:
    """Follow a running experiment, from any machine that sees its folder."""
    from perdure.cli import verbs

    sys.exit(verbs.watch(folder))


@main.command()
@click.argument("folders", type=AnyPath(), nargs=-1, required=True)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes a free one.")
@click.option("--anyway", is_flag=True, help="Also if the curricula differ.")
def view(folders: tuple[Path, ...], port: int, anyway: bool) -> None:
    """Serve the report of a running experiment on this machine, refreshed as rows land."""
    from perdure.cli import showing

    sys.exit(showing.view(folders, port, anyway))


@main.command()
@click.argument("run", type=AnyPath())
@click.option("--agent", "-a", default="", help="Its label; the only one if there is one.")
@click.option("--task", "-t", default="", help="One whose spaces are the same; of the run or not.")
@click.option("--seed", "-s", type=int, help="Of its lifetime (the first).")
@click.option("--commit", type=int, default=-1, help="As it was at this commit (the last).")
@click.option("--expert", default="", metavar="TASK", help="The single-task expert of this task.")
@click.option("--episodes", "-n", type=click.IntRange(1, 10_000), default=1, show_default=True)
@click.option("--out", "-o", type=AnyPath(dir_okay=False), help="The video (AGENT--TASK.mp4).")
@click.option("--video/--no-video", default=True, help="Record the first episode.")
def play(run: Path, **what: Any) -> None:
    """Play a trained agent of RUN on a task: print its score, record its first episode.

    To evaluate it on a whole curriculum, or to train it further, run the agent
    from_run,run=RUN,agent=LABEL[,frozen=true]; in Python, Run(RUN).agent(LABEL) is the agent itself.
    """
    from perdure.cli import playing

    sys.exit(playing.play(run, **what))


@main.command()
@click.argument("name")
@click.argument("file", type=AnyPath(dir_okay=False), required=False)
@click.option("--out", "-o", type=AnyPath(dir_okay=False), help="The same as FILE (NAME.html).")
@click.option("--look", "looks", multiple=True, help="Of a suite that has several; repeatable.")
def gallery(name: str, file: Path | None, out: Path | None, looks: tuple[str, ...]) -> None:
    """Draw how the tasks of a suite or curriculum begin, as FILE.html or a contact sheet FILE.png.

    NAME takes parameters: libero/eval-spatial or libero/eval-folder,folder=DIR. A suite that has other
    things to show draws those.
    """
    from perdure.cli import picturing

    sys.exit(picturing.gallery(name, file or out, looks))
