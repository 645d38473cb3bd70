"""What many lifetimes cost whoever drives and reads them: a run of no-op lifetimes, made as workers make
them but without the work. Writes benchmarks/results/scale.md.

    python benchmarks/scale.py [--lifetimes 10000] [--rows 100]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from perdure import registry
from perdure.run.executors.base import Report
from perdure.run.experiment import execute
from perdure.run.lifetime import Outcome, provenance
from perdure.run.plan import Job, Plan, make_plan
from perdure.run.spec import RunSpec
from perdure.store.layout import LifetimeFolder
from perdure.store.log import LifetimeLog
from perdure.store.rows import Row

CURRICULUM = "toy/compass,steps=100,episodes=2"


class NoOp:
    """Reports every job as done, having written what a lifetime leaves behind."""

    rows = 100
    spent = 0.0
    """Processor time that the lifetimes took, which is not the driver's."""

    def run(self, plan: Plan, jobs: Sequence[Job], report: Report) -> None:
        here, code = provenance(), {label: plan.code(label) for label in plan.agents}
        for job in jobs:
            before = time.process_time()
            leave(plan, job, type(self).rows, here, code[job.agent])
            type(self).spent += time.process_time() - before
            report(Outcome(job, "done"))


def leave(plan: Plan, job: Job, count: int, here: dict, code: dict) -> None:
    """The folder of a finished lifetime with so many rows: a learn block, then an evaluation."""
    folder = LifetimeFolder(plan.path / job.id)
    folder.write_description({**plan.describe(job), "code": [code]})
    with LifetimeLog(folder.path, job.agent, job.seed) as log:
        folder.write_session(log.session, {"started": time.time(), "commit": 0, **here})
        rows = []
        tasks = ["toy/goal-ne", "toy/goal-sw", "toy/goal-nw"]
        blocks = [(b, "eval" if b % 2 == 0 else "learn", b // 2 - (b % 2 == 0)) for b in range(7)]
        each = max(count // (4 * 3 + 3), 1)
        for block, kind, learned in blocks:
            shown = tasks if kind == "eval" else [tasks[learned]]
            for k, task in enumerate(shown):
                for e in range(each):
                    n = len(rows)
                    rows.append(Row(
                        n, block, True, kind, kind == "learn", k, task, "", '{"size":5}', 0, e, e, n, n, 9,
                        9 * n, "complete", True, False, float(e % 2), float(e % 2), float(e % 2), None,
                        None, None,
                    ))  # fmt: skip
        log.commit(rows, None, {"exp": len(rows)}, done=True)
    folder.write_progress({"fraction": 1.0, "elapsed": 1.0, "cpu": 1.0, "steps": 9 * len(rows)})


def memory() -> float:
    """The most that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(what: Callable[[], object]) -> float:
    """Processor seconds of a call."""
    before = time.process_time()
    what()
    return time.process_time() - before


def drive(out: Path, lifetimes: int, rows: int) -> dict[str, float]:
    """Plan and execute; and once more, when all is done."""
    noop = registry.load_file(f"{__file__}:NoOp")  # As the run finds it, which is another module.
    noop.rows, noop.spent = rows, 0.0
    spec = RunSpec(CURRICULUM, ("random",), lifetimes, out=str(out), executor=f"{__file__}:NoOp")
    found: dict[str, float] = {}
    plans: list[Plan] = []
    found["plan"] = timed(lambda: plans.append(make_plan(spec)))
    found["run"] = timed(lambda: execute(plans[0])) - noop.spent
    found["leave"], found["memory"] = noop.spent, memory()
    found["again"] = timed(lambda: execute(make_plan(spec)))
    return found


def read(
    out: Path, agent: str = "random", executor: str = "", curriculum: str = CURRICULUM
) -> dict[str, float]:
    """Processor seconds of the verbs, each in a process of its own; and rows of the run."""
    found: dict[str, float] = {}
    label, executor = agent.partition("=")[0], executor or f"{__file__}:NoOp"
    for name, args in {"watch": ["watch"], "measure": ["measure"], "plan": []}.items():
        command = [sys.executable, "-m", "perdure", *args, str(out)]
        if name == "plan":
            command = [sys.executable, "-m", "perdure", "run", curriculum, "-a", agent, "--out", str(out),
                       "--plan", "--executor", executor, "-n", str(len(list(out.glob(f"{label}/*"))))]  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found[name] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return found


def one(lifetimes: int, rows: int) -> dict[str, float]:
    """A run of this size in memory, driven and read."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="perdure-scale-", dir=base))
    try:
        found = drive(folder / "run", lifetimes, rows)
        return {**found, **{f"read {k}": v for k, v in read(folder / "run").items()}}
    finally:
        shutil.rmtree(folder)


def page_of_run(found: dict[str, Any]) -> str:
    """What ``benchmarks/scale_run.py`` found, in words."""
    n, samples = found["lifetimes"], found["samples"]
    (first, _, least), (last, _, most) = samples[0], samples[-1]
    read = ", ".join(f"`{k}` {v:.1f} s" for k, v in found["read"].items())
    return (
        f"## One real run of {n:,} lifetimes\n\n"
        "`python benchmarks/scale_run.py`: each a process that the executor `processes` starts, watches and "
        "reports; it has the real loop run by one that has made the imports, with an agent that does nothing.\n\n"
        f"The driver took {found['driver']:.1f} s of processor time ({100 * found['driver'] / n:.2f} s per 100 "
        f"lifetimes; {found['planning']:.1f} s of it planning), in {found['clock'] / 60:.0f} minutes on the clock. It held "
        f"{least:.0f} MB after {first:,} lifetimes and {most:.0f} MB after {last:,}. Reading the run: {read}.\n"
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--lifetimes", type=int, default=10_000)
    options.add_argument("--rows", type=int, default=100)
    options.add_argument("--one", type=int, default=0, help="only this size, as JSON")
    given = options.parse_args()
    if given.one:
        print(json.dumps(one(given.one, given.rows)))
        return
    sizes = [given.lifetimes // 10, given.lifetimes]
    results = []
    for size in sizes:
        # In processes of their own, so that the memory of one is not that of another.
        command = [sys.executable, __file__, "--one", str(size), "--rows", str(given.rows)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
        print(size, results[-1], flush=True)
    results_in = Path(__file__).parent / "results"
    text, real = page(sizes, given.rows, results), results_in / "scale_run.json"
    if real.exists():
        text += "\n" + page_of_run(json.loads(real.read_text()))
    (results_in / "scale.md").write_text(text)


def page(sizes: Sequence[int], rows: int, results: Sequence[dict[str, float]]) -> str:
    names = {
        "plan": "plan the run (`make_plan`)",
        "run": "drive it (prepare, schedule, report)",
        "again": "run it again, all done (reads and checks all)",
        "read plan": "`run --plan` of the finished run",
        "read watch": "`watch`, once",
        "read measure": "`measure`, all metrics",
    }
    head = " | ".join(f"{n:,} lifetimes" for n in sizes)
    lines = [
        "# Many lifetimes: what driving and reading them costs",
        "",
        f"`python benchmarks/scale.py`: no-op lifetimes of about {rows} rows each, written as workers write "
        "them, in memory. Seconds of processor time on one core; in brackets per 100 lifetimes.",
        "",
        f"| | {head} |",
        "|---|" + "---|" * len(sizes),
    ]
    for key, name in names.items():
        cells = (
            f"{r[key]:.1f} s ({100 * r[key] / n:.2f})" for n, r in zip(sizes, results, strict=True)
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    cells = (f"{1e3 * r['leave'] / n:.1f} ms" for n, r in zip(sizes, results, strict=True))
    lines.append(f"| what a lifetime's own files take to write | {' | '.join(cells)} |")
    cells = (f"{r['memory']:.0f} MB" for r in results)
    lines.append(f"| most memory of the driver | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
