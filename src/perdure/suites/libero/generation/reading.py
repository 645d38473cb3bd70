"""What a sentence means in a scene: read word by word and looked up in where things really are.

This knows nothing of how sentences are written, so that what it finds can be compared with the goal.
A phrase such as "the bowl next to the plate" must be true of one bowl, in the simulation, after
everything has come to rest; a sentence of two meanings has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
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

_NOUNS: dict[str, list[str]] = {}
for _category in (*MOVABLES, *FIXTURES):
    _NOUNS.setdefault(words(_category), []).append(_category)
_LONGEST_FIRST = sorted(_NOUNS, key=len, reverse=True)


@dataclass(frozen=True)
class World:
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

    def find(self, world: World) -> str | None:
        """The one thing that it is true of."""
        same = world.named(_NOUNS[self.noun])
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


def _is_outmost(world: World, name: str, same: list[str], side: str) -> bool:
    if len(same) < 2:
        return False
    direction = np.array(SIDES[side])
    mine = world.positions[name][:2] @ direction
    return all(mine >= world.positions[o][:2] @ direction + APART for o in same if o != name)


def _gap(world: World, a: str, b: str) -> float:
    def half(name: str) -> float:
        kind = MOVABLES.get(world.category(name))
        return 0.0 if kind is None else kind.half

    away = np.linalg.norm(world.positions[a][:2] - world.positions[b][:2])
    return float(away) - half(a) - half(b)


def _is_there(world: World, name: str, same: list[str], where: str, marks: list[str]) -> bool:
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
    relation = _relation(world, where, name, marks[0])
    return relation is not None and world.holds(relation)


def _relation(world: World, where: str, thing: str, owner: str) -> Relation | None:
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


def _zone_beside(world: World, owner: str, side: str) -> str | None:
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


def _reach(world: World, name: str) -> float:
    category = world.category(name)
    box = (MOVABLES.get(category) or FIXTURES[category]).box
    return max(-box.x0, -box.y0, box.x1, box.y1)


# Reading. Each function gives all ways to read the beginning of a text, with the rest of it.

Reading = Iterator[tuple[Phrase, str]]
IT = Phrase("it")


def _after(text: str, start: str) -> str | None:
    return text[len(start) :] if text.startswith(start) else None


def _plain(text: str) -> Reading:
    for side in ("", *SIDES):
        rest = _after(text, f"the {side} " if side else "the ")
        for noun in _LONGEST_FIRST if rest is not None else ():
            behind = _after(rest or "", noun)
            if behind is not None and (not behind or behind[0] == " "):
                yield Phrase(noun, side), behind


_WHERES = ("next to {}", *dict.fromkeys(p.phrase for p in PLACES))


def _phrase(text: str) -> Reading:
    for noun, rest in _plain(text):
        yield noun, rest
        if noun.side:
            continue
        for where in _WHERES:
            behind = _after(rest, " " + where.removesuffix("{}"))
            for other, after in _plain(behind) if behind is not None else ():
                plain = where.removesuffix(" {}") if where.startswith("next") else where
                yield Phrase(noun.noun, "", plain, (other,)), after
        behind = _after(rest, " between ")
        for one, middle in _plain(behind) if behind is not None else ():
            second = _after(middle, " and ")
            for other, after in _plain(second) if second is not None else ():
                yield Phrase(noun.noun, "", "between", (one, other)), after
        for surface in ("table", "floor"):
            after_center = _after(rest, f" at the center of the {surface}")
            if after_center is not None:
                yield Phrase(noun.noun, "", "center"), after_center


def _place(text: str) -> Iterator[tuple[str, Phrase, str]]:
    sides = (f"to the {s} of {{}}" for s in SIDES)
    for where in (*dict.fromkeys(p.phrase for p in PLACES), *sides):
        behind = _after(text, where.removesuffix("{}"))
        if behind is not None:
            yield from ((where, noun, rest) for noun, rest in _plain(behind))
    for word in ("in", "on"):
        rest = _after(text, f"{word} it")
        if rest is not None:
            yield f"{word} {{}}", IT, rest


@dataclass(frozen=True)
class Clause:
    """A part of a sentence: what is done, to which things, where."""

    verb: str
    things: tuple[Phrase, ...] = ()
    where: str = ""
    owner: Phrase | None = None


def _clauses(text: str) -> Iterator[tuple[Clause, str]]:
    for verb in ("open", "close"):
        rest = _after(text, f"{verb} ")
        if rest is None:
            continue
        if (behind := _after(rest, "it")) is not None:
            yield Clause(verb, owner=IT), behind
        yield from ((Clause(verb, owner=n, where="."), r) for n, r in _plain(rest))
        drawer = re.match(r"the (\w+ drawer) of ", rest)
        if drawer is not None:
            for noun, behind in _plain(rest[drawer.end() :]):
                yield Clause(verb, owner=noun, where=drawer[1]), behind
    for verb in ("turn on", "turn off"):
        rest = _after(text, f"{verb} ")
        for noun, behind in _plain(rest) if rest is not None else ():
            yield Clause(verb, owner=noun), behind
    for verb, link in (
        ("put", " "), ("place", " "), ("push", " "), ("stack", " "),
        ("pick up", " and place it "),
    ):  # fmt: skip
        rest = _after(text, f"{verb} ")
        for thing, behind in _phrase(rest) if rest is not None else ():
            place = _after(behind, link)
            for where, owner, after in _place(place) if place is not None else ():
                yield Clause(verb, (thing,), where, owner), after
    rest = _after(text, "put both ")
    for one, behind in _phrase(rest) if rest is not None else ():
        second = _after(behind, " and ")
        for other, after in _phrase(second) if second is not None else ():
            place = _after(after, " ")
            for where, owner, end in _place(place) if place is not None else ():
                yield Clause("put", (one, other), where, owner), end


def _sentences(text: str) -> Iterator[tuple[Clause, ...]]:
    for clause, rest in _clauses(text):
        if not rest:
            yield (clause,)
        elif (more := _after(rest, " and ")) is not None:
            yield from ((clause, *others) for others in _sentences(more))


def _part(world: World, owner: str, words: str) -> str | None:
    """What of a thing opens: a drawer by its words, or the whole."""
    kind = FIXTURES.get(world.category(owner))
    parts = {words: part for part, words in kind.parts} if kind is not None else {}
    if words == ".":
        return owner if "" in parts else None
    return f"{owner}_{parts[words]}" if words in parts else None


def _meaning(world: World, clauses: tuple[Clause, ...]) -> frozenset[Relation] | None:
    """What clauses ask for; None if they make no sense here. ``it`` is the place last spoken of."""
    found: set[Relation] = set()
    last = ""
    for clause in clauses:
        assert clause.owner is not None
        owner = last if clause.owner == IT else clause.owner.find(world)
        if not owner:
            return None
        asked = _asked(world, clause, owner)
        if asked is None:
            return None
        found |= {*asked}
        last = _place_of(world, asked[-1].names[-1])
    return frozenset(found)


def _asked(world: World, clause: Clause, owner: str) -> list[Relation] | None:
    """What one clause asks for. ``owner`` is a thing; where the clause says ``it``, maybe a part of one."""
    it = clause.owner == IT
    if clause.verb in ("open", "close"):
        part = owner if it else _part(world, owner, clause.where)
        fits = part is not None and _opens(world, part)
        return [Relation(clause.verb, (part,))] if fits and part is not None else None
    if clause.verb in ("turn on", "turn off"):
        kind = FIXTURES.get(world.category(owner))
        fits = kind is not None and kind.switch
        return [Relation(clause.verb.replace(" ", ""), (owner,))] if fits else None
    asked = []
    for phrase in clause.things:
        thing = phrase.find(world)
        if thing is None or world.category(thing) not in MOVABLES:
            return None
        into = _into if it else _relation
        relation = into(world, clause.where, thing, owner)
        if relation is None or thing == relation.names[1]:
            return None
        asked.append(relation)
    return asked


def _opens(world: World, name: str) -> bool:
    things = {t.name: t.category for t in world.problem.fixtures}
    return any(
        name == (f if part == "." else f"{f}_{part}")
        for f, category in things.items()
        if category in FIXTURES
        for part, _ in FIXTURES[category].parts
    )


def _place_of(world: World, name: str) -> str:
    """What ``it`` is after something was put there: a drawer, or the thing whose region it is."""
    if _opens(world, name):
        return name
    region = world.problem.region(name)
    return name if region is None else region.target


def _into(world: World, where: str, thing: str, last: str) -> Relation | None:
    """``in it`` and ``on it``."""
    region = world.problem.region(last)
    if region is not None:
        return Relation("in", (thing, last)) if where == "in {}" else None
    return _relation(world, where, thing, last)


def meanings(text: str, world: World) -> set[frozenset[Relation]]:
    """All that a sentence can mean in a world."""
    found = (_meaning(world, clauses) for clauses in _sentences(text.strip().lower()))
    return {m for m in found if m is not None}
