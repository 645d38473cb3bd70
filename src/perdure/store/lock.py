"""One writer a lifetime: a lock the kernel releases when its owner dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path

from perdure.errors import LockedError


class Lock:
    """An exclusive ``flock`` on a file that says who holds it.

    A dead owner holds nothing: whatever killed it, the next process takes over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise LockedError naming the owner."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            owner = os.pread(fd, 1000, 0).decode(errors="replace").strip() or "an unknown process"
            os.close(fd)
            raise LockedError(
                f"{self.path.parent.parent} is being written by {owner}; wait for it or stop it"
            ) from e
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)
        self._fd = fd

    def release(self) -> None:
        """Let go."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    @staticmethod
    def held(path: Path) -> bool:
        """Whether a live process holds the lock at this path."""
        try:
            fd = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False
