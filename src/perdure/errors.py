"""Every error Perdure raises on purpose.

A message names the thing, what was expected of it, what was found, and the fix.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PerdureError(Exception):
    """Base of all errors raised on purpose; the command line prints these without a traceback."""


class NameRefused(PerdureError):
    """A name that could escape its folder or break a terminal."""


class UnknownName(PerdureError):
    """A name that no registry knows; carries the nearest known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.known = sorted(known)
        near = difflib.get_close_matches(name, self.known, n=3, cutoff=0.5)
        text = f"unknown {kind} {name!r}"
        if near:
            text += "; did you mean " + " or ".join(repr(n) for n in near) + "?"
        if hint:
            text += f" {hint}"
        super().__init__(text)


class CurriculumError(PerdureError):
    """A curriculum that cannot run; the message says where in it."""


class SpecError(PerdureError):
    """A run specification that cannot be planned, or that differs from the one on disk."""


class CodeChanged(SpecError):
    """Code or versions that are not those of the lifetimes already there."""


class MissingExtra(PerdureError):
    """An optional dependency that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the {extra!r} extra: {install_command(extra)}")


def install_command(extra: str) -> str:
    """How an extra is installed, as the README says it."""
    wanted = "." if extra == "core" else f"'.[{extra}]'"
    return f"pip install {wanted} in the folder of Perdure's sources"


class AgentFault(PerdureError):
    """The agent broke the contract: a bad action, bad state, or an exception of its own."""


class ActionRefused(AgentFault):
    """An action outside its space, of the wrong shape, type or number."""


class PolicyServerFault(AgentFault):
    """A policy server is gone, too slow, or answered something else than its protocol says."""


class EnvironmentFault(PerdureError):
    """The environment broke the contract: bad values, wrong shapes, an exception, a hang."""


class StoreError(PerdureError):
    """The run folder cannot be read or written."""


class LockedError(StoreError):
    """Another process owns this lifetime, or has taken it over."""


class Overtaken(StoreError):
    """Another process has changed what was to be replaced; read it again."""


class MissingObject(StoreError):
    """There is no object of this name in the store."""


class NoSpaceError(StoreError):
    """The disk is full; nothing was half-committed."""


class Corrupt(StoreError):
    """A file on disk is not what its commit says."""


class WorkerLost(PerdureError):
    """A process that evaluated for a lifetime died, again and again."""


class RunFailed(PerdureError):
    """No lifetime of a run came to its end."""


class FailedLifetimes(UserWarning):
    """Some lifetimes of a run failed; the others are there."""


class PartialRun(UserWarning):
    """Rows of a run in which some lifetimes have not begun, or not ended."""


class Pruned(PerdureError):
    """A lifetime of a sweep was broken off because earlier trials did better."""


class MeasureError(PerdureError):
    """A lifetime that cannot be measured as asked."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived; the run can be resumed.

    Not an Exception, so that no agent's or environment's ``except Exception`` swallows it.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(f"interrupted by signal {signum}")
        self.signum = signum


class Hung(BaseException):
    """A call into an agent or environment outlived its deadline."""
