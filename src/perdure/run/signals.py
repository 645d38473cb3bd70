"""Stopping politely: signals become an exception, deadlines an alarm, orphans end."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from perdure.errors import CurriculumError, Hung, Interrupted

GRACE = 2.0
"""Seconds for threads to end once the work is done."""


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGINT and SIGTERM raise Interrupted inside this block (main thread only)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        raise Interrupted(signum)

    before = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


@contextmanager
def deadline(seconds: float) -> Iterator[Callable[[], None]]:
    """Gives a function to call at every sign of life; Hung is raised when it is not called for
    ``seconds``. Does nothing outside the main thread, where Python delivers no signals."""
    if threading.current_thread() is not threading.main_thread() or seconds <= 0:
        yield lambda: None
        return

    def alarm(signum: int, frame: FrameType | None) -> None:
        raise Hung(f"no sign of life for {seconds:g} s")

    def beat() -> None:
        # It rings again, should the first time be swallowed or tearing down hang as well.
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)

    before = signal.signal(signal.SIGALRM, alarm)
    beat()
    try:
        yield beat
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def patient(what: str, seconds: float) -> Iterator[None]:
    """CurriculumError if the block takes longer than ``seconds``: while a run is planned, nothing
    gives signs of life."""
    try:
        with deadline(seconds):
            yield
    except Hung as e:
        raise CurriculumError(
            f"{what} hangs while the run is planned ({e}); if it is only slow, allow more: "
            f"--executor processes,deadline={10 * seconds:g}"
        ) from e


def leave(code: int) -> NoReturn:
    """End this process, also if an agent or environment left threads running that are not waited
    for: all is on disk."""
    left = [
        t.name for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()
    ]
    if left:
        # The usual end waits for them for ever; a thread that it does not wait for is its limit.
        threading.Thread(target=_end, args=(code, left), daemon=True).start()
    sys.exit(code)


def _end(code: int, left: Sequence[str]) -> None:
    time.sleep(GRACE)
    try:
        print(f"perdure: ended with threads left running: {', '.join(left)}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        raise Interrupted(signal.SIGTERM)
