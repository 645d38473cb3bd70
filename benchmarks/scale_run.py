"""One real run of many lifetimes: what it costs its driver. Each lifetime is a process that the ``processes``
executor starts, watches and reports. It runs the real loop with an agent that does nothing; only its imports
are saved: the process is a shell that hands it to one that has made them, and waits. Writes
benchmarks/results/scale_run.json, which ``benchmarks/scale.py`` puts into its page.

    python benchmarks/scale_run.py [--lifetimes 10000] [--workers 2]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
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
from perdure.run.lifetime import run_lifetime
from perdure.run.plan import Job, Plan, make_plan
from perdure.run.signals import die_with_parent
from perdure.run.spec import RunSpec
from perdure.types import Curriculum, Exposure, Task, evaluate, learn

CURRICULUM = f"{__file__}:few"
SERVERS = 4
"""Processes that have the imports."""
SAMPLES = 10
"""Looks at the driver's memory."""
CLIENT = 'echo "$2 $3" > "$1"; read code < "$2"; exit $code'
"""What the executor starts: it asks for a lifetime and ends as that does. A shell starts quicker than Python."""


def few() -> Curriculum:
    """Thirty episodes of one step."""
    ten = Exposure(Task("toy", "bandit"), 10)
    return Curriculum("few", (evaluate(ten), learn(ten), evaluate(ten)))


class Idle(Agent):
    """Does nothing, and learns nothing."""

    def act(self, obs: Any, ctx: Any) -> Any:
        return [0] * len(ctx.slots)


class _Handed:
    """A plan whose lifetimes run in a process that has the imports."""

    def __init__(self, plan: Plan, address: str) -> None:
        self._plan, self._address, self._asked = plan, address, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    def command(self, job: Job) -> list[str]:
        self._asked += 1
        answer = f"{self._address}.{self._asked}"
        os.mkfifo(answer)
        return ["/bin/sh", "-c", CLIENT, "lifetime", self._address, answer, job.id]


class Quick(Processes):
    """The executor ``processes``, with lifetimes that save their imports."""

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
            address = f"{folder}/asked"
            os.mkfifo(address)
            parent = os.getpid()
            servers = []
            for _ in range(SERVERS):
                servers.append(os.fork())
                if servers[-1] == 0:
                    die_with_parent(parent)
                    serve(plan, address)
            try:
                super().run(_Handed(plan, address), jobs, counted)  # type: ignore[arg-type]
            finally:
                for server in servers:
                    os.kill(server, signal.SIGKILL)
                    os.waitpid(server, 0)


def serve(plan: Plan, address: str) -> None:
    """Run the lifetimes that are asked for, until killed."""
    by_id = {job.id: job for job in plan.jobs}
    both = os.open(address, os.O_RDWR)  # Open for writing too, so that it has no end.
    with os.fdopen(both, "rb", buffering=0) as asked:
        rest = b""
        while True:
            *lines, rest = (rest + asked.read(4096)).split(b"\n")
            for line in lines:
                answer, job = line.decode().split()
                code = 1
                try:
                    run_lifetime(plan, by_id[job])
                    code = 0
                finally:
                    Path(answer).write_text(f"{code}\n")
                    os.unlink(answer)


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
    executor = f"{__file__}:Quick,workers={given.workers}"
    agents = (f"idle={__file__}:Idle",)
    spec = RunSpec(CURRICULUM, agents, given.lifetimes, out=str(folder), executor=executor)
    clock, cpu = time.monotonic(), time.process_time()
    plan = make_plan(spec)
    planned = time.process_time() - cpu
    execute(plan)
    seen = sys.modules[Quick.__module__]
    for module in list(sys.modules.values()):  # The run finds this file as another module.
        if getattr(module, "__file__", None) == __file__ and hasattr(module, "Quick"):
            seen = module if module.Quick.samples else seen
    rows = sum(1 for _ in folder.glob("idle/*/rows/*.parquet"))
    found = {
        "lifetimes": given.lifetimes,
        "segments": rows,
        "driver": time.process_time() - cpu,
        "planning": planned,
        "clock": time.monotonic() - clock,
        "samples": seen.Quick.samples,
        "read": read(folder, agents[0], executor, CURRICULUM),
    }
    out = Path(__file__).parent / "results/scale_run.json"
    out.write_text(json.dumps(found, indent=1) + "\n")
    print(page_of_run(found))
    if not given.keep:
        shutil.rmtree(folder.parent)


if __name__ == "__main__":
    main()
