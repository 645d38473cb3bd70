"""Perdure: does what your agent learned perdure?

Runs learning agents through whole lifetimes of tasks and measures what they keep, what they
transfer and how fast they learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from perdure import curricula as curricula
    from perdure import errors as errors
    from perdure import testing as testing
    from perdure.agent import Agent
    from perdure.api import Run, experiment
    from perdure.suite import Suite
    from perdure.suites.vision.own import from_arrays, from_dataset, from_folder
    from perdure.tuning import sweep
    from perdure.types import (
        Block,
        BlockChoice,
        Context,
        Curriculum,
        Examples,
        Exposure,
        Setup,
        Task,
        Transitions,
        Visibility,
        adapt,
        evaluate,
        learn,
    )

_HOMES = {
    "Agent": "perdure.agent",
    "Run": "perdure.api",
    "Suite": "perdure.suite",
    "experiment": "perdure.api",
    "sweep": "perdure.tuning",
    "from_arrays": "perdure.suites.vision.own",
    "from_dataset": "perdure.suites.vision.own",
    "from_folder": "perdure.suites.vision.own",
}
_MODULES = ("curricula", "errors", "testing")
__all__ = [
    "Agent",
    "Block",
    "BlockChoice",
    "Context",
    "Curriculum",
    "Examples",
    "Exposure",
    "Run",
    "Setup",
    "Suite",
    "Task",
    "Transitions",
    "Visibility",
    "adapt",
    "evaluate",
    "experiment",
    "from_arrays",
    "from_dataset",
    "from_folder",
    "learn",
    "sweep",
]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: `perdure --help` and `import perdure` stay quick.
    if name in _MODULES:
        return importlib.import_module(f"perdure.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "perdure.types")), name)
