"""Physics of many environments on all cores: MuJoCo holds no Python lock while it steps.

Each simulation has memory of its own, so what comes out is the same with any number of threads.
How many there are, ``PERDURE_THREADS`` says; without it, as many as this process may use cores.
Lifetimes side by side in processes share the cores between them (:mod:`perdure.run.executors.processes`).
"""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Iterable
from queue import SimpleQueue
from typing import Protocol

from perdure.pools import threads as threads


class Steppable(Protocol):
    """A simulation that has been told what to do."""

    def move(self) -> None:
        """Make a step of physics; no other simulation is touched."""


class StepThreadPool:
    """The calling thread and its helpers.

    Simulations are handed in by :meth:`add`; :meth:`work` has everyone move them, the caller too.
    """

    def __init__(self, helpers: int) -> None:
        self.helpers = helpers
        self.waiting: deque[Steppable] = deque()
        self.moving: set[Steppable] = set()
        """Handed in, and not known to have moved."""
        self.calls: SimpleQueue[None] = SimpleQueue()
        self.moved: SimpleQueue[tuple[Steppable, Exception | None]] = SimpleQueue()
        """By helpers."""
        for _ in range(helpers):
            threading.Thread(target=self._help, name="physics", daemon=True).start()

    def add(self, robots: Iterable[Steppable]) -> None:
        """Simulations that are to make a step."""
        robots = list(robots)
        self.moving.update(robots)
        self.waiting.extend(robots)

    def work(self) -> None:
        """Move until none is left to begin with; helpers may still be at their last."""
        for _ in range(min(self.helpers, len(self.waiting) - 1)):
            self.calls.put(None)
        while (robot := self._next()) is not None:
            self.moving.discard(robot)
            robot.move()

    def wait(self, robot: Steppable) -> None:
        """Return when this one has moved."""
        while robot in self.moving:
            other, error = self.moved.get()
            self.moving.discard(other)
            if error is not None:
                raise error

    def _next(self) -> Steppable | None:
        try:
            return self.waiting.popleft()
        except IndexError:
            return None

    def _help(self) -> None:
        while True:
            self.calls.get()
            while (robot := self._next()) is not None:
                error: Exception | None = None
                try:
                    robot.move()
                except Exception as e:
                    error = e
                self.moved.put((robot, error))


def pool() -> StepThreadPool:
    """This process's pool."""
    return _pool(os.getpid())


@functools.cache
def _pool(process: int) -> StepThreadPool:
    return StepThreadPool(threads() - 1)
