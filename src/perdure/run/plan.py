"""From a specification to jobs: which lifetimes there are, where they go, what each is made of."""

from __future__ import annotations

import difflib
import inspect
import json
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from perdure import curricula, registry
from perdure.agent import Agent
from perdure.errors import (
    AgentFault,
    NameRefused,
    PerdureError,
    SpecError,
    StoreError,
    UnknownName,
)
from perdure.names import slug
from perdure.registry import Spec
from perdure.run.config import LifetimeConfig
from perdure.run.validate import Ground, validate
from perdure.seeds import seed_for
from perdure.store.layout import RunFolder
from perdure.store.rows import FORMAT
from perdure.types import Curriculum, Setup

Factory = Callable[..., Agent]
MAX_ENVS = 1024
"""Environments side by side in one process."""
MAX_FOLDER = 255


@dataclass(frozen=True)
class RunSpec:
    """What to run. One TOML of these ten keys; each is also a flag."""

    curriculum: str
    agents: tuple[str, ...] = ("random",)
    lifetimes: int = 1
    seed: int = 0
    out: str = ""
    executor: str = "processes"
    envs: int = 1
    experts: bool = False
    hide_tasks: bool = False
    checkpoint: int = 50_000

    def __post_init__(self) -> None:
        given: Any = self.agents
        if isinstance(given, str):
            given = (given,)
        if not isinstance(given, Sequence):
            raise SpecError(f'agents must be a list of names, as ["ppo", "dqn"], got {given!r}')
        object.__setattr__(self, "agents", tuple(given))
        for f in fields(self):
            value = getattr(self, f.name)
            kind: Any = {"agents": tuple, "experts": bool, "hide_tasks": bool}.get(f.name)
            if kind is None:
                kind = int if isinstance(f.default, int) else str
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise SpecError(f"{f.name} must be of type {kind.__name__}, got {value!r}")
        for name in ("lifetimes", "envs", "checkpoint"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.envs > MAX_ENVS:
            raise SpecError(f"envs must be at most {MAX_ENVS}, got {self.envs}")
        if self.seed < 0:
            raise SpecError(f"seed must not be negative, got {self.seed}")
        if not self.agents:
            raise SpecError("name at least one agent (perdure ls agents)")
        if "\0" in self.out:
            raise NameRefused("the output folder's name holds a NUL character")
        if any(len(os.fsencode(part)) > MAX_FOLDER for part in Path(self.out).parts):
            raise NameRefused(
                f"the output folder {self.out[:40]!r}… has a part of more than {MAX_FOLDER} bytes, "
                "which no file system can hold"
            )

    @classmethod
    def from_toml(cls, path: Path, **flags: Any) -> RunSpec:
        """Read a TOML file; flags that are given win over it."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as e:
            raise SpecError(f"{path}: {e}") from e
        known = [f.name for f in fields(cls)]
        for key in values:
            if key not in known:
                raise UnknownName(f"key in {path}", key, known, f"(keys: {', '.join(known)})")
        values |= flags
        if "curriculum" not in values:
            raise SpecError(f"{path} names no curriculum (perdure ls curricula)")
        return cls(**values)

    @property
    def folder(self) -> Path:
        """Where the run goes."""
        return Path(self.out or f"runs/{slug(Spec.parse(self.curriculum).short)}")

    IDENTITY = ("curriculum", "seed", "envs", "hide_tasks", "checkpoint")
    """What may not change in a folder. Agents and lifetimes may be added."""


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
    video: bool = False
    """Whether to film evaluation episodes. Rows do not depend on it, so it is no part of the
    specification."""

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.spec.folder

    def curriculum(self, seed: int, expert: str = "") -> Curriculum:
        """The curriculum of a lifetime, or of one of its single-task experts."""
        made = registry.curriculum(Spec.parse(self.spec.curriculum), seed_for(seed, "curriculum"))
        if not expert:
            return made
        by_id = {t.id: c for t, c in curricula.experts(made).items()}
        if expert not in by_id:
            raise UnknownName("expert task", expert, by_id)
        return by_id[expert]

    @cached_property
    def ground(self) -> Ground:
        """Suites and spaces, validated once."""
        return validate(self.curriculum(self.spec.seed))

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """Every lifetime, experts last. Seeds count up from the run's."""
        seeds = range(self.spec.seed, self.spec.seed + self.spec.lifetimes)
        out = [Job(f"{a}/{s}", a, s) for s in seeds for a in self.agents]
        if self.spec.experts:
            for s in seeds:
                for task in curricula.experts(self.curriculum(s)):
                    folder = slug(task.id.replace("@", "~"))
                    out += [Job(f"{a}/experts/{folder}/{s}", a, s, task.id) for a in self.agents]
        return tuple(out)

    def job(self, job_id: str) -> Job:
        """The job of this id."""
        for job in self.jobs:
            if job.id == job_id:
                return job
        raise UnknownName("lifetime", job_id, [j.id for j in self.jobs])

    def config(self, job: Job) -> LifetimeConfig:
        """What a lifetime stands on."""
        s = self.spec
        return LifetimeConfig(
            self.curriculum(job.seed, job.expert),
            self.ground.suites,
            self.ground.observation_space,
            self.ground.action_space,
            job.seed,
            s.envs,
            s.hide_tasks,
            s.checkpoint,
        )

    def make_agent(self, label: str, setup: Setup) -> Agent:
        """A new agent."""
        return make_agent(self.agents[label], setup, self.factories.get(label))

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

    def command(self, job: Job) -> list[str]:
        """The command that runs one lifetime anywhere that sees the run's folder."""
        more = ["--video"] if self.video else []
        return [sys.executable, "-m", "perdure.run.worker", str(self.path), job.id, *more]

    def save(self) -> None:
        """Write the specification into the run's folder, or check that it is the one there."""
        if self.path.exists() and not self.path.is_dir():
            raise SpecError(f"{self.path} is a file; choose a folder with --out")
        folder = RunFolder(self.path)
        mine = json.loads(json.dumps(asdict(self.spec)))
        mine["agents"] = {label: str(Spec(s.name, s.params)) for label, s in self.agents.items()}
        mine["out"] = ""
        mine["outline"] = self.curriculum(self.spec.seed).to_json()
        if folder.exists():
            theirs = _read_spec(folder)
            self._refuse_other(theirs, mine)
            mine["agents"] = {**theirs["agents"], **mine["agents"]}
            mine["lifetimes"] = max(mine["lifetimes"], theirs["lifetimes"])
            mine["experts"] = mine["experts"] or theirs["experts"]
        elif folder.foreign():
            raise SpecError(
                f"{self.path} is not empty and not a Perdure run; choose another folder with --out"
            )
        folder.write_spec(mine)
        folder.write_jobs({job.id: self._weight(job) for job in self.jobs})

    def _weight(self, job: Job) -> float:
        """Roughly how long a job is beside a whole lifetime; only for progress and ETA."""
        return 1.0 / len(self.curriculum(job.seed).tasks) if job.expert else 1.0

    def _refuse_other(self, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
        def part(spec: Mapping[str, Any]) -> dict[str, Any]:
            labels = {k: v for k, v in spec["agents"].items() if k in theirs["agents"]}
            labels = {k: v for k, v in labels.items() if k in mine["agents"]}
            identity = (*RunSpec.IDENTITY, "outline")
            return {**{k: spec.get(k) for k in identity}, "agents": labels}

        refuse_changed(f"{self.path} holds another run", part(theirs), part(mine))


def refuse_changed(what: str, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """SpecError with a diff if two descriptions differ."""
    if theirs == mine:
        return
    a, b = (json.dumps(d, indent=1, sort_keys=True).splitlines() for d in (theirs, mine))
    diff = difflib.unified_diff(a, b, "on disk", "asked for", lineterm="", n=1)
    raise SpecError(
        f"{what}; go on with the specification on disk or choose another folder with --out:\n"
        + "\n".join(diff)
    )


def make_agent(spec: Spec, setup: Setup, factory: Factory | None = None) -> Agent:
    """Build an agent: a learner, or strategies composed with one (``ewc+ppo``)."""
    *strategies, learner = spec.name.split("+") if ".py:" not in spec.name else [spec.name]
    base = factory or registry.load("agents", learner)
    what = f"agent {spec.name}"
    if not callable(base):
        raise SpecError(f"{what} is {base!r}, expected an Agent class or a function giving one")
    if len(strategies) > 1:
        raise SpecError(f"{what}: one strategy and one learner, as in ewc+ppo")
    keeps = [registry.load("strategies", name) for name in strategies]
    params = registry.with_preset(what, spec.params, base, *keeps)
    try:
        if not keeps:
            agent = registry.call_with(what, base, setup, **params)
        else:
            own, rest = _shared_out(params, base)
            learning = registry.call_with(f"learner {learner}", base, setup, **own)
            what = f"strategy {strategies[0]}"
            agent = registry.call_with(what, keeps[0], learning, **rest).agent()
    except PerdureError:
        raise
    except Exception as e:
        raise AgentFault(f"{what} cannot be made: {type(e).__name__}: {e}") from e
    if not isinstance(agent, Agent):
        raise SpecError(f"{what} gave {type(agent).__name__}, expected a perdure.Agent")
    return agent


def _shared_out(
    params: Mapping[str, Any], learner: Factory
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters that the learner takes, and the rest, which are the strategy's."""
    takes = inspect.signature(learner).parameters
    own = {k: v for k, v in params.items() if k in takes}
    return own, {k: v for k, v in params.items() if k not in takes}


def make_plan(spec: RunSpec, factories: Mapping[str, Factory] | None = None) -> Plan:
    """Check everything that can be checked before a lifetime runs."""
    labels: dict[str, Spec] = {}
    for text in spec.agents:
        parsed = Spec.parse(text)
        label = slug(parsed.short)
        if label in ("experts", "rows"):
            raise NameRefused(f"{label!r} cannot be an agent's label: a folder is called so")
        if labels.get(label, parsed) != parsed:
            raise SpecError(f"two different agents are called {label!r}: give them labels")
        labels[label] = parsed
    plan = Plan(spec, labels, dict(factories or {}))
    ground = plan.ground
    if "seed" in _parameters(spec.curriculum):
        for k in range(1, spec.lifetimes):
            validate(plan.curriculum(spec.seed + k))
    setup = plan.config(plan.jobs[0]).setup()
    assert ground is not None
    offers = _offers(plan.curriculum(spec.seed))
    for label in labels:
        try:
            agent = plan.make_agent(label, setup)
        except AgentFault:
            continue  # A fault of its own: its lifetimes will say so, the others run.
        for offer in offers - set(agent.learns_from):
            raise SpecError(
                f"agent {label} learns from {' and '.join(agent.learns_from)}, but {spec.curriculum} "
                f"has learn blocks on {offer} ({_UNITS[offer]}): they cannot work together"
            )
    return plan


_UNITS = {"environments": "episodes or steps", "data": "epochs or batches"}


def _offers(curriculum: Curriculum) -> set[str]:
    """What a curriculum's learning phases offer: environments, data or both."""
    return {
        "data" if e.on_data else "environments"
        for block in curriculum.fixed
        for phase in block.phases
        if phase.learning
        for e in phase.exposures
    }


def _parameters(text: str) -> list[str]:
    spec = Spec.parse(text)
    if registry.is_file_reference(spec.name):
        builder = registry.load_file(spec.name)
    else:
        family, _, rest = spec.name.partition("/")
        builder = registry.suite(family).curricula()[rest]
    return list(inspect.signature(builder).parameters) if callable(builder) else []


def _read_spec(folder: RunFolder) -> dict[str, Any]:
    """A specification on disk, whoever edited it."""
    values = folder.spec()
    known = {f.name: f.default for f in fields(RunSpec)}
    if (
        not isinstance(values, dict)
        or not isinstance(values.get("agents"), dict)
        or not {"curriculum"} <= values.keys() <= {*known, "outline"}
    ):
        raise StoreError(
            f"{folder.spec_in} is not the specification of a run: expected {', '.join(known)}, got "
            f"{str(values)[:80]}; restore it, or choose another folder with --out"
        )
    return {**known, **values}


def load_plan(path: Path) -> Plan:
    """The plan of a run's folder, as a worker on any machine sees it."""
    values = _read_spec(RunFolder(path))
    agents = {
        label: Spec(s.name, s.params, label)
        for label, s in ((k, Spec.parse(v)) for k, v in values["agents"].items())
    }
    values["agents"] = tuple(str(s) for s in agents.values())
    values["out"] = str(path)
    values.pop("outline", None)
    return Plan(RunSpec(**values), agents)
