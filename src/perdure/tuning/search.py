"""The search: suggestions from Optuna, lifetimes by the plan, values by the measures, one record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isnan, prod
from pathlib import Path
from typing import Any, Literal

from perdure import registry
from perdure.errors import SpecError, StoreError, UnknownName
from perdure.measure import sources
from perdure.measure.l2m.paper import PaperOptions
from perdure.measure.metric import Metric
from perdure.measure.results import measure_paper, read_all
from perdure.run.executors import make_executor
from perdure.run.experiment import execute
from perdure.run.persistence import refuse_changed
from perdure.run.plan import Plan, make_plan
from perdure.run.pruning import curve, make_pruner, optuna
from perdure.run.results import RunningResults
from perdure.run.spec import RunSpec
from perdure.seeds import seed_for
from perdure.specs import Spec, call_with
from perdure.store.layout import RunFolder
from perdure.store.log import Lifetime
from perdure.store.urls import place
from perdure.tuning.ranges import Range

VALIDATION = 1_000_000
"""Seed of a sweep's first lifetime. Results are reported for others."""
MOST_TRIALS = 1000
"""Their labels have three digits."""

State = Literal["running", "complete", "pruned", "failed"]


@dataclass(frozen=True)
class SweepTrial:
    """One suggestion and what came of it."""

    label: str
    params: Mapping[str, Any]
    state: State = "running"
    value: float | None = None
    """The metric's mean over lifetimes, where all of them are done."""
    why: str = ""
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """By seed: performance at each evaluation."""


@dataclass(frozen=True)
class SweepSettings:
    """What a sweep is; it may not change, but for the number of trials."""

    curriculum: str
    agent: str
    search: Mapping[str, str]
    metric: str = "summary.final"
    sampler: str = "tpe"
    pruner: str = "none"
    """What does well early in a lifetime need not do well at its end: nothing is broken off unless asked."""
    lifetimes: int = 1
    seed: int = VALIDATION
    batch: int = 0
    """Trials at a time. Those of a batch know nothing of each other."""

    def agent_of(self, trial: SweepTrial, label: str = "") -> Spec:
        """The agent with a trial's parameters."""
        base = Spec.parse(self.agent)
        return Spec(base.name, {**base.params, **trial.params}, label)


@dataclass(frozen=True)
class Sweep:
    """A sweep as far as it is."""

    path: Path
    settings: SweepSettings
    better: str
    trials: tuple[SweepTrial, ...]

    @property
    def best(self) -> SweepTrial | None:
        """The complete trial with the best value; the earlier of equals."""
        done = [t for t in self.trials if t.state == "complete" and t.value is not None]
        sign = 1.0 if self.better == "higher" else -1.0
        return max(done, key=lambda t: sign * (t.value or 0.0), default=None)

    def agent(self, trial: SweepTrial) -> str:
        """The specification of a trial's agent."""
        return str(self.settings.agent_of(trial))


def sweep(
    curriculum: str,
    agent: str,
    search: Mapping[str, str],
    *,
    trials: int = 20,
    out: str = "",
    executor: str = "processes",
    envs: int = 1,
    hide_tasks: bool = False,
    checkpoint: int = 50_000,
    report: Callable[[Sweep, SweepTrial], None] | None = None,
    **more: Any,
) -> Sweep:
    """Search an agent's parameters on validation seeds; the same call again resumes.

    ``search`` gives each parameter's range: ``{"strength": "log(1, 1e5)"}``. The other keys are those
    of :class:`SweepSettings`; ``report`` is told of every trial that has ended.
    """
    settings: SweepSettings = call_with(
        "sweep", SweepSettings, curriculum, agent, dict(search), **more
    )
    workers = getattr(make_executor(executor), "workers", 1)
    settings = replace(settings, batch=settings.batch or workers)
    folder = RunFolder(place(out or f"{RunSpec(curriculum).folder}-sweep"))
    spec = RunSpec(
        curriculum,
        lifetimes=settings.lifetimes,
        seed=settings.seed,
        out=str(folder.path),
        executor=executor,
        envs=envs,
        hide_tasks=hide_tasks,
        checkpoint=checkpoint,
    )
    return _Search(settings, spec, folder, trials, report).run()


class _Search:
    """Runs a sweep from wherever its record stands."""

    def __init__(
        self,
        settings: SweepSettings,
        spec: RunSpec,
        folder: RunFolder,
        trials: int,
        report: Callable[[Sweep, SweepTrial], None] | None,
    ) -> None:
        self.settings, self.spec, self.folder, self.report = settings, spec, folder, report
        self.ranges = {name: Range.parse(name, text) for name, text in settings.search.items()}
        self.metric = _metric(settings.metric)
        if not self.ranges:
            raise SpecError("a sweep needs a parameter to search: --search 'NAME=log(1, 1e5)'")
        samplers = (*SAMPLERS, GRID)
        if settings.sampler not in samplers:
            raise UnknownName("sampler", settings.sampler, samplers, f"(of {', '.join(samplers)})")
        if settings.sampler == GRID:
            if any(r.kind != "choice" for r in self.ranges.values()):
                raise SpecError("a grid needs choices alone: --search 'NAME=choice(1, 10, 100)'")
            trials = min(trials, prod(len(r.values) for r in self.ranges.values()))
        if not 1 <= trials <= MOST_TRIALS:
            raise SpecError(f"trials must be from 1 to {MOST_TRIALS}, got {trials}")
        if settings.batch < 1:
            raise SpecError(f"batch must be at least 1, got {settings.batch}")
        make_pruner(settings.pruner)
        self.wanted = trials
        known = set(Spec.parse(settings.agent).params) & set(self.ranges)
        if known:
            raise SpecError(
                f"the agent has {', '.join(sorted(known))} already: search it or give it, not both"
            )

    def run(self) -> Sweep:
        """Batch after batch until there are as many trials as wanted."""
        trials = self._known()
        while True:
            batch = [t for t in trials if t.state == "running"]
            if not batch:
                count = min(self.settings.batch, self.wanted - len(trials))
                if count <= 0:
                    return self._sweep(trials)
                batch = self._suggest(trials, count)
                trials += batch
                self._plan(batch)  # A parameter that cannot be is refused before it is on record.
                self._save(trials)
            ended = self._live(batch)
            trials = self._valued([ended.get(t.label, t) for t in trials])
            self._save(trials)
            for trial in trials:
                if trial.label in ended and self.report is not None:
                    self.report(self._sweep(trials), trial)

    def _sweep(self, trials: Sequence[SweepTrial]) -> Sweep:
        return Sweep(self.folder.path, self.settings, self.metric.better, tuple(trials))

    # The record.

    def _known(self) -> list[SweepTrial]:
        if not self.folder.exists():
            return []
        record = self.folder.sweep()
        if not record:
            raise SpecError(
                f"{self.folder.path} holds a run that is no sweep; choose another folder with --out"
            )
        refuse_changed(
            f"{self.folder.path} holds another sweep", record["settings"], asdict(self.settings)
        )
        return [SweepTrial(**t) for t in record["trials"]]

    def _save(self, trials: Sequence[SweepTrial]) -> None:
        record = {"settings": asdict(self.settings), "trials": [asdict(t) for t in trials]}
        self.folder.write_sweep(record)

    # Suggestions.

    def _suggest(self, trials: Sequence[SweepTrial], count: int) -> list[SweepTrial]:
        library, first = optuna(), len(trials)
        if self.settings.sampler == GRID:
            points = list(itertools.product(*(r.values for r in self.ranges.values())))
            return [
                SweepTrial(f"t{n:03d}", dict(zip(self.ranges, points[n], strict=True)))
                for n in range(first, first + count)
            ]
        distributions = {name: r.distribution() for name, r in self.ranges.items()}
        study = library.create_study(direction=_DIRECTIONS[self.metric.better])
        states = library.trial.TrialState
        for t in trials:
            if t.state == "complete":
                made = library.trial.create_trial(
                    params=self._told(t), distributions=distributions, value=t.value
                )
            elif t.state == "pruned" and any(t.curves.values()):
                # Ranked by performance, which is better the higher it is, whatever the metric.
                sign = 1.0 if self.metric.better == "higher" else -1.0
                values = [sign * value for value in next(iter(t.curves.values()))]
                made = library.trial.create_trial(
                    state=states.PRUNED,
                    params=self._told(t),
                    distributions=distributions,
                    intermediate_values=dict(enumerate(values)),
                )
            else:
                continue
            study.add_trial(made)
        out = []
        for n in range(first, first + count):
            study.sampler = SAMPLERS[self.settings.sampler](
                library, seed_for(self.settings.seed, "sweep", n)
            )
            found = study.ask(distributions).params
            params = {name: r.suggested(found[name]) for name, r in self.ranges.items()}
            out.append(SweepTrial(f"t{n:03d}", params))
        return out

    def _told(self, trial: SweepTrial) -> dict[str, Any]:
        return {name: r.told(trial.params[name]) for name, r in self.ranges.items()}

    # Lifetimes.

    def _plan(self, batch: Sequence[SweepTrial]) -> Plan:
        agents = tuple(str(self.settings.agent_of(t, t.label)) for t in batch)
        pruning = self.settings.pruner != "none"
        return replace(make_plan(replace(self.spec, agents=agents)), pruning=pruning)

    def _live(self, batch: Sequence[SweepTrial]) -> dict[str, SweepTrial]:
        """The batch's trials as they ended. Seed by seed, so that a trial that is broken off under one
        costs no more under the next."""
        plan = self._plan(batch)
        ended: dict[str, SweepTrial] = {}
        for seed in range(self.spec.seed, self.spec.seed + self.spec.lifetimes):
            jobs = []
            for job in plan.jobs:
                if job.seed == seed and job.agent not in ended:
                    if self.folder.lifetime(job.id).pruned():
                        ended[job.agent] = _ended(batch, job.agent, "pruned")
                    else:
                        jobs.append(job)
            for outcome in execute(plan, jobs=jobs):
                label = outcome.job.agent
                if outcome.status == "failed":
                    broken = bool(self.folder.lifetime(outcome.job.id).pruned())
                    ended[label] = _ended(
                        batch, label, "pruned" if broken else "failed", outcome.error
                    )
        for trial in batch:
            made = ended.get(trial.label, replace(trial, state="complete"))
            ended[trial.label] = replace(made, curves=self._curves(made, plan))
        return ended

    def _curves(self, trial: SweepTrial, plan: Plan) -> dict[str, list[float]]:
        out = {}
        for job in plan.jobs:
            if job.agent != trial.label:
                continue
            folder = self.folder.lifetime(job.id)
            values = folder.pruned()
            if not values and folder.status() == "done":
                rows = list(Lifetime.read(folder.path).rows())
                evaluations = sorted({row.block for row in rows if row.kind == "eval"})
                values = curve(RunningResults(rows), evaluations)
            if values:
                out[str(job.seed)] = values
        return out

    def _valued(self, trials: Sequence[SweepTrial]) -> list[SweepTrial]:
        """The metric of every complete trial: measured together, since some metrics take their scale
        from all lifetimes."""
        complete = {t.label for t in trials if t.state == "complete"}
        if not complete:
            return list(trials)
        histories, failed = read_all(sources.find(self.folder.path))
        chosen = {name: h for name, h in histories.items() if h.agent in complete}
        for name, why in failed.items():
            if name.partition("/")[0] in complete:
                raise StoreError(f"{self.folder.path}: {name} cannot be measured: {why}")
        results = measure_paper(chosen, PaperOptions(), [self.metric])
        out = []
        for t in trials:
            if t.label in complete:
                scores = [
                    x.scores[self.metric.name] for x in results.lifetimes if x.agent == t.label
                ]
                value = sum(s.value for s in scores) / len(scores)
                if isnan(value):
                    why = next(s.reason for s in scores if isnan(s.value))
                    raise SpecError(
                        f"{self.metric.name} is undefined for this curriculum: {why}; choose another "
                        "--metric, and another folder with --out"
                    )
                t = replace(t, value=value)
            out.append(t)
        return out


def _ended(batch: Sequence[SweepTrial], label: str, state: State, why: str = "") -> SweepTrial:
    return replace(next(t for t in batch if t.label == label), state=state, why=why)


def _metric(name: str) -> Metric:
    found: list[Metric] = registry.metrics_of(name)
    if len(found) > 1:
        several = ", ".join(m.name for m in found)
        raise SpecError(f"a sweep chooses by one metric, and {name} are {several}: name one")
    return found[0]


SAMPLERS: dict[str, Callable[[Any, int], Any]] = {
    "tpe": lambda o, seed: o.samplers.TPESampler(seed=seed, n_startup_trials=5, constant_liar=True),
    "random": lambda o, seed: o.samplers.RandomSampler(seed=seed),
}
GRID = "grid"
"""Every combination of choices, in order: no sampler of Optuna's."""
_DIRECTIONS = {"higher": "maximize", "lower": "minimize"}
