"""Whose lifetimes a run's specification expects in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.errors import StoreError
from perdure.store.location import store_at
from perdure.store.objects import get_json
from perdure.store.places import place_of

SPEC = "_meta/spec.json"
"""What a run is known by."""


class Membership:
    """Tells whether a lifetime is one of the run that it is in. The specification is read when that is
    first asked, and again before a lifetime is said to be another run's: what is planned grows."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._spec: Any = None

    def foreign(self, described: Mapping[str, Any], job: str) -> str:
        """Why a lifetime is none of the run's; empty if it is one, or if the specification does not
        tell."""
        if self._spec is None or foreign(described, job, self._spec):
            self._spec = self._read()
        return foreign(described, job, self._spec)

    def _read(self) -> Any:
        try:
            return get_json(store_at(self._run), SPEC)
        except StoreError:
            return None  # Who reads a run is told so; it says nothing of its lifetimes.


def agents_of(spec: Any) -> Mapping[str, Any] | None:
    """The agents of a specification by their labels; None if it does not tell."""
    found = spec.get("agents") if isinstance(spec, Mapping) else None
    return found if isinstance(found, Mapping) else None


def seeds_of(spec: Mapping[str, Any]) -> range | None:
    """The seeds of a specification; None if it does not tell."""
    first, count = spec.get("seed"), spec.get("lifetimes")
    if type(first) is not int or type(count) is not int:
        return None
    return range(first, first + min(count, 1_000_000))


def foreign(described: Mapping[str, Any], job: str, spec: Any) -> str:
    """Why a lifetime that is in a run's folder is none of this run's; empty if it is one."""
    place, agents = place_of(job), agents_of(spec)
    if place is None or agents is None:
        return ""
    if place.agent not in agents:
        return f"is of agent {place.agent}, and this run has {', '.join(agents)} alone"
    seeds = seeds_of(spec)
    if seeds and place.seed not in seeds:
        return f"is of seed {place.seed}, and this run has {seeds[0]} to {seeds[-1]} alone"
    expected = {k: spec[k] for k in ("envs", "hide_tasks", "checkpoint") if k in spec}
    expected["agent"] = agents[place.agent]
    if "outline" in spec and seeds and place.seed == seeds[0] and not place.task:
        expected["curriculum"] = spec["outline"]
    for key, value in expected.items():
        if key in described and described[key] != value:
            return f"has another {key} than the run: it belongs to another run"
    return ""
