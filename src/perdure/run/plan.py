"""From a specification to jobs: which lifetimes there are, where they go, what each is made of.

What can be checked is checked when a run is planned, once; a worker trusts the plan it loads.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from perdure import curricula, registry
from perdure.agent import Agent
from perdure.agents.compose import Factory, make_agent, pinned
from perdure.curricula.named import builder_of, curriculum_of
from perdure.errors import (
    AgentFault,
    NameRefused,
    SpecError,
    UnknownName,
)
from perdure.names import slug, task_folders
from perdure.pythonpath import module_command
from perdure.run.code import code_record
from perdure.run.config import LifetimeConfig
from perdure.run.guards import check_memory_scope
from perdure.run.persistence import JOINS, read_spec, save_spec
from perdure.run.signals import patient
from perdure.run.spec import RunSpec
from perdure.run.validate import ResolvedCurriculum, resolve, validate
from perdure.seeds import seed_for
from perdure.specs import Spec, is_file_reference
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.places import EXPERTS, job_of
from perdure.store.rows import FORMAT
from perdure.types import Curriculum, Exposure, Setup


@dataclass(frozen=True)
class Job:
    """One lifetime to run."""

    id: str
    """Its folder, relative to the run's."""
    agent: str
    seed: int
    expert: str = ""
    """The task id, where this is a single-task expert."""


@dataclass(frozen=True)
class Plan:
    """A checked specification and its jobs."""

    spec: RunSpec
    agents: Mapping[str, Spec]
    """By label."""
    factories: Mapping[str, Factory] = field(default_factory=dict)
    """Agents given as Python objects; only an in-process executor can run these."""
    builder: Any = None
    """The curriculum, or the function that makes it, where it is given as a Python object."""
    video: bool = False
    """Whether to record evaluation episodes. Rows do not depend on it, so it is no part of the
    specification."""
    recorded: int = 0
    """Of each agent, so many lifetimes are recorded, and no experts; all where it is 0."""
    pruning: bool = False
    """Whether lifetimes are broken off where the sweep they belong to says so."""
    mix_code: bool = False
    """Whether lifetimes of this agent may run other code than those that are there."""
    eval_workers: int = 1
    """Processes that share the evaluations of a lifetime. Rows do not depend on it."""
    debug: bool = False
    """Whether an executor in this process prints a failed lifetime's traceback and opens a debugger
    there."""
    validated: ResolvedCurriculum | None = None
    """What validation found, where the run was planned; a worker trusts that it was."""
    joins: bool = False
    """Where it was not planned here: whether validation found observation spaces that differ."""

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.spec.folder

    def curriculum(self, seed: int, expert: str = "") -> Curriculum:
        """The curriculum of a lifetime, or of one of its single-task experts."""
        named = Spec.parse(self.spec.curriculum)
        made = curriculum_of(named, seed_for(seed, "curriculum"), self.builder)
        if not expert:
            return made
        by_id = {t.id: c for t, c in curricula.experts(made).items()}
        if expert not in by_id:
            raise UnknownName("expert task", expert, by_id)
        return by_id[expert]

    @cached_property
    def curriculum_by_seed(self) -> bool:
        """Whether lifetimes may have different curricula: its builder takes a seed."""
        return "seed" in _parameters(self.spec.curriculum, self.builder)

    @cached_property
    def resolved(self) -> ResolvedCurriculum:
        """Suites and spaces."""
        return self.validated or resolve(self.curriculum(self.spec.seed), self.joins)

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """Every lifetime, experts last. Seeds count up from the run's."""
        seeds = range(self.spec.seed, self.spec.seed + self.spec.lifetimes)
        out = [Job(job_of(a, s), a, s) for s in seeds for a in self.agents]
        if self.spec.experts:
            for s in seeds:
                tasks = [task.id for task in curricula.experts(self.curriculum(s))]
                for task, folder in task_folders(tasks).items():
                    out += [Job(job_of(a, s, folder), a, s, task) for a in self.agents]
        return tuple(out)

    def job(self, job_id: str) -> Job:
        """The job of this id."""
        for job in self.jobs:
            if job.id == job_id:
                return job
        raise UnknownName("lifetime", job_id, [j.id for j in self.jobs])

    def lifetime(self, job: Job) -> LifetimeFolder:
        """Where a lifetime is."""
        return RunFolder(self.path).lifetime(job.id)

    def config(self, job: Job) -> LifetimeConfig:
        """What a lifetime stands on."""
        s = self.spec
        return LifetimeConfig(
            self.curriculum(job.seed, job.expert),
            self.resolved.suites,
            self.resolved.observation_space,
            self.resolved.action_space,
            job.seed,
            s.envs,
            s.hide_tasks,
            s.checkpoint,
        )

    def make_agent(self, label: str, setup: Setup) -> Agent:
        """A new agent."""
        return make_agent(self.agents[label], setup, self.factories.get(label))

    def code(self, label: str, *, checked: bool = False) -> dict[str, dict[str, str]]:
        """What the lifetimes of an agent execute from outside installed packages
        (:mod:`perdure.store.code`)."""
        spec, factory = self.agents[label], self.factories.get(label)
        if factory is None:
            agent = _agent_sources(spec)
        else:
            agent = [
                *_sources("strategies", spec.parts[:-1]),
                factory,
                *_files(spec.params.values()),
            ]
        named, curriculum = Spec.parse(self.spec.curriculum), self.curriculum(self.spec.seed)
        task_sources: list[Any] = []
        task_sources += _files([named.name, *named.params.values()]) if self.builder is None else ()
        task_sources += [self.builder] if callable(self.builder) else ()
        task_sources += [curriculum.generate] if curriculum.generate is not None else ()
        for task in curriculum.tasks:
            suite = registry.suite(task.suite)
            task_sources += [
                *_files([task.name, *task.params.values()]),
                type(suite),
                *suite.code(task),
            ]
        return code_record(agent, task_sources, checked=checked)

    def describe(self, job: Job) -> dict[str, Any]:
        """What a lifetime is made of; equal descriptions give equal rows."""
        curriculum = self.curriculum(job.seed, job.expert)
        spec = self.agents[job.agent]
        return {
            "format": FORMAT,
            "agent": str(Spec(spec.name, spec.params)),
            "expert": job.expert,
            "seed": job.seed,
            "envs": self.spec.envs,
            "hide_tasks": self.spec.hide_tasks,
            "checkpoint": self.spec.checkpoint,
            "curriculum": curriculum.to_json(),
            "fingerprint": curriculum.fingerprint,
        }

    def records(self, job: Job) -> bool:
        """Whether a lifetime's evaluations are recorded."""
        first = not job.expert and job.seed < self.spec.seed + self.recorded
        return self.video and (first or not self.recorded)

    def command(self, job: Job) -> list[str]:
        """The command that runs one lifetime anywhere that sees the run's folder."""
        video = self.records(job)
        flags = {"--video": video, "--mix-code": self.mix_code, "--pruning": self.pruning}
        more = [flag for flag, given in flags.items() if given]
        if self.eval_workers > 1:
            more.append(f"--eval-workers={self.eval_workers}")
        return [*module_command("perdure.run.worker"), str(self.path), job.id, *more]

    def eval_command(self, job: Job) -> list[str]:
        """The command of a process that evaluates for a lifetime; the number of its socket follows."""
        more = ["--mix-code"] if self.mix_code else []
        run = str(self.path.absolute())
        return [*module_command("perdure.run.eval_worker"), *more, run, job.id]

    def save(self, *, write: bool = True) -> None:
        """Write the specification into the run's folder, or check that it is the one there; without
        ``write``, only that."""
        outline = self.curriculum(self.spec.seed).to_json()
        weights = {job.id: self._weight(job) for job in self.jobs}
        save_spec(self.spec, self.agents, outline, weights, self.resolved.joins, write)

    def _weight(self, job: Job) -> float:
        """Roughly how long a job is beside a whole lifetime; only for progress and ETA."""
        return 1.0 / len(self.curriculum(job.seed).tasks) if job.expert else 1.0


def make_plan(
    spec: RunSpec, factories: Mapping[str, Factory] | None = None, builder: Any = None
) -> Plan:
    """Check everything that can be checked before a lifetime runs. ``factories`` are agents by their
    labels, ``builder`` is the curriculum, where these are given as Python objects."""
    labels: dict[str, Spec] = {}
    for text in spec.agents:
        parsed = Spec.parse(text)
        label = slug(parsed.short)
        with patient(f"agent {label}", spec.patience):
            parsed = pinned(parsed, (factories or {}).get(label))
        if label in (EXPERTS, "rows"):
            raise NameRefused(f"{label!r} cannot be an agent's label: a folder is called so")
        if labels.get(label, parsed) != parsed:
            raise SpecError(f"two different agents are called {label!r}: give them labels")
        labels[label] = parsed
    plan = Plan(spec, labels, dict(factories or {}), builder)
    with patient(f"curriculum {spec.curriculum}", spec.patience):
        first = plan.curriculum(spec.seed)
    plan = replace(plan, validated=validate(first, spec.patience))
    if plan.curriculum_by_seed:
        for k in range(1, spec.lifetimes):
            validate(plan.curriculum(spec.seed + k), spec.patience)
    setup = plan.config(plan.jobs[0]).setup()
    curriculum = plan.curriculum(spec.seed)
    offers = _offers(curriculum)
    for label, parsed in labels.items():
        if label not in plan.factories:
            # Before its spaces: who is refused for these is advised agents that learn from the same.
            _check_offers(label, registry.load("agents", parsed.parts[-1]), offers, spec.curriculum)
        try:
            with patient(f"agent {label}", spec.patience):
                agent = plan.make_agent(label, setup)
        except AgentFault:
            continue  # A fault of its own: its lifetimes will say so, the others run.
        check_memory_scope(agent)
        _check_offers(label, agent, offers, spec.curriculum)
        _check_trials(label, agent, curriculum)
        _check_rewards(label, agent, curriculum)
        _check_sequences(label, agent, curriculum)
    return plan


def _check_trials(label: str, agent: Any, curriculum: Curriculum) -> None:
    """SpecError if the trials that an agent learns from are too short for it, or those that it adapts in."""
    least, shortest = getattr(agent, "least_trial", 1), curriculum.least_trial
    if shortest is not None and shortest < least:
        raise SpecError(
            f"agent {label} learns from trials of at least {least} episodes, but {curriculum.name} has trials of "
            f"{shortest}: give it longer ones (trial={2 * (least - 1)} has as many again after those it adapts to), or "
            "the agent fewer shots"
        )
    needed, given = getattr(agent, "least_shots", 1), curriculum.least_shots
    if given is not None and given < needed:
        raise SpecError(
            f"agent {label} adapts to {needed} episodes of a trial, but {curriculum.name} gives {given} to adapt in, so "
            f"that it would be evaluated as it was before: give it more (shots={needed}), or the agent fewer shots"
        )


def _check_rewards(label: str, agent: Any, curriculum: Curriculum) -> None:
    """SpecError if rewards are hidden where an agent learns that needs them."""
    for number, block in enumerate(curriculum.fixed):
        for phase in block.phases if getattr(agent, "needs_rewards", False) else ():
            driven = not all(e.on_data for e in phase.exposures)
            if phase.learning and driven and phase.visibility.rewards is False:
                raise SpecError(
                    f"agent {label} learns from rewards, but {curriculum.name} hides them in block {number} "
                    f"({block.kind}): show them there (Visibility(rewards=None)), or take an agent that learns "
                    "without"
                )


def _check_sequences(label: str, agent: Any, curriculum: Curriculum) -> None:
    """SpecError if the data that an agent learns from has single steps, or sequences too short for it."""
    least = getattr(getattr(agent, "learner", agent), "least_sequence", 1)
    for exposure in _learned(curriculum):
        task, given = exposure.task, exposure.task.params.get("sequence")
        if exposure.on_data and isinstance(given, int) and given < least:
            what = "single steps" if given == 1 else f"sequences of {given}"
            raise SpecError(
                f"agent {label} learns from sequences of at least {least} steps, but {curriculum.name} gives it {what} "
                f"of {task.id}: set its sequence (sequence=10), or give the agent a policy of single steps or look_back=1"
            )


def _check_offers(label: str, agent: Any, offers: set[str], curriculum: str) -> None:
    """SpecError if an agent, or its class, cannot learn from what a curriculum offers."""
    learns_from = getattr(agent, "learns_from", ())
    for offer in offers - set(learns_from) if learns_from else ():
        raise SpecError(
            f"agent {label} learns from {' and '.join(learns_from)}, but {curriculum} has learn blocks "
            f"on {offer} ({_UNITS[offer]}): they cannot work together"
        )


_UNITS = {"environments": "episodes or steps", "data": "epochs or batches"}


def _offers(curriculum: Curriculum) -> set[str]:
    """What a curriculum's learning phases offer: environments, data or both."""
    return {"data" if e.on_data else "environments" for e in _learned(curriculum)}


def _learned(curriculum: Curriculum) -> list[Exposure]:
    """What a curriculum's learning phases expose to."""
    return [
        e
        for block in curriculum.fixed
        for phase in block.phases
        if phase.learning
        for e in phase.exposures
    ]


def _parameters(text: str, builder: Any = None) -> list[str]:
    if builder is None:
        builder = builder_of(Spec.parse(text))
    return list(inspect.signature(builder).parameters) if callable(builder) else []


def _files(values: Iterable[Any]) -> list[Path]:
    """The files that some names or parameters, and those within them, refer to as ``file.py:Object``."""
    found: list[Path] = []
    for value in values:
        if isinstance(value, str) and is_file_reference(value):
            found.append(Path(value[: value.index(".py:") + len(".py")]))
        elif isinstance(value, (list, tuple)):
            found += _files(value)
        elif isinstance(value, Mapping):
            found += _files(value.values())
    return found


def _sources(part: registry.PluginKind, names: Sequence[str]) -> list[Any]:
    """Where registered parts and those in files come from: modules by name, and files."""
    found: list[Any] = _files(names)
    for name in names:
        if not is_file_reference(name) and name in (known := registry.entries(part)):
            found.append(known[name].source.partition(":")[0])
    return found


def _agent_sources(spec: Spec) -> list[Any]:
    """Where the parts of an agent come from, and those of the agent that it is made of, if it says
    ``inside`` which that is."""
    *strategies, learner = spec.parts
    found = [*_sources("strategies", strategies), *_sources("agents", [learner])]
    found += _files(spec.params.values())
    inside = getattr(registry.load("agents", learner), "inside", None)
    return found + (_agent_sources(inside(spec.params)) if inside is not None else [])


def load_plan(path: Path) -> Plan:
    """The plan of a run's folder, as a worker on any machine sees it."""
    values = read_spec(RunFolder(path))
    agents = {
        label: Spec(s.name, s.params, label)
        for label, s in ((k, Spec.parse(v)) for k, v in values["agents"].items())
    }
    values["agents"] = tuple(str(s) for s in agents.values())
    values["out"] = str(path)
    values.pop("outline", None)
    joins = bool(values.pop(JOINS, False))
    return Plan(RunSpec(**values), agents, joins=joins)
