"""Lifetimes as the tasks of a Ray cluster: one that is running, or a fresh one on this machine.

The run's folder must be one that every node sees: a shared file system, or an object store's URL.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perdure.errors import SpecError
from perdure.run.executors.base import Report, check_count, check_patience
from perdure.run.executors.processes import Processes
from perdure.run.executors.ray_cluster import (
    check_resources,
    connected,
    declared,
    refuse_too_much,
    unwrapped,
)
from perdure.run.lifetime import NOTE, Outcome, describe_error, finished, write_error
from perdure.run.plan import Job, Plan, load_plan
from perdure.run.spec import DEADLINE
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
                refuse_too_much(ray, label, need)
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
        how = {"max_retries": 0, "max_calls": 0, "num_returns": "streaming"}
        self.remote = ray.remote(**how)(run_one)
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
                for told in ready:
                    job = self.active[told].job
                    with unwrapped():
                        word = self._heard(told)
                    if word is None:
                        continue
                    del self.active[told]
                    if (again := self._ended(job, *word)) is not None:
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
        names = ("video", "recorded", "mix_code", "pruning", "eval_workers")
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

    def _heard(self, told: Any) -> tuple[str, str] | None:
        """Pass on a line of a task's lifetime; how it ended and why, if that is what it tells."""
        try:
            what, text = self.ray.get(next(told))
        except self.ray.exceptions.RayTaskError as e:
            return "failed", f"could not be run on its node: {e.cause}"
        except (self.ray.exceptions.RayError, StopIteration) as e:
            return "lost", f"{type(e).__name__}: {str(e).partition(chr(10))[0]}"
        if what == NOTE:
            print(text, file=sys.stderr)
            return None
        return what, text

    def _ended(self, job: Job, status: str, error: str) -> float | None:
        """Report how a task ended; or in how many seconds to try it again."""
        if status == "lost":
            return self._gone(job, error)
        outcome = Outcome(job, "done" if status == "done" else "failed", error)
        if outcome.occupied:
            self.occupied[job.id] += 1
            if self.occupied[job.id] <= OCCUPIED:
                return PAUSE
        self.report(outcome)
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
        write_error(self.plan.lifetime(job), text)
        self.report(Outcome(job, "failed", text))
        return None

    def _cancel(self) -> None:
        """Stop what runs: politely, then by force."""
        if not self.active:
            return
        left = list(self.active)
        for force in (False, True):
            for told in left:
                with contextlib.suppress(Exception):
                    self.ray.cancel(told, force=force)
            end = time.monotonic() + GRACE
            while left and time.monotonic() < end:
                left = [told for told in left if not self._silent(told)]
            if not left:
                return

    def _silent(self, told: Any) -> bool:
        """Whether a task that was cancelled tells nothing more; waits a little."""
        with contextlib.suppress(Exception):
            if not self.ray.wait([told], timeout=0.1)[0]:
                return False
            return self._heard(told) is not None
        return True


def run_one(
    run: str,
    job_id: str,
    cwd: str,
    flags: Mapping[str, Any],
    patience: Mapping[str, Any],
    cpus: float,
) -> Iterator[tuple[str, str]]:
    """Run one lifetime on the node that this is called on. Yields the lines that it says to the user, as
    it says them, and at last how it ended, and why."""
    if os.path.isdir(cwd):
        os.chdir(cwd)  # Files of agents may be named from there.
    plan = replace(load_plan(place(run)), **flags)
    said: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    alone = Processes(workers=1, **patience)
    alone.threads = max(1, int(cpus))
    alone.tell = lambda line: said.put((NOTE, line))

    def ended(outcome: Outcome) -> None:
        said.put((outcome.status, outcome.error))

    def live() -> None:
        try:
            alone.run(plan, [plan.job(job_id)], ended)
        except BaseException as e:
            said.put(("failed", describe_error(e)))

    # The lifetime is waited for in a thread, since this one passes its output on and receives the order to stop.
    thread = threading.Thread(target=live, name=f"lifetime {job_id}", daemon=True)
    thread.start()
    try:
        while True:
            with contextlib.suppress(queue.Empty):
                what, text = said.get(timeout=0.2)
                yield what, text
                if what != NOTE:
                    return
    finally:
        alone.stopping.set()
        thread.join(GRACE)


executor = Ray
