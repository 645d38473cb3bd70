"""Running a plan: what is done stays, what is left goes to the executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from perdure.errors import SpecError
from perdure.run.executors import make_executor
from perdure.run.lifetime import Outcome, finished, say
from perdure.run.mixing import check_plan, write_plan
from perdure.run.plan import Job, Plan
from perdure.run.schedule import longest_first
from perdure.run.signals import interruptible
from perdure.run.video import encoder, unseen
from perdure.store.layout import RunFolder

MOST_EVAL_WORKERS = 1000
"""Processes that evaluate for a lifetime, at most."""


def prepare(plan: Plan, video: bool = False) -> None:
    """Write a plan into its folder, if it fits what is there: the same specification, the same code;
    and if what is to be recorded can be."""
    if video:
        encoder()
    plan.save(write=False)  # What is wrong with the specification comes first.
    notes = check_plan(plan)
    plan.save()
    write_plan(plan)
    for note in notes:
        say(note)


def widened(plan: Plan, eval_workers: int) -> Plan:
    """A plan whose lifetimes are evaluated by so many processes each."""
    if not 1 <= eval_workers <= MOST_EVAL_WORKERS:
        raise SpecError(
            f"eval_workers: expected a number of processes from 1 to {MOST_EVAL_WORKERS}, got {eval_workers!r}"
        )
    if eval_workers > 1 and (plan.factories or plan.builder is not None):
        raise SpecError(
            "agents and curricula given as Python objects cannot be sent to other processes: leave "
            "eval_workers out, or name them as file.py:Object"
        )
    return replace(plan, eval_workers=eval_workers)


def execute(
    plan: Plan,
    report: Callable[[Outcome], None] | None = None,
    video: bool = False,
    prepared: bool = False,
    jobs: Sequence[Job] | None = None,
    debug: bool = False,
    recorded: int = 0,
    eval_workers: int = 1,
) -> list[Outcome]:
    """Run every lifetime of a plan, or these of its ``jobs``, that is not done; give all outcomes.
    ``video`` records evaluation episodes of each task (``perdure.run.video``), of ``recorded`` lifetimes
    of each agent or of all; the rows are the same without it. ``eval_workers`` processes share the evaluations
    of a lifetime; the rows are the same without them. ``prepared``: :func:`prepare` has been called. ``debug`` opens a debugger where a
    lifetime fails in this process."""
    plan = widened(plan, eval_workers)
    if not prepared:
        prepare(plan, video)
    outcomes: list[Outcome] = []

    def keep(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if report is not None:
            report(outcome)

    with interruptible():
        executor = make_executor(plan.spec.executor)
        wanted = plan.jobs if jobs is None else jobs
        begun = RunFolder(plan.path).begun(job.id for job in wanted)
        done = [job for job in wanted if job.id in begun and finished(plan, job)]
        over = {job.id for job in done}
        left = longest_first(plan, [job for job in wanted if job.id not in over])
        for job in done:
            keep(Outcome(job, "done"))
        if left:
            RunFolder(plan.path).probe()
        if video:
            plan = replace(plan, video=True, recorded=recorded)
            _announce(plan, left)
        executor.run(replace(plan, debug=True) if debug else plan, left, keep)
    return outcomes


def _announce(plan: Plan, left: Sequence[Job]) -> None:
    """What will not be recorded, said once and not by every lifetime."""
    done = {j.id for j in plan.jobs} - {j.id for j in left}
    run = RunFolder(plan.path)
    done = {job for job in done if plan.records(plan.job(job))}
    without = [job for job in done if run.lifetime(job).videos() is None]
    if without:
        say(f"{len(without)} finished lifetimes were run without video and stay without videos")
    if left:
        for note in unseen(plan.curriculum(plan.spec.seed), plan.resolved.suites):
            say(note)
