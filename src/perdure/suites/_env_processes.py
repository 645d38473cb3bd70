"""Environments of one lifetime in several processes: for those whose steps hold Python's lock.

A process is started when its first environment is made and stays until this process ends, since
starting one costs a second. What comes out is the same with any number of them. One whose answer was
not waited for to its end, because of a signal or a deadline, is ended: what it says next belongs to
nothing. Another takes its place.

    python -m perdure.suites._env_processes FD

is such a process: it is asked for calls of its environments' methods, and answers in turn.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from perdure.errors import EnvironmentFault
from perdure.pythonpath import module_command, standard_library
from perdure.relayed import in_words, retold

Call = tuple[int, str, tuple[Any, ...]]
"""Which environment, what method, with what."""
_numbers = itertools.count()
"""Of environments."""
LAST_WORDS = 2.0
"""Seconds within which a process that closed its connection has ended."""


class EnvHost:
    """This process, as one that holds environments: it does what it is asked for when the answer is needed."""

    ended = ""
    """Why it can be asked no more."""

    def __init__(self) -> None:
        self.held = 0
        """How many environments are here now."""
        self._envs: dict[int, Any] = {}
        self._requests = itertools.count()
        self._asked: dict[int, Sequence[Call]] = {}

    def make(self, made: Callable[[], Any]) -> tuple[int, int]:
        """Begin to make an environment: its number, and the request's."""
        number = next(_numbers)
        self.held += 1
        return number, self.ask([(number, "make", (made,))])

    def drop(self, number: int) -> None:
        """Close an environment."""
        self.held -= 1
        self.answer(self.ask([(number, "close", ())]))

    def forget(self, request: int) -> None:
        """Nobody will ask for what a request gives."""
        self._asked.pop(request, None)

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
        self._pipe: Connection | None = None
        self._answers: dict[int, Any] = {}
        """Those that nobody has asked for yet."""
        self._answered = itertools.count()
        self._unwanted: set[int] = set()
        """Requests whose answers nobody will ask for."""

    def drop(self, number: int) -> None:
        """Have an environment closed when its turn comes. If its process is gone, so is what it held."""
        self.held -= 1
        if not self.ended:
            with contextlib.suppress(EnvironmentFault):
                self.forget(self.ask([(number, "close", ())]))

    def forget(self, request: int) -> None:
        """Nobody will ask for what a request gives."""
        if self._answers.pop(request, None) is None:
            self._unwanted.add(request)

    def ask(self, calls: Sequence[Call]) -> int:
        """Send calls, which begin at once."""
        with self._whole():
            if self._pipe is None:
                self._pipe = self._start()
            self._pipe.send(calls)
            return next(self._requests)

    def answer(self, request: int) -> list[Any]:
        """What the calls of a request gave; raises what they raised."""
        with self._whole():
            while request not in self._answers:
                assert self._pipe is not None
                answer, number = self._pipe.recv(), next(self._answered)
                if number not in self._unwanted:
                    self._answers[number] = answer
                self._unwanted.discard(number)
            found = self._answers.pop(request)
        if isinstance(found, dict):
            raise retold(found, "stepped the environment")
        results: list[Any] = found
        return results

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Whatever keeps this block from its end breaks the connection: half of a message may be under way."""
        if self.ended:
            raise EnvironmentFault(self.ended)
        try:
            yield
        except (EOFError, OSError) as e:
            code = self._end(LAST_WORDS)
            if code is None:  # It could not be started.
                raise
            self.ended = (
                f"a process that steps environments has ended (exit code {code}; was there not enough "
                "memory?); with PERDURE_THREADS=1 the lifetime's own process steps all of them"
            )
            raise EnvironmentFault(self.ended) from e
        except BaseException:
            self._end(0)
            raise

    def _end(self, patience: float) -> int | None:
        """End the process, whatever it is at; its exit code. One that has ended may take a moment to say how."""
        self.ended = (
            "the process that stepped this environment was ended when its answer was not waited for"
        )
        if self._pipe is not None:
            self._pipe.close()
        self._answers.clear()
        if self._process is None:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(patience)
        self._process.kill()
        return self._process.wait()

    def _start(self) -> Connection:
        mine, its = socket.socketpair()
        # What is imported here can be imported there, but never in the place of Python's own modules.
        places = [*standard_library(), *filter(None, sys.path)]
        with its:
            self._process = subprocess.Popen(
                [*module_command(__name__), str(its.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
            )
        return Connection(mine.detach())


_hosts: dict[tuple[int, int], tuple[EnvHost, ...]] = {}


def env_hosts(process: int, count: int) -> tuple[EnvHost, ...]:
    """This process, whose number is given, and others: the same ones for all that it steps, as long as they
    can be asked."""
    known = _hosts.get((process, count)) or (EnvHost(), *(EnvProcess() for _ in range(count - 1)))
    _hosts[process, count] = found = tuple(EnvProcess() if h.ended else h for h in known)
    return found


def _done(envs: dict[int, Any], calls: Sequence[Call]) -> list[Any]:
    """Call methods of environments; ``make`` makes one and ``close`` is an environment's last."""
    found: list[Any] = []
    for number, method, given in calls:
        if method == "make":
            envs[number] = given[0]()
            continue
        if method == "close":
            if number in envs:  # If it could be made at all.
                envs.pop(number).close()
            continue
        found.append(getattr(envs[number], method)(*given))
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
                found = in_words(e)
            pipe.send(found)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Who started it hears of it too, and ends it.
    _serve(Connection(int(sys.argv[1])))
