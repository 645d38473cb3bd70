"""``perdure``: run, sweep, watch, view, measure, compare, report, animate, leaderboard, export, play,
eval, protocols, selftest, record, serve, demos, gallery, generate, ls, check, doctor."""

from __future__ import annotations

import os
import sys
import threading
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click

import perdure
from perdure.datasets import WRITTEN
from perdure.errors import Interrupted, PerdureError
from perdure.store.urls import is_url, place

PARTS = ("suites", "curricula", "agents", "strategies", "metrics", "executors")


PURPOSES = {
    "Run": ("run", "sweep", "check"),
    "Evaluate policies": ("eval", "protocols", "selftest", "serve"),
    "Make tasks and data": ("generate", "demos", "record"),
    "Look": ("watch", "view", "play", "gallery"),
    "Measure": ("measure", "compare", "leaderboard"),
    "Share": ("report", "animate", "export"),
    "Find out": ("ls", "doctor"),
}
"""The commands by what one does with them, as ``--help`` lists them; others come under *More*."""


class AnyPath(click.Path):
    """A path that some file system could hold, whether there is anything or not."""

    def __init__(self, **keys: Any) -> None:
        super().__init__(**keys, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("the name is empty", param, ctx)
        if is_url(os.fspath(value)):
            return place(os.fspath(value))
        try:
            os.stat(value)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            pass  # Who reads or writes it has better words.
        except (OSError, ValueError) as e:
            self.fail(str(e), param, ctx)
        return super().convert(value, param, ctx)


class Group(click.Group):
    """Lists commands by purpose, and prints Perdure's own errors as one sentence, without a traceback."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands under what one does with them."""
        names = self.list_commands(ctx)
        named = {name for group in PURPOSES.values() for name in group}
        groups = {**PURPOSES, "More": tuple(n for n in names if n not in named)}
        limit = formatter.width - 6 - max(map(len, names))
        for title, group in groups.items():
            rows = [
                (name, command.get_short_help_str(limit))
                for name in group
                if (command := self.get_command(ctx, name)) is not None and not command.hidden
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=12)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PerdureError as e:
            from perdure.cli.terminal import tell
            from perdure.store.plain import clipped

            if ctx.params.get("debug"):
                import traceback

                tell("".join(traceback.format_exception(e)))
            tell(clipped(f"perdure: {type(e).__name__}: {e}", 20_000))
            sys.exit(2)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(perdure.__version__, prog_name="perdure")
@click.option("--debug", is_flag=True, help="Print errors with their traceback.")
def main(debug: bool) -> None:
    """Does what your agent learned perdure?"""


_eval_workers = click.option(
    "--eval-workers",
    type=click.IntRange(1, 1000),
    default=1,
    metavar="N",
    help="Share each lifetime's evaluations over N processes (1); the rows are the same.",
)


@main.command()
@click.argument("curriculum", required=False)
@click.option("--agent", "-a", "agents", multiple=True, metavar="[LABEL=]NAME[,KEY=VALUE…]",
              help="perdure ls agents NAME has its parameters; repeatable.")  # fmt: skip
@click.option("--steps", type=int, help="Parameter steps of the curriculum or task.")
@click.option("--lifetimes", "-n", type=int, help="Lifetimes per agent (1).")
@click.option("--seed", "-s", type=int, help="Seed of the first lifetime; they count up (0).")
@click.option("--out", "-o", help="Folder of the run (runs/CURRICULUM).")
@click.option(
    "--executor", help="serial | processes[,workers=N,…] | ray[,address=auto,…]: ls executors NAME."
)
@click.option("--envs", type=int, help="Environments side by side per task (1).")
@click.option("--experts/--no-experts", default=None, help="Also run the single-task experts.")
@click.option("--hide-tasks/--show-tasks", default=None, help="Hide task identity from agents.")
@click.option("--checkpoint", type=int, help="Commit every so many steps (50000).")
@click.option("--video", is_flag=True,
              help="Film evaluations: before and after learning, at the end, best and worst.")  # fmt: skip
@click.option("--films", type=click.IntRange(1), metavar="N",
              help="Film N lifetimes of each agent alone, and no experts.")  # fmt: skip
@click.option("--mix-code", is_flag=True, help="Also if code changed since earlier lifetimes.")
@click.option("--debug", is_flag=True,
              help="Print tracebacks; with --executor serial, open a debugger where it fails.")  # fmt: skip
@_eval_workers
@click.option("--shard", metavar="I/N", help="Only the I-th of N shares of the lifetimes.")
@click.option("--plan", is_flag=True, help="Say what it would run and cost; run nothing.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, no table.")
def run(
    curriculum: str | None,
    video: bool,
    films: int | None,
    mix_code: bool,
    debug: bool,
    eval_workers: int,
    shard: str | None,
    plan: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Run agents through CURRICULUM: its name, a task's, file.py:function, or spec.toml.

    Names take parameters: gym/CartPole-v1,steps=5000 or metaworld/sequence,tasks=[reach,push]. An
    agent may have a label, by which results and folders are called: fast=ppo,lr=1e-3. A strategy and
    a learner are joined by +: ewc+classifier. Values are TOML; words need no quotes.

    The same command again resumes; a finished run returns at once.
    """
    click.get_current_context().find_root().params["debug"] |= debug
    if plan:
        from perdure.cli import planning

        sys.exit(planning.show_plan(curriculum, flags, shard))
    from perdure.cli import verbs

    how = (video, mix_code, debug, films or 0, shard, eval_workers)
    sys.exit(verbs.run(curriculum, quiet, flags, *how))


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
@click.option(
    "--executor", help="serial | processes[,workers=N,…] | ray[,address=auto,…]: ls executors NAME."
)
@click.option("--envs", type=int, help="Environments side by side per task (1).")
@click.option("--hide-tasks/--show-tasks", default=None, help="Hide task identity from agents.")
@click.option("--checkpoint", type=int, help="Commit every so many steps (50000).")
def sweep(curriculum: str, agent: str, search: tuple[str, ...], **flags: Any) -> None:
    """Choose AGENT's parameters on CURRICULUM, with Optuna, on seeds that no result uses.

    The same command again resumes.
    """
    _one_thread()
    from perdure.cli import sweeping

    sys.exit(sweeping.sweep(curriculum, agent, search, flags))


def _one_thread() -> None:
    """Measuring multiplies no large matrices: a pool of threads for that costs more than it gives,
    and is made when numpy is imported."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


_partial = click.option(
    "--partial",
    is_flag=True,
    help="Go on without lifetimes that are missing, unfinished or damaged: exit 0.",
)
"""Everywhere the same: without it, what a run lacks makes the exit code 1, or export refuse."""


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
@_partial
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
    _one_thread()
    from perdure.cli import measuring

    sys.exit(measuring.measure(folder, preset, ste, names, flags, json_file, partial))


@main.command()
@click.argument("folders", type=AnyPath(), nargs=-1, required=True)
@click.option("--baseline", help="Compare every agent with this one alone.")
@click.option("--anyway", is_flag=True, help="Also if the curricula differ.")
@click.option("--all", "every", is_flag=True, help="Also the differences that cannot be told.")
@_partial
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
    _one_thread()
    from perdure.cli import measuring

    code = measuring.compare(
        folders, preset, ste, names, baseline, anyway, flags, json_file, partial, every
    )
    sys.exit(code)


@main.command()
@click.argument("run", type=AnyPath())
@click.option("--format", "-f", "kind", required=True,
              type=click.Choice(["csv", "json", "parquet", "l2logger", "tensorboard", "compact", "safetensors"]))  # fmt: skip
@click.option("--out", "-o", type=AnyPath(), required=True)
@_partial
def export(run: Path, kind: str, out: Path, partial: bool) -> None:
    """Write a run's rows as CSV, JSON or Parquet, as L2Logger directories, for TensorBoard, or as a
    compact run: a copy without checkpoints and films, for publishing, that every verb but run reads;
    or its agents' weights as safetensors, a file for each lifetime."""
    from perdure.cli import measuring

    sys.exit(measuring.export(run, kind, out, partial))


@main.command()
@click.argument("run", type=AnyPath())
@click.option("--agent", "-a", default="", help="Its label; the only one if there is one.")
@click.option("--task", "-t", default="", help="One whose spaces are the same; of the run or not.")
@click.option("--seed", "-s", type=int, help="Of its lifetime (the first).")
@click.option("--commit", type=int, default=-1, help="As it was at this commit (the last).")
@click.option("--expert", default="", metavar="TASK", help="The single-task expert of this task.")
@click.option("--episodes", "-n", type=click.IntRange(1, 10_000), default=1, show_default=True)
@click.option("--out", "-o", type=AnyPath(dir_okay=False), help="The film (AGENT--TASK.mp4).")
@click.option("--film/--no-film", default=True, help="Film the first episode.")
def play(run: Path, **what: Any) -> None:
    """Play a trained agent of RUN on a task: print its score, film its first episode.

    To evaluate it on a whole curriculum, or to train it further, run the agent
    from_run,run=RUN,agent=LABEL[,frozen=true]; in Python, Run(RUN).agent(LABEL) is the agent itself.
    """
    from perdure.cli import playing

    sys.exit(playing.play(run, **what))


@main.command("eval")
@click.argument("suite")
@click.option("--policy", "-p", "policies", multiple=True, required=True, metavar="[LABEL=]P",
              help="ws://HOST:PORT, RUN[:AGENT], file.py:Policy or an agent; repeatable.")  # fmt: skip
@click.option("--protocol", default="", help="Whose: perdure protocols SUITE lists them.")
@click.option("--episodes", "-n", type=click.IntRange(min=1), help="Of each task (the protocol's).")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
              help="In place of the protocol's value; the hash changes too. Repeatable.")  # fmt: skip
@click.option("--seed", "-s", type=int, help="Of the first lifetime (the protocol's).")
@click.option(
    "--lifetimes", type=int, help="Evaluations of each policy, with seeds counting up (1)."
)
@click.option("--envs", type=int, help="Environments side by side, in one query (2).")
@click.option("--executor", help="serial | processes[,workers=N,deadline=S,retries=N].")
@_eval_workers
@click.option("--out", "-o", default="", help="Folder of the run (runs/eval-SUITE-PROTOCOL).")
@click.option("--video", is_flag=True, help="Film the first, best and worst episode of each task.")
@click.option(
    "--preflight/--no-preflight", default=True, help="Check conventions before the first episode."
)
@click.option("--timeout", type=float, help="Seconds to wait for a server's answer (60).")
@click.option("--anywhere", is_flag=True, default=None, help="Servers may be on other machines.")
@click.option("--mix-code", is_flag=True, help="Also if code changed since earlier lifetimes.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, no table.")
def eval_(
    suite: str,
    policies: tuple[str, ...],
    protocol: str,
    episodes: int | None,
    changes: tuple[str, ...],
    timeout: float | None,
    anywhere: bool | None,
    **flags: Any,
) -> None:
    """Evaluate policies on SUITE by a named protocol: success by task, with intervals.

    SUITE is libero/spatial (or libero_spatial), metaworld/mt10, …, or one task. Several policies play the
    same episodes and are compared on them. The same command again resumes; another policy with the same
    --out joins those that are there.
    """
    from perdure.cli import evaluating

    servers = {"timeout": timeout, "anywhere": anywhere}
    sys.exit(
        evaluating.evaluate(suite, policies, protocol, episodes, changes, servers=servers, **flags)
    )


@main.command()
@click.argument("suite", required=False)
@click.argument("names", nargs=-1)
def protocols(suite: str | None, names: tuple[str, ...]) -> None:
    """List evaluation protocols with their hashes; of a SUITE all values; of two NAMES what differs."""
    from perdure.cli import evaluating

    sys.exit(evaluating.protocols(suite, names))


@main.command()
@click.argument("suite")
@click.option("--protocol", default="", help="Whose conventions the replayed policy expects.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
              help="Scramble this one, to see that it is found. Repeatable.")  # fmt: skip
@click.option("--expert", default="", help="The agent that demonstrates (the suite's own).")
@click.option("--episodes", "-n", type=click.IntRange(1, 1000), default=2, show_default=True)
@click.option("--demonstrations", default="", metavar="DIR",
              help="Replay these in place of the expert: what record --format minari wrote.")  # fmt: skip
@click.option("--socket/--no-socket", default=True, help="Through a socket, as servers are asked.")
def selftest(suite: str, **flags: Any) -> None:
    """Replay an expert through the path of an evaluation: it must reach the expert's success.

    A convention that is not the protocol's is found and named. Exit 0 only if all is well.
    """
    from perdure.cli import evaluating

    sys.exit(evaluating.selftest(suite, **flags))


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
def record(suite: str, **flags: Any) -> None:
    """Play episodes of SUITE and write them as a LeRobotDataset (v3.0) or for Minari.

    Nothing is lost, but by lerobot-video.
    """
    from perdure.cli import evaluating

    sys.exit(evaluating.record(suite, **flags))


@main.command()
@click.argument("source", type=click.Path(exists=True, file_okay=False))
@click.argument("out")
@click.option(
    "--format", "-f", "kind", type=click.Choice(WRITTEN), default="lerobot", show_default=True
)
@click.option(
    "--fps", type=click.IntRange(1, 1000), help="Steps a second, where SOURCE does not say."
)
def convert(source: str, out: str, **flags: Any) -> None:
    """Write the dataset in folder SOURCE anew into folder OUT: LeRobot's, Minari's and RLDS are read."""
    from perdure.cli import evaluating

    sys.exit(evaluating.convert(source, out, **flags))


@main.command()
@click.argument("policy")
@click.option(
    "--for", "suite", default="", help="The suite it acts in; a run's agent knows its own."
)
@click.option("--protocol", default="", help="By which clients will evaluate it.")
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="As for eval; repeatable."
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option("--clients", type=click.IntRange(1, 1024), default=8, show_default=True,
              help="Environments at a time.")  # fmt: skip
@click.option("--anywhere", is_flag=True, help="HOST may be open to other machines.")
def serve(policy: str, **flags: Any) -> None:
    """Serve a POLICY over openpi's websocket protocol: RUN[:AGENT], file.py:Agent or an agent's name."""
    from perdure.cli import evaluating

    sys.exit(evaluating.serve(policy, **flags))


@main.command()
@click.argument("what", required=False)
@click.argument("out", required=False, type=AnyPath(file_okay=False))
@click.option("--per-task", type=click.IntRange(1, 100_000), default=50, show_default=True)
@click.option("--noise", type=float, help="Standard deviation added to the expert's actions.")
@click.option("--cameras", help="Whose pictures: names with commas, none for no pictures.")
@click.option("--size", type=int, help="Width and height of a picture.")
@click.option("--seed", "-s", type=int, default=0, show_default=True)
@click.option("--workers", "-w", type=click.IntRange(1, 256), default=1, show_default=True,
              help="Processes.")  # fmt: skip
@click.option("--check", type=AnyPath(file_okay=False), metavar="OUT",
              help="Only read all files there and name the damaged ones.")  # fmt: skip
def demos(what: str | None, out: Path | None, check: Path | None, **flags: Any) -> None:
    """Collect demonstrations of scripted experts into OUT: of WHAT, as in libero/object,
    libero/spatial-3, metaworld/reach or metaworld/all. Called again it goes on where it was.

    One HDF5 file a task, in the layout of robomimic and LIBERO; only successful episodes.
    """
    from perdure.cli import demonstrating

    if check is not None:
        sys.exit(demonstrating.check(check))
    if what is None or out is None:
        raise click.UsageError("WHAT and OUT are needed, as in: perdure demos libero/object demos/")
    if flags["workers"] > 1:
        _one_thread()
    names = flags.pop("cameras")
    params = {k: flags.pop(k) for k in ("noise", "size")}
    if names is not None:
        params["cameras"] = [] if names == "none" else names.split(",")
    given = {k: v for k, v in params.items() if v is not None}
    sys.exit(demonstrating.demos(what, out, params=given, **flags))


@main.command()
@click.argument("folders", type=AnyPath(), nargs=-1, required=True)
@click.option("--out", "-o", type=AnyPath(dir_okay=False),
              help="The page (FOLDER/_report.html).")  # fmt: skip
@click.option("--figures", type=AnyPath(file_okay=False),
              help="Also every plot as PDF, SVG and PNG, with its CSV, into this folder.")  # fmt: skip
@click.option("--title", help="Heading of the page.")
@click.option("--ste", multiple=True, metavar="[TASK=]DIR", help="Single-task experts of logs.")
@click.option("--anyway", is_flag=True, help="Also if the curricula differ.")
@_partial
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
@click.option("--task", help="Its films (the first that was learned).")
@click.option("--out", "-o", type=AnyPath(), required=True, help="The GIF.")
def animate(folder: Path, agents: tuple[str, ...], task: str | None, out: Path) -> None:
    """Make a looping picture of what agents kept, from the films of RUN.

    The same episode of a task: just learned, two tasks later, at the end of life; a row an agent.
    """
    _one_thread()
    from perdure.cli import showing

    sys.exit(showing.animate(folder, agents, task, out))


@main.command()
@click.argument("folder", type=AnyPath())
@click.option("--metric", "names", multiple=True, help="The first decides; repeatable.")
@click.option("--curriculum", help="Only this one: its name, or how its fingerprint begins.")
@click.option("--html", type=AnyPath(dir_okay=False), help="Also as a page.")
@_partial
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


@main.command()
@click.argument("folders", type=AnyPath(), nargs=-1, required=True)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes a free one.")
@click.option("--anyway", is_flag=True, help="Also if the curricula differ.")
def view(folders: tuple[Path, ...], port: int, anyway: bool) -> None:
    """Serve the report of a running experiment on this machine, refreshed as rows land."""
    from perdure.cli import showing

    sys.exit(showing.view(folders, port, anyway))


@main.command()
@click.argument("part", required=False, type=click.Choice((*PARTS, "tasks")))
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def ls(part: str | None, name: str | None, as_json: bool) -> None:
    """List what there is: suites, curricula, agents, strategies, metrics, executors; and, if asked for,
    the tasks of all suites.

    With a NAME, all there is to know of one: its parameters with types and defaults, presets and
    docstring. perdure ls agents ppo, ls curricula gym/sequence, ls tasks SUITE.
    """
    from perdure.cli import listing

    listing.ls(PARTS if part is None else (part,), name, as_json)


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


@main.command()
@click.argument("folder", type=AnyPath())
def watch(folder: Path) -> None:
    """Follow a running experiment, from any machine that sees its folder."""
    from perdure.cli import verbs

    sys.exit(verbs.watch(folder))


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
@click.option("--thorough", is_flag=True, help="Import everything: finds what is broken, slowly.")
def doctor(thorough: bool) -> None:
    """Say what is installed here and what for, and how to install the rest."""
    from perdure.cli import verbs

    sys.exit(verbs.doctor(thorough))


def entry() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # A terminal without − or × gets a question mark.
    if not sys.flags.safe_path and sys.path[0] not in ("", os.path.curdir):
        sys.path.insert(0, "")  # As workers have it: `gym/mine:Env-v0` imports mine.py from here.
    code: Any = 0
    try:
        main()
    except Interrupted as e:
        code = 128 + e.signum
    except SystemExit as e:
        code = e.code
    if threading.active_count() > 1 and isinstance(code, int):
        from perdure.run.signals import leave

        leave(code)
    sys.exit(code)
