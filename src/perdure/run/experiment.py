"""Running a whole experiment from Python or the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.run.executors import make_executor
from perdure.run.lifetime import Outcome, finished
from perdure.run.plan import Factory, Plan, RunSpec, make_plan
from perdure.run.signals import interruptible
from perdure.store.run import Run


def execute(plan: Plan, report: Callable[[Outcome], None] | None = None) -> list[Outcome]:
    """Run every lifetime of a plan that is not done; give all outcomes."""
    plan.save()
    outcomes: list[Outcome] = []

    def keep(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if report is not None:
            report(outcome)

    with interruptible():
        executor = make_executor(plan.spec.executor)
        left = []
        for job in plan.jobs:
            if finished(plan, job):
                keep(Outcome(job, "done"))
            else:
                left.append(job)
        executor.run(plan, left, keep)
    return outcomes


def experiment(
    curriculum: str, agents: Sequence[str] | Mapping[str, str | Factory] = ("random",), **keys: Any
) -> Run:
    """Run agents through a curriculum; the same call again resumes or returns at once.

    ``agents`` are names (``"ppo,lr=3e-4"``), or a mapping from labels to names or Agent classes;
    classes need ``executor="serial"``. The other keys are those of :class:`RunSpec`. Lifetimes
    that failed are in ``Run.lifetimes()`` with their error.
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
    else:
        names = list(agents)
    plan = make_plan(RunSpec(curriculum, tuple(names), **keys), factories)
    execute(plan)
    return Run(plan.path)
