"""What a run has started, and that it does not outlive the run (:mod:`perdure.run.guardian`)."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from perdure.run import guardian

_pipes: set[int] = set()


def _close_in_child() -> None:
    # A forked child that held the pipe open would keep the guardian waiting after the run's death.
    for fd in _pipes:
        os.close(fd)
    _pipes.clear()


os.register_at_fork(after_in_child=_close_in_child)


class ChildProcesses:
    """The processes that a run starts."""

    def __init__(self) -> None:
        self.mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._guardian: subprocess.Popen[bytes] | None = None
        try:
            # Without site packages it starts in some milliseconds.
            self._guardian = subprocess.Popen(
                [sys.executable, "-I", "-S", guardian.__file__, self.mark],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={k: v for k, v in os.environ.items() if k != guardian.MARK},
                start_new_session=True,
                bufsize=0,
            )
        except OSError:
            return  # Nothing depends on it but what a killed run leaves behind.
        assert self._guardian.stdin is not None
        _pipes.add(self._guardian.stdin.fileno())

    @property
    def environment(self) -> dict[str, str]:
        """What its processes are known by."""
        return {guardian.MARK: self.mark}

    def started(self, group: int) -> None:
        """A process group was started."""
        self._tell(f"+{group}")

    def ended(self, group: int) -> None:
        """A process group has ended."""
        self._tell(f"-{group}")

    def close(self, peacefully: bool) -> None:
        """The run is over; what it started and is still there lives on in peace, or is ended."""
        if self._guardian is None or self._guardian.stdin is None:
            return
        if peacefully:
            self._tell("bye")
        _pipes.discard(self._guardian.stdin.fileno())
        self._guardian.stdin.close()
        self._guardian.wait()

    def _tell(self, word: str) -> None:
        if self._guardian is None or self._guardian.stdin is None:
            return
        try:
            self._guardian.stdin.write(f"{word}\n".encode())
        except OSError:
            pass  # The guardian was killed.


@contextmanager
def child_processes() -> Iterator[ChildProcesses]:
    """What is started inside this block ends with the process, if that is killed, and with the
    block, if that is left by an exception."""
    made, peacefully = ChildProcesses(), False
    try:
        yield made
        peacefully = True
    finally:
        made.close(peacefully)
