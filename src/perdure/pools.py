"""Worker processes for work that is cut into pieces: new ones, that do not outlive who started them; and threads."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from perdure.errors import SpecError
from perdure.pythonpath import from_safe_path


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def data_room(sharers: int = 1) -> int:
    """Bytes of memory that one of so many processes may fill with data that it could read again: together an
    eighth of what this machine, or the container, has, or 1 GiB if that is more."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # No container, or one without a limit ("max").
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return max(memory // 8, 1 << 30) // max(1, sharers)


def threads() -> int:
    """How many threads of this process may compute at a time: ``PERDURE_THREADS``, or as many as it may use cores."""
    text = os.environ.get("PERDURE_THREADS")
    if text is None:
        return cores()
    if not text.isdecimal() or int(text) < 1:
        raise SpecError(f"PERDURE_THREADS must be a whole number of at least 1, got {text!r}")
    return int(text)


@contextmanager
def thread_map(pieces: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """What stands for ``map`` over so many pieces that hold no Python lock: with threads, if there may be several.
    Results come in order."""
    count = min(threads(), pieces)
    if count < 2:
        yield map
        return
    with ThreadPoolExecutor(count) as pool:
        yield pool.map


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
