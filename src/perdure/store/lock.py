"""A lock that the kernel releases when its owner dies: who writes a lifetime, told at once.

It is a courtesy between processes that see the same disk. That a lifetime has one writer does not
depend on it (:mod:`perdure.store.journal`).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path

from perdure.errors import LockedError, StoreError
from perdure.store.files import linked, make_folder, typed

PATIENCE = 0.5
"""Seconds to try for: someone who only asks whether the lock is held has it for a moment, and a
killed owner may take a moment to die."""

_ITSELF = os.O_NOFOLLOW | os.O_NONBLOCK
"""No link is followed, no pipe waited for."""

_mine: set[int] = set()


def _let_go_in_child() -> None:
    # A forked child shares its parent's lock and would keep it alive after the parent's death.
    for fd in _mine:
        os.close(fd)
    _mine.clear()


os.register_at_fork(after_in_child=_let_go_in_child)


class Lock:
    """An exclusive ``flock`` on a file that says who holds it.

    A dead owner holds nothing: whatever killed it, the next process takes over.
    """

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self.path, self.patience = path, patience
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise LockedError naming the owner."""
        if not self.path.parent.is_dir():
            make_folder(self.path.parent)
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | _ITSELF, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise StoreError(f"{self.path} is not a regular file: remove it")
                self._take(fd)
                os.ftruncate(fd, 0)
                who = {"pid": os.getpid(), "host": socket.gethostname()}
                os.pwrite(fd, json.dumps(who).encode(), 0)
            except BaseException:
                os.close(fd)
                raise
        except OSError as e:
            if e.errno == errno.ELOOP:
                raise linked(self.path) from None
            raise typed(e, self.path) from e
        self._fd = fd
        _mine.add(fd)

    def _take(self, fd: int) -> None:
        end = time.monotonic() + self.patience
        while not _flock(fd, fcntl.LOCK_EX):
            if time.monotonic() >= end:
                raise LockedError(
                    f"{self.path.parent.parent} is being written by {_owner(fd)}; wait for it or "
                    "stop it"
                )
            time.sleep(0.02)

    def release(self) -> None:
        """Let go."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            _mine.discard(self._fd)
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    @staticmethod
    def held(path: Path) -> bool:
        """Whether a live process holds the lock at this path, as far as can be seen: a file that
        cannot be opened, or is a link, tells nothing."""
        try:
            fd = os.open(path, os.O_RDONLY | _ITSELF)
        except OSError:
            return False
        try:
            # Shared, so that two who ask do not take each other for the owner.
            return not _flock(fd, fcntl.LOCK_SH)
        finally:
            os.close(fd)


class NoLock:
    """Where there is none to be had. ``check`` may refuse whoever wants it."""

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self.check = check

    def acquire(self) -> None:
        """LockedError if somebody else is seen."""
        self.check()

    def release(self) -> None:
        """Nothing to let go of."""

    def __enter__(self) -> NoLock:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def _flock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _owner(fd: int) -> str:
    """Who wrote the lock file, in words."""
    try:
        who = json.loads(os.pread(fd, 1000, 0))
        return f"process {int(who['pid'])} on {who['host']}"
    except (ValueError, TypeError, KeyError):
        return "another process"
