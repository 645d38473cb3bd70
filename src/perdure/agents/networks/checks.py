"""What learners refuse, and with which words. No torch here: tabular learners use it too."""

from __future__ import annotations

from numbers import Real
from typing import Any

import gymnasium
from gymnasium import spaces

from perdure.errors import AgentFault, SpecError
from perdure.types import Array, Batch, Transitions


def discrete_for(agent: str, space: gymnasium.Space[Any]) -> spaces.Discrete:
    """The action space itself if it is Discrete."""
    if not isinstance(space, spaces.Discrete):
        raise SpecError(f"{agent} needs a Discrete action space, got {space}; try ppo")
    return space


def transitions_of(agent: str, batch: Batch) -> tuple[Transitions, Array]:
    """The transitions of a learning batch, and their rewards."""
    if not isinstance(batch, Transitions) or batch.rewards is None:
        raise AgentFault(
            f"{agent} learns from rewards, got {type(batch).__name__} without them: expose it to "
            "episodes or steps, or use a learner for labelled data"
        )
    return batch, batch.rewards


def check_ranges(agent: str, **rules: tuple[float, float, float]) -> None:
    """Refuse parameters outside their range; each rule is (value, least, most)."""
    for name, (value, least, most) in rules.items():
        if not isinstance(value, Real) or not least <= value <= most:
            raise SpecError(f"{agent}: {name} must be from {least:g} to {most:g}, got {value!r}")
