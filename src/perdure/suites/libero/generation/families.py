"""What the kinds of suites have in common: drawing, laying out a scene, a task from a behaviour."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from perdure.suites.libero.generation.behaviours import Behaviour, initial_states, relation_of
from perdure.suites.libero.generation.draft import Builder, Draft, NoRoom
from perdure.suites.libero.generation.nouns import MOVABLES
from perdure.suites.libero.generation.sentences import STYLES, Said, sentence
from perdure.suites.libero.problem import Region, Relation

TaskFamily = Callable[[int], Draft]
"""Makes the task of a number, or raises NoRoom."""
LAYOUTS = 12
"""Tries to find places for everything."""


def drawn_from(draws: np.random.Generator, items: Sequence[str]) -> str:
    """One of some."""
    return str(items[int(draws.integers(len(items)))])


def some(draws: np.random.Generator, items: Sequence[str], count: int) -> list[str]:
    """Several of some, none twice."""
    return [str(items[k]) for k in draws.permutation(len(items))[:count]]


def draft_of(
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


def laid_out(
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


def style_of(draws: np.random.Generator, behaviour: Behaviour) -> str:
    """A way to say it; of two things in a row, the short one."""
    return drawn_from(draws, tuple(STYLES)) if len(behaviour.steps) == 1 else "put"
