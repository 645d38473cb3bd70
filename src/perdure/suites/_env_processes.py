"""Environments of one lifetime in several processes: for those whose steps hold Python's lock.

A process is started when its first environment is made and stays until this process ends, since
starting one costs a second. What comes out is the same with any number of them.

    python -m perdure.suites._env_processes FD

is such a process: it is asked for calls of its environments' methods, and answers in turn.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from perdure.errors import EnvironmentFault, PerdureError

Call = tuple[int, str, tuple[Any, ...]]
"""Which environment, what method, with what."""
_numbers = itertools.count()
"""Of environments."""


class EnvHost:
    """This process, as one that holds environments: it does what it is asked for when the answer is needed."""

    def __init__(self) -> None:
        self.held = 0
        """How many environments are here now."""
        self._envs: dict[int, Any] = {}
        self._requests = itertools.count()
        self._asked: dict[int, Sequence[Call]] = {}

    def make(self, made: Callable[[], Any]) -> int:
        """A new environment; its number."""
        number = next(_numbers)
        self.answer(self.ask([(number, "make", (made,))]))
        self.held += 1
        return number

    def drop(self, number: int) -> None:
        """Close an environment. If its process is gone, so is what it held."""
        self.held -= 1
        with contextlib.suppress(EnvironmentFault):
            self.answer(self.ask([(number, "close", ())]))

    def ask(self, calls: Sequence[Call]) -> int:
        """Begin calls, one after another; the number of the request."""
        request = next(self._requests)
        self._asked[request] = calls
        return request

    def answer(self, request: int) -> list[Any]:
        """What the calls of a request gave; raises what they raised."""
        return _done(self._envs, self._asked.pop(request))


class EnvProcess(EnvHost):
    """Another process that holds environments."""

    def __init__(self) -> None:
        super().__init__()
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: dict[int, Any] = {}
        """Those that nobody has asked for yet."""
        self._answered = itertools.count()

    def ask(self, calls: Sequence[Call]) -> int:
        """Send calls, which begin at once."""
        if self._process is None:
            self._start()
        try:
            self._pipe.send(calls)
        except OSError as e:
            raise self._lost() from e
        return next(self._requests)

    def answer(self, request: int) -> list[Any]:
        """What the calls of a request gave. What they raised is raised in its own words."""
        while request not in self._answers:
            try:
                answer = self._pipe.recv()
            except (EOFError, OSError) as e:
                raise self._lost() from e
            self._answers[next(self._answered)] = answer
        found = self._answers.pop(request)
        if isinstance(found, EnvironmentFault):
            raise found
        results: list[Any] = found
        return results

    def _start(self) -> None:
        mine, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._pipe = Connection(mine.detach())

    def _lost(self) -> EnvironmentFault:
        assert self._process is not None
        env_hosts.cache_clear()
        return EnvironmentFault(
            "a process that steps environments has ended (exit code "
            f"{self._process.wait()}; was there not enough memory?); with PERDURE_THREADS=1 the lifetime's own process "
            "steps all of them"
        )


@functools.cache
def env_hosts(process: int, count: int) -> tuple[EnvHost, ...]:
    """This process, whose number is given, and others: the same ones for all that it steps."""
    return (EnvHost(), *(EnvProcess() for _ in range(count - 1)))


def _done(envs: dict[int, Any], calls: Sequence[Call]) -> list[Any]:
    """Call methods of environments; ``make`` makes one and ``close`` is an environment's last."""
    found: list[Any] = []
    for number, method, given in calls:
        if method == "make":
            envs[number] = given[0]()
            continue
        env = envs.pop(number) if method == "close" else envs[number]
        found.append(getattr(env, method)(*given))
    return found


def _serve(pipe: Connection) -> None:
    """Do what is asked for until nobody is there to ask."""
    envs: dict[int, Any] = {}
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            found: Any
            try:
                found = _done(envs, pipe.recv())
            except (EOFError, ConnectionError):
                raise
            except Exception as e:
                words = str(e) if isinstance(e, PerdureError) else f"{type(e).__name__}: {e}"
                found = EnvironmentFault(words)
            pipe.send(found)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Who started it hears of it too, and ends it.
    _serve(Connection(int(sys.argv[1])))
