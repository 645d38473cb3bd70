"""An agent that breaks, for checking what others make of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.types import Array, Context

WORDS = "broken on purpose, at left and right"


class TwoPart(Exception):
    """An exception that does not survive pickling: its constructor takes two arguments."""

    def __init__(self, left: str, right: str) -> None:
        super().__init__(f"broken on purpose, at {left} and {right}")
        self.lock = lambda: None


class Faulty(Agent):
    """Raises in its second learn block step."""

    def act(self, obs: Any, ctx: Context) -> Array:
        if ctx.learning:
            raise TwoPart("left", "right")
        return np.zeros(len(ctx.slots), int)
