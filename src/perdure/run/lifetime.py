"""One job: open its log, build its agent, live; say what happened."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from perdure.errors import Corrupt, LockedError, StoreError
from perdure.run.crashes import crash_summary, traced
from perdure.run.eval_pool import EvalPool
from perdure.run.guards import exit_fault
from perdure.run.loop import LifetimeLoop, Services
from perdure.run.mixing import check_lifetime
from perdure.run.persistence import refuse_changed
from perdure.run.plan import Job, Plan
from perdure.run.progress import Progress, VideoProgress
from perdure.run.pruning import PruningGate
from perdure.run.repeat import Repeater
from perdure.run.video import Recorder, moments, videos_expected
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.log import Lifetime, LifetimeLog
from perdure.store.plain import clipped

PACKAGES = (
    "perdure",
    "numpy",
    "gymnasium",
    "pyarrow",
    "torch",
    "minigrid",
    "mujoco",
    "metaworld",
    "stable_baselines3",
)
"""Whose versions a session writes down."""

NOTE = "perdure: "
"""How a line for the user begins; an executor passes it on from wherever the lifetime runs."""
MOST_TRACE = 100_000
"""Characters of a traceback that are kept."""
FAILED = "failed: "
"""How a worker begins its last words."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    job: Job
    status: Literal["done", "failed"]
    error: str = ""

    @property
    def occupied(self) -> bool:
        """Whether another process has the lifetime, which has then not failed."""
        return self.error.startswith(LockedError.__name__)


def run_lifetime(plan: Plan, job: Job, beat: Callable[[], None] | None = None) -> None:
    """Run a lifetime to its end from wherever its log stands. Raises what stopped it."""
    folder = plan.lifetime(job)
    path = folder.path
    description = plan.describe(job)
    described, damage = _described(folder)
    if described is not None:
        # Before the log is opened: another lifetime's files are not ours to repair.
        refuse_changed(f"{path} holds another lifetime", without_code(described), description)
    with LifetimeLog(path, job.agent, job.seed, job.expert) as log:
        if described is None:
            folder.write_description(description)
        notes = [*damage, *log.notes]
        if crash := folder.crash():
            notes.append(f"{path}: the last session crashed: {crash_summary(crash)}")
        for note in notes:
            say(note)
        if log.done:
            return
        session = {"started": time.time(), "argv": sys.argv, "commit": len(log.commits)}
        # The last sign of life of the session before: with it, time spent can be distinguished from pauses.
        session["previous_end"] = folder.last_sign()
        session["video"] = plan.records(job)
        folder.write_session(log.session, {**session, **provenance(), "notes": notes})
        folder.clear_error()
        try:
            with traced(folder):
                records = check_lifetime(plan, job, described or {}, log.commits)
                if (described or {}).get("code") != records:
                    folder.write_description({**description, "code": records})
                _live(plan, job, log, beat)
        except LockedError:
            raise  # The lifetime is another's now, and has not failed.
        except SystemExit as e:
            error = exit_fault(e)
            write_error(folder, error)
            raise error from e
        except Exception as e:
            write_error(folder, e)
            raise


def _live(plan: Plan, job: Job, log: LifetimeLog, beat: Callable[[], None] | None) -> None:
    config, folder = plan.config(job), log.folder
    agent = plan.make_agent(job.agent, config.setup())
    recorder = videos = None
    if plan.records(job):
        start = log.position["exp"] if log.position else 0
        videos = VideoProgress(videos_expected(config.curriculum))
        shown = moments(config.curriculum)
        recorder = Recorder(folder, config.suites, start, say, videos, shown)
    progress = Progress(config.curriculum, folder, videos, config.measure)
    repeater = Repeater(config)
    gate = None
    if plan.pruning:
        gate = PruningGate(RunFolder(plan.path).sweep(), job.agent, job.seed, folder)
    pool = None
    if plan.eval_workers > 1 and not plan.debug:
        pool = EvalPool(plan.eval_command(job), plan.eval_workers)
    services = Services(progress, beat, recorder, repeater, gate, pool)
    loop = LifetimeLoop(config, agent, log, services)
    try:
        loop.run()
    finally:
        if pool is not None:
            pool.close()
        if recorder is not None:
            recorder.close()
    found = repeater.play(progress.done_steps, lambda: loop.beat(done=True))
    if found is not None:
        try:
            folder.write_repeat(found)
        except StoreError as e:
            say(str(e))  # The lifetime is done, and no row depends on it.


def _described(folder: LifetimeFolder) -> tuple[dict[str, Any] | None, list[str]]:
    """A lifetime's description. One that is damaged is as good as none, with a note: it is made again
    from the specification, and the rows tell whose they are."""
    try:
        return folder.description(), []
    except Corrupt as e:
        return None, [f"{e}: done"]


def say(note: str) -> None:
    """A line for the user, from wherever this runs."""
    print(f"{NOTE}{note}", file=sys.stderr)


def finished(plan: Plan, job: Job) -> bool:
    """Whether a job is done and its files are as they were committed: nothing to start for."""
    folder = plan.lifetime(job)
    if folder.status() != "done":
        return False
    try:
        if without_code(folder.description() or {}) != plan.describe(job):
            return False
        owner = (job.agent, job.seed, job.expert)
        return not Lifetime.read(folder.path, verify=True, owner=owner).notes
    except StoreError:
        return False  # Running it finds the same, and repairs or reports it.


def write_error(folder: LifetimeFolder, error: BaseException | str, trace: str = "") -> None:
    """Leave word of a failure in the lifetime's folder."""
    text = error if isinstance(error, str) else describe_error(error)
    if not isinstance(error, str):
        trace = "".join(traceback.format_exception(error))
    try:
        folder.write_error(text, clipped(trace, MOST_TRACE))
    except StoreError as e:
        # A full disk must not hide the error that matters: it is still raised and printed.
        say(str(e))


def describe_error(error: BaseException) -> str:
    """An error in one line: its class and its own words."""
    return clipped(f"{type(error).__name__}: {error}")


def provenance() -> dict[str, Any]:
    """Where and with what a session runs."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": dict(installed()),
        "git": git_revision(),
    }


def without_code(described: Mapping[str, Any]) -> dict[str, Any]:
    """A description without what was executed, which is compared for itself."""
    return {key: value for key, value in described.items() if key != "code"}


@functools.cache
def installed() -> tuple[tuple[str, str], ...]:
    """The packages whose versions matter, and these."""
    found = []
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append((name, importlib.metadata.version(name)))
    return tuple(found)


@functools.cache
def git_revision() -> str | None:
    """The revision of the working folder when this process first asked, marked if it has changes; None
    outside git."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
