"""run, sweep and check."""

from __future__ import annotations

import sys
from typing import Any

import click

from perdure.cli.group import ExecutionFlags, eval_workers, main, one_thread


def _running(command: Any) -> Any:
    """How lifetimes are run: the options that run and sweep share."""
    options = [
        click.option("--executor",
                     help="serial | processes[,workers=N,…] | ray[,address=auto,…]: ls executors NAME."),
        click.option("--envs", type=int, help="Environments side by side per task (1)."),
        click.option("--hide-tasks/--show-tasks", default=None,
                     help="Hide task identity from agents."),
        click.option("--checkpoint", type=int, help="Commit every so many steps (50000)."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@click.argument("curriculum", required=False)
@click.option("--agent", "-a", "agents", multiple=True, metavar="[LABEL=]NAME[,KEY=VALUE…]",
              help="perdure ls agents NAME has its parameters; repeatable.")  # fmt: skip
@click.option("--steps", type=int, help="Parameter steps of the curriculum or task.")
@click.option("--lifetimes", "-n", type=int, help="Lifetimes per agent (1).")
@click.option("--seed", "-s", type=int, help="Seed of the first lifetime; they count up (0).")
@click.option("--out", "-o", help="Folder of the run (runs/CURRICULUM).")
@_running
@click.option("--experts/--no-experts", default=None, help="Also run the single-task experts.")
@click.option("--video", is_flag=True,
              help="Record evaluations: before and after learning, at the end, best and worst.")  # fmt: skip
@click.option("--videos", type=click.IntRange(1), metavar="N",
              help="Record N lifetimes of each agent alone, and no experts.")  # fmt: skip
@click.option("--mix-code", is_flag=True, help="Also if code changed since earlier lifetimes.")
@click.option("--debug", is_flag=True,
              help="Print tracebacks; with --executor serial, open a debugger where it fails.")  # fmt: skip
@eval_workers
@click.option("--shard", metavar="I/N", help="Only the I-th of N shares of the lifetimes.")
@click.option("--plan", is_flag=True, help="Say what it would run and cost; run nothing.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, no table.")
def run(curriculum: str | None, plan: bool, **flags: Any) -> None:
    """Run agents through CURRICULUM: its name, a task's, file.py:function, or spec.toml.

    Names take parameters: gym/CartPole-v1,steps=5000 or metaworld/sequence,tasks=[reach,push]. An
    agent may have a label, by which results and folders are called: fast=ppo,lr=1e-3. A strategy and
    a learner are joined by +: ewc+classifier. Values are TOML; words need no quotes.

    The same command again resumes; a finished run returns at once.
    """
    how = ExecutionFlags.taken_from(flags)
    click.get_current_context().find_root().params["debug"] |= how.debug
    if plan:
        from perdure.cli import planning

        sys.exit(planning.show_plan(curriculum, flags, how.shard))
    from perdure.cli import verbs

    sys.exit(verbs.run(curriculum, flags, how))


@main.command()
@click.argument("curriculum")
@click.option("--agent", "-a", required=True, help="NAME[,key=value…]: what is not searched.")
@click.option("--search", multiple=True, required=True, metavar="NAME=RANGE",
              help="log(1,1e5), uniform(0,1), int(1,8), logint(1,1000) or choice(a,b); repeatable.")  # fmt: skip
@click.option("--trials", "-t", type=int, help="How many (20); more may be asked for later.")
@click.option("--lifetimes", "-n", type=int, help="Lifetimes per trial (1).")
@click.option("--seed", "-s", type=int, help="Of the first lifetime (1000000): validation seeds.")
@click.option("--metric", help="What to choose by (summary.final, the final performance).")
@click.option("--sampler", help="tpe | random | grid.")
@click.option("--pruner", help="none | median | quarter | halving: break off bad trials (none).")
@click.option("--batch", type=int, help="Trials at a time (as many as the executor's workers).")
@click.option("--out", "-o", help="Folder of the sweep (runs/CURRICULUM-sweep).")
@_running
def sweep(curriculum: str, agent: str, search: tuple[str, ...], **flags: Any) -> None:
    """Choose AGENT's parameters on CURRICULUM, with Optuna, on seeds that no result uses.

    The same command again resumes.
    """
    one_thread()
    from perdure.cli import sweeping

    sys.exit(sweeping.sweep(curriculum, agent, search, flags))


@main.command()
@click.argument("name")
@click.option(
    "--on", metavar="CURRICULUM", help="Check an agent or strategy on a short form of this."
)
def check(name: str, on: str | None) -> None:
    """Check a task, suite, curriculum, agent, strategy, metric, executor or run folder.

    NAME may be a registered name or file.py:Name. Of a curriculum, every task is checked. Exit 0 only
    if all is well.
    """
    from perdure.cli import checking

    sys.exit(checking.check(name, on))
