"""report, animate and export."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from perdure.cli.group import AnyPath, main, one_thread, partial_option


@main.command()
@click.argument("folders", type=AnyPath(), nargs=-1, required=True)
@click.option("--out", "-o", type=AnyPath(dir_okay=False),
              help="The page (FOLDER/_report.html).")  # fmt: skip
@click.option("--figures", type=AnyPath(file_okay=False),
              help="Also every plot as PDF, SVG and PNG, with its CSV, into this folder.")  # fmt: skip
@click.option("--title", help="Heading of the page.")
@click.option("--ste", multiple=True, metavar="[TASK=]DIR", help="Single-task experts of logs.")
@click.option("--anyway", is_flag=True, help="Also if the curricula differ.")
@partial_option
def report(
    folders: tuple[Path, ...],
    out: Path | None,
    figures: Path | None,
    title: str | None,
    ste: tuple[str, ...],
    anyway: bool,
    partial: bool,
) -> None:
    """Turn runs into one HTML file that opens anywhere, offline."""
    from perdure.cli import showing

    sys.exit(showing.report(folders, out, figures, title, ste, anyway, partial))


@main.command()
@click.argument("folder", metavar="RUN", type=AnyPath())
@click.option("--agent", "-a", "agents", multiple=True, help="A row (who kept least and most).")
@click.option("--task", help="Its videos (the first that was learned).")
@click.option("--out", "-o", type=AnyPath(), required=True, help="The GIF.")
def animate(folder: Path, agents: tuple[str, ...], task: str | None, out: Path) -> None:
    """Make a looping picture of what agents kept, from the videos of RUN.

    The same episode of a task: just learned, two tasks later, at the end of life; a row an agent.
    """
    one_thread()
    from perdure.cli import showing

    sys.exit(showing.animate(folder, agents, task, out))


@main.command()
@click.argument("run", type=AnyPath())
@click.option("--format", "-f", "kind", required=True,
              type=click.Choice(["csv", "json", "parquet", "l2logger", "tensorboard", "compact", "safetensors"]))  # fmt: skip
@click.option("--out", "-o", type=AnyPath(), required=True)
@partial_option
def export(run: Path, kind: str, out: Path, partial: bool) -> None:
    """Write a run's rows as CSV, JSON or Parquet, as L2Logger directories, for TensorBoard, or as a
    compact run: a copy without checkpoints and videos, for publishing, that every verb but run reads;
    or its agents' weights as safetensors, a file for each lifetime."""
    from perdure.cli import measuring

    sys.exit(measuring.export(run, kind, out, partial))
