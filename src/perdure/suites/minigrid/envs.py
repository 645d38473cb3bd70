"""The six families, with the rules that TELLA 2.1.0 gave them on gym_minigrid 1.0.3."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from minigrid.core.constants import COLOR_NAMES
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.roomgrid import RoomGrid
from minigrid.core.world_object import Ball, Box, Key, Wall
from minigrid.envs.crossing import CrossingEnv
from minigrid.envs.distshift import DistShiftEnv
from minigrid.envs.doorkey import DoorKeyEnv
from minigrid.envs.dynamicobstacles import DynamicObstaclesEnv

from perdure.errors import CurriculumError
from perdure.suites.minigrid.fast_env import FORWARD, GOING, LOST, PICKUP, TOGGLE, WON, FastMiniGrid


class SimpleCrossing(FastMiniGrid, CrossingEnv):
    """Walls cross the room, each with one gap; the goal is in the far corner."""

    def __init__(self, size: int, crossings: int, horizon: int | None = None) -> None:
        _whole(self, "size", size, 5)
        if size % 2 == 0:
            raise CurriculumError(f"SimpleCrossing: size must be odd, got {size}")
        _whole(self, "crossings", crossings, 1, 2 * len(range(2, size - 2, 2)))
        super().__init__(
            size=size,
            num_crossings=crossings,
            obstacle_type=Wall,
            max_steps=_horizon(self, horizon, 4 * size**2),
        )


class DistShift(FastMiniGrid, DistShiftEnv):
    """Two strips of lava between start and goal; ``row`` is where the second one lies."""

    penalty = -1.0

    def __init__(self, row: int, horizon: int | None = None) -> None:
        _whole(self, "row", row, 1, 5)
        super().__init__(strip2_row=row, max_steps=_horizon(self, horizon, 4 * 9 * 7))


class DynObstacles(FastMiniGrid, DynamicObstaclesEnv):
    """Balls wander between start and goal. MiniGrid's own also ends at walls; TELLA's does not."""

    penalty = -1.0

    def __init__(self, size: int, obstacles: int, horizon: int | None = None) -> None:
        _whole(self, "size", size, 4)
        _whole(self, "obstacles", obstacles, 0, size // 2)
        super().__init__(
            size=size, n_obstacles=obstacles, max_steps=_horizon(self, horizon, 4 * size**2)
        )

    def _play(self, move: int) -> int:
        # What counts is what stood ahead before the balls moved: a ball that has just left still
        # costs the episode, one that has just come only blocks the way.
        x, y = self._ahead()
        hit = move == FORWARD and isinstance(self._things[y * self.width + x], Ball)
        for ball in self.obstacles:
            x, y = cast(tuple[int, int], ball.cur_pos)
            try:
                new_x, new_y = self.place_obj(ball, (x - 1, y - 1), (3, 3), max_tries=100)
            except RecursionError:  # walled in by the others: it stays
                continue
            self._set(new_y * self.width + new_x, ball)
            self._set(y * self.width + x, None)
        # Nothing here can be picked up, though MiniGrid would allow it with its balls.
        outcome = GOING if move == PICKUP else super()._play(move)
        return LOST if hit else outcome


class CustomFetch(FastMiniGrid):
    """Yellow keys among balls and boxes of any colour: pick up a key and nothing else."""

    def __init__(self, size: int, targets: int, others: int, horizon: int | None = None) -> None:
        _whole(self, "size", size, 4)
        _whole(self, "targets", targets, 1, (size - 2) ** 2 - 1)
        _whole(self, "others", others, 0, (size - 2) ** 2 - 1 - targets)
        self.targets, self.others = targets, others
        super().__init__(
            mission_space=MissionSpace(mission_func=_fetch_mission),
            grid_size=size,
            see_through_walls=True,
            max_steps=_horizon(self, horizon, 5 * size**2),
        )

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        for _ in range(self.targets):
            self.place_obj(Key("yellow"))
        for _ in range(self.others):
            kind = self._rand_elem((Ball, Box))
            self.place_obj(kind(self._rand_elem(COLOR_NAMES)))
        self.place_agent()  # type: ignore[no-untyped-call]

    def _play(self, move: int) -> int:
        super()._play(move)
        if self.carrying is None:
            return GOING
        return WON if isinstance(self.carrying, Key) else LOST


class CustomUnlock(FastMiniGrid, RoomGrid):
    """Two rooms, a locked door between them, its key on the agent's side: open the door."""

    def __init__(self, size: int, horizon: int | None = None) -> None:
        _whole(self, "size", size, 4)
        super().__init__(
            mission_space=MissionSpace(mission_func=_unlock_mission),
            room_size=size,
            num_rows=1,
            num_cols=2,
            max_steps=_horizon(self, horizon, 8 * size**2),
        )

    def _gen_grid(self, width: int, height: int) -> None:
        super()._gen_grid(width, height)  # type: ignore[no-untyped-call]
        self.door, _ = self.add_door(0, 0, 0, locked=True)
        self.add_object(0, 0, "key", self.door.color)
        self.place_agent(0, 0)
        self.mission = _unlock_mission()

    def _play(self, move: int) -> int:
        outcome = super()._play(move)
        return WON if move == TOGGLE and self.door.is_open else outcome


class DoorKey(FastMiniGrid, DoorKeyEnv):
    """Fetch the key, open the door in the wall, reach the goal behind it."""

    def __init__(self, size: int, horizon: int | None = None) -> None:
        _whole(self, "size", size, 5)
        super().__init__(size=size, max_steps=_horizon(self, horizon, 10 * size**2))


def _fetch_mission() -> str:
    return "fetch a yellow key"


def _unlock_mission() -> str:
    return "open the door"


def _horizon(env: object, given: int | None, default: int) -> int:
    if given is None:
        return default
    _whole(env, "horizon", given, 1)
    return int(given)


def _whole(env: object, name: str, value: Any, least: int, most: int | None = None) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        expected = f"at least {least}" if most is None else f"from {least} to {most}"
        raise CurriculumError(
            f"{type(env).__name__}: {name} must be a whole number {expected}, got {value!r}"
        )


FAMILIES: dict[str, type[FastMiniGrid]] = {
    c.__name__: c
    for c in (SimpleCrossing, DistShift, DynObstacles, CustomFetch, CustomUnlock, DoorKey)
}
