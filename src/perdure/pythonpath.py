"""From where the processes of this package import: from the working folder too, but a file there, say one
called signal.py, never stands for one of Python's own modules."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager

_SAFE = "PYTHONSAFEPATH"


def module_command(module: str) -> list[str]:
    """The command of a process that runs a module of this package, which is imported from the working
    folder only if it lies there."""
    safe = [] if os.path.isfile("perdure/pythonpath.py") else ["-P"]
    return [sys.executable, *safe, "-m", module]


def import_from_here() -> None:
    """From now on modules of the working folder can be imported, as ``gym/mine:Env-v0`` imports mine.py;
    unless the environment says that none may be."""
    if not os.environ.get(_SAFE):
        own = [k for k, place in enumerate(sys.path) if place in standard_library()]
        sys.path.insert(max(own, default=-1) + 1, "")


def standard_library() -> list[str]:
    """Where Python's own modules are."""
    found = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    return [*found, os.path.join(found[-1], "lib-dynload")]


@contextmanager
def from_safe_path() -> Iterator[None]:
    """Processes that are started inside this block do not import from the working folder of themselves."""
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE]
        else:
            os.environ[_SAFE] = before
