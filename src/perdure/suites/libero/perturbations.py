"""A task changed by the generator along one axis: other things about it, other places, another goal.

All are decided by the task alone, so that every agent meets the same; each level has all that the one
below it has. What a sentence says stays true: where it tells an object by its place, that place stays.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from perdure.errors import CurriculumError
from perdure.seeds import rng_for
from perdure.suites.libero.generation.behaviours import Behaviour, behaviours
from perdure.suites.libero.generation.draft import (
    Builder,
    Draft,
    NoRoom,
    Placed,
    Surface,
    before,
    behind,
    place_half,
    region_at,
    region_names,
    shifted,
)
from perdure.suites.libero.generation.kinds import PICK, instance
from perdure.suites.libero.generation.nouns import AT_HOME, FIXTURES, MOVABLES, turned, words
from perdure.suites.libero.problem import Problem, Rectangle, Region, Relation, Thing
from perdure.suites.libero.workspaces import workspace

CONTAINERS = ("basket", "wooden_tray")
"""Too large to stand there besides."""
FAR = 0.08
"""Metres at least by which a thing stands elsewhere."""
LEVELS = 3


class NotChanged(CurriculumError):
    """A task has no such change."""


@functools.lru_cache(maxsize=256)
def changed(problem: Problem, distractors: int, rearranged: int, other_goal: int) -> Problem:
    """A task file with so many things more, with things in other places, and with another goal."""
    if rearranged:
        problem = with_other_places(problem, rearranged)
    if distractors:
        problem = with_distractors(problem, distractors)
    if other_goal:
        problem = with_other_goal(problem, other_goal)
    return problem


# Objects.


def with_distractors(problem: Problem, count: int) -> Problem:
    """The same with some things more, of categories that are not there, wherever there is room."""
    scene = _scene_of(problem)
    draws = rng_for(0, "distractors", problem.name, _key(problem))
    there = {t.category for t in problem.objects}
    home = [c for c in AT_HOME[scene.surface.name] if c not in there and c not in CONTAINERS]
    added: list[Placed] = []
    for k in draws.permutation(len(home)):
        try:
            added.append(scene.add(draws, home[k]))
        except NoRoom:
            continue
        if len(added) == count:
            return _with(problem, added)
    raise NotChanged(f"{problem.language!r} has room for {len(added)} things more, not {count}")


def _with(problem: Problem, added: Sequence[Placed]) -> Problem:
    surface = _surface(problem)
    regions = [region_at(p, surface, place_half(problem.name)) for p in added]
    on = [Relation("on", (p.name, r.full_name)) for p, r in zip(added, regions, strict=True)]
    return replace(
        problem,
        objects=(*problem.objects, *(Thing(p.name, p.category) for p in added)),
        regions=(*problem.regions, *regions),
        init=(*problem.init, *on),
    )


# Relations.


def with_other_places(problem: Problem, level: int) -> Problem:
    """The same with one thing that the task is not about elsewhere (1), with all of them elsewhere (2),
    and with what is to be moved elsewhere too (3)."""
    bystanders, targets = _free(problem)
    if not bystanders or (level == LEVELS and not targets):
        what = "what it is about" if bystanders else "anything"
        raise NotChanged(f"{problem.language!r} would no longer be true with {what} elsewhere")
    if level == 2 and len(bystanders) == 1:
        raise NotChanged(f"{problem.language!r} has one thing that it is not about: see level 1")
    draws = rng_for(0, "rearranged", problem.name, _key(problem))
    order = [bystanders[k] for k in draws.permutation(len(bystanders))]
    moving = order[:1] if level == 1 else order if level == 2 else [*order, *targets]
    scene = _scene_of(problem, without=set(moving))
    old = {p.name: p for p in _scene_of(problem).objects}
    moved: list[Placed] = []
    for name in moving:
        category = old[name].category
        x, y = old[name].at or (0.0, 0.0)
        try:
            for _ in range(50):
                at = scene.surface.find(draws, MOVABLES[category].box)
                if (at[0] - x) ** 2 + (at[1] - y) ** 2 >= FAR**2:
                    break
                scene.surface.taken.pop()
            else:
                raise NoRoom
        except NoRoom:
            raise NotChanged(f"{problem.language!r} has no other place for {name}") from None
        moved.append(Placed(name, category, at))
    surface, half = _surface(problem), place_half(problem.name)
    regions = {p.name: region_at(p, surface, half) for p in moved}
    init = tuple(
        Relation("on", (r.names[0], regions[r.names[0]].full_name))
        if r.predicate == "on" and r.names[0] in regions
        else r
        for r in problem.init
    )
    return replace(problem, regions=(*problem.regions, *regions.values()), init=init)


def _free(problem: Problem) -> tuple[list[str], list[str]]:
    """Objects that may stand elsewhere: those that the task is not about, and those that it moves."""
    surface = _surface(problem)
    on_surface = {
        r.names[0]
        for r in problem.init
        if r.predicate == "on" and (found := problem.region(r.names[1])) and found.target == surface
    }
    bearing = {r.names[1] for r in problem.init if r.predicate == "on"}
    about = _about(problem)
    moved = {r.names[0] for r in problem.goal if r.predicate in ("on", "in")}
    categories = [t.category for t in problem.objects]
    twins = {t.name for t in problem.objects if categories.count(t.category) > 1}
    said = problem.language.lower()
    free = [
        t.name
        for t in problem.objects
        if t.name in on_surface - bearing - twins and t.category in MOVABLES
    ]
    bystanders = [
        n for n in free if n not in about and words(problem.category(n) or "") not in said
    ]
    # With two of a kind, or with zones beside something, the sentence tells where things are.
    by_place = bool(twins & moved) or any(
        (found := problem.region(r.names[-1])) and found.ranges for r in problem.goal
    )
    return bystanders, [] if by_place else [n for n in free if n in moved]


# Goals.


def with_other_goal(problem: Problem, level: int) -> Problem:
    """The same scene with another goal and its sentence: another thing to the same place (1), the same
    thing to another place (2), another thing to another place (3)."""
    scene = _scene_of(problem)
    if len(problem.goal) > 1 and level < LEVELS:
        raise NotChanged(f"{problem.language!r} asks for several things at once")
    style = PICK if problem.language.lower().startswith("pick") else "put"
    draws = rng_for(0, "other goal", problem.name, _key(problem))
    known = _doable(problem)
    for behaviour in (known[k] for k in draws.permutation(len(known))):
        try:
            draft = instance(scene.copy(), behaviour, style)
        except NoRoom:
            continue
        if _level(problem, draft) == level:
            return _asked(problem, draft)
    raise NotChanged(f"{problem.language!r}: its scene has no other goal of level {level}")


def _doable(problem: Problem) -> list[Behaviour]:
    """One-step behaviours that things of which there is one can do as they stand."""
    categories = [t.category for t in problem.objects if t.category in MOVABLES]
    things = [c for c in categories if categories.count(c) == 1]
    fixtures = [t.category for t in problem.fixtures if t.category in FIXTURES]
    return [
        b
        for b in behaviours(things, fixtures)
        if len(b.steps) == 1 and not any(s[0] in ("open", "turnon") for s in b.states)
    ]


def _level(problem: Problem, draft: Draft) -> int:
    """How far the goal of a draft is from a task's; 0 if they are one or cannot be compared."""
    (new,) = draft.goal
    moved = {r.names[0] for r in problem.init if r.predicate in ("open", "turnon")}
    # What is so, or open or on, already is no goal.
    if new in problem.init or moved & set(new.names):
        return 0
    if len(problem.goal) > 1:
        return 0 if new in problem.goal else LEVELS
    (old,) = problem.goal
    if len(new.names) == 1 or len(old.names) == 1:
        same_kind = len(new.names) == len(old.names) and new.predicate == old.predicate
        return 0 if new == old else 2 if same_kind else LEVELS
    thing, place = new.names[0] != old.names[0], new.names[1] != old.names[1]
    return 3 if thing and place else 1 if thing else 2 if place else 0


def _asked(problem: Problem, draft: Draft) -> Problem:
    """The scene of a task with the goal, the sentence and the zones of a draft."""
    own = {
        (t.name, n)
        for t in (*problem.objects, *problem.fixtures)
        if t.category in MOVABLES or t.category in FIXTURES
        for n in region_names(t.category)
    }
    known = {(r.target, r.name) for r in problem.regions}
    more = [Region(n, target) for target, n in sorted(own - known)]
    return replace(
        problem,
        language=draft.language,
        goal=draft.goal,
        of_interest=tuple(dict.fromkeys(n for r in draft.goal for n in r.names)),
        regions=(*problem.regions, *draft.zones, *more),
    )


# A task's file as the generator sees a scene.


def _scene_of(problem: Problem, without: set[str] | frozenset[str] = frozenset()) -> Builder:
    """What stands where, and what is still free of the surface; some things are left out."""
    surface = Surface(_surface(problem))
    fixtures: list[Placed] = []
    objects: list[Placed] = []
    starts = {r.names[0]: r for r in problem.init if r.predicate in ("on", "in")}
    for thing in (*problem.objects, *problem.fixtures):
        kind = MOVABLES.get(thing.category) or FIXTURES.get(thing.category)
        relation = starts.get(thing.name)
        if kind is None or relation is None or thing.name in without:
            continue
        found = problem.region(relation.names[1])
        fixed = thing.category in FIXTURES
        if found is None or not found.ranges:
            objects.append(Placed(thing.name, thing.category, relation=relation))
            continue
        yaw = found.yaw[0] if found.yaw and fixed else 0.0
        r = found.ranges[0]
        x, y = (r.x0 + r.x1) / 2, (r.y0 + r.y1) / 2
        box = turned(kind.box, yaw)
        if fixed:
            whole = FIXTURES[thing.category]
            surface.take(shifted(turned(before(whole.box, whole.front), yaw), x, y))
            surface.take(shifted(behind(box, whole.hides), x, y))
        else:
            surface.take(Rectangle(r.x0 + box.x0, r.y0 + box.y0, r.x1 + box.x1, r.y1 + box.y1))
        (fixtures if fixed else objects).append(Placed(thing.name, thing.category, (x, y), yaw))
    return Builder(surface, tuple(fixtures), objects)


def _about(problem: Problem) -> set[str]:
    """The things that a goal is about, and those whose regions it is about."""
    found = {n for r in problem.goal for n in r.names}
    return found | {region.target for n in found if (region := problem.region(n))}


def _surface(problem: Problem) -> str:
    return workspace(problem.name).name


def _key(problem: Problem) -> str:
    """Tells tasks apart."""
    return " ".join([problem.language, *map(str, problem.goal)])
