"""A task while it is made: what stands where, what is open or on, what is to be done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from perdure.suites.libero.generation.nouns import FIXTURES, MOVABLES, PLACES, SURFACES, turned
from perdure.suites.libero.problem import Problem, Rectangle, Region, Relation, Thing
from perdure.suites.libero.workspaces import workspace

JITTER = 0.015
"""How far from its place an object may be at first, along x and y."""
GAP = 0.035
"""Between the boxes of neighbours: room for both to be off, and some more."""
STEP = 0.01
TRIES = 150


class NoRoom(Exception):
    """The surface has no room for something; another draw may have."""


@dataclass(frozen=True)
class Placed:
    """A thing and where it is at first: at a point of the surface, or in relation to another."""

    name: str
    category: str
    at: tuple[float, float] | None = None
    yaw: float = 0.0
    relation: Relation | None = None


@dataclass(frozen=True)
class Draft:
    """A task before it is written."""

    surface: str
    fixtures: tuple[Placed, ...]
    objects: tuple[Placed, ...]
    goal: tuple[Relation, ...]
    language: str
    template: str
    states: tuple[Relation, ...] = ()
    """What is open or on at first."""
    zones: tuple[Region, ...] = ()
    """Parts of the surface that the goal speaks of."""


class Surface:
    """What is still free of a work surface."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.area = SURFACES[name].reach
        self.taken: list[Rectangle] = []

    def copy(self) -> Surface:
        """The same, to go on with."""
        made = Surface(self.name)
        made.taken = list(self.taken)
        return made

    def take(self, box: Rectangle) -> None:
        """Nothing else is to come here."""
        self.taken.append(box)

    def is_free(self, box: Rectangle, gap: float = GAP) -> bool:
        """Whether a box is clear of all others by a gap."""
        return not any(overlap(grown(box, gap), other) for other in self.taken)

    def fits(self, box: Rectangle, x: float, y: float, gap: float = GAP) -> bool:
        """Whether a box has room at a point that can be reached, and would be seen there."""
        a, moved = self.area, shifted(box, x, y)
        reached = a.x0 <= x <= a.x1 and a.y0 <= y <= a.y1
        return reached and SURFACES[self.name].shows(moved) and self.is_free(moved, gap)

    def take_at(self, box: Rectangle, x: float, y: float, gap: float = GAP) -> bool:
        """Take a place if a box fits there."""
        if self.fits(box, x, y, gap):
            self.take(shifted(box, x, y))
            return True
        return False

    def find(self, draws: np.random.Generator, box: Rectangle) -> tuple[float, float]:
        """Take a place for a box, anywhere; NoRoom if none is found."""
        a = self.area
        for _ in range(TRIES):
            x = _on_grid(draws.uniform(a.x0, a.x1))
            y = _on_grid(draws.uniform(a.y0, a.y1))
            if self.take_at(box, x, y):
                return x, y
        raise NoRoom


def stand_fixtures(
    surface: Surface, draws: np.random.Generator, categories: Sequence[str]
) -> tuple[Placed, ...]:
    """Give fixtures places where such fixtures stand, and keep free what they need before them."""
    placed = []
    for category in categories:
        kind = FIXTURES[category]
        spots = [s for s in kind.spots if s[0] == surface.name]
        for k in draws.permutation(len(spots)):
            _, x, y, yaw = spots[k]
            whole = turned(before(kind.box, kind.front), yaw)
            if surface.is_free(shifted(whole, x, y), 0.01):
                surface.take(shifted(whole, x, y))
                surface.take(shifted(behind(turned(kind.box, yaw), kind.hides), x, y))
                placed.append(Placed(f"{category}_1", category, (x, y), yaw))
                break
        else:
            raise NoRoom
    return tuple(placed)


def before(box: Rectangle, depth: float) -> Rectangle:
    """A box and what lies before it."""
    return Rectangle(box.x0, box.y0 - depth, box.x1, box.y1)


def behind(box: Rectangle, depth: float) -> Rectangle:
    """What lies behind a box, as the camera sees it."""
    return Rectangle(box.x0 - depth, box.y0, box.x0, box.y1)


def shifted(box: Rectangle, x: float, y: float) -> Rectangle:
    """A box somewhere else."""
    return Rectangle(box.x0 + x, box.y0 + y, box.x1 + x, box.y1 + y)


def grown(box: Rectangle, by: float) -> Rectangle:
    """A box that is larger on all sides."""
    return Rectangle(box.x0 - by, box.y0 - by, box.x1 + by, box.y1 + by)


def overlap(a: Rectangle, b: Rectangle) -> bool:
    """Whether two boxes have something in common."""
    return a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1


def around(x: float, y: float, half: float) -> Rectangle:
    """A square about a point, its numbers as a person would write them."""
    return Rectangle(*(round(v, 3) for v in (x - half, y - half, x + half, y + half)))


def _on_grid(value: float) -> float:
    return round(round(value / STEP) * STEP, 3)


# As a task file.


def problem_of_draft(draft: Draft) -> Problem:
    """The task file of a draft."""
    name = SURFACES[draft.surface].problem
    space, half = workspace(name), place_half(name)
    regions, init = [], []
    for placed in (*draft.objects, *draft.fixtures):
        if placed.relation is not None:
            init.append(placed.relation)
            continue
        region = region_at(placed, draft.surface, half)
        regions.append(region)
        init.append(Relation("on", (placed.name, region.full_name)))
    things = (*draft.objects, *draft.fixtures)
    own = [Region(n, p.name) for p in things for n in region_names(p.category)]
    about = [n for r in draft.goal for n in r.names]
    return Problem(
        name=name,
        language=draft.language,
        regions=(*regions, *draft.zones, *own),
        fixtures=(Thing(space.name, space.category), *(_thing(p) for p in draft.fixtures)),
        objects=tuple(_thing(p) for p in draft.objects),
        of_interest=tuple(dict.fromkeys(about)),
        init=(*init, *draft.states),
        goal=draft.goal,
    )


def place_half(problem: str) -> float:
    """Half the side of the region that an object is placed in, in a kind of scene."""
    # Where objects must lie in their region as a whole, its half is compared with a radius of 2.5 cm.
    return 0.025 - JITTER if workspace(problem).keep_inside else JITTER


def region_at(placed: Placed, surface: str, half: float) -> Region:
    """Where a thing is placed at first, as a region of the surface."""
    assert placed.at is not None
    fixed = placed.category in FIXTURES
    return Region(
        f"{placed.name}_init_region",
        surface,
        (around(*placed.at, 0.01 if fixed else half),),
        (placed.yaw, placed.yaw) if fixed else None,
    )


def _thing(placed: Placed) -> Thing:
    return Thing(placed.name, placed.category)


def region_names(category: str) -> Iterator[str]:
    """The regions of a thing that tasks may speak of."""
    yield from dict.fromkeys(p.region for p in PLACES if p.owner == category and p.region)


@dataclass
class Builder:
    """A scene into which things are put one after another."""

    surface: Surface
    fixtures: tuple[Placed, ...] = ()
    objects: list[Placed] = field(default_factory=list)

    @classmethod
    def on(cls, surface: str, draws: np.random.Generator, fixtures: Sequence[str]) -> Builder:
        """A surface with fixtures."""
        free = Surface(surface)
        return cls(free, stand_fixtures(free, draws, fixtures))

    def copy(self) -> Builder:
        """The same, to go on with."""
        return Builder(self.surface.copy(), self.fixtures, list(self.objects))

    def next_name(self, category: str) -> str:
        """What another object of a category is called."""
        return f"{category}_{1 + sum(o.category == category for o in self.objects)}"

    def add(self, draws: np.random.Generator, category: str) -> Placed:
        """Put an object anywhere."""
        return self.put(category, self.surface.find(draws, MOVABLES[category].box))

    def put(
        self,
        category: str,
        at: tuple[float, float] | None = None,
        relation: Relation | None = None,
    ) -> Placed:
        """An object at a place that has been taken for it, or in relation to something."""
        placed = Placed(self.next_name(category), category, at, relation=relation)
        self.objects.append(placed)
        return placed

    def of(self, category: str) -> Placed | None:
        """The first thing of a category."""
        things = (*self.objects, *self.fixtures)
        return next((p for p in things if p.category == category), None)
