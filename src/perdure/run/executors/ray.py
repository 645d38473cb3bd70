"""Lifetimes as the tasks of a Ray cluster: one that is running, or a fresh one on this machine.

The run's folder must be one that every node sees: a shared file system, or an object store's URL.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from perdure import registry
from perdure.errors import Interrupted, MissingExtra, SpecError
from perdure.run.executors.base import Report, check_count, check_patience
from perdure.run.executors.processes import Processes
from perdure.run.lifetime import Outcome, finished, write_error
from perdure.run.plan import Job, Plan, load_plan
from perdure.run.spec import DEADLINE
from perdure.store.layout import LifetimeFolder
from perdure.store.plain import clipped
from perdure.store.urls import place

AHEAD = 64
"""Tasks that wait in the cluster at most, beyond those that its processors can take."""
OCCUPIED, PAUSE = 10, 3.0
"""How often a lifetime is tried that another process still writes, and seconds between: what was
lost with a node or a driver may take a while to end."""
GRACE = 15.0
"""Seconds for workers to stop by themselves when a run is interrupted."""


@dataclass
class _Task:
    """A lifetime in the cluster."""

    job: Job
    node: str
    """Where it must run, empty where Ray chooses."""


class Ray:
    """Lifetimes as tasks of a Ray cluster, each in a process of its own on some node.

    ``address`` is that of a running cluster (``auto`` finds the one that this machine belongs to);
    without it, Ray is started on this machine and ended with the run. A lifetime asks for what its
    agent's class declares as ``resources`` (``cpus``, ``gpus``, ``memory`` in bytes), or for the ``cpus``, ``gpus`` and
    ``memory`` (in GB) given here. At most ``per_node`` run on a node, if that is not 0.

    A lifetime whose worker or node is lost is begun again elsewhere, from its last commit, at most
    ``retries`` times; ``deadline`` is as for ``processes``.
    """

    def __init__(
        self,
        address: str = "",
        cpus: float | None = None,
        gpus: float | None = None,
        memory: float | None = None,
        per_node: int = 0,
        deadline: float = DEADLINE,
        retries: int = 2,
    ) -> None:
        check_patience("ray", deadline, retries)
        check_count("ray", "per_node", per_node)
        given = {"cpus": cpus, "gpus": gpus, "memory": None if memory is None else memory * 1e9}
        self.given = {name: value for name, value in given.items() if value is not None}
        check_resources("ray", self.given)
        self.address, self.per_node = address, per_node
        self.deadline, self.retries = deadline, retries

    def run(self, plan: Plan, jobs: Sequence[Job], report: Report) -> None:
        """Run the jobs, as many at a time as the cluster takes."""
        if plan.factories or plan.builder is not None:
            raise SpecError(
                "agents and curricula given as Python objects cannot be sent to a cluster: use the serial "
                "executor, or name them as file.py:Object"
            )
        if not jobs:
            return
        with connected(self.address) as ray:
            needs = {label: {**declared(plan, label), **self.given} for label in plan.agents}
            if plan.eval_workers > 1:  # They run where their lifetime does.
                for need in needs.values():
                    need["cpus"] = max(need.get("cpus", 1), plan.eval_workers)
            for label, need in needs.items():
                check_resources(f"agent {label}", need)
                _refuse_too_much(ray, label, need)
            _Driver(self, ray, plan, needs, report).run(jobs)


class _Driver:
    """One run of jobs on a cluster."""

    def __init__(
        self, options: Ray, ray: Any, plan: Plan, needs: Mapping[str, Mapping[str, float]], report: Report
    ) -> None:  # fmt: skip
        self.options, self.ray, self.plan, self.needs, self.report = (
            options,
            ray,
            plan,
            needs,
            report,
        )
        # Every failure is counted here: Ray tries nothing again by itself.
        self.remote = ray.remote(max_retries=0, max_calls=0)(run_one)
        self.lost: Counter[str] = Counter()
        self.occupied: Counter[str] = Counter()
        self.active: dict[Any, _Task] = {}
        self.later: list[tuple[float, Job]] = []

    def run(self, jobs: Sequence[Job]) -> None:
        """Until every job is reported."""
        waiting = deque(jobs)
        try:
            while waiting or self.active or self.later:
                now = time.monotonic()
                waiting.extendleft(job for when, job in self.later if when <= now)
                self.later = [(when, job) for when, job in self.later if when > now]
                while waiting and (node := self._room()) is not None:
                    self._submit(waiting.popleft(), node)
                if not self.active:
                    time.sleep(0.1)
                    continue
                with unwrapped():
                    ready, _ = self.ray.wait(list(self.active), num_returns=1, timeout=0.2)
                for ref in ready:
                    job = self.active.pop(ref).job
                    if (again := self._ended(job, ref)) is not None:
                        self.later.append((time.monotonic() + again, job))
        finally:
            self._cancel()

    def _room(self) -> str | None:
        """A node for the next task, empty where Ray may choose; None where it has to wait."""
        nodes = [n for n in self.ray.nodes() if n["Alive"]]
        if not self.options.per_node:
            slots = sum(n["Resources"].get("CPU", 0) for n in nodes)
            return "" if len(self.active) < slots + AHEAD else None
        busy = Counter(task.node for task in self.active.values())
        # A node without processors only leads.
        able = [n["NodeID"] for n in nodes if n["Resources"].get("CPU", 0) > 0]
        free = [node for node in able if busy[node] < self.options.per_node]
        return min(free, key=lambda node: busy[node]) if free else None

    def _submit(self, job: Job, node: str) -> None:
        need = self.needs[job.agent]
        options: dict[str, Any] = {
            "num_cpus": need.get("cpus", 1), "num_gpus": need.get("gpus", 0), "name": f"perdure {job.id}",
        }  # fmt: skip
        if need.get("memory"):
            options["memory"] = int(need["memory"])
        if node:
            strategies = importlib.import_module("ray.util.scheduling_strategies")
            options["scheduling_strategy"] = strategies.NodeAffinitySchedulingStrategy(
                node, soft=False
            )
        plan = self.plan
        names = ("video", "filmed", "mix_code", "pruning", "eval_workers")
        flags = {name: getattr(plan, name) for name in names}
        patience = {"deadline": self.options.deadline, "retries": self.options.retries}
        args = (
            str(plan.path.absolute()),
            job.id,
            os.getcwd(),
            flags,
            patience,
            need.get("cpus", 1),
        )
        self.active[self.remote.options(**options).remote(*args)] = _Task(job, node)

    def _ended(self, job: Job, ref: Any) -> float | None:
        """Report how a task ended; or in how many seconds to try it again."""
        try:
            status, error, notes = self.ray.get(ref)
        except self.ray.exceptions.RayTaskError as e:
            status, error, notes = "failed", f"could not be run on its node: {e.cause}", ""
        except self.ray.exceptions.RayError as e:
            return self._gone(job, f"{type(e).__name__}: {str(e).partition(chr(10))[0]}")
        if notes:
            print(notes, end="", file=sys.stderr)
        if status == "failed" and error.startswith("LockedError"):
            self.occupied[job.id] += 1
            if self.occupied[job.id] <= OCCUPIED:
                return PAUSE
        self.report(Outcome(job, status, error))
        return None

    def _gone(self, job: Job, why: str) -> float | None:
        """A worker, or its node, is lost."""
        if finished(self.plan, job):
            self.report(Outcome(job, "done"))
            return None
        self.lost[job.id] += 1
        if self.lost[job.id] <= self.options.retries:
            return 0.5
        text = clipped(f"the worker was lost {self.lost[job.id]} times: {why}")
        write_error(LifetimeFolder(self.plan.path / job.id), text)
        self.report(Outcome(job, "failed", text))
        return None

    def _cancel(self) -> None:
        """Stop what runs: politely, then by force."""
        if not self.active:
            return
        left = list(self.active)
        for force in (False, True):
            for ref in left:
                with contextlib.suppress(Exception):
                    self.ray.cancel(ref, force=force)
            with contextlib.suppress(Exception):
                _, left = self.ray.wait(left, num_returns=len(left), timeout=GRACE)
            if not left:
                return


@contextmanager
def unwrapped() -> Iterator[None]:
    """A signal that comes while Ray's compiled code waits is raised as what it is."""
    try:
        yield
    except SystemError as e:
        if isinstance(e.__cause__, Interrupted):
            raise e.__cause__ from None
        raise


def run_one(
    run: str,
    job_id: str,
    cwd: str,
    flags: Mapping[str, Any],
    patience: Mapping[str, Any],
    cpus: float,
) -> tuple[str, str, str]:
    """Run one lifetime on the node that this is called on: how it ended, why, and what it said."""
    if os.path.isdir(cwd):
        os.chdir(cwd)  # Files of agents may be named from there.
    plan = replace(load_plan(place(run)), **flags)
    outcomes: list[Outcome] = []
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        alone = Processes(workers=1, **patience)
        alone.threads = max(1, int(cpus))
        alone.run(plan, [plan.job(job_id)], outcomes.append)
    return outcomes[0].status, outcomes[0].error, said.getvalue()


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster. One that this starts is ended with the block; a connection that is
    there already is used, and left."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as e:
        raise MissingExtra("executor ray", "ray") from e
    if ray.is_initialized():
        yield ray
        return
    handlers = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if not address:
        # Ray's own workers stand back behind everything else on a machine. Lifetimes need not.
        os.environ.setdefault("RAY_worker_niceness", "0")
    more: dict[str, Any] = {"include_dashboard": False} if not address else {}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level="error", **more)
    except Exception as e:
        raise SpecError(
            f"executor ray: no cluster could be reached at {address or 'this machine'!r} ({type(e).__name__}: "
            f"{str(e).partition(chr(10))[0]}); start one with 'ray start --head', or leave address out"
        ) from e
    finally:
        for s, handler in handlers.items():
            with contextlib.suppress(ValueError):  # Not the main thread: nothing was changed.
                signal.signal(s, handler)
    try:
        yield ray
    finally:
        ray.shutdown()


def declared(plan: Plan, label: str) -> dict[str, float]:
    """What an agent's class declares that its lifetimes need."""
    spec = plan.agents[label]
    found = getattr(registry.load("agents", spec.parts[-1]), "resources", None) or {}
    if not isinstance(found, Mapping):
        raise SpecError(f"agent {label}: resources must map cpus, gpus and memory to numbers, got {found!r}")  # fmt: skip
    return dict(found)


def check_resources(who: str, found: Mapping[str, Any]) -> None:
    """SpecError unless these are amounts of what a node can have."""
    for name, value in found.items():
        if name not in ("cpus", "gpus", "memory"):
            raise SpecError(f"{who}: no resource is called {name!r}: expected cpus, gpus or memory")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
            raise SpecError(f"{who}: {name} must be a number ≥ 0, got {value!r}")


def _refuse_too_much(ray: Any, label: str, need: Mapping[str, float]) -> None:
    """SpecError if no node could ever run an agent: Ray would wait for one for ever."""
    names = {"cpus": "CPU", "gpus": "GPU", "memory": "memory"}
    wanted = {names[k]: v for k, v in ({"cpus": 1} | dict(need)).items() if v}
    nodes = [n["Resources"] for n in ray.nodes() if n["Alive"]]
    if any(all(node.get(k, 0) >= v for k, v in wanted.items()) for node in nodes):
        return
    offers = "; ".join(", ".join(f"{k} {node.get(k, 0):g}" for k in wanted) for node in nodes)
    asked = ", ".join(f"{k} {v:g}" for k, v in wanted.items())
    raise SpecError(f"agent {label} needs {asked}, and no node of the cluster has that ({offers})")


executor = Ray
