"""The four kinds of suites: what differs from task to task, and what stays.

As the paper stratifies its suites: ``spatial`` varies where one of two equal objects is and with it how
the sentence tells it from the other; ``object`` what is picked up, from among what; ``goal`` what is to
be done in one scene; ``all`` everything. Tasks come in families: all of a family share what their kind
holds fixed. A family ends when nothing new comes of it, and another begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from perdure.seeds import rng_for
from perdure.suites.libero.generation.behaviours import (
    TEMPLATES,
    Behaviour,
    Step,
    behaviours,
    initial_states,
    relation_of,
    zone_beside,
)
from perdure.suites.libero.generation.draft import Builder, Draft, NoRoom, Placed
from perdure.suites.libero.generation.nouns import (
    AT_HOME,
    FIXTURES,
    MOVABLES,
    PLACES,
    SIDES,
    SURFACES,
    surfaces_of,
    words,
)
from perdure.suites.libero.generation.relations import draw_pair, named_places, take_pair
from perdure.suites.libero.generation.sentences import STYLES, Said, called, sentence
from perdure.suites.libero.problem import Region, Relation

Family = Callable[[int], Draft]
"""Makes the task of a number, or raises NoRoom."""
PICK = "pick"
LAYOUTS = 12
"""Tries to find places for everything."""


def family(kind: str, seed: int, number: int) -> Family:
    """A family of tasks; NoRoom if its scene cannot be laid out."""
    return FAMILIES[kind](seed, number)


def _drawn_from(draws: np.random.Generator, items: Sequence[str]) -> str:
    return str(items[int(draws.integers(len(items)))])


def _some(draws: np.random.Generator, items: Sequence[str], count: int) -> list[str]:
    return [str(items[k]) for k in draws.permutation(len(items))[:count]]


def _draft(
    scene: Builder,
    behaviour: Behaviour,
    names: Sequence[tuple[str, str]],
    called_so: Sequence[tuple[str, str]],
    style: str,
    zones: Sequence[Region | None] = (),
    states: Sequence[Relation] = (),
) -> Draft:
    """A task from a scene and what is to be done: the goal's relations, and the sentence.

    ``names`` are the thing and the owner of each step, ``called_so`` how the sentence calls them.
    """
    zones = zones or [None] * len(behaviour.steps)
    goal = tuple(
        relation_of(step, thing, owner, zone)
        for step, (thing, owner), zone in zip(behaviour.steps, names, zones, strict=True)
    )
    said = [Said(s, *c) for s, c in zip(behaviour.steps, called_so, strict=True)]
    return Draft(
        scene.surface.name,
        scene.fixtures,
        tuple(scene.objects),
        goal,
        sentence(said, style),
        behaviour.template,
        tuple(dict.fromkeys((*initial_states(behaviour), *states))),
        tuple(dict.fromkeys(z for z in zones if z is not None)),
    )


def _laid_out(
    draws: np.random.Generator, surface: str, fixtures: Sequence[str], things: Sequence[str]
) -> Builder:
    """A scene with some fixtures and objects; NoRoom if they do not find places after some tries."""
    for _ in range(LAYOUTS):
        try:
            scene = Builder.on(surface, draws, fixtures)
            # The largest first, while there is room.
            for category in sorted(things, key=lambda c: -MOVABLES[c].half):
                scene.add(draws, category)
        except NoRoom:
            continue
        return scene
    raise NoRoom


# Spatial: one of two equal objects.

_TWINS = ("akita_black_bowl", "white_bowl", "cream_cheese", "butter", "chocolate_pudding",
          "red_coffee_mug", "porcelain_mug")  # fmt: skip
_SPATIAL_FIXTURES = {
    "main_table": (("wooden_cabinet", "flat_stove"),),
    "kitchen_table": (("wooden_cabinet",), ("white_cabinet",), ("flat_stove",)),
    "living_room_table": ((),),
}


def _spatial(seed: int, number: int) -> Family:
    draws = rng_for(seed, "spatial", "family", number)
    surface = _drawn_from(draws, tuple(_SPATIAL_FIXTURES))
    choices = _SPATIAL_FIXTURES[surface]
    fixtures = choices[int(draws.integers(len(choices)))]
    home = AT_HOME[surface]
    twin = _drawn_from(draws, [t for t in _TWINS if t in home])
    goals = [
        p
        for p in PLACES
        if p.kind in MOVABLES[twin].fits
        and p.kind in ("plate", "tray", "basket")
        and p.owner in home
    ]
    place = goals[int(draws.integers(len(goals)))]
    behaviour = Behaviour("put … in …" if place.predicate == "in" else "put … on …",
                          (Step("put", place, twin),))  # fmt: skip
    marks = [c for c in home if c not in (twin, place.owner, "wooden_tray", "basket", "plate")]
    near = ["cookies", *_some(draws, [m for m in marks if m != "cookies"], 2)]
    things = [place.owner, *(c for c in near if c != twin)]
    scene = _laid_out(draws, surface, fixtures, things)
    known = named_places(scene, twin)
    order = draws.permutation(len(known))

    def task(k: int) -> Draft:
        chosen = rng_for(seed, "spatial", "task", number, k)
        # One relation after another, so that none comes often before others have come.
        here, there = draw_pair(chosen, known[order[k % len(known)]], known)
        made = scene.copy()
        meant, states = take_pair(made, twin, here, there, chosen)
        phrase = here.phrase(f"the {words(twin)}", words(twin))
        owner = scene.of(place.owner)
        assert owner is not None
        return _draft(
            made,
            behaviour,
            [(meant.name, owner.name)],
            [(phrase, called(place.owner))],
            PICK,
            states=states,
        )

    return task


# Object: something else is picked up from among other things.

_SLOTS = 6


def _object(seed: int, number: int) -> Family:
    draws = rng_for(seed, "object", "family", number)
    surface = _drawn_from(draws, ("floor", "living_room_table"))
    vessel = "basket" if surface == "floor" else _drawn_from(draws, ("basket", "wooden_tray"))
    place = next(p for p in PLACES if p.owner == vessel)
    home = [c for c in AT_HOME[surface] if place.kind in MOVABLES[c].fits]
    scene = Builder.on(surface, draws, ())
    container = scene.add(draws, place.owner)
    # Every slot takes any of them.
    largest = max((MOVABLES[c].box for c in home), key=lambda b: (b.x1 - b.x0) * (b.y1 - b.y0))
    slots = [scene.surface.find(draws, largest) for _ in range(_SLOTS)]

    def task(k: int) -> Draft:
        chosen = rng_for(seed, "object", "task", number, k)
        made = scene.copy()
        things = _some(chosen, home, _SLOTS)
        for category, at in zip(things, slots, strict=True):
            made.put(category, at)
        step = Step("put", place, things[0])
        names = [(f"{things[0]}_1", container.name)]
        says = [(called(things[0]), called(place.owner))]
        return _draft(made, Behaviour("put … in …", (step,)), names, says, PICK)

    return task


# Goal: one scene, and all that can be done in it.

_GOAL_FIXTURES = {
    "main_table": (("wooden_cabinet", "flat_stove"), ("wine_rack", "wooden_cabinet", "flat_stove")),
    "kitchen_table": (
        ("white_cabinet", "flat_stove"), ("wooden_cabinet", "flat_stove"), ("white_cabinet", "wine_rack"),
        ("microwave", "flat_stove"), ("wooden_two_layer_shelf", "flat_stove"),
    ),
    "study_table": (("desk_caddy", "wooden_two_layer_shelf"), ("desk_caddy",)),
    "living_room_table": ((),),
}  # fmt: skip
_OBJECTS = 4


def _goal(seed: int, number: int) -> Family:
    draws = rng_for(seed, "goal", "family", number)
    surface = _drawn_from(draws, tuple(_GOAL_FIXTURES))
    choices = _GOAL_FIXTURES[surface]
    fixtures = choices[int(draws.integers(len(choices)))]
    home = [c for c in AT_HOME[surface] if c not in ("basket", "wooden_tray")]
    vessels = [c for c in ("plate", "basket") if c in AT_HOME[surface]]
    things = [_drawn_from(draws, vessels)] if vessels else []
    things += _some(draws, [c for c in home if c not in things], _OBJECTS - len(things))
    scene = _laid_out(draws, surface, fixtures, things)
    # What stays the same includes that all is closed and off.
    known = [
        b
        for b in behaviours(things, fixtures)
        if not any(s[0] in ("open", "turnon") for s in b.states)
    ]
    order = draws.permutation(len(known))

    def task(k: int) -> Draft:
        if k >= len(known):
            raise NoRoom
        chosen = rng_for(seed, "goal", "task", number, k)
        return _instance(scene.copy(), known[order[k]], _style(chosen, known[order[k]]))

    return task


def _style(draws: np.random.Generator, behaviour: Behaviour) -> str:
    return _drawn_from(draws, tuple(STYLES)) if len(behaviour.steps) == 1 else "put"


def _instance(scene: Builder, behaviour: Behaviour, style: str) -> Draft:
    """A behaviour in a scene that has what it takes, one of each."""
    names, says, zones = [], [], []
    for step in behaviour.steps:
        thing = scene.of(step.thing) if step.thing else None
        owner = scene.of(step.place.owner)
        assert owner is not None
        zones.append(zone_beside(scene, step, thing) if step.place.side and thing else None)
        names.append((thing.name if thing else "", owner.name))
        says.append((called(step.thing) if thing else "", called(step.place.owner)))
    return _draft(scene, behaviour, names, says, style, zones)


# All: every task is a family of its own.

_EXTRA_FIXTURES = ("flat_stove", "wine_rack", "wooden_two_layer_shelf", "desk_caddy")
_MOST_OBJECTS = 6


def _all(seed: int, number: int) -> Family:
    def task(k: int) -> Draft:
        if k:
            raise NoRoom
        draws = rng_for(seed, "all", "task", number)
        behaviour = _any_behaviour(draws)
        surface = _drawn_from(draws, _hosts(behaviour))
        fixtures = list(behaviour.fixtures)
        more = [f for f in _EXTRA_FIXTURES if surface in surfaces_of(f) and f not in fixtures]
        if more and draws.random() < 0.4:
            fixtures.append(_drawn_from(draws, more))
        scene = _laid_out(draws, surface, fixtures, behaviour.movables)
        placed = list(scene.objects)
        zones = [
            zone_beside(scene, s, next(p for p in placed if p.category == s.thing))
            if s.place.side else None
            for s in behaviour.steps
        ]  # fmt: skip
        others = [c for c in AT_HOME[surface] if c not in behaviour.movables]
        others = [c for c in others if c not in ("basket", "wooden_tray")]
        count = int(draws.integers(1, 1 + max(1, _MOST_OBJECTS - len(placed))))
        for category in _some(draws, others, count):
            try:
                scene.add(draws, category)
            except NoRoom:
                break
        return _told_apart(scene, behaviour, placed, zones, draws)

    return task


def _any_behaviour(draws: np.random.Generator) -> Behaviour:
    """A template, then what it is filled with, in a kind of scene that has it."""
    surface = _drawn_from(draws, tuple(SURFACES))
    fixtures = [f for f in FIXTURES if surface in surfaces_of(f)]
    home = AT_HOME[surface]
    things = [c for c in home for _ in range(2 if c in ("akita_black_bowl", "white_bowl") else 1)]
    owners = (*home, *fixtures)
    # A list of all is long; whether a template can be filled is known from the first.
    able = [t for t, fill in TEMPLATES.items() if next(fill(things, owners), None) is not None]
    template = _drawn_from(draws, able)
    mine = [Behaviour(template, steps) for steps in TEMPLATES[template](things, owners)]
    return mine[int(draws.integers(len(mine)))]


def _hosts(behaviour: Behaviour) -> list[str]:
    """The surfaces that have all that a behaviour takes."""
    return [
        s
        for s in SURFACES
        if set(behaviour.movables) <= set(AT_HOME[s])
        and all(s in surfaces_of(f) for f in behaviour.fixtures)
    ]


def _told_apart(
    scene: Builder,
    behaviour: Behaviour,
    placed: Sequence[Placed],
    zones: Sequence[Region | None],
    draws: np.random.Generator,
) -> Draft:
    """The task, with objects of which there are two called by their sides."""
    names, says = [], []
    used: set[str] = set()
    for step in behaviour.steps:
        thing = _unused(placed, step.thing, used) if step.thing else None
        if thing is not None:
            used.add(thing.name)
        owner = (
            _unused(placed, step.place.owner, used)
            if step.place.owner == step.thing
            else scene.of(step.place.owner)
        )
        assert owner is not None
        names.append((thing.name if thing else "", owner.name))
        says.append((_by_side(scene, thing) if thing else "", _by_side(scene, owner)))
    style = _style(draws, behaviour)
    return _draft(scene, behaviour, names, says, style, zones)


def _unused(placed: Sequence[Placed], category: str, used: set[str]) -> Placed:
    return next(p for p in placed if p.category == category and p.name not in used)


def _by_side(scene: Builder, thing: Placed) -> str:
    same = [o for o in scene.objects if o.category == thing.category and o is not thing]
    if not same:
        return called(thing.category)
    assert thing.at is not None
    for side, (dx, dy) in SIDES.items():
        mine = thing.at[0] * dx + thing.at[1] * dy
        if all(o.at is not None and mine > o.at[0] * dx + o.at[1] * dy + 0.09 for o in same):
            return f"the {side} {words(thing.category)}"
    raise NoRoom


FAMILIES: dict[str, Callable[[int, int], Family]] = {
    "spatial": _spatial,
    "object": _object,
    "goal": _goal,
    "all": _all,
}
