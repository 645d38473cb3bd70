"""What a sentence means in a scene: read word by word and looked up in where things really are.

This knows nothing of how sentences are written, so that what it finds can be compared with the goal.
A phrase such as "the bowl next to the plate" must be true of one bowl, in the simulation, after
everything has come to rest; a sentence of two meanings has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from perdure.suites.libero.generation.nouns import FIXTURES, MOVABLES, PLACES, SIDES
from perdure.suites.libero.generation.scene_layout import NOUNS, Phrase, SceneLayout, relation_at
from perdure.suites.libero.problem import Relation

_LONGEST_FIRST = sorted(NOUNS, key=len, reverse=True)

# Each function gives all ways to read the beginning of a text, with the rest of it.

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


def _part(world: SceneLayout, owner: str, words: str) -> str | None:
    """What of a thing opens: a drawer by its words, or the whole."""
    kind = FIXTURES.get(world.category(owner))
    parts = {words: part for part, words in kind.parts} if kind is not None else {}
    if words == ".":
        return owner if "" in parts else None
    return f"{owner}_{parts[words]}" if words in parts else None


def _meaning(world: SceneLayout, clauses: tuple[Clause, ...]) -> frozenset[Relation] | None:
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


def _asked(world: SceneLayout, clause: Clause, owner: str) -> list[Relation] | None:
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
        into = _into if it else relation_at
        relation = into(world, clause.where, thing, owner)
        if relation is None or thing == relation.names[1]:
            return None
        asked.append(relation)
    return asked


def _opens(world: SceneLayout, name: str) -> bool:
    things = {t.name: t.category for t in world.problem.fixtures}
    return any(
        name == (f if part == "." else f"{f}_{part}")
        for f, category in things.items()
        if category in FIXTURES
        for part, _ in FIXTURES[category].parts
    )


def _place_of(world: SceneLayout, name: str) -> str:
    """What ``it`` is after something was put there: a drawer, or the thing whose region it is."""
    if _opens(world, name):
        return name
    region = world.problem.region(name)
    return name if region is None else region.target


def _into(world: SceneLayout, where: str, thing: str, last: str) -> Relation | None:
    """``in it`` and ``on it``."""
    region = world.problem.region(last)
    if region is not None:
        return Relation("in", (thing, last)) if where == "in {}" else None
    return relation_at(world, where, thing, last)


def meanings(text: str, world: SceneLayout) -> set[frozenset[Relation]]:
    """All that a sentence can mean in a world."""
    found = (_meaning(world, clauses) for clauses in _sentences(text.strip().lower()))
    return {m for m in found if m is not None}
