"""Ends what a run has started when the run itself is killed.

A process that is killed by ``kill -9`` cannot clean up. So a small process of its own, the guardian,
holds the end of a pipe whose other end only the run has: when the run is gone without a word, the
pipe is at its end, and the guardian kills

- the process groups of the run's workers, on every system;
- every process that carries the run's mark in its environment, where ``/proc`` shows that (Linux):
  also what has left its group, and what an agent started in the serial executor's own process.

Not found is what was forked in the run's own process without starting another program, and, where
there is no ``/proc``, what left its group.
"""

# This file is also the guardian's program: it imports nothing that takes time.
import os
import signal
import sys

MARK = "PERDURE_FAMILY"
_BYE = "bye"


def _watch(mark: str) -> None:
    """The guardian's life: it reads commands, a line each, until the end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        word = line.strip()
        if word == _BYE:
            return
        (groups.add if word[0] == "+" else groups.discard)(int(word[1:]))
    for group in groups:
        _kill(os.killpg, group)
    # Twice: one may start another while we look.
    for _ in range(2):
        for pid in _marked(mark):
            _kill(os.kill, pid)


def _kill(how, which: int) -> None:  # type: ignore[no-untyped-def]
    try:
        how(which, signal.SIGKILL)
    except OSError:
        pass  # It has ended by itself, or is not ours.


def _marked(mark: str) -> list[int]:
    """Processes with the run's mark in their environment."""
    wanted, found = f"{MARK}={mark}".encode(), []
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if pid != os.getpid() and wanted in f.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            continue  # Another user's, or gone.
    return found


if __name__ == "__main__":
    _watch(sys.argv[1])
