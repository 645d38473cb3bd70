"""The body of ``perdure run --plan``: what would run, and what it would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.cli.terminal import remark, say
from perdure.cli.verbs import spec_of
from perdure.show.rounding import seconds as duration
from perdure.show.sheet import Sheet

if TYPE_CHECKING:
    from perdure.run.plan import Job, Plan
    from perdure.run.schedule import Cost


def show_plan(curriculum: str | None, flags: Mapping[str, Any], shard: str | None = None) -> int:
    """Print the jobs with their estimated cost. Nothing is run and nothing is written."""
    from perdure.run.executors import make_executor
    from perdure.run.lifetime import finished
    from perdure.run.plan import make_plan
    from perdure.run.schedule import Costs, shard_of
    from perdure.store.layout import RunFolder

    spec = spec_of(curriculum, flags)
    executor = make_executor(spec.executor)
    plan = make_plan(spec)
    plan.save(write=False)
    jobs = plan.jobs if shard is None else shard_of(plan, shard)
    begun = RunFolder(plan.path).begun(job.id for job in jobs)
    done = {job.id for job in jobs if job.id in begun and finished(plan, job)}
    costs = Costs(plan)
    of = {job.id: costs.of(job) for job in jobs}
    share = f", share {shard}" if shard is not None else ""
    head = ("agent", "lifetimes", "done", "to run", "each", "CPU-hours", "disk")
    sheet = Sheet(f"{spec.curriculum} into {plan.path}{share}", head, words=("agent",))
    for name, members in _groups(jobs).items():
        sheet.rows.append(_line(name, members, done, of))
    if len(sheet.rows) > 1:
        sheet.rows += [(), _line("all", jobs, done, of)]
    sheet.show()
    left = [job for job in jobs if job.id not in done]
    _remarks(plan, left, of, {m.source for job in left for m in costs.known(job)})
    workers = getattr(executor, "workers", 1)
    known = [cost.seconds for job in left if (cost := of[job.id]) is not None]
    if left and len(known) == len(left):
        say(f"about {duration(makespan(known, workers))} with {workers} at a time")
    return 0


def makespan(costs: Sequence[float], workers: int) -> float:
    """How long jobs of these lengths take, the longest begun first, so many at a time."""
    busy = [0.0] * max(workers, 1)
    for cost in sorted(costs, reverse=True):
        busy[busy.index(min(busy))] += cost
    return max(busy)


def _groups(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        name = f"{job.agent}, single-task experts" if job.expert else job.agent
        found.setdefault(name, []).append(job)
    return found


def _line(
    name: str, jobs: Sequence[Job], done: set[str], of: Mapping[str, Cost | None]
) -> tuple[str, ...]:
    left = [job for job in jobs if job.id not in done]
    known = [cost for job in left if (cost := of[job.id]) is not None]
    counts = (str(len(jobs)), str(len(jobs) - len(left)), str(len(left)))
    if len(known) < len(left):
        return (name, *counts, "?", "?", "?")
    each = duration(sum(c.seconds for c in known) / len(known)) if known else "–"
    hours, disk = sum(c.cpu for c in known) / 3600, sum(c.disk for c in known)
    return (name, *counts, each, f"{hours:.3g}", _bytes(disk))


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"


def _remarks(
    plan: Plan, left: Sequence[Job], of: Mapping[str, Cost | None], sources: set[Path]
) -> None:
    unknown = sorted({job.agent for job in left if of[job.id] is None})
    if unknown:
        remark(
            f"no lifetime of {', '.join(unknown)} has run, here or beside {plan.path}: what they take is not "
            "known. Run one (--lifetimes 1), then ask again"
        )
    if sources:
        remark(f"measured in {', '.join(sorted(map(str, sources)))}", style="dim")
