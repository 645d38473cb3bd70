"""What is in the scenes: fixtures and movable objects, how they are turned and when they are open."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

from perdure.errors import UnknownName

Range = tuple[float, float]
Turn = tuple[tuple[str, Range], ...]
"""Axes and the angles between which an object is turned about them, one after another."""

QUARTER: Range = (pi / 2, pi / 2)
NONE: Range = (0.0, 0.0)
STANDING: Turn = (("x", QUARTER), ("z", QUARTER))


@dataclass(frozen=True)
class Articulation:
    """When something with joints is open and closed, or on and off: how a joint stands.

    ``opened`` is where an open joint is put at first; a joint counts as open beyond the end of that
    range that is nearer to the closed one, and as closed likewise.
    """

    opened: Range
    closed: Range

    @property
    def opens_downwards(self) -> bool:
        """Whether a joint's value falls as it opens."""
        return self.opened[0] < self.closed[0]


@dataclass(frozen=True)
class Category:
    """A kind of fixture or object."""

    name: str
    file: str
    """Its model, below the folder of assets."""
    turn: Turn
    """How it is turned at first. (Upstream writes these quaternions with the real part last and
    MuJoCo reads it first, so the angles are not what they seem; the numbers are the same.)"""
    joints: Articulation | None = None
    switch: Articulation | None = None
    """``opened`` is on, ``closed`` is off."""
    light: str | None = None
    """A site that is seen while the switch is on."""


def _hope(name: str, turn: Turn = (("x", QUARTER),)) -> Category:
    return Category(name, f"stable_hope_objects/{name}/{name}.xml", turn)


def _scanned(name: str, turn: Turn = (("x", QUARTER),)) -> Category:
    return Category(name, f"stable_scanned_objects/{name}/{name}.xml", turn)


def _modelled(name: str, turn: Turn = (("x", NONE),)) -> Category:
    return Category(name, f"turbosquid_objects/{name}/{name}.xml", turn)


def _jointed(
    name: str,
    joints: Articulation | None = None,
    switch: Articulation | None = None,
    light: str | None = None,
) -> Category:
    turn: Turn = (("y", NONE),) if switch else (("x", (pi / 4, pi / 2)),)
    return Category(name, f"articulated_objects/{name}.xml", turn, joints, switch, light)


_DRAWERS = Articulation(opened=(-0.16, -0.14), closed=(0.0, 0.005))
_BOOK: Turn = (("x", (-pi / 2, -pi / 4)),)
_MUG: Turn = (("x", (-pi / 2, -pi / 2)),)
_FLAT: Turn = (("x", NONE),)
_UPRIGHT: Turn = (("z", QUARTER),)

_ALL = (
    _hope("alphabet_soup", _UPRIGHT),
    _hope("bbq_sauce"),
    _hope("butter", _FLAT),
    _hope("chocolate_pudding", _FLAT),
    _hope("cookies"),
    _hope("cream_cheese", _FLAT),
    _hope("ketchup", STANDING),
    _hope("macaroni_and_cheese", STANDING),
    _hope("milk", STANDING),
    _hope("new_salad_dressing", STANDING),
    _hope("orange_juice", STANDING),
    _hope("popcorn", _FLAT),
    _hope("salad_dressing", STANDING),
    _hope("tomato_sauce", _UPRIGHT),
    _scanned("akita_black_bowl"),
    _scanned("basket"),
    _scanned("chefmate_8_frypan"),
    _scanned("glazed_rim_porcelain_ramekin"),
    _scanned("plate"),
    _scanned("white_bowl"),
    _modelled("black_book", _BOOK),
    _modelled("desk_caddy"),
    _modelled("moka_pot"),
    _modelled("porcelain_mug", _MUG),
    _modelled("red_coffee_mug", _MUG),
    _modelled("white_yellow_mug", _MUG),
    _modelled("wine_bottle"),
    _modelled("wine_rack"),
    _modelled("wooden_shelf"),
    _modelled("wooden_tray"),
    _modelled("wooden_two_layer_shelf"),
    _modelled("yellow_book", _BOOK),
    _jointed(
        "flat_stove",
        switch=Articulation(opened=(0.5, 2.1), closed=(-0.005, 0.0)),
        light="burner",
    ),
    _jointed("microwave", Articulation(opened=(-2.094, -1.3), closed=(-0.005, 0.0))),
    _jointed("short_cabinet", Articulation(opened=(0.10, 0.16), closed=(-0.005, 0.0))),
    _jointed("short_fridge", Articulation(opened=(2.0, 2.7), closed=(-0.005, 0.0))),
    _jointed("white_cabinet", _DRAWERS),
    _jointed("wooden_cabinet", _DRAWERS),
)

CATEGORIES = {c.name: c for c in _ALL}


def category(name: str) -> Category:
    """The category of this name."""
    if name not in CATEGORIES:
        raise UnknownName("LIBERO category", name, CATEGORIES)
    return CATEGORIES[name]
