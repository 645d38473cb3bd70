"""One real run of many lifetimes: what it costs its driver. Each lifetime is a process, started, watched and
reported by the ``processes`` executor, and runs the real loop with an agent that does nothing; only its
imports are saved: it is forked by a process that has made them. Writes benchmarks/results/scale_run.json, which
``benchmarks/scale.py`` puts into its page.

    python benchmarks/scale_run.py [--lifetimes 10000] [--workers 2]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from scale import page_of_run, read

from perdure.agent import Agent
from perdure.run.executors.base import Report
from perdure.run.executors.processes import Processes
from perdure.run.experiment import execute
from perdure.run.lifetime import provenance, run_lifetime
from perdure.run.plan import Job, Plan, make_plan
from perdure.run.signals import die_with_parent
from perdure.run.spec import RunSpec

CURRICULUM = "toy/compass,steps=100,episodes=2"
SAMPLES = 10
"""Looks at the driver's memory."""
CLIENT = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\\n")
os._exit(s.recv(1)[0])
"""
"""What the executor starts: it asks for a lifetime and ends as that does. It needs no imports of ours."""


class Idle(Agent):
    """Does nothing, and learns nothing."""

    def act(self, obs: Any, ctx: Any) -> Any:
        return [0] * len(ctx.slots)


class _Quick:
    """A plan whose lifetimes are begun by a process that has the imports."""

    def __init__(self, plan: Plan, address: str) -> None:
        self._plan, self._address = plan, address

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    def command(self, job: Job) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", CLIENT, self._address, job.id]


class Forked(Processes):
    """The executor ``processes``, with lifetimes that are forked."""

    samples: list[tuple[int, float, float]] = []
    """Lifetimes reported, the driver's processor time and its memory in MB."""

    def run(self, plan: Plan, jobs: Sequence[Job], report: Report) -> None:
        every, count, began = max(len(jobs) // SAMPLES, 1), 0, time.process_time()

        def counted(outcome: Any) -> None:
            nonlocal count
            assert outcome.status == "done", outcome
            report(outcome)
            count += 1
            if count % every == 0:
                self.samples.append((count, time.process_time() - began, memory()))
                print(*self.samples[-1], flush=True)

        with tempfile.TemporaryDirectory() as folder:
            address = f"{folder}/socket"
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(address)
            listening.listen(64)
            parent = os.getpid()
            forker = os.fork()
            if forker == 0:
                die_with_parent(parent)
                serve(plan, listening)
            listening.close()
            try:
                super().run(_Quick(plan, address), jobs, counted)  # type: ignore[arg-type]
            finally:
                os.kill(forker, signal.SIGKILL)
                os.waitpid(forker, 0)


def serve(plan: Plan, listening: socket.socket) -> None:
    """Fork a process for each lifetime that is asked for, until killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    provenance()
    by_id = {job.id: job for job in plan.jobs}
    while True:
        asked, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            job = by_id[asked.recv(1000).decode().strip()]
            code = 1
            try:
                run_lifetime(plan, job)
                code = 0
            finally:
                asked.sendall(bytes([code]))
                os._exit(code)
        asked.close()


def memory() -> float:
    """What this process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--lifetimes", type=int, default=10_000)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--keep", type=Path, help="leave the run here")
    given = options.parse_args()
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = given.keep or Path(tempfile.mkdtemp(prefix="perdure-scale-run-", dir=base)) / "run"
    executor = f"{__file__}:Forked,workers={given.workers}"
    agents = (f"idle={__file__}:Idle",)
    spec = RunSpec(CURRICULUM, agents, given.lifetimes, out=str(folder), executor=executor)
    clock, cpu = time.monotonic(), time.process_time()
    plan = make_plan(spec)
    planned = time.process_time() - cpu
    execute(plan)
    seen = sys.modules[Forked.__module__]
    for module in list(sys.modules.values()):  # The run finds this file as another module.
        if getattr(module, "__file__", None) == __file__ and hasattr(module, "Forked"):
            seen = module if module.Forked.samples else seen
    rows = sum(1 for _ in folder.glob("idle/*/rows/*.parquet"))
    found = {
        "lifetimes": given.lifetimes,
        "segments": rows,
        "driver": time.process_time() - cpu,
        "planning": planned,
        "clock": time.monotonic() - clock,
        "samples": seen.Forked.samples,
        "read": read(folder, agents[0], executor),
    }
    out = Path(__file__).parent / "results/scale_run.json"
    out.write_text(json.dumps(found, indent=1) + "\n")
    print(page_of_run(found))
    if not given.keep:
        shutil.rmtree(folder.parent)


if __name__ == "__main__":
    main()
