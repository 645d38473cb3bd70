"""The specification in a run's folder."""

from __future__ import annotations

import difflib
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from perdure.errors import Overtaken, SpecError, StoreError
from perdure.run.spec import RunSpec
from perdure.specs import Spec
from perdure.store.layout import PLANNING, RunFolder

JOINS = "joins_spaces"
"""Written where the observation spaces of a curriculum's tasks differ: workers trust it."""


def save_spec(
    spec: RunSpec,
    agents: Mapping[str, Spec],
    outline: Mapping[str, Any],
    weights: Mapping[str, float],
    joins: bool = False,
    write: bool = True,
) -> None:
    """Write a specification into the run's folder, or check that it is the one there, or only that, if it
    is not to ``write``. ``weights``: how long each job is beside a whole lifetime; ``joins``: whether
    its tasks' spaces differ.

    What is planned in a folder only grows, with each command that runs there: agents, lifetimes, experts.
    """
    if spec.folder.exists() and not spec.folder.is_dir():
        raise SpecError(f"{spec.folder} is a file; choose a folder with --out")
    folder = RunFolder(spec.folder)
    mine = json.loads(json.dumps(asdict(spec)))
    mine["agents"] = {label: str(Spec(s.name, s.params)) for label, s in agents.items()}
    mine["out"] = ""
    mine["outline"] = outline
    if joins:
        mine[JOINS] = True
    if folder.compact:
        raise SpecError(
            f"{spec.folder} is a compact copy of a finished run: it can be measured, compared and shown, "
            "but has no checkpoints to go on from. To run it again choose another folder with --out"
        )
    merged, jobs = _merged(spec, folder, mine, weights)
    if not write or (merged, jobs) == (_there(folder), folder.jobs()):
        return  # Nothing to write: a finished run on a read-only disk is as good as any.

    folder.probe()

    def add() -> None:
        with folder.lock():
            merged, jobs = _merged(spec, folder, mine, weights)
            folder.write_spec(merged)
            folder.write_jobs(jobs)

    until_not_overtaken(add)


def until_not_overtaken(change: Callable[[], None]) -> None:
    """Read and write again while others change the same, where no lock keeps them away."""
    end = time.monotonic() + PLANNING
    while True:
        try:
            return change()
        except Overtaken:
            if time.monotonic() > end:
                raise
            time.sleep(0.05 * random.random())


def _there(folder: RunFolder) -> dict[str, Any] | None:
    return read_spec(folder) if folder.exists() else None


def _merged(
    spec: RunSpec, folder: RunFolder, mine: Mapping[str, Any], weights: Mapping[str, float]
) -> tuple[dict[str, Any], dict[str, float]]:
    """What is planned once this run is: the specification and the jobs, with those there."""
    theirs, merged = _there(folder), dict(mine)
    if theirs is not None:
        _refuse_other(spec, theirs, mine)
        merged["agents"] = {**theirs["agents"], **mine["agents"]}
        merged["lifetimes"] = max(mine["lifetimes"], theirs["lifetimes"])
        merged["experts"] = mine["experts"] or theirs["experts"]
    elif folder.foreign():
        raise SpecError(
            f"{spec.folder} is not empty and not a Perdure run; choose another folder with --out"
        )
    return merged, {**folder.jobs(), **weights}


def _refuse_other(run: RunSpec, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    def part(spec: Mapping[str, Any]) -> dict[str, Any]:
        labels = {k: v for k, v in spec["agents"].items() if k in theirs["agents"]}
        labels = {k: v for k, v in labels.items() if k in mine["agents"]}
        identity = (*RunSpec.IDENTITY, "outline")
        return {**{k: spec.get(k) for k in identity}, "agents": labels}

    refuse_changed(f"{run.folder} holds another run", part(theirs), part(mine))


def refuse_changed(what: str, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """SpecError with a diff if two descriptions differ."""
    if theirs == mine:
        return
    a, b = (json.dumps(d, indent=1, sort_keys=True).splitlines() for d in (theirs, mine))
    diff = difflib.unified_diff(a, b, "on disk", "asked for", lineterm="", n=1)
    raise SpecError(
        f"{what}; go on with the specification on disk or choose another folder with --out:\n"
        + "\n".join(diff)
    )


def read_spec(folder: RunFolder) -> dict[str, Any]:
    """A specification on disk, which may have been edited."""
    values = folder.spec()
    known = {f.name: f.default for f in fields(RunSpec)}
    if (
        not isinstance(values, dict)
        or not isinstance(values.get("agents"), dict)
        or not {"curriculum"} <= values.keys() <= {*known, "outline", JOINS}
    ):
        raise StoreError(
            f"{folder.spec_in} is not the specification of a run: expected {', '.join(known)}, got "
            f"{str(values)[:80]}; restore it, or choose another folder with --out"
        )
    return {**known, **values}
