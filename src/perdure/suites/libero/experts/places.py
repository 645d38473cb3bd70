"""Where to put a thing so that a relation will hold: poses in which it rests, and the hand fits too.

A thing is lowered into its place from above where that is possible; into shelves and ovens it is
pushed from the side, by a hand that leans out of their way or points straight in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from perdure.suites.libero.experts.grasps import OPEN, Grasp, pointing
from perdure.suites.libero.experts.planning_scene import PlanningScene
from perdure.suites.libero.experts.solids import Solids, between, gripper, hits_gripper
from perdure.suites.libero.predicates import HEADROOM, NEAR, SLACK
from perdure.suites.libero.problem import Relation
from perdure.types import Array

FALL = 0.005
"""Metres between the heights that are tried."""
TURNS = tuple(np.deg2rad(a) for a in (0, 15, -15, 30, -30, 45, -45, 60, -60, 75, -75, 90, -90))
HALF_TURNS = (*TURNS, *(np.deg2rad(a) for a in (120, -120, 150, -150, 180)))
TURN_COST = 0.02
"""Metres from the middle that a radian of turning is worth."""
TWISTED = np.deg2rad(115)
"""How far the hand may be turned from its first posture before the wrist ends."""
ENOUGH = 12
"""Places where a thing rests that are looked at for one where the hand fits too."""
FINER = tuple((x, y) for x in (0.0, 0.006, -0.006, 0.012, -0.012) for y in (0.0, 0.006, -0.006, 0.012, -0.012))  # fmt: skip
"""Steps about the lowest place, for what has hardly more room than it needs."""
RIM = 0.012
"""Metres above the lowest place where a thing rests."""
DROPS = (0.03, 0.06, 0.09, 0.12, 0.15)
TRIED = 70
"""Poses that are looked at, the nearest to the middle first."""
RUN = 0.22
"""How far from its place a thing begins to be pushed in."""
LEVEL = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Held:
    """A thing in the hand: its pose there and its shape, both in the hand's axes."""

    name: str
    axes: Array
    position: Array
    solids: Solids

    @classmethod
    def by(cls, world: PlanningScene, name: str, position: Array, axes: Array) -> Held:
        """As a hand in this pose would hold it where it is."""
        return cls(
            name,
            axes.T @ world.axes(name),
            axes.T @ (world.position(name) - position),
            world.solids(name).moved(axes.T, -axes.T @ position),
        )

    @classmethod
    def now(cls, world: PlanningScene, name: str) -> Held:
        """As it is held."""
        return cls.by(world, name, world.hand, world.hand_axes)

    def points(self, spacing: float = 0.014) -> Array:
        """Of its surface, and the middles of its solids, lest a thin wall pass between them."""
        return np.concatenate([self.solids.skin(spacing), self.solids.middles])


@dataclass(frozen=True)
class ReleasePose:
    """A pose of the hand in which what it holds is where it should be."""

    position: Array
    axes: Array
    fits: bool
    """Whether the opened gripper touches nothing."""
    way: Array | None = None
    """In which direction it is pushed in; None if it is lowered."""
    drop: float = 0.0
    """How far it falls when it is let go."""


def turned(angle: float) -> Array:
    """About the vertical."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])


def twist(axes: Array) -> float:
    """How far a hand is turned about the vertical from its first posture, in which it closes along y."""
    x = axes[:, 0]
    level = x if np.hypot(x[0], x[1]) > 0.5 else np.cross(LEVEL, axes[:, 2])
    angle = np.arctan2(level[1], level[0]) - np.pi / 2
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def spots(world: PlanningScene, relation: Relation) -> Iterator[tuple[Array, float]]:
    """Places for a thing's origin, seen from above, and how far each is from the best one."""
    target = relation.names[1]
    if target in world.bodies:
        middle = world.position(target)
        for dx, dy in ((0, 0), (0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01)):
            yield middle + np.array([dx, dy, 0]), float(np.hypot(dx, dy))
        return
    middle, axes, size = world.site_box(target)
    if relation.predicate == "in":
        reach, across = np.abs(axes @ size), np.eye(3)
    else:
        reach, across = size, axes.T  # The predicate turns by the axes themselves.
    best = _share(world, relation) * reach[:2]
    best[np.argmin(reach[:2])] = 0.0
    for u in np.linspace(-0.8, 0.8, 7):
        for v in np.linspace(-0.8, 0.8, 7):
            away = across[:, 0] * u * reach[0] + across[:, 1] * v * reach[1]
            yield middle + away, float(np.hypot(u * reach[0] - best[0], v * reach[1] - best[1]))


def _share(world: PlanningScene, relation: Relation) -> float:
    """Where in a region a thing is best put that is not alone there, from −0.6 to 0.6 of its longer side; 0 if it is."""
    target = relation.names[1]
    goal = world.scene.problem.goal
    there = [r for r in goal if r.predicate in ("on", "in") and r.names[1] == target]
    if len(there) < 2 or relation not in there:
        return 0.0
    return 1.2 * there.index(relation) / (len(there) - 1) - 0.6


def will_hold(world: PlanningScene, relation: Relation, origin: Array) -> bool:
    """Whether the relation would hold with the thing's origin there, contact aside."""
    target = relation.names[1]
    if target in world.bodies:
        below = world.position(target)
        return bool(below[2] <= origin[2] and np.hypot(*(below - origin)[:2]) < NEAR - 0.005)
    middle, axes, size = world.site_box(target)
    if relation.predicate == "in":
        reach = np.abs(axes @ size)
        low, high = middle - reach, middle + reach
        low[2] -= SLACK
        return bool(np.all(origin > low + 0.003) and np.all(origin < high - 0.003))
    away = axes @ (origin - middle)
    level = size[2] - 0.005 < away[2] < size[2] + HEADROOM
    return bool(level and np.all(np.abs(away[:2]) < size[:2] - 0.003))


class Room:
    """What is around a target, and whether things fit there."""

    def __init__(
        self, world: PlanningScene, name: str, relation: Relation, opening: float = OPEN
    ) -> None:
        self.world, self.relation = world, relation
        self.spots = sorted(spots(world, relation), key=lambda s: s[1])
        self.env = world.others(name).near(self.spots[0][0], 0.45)
        self.flat = np.linalg.norm(self.env.halves, axis=1)
        self.skin = self.env.skin(0.01)
        self.hand = gripper(opening)

    def lowered(self, held: Held, axes: Array, most: int = TRIED) -> ReleasePose | None:
        """The nearest place to the middle where a thing can be lowered and the hand opened; one where
        the hand would touch something if there is no better; None if it does not fit at all."""
        points = held.points()
        choices = [
            (away + TURN_COST * abs(turn), turn, spot)
            for spot, away in self.spots
            for turn in TURNS
            if abs(twist(turned(turn) @ axes)) < TWISTED
        ]
        choices.sort(key=lambda c: c[0])
        resting: list[tuple[Array, Array]] = []
        heights: list[float] = []
        within = self.relation.predicate == "in"

        def rests(turn: float, spot: Array) -> tuple[Array, Array] | None:
            """The hand's pose in which it has come to rest there."""
            turned_axes = turned(turn) @ axes
            offset = turned_axes @ held.position
            height = self.rest(points @ turned_axes.T - offset, spot)
            if height is None:
                return None
            origin = np.array([spot[0], spot[1], height])
            if not will_hold(self.world, self.relation, origin):
                return None
            resting.append((origin - offset, turned_axes))
            heights.append(origin[2])
            return resting[-1]

        lowest = (np.inf, 0.0, axes)
        for _, turn, spot in choices[:most]:
            found = rests(turn, spot)
            if found is None:
                continue
            lowest = min(lowest, (heights[-1], turn, spot), key=lambda low: low[0])
            if not within and self._goes(held, found[1], found[0]):
                return ReleasePose(*found, True)
            if len(resting) == ENOUGH:
                break
        if within and resting:
            for dx, dy in FINER:
                rests(lowest[1], lowest[2] + np.array([dx, dy, 0.0]))
            # What rests higher than elsewhere rests on a rim, and will tip; into what is deep it is dropped.
            flat = [r for r, h in zip(resting, heights, strict=True) if h < min(heights) + RIM]
            for some in (flat, resting):
                for drop in (0.0, *DROPS):
                    for position, turned_axes in some:
                        if self._goes(held, turned_axes, position + drop * LEVEL):
                            return ReleasePose(
                                position + drop * LEVEL, turned_axes, True, drop=drop
                            )
            resting = flat
        return ReleasePose(*resting[0], False) if resting else None

    def _goes(self, held: Held, axes: Array, position: Array) -> bool:
        """Whether there is room for the hand, and no thin wall in what it holds."""
        if not self.fits(axes, position):
            return False
        for raised in (0.006, 0.03, 0.06):
            solids = held.solids.moved(axes, position + raised * LEVEL)
            low, high = solids.extent()
            near = between(self.skin, low, high)
            if solids.inside(near, -0.001).any():
                return False
        return True

    def rest(self, shape: Array, spot: Array) -> float | None:
        """The height of the origin at which a shape about it comes to rest when it is lowered."""
        width = np.abs(shape[:, :2]).max() + 0.01
        apart = np.linalg.norm((self.env.middles - spot)[:, :2], axis=1)
        env = self.env.take(apart - self.flat < 1.5 * width)
        under = self.skin[(np.abs(self.skin[:, :2] - spot[:2]) < width).all(1), 2]
        top = max(spot[2] + 0.02, float(under.max()) if len(under) else -np.inf)
        height = top - float(shape[:, 2].min()) + 0.01
        least, most = shape.min(0), shape.max(0)

        def blocked(z: float) -> bool:
            place = np.array([*spot[:2], z])
            return env.touch(shape + place, least + place, most + place)

        if blocked(height):
            return None
        # In steps that no board is thin enough to be passed in.
        while height > spot[2] - 0.3:
            lower = height - FALL
            if blocked(lower) or blocked(lower + FALL / 2):
                return float(height)
            height = lower
        return None

    def fits(self, axes: Array, position: Array, back: Array | None = None) -> bool:
        """Whether the opened gripper touches nothing, there and on its way back, which is up."""
        beside = self.skin[np.abs(self.skin - position).max(1) < 0.3]
        for far in (0.005, 0.04, 0.09):
            place = position + far * (LEVEL if back is None else back)
            if hits_gripper(self.hand, (beside - place) @ axes, 0.002):
                return False
            ends = self.hand.moved(axes, place).corners().reshape(-1, 3)
            if self.env.inside(ends, 0.001).any():
                return False
        return True

    def pushed(self, held: Held, axes: Array, way: Array) -> ReleasePose | None:
        """A place that a thing can be pushed into along a level way, the nearest to the opening.

        The hand keeps its lean; or, where the thing is held from above, it points straight in.
        """
        points = held.points()
        choices = [turned(turn) @ axes for turn in HALF_TURNS]
        if axes[2, 2] < -0.9:
            choices = [
                pointing(way, x) for x in (np.cross(way, LEVEL), np.cross(LEVEL, way), LEVEL)
            ]
        best: ReleasePose | None = None
        inwards = sorted(self.spots, key=lambda s: (float(s[0] @ way), s[1]))
        for turned_axes in choices:
            if abs(twist(turned_axes)) > TWISTED:
                continue
            offset = turned_axes @ held.position
            shape = points @ turned_axes.T - offset
            for spot, _ in inwards:
                for height in np.arange(-0.07, 0.071, 0.01):
                    origin = spot + height * LEVEL
                    if not will_hold(self.world, self.relation, origin):
                        continue
                    solids = held.solids.moved(turned_axes, origin - offset)
                    if not self._slides(shape + origin, solids, way):
                        continue
                    position = origin - offset
                    if self.fits(turned_axes, position, -way):
                        return ReleasePose(position, turned_axes, True, way)
                    best = best or ReleasePose(position, turned_axes, False, way)
                    break
        return best

    def _slides(self, shape: Array, solids: Solids, way: Array) -> bool:
        """Whether a thing touches nothing on its way in: neither its points what is around, nor the
        points of that, boards being thin, it."""
        low, high = solids.extent()
        least, most = shape.min(0), shape.max(0)
        for far in (0.0, 0.04, 0.08, 0.12, 0.17, RUN):
            back = far * way
            if self.env.touch(shape - back, least - back, most - back, 0.002):
                return False
            near = between(self.skin, low - far * way, high - far * way)
            if solids.inside(near + far * way, 0.001).any():
                return False
        return True


def held_by(world: PlanningScene, name: str, grasp: Grasp) -> Held:
    """As a grasp would hold a thing."""
    return Held.by(world, name, grasp.position, grasp.axes)
