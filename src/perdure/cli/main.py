"""``perdure``: run, ls, check, watch, doctor."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click

import perdure
from perdure.errors import Interrupted, PerdureError

PARTS = ("suites", "curricula", "agents", "strategies", "metrics")


class Group(click.Group):
    """Prints Perdure's own errors as one sentence, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PerdureError as e:
            click.echo(f"perdure: {type(e).__name__}: {e}", err=True)
            sys.exit(2)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(perdure.__version__, prog_name="perdure")
def main() -> None:
    """Does what your agent learned perdure?"""


@main.command()
@click.argument("curriculum", required=False)
@click.option("--agent", "-a", "agents", multiple=True, help="NAME[,key=value…]; repeatable.")
@click.option("--lifetimes", "-n", type=int, help="Lifetimes per agent (1).")
@click.option("--seed", "-s", type=int, help="Seed of the first lifetime; they count up (0).")
@click.option("--out", "-o", help="Folder of the run (runs/CURRICULUM).")
@click.option("--executor", help="serial | processes[,workers=N,deadline=S,retries=N].")
@click.option("--envs", type=int, help="Environments side by side per task (1).")
@click.option("--experts/--no-experts", default=None, help="Also run the single-task experts.")
@click.option("--hide-tasks/--show-tasks", default=None, help="Hide task identity from agents.")
@click.option("--checkpoint", type=int, help="Commit every so many steps (50000).")
@click.option("--quiet", "-q", is_flag=True, help="No progress, no table.")
def run(curriculum: str | None, quiet: bool, **flags: Any) -> None:
    """Run agents through CURRICULUM (a name, file.py:function, or spec.toml).

    The same command again resumes; a finished run returns at once.
    """
    from perdure.cli import verbs

    sys.exit(verbs.run(curriculum, quiet, flags))


@main.command()
@click.argument("part", required=False, type=click.Choice(PARTS))
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def ls(part: str | None, as_json: bool) -> None:
    """List what is there to run: suites, curricula, agents, strategies, metrics."""
    from perdure.cli import verbs

    verbs.ls(PARTS if part is None else (part,), as_json)


@main.command()
@click.argument("name")
def check(name: str) -> None:
    """Check a task, suite, curriculum, agent or run folder. Exit 0 only if all is well."""
    from perdure.cli import verbs

    sys.exit(verbs.check(name))


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def watch(folder: Path) -> None:
    """Follow a running experiment, from any machine that sees its folder."""
    from perdure.cli import verbs

    verbs.watch(folder)


@main.command()
def doctor() -> None:
    """Say which extras work here, and how to mend those that do not."""
    from perdure.cli import verbs

    sys.exit(verbs.doctor())


def entry() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # A terminal without − or × gets a question mark.
    try:
        main()
    except Interrupted as e:
        sys.exit(128 + e.signum)
