"""Lifetimes side by side on this machine, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

from perdure.errors import SpecError
from perdure.run.executors.base import LEAST, Report
from perdure.run.lifetime import FAILED, NOTE, Outcome, write_error
from perdure.run.plan import Job, Plan
from perdure.store.layout import LifetimeFolder


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


executor = Processes
