"""Wrappers that make spaces larger, so that tasks of different sizes can share one curriculum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.arrays import Array

Size = int | Sequence[int]


def _shape(space: spaces.Box, to: Size, what: str) -> tuple[int, ...]:
    """The shape asked for; one number is that of a vector."""
    shape = (to,) if isinstance(to, int) else tuple(to)
    if len(shape) != len(space.shape) or any(
        a < b for a, b in zip(shape, space.shape, strict=True)
    ):
        raise ValueError(f"{what}: 'to' must be at least {list(space.shape)}, got {to!r}")
    return shape


def _padded(values: Array, shape: tuple[int, ...], filling: float = 0.0) -> Array:
    """With ``filling`` behind the last values of every axis."""
    more = [(0, b - a) for a, b in zip(values.shape, shape, strict=True)]
    return np.pad(values, more, constant_values=filling)


class PadObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Zeros behind the numbers of a Box until it has the shape ``to``; a Discrete has ``to`` values, of
    which the last never come."""

    def __init__(self, env: gymnasium.Env[Any, Any], to: Size) -> None:
        super().__init__(env)
        space = env.observation_space
        match space:
            case spaces.Box():
                shape = _shape(space, to, "PadObservation")
                low, high = _padded(space.low, shape), _padded(space.high, shape)
                self.observation_space = spaces.Box(low, high, dtype=space.dtype)
            case spaces.Discrete() if isinstance(to, int) and to >= space.n:
                self.observation_space = spaces.Discrete(to, start=space.start)
            case _:
                raise ValueError(
                    f"PadObservation pads a Box or a smaller Discrete, not {space} to {to!r}; put "
                    "FlattenObservation before it"
                )

    def observation(self, observation: Any) -> Any:
        """With zeros behind."""
        if isinstance(self.observation_space, spaces.Box):
            return _padded(np.asarray(observation), self.observation_space.shape)
        return observation


class PadAction(gymnasium.ActionWrapper[Any, Any, Any]):
    """More actions than the environment has. Of a Box of ``to`` numbers the last ones do nothing; of
    a Discrete with ``to`` values those beyond the environment's do what it has, in turn; of a
    MultiDiscrete with choices ``to`` both hold."""

    def __init__(self, env: gymnasium.Env[Any, Any], to: Size) -> None:
        super().__init__(env)
        self.inner = space = env.action_space
        match space:
            case spaces.Box():
                shape = _shape(space, to, "PadAction")
                low, high = _padded(space.low, shape, -1.0), _padded(space.high, shape, 1.0)
                self.action_space = spaces.Box(low, high, dtype=space.dtype)
            case spaces.Discrete() if isinstance(to, int) and to >= space.n:
                self.action_space = spaces.Discrete(to, start=space.start)
            case spaces.MultiDiscrete() if self._fits(space, to):
                assert not isinstance(to, int)
                start, sizes = _padded(space.start, (len(to),)), np.array(to)
                self.action_space = spaces.MultiDiscrete(sizes, dtype=space.dtype, start=start)
            case _:
                raise ValueError(
                    f"PadAction pads a Box, a smaller Discrete or a smaller MultiDiscrete of one axis, "
                    f"not {space} to {to!r}"
                )

    @staticmethod
    def _fits(space: spaces.MultiDiscrete, to: Size) -> bool:
        if isinstance(to, int) or space.nvec.ndim != 1 or len(to) < len(space.nvec):
            return False
        return all(a >= b for a, b in zip(to, space.nvec, strict=False))

    def action(self, action: Any) -> Any:
        """As the environment takes it."""
        space = self.inner
        if isinstance(space, spaces.Box):
            return np.asarray(action)[tuple(map(slice, space.shape))]
        if isinstance(space, spaces.Discrete):
            return (action - space.start) % space.n + space.start
        assert isinstance(space, spaces.MultiDiscrete)
        given = np.asarray(action)[: len(space.nvec)]
        return ((given - space.start) % space.nvec + space.start).astype(space.dtype)

    def demonstrated(self, action: Any) -> Any:
        """An action of the environment as one of this space."""
        if isinstance(self.action_space, spaces.Discrete):
            return action
        given = np.asarray(action)
        filled = _padded(given, self.action_space.shape or ())
        if isinstance(self.action_space, spaces.MultiDiscrete):
            filled[len(given) :] = self.action_space.start[len(given) :]
        return filled
