"""Tasks that have nothing in common: each is a family of its own.

In the paper's order: a template, what it is filled with, a scene that has it, what else is there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perdure.seeds import rng_for
from perdure.suites.libero.generation.behaviours import TEMPLATES, Behaviour, zone_beside
from perdure.suites.libero.generation.draft import Builder, Draft, NoRoom, Placed
from perdure.suites.libero.generation.families import (
    TaskFamily,
    draft_of,
    drawn_from,
    laid_out,
    some,
    style_of,
)
from perdure.suites.libero.generation.nouns import (
    AT_HOME,
    FIXTURES,
    SIDES,
    SURFACES,
    surfaces_of,
    words,
)
from perdure.suites.libero.generation.sentences import called
from perdure.suites.libero.problem import Region

_EXTRA_FIXTURES = ("flat_stove", "wine_rack", "wooden_two_layer_shelf", "desk_caddy")
_MOST_OBJECTS = 6


def mixed(seed: int, number: int) -> TaskFamily:
    """The task of a number; a family of one."""

    def task(k: int) -> Draft:
        if k:
            raise NoRoom
        draws = rng_for(seed, "all", "task", number)
        behaviour = _any_behaviour(draws)
        surface = drawn_from(draws, _hosts(behaviour))
        fixtures = list(behaviour.fixtures)
        more = [f for f in _EXTRA_FIXTURES if surface in surfaces_of(f) and f not in fixtures]
        if more and draws.random() < 0.4:
            fixtures.append(drawn_from(draws, more))
        scene = laid_out(draws, surface, fixtures, behaviour.movables)
        placed = list(scene.objects)
        zones = [
            zone_beside(scene, s, next(p for p in placed if p.category == s.thing))
            if s.place.side else None
            for s in behaviour.steps
        ]  # fmt: skip
        others = [c for c in AT_HOME[surface] if c not in behaviour.movables]
        others = [c for c in others if c not in ("basket", "wooden_tray")]
        count = int(draws.integers(1, 1 + max(1, _MOST_OBJECTS - len(placed))))
        for category in some(draws, others, count):
            try:
                scene.add(draws, category)
            except NoRoom:
                break
        return _told_apart(scene, behaviour, placed, zones, draws)

    return task


def _any_behaviour(draws: np.random.Generator) -> Behaviour:
    """A template, then what it is filled with, in a kind of scene that has it."""
    surface = drawn_from(draws, tuple(SURFACES))
    fixtures = [f for f in FIXTURES if surface in surfaces_of(f)]
    home = AT_HOME[surface]
    things = [c for c in home for _ in range(2 if c in ("akita_black_bowl", "white_bowl") else 1)]
    owners = (*home, *fixtures)
    # A list of all is long; whether a template can be filled is known from the first.
    able = [t for t, fill in TEMPLATES.items() if next(fill(things, owners), None) is not None]
    template = drawn_from(draws, able)
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
    style = style_of(draws, behaviour)
    return draft_of(scene, behaviour, names, says, style, zones)


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
