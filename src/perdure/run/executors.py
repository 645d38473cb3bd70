"""Where lifetimes run: one after another here, or side by side in processes of their own.

A cluster executor implements :class:`Executor`: start ``plan.command(job)`` for each job on any
machine that sees the run's folder, and report an :class:`Outcome` when its exit code is known.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Protocol

from perdure import registry
from perdure.errors import Hung, SpecError, UnknownName
from perdure.registry import Spec
from perdure.run.lifetime import (
    FAILED,
    NOTE,
    Outcome,
    describe_error,
    run_lifetime,
    write_error,
)
from perdure.run.plan import Job, Plan
from perdure.run.progress import BEAT
from perdure.run.signals import deadline
from perdure.store.layout import LifetimeFolder

Report = Callable[[Outcome], None]
LEAST = 2 * BEAT
"""The shortest deadline in seconds: signs of life come once a beat."""


class Executor(Protocol):
    """Runs jobs, in any order and anywhere, and reports each outcome once."""

    def run(self, plan: Plan, jobs: Sequence[Job], report: Report) -> None:
        """Return when every job is done or failed. On Interrupted, stop what runs and raise."""


class Serial:
    """One lifetime after another in this process: for debugging, and for agents given as
    objects.

    A call that outlives ``deadline`` seconds is broken off and the lifetime replayed from its
    last commit, at most ``retries`` times. Only Python code can be broken off here; a hang inside
    compiled code needs ``processes``.
    """

    def __init__(self, deadline: float = 600.0, retries: int = 2) -> None:
        if retries < 0 or deadline < LEAST:
            raise SpecError(f"serial: retries must be ≥ 0 and deadline ≥ {LEAST:g} s")
        self.deadline, self.retries = deadline, retries

    def run(self, plan: Plan, jobs: Sequence[Job], report: Report) -> None:
        """Run the jobs in order."""
        for job in jobs:
            report(self._one(plan, job))

    def _one(self, plan: Plan, job: Job) -> Outcome:
        error = ""
        for _ in range(self.retries + 1):
            try:
                with deadline(self.deadline) as beat:
                    run_lifetime(plan, job, beat)
                return Outcome(job, "done")
            except Hung as e:
                error = f"hung: {e}, {self.retries + 1} times"
            except Exception as e:
                return Outcome(job, "failed", describe_error(e))
        write_error(LifetimeFolder(plan.path / job.id), error)
        return Outcome(job, "failed", error)


@dataclass
class _Worker:
    job: Job
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    folder: LifetimeFolder
    seen: float | None = None
    alive: float = field(default_factory=time.monotonic)


class Processes:
    """Lifetimes side by side, each in a fresh interpreter.

    A worker that dies, is killed, or gives no sign of life for ``deadline`` seconds is torn down
    with everything it started, and its lifetime replayed from the last commit, at most
    ``retries`` times. ``workers`` defaults to the number of cores.
    """

    def __init__(self, workers: int = 0, deadline: float = 600.0, retries: int = 2) -> None:
        if workers < 0 or retries < 0 or deadline < LEAST:
            raise SpecError(f"processes: workers and retries must be ≥ 0, deadline ≥ {LEAST:g} s")
        self.workers = workers or len(os.sched_getaffinity(0))
        self.deadline, self.retries = deadline, retries

    def run(self, plan: Plan, jobs: Sequence[Job], report: Report) -> None:
        """Run the jobs, ``workers`` at a time."""
        if plan.factories:
            raise SpecError(
                "agents given as Python objects cannot be sent to other processes: use the serial "
                "executor, or name the agent as file.py:Class"
            )
        cores = len(os.sched_getaffinity(0))
        share = max(1, cores // max(1, min(self.workers, len(jobs))))
        waiting = deque((job, 0) for job in jobs)
        tries: dict[str, int] = {}
        active: list[_Worker] = []
        try:
            while waiting or active:
                while waiting and len(active) < self.workers:
                    job, tried = waiting.popleft()
                    tries[job.id] = tried + 1
                    active.append(self._start(plan, job, share))
                for worker in list(active):
                    outcome, again = self._look(plan, worker, tries[worker.job.id])
                    if outcome is None and not again:
                        continue
                    active.remove(worker)
                    if again:
                        waiting.appendleft((worker.job, tries[worker.job.id]))
                    elif outcome is not None:
                        report(outcome)
                time.sleep(0.05)
        finally:
            _stop(active)

    def _start(self, plan: Plan, job: Job, share: int) -> _Worker:
        # One thread each: lifetimes are what runs in parallel, and results must not depend on
        # how many cores a machine has. Environments may use the cores that no lifetime needs:
        # theirs do not.
        threads = {f"{lib}_NUM_THREADS": "1" for lib in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")}
        threads["PERDURE_THREADS"] = str(share)
        output = tempfile.TemporaryFile()
        process = subprocess.Popen(
            plan.command(job),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**threads, **os.environ, "PERDURE_PARENT": str(os.getpid())},
            start_new_session=True,
        )
        return _Worker(job, process, output, LifetimeFolder(plan.path / job.id))

    def _look(self, plan: Plan, worker: _Worker, tries: int) -> tuple[Outcome | None, bool]:
        """(outcome, start again?) of a worker; (None, False) while it lives."""
        code = worker.process.poll()
        if code is None:
            now = time.monotonic()
            beat = worker.folder.last_sign()
            if beat != worker.seen:
                worker.seen, worker.alive = beat, now
            if now - worker.alive < self.deadline:
                return None, False
            why = f"gave no sign of life for {self.deadline:g} s"
        else:
            why = f"died with signal {-code}" if code < 0 else f"ended with exit code {code}"
        _kill(worker)
        notes, tail, failure = _said(worker.output)
        for note in notes:
            print(note, file=sys.stderr)
        # What an environment calls in a worker may end it with any exit code: only the log says
        # that a lifetime is done, and only the worker's own words that it has failed.
        if code == 0 and worker.folder.status() == "done":
            return Outcome(worker.job, "done"), False
        if code == 1 and failure:
            return Outcome(worker.job, "failed", failure), False
        if tries <= self.retries:
            return None, True
        text = f"the worker {why}, {tries} times. {tail}".strip()
        write_error(worker.folder, text)
        return Outcome(worker.job, "failed", text), False


def _said(output: IO[bytes]) -> tuple[list[str], str, str]:
    """What a worker wrote: its notes, its last lines, and why it failed if it says so."""
    output.seek(0)
    text = output.read().decode(errors="replace").strip()
    output.close()
    lines = text.splitlines()
    _, failed, failure = f"\n{text}".rpartition(f"\n{FAILED}")
    notes = [line for line in lines if line.startswith(NOTE)]
    return notes, "\n".join(lines[-5:]), failure if failed else ""


def _kill(worker: _Worker) -> None:
    """End a worker and everything in its session, whatever state it is in."""
    try:
        os.killpg(worker.process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # The whole group has ended by itself.
    worker.process.wait()


def _stop(workers: Sequence[_Worker]) -> None:
    for w in workers:
        w.process.terminate()
    end = time.monotonic() + 5.0
    for w in workers:
        try:
            w.process.wait(max(end - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            w.process.kill()
        _kill(w)
        w.output.close()


EXECUTORS: dict[str, Callable[..., Executor]] = {"serial": Serial, "processes": Processes}


def make_executor(text: str) -> Executor:
    """``serial``, ``processes``, ``processes,workers=4,deadline=60`` or ``file.py:Executor``."""
    spec = Spec.parse(text)
    if registry.is_file_reference(spec.name):
        factory = registry.load_file(spec.name)
    elif spec.name in EXECUTORS:
        factory = EXECUTORS[spec.name]
    else:
        raise UnknownName("executor", spec.name, EXECUTORS)
    executor: Executor = registry.call_with(f"executor {spec.name}", factory, **spec.params)
    return executor
