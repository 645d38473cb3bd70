"""What tasks are about: objects and fixtures, their words, what fits where, and how much room they take.

Boxes are what a thing covers of the surface, in metres from its origin as it stands at first; they
are those of the official models, and the physics of a generated task is checked with the models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from perdure.suites.libero.problem import Rectangle

HALF_TURN = math.pi
SIDES = {"left": (0.0, -1.0), "right": (0.0, 1.0), "front": (1.0, 0.0), "back": (-1.0, 0.0)}
"""Directions as the agent's camera sees them: the robot stands at the back."""


@dataclass(frozen=True)
class Movable:
    """A category of objects."""

    category: str
    words: str
    box: Rectangle
    fits: frozenset[str]
    """Kinds of place it can be put: see :data:`PLACES`."""

    @property
    def half(self) -> float:
        """Half of the larger side of its box."""
        b = self.box
        return max(-b.x0, -b.y0, b.x1, b.y1)


@dataclass(frozen=True)
class Destination:
    """Where something can be put: on an object, or on or in a region of an object or a fixture."""

    kind: str
    owner: str
    """Category of the thing that has it."""
    predicate: str
    region: str = ""
    """Its name without the thing's; nothing if it is the thing itself."""
    phrase: str = ""
    """``on top of {}``, to be filled with the owner."""
    part: str = ""
    """What must be open to get there: the region of a drawer, or ``.`` for the whole thing."""
    side: str = ""
    """For a part of the surface beside the owner: which."""


@dataclass(frozen=True)
class Fixture:
    """A category of fixtures."""

    category: str
    words: str
    box: Rectangle
    front: float
    """How far before it its drawers or its door reach when they are open."""
    spots: tuple[tuple[str, float, float, float], ...]
    """Where it can stand: the surface, x, y and by what angle it is turned. It looks at negative y
    if it is not turned."""
    hides: float = 0.2
    """How far behind it things are hidden from the camera."""
    parts: tuple[tuple[str, str], ...] = ()
    """What of it opens: the region's name, or ``.`` for the whole thing, and its words."""
    switch: bool = False


def _box(x0: float, x1: float, y0: float, y1: float) -> Rectangle:
    return Rectangle(x0, y0, x1, y1)


def _movable(category: str, words: str, box: Rectangle, fits: str) -> Movable:
    return Movable(category, words, box, frozenset(fits.split()))


_BOTTLE = "basket tray side"
_BOX = "basket tray drawer plate top side stack"
_BOWL = "tray drawer plate stove top microwave side shelf"
_MUG = "plate top microwave side caddy tray"
_LIST = (
    _movable("alphabet_soup", "alphabet soup", _box(-0.03, 0.033, -0.035, 0.03), _BOTTLE),
    _movable("tomato_sauce", "tomato sauce", _box(-0.03, 0.033, -0.035, 0.03), _BOTTLE),
    _movable("ketchup", "ketchup", _box(-0.02, 0.02, -0.028, 0.028), _BOTTLE),
    _movable("milk", "milk", _box(-0.027, 0.027, -0.027, 0.027), _BOTTLE),
    _movable("orange_juice", "orange juice", _box(-0.027, 0.027, -0.027, 0.027), _BOTTLE),
    _movable("salad_dressing", "salad dressing", _box(-0.02, 0.02, -0.028, 0.028), _BOTTLE),
    _movable("bbq_sauce", "bbq sauce", _box(-0.02, 0.02, -0.025, 0.025), _BOTTLE),
    _movable("cream_cheese", "cream cheese", _box(-0.042, 0.042, -0.022, 0.022), _BOX),
    _movable("butter", "butter", _box(-0.039, 0.039, -0.02, 0.02), _BOX),
    _movable("chocolate_pudding", "chocolate pudding", _box(-0.042, 0.042, -0.023, 0.023), _BOX),
    _movable("cookies", "cookie box", _box(-0.042, 0.042, -0.031, 0.031), _BOX),
    _movable("akita_black_bowl", "black bowl", _box(-0.055, 0.055, -0.055, 0.055), _BOWL),
    _movable("white_bowl", "white bowl", _box(-0.042, 0.042, -0.042, 0.042), _BOWL),
    _movable("glazed_rim_porcelain_ramekin", "ramekin", _box(-0.045, 0.045, -0.045, 0.045),
             "drawer top side plate"),
    _movable("plate", "plate", _box(-0.07, 0.07, -0.07, 0.07), "push"),
    _movable("red_coffee_mug", "red mug", _box(-0.047, 0.047, -0.062, 0.062), _MUG),
    _movable("porcelain_mug", "white mug", _box(-0.048, 0.048, -0.062, 0.064), _MUG),
    _movable("white_yellow_mug", "yellow and white mug", _box(-0.054, 0.054, -0.07, 0.071), _MUG),
    _movable("black_book", "black book", _box(-0.065, 0.065, -0.065, 0.065), "caddy shelf top"),
    _movable("yellow_book", "yellow book", _box(-0.06, 0.06, -0.06, 0.06), "caddy shelf top"),
    _movable("wine_bottle", "wine bottle", _box(-0.022, 0.022, -0.022, 0.022), "rack top drawer side"),
    _movable("moka_pot", "moka pot", _box(-0.041, 0.041, -0.091, 0.056), "stove side"),
    _movable("chefmate_8_frypan", "frying pan", _box(-0.104, 0.104, -0.1, 0.26), "stove top shelf"),
    _movable("basket", "basket", _box(-0.08, 0.08, -0.086, 0.086), ""),
    _movable("wooden_tray", "tray", _box(-0.155, 0.142, -0.08, 0.088), ""),
)  # fmt: skip
MOVABLES = {m.category: m for m in _LIST}

_CABINETS = tuple(
    Fixture(
        category,
        "cabinet",
        _box(-0.125, 0.135, -0.115, 0.115),
        0.165,
        (
            ("kitchen_table", -0.05, -0.27, HALF_TURN),
            ("kitchen_table", -0.05, 0.27, 0.0),
            ("main_table", 0.0, -0.27, HALF_TURN),
            ("main_table", 0.0, 0.27, 0.0),
        ),
        parts=tuple(
            (f"{level}_region", f"{level} drawer") for level in ("top", "middle", "bottom")
        ),
    )
    for category in ("wooden_cabinet", "white_cabinet")
)
_OTHERS = (
    Fixture(
        "flat_stove", "stove", _box(-0.055, 0.25, -0.1, 0.1), 0.0,
        (("kitchen_table", -0.20, 0.24, 0.0), ("kitchen_table", -0.20, -0.24, 0.0),
         ("main_table", -0.41, 0.21, 0.0), ("main_table", -0.41, -0.14, 0.0)),
        hides=0.0, switch=True,
    ),
    Fixture(
        "wine_rack", "wine rack", _box(-0.135, 0.135, -0.13, 0.13), 0.0,
        (("kitchen_table", -0.10, -0.30, HALF_TURN), ("main_table", -0.27, -0.28, HALF_TURN)),
    ),
    Fixture(
        "microwave", "microwave", _box(-0.175, 0.175, -0.155, 0.115), 0.2,
        (("kitchen_table", -0.05, 0.31, 0.0), ("kitchen_table", -0.05, -0.3, HALF_TURN)),
        parts=((".", ""),),
    ),
    Fixture(
        "wooden_two_layer_shelf", "shelf", _box(-0.175, 0.185, -0.085, 0.115), 0.1,
        (("kitchen_table", -0.06, -0.25, HALF_TURN), ("kitchen_table", -0.06, 0.25, 0.0),
         ("study_table", 0.0, 0.28, 0.0)),
    ),
    Fixture(
        "desk_caddy", "caddy", _box(-0.08, 0.08, -0.22, 0.22), 0.0,
        (("study_table", -0.20, -0.14, HALF_TURN),), hides=0.05,
    ),
)  # fmt: skip
FIXTURES = {f.category: f for f in (*_CABINETS, *_OTHERS)}


def _places() -> list[Destination]:
    found = [
        Destination("basket", "basket", "in", "contain_region", "in {}"),
        Destination("tray", "wooden_tray", "in", "contain_region", "in {}"),
        Destination("plate", "plate", "on", "", "on {}"),
        Destination("stove", "flat_stove", "on", "cook_region", "on {}"),
        Destination("rack", "wine_rack", "on", "top_region", "on {}"),
        Destination("microwave", "microwave", "in", "heating_region", "in {}", "."),
        Destination("top", "microwave", "on", "top_side", "on top of {}"),
        Destination("top", "wooden_two_layer_shelf", "on", "top_side", "on top of {}"),
        Destination("shelf", "wooden_two_layer_shelf", "in", "top_region", "on {}"),
        Destination("shelf", "wooden_two_layer_shelf", "in", "bottom_region", "under {}"),
    ]
    for cabinet in ("wooden_cabinet", "white_cabinet"):
        found.append(Destination("top", cabinet, "on", "top_side", "on top of {}"))
        for region, words in FIXTURES[cabinet].parts:
            phrase = f"in the {words} of {{}}"
            found.append(Destination("drawer", cabinet, "in", region, phrase, region))
    for side in ("left", "right", "front", "back"):
        words = f"in the {side} compartment of {{}}"
        found.append(Destination("caddy", "desk_caddy", "in", f"{side}_contain_region", words))
    return found


PLACES = tuple(_places())

NARROWS = 0.33
"""How much less of a surface's width is seen on each side for a metre nearer to the camera."""


@dataclass(frozen=True)
class WorkSurface:
    """A kind of scene by what things stand on."""

    problem: str
    """What a task file calls it."""
    reach: Rectangle
    """The part that the robot reaches."""
    seen: float
    """How far to the left and right of its middle the agent's camera sees, where x is 0."""

    def shows(self, box: Rectangle) -> bool:
        """Whether the camera sees the whole of a box."""
        return max(-box.y0, box.y1) <= self.seen - NARROWS * box.x1


SURFACES = {
    "main_table": WorkSurface("libero_tabletop_manipulation", _box(-0.25, 0.16, -0.33, 0.33), 0.37),
    "kitchen_table": WorkSurface(
        "libero_kitchen_tabletop_manipulation", _box(-0.25, 0.16, -0.34, 0.34), 0.37
    ),
    "living_room_table": WorkSurface(
        "libero_living_room_tabletop_manipulation", _box(-0.22, 0.16, -0.32, 0.32), 0.31
    ),
    "study_table": WorkSurface(
        "libero_study_tabletop_manipulation", _box(-0.16, 0.2, -0.32, 0.32), 0.37
    ),
    "floor": WorkSurface("libero_floor_manipulation", _box(-0.2, 0.16, -0.3, 0.3), 0.43),
}
"""Work surfaces by the name that regions call them."""

_GROCERIES = (
    "alphabet_soup", "tomato_sauce", "ketchup", "milk", "orange_juice", "salad_dressing",
    "bbq_sauce", "cream_cheese", "butter", "chocolate_pudding", "cookies",
)  # fmt: skip
_CROCKERY = ("akita_black_bowl", "white_bowl", "plate", "glazed_rim_porcelain_ramekin")
_MUGS = ("red_coffee_mug", "porcelain_mug", "white_yellow_mug")
AT_HOME: dict[str, tuple[str, ...]] = {
    "main_table": (*_CROCKERY, "cookies", "cream_cheese", "butter", "wine_bottle",
                   "chocolate_pudding", "moka_pot", *_MUGS[:1]),
    "kitchen_table": (*_CROCKERY, *_MUGS, *_GROCERIES, "wine_bottle", "moka_pot",
                      "chefmate_8_frypan"),
    "living_room_table": (*_GROCERIES, *_CROCKERY, *_MUGS, "basket", "wooden_tray"),
    "study_table": ("black_book", "yellow_book", *_MUGS),
    "floor": (*_GROCERIES, "basket"),
}  # fmt: skip
"""The objects that belong to each kind of scene."""

BASES = {
    "cookies": ("akita_black_bowl", "white_bowl", "butter", "cream_cheese", "chocolate_pudding"),
    "glazed_rim_porcelain_ramekin": ("akita_black_bowl",),
}
"""Objects that others can stand on at first, and which."""
BOWLS = ("akita_black_bowl", "white_bowl")


def words(category: str) -> str:
    """What a thing is called in a sentence."""
    return (MOVABLES.get(category) or FIXTURES[category]).words


def turned(box: Rectangle, yaw: float) -> Rectangle:
    """A box turned by nothing or half a turn."""
    return box if abs(yaw) < 1.0 else Rectangle(-box.x1, -box.y1, -box.x0, -box.y0)


def surfaces_of(fixture: str) -> set[str]:
    """Where a fixture can stand."""
    return {surface for surface, *_ in FIXTURES[fixture].spots}
