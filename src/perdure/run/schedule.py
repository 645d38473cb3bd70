"""What jobs cost, which come first, and which belong to a share of a run.

Costs are measured: the time that lifetimes of an agent took, here or in the runs beside this one, for
each step that their curriculum plans. No row depends on any of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

from perdure.errors import PerdureError, SpecError, StoreError
from perdure.run.plan import Job, Plan
from perdure.run.progress import in_steps
from perdure.specs import Spec
from perdure.store.layout import LifetimeFolder, RunFolder, runs_below
from perdure.store.places import place_of
from perdure.store.urls import is_url
from perdure.types import Curriculum

ENOUGH = 20
"""Lifetimes of one agent and expert that are looked at."""
BESIDE = 50
"""Runs beside this one that are."""
LEAST = 0.02
"""Share of a lifetime that must be done before it tells anything."""
_SHARD = re.compile(r"(\d{1,6})/(\d{1,6})")


def shard_of(plan: Plan, text: str) -> list[Job]:
    """The jobs of a share ``i/n`` of a plan: the same wherever and whenever it is asked for. Together
    the n shares are all jobs, none twice, and each has its part of the long and of the short ones."""
    found = _SHARD.fullmatch(text)
    share, shares = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= share <= shares:
        raise SpecError(
            f"--shard {text!r}: expected i/n with i from 1 to n, as 3/10: the third of ten shares"
        )
    amounts = Amounts(plan)
    # Nothing that is measured may enter here: it would differ from share to share.
    ordered = sorted(plan.jobs, key=lambda job: (-amounts.of(job), job.id))
    return ordered[share - 1 :: shares]


class Amounts:
    """How many steps the jobs of a plan have, roughly."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._known: dict[tuple[int, str], float] = {}

    def of(self, job: Job) -> float:
        """The steps of a job, 1 where its curriculum is made up while it runs."""
        key = (job.seed if self.plan.curriculum_by_seed else self.plan.spec.seed, job.expert)
        if key not in self._known:
            self._known[key] = steps_of(self.plan.curriculum(*key))
        return self._known[key]


def steps_of(curriculum: Curriculum) -> float:
    """Roughly how many steps a curriculum plans, 1 where it is made up on the way."""
    if curriculum.generate is not None:
        return 1.0
    phases = (phase for block in curriculum.fixed for phase in block.phases)
    return max(sum(in_steps(e) for phase in phases for e in phase.exposures), 1.0)


@dataclass(frozen=True)
class Cost:
    """What a lifetime takes."""

    seconds: float
    """On the clock, in its own process."""
    cpu: float
    """Of processor time, in seconds."""
    disk: float
    """Bytes that stay."""


@dataclass(frozen=True)
class StepCost:
    """What one lifetime took for each step of its curriculum."""

    seconds: float
    cpu: float
    grows: float
    """Bytes a step."""
    fixed: float
    """Bytes at any length: the last checkpoints, videos."""
    source: Path
    """The run it was measured in."""


class Costs:
    """What is known of the costs of a plan's jobs, from the lifetimes that ran."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.amounts = plan, Amounts(plan)

    @cached_property
    def _here(self) -> dict[tuple[str, str], list[StepCost]]:
        """By agent and expert task."""
        found: dict[tuple[str, str], list[StepCost]] = {}
        folder = RunFolder(self.plan.path)
        begun = folder.begun(job.id for job in self.plan.jobs)
        for job in self.plan.jobs:
            known = found.setdefault((job.agent, job.expert), [])
            if len(known) < ENOUGH and job.id in begun:
                known += _measured(folder.lifetime(job.id), self.amounts.of(job), self.plan.path)
        return found

    @cached_property
    def _beside(self) -> dict[str, list[StepCost]]:
        """By agent: lifetimes of the same agent on the same curriculum, of any length, in the
        runs beside this one."""
        found: dict[str, list[StepCost]] = {}
        for k, path in enumerate(_runs_beside(self.plan.path)):
            if k == BESIDE:
                break
            if path != self.plan.path:
                for label, there in self._in(path):
                    found.setdefault(label, []).append(there)
        return found

    def _in(self, path: Path) -> Iterator[tuple[str, StepCost]]:
        folder = RunFolder(path)
        try:
            spec = folder.spec()
            if Spec.parse(spec["curriculum"]).name != Spec.parse(self.plan.spec.curriculum).name:
                return
            theirs = dict(spec["agents"])
            mine = {str(Spec(s.name, s.params)): label for label, s in self.plan.agents.items()}
            jobs = [j for j in folder.lifetimes() if theirs.get(j.split("/")[0]) in mine]
        except (PerdureError, TypeError, KeyError, AttributeError):
            return  # A command on that run says what is wrong with it.
        for job in jobs[:ENOUGH]:
            place = place_of(job)
            if place is None or place.task:
                continue
            lifetime = folder.lifetime(job)
            try:
                steps = steps_of(_curriculum(lifetime))
            except (PerdureError, TypeError, KeyError, ValueError):
                continue
            for measured in _measured(lifetime, steps, path):
                yield mine[theirs[place.agent]], measured

    def known(self, job: Job) -> list[StepCost]:
        """What tells most of a job: lifetimes of its agent and task; of its agent, experts of experts;
        of its agent; of its agent in the runs beside this one. Empty if there is none."""
        here = self._here
        if found := here.get((job.agent, job.expert)):
            return found
        own = [m for (a, e), ms in here.items() if a == job.agent and bool(e) == bool(job.expert) for m in ms]  # fmt: skip
        own = own or [m for (a, _), ms in here.items() if a == job.agent for m in ms]
        return own or self._beside.get(job.agent, [])

    def of(self, job: Job) -> Cost | None:
        """What a job will take, all of it; None where nothing is known of its agent."""
        known, steps = self.known(job), self.amounts.of(job)
        if not known:
            return None
        return Cost(
            median(m.seconds for m in known) * steps,
            median(m.cpu for m in known) * steps,
            median(m.grows for m in known) * steps + median(m.fixed for m in known),
        )


def longest_first(plan: Plan, jobs: Sequence[Job]) -> list[Job]:
    """Jobs in the order in which they are best begun: at the end no process waits for one that began late.
    By what lifetimes took so far, and by their lengths where that is not known."""
    if len(jobs) < 2:
        return list(jobs)
    costs = Costs(plan)
    rates = [m.seconds for known in costs._here.values() for m in known]
    rate = median(rates) if rates else 1.0

    def seconds(job: Job) -> float:
        known = costs._here.get((job.agent, job.expert)) or ()
        each = median(m.seconds for m in known) if known else rate
        return each * costs.amounts.of(job)

    return sorted(jobs, key=seconds, reverse=True)


def _measured(folder: LifetimeFolder, steps: float, source: Path) -> Iterable[StepCost]:
    """What a lifetime took, if it tells."""
    try:
        progress, status = folder.progress(), folder.status()
        fraction = 1.0 if status == "done" else progress.get("fraction") or 0.0
        if status == "damaged" or fraction < LEAST:
            return ()
        spent = sum(end - begin for begin, end in folder.worked(folder.last_sign()))
        grows, fixed = folder.sizes()
    except StoreError:
        return ()
    elapsed = progress.get("elapsed") or 0.0
    busy = (progress.get("cpu") or 0.0) / elapsed if elapsed > 0 else 1.0
    done = steps * fraction
    return [StepCost(spent / done, spent * busy / done, grows / done, fixed, source)]


def _runs_beside(path: Path) -> Iterator[Path]:
    if is_url(path) or not path.parent.is_dir():
        return iter(())  # Who knows how much there is in a bucket.
    return runs_below(path.parent)


def _curriculum(folder: LifetimeFolder) -> Curriculum:
    """What a lifetime on disk goes through."""
    return Curriculum.from_json((folder.description() or {})["curriculum"])
