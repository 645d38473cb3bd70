"""What Meta-World's protocols are made of: presets, tasks by their names, what tasks show."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from perdure.curricula import MetaBudget
from perdure.errors import CurriculumError, UnknownName
from perdure.suites.metaworld.tasks import GOALS, check_task
from perdure.types import Curriculum, Task

PRESETS: dict[str, dict[str, Any]] = {
    "current": {"horizon": 500, "goals": "set"},
    "paper": {"horizon": 150, "goals": "fixed"},
}


Seen: TypeAlias = Mapping[str, Any]
"""Parameters of tasks that say what they show, where that is not their state."""
NOTHING_ELSE: Seen = MappingProxyType({})


def shows(builder: Callable[..., Curriculum]) -> Callable[..., Curriculum]:
    """A protocol that takes ``observation``, ``size`` and ``camera`` in the place of ``seen``."""

    def seen(observation: str = "state", size: int = 84, camera: str = "corner2") -> Seen:
        if observation == "state":
            return NOTHING_ELSE
        return {"observation": observation, "size": size, "camera": camera}

    own, asked = (inspect.signature(f).parameters.values() for f in (builder, seen))
    names = [p.name for p in asked]

    @functools.wraps(builder)
    def protocol(*args: Any, **params: Any) -> Curriculum:
        shown = {name: params.pop(name) for name in names if name in params}
        return builder(*args, **params, seen=seen(**shown))

    kept = [p for p in own if p.name != "seen"]
    protocol.__signature__ = inspect.Signature([*kept, *asked])  # type: ignore[attr-defined]
    return protocol


@dataclass(frozen=True)
class GoalSettings:
    """Which goals a protocol's tasks have, for how many steps they are tried, and what tasks show."""

    preset: str
    seed: int
    """Of the official goals."""
    horizon: int | None
    """In place of the preset's."""
    seen: Seen
    number: int = GOALS
    """Of held-out goals that are adapted to, for each task."""

    def params(self, curriculum: str) -> dict[str, Any]:
        """Parameters of tasks as the preset has them."""
        params = {**preset_of(curriculum, self.preset), **self.seen}
        return params if self.horizon is None else {**params, "horizon": self.horizon}

    def hidden(self, curriculum: str) -> dict[str, Any]:
        """Parameters of tasks whose official goals are not shown."""
        if not 1 <= self.number <= GOALS:
            raise CurriculumError(
                f"metaworld/{curriculum}: goals must be from 1 to {GOALS}, got {self.number}"
            )
        official = {"goals": "set", "benchmark_seed": self.seed, "hide_goal": True}
        return {**self.params(curriculum), **official}


def budget_of(steps: int, rounds: int, episodes: int) -> MetaBudget:
    """Of learning in rounds, every episode a trial."""
    return MetaBudget(steps, rounds, trial=1, episodes=episodes)


def numbered(names: Sequence[str], **params: Any) -> list[Task]:
    """Tasks that say by a one-hot which of them they are."""
    return [task_named(n, one_hot=[k, len(names)], **params) for k, n in enumerate(names)]


def task_named(name: str, **params: Any) -> Task:
    """A task with these parameters."""
    return Task("metaworld", name, params=params)


def known(curriculum: str, names: object) -> list[str]:
    """Names of tasks as a user gave them; unknown, doubled and missing ones are refused."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise CurriculumError(
            f"metaworld/{curriculum}: tasks must be a list of names, as in [reach, push] with each "
            f"name in quotes, got {names!r}"
        )
    for name in names:
        check_task(name)
    if len(set(names)) < len(names):
        raise CurriculumError(f"metaworld/{curriculum}: a task is named twice; use repeats")
    return list(names)


def preset_of(curriculum: str, preset: str) -> dict[str, Any]:
    """The parameters of a preset."""
    if preset not in PRESETS:
        raise UnknownName(f"preset of metaworld/{curriculum}", str(preset), PRESETS)
    return dict(PRESETS[preset])
