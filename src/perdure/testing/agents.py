"""Does an agent keep its promises? Repeat, resume, evaluate without a trace."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from perdure.agents.compose import Factory
from perdure.errors import ActionRefused, PerdureError
from perdure.run.executors.serial import Serial
from perdure.run.lifetime import Outcome
from perdure.run.plan import Plan, make_plan
from perdure.run.spec import RunSpec
from perdure.specs import Spec
from perdure.store import rows
from perdure.store.layout import LifetimeFolder
from perdure.store.log import Lifetime
from perdure.testing.report import CheckFailed, global_rng_untouched

CURRICULA = (
    "toy/check",
    "toy/check,task=reach",
    "toy/check,task=blobs",
)
"""Tiny lifetimes: discrete actions, continuous actions, labelled data."""
_ELSEWHERE = " (perdure check AGENT --on CURRICULUM checks it on one that it is for)"


def check_agent(agent: str | Factory, curricula: tuple[str, ...] = CURRICULA) -> list[str]:
    """Run an agent (a name, ``file.py:Class``, or a class) through tiny lifetimes.

    Checked: it acts within its space; the same seed gives the same rows; a lifetime resumed from
    any commit ends with the same rows; evaluation does not change it; ``state()`` and ``load()``
    fit each other; it leaves the process's global generators alone. Curricula that it refuses when it
    is made, or whose actions or batches it does not know, are left out; one must remain. Gives the
    curricula that were left out, with the reason.
    """
    name = agent if isinstance(agent, str) else agent.__qualname__
    problems, refusals = checked(agent, curricula)
    if len(refusals) == len(curricula):
        problems.append(
            f"{name} fits none of the curricula it is checked on"
            f"{_ELSEWHERE * (curricula == CURRICULA)}: " + "; ".join(refusals)
        )
    if problems:
        raise CheckFailed(f"agent {name}", problems)
    return refusals


def checked(agent: str | Factory, curricula: Sequence[str]) -> tuple[list[str], list[str]]:
    """The problems of an agent, and the curricula it does not fit, with the reason."""
    problems: list[str] = []
    refusals: list[str] = []
    with tempfile.TemporaryDirectory(prefix="perdure-check-") as folder:
        for k, curriculum in enumerate(curricula):
            try:
                plan = _plan(agent, curriculum, Path(folder) / f"{k}")
            except PerdureError as e:
                refusals.append(f"{curriculum}: {e}")
                continue
            if plan.make_agent("checked", plan.config(plan.jobs[0]).setup()).state() is None:
                # It cannot be saved, so an adapt block could not restore it.
                curriculum += ",probe=false"
                plan = _plan(agent, curriculum, Path(folder) / f"{k}-unsaved")
            again = partial(_plan, agent, curriculum)
            found = _problems(plan, again)
            if found and _does_not_fit(found[0]):
                refusals.append(f"{curriculum}: {found[0]}")
                continue
            problems += [f"{curriculum}: {p}" for p in found]
    return problems, refusals


def _does_not_fit(error: str) -> bool:
    """Whether a first run failed by an exception of the agent's own, or an action of another
    space: an agent for discrete actions need not know what to do with continuous ones."""
    return error.startswith(ActionRefused.__name__) or " raised " in error


def _plan(agent: str | Factory, curriculum: str, out: Path) -> Plan:
    spec, factories = agent, {}
    if not isinstance(agent, str):
        spec, factories = "checked=object", {"checked": agent}
    else:
        parsed = Spec.parse(agent)
        spec = str(Spec(parsed.name, parsed.params, "checked"))
    assert isinstance(spec, str)
    plan = make_plan(
        RunSpec(curriculum, (spec,), out=str(out), executor="serial", envs=2, checkpoint=45),
        factories,
    )
    plan.make_agent("checked", plan.config(plan.jobs[0]).setup())
    return plan


def _problems(plan: Plan, again: Callable[[Path], Plan]) -> list[str]:
    problems: list[str] = []
    with global_rng_untouched("the agent", problems):
        error = _run(plan)
    if error:
        return [error]
    folder = plan.lifetime(plan.jobs[0]).path
    expected = read_rows(folder)
    other = again(plan.path.with_name(plan.path.name + "-again"))
    error = _run(other)
    if error:
        return [*problems, f"a second run failed: {error}"]
    if not same(read_rows(other.lifetime(other.jobs[0]).path), expected):
        problems.append("the same seed gave other rows: draw all randomness from self.rng")
    for k in _resumable(Lifetime.read(folder)):
        resumed = again(plan.path.with_name(f"{plan.path.name}-from-{k}"))
        shutil.copytree(plan.path, resumed.path)
        target = resumed.lifetime(resumed.jobs[0]).path
        cut_journal(target, k)
        error = _run(resumed)
        if error:
            problems.append(f"resuming after commit {k} failed: {error}")
        elif not same(read_rows(target), expected):
            problems.append(
                f"resumed after commit {k}, the rows differ from an uninterrupted lifetime: "
                "state() must hold everything that load() needs to go on exactly"
            )
    return problems


def _resumable(life: Lifetime) -> list[int]:
    """Commits to resume after: the first, the middle and the last but one whose checkpoint is still
    there, or the first where an agent cannot be saved and has to start again."""
    held = [c.n + 1 for c in life.held() if not c.done] or [1]
    return sorted({held[0], held[len(held) // 2], held[-1]})


def _run(plan: Plan) -> str:
    outcomes: list[Outcome] = []
    plan.save()
    Serial(deadline=120).run(plan, plan.jobs, outcomes.append)
    return "; ".join(o.error for o in outcomes if o.status != "done")


def read_rows(folder: Path) -> list[rows.Row]:
    """All committed rows of a lifetime's folder."""
    return Lifetime.read(folder).rows()


def same(a: list[rows.Row], b: list[rows.Row]) -> bool:
    """Whether rows are equal, a loss of NaN being equal to another."""
    return repr(a) == repr(b)


def cut_journal(folder: Path, commits: int) -> None:
    """Make a lifetime look as if it had been killed after so many commits."""
    LifetimeFolder(folder).forget_after(commits)
