"""Where lifetimes run: one executor a file, found by its name.

Plugins use the entry-point group ``perdure.executors``, or ``file.py:Executor``.
"""

from __future__ import annotations

from perdure import registry
from perdure.errors import PerdureError, SpecError
from perdure.run.executors.base import Executor, Report
from perdure.specs import Spec, call_with

__all__ = ["Executor", "Report", "make_executor"]


def make_executor(text: str) -> Executor:
    """``serial``, ``processes``, ``processes,workers=4,deadline=60`` or ``file.py:Executor``."""
    spec = Spec.parse(text)
    what = f"executor {spec.name}"
    factory = registry.load("executors", spec.name)
    if not callable(factory):
        raise SpecError(f"{what} is {factory!r}, expected an Executor class")
    try:
        executor: Executor = call_with(what, factory, **spec.params)
    except PerdureError:
        raise
    except Exception as e:
        raise SpecError(f"{what} raised {type(e).__name__}: {e}") from e
    if not callable(getattr(executor, "run", None)):
        raise SpecError(f"{what} gave {type(executor).__name__}, which has no run(): no Executor")
    return executor
