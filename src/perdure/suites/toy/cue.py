"""One question in every kind of space: two lights, each on or off, are to be named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.errors import CurriculumError
from perdure.seeds import rng_for
from perdure.types import Array, Examples

SIDE = 20
"""Of the picture."""


def _picture(lights: Array) -> Array:
    """The first light is on the left, the second on the right."""
    image = np.zeros((SIDE, SIDE, 3), np.uint8)
    half = SIDE // 2
    for k, on in enumerate(lights):
        image[5:15, k * half + 2 : k * half + 8] = 255 * on
    return image


_IMAGE = spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
_SIGN = spaces.Box(-1, 1, (1,), np.float32)
OBSERVATIONS: Mapping[str, tuple[spaces.Space[Any], Callable[[Array], Any]]] = {
    "Box": (spaces.Box(-1, 1, (2,), np.float32), lambda on: (2 * on - 1).astype(np.float32)),
    "image": (_IMAGE, _picture),
    "Dict": (
        spaces.Dict({"camera": _IMAGE, "sign": _SIGN}),
        lambda on: {
            "camera": _picture(on * [1, 0]),
            "sign": (2 * on[1:] - 1).astype(np.float32),
        },
    ),
    "Tuple": (
        spaces.Tuple((spaces.Discrete(2), _SIGN)),
        lambda on: (np.int64(on[0]), (2 * on[1:] - 1).astype(np.float32)),
    ),
    "Discrete": (spaces.Discrete(4), lambda on: np.int64(2 * on[0] + on[1])),
    "MultiBinary": (spaces.MultiBinary(2), lambda on: on.astype(np.int8)),
    "MultiDiscrete": (spaces.MultiDiscrete([2, 3]), lambda on: on * [1, 2]),
}
"""By kind: the space, and how it shows the lights. Of the Dict and the Tuple, each part shows one."""

ACTIONS: Mapping[str, tuple[spaces.Space[Any], Callable[[Array], Any]]] = {
    "Discrete": (spaces.Discrete(4), lambda on: np.int64(2 * on[0] + on[1])),
    "MultiDiscrete": (spaces.MultiDiscrete([2, 3]), lambda on: on * [1, 2]),
    "MultiBinary": (spaces.MultiBinary(2), lambda on: on.astype(np.int8)),
    "Box": (spaces.Box(-1, 1, (2,), np.float32), lambda on: (on - 0.5).astype(np.float32)),
}
"""By kind: the space, and the right answer."""


def spaces_of(observation: str, action: str) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """Observation and action space of these kinds."""
    for name, kind, known in (
        ("observation", observation, OBSERVATIONS),
        ("action", action, ACTIONS),
    ):
        if kind not in known:
            raise CurriculumError(
                f"toy/cue: {name} must be one of {', '.join(known)}, got {kind!r}"
            )
    return OBSERVATIONS[observation][0], ACTIONS[action][0]


class Cue(gymnasium.Env[Any, Any]):
    """``length`` steps; each time the two lights are drawn anew, and the action is to say which are
    on. Kinds of spaces are named as in ``perdure.spaces``.

    A step earns the part of the answer that is right, by 1 / ``length``; real numbers earn by their
    distance. The best return is 1.
    """

    def __init__(self, observation: str = "Box", action: str = "Discrete", length: int = 1) -> None:
        self.observation_space, self.action_space = spaces_of(observation, action)
        self.show, self.answer = OBSERVATIONS[observation][1], ACTIONS[action][1]
        self.length = length

    def _look(self) -> Any:
        self.lights = self.np_random.integers(2, size=2)
        return self.show(self.lights)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        given, right = np.asarray(action), np.asarray(self.answer(self.lights))
        if isinstance(self.action_space, spaces.Box):
            earned = 1.0 - float(np.abs(given - right).mean())
        else:
            earned = float((given == right).mean())
        self.t += 1
        return self._look(), earned / self.length, self.t >= self.length, False, {}


class CueData:
    """The right answers as demonstrations."""

    def __init__(
        self,
        learning: bool,
        observation: str = "Box",
        action: str = "Discrete",
        length: int = 1,
        examples: int = 64,
        batch_size: int = 16,
    ) -> None:
        self.batch_size = batch_size
        self.space, _ = spaces_of(observation, action)
        lights = rng_for(int(learning), "cue").integers(2, size=(examples, 2))
        self.shown = [OBSERVATIONS[observation][1](on) for on in lights]
        self.targets = np.array([ACTIONS[action][1](on) for on in lights])

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, indices: Array) -> Examples:
        """The lights at these indices and what they are called."""
        return Examples(_stacked([self.shown[k] for k in indices]), self.targets[indices])


def _stacked(rows: list[Any]) -> Any:
    if isinstance(rows[0], dict):
        return {key: _stacked([row[key] for row in rows]) for key in rows[0]}
    if isinstance(rows[0], tuple):
        return tuple(_stacked(list(part)) for part in zip(*rows, strict=True))
    return np.array(rows)
