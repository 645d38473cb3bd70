"""Behaviour templates, and what they can be filled with.

A template is a kind of everyday activity ("open …", "put … in …", "turn on … and put … on it"); its
steps are what a robot does, and each step is one relation of the goal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from perdure.suites.libero.generation.draft import Builder, NoRoom, Placed, around
from perdure.suites.libero.generation.nouns import (
    BOWLS,
    FIXTURES,
    MOVABLES,
    PLACES,
    SIDES,
    Destination,
    turned,
)
from perdure.suites.libero.problem import Region, Relation

ZONE = 0.05
"""Half the side of a part of the surface that something is to be put on."""
BESIDE = 0.035
"""Between the box of a thing and where another stands beside it."""


@dataclass(frozen=True)
class Step:
    """One thing to do: ``put`` a thing somewhere, ``stack``, ``push``, ``open``, ``close``, ``turn on``
    or ``turn off``."""

    verb: str
    place: Destination
    """Where to; of what opens, the place behind it; of a switch, the place that it heats."""
    thing: str = ""
    """Category of the object that is moved."""


@dataclass(frozen=True)
class Behaviour:
    """A template with its slots filled."""

    template: str
    steps: tuple[Step, ...]

    @property
    def movables(self) -> tuple[str, ...]:
        """Categories of the objects that it takes; twice where it takes two."""
        found: list[str] = []
        for step in self.steps:
            if step.thing:
                found.append(step.thing)
            owner = step.place.owner
            if owner in MOVABLES and (owner == step.thing or owner not in found):
                found.append(owner)
        return tuple(found)

    @property
    def fixtures(self) -> tuple[str, ...]:
        """Categories of the fixtures that it takes."""
        return tuple(dict.fromkeys(s.place.owner for s in self.steps if s.place.owner in FIXTURES))

    @property
    def states(self) -> tuple[tuple[str, str, str], ...]:
        """What must hold at first for it to make sense: predicate, owner's category, part."""
        found: dict[tuple[str, str, str], None] = {}
        opened: set[tuple[str, str]] = set()
        for step in self.steps:
            key = step.place.owner, step.place.part
            if step.verb == "open":
                opened.add(key)
                found["close", *key] = None
            elif (step.verb == "close" or step.place.part) and key not in opened:
                found["open", *key] = None
            elif step.verb == "turn on":
                found["turnoff", step.place.owner, "."] = None
            elif step.verb == "turn off":
                found["turnon", step.place.owner, "."] = None
        return tuple(found)


# What fits.


def puts(things: Sequence[str], owners: Sequence[str]) -> Iterator[Step]:
    """Everything that can be put somewhere, by what things are made for."""
    for thing, place in itertools.product(dict.fromkeys(things), PLACES):
        if place.owner in owners and place.kind in MOVABLES[thing].fits:
            yield Step("put", place, thing)


def besides(things: Sequence[str], owners: Sequence[str]) -> Iterator[Step]:
    """Everything that can be put or pushed beside something."""
    for thing, owner, side in itertools.product(
        dict.fromkeys(things), dict.fromkeys(owners), SIDES
    ):
        if thing == owner or not {"side", "push"} & MOVABLES[thing].fits:
            continue
        verb = "put" if "side" in MOVABLES[thing].fits else "push"
        place = Destination("side", owner, "on", "", f"to the {side} of {{}}", side=side)
        yield Step(verb, place, thing)


def stacks(things: Sequence[str]) -> Iterator[Step]:
    """Bowls on bowls."""
    bowls = [t for t in things if t in BOWLS]
    for thing, owner in dict.fromkeys(itertools.permutations(bowls, 2)):
        yield Step("stack", Destination("stack", owner, "on", "", "on {}"), thing)


def openings(owners: Sequence[str]) -> Iterator[Step]:
    """What can be opened."""
    for owner in dict.fromkeys(owners):
        kind = FIXTURES.get(owner)
        for part, _ in kind.parts if kind is not None else ():
            yield Step("open", next(p for p in PLACES if (p.owner, p.part) == (owner, part)))


def switches(owners: Sequence[str]) -> Iterator[Step]:
    """What can be turned on."""
    for owner in dict.fromkeys(owners):
        if owner in FIXTURES and FIXTURES[owner].switch:
            yield Step("turn on", next(p for p in PLACES if p.owner == owner))


def _as(steps: Iterator[Step], verb: str) -> Iterator[Step]:
    return (replace(s, verb=verb) for s in steps)


Filled = Iterator[tuple[Step, ...]]


def _single(steps: Iterator[Step]) -> Filled:
    return ((s,) for s in steps)


def _put_down(things: Sequence[str], owners: Sequence[str]) -> Iterator[Step]:
    return (s for s in puts(things, owners) if s.place.predicate == "on")


def _put_in(things: Sequence[str], owners: Sequence[str]) -> Iterator[Step]:
    return (s for s in puts(things, owners) if s.place.predicate == "in")


def _open_and_put(things: Sequence[str], owners: Sequence[str]) -> Filled:
    for first, then in itertools.product(openings(owners), _put_in(things, owners)):
        if (first.place.owner, first.place.part) == (then.place.owner, then.place.part):
            yield first, then


def _put_and_close(things: Sequence[str], owners: Sequence[str]) -> Filled:
    for opened, put in _open_and_put(things, owners):
        yield put, replace(opened, verb="close")


def _turn_on_and_put(things: Sequence[str], owners: Sequence[str]) -> Filled:
    for first, then in itertools.product(switches(owners), _put_down(things, owners)):
        if first.place.owner == then.place.owner:
            yield first, then


def _put_both(things: Sequence[str], owners: Sequence[str]) -> Filled:
    wide = [s for s in _put_in(things, owners) if s.place.kind in ("basket", "tray")]
    for one, other in itertools.combinations(wide, 2):
        if one.place == other.place:
            yield one, other


def _put_and_put(things: Sequence[str], owners: Sequence[str]) -> Filled:
    free = [s for s in puts(things, owners) if not s.place.part]
    for one, other in itertools.permutations(free, 2):
        if one.thing != other.thing and one.place.owner != other.place.owner:
            yield one, other


def _do_and_put(things: Sequence[str], owners: Sequence[str]) -> Filled:
    firsts = [*openings(owners), *switches(owners)]
    free = [s for s in puts(things, owners) if not s.place.part]
    for first, put in itertools.product(firsts, free):
        if first.place.owner != put.place.owner:
            yield first, put


TEMPLATES: dict[str, Callable[[Sequence[str], Sequence[str]], Filled]] = {
    "put … on …": lambda things, owners: _single(_put_down(things, owners)),
    "put … in …": lambda things, owners: _single(_put_in(things, owners)),
    "put … beside …": lambda things, owners: _single(besides(things, owners)),
    "stack … on …": lambda things, owners: _single(stacks(things)),
    "open …": lambda things, owners: _single(openings(owners)),
    "close …": lambda things, owners: _single(_as(openings(owners), "close")),
    "turn on …": lambda things, owners: _single(switches(owners)),
    "turn off …": lambda things, owners: _single(_as(switches(owners), "turn off")),
    "open … and put … in it": _open_and_put,
    "put … in … and close it": _put_and_close,
    "turn on … and put … on it": _turn_on_and_put,
    "put both … and … in …": _put_both,
    "put … and put …": _put_and_put,
    "open or turn on … and put …": _do_and_put,
}
"""Templates by name: all ways to fill one with objects (``things``) and things that have places."""


def behaviours(things: Sequence[str], fixtures: Sequence[str]) -> list[Behaviour]:
    """All that can be done with some objects (a category twice stands for two) and fixtures."""
    owners = (*dict.fromkeys(things), *fixtures)
    return [
        Behaviour(name, steps)
        for name, fill in TEMPLATES.items()
        for steps in fill(tuple(things), owners)
    ]


# In a scene.


def initial_states(behaviour: Behaviour) -> tuple[Relation, ...]:
    """What is open or on at first, as far as that is not how things stand by themselves."""
    return tuple(
        Relation(predicate, (part_name(owner, part),))
        for predicate, owner, part in behaviour.states
        if predicate in ("open", "turnon")
    )


def part_name(owner: str, part: str) -> str:
    """A part of the first fixture of a category, as relations call it."""
    return f"{owner}_1" if part == "." else f"{owner}_1_{part}"


def zone_beside(scene: Builder, step: Step, thing: Placed) -> Region:
    """Take the part of the surface beside a thing that something is to be put on; NoRoom if it is not
    free."""
    owner = scene.of(step.place.owner)
    if owner is None or owner.at is None:
        raise NoRoom
    kind = MOVABLES.get(owner.category) or FIXTURES[owner.category]
    box, own = turned(kind.box, owner.yaw), MOVABLES[thing.category].box
    reach = {"front": box.x1 - own.x0, "back": own.x1 - box.x0,
             "right": box.y1 - own.y0, "left": own.y1 - box.y0}[step.place.side]  # fmt: skip
    (dx, dy), away = SIDES[step.place.side], reach + BESIDE
    x, y = round(owner.at[0] + dx * away, 3), round(owner.at[1] + dy * away, 3)
    zone = around(x, y, ZONE)
    if not scene.surface.fits(own, x, y, gap=0.005):
        raise NoRoom
    scene.surface.take(zone)
    return Region(f"{owner.name}_{step.place.side}_region", scene.surface.name, (zone,))


def relation_of(step: Step, thing: str, owner: str, zone: Region | None = None) -> Relation:
    """What a step adds to the goal; ``thing`` and ``owner`` are names."""
    place = step.place
    if step.verb in ("open", "close"):
        return Relation(step.verb, (owner if place.part == "." else f"{owner}_{place.part}",))
    if step.verb.startswith("turn"):
        return Relation(step.verb.replace(" ", ""), (owner,))
    where = zone.full_name if zone else f"{owner}_{place.region}" if place.region else owner
    return Relation(place.predicate, (thing, where))
