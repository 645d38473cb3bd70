"""Running a whole experiment from Python or the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perdure.agents.compose import Factory
from perdure.run.executors import make_executor
from perdure.run.lifetime import Outcome, finished, say
from perdure.run.plan import Job, Plan, make_plan
from perdure.run.signals import interruptible
from perdure.run.spec import RunSpec
from perdure.run.video import encoder, unseen
from perdure.store.layout import RunFolder
from perdure.store.run import Run


def execute(
    plan: Plan,
    report: Callable[[Outcome], None] | None = None,
    video: bool = False,
    debug: bool = False,
) -> list[Outcome]:
    """Run every lifetime of a plan that is not done; give all outcomes. ``video`` films the first,
    best and worst evaluation episode of each task; the rows are the same without it. ``debug`` opens
    a debugger where a lifetime fails in this process."""
    if video:
        encoder()
    plan.save()
    outcomes: list[Outcome] = []

    def keep(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if report is not None:
            report(outcome)

    with interruptible():
        executor = make_executor(plan.spec.executor)
        left: list[Job] = []
        for job in plan.jobs:
            if finished(plan, job):
                keep(Outcome(job, "done"))
            else:
                left.append(job)
        if video:
            plan = replace(plan, video=True)
            _announce(plan, left)
        executor.run(replace(plan, debug=True) if debug else plan, left, keep)
    return outcomes


def _announce(plan: Plan, left: Sequence[Job]) -> None:
    """What will not be filmed, said once and not by every lifetime."""
    done = {j.id for j in plan.jobs} - {j.id for j in left}
    run = RunFolder(plan.path)
    without = [job for job in done if run.lifetime(job).films() is None]
    if without:
        say(f"{len(without)} finished lifetimes were run without video and stay without films")
    if left:
        for note in unseen(plan.curriculum(plan.spec.seed), plan.ground.suites):
            say(note)


def experiment(
    curriculum: str,
    agents: str | Sequence[str] | Mapping[str, str | Factory] = ("random",),
    video: bool = False,
    **keys: Any,
) -> Run:
    """Run agents through a curriculum; the same call again resumes or returns at once.

    ``agents`` is a name (``"ppo,lr=3e-4"``), some names, or a mapping from labels to names or Agent
    classes; classes need ``executor="serial"``. ``video`` films some evaluation episodes. The other
    keys are those of :class:`RunSpec`. Lifetimes that failed are in ``Run.lifetimes()`` with their
    error.
    """
    factories: dict[str, Factory] = {}
    names: list[str] = []
    if isinstance(agents, Mapping):
        for label, agent in agents.items():
            if isinstance(agent, str):
                names.append(f"{label}={agent}")
            else:
                factories[label] = agent
                names.append(f"{label}={agent.__module__}.{agent.__qualname__}")
                keys.setdefault("executor", "serial")
        agents = names
    keys["agents"] = agents
    plan = make_plan(RunSpec(curriculum, **keys), factories)
    execute(plan, video=video)
    return Run(plan.path)
