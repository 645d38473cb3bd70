"""MiniGrid's step and view, the same to the bit, at a small part of the cost.

MiniGrid copies, turns and encodes 49 cells one by one for every observation. Here every cell's
three bytes stand ready in one array, ``codes``, and a view is a table of 49 row numbers into it,
so that an observation is one ``take``. The first three rows are not cells::

    UNSEEN   hidden behind something           HAND   under the agent: what it carries
    BEYOND   outside of the grid: wall         CELLS  from here on the grid's

Views depend on where the agent stands and looks, not on what lies there, and are shared by all
grids of a shape. Where walls and doors hide what is behind them, a view is worked out once for
each place and direction and kept until something opaque changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from minigrid.core.constants import OBJECT_TO_IDX
from minigrid.core.world_object import Door, Wall, WorldObj
from minigrid.minigrid_env import MiniGridEnv

from perdure.errors import AgentFault
from perdure.types import Array

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE = range(6)
GOING, WON, LOST = range(3)
UNSEEN, HAND, BEYOND, CELLS = range(4)
SIDE = 7
HIGHEST = max(OBJECT_TO_IDX.values())
"""The greatest number in a view: there are more kinds of things than colours or states."""
AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""One step to the right, down, left, up."""

EMPTY, WALL = bytes((1, 0, 0)), bytes((2, 5, 0))


class FastMiniGrid(MiniGridEnv):
    """A MiniGrid whose observation is the image alone and whose actions are the first six.

    A family says in ``_play`` what wins and what loses, and in ``penalty`` what losing costs.
    The grid of objects remains the truth, so generating and rendering are MiniGrid's own.
    """

    penalty = 0.0

    def __init__(self, **settings: Any) -> None:
        super().__init__(agent_view_size=SIDE, render_mode="rgb_array", **settings)
        # Bounds as narrow as the numbers, so that agents read symbols and not a small picture.
        self.observation_space = spaces.Box(0, HIGHEST, (SIDE, SIDE, 3), np.uint8)
        self.action_space = spaces.Discrete(TOGGLE + 1)
        self._open_views = open_views(self.width, self.height)

    def reset(  # type: ignore[override]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """A new grid; the seed alone decides it."""
        gymnasium.Env.reset(self, seed=seed)
        self.agent_pos, self.agent_dir = (-1, -1), -1
        self.carrying: WorldObj | None = None  # type: ignore[assignment]
        self.step_count = 0
        self._gen_grid(self.width, self.height)  # type: ignore[no-untyped-call]
        x, y = self.agent_pos
        self.agent_pos, self.agent_dir = (int(x), int(y)), int(self.agent_dir)
        self._things: list[WorldObj | None] = self.grid.grid
        cells = b"".join([code(thing) for thing in self._things])
        start = bytearray(bytes(3) + EMPTY + WALL + cells)
        self._codes: Array = np.frombuffer(start, np.uint8).reshape(-1, 3)
        self._opacity_changed()
        return self.gen_obs(), {}

    def step(  # type: ignore[override]
        self, action: Any
    ) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One of the six actions; ``info["success"]`` says whether it won."""
        move = int(action)
        if not 0 <= move <= TOGGLE:
            raise AgentFault(f"MiniGrid takes the actions 0 to {TOGGLE}, got {action!r}")
        self.step_count += 1
        outcome = self._play(move)
        reward = 0.0
        if outcome == WON:
            reward = float(self._reward())
        elif outcome == LOST:
            reward = self.penalty
        over = self.step_count >= self.max_steps
        return self.gen_obs(), reward, outcome != GOING, over, {"success": outcome == WON}

    def gen_obs(self) -> Array:
        """What the agent sees: 7×7 cells of kind, colour and state, the agent below the middle."""
        x, y = self.agent_pos
        at = (y * self.width + x) * 4 + self.agent_dir
        if self.see_through_walls:
            return self._codes.take(self._open_views[at], 0)
        view = self._views.get(at)
        if view is None:
            view = self._views[at] = occlude(self._open_views[at], self._opaque)
        return self._codes.take(view, 0)

    def _play(self, move: int) -> int:
        """Do what the action does in every MiniGrid: GOING, WON (a goal) or LOST (lava)."""
        if move == LEFT:
            self.agent_dir = (self.agent_dir - 1) % 4
            return GOING
        if move == RIGHT:
            self.agent_dir = (self.agent_dir + 1) % 4
            return GOING
        x, y = self._ahead()
        cell = y * self.width + x
        thing = self._things[cell]
        if move == FORWARD:
            if thing is None:
                self.agent_pos = (x, y)
            elif thing.can_overlap():
                self.agent_pos = (x, y)
                return {"goal": WON, "lava": LOST}.get(thing.type, GOING)
            return GOING
        if move == PICKUP:
            if thing is not None and self.carrying is None and thing.can_pickup():
                self.carrying = thing
                thing.cur_pos = (-1, -1)
                self._set(cell, None)
        elif move == DROP:
            if thing is None and self.carrying is not None:
                self.carrying.cur_pos = (x, y)
                self._set(cell, self.carrying)
                self.carrying = None
        elif thing is not None:
            thing.toggle(self, (x, y))
            self._set(cell, self._things[cell])
            if isinstance(thing, Door):
                self._opacity_changed()
        self._write(HAND, self.carrying)
        return GOING

    def _ahead(self) -> tuple[int, int]:
        x, y = self.agent_pos
        dx, dy = AHEAD[self.agent_dir]
        return x + dx, y + dy

    def _set(self, cell: int, thing: WorldObj | None) -> None:
        self._things[cell] = thing
        self._write(CELLS + cell, thing)

    def _write(self, row: int, thing: WorldObj | None) -> None:
        self._codes[row] = triple(code(thing))

    def _opacity_changed(self) -> None:
        if self.see_through_walls:
            return
        kind, state = self._codes[:, 0], self._codes[:, 2]
        self._opaque = (kind == 2) | ((kind == 4) & (state != 0))  # a wall, a door that is shut
        self._views: dict[int, Array] = {}

    def _rand_int(self, low: int, high: int) -> int:
        return int(self.np_random.integers(low, high))

    def place_obj(
        self,
        obj: WorldObj | None,
        top: tuple[int, int] | None = None,
        size: tuple[int, int] | None = None,
        reject_fn: Callable[[MiniGridEnv, tuple[int, int]], bool] | None = None,
        max_tries: float = math.inf,
    ) -> tuple[int, int]:
        """Put an object on a random free cell of a rectangle: MiniGrid's draws, less overhead."""
        width, height = self.grid.width, self.grid.height
        left, upper = (0, 0) if top is None else (max(top[0], 0), max(top[1], 0))
        right, lower = width, height
        if size is not None:
            right, lower = min(left + size[0], width), min(upper + size[1], height)
        draw, agent = self.np_random.integers, tuple(self.agent_pos)
        # A little more than max_tries, because MiniGrid counts so and the stream must be equal.
        tries = 0
        while tries <= max_tries:
            tries += 1
            pos = int(draw(left, right)), int(draw(upper, lower))
            if self.grid.grid[pos[1] * width + pos[0]] is not None or pos == agent:
                continue
            if reject_fn is not None and reject_fn(self, pos):
                continue
            self.grid.grid[pos[1] * width + pos[0]] = obj
            if obj is not None:
                obj.init_pos = obj.cur_pos = pos
            return pos
        raise RecursionError("rejection sampling failed in place_obj")


def code(thing: WorldObj | None) -> bytes:
    """A cell's three bytes."""
    if thing is None:
        return EMPTY
    return WALL if type(thing) is Wall else bytes(thing.encode())


@cache
def triple(three: bytes) -> Array:
    """A code as an array: much faster to assign than a tuple."""
    return np.frombuffer(three, np.uint8)


@cache
def open_views(width: int, height: int) -> list[Array]:
    """For each cell × 4 + direction: the 7×7 rows of ``codes`` in view if nothing hides any."""
    turns = np.array(AHEAD)
    y, x, way, i, j = np.ogrid[:height, :width, :4, :SIDE, :SIDE]
    dx, dy = turns[way, 0], turns[way, 1]
    ahead, right = SIDE - 1 - j, i - SIDE // 2
    to_x, to_y = x + ahead * dx - right * dy, y + ahead * dy + right * dx
    inside = (to_x >= 0) & (to_x < width) & (to_y >= 0) & (to_y < height)
    views = np.where(inside, CELLS + to_y * width + to_x, BEYOND)
    views[..., SIDE // 2, SIDE - 1] = HAND
    return list(views.reshape(-1, SIDE, SIDE))


def occlude(view: Array, opaque: Array) -> Array:
    """The view with what walls and shut doors hide replaced by UNSEEN."""
    blocked = np.packbits(opaque.take(view), axis=0, bitorder="little").tobytes()
    lit = 1 << SIDE // 2
    rows = [0] * SIDE
    for j in range(SIDE - 1, -1, -1):
        rows[j], lit = spread(lit, blocked[j])
    seen = np.array(rows) >> np.arange(SIDE)[:, None] & 1
    return np.where(seen, view, UNSEEN)


@cache
def spread(lit: int, blocked: int) -> tuple[int, int]:
    """How light moves along one row of a view, as bits: (lit in this row, lit in the next).

    A lit cell that is clear lights its neighbour, the cell in front of it and the one in front of
    its neighbour; first from left to right, then back.
    """
    above = 0
    for order, side in ((range(SIDE - 1), 1), (range(SIDE - 1, 0, -1), -1)):
        for i in order:
            if lit >> i & 1 and not blocked >> i & 1:
                lit |= 1 << i + side
                above |= 1 << i | 1 << i + side
    return lit, above
