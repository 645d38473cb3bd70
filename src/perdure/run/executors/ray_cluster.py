"""A Ray cluster: connected to, asked for what it has, and what lifetimes need of it."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from perdure import registry
from perdure.errors import Interrupted, MissingExtra, SpecError
from perdure.run.plan import Plan


@contextmanager
def unwrapped() -> Iterator[None]:
    """A signal that comes while Ray's compiled code waits is raised as what it is."""
    try:
        yield
    except SystemError as e:
        if isinstance(e.__cause__, Interrupted):
            raise e.__cause__ from None
        raise


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster. One that this starts is ended with the block; a connection that is
    there already is used, and left."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as e:
        raise MissingExtra("executor ray", "ray") from e
    if ray.is_initialized():
        yield ray
        return
    handlers = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if not address:
        # Ray's own workers stand back behind everything else on a machine. Lifetimes need not.
        os.environ.setdefault("RAY_worker_niceness", "0")
    more: dict[str, Any] = {"include_dashboard": False} if not address else {}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level="error", **more)
    except Exception as e:
        raise SpecError(
            f"executor ray: no cluster could be reached at {address or 'this machine'!r} ({type(e).__name__}: "
            f"{str(e).partition(chr(10))[0]}); start one with 'ray start --head', or leave address out"
        ) from e
    finally:
        for s, handler in handlers.items():
            with contextlib.suppress(ValueError):  # Not the main thread: nothing was changed.
                signal.signal(s, handler)
    try:
        yield ray
    finally:
        ray.shutdown()


def declared(plan: Plan, label: str) -> dict[str, float]:
    """What an agent's class declares that its lifetimes need."""
    spec = plan.agents[label]
    found = getattr(registry.load("agents", spec.parts[-1]), "resources", None) or {}
    if not isinstance(found, Mapping):
        raise SpecError(f"agent {label}: resources must map cpus, gpus and memory to numbers, got {found!r}")  # fmt: skip
    return dict(found)


def check_resources(who: str, found: Mapping[str, Any]) -> None:
    """SpecError unless these are amounts of what a node can have."""
    for name, value in found.items():
        if name not in ("cpus", "gpus", "memory"):
            raise SpecError(f"{who}: no resource is called {name!r}: expected cpus, gpus or memory")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
            raise SpecError(f"{who}: {name} must be a number ≥ 0, got {value!r}")


def refuse_too_much(ray: Any, label: str, need: Mapping[str, float]) -> None:
    """SpecError if no node could ever run an agent: Ray would wait for one for ever."""
    names = {"cpus": "CPU", "gpus": "GPU", "memory": "memory"}
    wanted = {names[k]: v for k, v in ({"cpus": 1} | dict(need)).items() if v}
    nodes = [n["Resources"] for n in ray.nodes() if n["Alive"]]
    if any(all(node.get(k, 0) >= v for k, v in wanted.items()) for node in nodes):
        return
    offers = "; ".join(", ".join(f"{k} {node.get(k, 0):g}" for k in wanted) for node in nodes)
    asked = ", ".join(f"{k} {v:g}" for k, v in wanted.items())
    raise SpecError(f"agent {label} needs {asked}, and no node of the cluster has that ({offers})")
