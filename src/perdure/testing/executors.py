"""Does an executor keep its promises? Every job reported once, failures kept apart, same rows."""

from __future__ import annotations

import tempfile
from pathlib import Path

from perdure.run.executors import Executor
from perdure.run.executors.serial import Serial
from perdure.run.lifetime import Outcome
from perdure.run.plan import Job, Plan, make_plan
from perdure.run.spec import RunSpec
from perdure.store.rows import Row
from perdure.testing import faulty
from perdure.testing.agents import read_rows
from perdure.testing.report import CheckFailed

AGENTS = ("q", f"bad={faulty.__file__}:Faulty")


def check_executor(executor: Executor | type[Executor]) -> None:
    """Run a small plan in which some lifetimes fail, and compare with the serial executor."""
    made = executor() if isinstance(executor, type) else executor
    name = type(made).__name__
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="perdure-check-") as folder:
        expected = _run(Serial(), Path(folder) / "serial")[0]
        plan, outcomes = _run(made, Path(folder) / "checked")
        seen = [o.job.id for o in outcomes]
        for job in plan.jobs:
            times = seen.count(job.id)
            if times != 1:
                problems.append(f"{job.id} was reported {times} times, expected once")
        for o in outcomes:
            right = "failed" if o.job.agent == "bad" else "done"
            if o.status != right:
                problems.append(f"{o.job.id}: expected {right!r}, got {o.status!r} ({o.error})")
            elif right == "failed" and faulty.WORDS not in o.error:
                problems.append(f"{o.job.id}: the original error's words are lost: {o.error!r}")
            elif right == "done" and _rows(plan, o.job) != _rows(expected, o.job):
                problems.append(f"{o.job.id}: its rows differ from the serial executor's")
    if problems:
        raise CheckFailed(f"executor {name}", problems)


def _rows(plan: Plan, job: Job) -> list[Row]:
    return read_rows(plan.lifetime(job).path)


def _run(executor: Executor, out: Path) -> tuple[Plan, list[Outcome]]:
    plan = make_plan(RunSpec("toy/check", AGENTS, lifetimes=2, out=str(out), checkpoint=40))
    plan.save()
    outcomes: list[Outcome] = []
    executor.run(plan, plan.jobs, outcomes.append)
    return plan, outcomes
