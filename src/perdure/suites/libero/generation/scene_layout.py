"""Where things really are, and which of them a phrase is true of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from perdure.suites.libero.generation.nouns import FIXTURES, MOVABLES, PLACES, SIDES, words
from perdure.suites.libero.problem import Problem, Relation
from perdure.types import Array

APART = 0.06
"""How much further left (right, …) than all others one must be to be the left one."""
NEAR = 0.09
"""Between the edges of things that are next to each other, at most."""
NEARER = 0.04
"""How much nearer than all others."""
BESIDE = 0.25
"""Between the middles of a thing and of the part of the surface beside it, at most."""

NOUNS: dict[str, list[str]] = {}
for _category in (*MOVABLES, *FIXTURES):
    NOUNS.setdefault(words(_category), []).append(_category)


@dataclass(frozen=True)
class SceneLayout:
    """Where things are."""

    problem: Problem
    positions: Mapping[str, Array]
    """Of everything, from the middle of the surface."""
    on_surface: Mapping[str, bool]
    """Which objects stand on it themselves."""
    holds: Callable[[Relation], bool]
    middle: tuple[float, float] = (0.0, 0.0)
    """Of the part of the surface that is used."""
    zones: Mapping[str, Array] = field(default_factory=dict)
    """The middles of parts of the surface."""

    def named(self, categories: list[str]) -> list[str]:
        """The things of some categories."""
        things = (*self.problem.objects, *self.problem.fixtures)
        return [t.name for t in things if t.category in categories]

    def category(self, name: str) -> str:
        """The category of a thing."""
        found = self.problem.category(name)
        assert found is not None
        return found


@dataclass(frozen=True)
class Phrase:
    """``the left black bowl``, ``the black bowl next to the plate``, or ``it``."""

    noun: str
    side: str = ""
    where: str = ""
    others: tuple[Phrase, ...] = ()

    def find(self, world: SceneLayout) -> str | None:
        """The one thing that it is true of."""
        same = world.named(NOUNS[self.noun])
        if self.side:
            found = [n for n in same if _is_outmost(world, n, same, self.side)]
        elif self.where:
            marks = [o.find(world) for o in self.others]
            if None in marks:
                return None
            known = [m for m in marks if m is not None]
            found = [n for n in same if _is_there(world, n, same, self.where, known)]
        else:
            found = same
        return found[0] if len(found) == 1 else None


def _is_outmost(world: SceneLayout, name: str, same: list[str], side: str) -> bool:
    if len(same) < 2:
        return False
    direction = np.array(SIDES[side])
    mine = world.positions[name][:2] @ direction
    return all(mine >= world.positions[o][:2] @ direction + APART for o in same if o != name)


def _gap(world: SceneLayout, a: str, b: str) -> float:
    def half(name: str) -> float:
        kind = MOVABLES.get(world.category(name))
        return 0.0 if kind is None else kind.half

    away = np.linalg.norm(world.positions[a][:2] - world.positions[b][:2])
    return float(away) - half(a) - half(b)


def _is_there(world: SceneLayout, name: str, same: list[str], where: str, marks: list[str]) -> bool:
    if where in ("next to", "between", "center"):
        if not world.on_surface.get(name, False):
            return False
        here = world.positions[name][:2]
        if where == "center":
            return bool(np.linalg.norm(here - np.array(world.middle)) < NEAR)
        if where == "next to":
            gap = _gap(world, name, marks[0])
            others = [_gap(world, n, marks[0]) for n in same if n != name]
            return gap < NEAR and all(gap < o - NEARER for o in others)
        a, b = (world.positions[m][:2] for m in marks)
        along = (here - a) @ (b - a) / max(1e-9, float((b - a) @ (b - a)))
        aside = float(np.linalg.norm(here - (a + along * (b - a))))
        return 0.25 < along < 0.75 and aside < 0.05
    relation = relation_at(world, where, name, marks[0])
    return relation is not None and world.holds(relation)


def relation_at(world: SceneLayout, where: str, thing: str, owner: str) -> Relation | None:
    """``where`` is ``on {}``, ``in the top drawer of {}``, ``to the left of {}``, …"""
    side = re.fullmatch(r"to the (\w+) of \{\}", where)
    if side is not None:
        zone = _zone_beside(world, owner, side[1])
        return None if zone is None else Relation("on", (thing, zone))
    category = world.category(owner)
    for place in PLACES:
        if place.owner == category and place.phrase == where:
            name = f"{owner}_{place.region}" if place.region else owner
            return Relation(place.predicate, (thing, name))
    return Relation("on", (thing, owner)) if where == "on {}" and category in MOVABLES else None


def _zone_beside(world: SceneLayout, owner: str, side: str) -> str | None:
    direction = np.array(SIDES[side])
    found = []
    for name, middle in world.zones.items():
        away = middle[:2] - world.positions[owner][:2]
        along = float(away @ direction)
        if 0 < along < BESIDE + _reach(world, owner) and abs(along) > 2 * abs(
            float(away[0] * direction[1] - away[1] * direction[0])
        ):
            found.append(name)
    return found[0] if len(found) == 1 else None


def _reach(world: SceneLayout, name: str) -> float:
    category = world.category(name)
    box = (MOVABLES.get(category) or FIXTURES[category]).box
    return max(-box.x0, -box.y0, box.x1, box.y1)
