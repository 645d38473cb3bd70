"""Worker processes for work that is cut into pieces: new ones, that do not outlive who started them."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from perdure.pythonpath import from_safe_path


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of spawned processes. What has not begun when it is left is dropped; what has is waited for,
    unless it is left by an exception."""
    context = multiprocessing.get_context("spawn")
    with from_safe_path():
        pool = ProcessPoolExecutor(workers, context, initializer=_exit_with_parent)
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown(cancel_futures=True)


def _exit_with_parent() -> None:
    """End this worker when its parent is killed: it would wait for work for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
