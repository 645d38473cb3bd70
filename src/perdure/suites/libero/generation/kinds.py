"""The four kinds of suites: what differs from task to task, and what stays.

As the paper stratifies its suites: ``spatial`` varies where one of two equal objects is and with it how
the sentence tells it from the other; ``object`` what is picked up, from among what; ``goal`` what is to
be done in one scene; ``all`` everything. Tasks come in families: all of a family share what their kind
holds fixed. A family ends when nothing new comes of it, and another begins.
"""

from __future__ import annotations

from collections.abc import Callable

from perdure.seeds import rng_for
from perdure.suites.libero.generation.behaviours import Behaviour, Step, behaviours, zone_beside
from perdure.suites.libero.generation.draft import Builder, Draft, NoRoom
from perdure.suites.libero.generation.families import (
    TaskFamily,
    draft_of,
    drawn_from,
    laid_out,
    some,
    style_of,
)
from perdure.suites.libero.generation.mixed import mixed
from perdure.suites.libero.generation.nouns import AT_HOME, MOVABLES, PLACES, words
from perdure.suites.libero.generation.relations import draw_pair, named_places, take_pair
from perdure.suites.libero.generation.sentences import called

PICK = "pick"


def family(kind: str, seed: int, number: int) -> TaskFamily:
    """A family of tasks; NoRoom if its scene cannot be laid out."""
    return FAMILIES[kind](seed, number)


# Spatial: one of two equal objects.

_TWINS = ("akita_black_bowl", "white_bowl", "cream_cheese", "butter", "chocolate_pudding",
          "red_coffee_mug", "porcelain_mug")  # fmt: skip
_SPATIAL_FIXTURES = {
    "main_table": (("wooden_cabinet", "flat_stove"),),
    "kitchen_table": (("wooden_cabinet",), ("white_cabinet",), ("flat_stove",)),
    "living_room_table": ((),),
}


def _spatial(seed: int, number: int) -> TaskFamily:
    draws = rng_for(seed, "spatial", "family", number)
    surface = drawn_from(draws, tuple(_SPATIAL_FIXTURES))
    choices = _SPATIAL_FIXTURES[surface]
    fixtures = choices[int(draws.integers(len(choices)))]
    home = AT_HOME[surface]
    twin = drawn_from(draws, [t for t in _TWINS if t in home])
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
    near = ["cookies", *some(draws, [m for m in marks if m != "cookies"], 2)]
    things = [place.owner, *(c for c in near if c != twin)]
    scene = laid_out(draws, surface, fixtures, things)
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
        return draft_of(
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


def _object(seed: int, number: int) -> TaskFamily:
    draws = rng_for(seed, "object", "family", number)
    surface = drawn_from(draws, ("floor", "living_room_table"))
    vessel = "basket" if surface == "floor" else drawn_from(draws, ("basket", "wooden_tray"))
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
        things = some(chosen, home, _SLOTS)
        for category, at in zip(things, slots, strict=True):
            made.put(category, at)
        step = Step("put", place, things[0])
        names = [(f"{things[0]}_1", container.name)]
        says = [(called(things[0]), called(place.owner))]
        return draft_of(made, Behaviour("put … in …", (step,)), names, says, PICK)

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


def _goal(seed: int, number: int) -> TaskFamily:
    draws = rng_for(seed, "goal", "family", number)
    surface = drawn_from(draws, tuple(_GOAL_FIXTURES))
    choices = _GOAL_FIXTURES[surface]
    fixtures = choices[int(draws.integers(len(choices)))]
    home = [c for c in AT_HOME[surface] if c not in ("basket", "wooden_tray")]
    vessels = [c for c in ("plate", "basket") if c in AT_HOME[surface]]
    things = [drawn_from(draws, vessels)] if vessels else []
    things += some(draws, [c for c in home if c not in things], _OBJECTS - len(things))
    scene = laid_out(draws, surface, fixtures, things)
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
        return instance(scene.copy(), known[order[k]], style_of(chosen, known[order[k]]))

    return task


def instance(scene: Builder, behaviour: Behaviour, style: str) -> Draft:
    """A behaviour in a scene that has what it takes, one of each."""
    names, says, zones = [], [], []
    for step in behaviour.steps:
        thing = scene.of(step.thing) if step.thing else None
        owner = scene.of(step.place.owner)
        assert owner is not None
        zones.append(zone_beside(scene, step, thing) if step.place.side and thing else None)
        names.append((thing.name if thing else "", owner.name))
        says.append((called(step.thing) if thing else "", called(step.place.owner)))
    return draft_of(scene, behaviour, names, says, style, zones)


FAMILIES: dict[str, Callable[[int, int], TaskFamily]] = {
    "spatial": _spatial,
    "object": _object,
    "goal": _goal,
    "all": mixed,
}
