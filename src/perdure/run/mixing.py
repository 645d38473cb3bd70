"""Versions never mix in silence: lifetimes of other code than those that are there are refused, unless
their user says that they may be mixed. Then it is recorded, and readers mark it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perdure.errors import CodeChanged, StoreError
from perdure.run.persistence import until_not_overtaken
from perdure.run.plan import Job, Plan
from perdure.store.code import Record, differences, own_code, recorded, told
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.places import place_of

HOW = (
    "For rows of one version choose another folder with --out (out=… in Python), or put the old code back. --mix-code "
    "(mix_code=True in Python) goes on all the same: that is recorded, and measure, compare, report and "
    "leaderboard mark it"
)


def check_plan(plan: Plan) -> list[str]:
    """Compare what a plan would execute with the lifetimes that are there: CodeChanged, or what to say
    where versions may be mixed. If nothing is left to run, other versions of Perdure and of installed
    packages are worth a word, but change nothing."""
    now = {label: plan.code(label, checked=True) for label in plan.agents}
    run = RunFolder(plan.path)
    begun = run.begun(job.id for job in plan.jobs)
    writes = not all(
        job.id in begun and run.lifetime(job.id).status() == "done" for job in plan.jobs
    )
    changed: dict[str, dict[str, None]] = {}
    mine, unknown = False, list[str]()
    for job in run.lifetimes():
        agent, records = _records(run.lifetime(job), job)
        if agent is None:
            continue
        if not records and agent in now:
            unknown.append(job)
        record = now.get(agent, next(iter(now.values())))
        for there in records:
            found = differences(there, record, agent=agent in now)
            mine = mine or bool(own_code(found, there, record))
            if found:
                changed.setdefault(told(found), {})[job] = None
    notes = []
    if unknown and writes:
        notes.append(f"{plan.path}: {told(unknown)}: not known with what code; it was not recorded")
    if changed:
        what = "; ".join(f"{n} changed since {told(list(jobs))} ran" for n, jobs in changed.items())
        if (writes or mine) and not plan.mix_code:
            raise CodeChanged(f"{plan.path} holds lifetimes of other code: {what}. {HOW}")
        then = "the rows of both are mixed from here on" if writes else "they stay as they are"
        notes.append(f"{plan.path} holds lifetimes of other code: {what}; {then}")
    return notes


def write_plan(plan: Plan) -> None:
    """Write what the plan's lifetimes are to execute, for the processes that run them: files may change while
    they wait for their turn."""
    records = {label: plan.code(label) for label in plan.agents}
    until_not_overtaken(lambda: RunFolder(plan.path).write_code(records))


def _records(folder: LifetimeFolder, job: str) -> tuple[str | None, tuple[Record, ...]]:
    """The agent of a lifetime that has rows, and what it executed; None where there is nothing that
    could be mixed."""
    place = place_of(job)
    try:
        described = folder.description()
        if place is None or described is None or not folder.journal().commits:
            return None, ()
    except StoreError:
        return None, ()
    return place.agent, recorded(described)


def check_lifetime(
    plan: Plan, job: Job, described: Mapping[str, Any], commits: Sequence[Any]
) -> list[Record]:
    """The records of a lifetime that begins, or goes on, in this process; CodeChanged if it would run
    other code than it did, or than the run was planned with."""
    now, before = plan.code(job.agent), recorded(described) if commits else ()
    planned = RunFolder(plan.path).code(job.agent)
    for there, when in (
        (planned, "the run began"),
        *((r, "it was interrupted") for r in before[-1:]),
    ):
        found = differences(there, now) if there is not None else []
        if found and not plan.mix_code:
            raise CodeChanged(
                f"{plan.lifetime(job).path}: {told(found)} changed since {when}. {HOW}"
            )
    return [*(r for r in before if r != now), now]
