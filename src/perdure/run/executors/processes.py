"""Lifetimes side by side on this machine, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from perdure.errors import Interrupted, SpecError
from perdure.pools import cores, data_room
from perdure.run.child_processes import ChildProcesses, child_processes
from perdure.run.crashes import crash_summary
from perdure.run.executors.base import Report, check_count, check_patience
from perdure.run.executors.output import WorkerOutput
from perdure.run.lifetime import Outcome, write_error
from perdure.run.plan import Job, Plan
from perdure.run.spec import DEADLINE
from perdure.store.layout import LifetimeFolder
from perdure.store.plain import clipped


@dataclass
class _Worker:
    job: Job
    process: subprocess.Popen[bytes]
    output: WorkerOutput
    folder: LifetimeFolder
    seen: float | None = None
    alive: float = field(default_factory=time.monotonic)


class Processes:
    """Lifetimes side by side, each in a fresh interpreter.

    A worker that dies, is killed, or gives no sign of life for ``deadline`` seconds is torn down
    with everything it started, and its lifetime replayed from the last commit, at most
    ``retries`` times. ``workers`` defaults to the number of cores, shared with the processes that
    evaluate for a lifetime, if it has some.
    """

    def __init__(self, workers: int = 0, deadline: float = DEADLINE, retries: int = 2) -> None:
        check_patience("processes", deadline, retries)
        check_count("processes", "workers", workers)
        self.workers, self._all_cores = workers or cores(), not workers
        self.deadline, self.retries = deadline, retries
        self.threads = 0
        """Threads that the environments of a lifetime may use, 0 for its share of the cores."""
        self.tell: Callable[[str], None] = _to_the_terminal
        """What is done with a line for the user; called by threads that read what workers write."""
        self.stopping = threading.Event()
        """Set by another thread, it ends the run as a signal does."""

    def run(self, plan: Plan, jobs: Sequence[Job], report: Report) -> None:
        """Run the jobs, ``workers`` at a time."""
        if plan.factories or plan.builder is not None:
            raise SpecError(
                "agents and curricula given as Python objects cannot be sent to other processes: use the "
                "serial executor, or name them as file.py:Object"
            )
        workers = self.workers
        if self._all_cores:
            workers = max(1, workers // plan.eval_workers)
        beside = max(1, min(workers, len(jobs)))
        threads = self.threads or max(1, cores() // beside)
        # A lifetime that was given some of the cores, as Ray does, has others beside it.
        room = data_room(max(beside, cores() // threads)) // 1_000_000
        share = {"PERDURE_THREADS": str(threads), "PERDURE_DATA_MB": str(room)}
        with child_processes() as children:
            self._run(plan, jobs, report, workers, share, children)

    def _run(
        self,
        plan: Plan,
        jobs: Sequence[Job],
        report: Report,
        workers: int,
        share: Mapping[str, str],
        children: ChildProcesses,
    ) -> None:
        waiting = deque((job, 0) for job in jobs)
        tries: dict[str, int] = {}
        active: list[_Worker] = []
        try:
            while waiting or active:
                if self.stopping.is_set():
                    raise Interrupted(signal.SIGTERM)
                while waiting and len(active) < workers:
                    job, tried = waiting.popleft()
                    tries[job.id] = tried + 1
                    active.append(self._start(plan, job, share, children))
                for worker in list(active):
                    outcome, again = self._look(worker, tries[worker.job.id])
                    if outcome is None and not again:
                        continue
                    active.remove(worker)
                    children.ended(worker.process.pid)
                    if again:
                        waiting.appendleft((worker.job, tries[worker.job.id]))
                    elif outcome is not None:
                        report(outcome)
                time.sleep(0.05)
        finally:
            _stop(active)

    def _start(
        self, plan: Plan, job: Job, share: Mapping[str, str], children: ChildProcesses
    ) -> _Worker:
        # One thread each: lifetimes are what runs in parallel, and results must not depend on
        # how many cores a machine has. Environments may use the cores that no lifetime needs:
        # theirs do not.
        threads = {f"{lib}_NUM_THREADS": "1" for lib in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")}
        output = WorkerOutput(self.tell)
        known = {**children.environment, "PERDURE_PARENT": str(os.getpid())}
        process = subprocess.Popen(
            plan.command(job),
            stdin=subprocess.DEVNULL,
            stdout=output.fd,
            stderr=output.fd,
            env={**threads, **share, **os.environ, **known},
            start_new_session=True,
        )
        children.started(process.pid)
        return _Worker(job, process, output, plan.lifetime(job))

    def _look(self, worker: _Worker, tries: int) -> tuple[Outcome | None, bool]:
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
        tail, failure = worker.output.said()
        worker.output.close()
        # What an environment calls in a worker may end it with any exit code: only the log says
        # that a lifetime is done, and only the worker's own words that it has failed.
        # Once it is, the worker may end in any way without harm.
        if code != 1 and worker.folder.status() == "done":
            return Outcome(worker.job, "done"), False
        if code == 1 and failure:
            return Outcome(worker.job, "failed", failure), False
        if tries <= self.retries:
            return None, True
        crash = worker.folder.crash()
        more = f"{crash_summary(crash)}. Its stacks: {worker.folder.error_in}" if crash else tail
        text = clipped(f"the worker {why}, {tries} times. {more}".strip())
        write_error(worker.folder, text, crash)
        return Outcome(worker.job, "failed", text), False


def _to_the_terminal(line: str) -> None:
    print(line, file=sys.stderr)


def _kill(worker: _Worker) -> None:
    """End a worker and everything in its session, in any state."""
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
