"""What a task file says, as typed objects."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thing:
    """A fixture or an object: its name and its category."""

    name: str
    category: str


@dataclass(frozen=True)
class Rectangle:
    """A part of a surface, in metres from its middle."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True)
class Region:
    """A place on or in something; with rectangles if it is on a work surface."""

    name: str
    target: str
    ranges: tuple[Rectangle, ...] = ()
    yaw: tuple[float, float] | None = None
    """Between which angles a fixture that is placed there is turned."""
    rgba: tuple[float, float, float, float] | None = None

    @property
    def full_name(self) -> str:
        """As relations call it."""
        return f"{self.target}_{self.name}"


@dataclass(frozen=True)
class Relation:
    """A predicate and the names it is about."""

    predicate: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.predicate}({', '.join(self.names)})"


@dataclass(frozen=True)
class Problem:
    """A task file."""

    name: str
    """Which kind of scene it is, as in ``libero_kitchen_tabletop_manipulation``."""
    language: str
    """The instruction as the file has it; benchmarks take the file's name instead."""
    regions: tuple[Region, ...]
    fixtures: tuple[Thing, ...]
    objects: tuple[Thing, ...]
    of_interest: tuple[str, ...]
    init: tuple[Relation, ...]
    goal: tuple[Relation, ...]
    """All of them are to hold."""
    domain: str = "robosuite"

    def region(self, full_name: str) -> Region | None:
        """The region that relations call so. Of two with one name the last counts, as upstream."""
        return next((r for r in reversed(self.regions) if r.full_name == full_name), None)

    def category(self, name: str) -> str | None:
        """The category of a fixture or an object."""
        return next((t.category for t in (*self.fixtures, *self.objects) if t.name == name), None)
