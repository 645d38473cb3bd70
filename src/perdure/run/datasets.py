"""The lifetime's data sets: opened once, read from any thread, fetched ahead of their use."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from perdure.errors import AgentFault
from perdure.run.vector import fault
from perdure.suite import Data, Suite
from perdure.types import Array, Examples, Task

PREFETCH = 4
"""Minibatches that are fetched ahead at most."""
WORTHWHILE = 5e-4
"""Seconds that a minibatch takes at least for another thread to fetch the next ones: to hand over
one of less costs more than it gives."""


class Dataset:
    """The training or held-out data of one task. One thread reads at a time: not every file format
    allows more."""

    def __init__(self, task: Task, source: int, data: Data) -> None:
        self.task, self.source, self.data = task, source, data
        self._lock = threading.Lock()

    def fetch(self, indices: Array) -> Examples:
        """A minibatch, which says where it is from."""
        with self._lock:
            try:
                batch = self.data.batch(indices)
            except Exception as e:
                raise fault(f"data of {self.task.id}", e) from e
        if batch.source < 0 <= self.source:
            batch.source, batch.indices = self.source, indices
        return batch


class Datasets:
    """The data of a curriculum's tasks. Training data has the number of its task as its source, by
    which agents look examples up again; held-out data has none."""

    def __init__(self, tasks: Sequence[Task], suites: Mapping[str, Suite]) -> None:
        self.tasks, self.suites = tasks, suites
        self._numbers = {t.key: k for k, t in enumerate(tasks)}
        self._opened: dict[tuple[int, bool], Dataset] = {}
        self._looked_up: set[int] = set()
        """Numbers of the tasks whose data an agent asks for again and again, from any thread."""
        self._lock = threading.Lock()

    def open(self, task: Task, learning: bool) -> Dataset:
        """The task's training or held-out data, the same object every time."""
        number = self._numbers[task.key]
        with self._lock:
            if (number, learning) not in self._opened:
                try:
                    data = self.suites[task.suite].data(task, learning)
                except Exception as e:
                    raise fault(f"data of {task.id}", e) from e
                self._opened[number, learning] = Dataset(task, number if learning else -1, data)
            return self._opened[number, learning]

    def close(self, task: Task, learning: bool) -> None:
        """Let go of data that is not needed for a while, unless an agent looks things up in it."""
        number = self._numbers[task.key]
        if not (learning and number in self._looked_up):
            self._opened.pop((number, learning), None)

    def examples(self, source: int, indices: Array) -> Examples:
        """Training examples again, as an agent asks for them."""
        if not 0 <= source < len(self.tasks):
            raise AgentFault(
                f"examples of source {source} were asked for: expected a batch's own source, from 0 "
                f"to {len(self.tasks) - 1}"
            )
        self._looked_up.add(source)
        return self.open(self.tasks[source], True).fetch(indices)


class Prefetcher:
    """Calls a function on one argument after another, ahead of their use where that is worthwhile.

    What is fetched, and in which order it is handed out, does not depend on the thread.
    """

    def __init__(self, fetch: Callable[[Array], Examples]) -> None:
        self.fetch = fetch
        self._waiting: deque[Future[Examples]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._slow = 0
        """Minibatches in a row that took their time: the first one may have opened files."""

    def next(self, upcoming: Callable[[int], Array | None]) -> Examples:
        """The next minibatch. ``upcoming(k)`` gives the indices of the k-th from now, None if there
        is none."""
        if self._waiting:
            found = self._waiting.popleft().result()
            self._ahead(upcoming)
            return found
        first = upcoming(0)
        assert first is not None
        began = time.perf_counter()
        found = self.fetch(first)
        self._slow = self._slow + 1 if time.perf_counter() - began >= WORTHWHILE else 0
        if self._slow > 1:
            self._ahead(upcoming)
        return found

    def _ahead(self, upcoming: Callable[[int], Array | None]) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
        while len(self._waiting) < PREFETCH:
            indices = upcoming(len(self._waiting) + 1)
            if indices is None:
                return
            self._waiting.append(self._pool.submit(self.fetch, indices))

    def close(self) -> None:
        """Drop what was fetched and not used."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._waiting.clear()
