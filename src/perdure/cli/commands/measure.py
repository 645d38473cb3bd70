"""measure, compare and leaderboard."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from perdure.cli.group import AnyPath, main, one_thread, partial_option


def _measuring(command: Any) -> Any:
    """The options that measure and compare share; those of preset reference carry its own names."""
    choice = click.Choice
    windows = choice(["flat", "hanning", "hamming", "bartlett", "blackman", "none"])
    file = AnyPath(exists=True, dir_okay=False)
    options = [
        click.option("--preset", type=choice(["paper", "reference"]), default="paper",
                     show_default=True, help="As the papers define, or as l2metrics 3.1.0 computes."),
        click.option("--ste", multiple=True, metavar="[TASK=]DIR",
                     help="Single-task experts: logs or a run; repeatable."),
        click.option("--metric", "names", multiple=True,
                     help="NAME, a paper's (libero) or file.py:object; repeatable (all)."),
        click.option("--json", "json_file", type=AnyPath(dir_okay=False),
                     help="Write everything as strict JSON."),
        click.option("--perf-measure", "-p", help="The measure of performance."),
        click.option("--smoothing-method", "-g", type=windows),
        click.option("--window-length", "-w", type=click.IntRange(min=1)),
        click.option("--clamp-outliers/--no-clamp-outliers", "-x", default=None),
        click.option("--normalization-method", "-n", type=choice(["task", "run", "none"])),
        click.option("--data-range-file", "-d", type=file, help="JSON {task: {min, max}}."),
        click.option("--smooth-eval-data", "-G", is_flag=True, default=None),
        click.option("--variant-mode", "-r", type=choice(["aware", "agnostic"])),
        click.option("--ste-averaging-method", "-v", type=choice(["metrics", "time"])),
        click.option("--aggregation-method", "-a", type=choice(["mean", "median"])),
        click.option("--maintenance-method", "-m", type=choice(["mrlep", "mrtlp", "both"])),
        click.option("--transfer-method", "-t", type=choice(["ratio", "contrast", "both"])),
        click.option("--unit", "-u", type=choice(["exp_num", "steps"]), help="Concerns plots alone."),
        click.option("--load-settings", "-c", type=file, help="JSON of these options; it wins."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@click.argument("folder", type=AnyPath())
@partial_option
@_measuring
def measure(
    folder: Path,
    partial: bool,
    preset: str,
    ste: tuple[str, ...],
    names: tuple[str, ...],
    json_file: Path | None,
    **flags: Any,
) -> None:
    """Measure a run, an L2Logger log, or a folder of them.

    Exit 0 only if every lifetime was measured.
    """
    one_thread()
    from perdure.cli import measuring
    from perdure.measure.runs import MeasureOptions

    how = MeasureOptions(preset, ste, names, flags)
    sys.exit(measuring.measure(folder, how, json_file, partial))


@main.command()
@click.argument("folders", type=AnyPath(), nargs=-1, required=True)
@click.option("--baseline", help="Compare every agent with this one alone.")
@click.option("--anyway", is_flag=True, help="Also if the curricula differ.")
@click.option("--all", "every", is_flag=True, help="Also differences that are not significant.")
@partial_option
@_measuring
def compare(
    folders: tuple[Path, ...],
    baseline: str | None,
    anyway: bool,
    every: bool,
    partial: bool,
    preset: str,
    ste: tuple[str, ...],
    names: tuple[str, ...],
    json_file: Path | None,
    **flags: Any,
) -> None:
    """Compare agents over their lifetimes: a verdict, intervals, corrected significance."""
    one_thread()
    from perdure.cli import measuring
    from perdure.measure.runs import MeasureOptions

    how = MeasureOptions(preset, ste, names, flags)
    sys.exit(measuring.compare(folders, how, baseline, anyway, json_file, partial, every))


@main.command()
@click.argument("folder", type=AnyPath())
@click.option("--metric", "names", multiple=True, help="The first decides; repeatable.")
@click.option("--curriculum", help="Only this one: its name, or how its fingerprint begins.")
@click.option("--html", type=AnyPath(dir_okay=False), help="Also as a page.")
@partial_option
def leaderboard(
    folder: Path,
    names: tuple[str, ...],
    curriculum: str | None,
    html: Path | None,
    partial: bool,
) -> None:
    """Rank the agents of all runs of a curriculum found under FOLDER."""
    from perdure.cli import showing

    sys.exit(showing.leaderboard(folder, names, curriculum, html, partial))
