"""Where one of two equal objects can be, so that a sentence tells it from the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perdure.suites.libero.generation.draft import Builder, NoRoom, Placed
from perdure.suites.libero.generation.nouns import (
    BASES,
    FIXTURES,
    MOVABLES,
    PLACES,
    SIDES,
    words,
)
from perdure.suites.libero.problem import Relation

NEXT = 0.04
"""From the edge of a thing to that of another next to it."""
ANYWHERE, ANY_SIDE = "anywhere", "any side"
APART = 0.1
"""How much further left (right, …) the left one is than the other."""


@dataclass(frozen=True)
class Spot:
    """A place by its relation to other things."""

    where: str
    """``next to``, ``between``, ``center``, a side, or the phrase of a place: ``on {}``; or
    anywhere, which has no name."""
    marks: tuple[str, ...] = ()
    """Names of the things that it is related to."""
    said: tuple[str, ...] = ()
    at: tuple[float, float] | None = None
    relation: tuple[str, str] | None = None
    """Of an object that is on or in something at first: the predicate, and on or in what."""
    opened: str = ""
    surface: str = "table"

    def phrase(self, start: str, noun: str) -> str:
        """The object that is there."""
        if self.where in SIDES:
            return f"the {self.where} {noun}"
        if self.where == "center":
            return f"{start} at the center of the {self.surface}"
        if self.where == "next to":
            return f"{start} next to the {self.said[0]}"
        if self.where == "between":
            return f"{start} between the {self.said[0]} and the {self.said[1]}"
        return f"{start} {self.where.format(f'the {self.said[0]}')}"


def spots(scene: Builder, category: str) -> list[Spot]:
    """All places in a scene that have a name of their own."""
    box, half = MOVABLES[category].box, MOVABLES[category].half
    free = scene.surface
    surface = "floor" if free.name == "floor" else "table"
    found = []
    marks = [o for o in scene.objects if o.at is not None]
    for mark in marks:
        assert mark.at is not None
        away = MOVABLES[mark.category].half + half + NEXT
        for dx, dy in ((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0)):
            at = round(mark.at[0] + dx * away, 3), round(mark.at[1] + dy * away, 3)
            if free.fits(box, *at, gap=0.02):
                found.append(Spot("next to", (mark.name,), (words(mark.category),), at))
                break
    for i, a in enumerate(marks):
        for b in marks[i + 1 :]:
            assert a.at is not None and b.at is not None
            at = round((a.at[0] + b.at[0]) / 2, 3), round((a.at[1] + b.at[1]) / 2, 3)
            if free.fits(box, *at, gap=0.02):
                both = words(a.category), words(b.category)
                found.append(Spot("between", (a.name, b.name), both, at))
    area = free.area
    middle = round((area.x0 + area.x1) / 2, 3), round((area.y0 + area.y1) / 2, 3)
    if free.fits(box, *middle):
        found.append(Spot("center", at=middle, surface=surface))
    for mark in marks:
        if category in BASES.get(mark.category, ()):
            relation = "on", mark.name
            found.append(Spot("on {}", (mark.name,), (words(mark.category),), relation=relation))
    for fixture in scene.fixtures:
        for place in PLACES:
            # What lies in a lower drawer is under the upper ones.
            if place.part not in ("", "top_region"):
                continue
            if place.owner == fixture.category and place.kind in MOVABLES[category].fits:
                where = f"{fixture.name}_{place.region}"
                opened = where if place.part else ""
                said = (FIXTURES[fixture.category].words,)
                found.append(
                    Spot(
                        place.phrase, (fixture.name,), said, None, (place.predicate, where), opened
                    )
                )
    return found


def named_places(scene: Builder, category: str) -> list[Spot]:
    """Where the one that is meant can be. A side is one of them, whichever it is."""
    return [*spots(scene, category), Spot(ANY_SIDE)]


def draw_pair(draws: np.random.Generator, here: Spot, known: Sequence[Spot]) -> tuple[Spot, Spot]:
    """The spot of the one that is meant, and where the other is meanwhile."""
    # Two that are in or on the same thing would be in each other's way.
    taken = here.marks if here.relation is not None else ()
    elsewhere = [
        *(s for s in known if s.where != ANY_SIDE and not (s.relation and s.marks == taken)),
        Spot(ANYWHERE),
    ]
    elsewhere = [s for s in elsewhere if s != here]
    if here.where == ANY_SIDE:
        here = Spot(tuple(SIDES)[int(draws.integers(len(SIDES)))])
        elsewhere = [s for s in elsewhere if s.relation is None]
    return here, elsewhere[int(draws.integers(len(elsewhere)))]


def take_pair(
    scene: Builder, category: str, here: Spot, there: Spot, draws: np.random.Generator
) -> tuple[Placed, tuple[Relation, ...]]:
    """Put two equal objects at their spots; the one that is meant, and what is open at first."""
    # A side is a matter of where the other is.
    if here.where in SIDES:
        other, opened = _take(scene, category, there, draws)
        meant, more = _take(scene, category, here, draws, other)
    else:
        meant, more = _take(scene, category, here, draws)
        _, opened = _take(scene, category, there, draws)
    return meant, tuple(dict.fromkeys((*more, *opened)))


def _take(
    scene: Builder,
    category: str,
    spot: Spot,
    draws: np.random.Generator,
    other: Placed | None = None,
) -> tuple[Placed, tuple[Relation, ...]]:
    if spot.relation is not None:
        predicate, where = spot.relation
        name = scene.next_name(category)
        placed = scene.put(category, relation=Relation(predicate, (name, where)))
        return placed, (Relation("open", (spot.opened,)),) if spot.opened else ()
    box = MOVABLES[category].box
    if spot.at is not None:
        if not scene.surface.take_at(box, *spot.at, gap=0.02):
            raise NoRoom
        return scene.put(category, spot.at), ()
    at = scene.surface.find(draws, box)
    if spot.where in SIDES:
        assert other is not None and other.at is not None
        away = np.array(at) - np.array(other.at)
        if float(away @ np.array(SIDES[spot.where])) < APART:
            raise NoRoom
    return scene.put(category, at), ()
