"""Actions as numbers from 0: what a table of values, or a network with an output for each, chooses
from."""

from __future__ import annotations

from math import prod
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.spaces import choices_of
from perdure.types import Array


class JointActions:
    """The actions of a Discrete, MultiDiscrete or MultiBinary space; of the latter two every
    combination is one, the last part counting fastest."""

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        assert isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary))
        self.sizes, self.shape, self.dtype = choices_of(space), space.shape, space.dtype
        self.count = prod(self.sizes)
        self.start: Array = np.ravel(getattr(space, "start", 0))

    def to_space(self, numbers: Array) -> Array:
        """Members of the space."""
        if not self.shape:
            return numbers + int(self.start[0])
        parts = np.stack(np.unravel_index(numbers, self.sizes), axis=1) + self.start
        return parts.reshape(-1, *self.shape).astype(self.dtype)

    def numbers(self, actions: Any) -> Array:
        """The numbers of members of the space."""
        parts = np.asarray(actions)
        if not self.shape:
            return parts - int(self.start[0])
        parts = parts.reshape(len(parts), -1).astype(np.int64) - self.start
        found: Array = np.ravel_multi_index(tuple(parts.T), self.sizes)
        return found
