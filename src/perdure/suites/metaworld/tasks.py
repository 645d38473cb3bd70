"""The fifty tasks, the official lists of them, and the parameters they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from perdure.errors import CurriculumError, UnknownName
from perdure.suites._parameters import checked_parameters
from perdure.types import Task

NUMBERS = 39
"""Of a state."""
HAND = 4
"""The first of them: where the hand is, and how far it is open."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES = _names(
    """
    assembly basketball bin-picking box-close button-press-topdown button-press-topdown-wall
    button-press button-press-wall coffee-button coffee-pull coffee-push dial-turn disassemble
    door-close door-lock door-open door-unlock hand-insert drawer-close drawer-open faucet-open
    faucet-close hammer handle-press-side handle-press handle-pull-side handle-pull lever-pull
    pick-place-wall pick-out-of-hole pick-place plate-slide plate-slide-side plate-slide-back
    plate-slide-back-side peg-insert-side peg-unplug-side soccer stick-push stick-pull push
    push-wall push-back reach reach-wall shelf-place sweep-into sweep window-open window-close
    """
)
"""In upstream's order; upstream's names end in ``-v3``."""

MT10 = _names(
    """
    reach push pick-place door-open drawer-open drawer-close button-press-topdown peg-insert-side
    window-open window-close
    """
)
ML10_TRAIN = _names(
    """
    reach push pick-place door-open drawer-close button-press-topdown peg-insert-side window-open
    sweep basketball
    """
)
ML10_TEST = ("drawer-open", "door-close", "shelf-place", "sweep-into", "lever-pull")
MT25 = _names(
    """
    reach push pick-place door-open drawer-open drawer-close button-press-topdown peg-insert-side
    window-open window-close coffee-pull pick-out-of-hole disassemble pick-place-wall basketball
    stick-pull button-press-wall faucet-open door-lock lever-pull sweep-into faucet-close
    coffee-button button-press-topdown-wall dial-turn
    """
)
ML25_TEST = ("basketball", "door-close", "shelf-place", "sweep", "button-press")
"""Basketball is among the training tasks too: upstream's list, as it is."""
ML45_TEST = ("bin-picking", "box-close", "hand-insert", "door-lock", "door-unlock")
ML45_TRAIN = _names(
    """
    assembly basketball button-press-topdown button-press-topdown-wall button-press
    button-press-wall coffee-button coffee-pull coffee-push dial-turn disassemble door-close
    door-open drawer-close drawer-open faucet-open faucet-close hammer handle-press-side
    handle-press handle-pull-side handle-pull lever-pull pick-place-wall pick-out-of-hole push-back
    pick-place plate-slide plate-slide-side plate-slide-back plate-slide-back-side peg-insert-side
    peg-unplug-side soccer stick-push stick-pull push-wall push reach-wall reach shelf-place
    sweep-into sweep window-open window-close
    """
)
CW10 = _names(
    """
    hammer push-wall faucet-close push-back stick-pull handle-press-side push shelf-place
    window-close peg-unplug-side
    """
)
"""Continual World's ten, in its order."""

BENCHMARKS: dict[str, tuple[str, ...]] = {
    "MT1": (),
    "MT10": MT10,
    "MT25": MT25,
    "MT50": NAMES,
    "ML1-train": (),
    "ML1-test": (),
    "ML10-train": ML10_TRAIN,
    "ML10-test": ML10_TEST,
    "ML25-train": MT25,
    "ML25-test": ML25_TEST,
    "ML45-train": ML45_TRAIN,
    "ML45-test": ML45_TEST,
}
"""Which tasks a benchmark draws goals for, one after another; none is the one task alone."""

GOALS = 50
"""For each task of a benchmark."""

CHOICES: dict[str, tuple[str, ...]] = {
    "reward": ("v2", "v1", "sparse"),
    "observation": ("state", "image", "image+hand"),
    "goals": ("random", "fixed", "set"),
    "benchmark": tuple(BENCHMARKS),
}


@dataclass(frozen=True)
class Settings:
    """The parameters of a task."""

    horizon: int = 500
    """Steps of an episode: 150 in the paper, 200 in Continual World."""
    reward: str = "v2"
    """``v2``: dense, 0 to 10; ``v1``: that of the first release; ``sparse``: 1 on success."""
    observation: str = "state"
    """``state``: 39 numbers; ``image``: what a camera sees; ``image+hand``: a Dict of that and of where
    the hand is and how far it is open, 4 numbers."""
    goals: str = "random"
    """Where goal and objects are. ``random``: the reset's seed decides; ``fixed``: always as in the
    paper; ``set``: the seed picks one of the 50 of a benchmark, and evaluation plays them in turn."""
    hide_goal: bool = False
    """Zeros where the goal stands in the state; no mark of it in an image."""
    one_hot: tuple[int, int] | None = None
    """Append a one-hot: [position, how many tasks]. With images the observation is then a Dict of
    ``image`` and ``task``."""
    benchmark: str = "MT1"
    """Whose 50 goals, where ``goals`` is ``set``."""
    benchmark_seed: int = 0
    goal: int | None = None
    """Always this one of the 50, where ``goals`` is ``set``."""
    persist: int = 1
    """Fewer resets: only every so many horizons the scene is set anew, and a row is written for
    each horizon."""
    size: int = 84
    """Width and height of an image."""
    camera: str = "corner2"
    camera_position: tuple[float, float, float] | None = None
    """Where the camera stands, if not where Meta-World has it."""
    end_on_success: bool = False
    """Whether an episode ends with its first success."""
    instruction: str = ""
    """The task in words: a sentence, or ``about`` for the one that ``perdure ls tasks`` shows."""
    demonstrations: int = 20
    """Expert episodes in the task's data; as many others are held out."""
    noise: float = 0.1
    """Spread of what is added to the expert's actions while it demonstrates, not to the targets."""
    batch_size: int = 128


INTEGERS = {"horizon": 1, "persist": 1, "size": 8, "demonstrations": 1, "batch_size": 1}
"""Whole numbers and their least."""


def check_task(name: object, others: Sequence[str] = ()) -> None:
    """Refuse what is no task's name, nor one of the others that may stand there."""
    if name not in (*NAMES, *others):
        hint = "(perdure ls tasks metaworld)"
        raise UnknownName("metaworld task", str(name), (*NAMES, *others), hint)


def settings(task: Task) -> Settings:
    """A task's parameters, checked."""
    check_task(task.name)
    given = checked_parameters(task, Settings, CHOICES, {**INTEGERS, "benchmark_seed": 0})
    if given.get("goal") is not None and given["goal"] not in range(GOALS):
        raise CurriculumError(
            f"{task.id}: goal must be a whole number from 0 to {GOALS - 1}, got {given['goal']!r}"
        )
    for name in ("hide_goal", "end_on_success"):
        if not isinstance(given.get(name, False), bool):
            raise CurriculumError(f"{task.id}: {name} must be true or false")
    if not isinstance(given.get("instruction", ""), str):
        raise CurriculumError(f"{task.id}: instruction must be a sentence")
    if given.get("camera_position") is not None:
        given["camera_position"] = _point(task, given["camera_position"])
    noise = given.get("noise", 0.0)
    if isinstance(noise, bool) or not isinstance(noise, (int, float)) or not 0 <= noise <= 1:
        raise CurriculumError(f"{task.id}: noise must be a number from 0 to 1, got {noise!r}")
    if given.get("one_hot") is not None:
        given["one_hot"] = _place(task, given["one_hot"])
    made = Settings(**given)
    own = BENCHMARKS[made.benchmark]
    if made.goals == "set" and own and task.name not in own:
        raise CurriculumError(f"{task.id}: {made.benchmark} has no goals for it: it is not in it")
    return made


def spaces_of(chosen: Settings) -> tuple[spaces.Box | spaces.Dict, spaces.Box]:
    """Observation and action space. (Upstream declares bounds for positions that do
    not hold; no honest ones are common to all tasks.) A picture and a one-hot are a Dict."""
    actions = spaces.Box(-1.0, 1.0, (4,), np.float32)
    if chosen.observation != "state":
        image = spaces.Box(0, 255, (chosen.size, chosen.size, 3), np.uint8)
        parts: dict[str, spaces.Space[Any]] = {"image": image}
        if chosen.observation == "image+hand":
            parts["hand"] = spaces.Box(-np.inf, np.inf, (HAND,), np.float64)
        if chosen.one_hot is not None:
            parts["task"] = spaces.Box(0.0, 1.0, (chosen.one_hot[1],), np.float32)
        return (spaces.Dict(parts) if len(parts) > 1 else image), actions
    more = chosen.one_hot[1] if chosen.one_hot else 0
    return spaces.Box(-np.inf, np.inf, (NUMBERS + more,), np.float64), actions


def _point(task: Task, value: Any) -> tuple[float, float, float]:
    fits = isinstance(value, Sequence) and len(value) == 3
    if not fits or not all(type(v) in (int, float) for v in value):
        raise CurriculumError(f"{task.id}: camera_position must be [x, y, z], got {value!r}")
    return float(value[0]), float(value[1]), float(value[2])


def _place(task: Task, value: Any) -> tuple[int, int]:
    if (
        not isinstance(value, Sequence)
        or len(value) != 2
        or not all(type(v) is int for v in value)
        or not 0 <= value[0] < value[1]
    ):
        raise CurriculumError(
            f"{task.id}: one_hot must be [position, how many tasks], as in [0, 10], got {value!r}"
        )
    return value[0], value[1]
