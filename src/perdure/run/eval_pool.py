"""Processes that evaluate tasks for a lifetime, side by side (:mod:`perdure.run.eval_worker`).

They are started when the first evaluation begins and stay until the lifetime's process ends. One that
dies is replaced and its task evaluated again; there is nothing that it could have left half done.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.arrays import Array, ChunkedArray
from perdure.errors import AgentFault, PerdureError, WorkerLost
from perdure.pools import cores, data_room
from perdure.relayed import retold
from perdure.run.messages import receive, send, send_file, shared_file
from perdure.run.transcript import Transcript

RETRIES = 2
"""How often a task is evaluated again whose process died."""
LOOK = 0.2
"""Seconds between two looks, if no process says anything."""
PATIENCE = 2.0
"""Seconds for a process to end by itself."""


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    sock: socket.socket
    task: tuple[int, ...] = ()
    """The groups that it evaluates now; empty while it is idle."""
    begun: bool = False
    """Whether it has the agent of this phase."""
    cpu: float = 0.0


@dataclass
class _Phase:
    """An evaluation under way."""

    head: Mapping[str, Any]
    file: Any
    """The agent's state."""
    waiting: deque[tuple[int, ...]]
    found: dict[int, tuple[Transcript, PerdureError | None]] = field(default_factory=dict)
    tries: Counter[tuple[int, ...]] = field(default_factory=Counter)


class EvalPool:
    """At most ``count`` processes, each started by ``command`` and the number of its socket."""

    def __init__(self, command: Sequence[str], count: int) -> None:
        self.command, self.count = list(command), count
        self.workers: list[_Worker] = []
        self.fractions: dict[int, float] = {}
        """How much of each group that has begun is done."""
        self._gone = 0.0

    @property
    def cpu(self) -> float:
        """Seconds of processor time that they took."""
        return self._gone + sum(w.cpu for w in self.workers)

    def evaluate(
        self,
        head: Mapping[str, Any],
        arrays: Mapping[str, Array | ChunkedArray],
        tasks: Sequence[Sequence[int]],
        alive: Callable[[], None],
    ) -> Iterator[tuple[int, Transcript]]:
        """What each group gave, in order, wherever and whenever it was played. ``tasks`` are the groups that
        belong to one visit of a task; ``alive`` is called at every sign of life. What was raised
        is raised when its turn comes, after what was played before."""
        self.fractions = {}
        with shared_file(arrays) as file:
            phase = _Phase({"ask": "begin", **head}, file, deque(tuple(t) for t in tasks))
            for task in tasks:
                for g in task:
                    while g not in phase.found:
                        self._turn(phase, alive)
                    transcript, failure = phase.found.pop(g)
                    yield g, transcript
                    if failure is not None:
                        raise failure
            self._end(phase, alive)

    def _turn(self, phase: _Phase, alive: Callable[[], None]) -> None:
        """Give the idle something to do, and hear those who work."""
        while phase.waiting and (worker := self._idle()) is not None:
            task = phase.waiting.popleft()
            self._ask(worker, phase, task)
        for worker in self._ready():
            self._hear(worker, phase, alive)

    def _idle(self) -> _Worker | None:
        for worker in self.workers:
            if not worker.task:
                return worker
        if len(self.workers) < self.count:
            self.workers.append(self._start())
            return self.workers[-1]
        return None

    def _start(self) -> _Worker:
        share: dict[str, str] = {}
        rooms = ("PERDURE_THREADS", cores(), 1), ("PERDURE_DATA_MB", data_room() // 1_000_000, 0)
        for name, most, least in rooms:
            given = os.environ.get(name, "")
            whole = int(given) if given.isdecimal() else most
            share[name] = str(max(least, whole // self.count))
        mine, its = socket.socketpair()
        with its:
            process = subprocess.Popen(
                [*self.command, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                env={**os.environ, **share, "PERDURE_PARENT": str(os.getpid())},
            )
        return _Worker(process, mine)

    def _ask(self, worker: _Worker, phase: _Phase, task: tuple[int, ...]) -> None:
        worker.task = task
        with contextlib.suppress(ConnectionError):  # It is gone, and will be heard of.
            if not worker.begun:
                worker.begun = True
                send(worker.sock, phase.head)
                send_file(worker.sock, phase.file)
            send(worker.sock, {"ask": "evaluate", "groups": task})

    def _ready(self) -> list[_Worker]:
        socks = {w.sock: w for w in self.workers}
        return [socks[s] for s in select.select(list(socks), [], [], LOOK)[0]]

    def _hear(self, worker: _Worker, phase: _Phase, alive: Callable[[], None]) -> str:
        """Take one message of a worker; which request it answers, if it does."""
        message = receive(worker.sock)
        if message is None:
            self._lost(worker, phase)
            return "nothing"
        told, arrays = message
        worker.cpu = told.get("cpu", worker.cpu)
        if "beat" in told:
            self.fractions[told["beat"]] = told["fraction"]
        elif "group" in told:
            g, failure = told["group"], told["failure"]
            error = None if failure is None else raised(failure)
            phase.found[g] = (Transcript(told["events"], arrays), error)
            self.fractions[g] = 1.0
        elif told["failure"] is not None:
            raise raised(told["failure"])
        elif told["answer"] == "evaluate":
            worker.task = ()
        alive()
        return str(told.get("answer", ""))

    def _lost(self, worker: _Worker, phase: _Phase) -> None:
        task, code = worker.task, self._stop(worker)
        if not task:
            return
        phase.tries[task] += 1
        if phase.tries[task] > RETRIES:
            how = f"died with signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise WorkerLost(
                f"the process that evaluated exposure {task[0]} of block {phase.head['number']} {how}, "
                f"{phase.tries[task]} times; without --eval-workers, the lifetime's own evaluates"
            )
        phase.waiting.appendleft(task)

    def _end(self, phase: _Phase, alive: Callable[[], None]) -> None:
        """Let everybody look whether the agent is as it was."""
        while any(w.task for w in self.workers):
            for worker in self._ready():
                self._hear(worker, phase, alive)
        for worker in [w for w in self.workers if w.begun]:
            worker.begun = False
            with contextlib.suppress(ConnectionError):
                send(worker.sock, {"ask": "end"})
            while not self._hear(worker, phase, alive):
                pass

    def _stop(self, worker: _Worker) -> int:
        """End a worker; its exit code."""
        self.workers.remove(worker)
        self._gone += worker.cpu
        worker.sock.close()
        try:
            return worker.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            return worker.process.wait()

    def close(self) -> None:
        """End them all."""
        for worker in list(self.workers):
            if worker.task:
                worker.process.kill()
            else:
                worker.sock.close()
        for worker in list(self.workers):
            self._stop(worker)


def raised(failure: Mapping[str, str]) -> PerdureError:
    """An exception of another process, as it would have been raised here."""
    error = retold(failure, "evaluated")
    if isinstance(error, PerdureError):
        return error
    fault = AgentFault(f"{failure['type']}: {error}")
    fault.__cause__ = error
    return fault
