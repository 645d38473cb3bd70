"""The bodies of the verbs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from perdure.cli.group import ExecutionFlags
from perdure.cli.terminal import remark, say, tell
from perdure.errors import Interrupted, SpecError, UnknownName
from perdure.show.screen import SafeConsole
from perdure.specs import Spec

if TYPE_CHECKING:
    from perdure.run.spec import RunSpec
    from perdure.store.run import Run


def run(curriculum: str | None, flags: Mapping[str, Any], how: ExecutionFlags) -> int:
    """Plan, execute, summarise."""
    from perdure.run.executors import make_executor
    from perdure.run.experiment import execute, prepare
    from perdure.run.plan import make_plan
    from perdure.run.schedule import shard_of
    from perdure.run.signals import interruptible
    from perdure.show.live import LiveView
    from perdure.show.summary import by_task, kept_sentence, summarise
    from perdure.store.run import Run

    spec = spec_of(curriculum, flags)
    quiet, shard, debug = how.quiet, how.shard, how.debug
    make_executor(spec.executor)
    screen = SafeConsole(stderr=True, quiet=quiet)
    try:
        with interruptible():
            plan = replace(make_plan(spec), mix_code=how.mix_code)
            jobs = plan.jobs if shard is None else shard_of(plan, shard)
            prepare(plan, how.any_video)
            count, where = len(jobs), escape(str(plan.path))
            what = escape(plan.spec.curriculum)
            many = f"{count} lifetime{'s' * (count != 1)}"
            if shard is not None:
                many += f" (share {shard} of {len(plan.jobs)})"
            screen.print(f"{many} of {what} into {where}", highlight=False)
            # A debugger and a table that is redrawn would fight for the terminal.
            quiet_view = SafeConsole(stderr=True, quiet=quiet or debug)
            with LiveView(plan.path, quiet_view):
                outcomes = execute(
                    plan,
                    video=how.any_video,
                    prepared=True,
                    jobs=jobs,
                    debug=debug,
                    recorded=how.videos or 0,
                    eval_workers=how.eval_workers,
                )
    except Interrupted as e:
        again = shlex.join(["perdure", *sys.argv[1:]])
        tell(f"\nstopped by signal {e.signum}; nothing is lost. To resume: {again}")
        return 128 + e.signum
    failed = [o for o in outcomes if o.status == "failed"]
    finished = Run(plan.path)
    if not quiet and shard is None and len(failed) < len(outcomes):
        try:
            by_task(finished).show()
            summarise(finished)[0].show()
            remark(kept_sentence(finished))
        except UnknownName as e:
            tell(f"no table, since nothing was scored: {e}")  # Regression on data: only a loss.
    _tell_repeats(finished, [o.job.id for o in outcomes if o.status == "done"], quiet)
    occupied = [o for o in failed if o.occupied]
    failed = [o for o in failed if not o.occupied]
    for o in failed:
        tell(f"failed: {o.job.id}: {o.error}")
    for o in occupied:
        tell(f"left to its runner: {o.job.id}: {o.error.partition(': ')[2]}")
    if failed:
        folder = finished.folder.lifetime(failed[0].job.id)
        if debug and Spec.parse(spec.executor).name != "serial":  # Which has printed it.
            tell(str((folder.error() or {}).get("traceback", "")))
        tell(
            f"{len(failed)} of {len(outcomes)} lifetimes failed (traceback: {folder.error_in}, or "
            "--debug); mend the cause and run the same command to go on (with --mix-code, if code has "
            "changed by then)"
        )
        tell(f"to repeat it from its last commit, in a debugger: {_in_debugger(sys.argv[1:])}")
    if not quiet:
        say(f"rows: {plan.path}")
        say(f"next: perdure report {shlex.quote(str(plan.path))}")
    return 1 if failed or occupied else 0


def _in_debugger(args: Sequence[str]) -> str:
    """The command that runs what failed again, in this process, and stops there."""
    kept: list[str] = []
    for k, arg in enumerate(args):
        after = k > 0 and args[k - 1] == "--executor"
        if not after and arg not in ("--executor", "--debug") and "--executor=" not in arg:
            kept.append(arg)
    return shlex.join(["perdure", *kept, "--executor", "serial", "--debug"])


def spec_of(curriculum: str | None, flags: Mapping[str, Any]) -> RunSpec:
    """The specification that a name or a TOML file and the flags make."""
    from perdure.run.spec import RunSpec

    given = {k: v for k, v in flags.items() if v not in (None, ())}
    steps = given.pop("steps", None)
    if curriculum is None:
        raise SpecError(
            "name a curriculum (perdure ls curricula), a task, file.py:function or spec.toml"
        )
    if curriculum.endswith(".toml"):
        spec = RunSpec.from_toml(Path(curriculum), **given)
    else:
        if "agents" not in given:
            raise SpecError("name at least one agent: --agent NAME (perdure ls agents)")
        spec = RunSpec(curriculum, **given)
    if steps is None:
        return spec
    named = Spec.parse(spec.curriculum)
    return replace(spec, curriculum=str(replace(named, params={**named.params, "steps": steps})))


def _tell_repeats(finished: Run, jobs: Sequence[str], quiet: bool) -> None:
    """Whether environments repeat, in a line; more if they do not."""
    from perdure.store.repeats import repeats

    found = repeats(finished.folder.lifetime(job) for job in jobs)
    if found.played and not quiet:
        say(f"environments: {found}")
    for difference in found.differences[:3]:
        tell(f"an environment does not repeat: {difference}")
    if found.agreed < found.played:
        tell(
            "its results cannot be had again, nor its lifetimes resumed; perdure check TASK says more"
        )


def watch(folder: Path) -> int:
    """A live table."""
    from perdure.show.live import watch as follow
    from perdure.store.run import Run

    try:
        return follow(Run(folder).path, SafeConsole())
    except KeyboardInterrupt:
        return 0


def doctor(thorough: bool = False) -> int:
    """What is installed here."""
    from perdure.cli.doctor import diagnose

    return diagnose(SafeConsole(), thorough)
