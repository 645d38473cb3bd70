"""Tasks of different spaces in one curriculum: padded so that one agent fits all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure import registry
from perdure.errors import CurriculumError
from perdure.types import Task


def padded(tasks: Sequence[Task]) -> list[Task]:
    """The tasks with wrappers (see :mod:`perdure.wrappers`) that make their spaces alike: the smaller
    ones are padded to the sizes of the largest, and where bounds or types of numbers differ, actions
    are scaled to −1…1 and observations are float32."""
    if not tasks:
        return []
    found = [registry.suite_of(t).spaces(t) for t in tasks]
    seen = _padding("observation", tasks, [f[0] for f in found])
    done = _padding("action", tasks, [f[1] for f in found])
    out = []
    for task, *added in zip(tasks, seen, done, strict=True):
        more = [text for texts in added for text in texts]
        params = dict(task.params)
        if more:
            params["wrappers"] = [*params.get("wrappers", ()), *more]
        out.append(Task(task.suite, task.name, task.variant, params))
    return out


def _padding(what: str, tasks: Sequence[Task], found: Sequence[Any]) -> list[list[str]]:
    """The wrappers of each task that make these spaces alike."""
    from gymnasium import spaces

    name = f"Pad{what.capitalize()}"
    same = all(space == found[0] for space in found)
    alike = len({(type(s), len(s.shape or ())) for s in found}) == 1
    if not same and not (alike and isinstance(found[0], (spaces.Box, spaces.Discrete))):
        kinds = "; ".join(f"{t.id} has {s}" for t, s in zip(tasks, found, strict=True))
        raise CurriculumError(
            f"padded: the {what} spaces are no Boxes of as many axes, nor all Discrete: {kinds}"
        )
    if same:
        return [[] for _ in tasks]
    if isinstance(found[0], spaces.Discrete):
        most = max(int(s.n) for s in found)
        return [[] if s.n == most else [f"{name},to={most}"] for s in found]
    out: list[list[str]] = [[] for _ in tasks]
    shape = [max(sizes) for sizes in zip(*(s.shape for s in found), strict=True)]
    floats = len({s.dtype for s in found}) > 1
    # Unlike what is seen, what is done must lie within the bounds of every task.
    scaled = (
        what == "action" and len({(float(s.low.min()), float(s.high.max())) for s in found}) > 1
    )
    for mine, space in zip(out, found, strict=True):
        if floats and what == "observation":
            mine.append("DtypeObservation,dtype=float32")
        if scaled:
            mine.append("RescaleAction,min_action=-1.0,max_action=1.0")
        if list(space.shape) != shape:
            mine.append(f"{name},to={shape}")
    return out
