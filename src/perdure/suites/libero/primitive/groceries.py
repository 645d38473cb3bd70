"""Food in boxes, cans, bottles and cartons, and books.

Outer measures and origins are those of the published models, so that tasks, official states and
experts mean the same; shapes and colours are our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from perdure.suites.libero.primitive.shapes import Y_UP, Colour, ObjectModel

SILVER: Colour = (0.75, 0.76, 0.78)
WHITE: Colour = (0.93, 0.93, 0.91)
BLACK: Colour = (0.05, 0.05, 0.06)
RED: Colour = (0.78, 0.09, 0.07)
CREAM: Colour = (0.95, 0.88, 0.70)
GREEN: Colour = (0.05, 0.45, 0.15)
BLUE: Colour = (0.10, 0.22, 0.60)
YELLOW: Colour = (0.98, 0.78, 0.10)
ORANGE: Colour = (0.96, 0.47, 0.05)
BROWN: Colour = (0.24, 0.11, 0.05)


def _can(labels: tuple[Colour, Colour], bottom: float) -> ObjectModel:
    thing = ObjectModel(bottom, 0.04, 0.025, Y_UP)
    r, h = 0.0325, 0.0415
    thing.cylinder((0, 0, 0), r, h - 0.001, SILVER)
    upper, lower = labels
    thing.cylinder((0, 0, 0.017), r + 0.0004, 0.017, upper)
    thing.cylinder((0, 0, -0.017), r + 0.0004, 0.017, lower)
    # A white seam, by which one sees it turn.
    thing.box((r, 0, 0), (0.0012, 0.006, 0.034), WHITE, solid=False)
    thing.cylinder((0, 0, h), r - 0.004, 0.0006, (0.45, 0.46, 0.48))
    thing.box((0.008, 0, h + 0.001), (0.011, 0.005, 0.0008), SILVER, solid=False)
    thing.hexagon((0, 0, 0), r, h)
    thing.weigh(0.054)
    return thing


def _packet(half: tuple[float, float, float], colour: Colour, mass: float,
            placing: tuple[float, float, float]) -> ObjectModel:  # fmt: skip
    thing = ObjectModel(*placing)
    thing.box((0, 0, 0), half, colour)
    thing.weigh(mass)
    return thing


def butter() -> ObjectModel:
    """Yellow, with a red band and a white label."""
    thing = _packet((0.0384, 0.0199, 0.0089), YELLOW, 0.0103, (-0.02, 0.02, 0.02))
    thing.box((0.018, 0, 0), (0.012, 0.0202, 0.0092), RED, solid=False)
    thing.box((-0.016, 0, 0.0088), (0.014, 0.011, 0.0004), WHITE, solid=False)
    return thing


def chocolate_pudding() -> ObjectModel:
    """Brown, with a light blue edge and a cup of pudding on it."""
    thing = _packet((0.0410, 0.0240, 0.0145), BROWN, 0.0216, (-0.06, 0.04, 0.025))
    thing.box((-0.033, 0, 0), (0.006, 0.0243, 0.0148), (0.35, 0.68, 0.90), solid=False)
    thing.box((0.008, 0, 0.0146), (0.024, 0.013, 0.0004), CREAM, solid=False)
    thing.cylinder((0.008, 0, 0.0149), 0.010, 0.0005, (0.40, 0.18, 0.08))
    return thing


def cookies() -> ObjectModel:
    """Cream, with red ends and four cookies on it."""
    thing = _packet((0.0309, 0.0415, 0.0097), CREAM, 0.0191, (-0.06, 0.04, 0.025))
    for y in (-0.036, 0.036):
        thing.box((0, y, 0), (0.0312, 0.006, 0.0100), RED, solid=False)
    for x, y in ((-0.012, -0.013), (0.013, -0.011), (-0.013, 0.012), (0.012, 0.014)):
        thing.cylinder((x, y, 0.0098), 0.011, 0.0006, (0.72, 0.45, 0.18))
        thing.cylinder((x + 0.003, y - 0.002, 0.0101), 0.003, 0.0006, BROWN)
    return thing


def cream_cheese() -> ObjectModel:
    """Silver, with a blue oval."""
    thing = _packet((0.0410, 0.0213, 0.0092), SILVER, 0.0124, (-0.025, 0.025, 0.03))
    thing.lathe(((0.024, -0.0002), (0.024, 0.0008)), BLUE, middle=(0, 0, 0.0092), flat=0.6)
    thing.box((0, 0, 0.0102), (0.013, 0.003, 0.0002), WHITE, solid=False)
    for x in (-0.036, 0.036):
        thing.box((x, 0, 0), (0.005, 0.0216, 0.0095), BLUE, solid=False)
    return thing


def _bottle(body: Colour, cap: Colour, label: Colour, lift: float = 0.0,
            round_belly: bool = False) -> ObjectModel:  # fmt: skip
    """A squeezed bottle of 15 cm with a flip-top cap; its origin is at its middle."""
    thing = ObjectModel(-0.06, 0.04, 0.025, Y_UP)
    up = (0, 0, lift)
    if round_belly:
        outline = (0.026, -0.073), (0.031, -0.060), (0.032, -0.038), (0.025, 0.0), (0.013, 0.028), (0.012, 0.036)  # fmt: skip
        flat, belly = 0.68, ((-0.042, 0.028, 0.030), (-0.001, 0.021, 0.014))
    else:
        outline = (0.029, -0.073), (0.031, -0.066), (0.031, 0.0), (0.025, 0.022), (0.014, 0.036), (0.014, 0.040)  # fmt: skip
        flat, belly = 0.68, ((-0.034, 0.028, 0.038), (0.018, 0.020, 0.016))
    thing.lathe(outline, body, up, flat)
    thing.lathe(
        ((0.0325, -0.050), (0.0325, -0.010 if not round_belly else -0.030)), label, up, flat
    )
    thing.cylinder((0, 0, lift + 0.054), 0.0160, 0.019, cap)
    for middle, wide, half in belly:
        thing.box((0, 0, lift + middle), (wide, 0.018, half), None)
    thing.box((0, 0, lift + 0.044), (0.0150, 0.0150, 0.029), None)
    thing.weigh(0.047)
    return thing


def bbq_sauce() -> ObjectModel:
    """A small brown bottle with an orange cap and a yellow label; it stands along z."""
    thing = ObjectModel(-0.06, 0.06, 0.015)
    outline = (0.023, -0.055), (0.0245, -0.048), (0.0245, 0.010), (0.012, 0.030), (0.011, 0.034)
    thing.lathe(outline, (0.33, 0.08, 0.03), flat=0.66)
    thing.lathe(((0.0252, -0.035), (0.0252, 0.002)), YELLOW, flat=0.66)
    thing.cylinder((0, 0, 0.044), 0.0125, 0.0125, ORANGE)
    thing.box((0, 0, -0.022), (0.0235, 0.0146, 0.033), None)
    thing.box((0, 0, 0.033), (0.0120, 0.0120, 0.023), None)
    thing.weigh(0.0241)
    return thing


def _carton(body: Colour, trim: Colour, sign: Colour) -> ObjectModel:
    """A gable-top carton of 14 cm; its origin is at its middle."""
    thing = ObjectModel(-0.06, 0.04, 0.03 if body == WHITE else 0.025, Y_UP)
    w, low, eaves, ridge = 0.0266, -0.071, 0.035, 0.060
    thing.box((0, 0, (low + eaves) / 2), (w, w, (eaves - low) / 2), body, solid=False)
    corners = [(x, y, eaves) for x in (-w, w) for y in (-w, w)]
    thing.hull([*corners, (-w, -0.001, ridge), (-w, 0.001, ridge), (w, -0.001, ridge),
                (w, 0.001, ridge)], trim)  # fmt: skip
    thing.box((0, 0, ridge + 0.0035), (w, 0.0016, 0.0075), trim, solid=False)
    thing.box((0, 0, -0.056), (w + 0.0004, w + 0.0004, 0.014), trim, solid=False)
    for turn in (1, -1):
        thing.box((0, turn * w, -0.006), (0.017, 0.0006, 0.016), sign, solid=False)
        thing.box((turn * w, 0, -0.006), (0.0006, 0.017, 0.016), sign, solid=False)
    thing.box((0, 0, (low + eaves) / 2), (w, w, (eaves - low) / 2), None)
    thing.box((0, 0, 0.047), (w, 0.014, 0.012), None)
    thing.box((0, 0, 0.065), (w, 0.003, 0.006), None)
    thing.weigh(0.068)
    return thing


def _book(cover: Colour, spine: Colour, x: tuple[float, float], y: tuple[float, float],
          high: float, mass: float) -> ObjectModel:  # fmt: skip
    """A binder that stands; its back is at the low end of y."""
    thing = ObjectModel(-0.06, 0.04, 0.025)
    cx, cy, hx, hy = (x[0] + x[1]) / 2, (y[0] + y[1]) / 2, (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
    h = high / 2
    for side in (-1, 1):
        thing.box((cx + side * (hx - 0.0012), cy, h), (0.0012, hy, h), cover, solid=False)
    thing.box((cx, y[0] + 0.0012, h), (hx, 0.0012, h), cover, solid=False)
    thing.box((cx, cy + 0.003, h), (hx - 0.003, hy - 0.008, h - 0.006), WHITE, solid=False)
    thing.box((cx, y[0], h + 0.015), (hx * 0.6, 0.0006, 0.028), spine, solid=False)
    thing.cylinder((cx, y[0], 0.025), 0.006, 0.0008, SILVER, turn=(0.7071, 0.7071, 0, 0))
    thing.box((cx, cy, h), (hx, hy, h), None)
    thing.weigh(mass)
    return thing


def wine_bottle() -> ObjectModel:
    """Dark green glass, a long neck, a cream label and a golden top."""
    thing = ObjectModel(-0.06, 0.04, 0.025)
    glass: Colour = (0.03, 0.14, 0.06)
    outline = (0.020, 0.0), (0.0213, 0.003), (0.0213, 0.080), (0.018, 0.095), (0.0090, 0.112), (0.0078, 0.140)  # fmt: skip
    thing.lathe(outline, glass)
    thing.lathe(((0.0217, 0.026), (0.0217, 0.066)), CREAM)
    thing.cylinder((0, 0, 0.146), 0.0088, 0.012, (0.62, 0.45, 0.14))
    thing.hexagon((0, 0, 0.045), 0.0218, 0.045)
    thing.box((0, 0, 0.101), (0.0115, 0.0115, 0.011), None)
    thing.box((0, 0, 0.133), (0.0075, 0.0075, 0.025), None)
    thing.weigh(0.0509)
    return thing


GROCERIES: Mapping[str, Callable[[], ObjectModel]] = {
    "alphabet_soup": lambda: _can((BLUE, YELLOW), -0.04),
    "tomato_sauce": lambda: _can((RED, GREEN), -0.06),
    "butter": butter,
    "chocolate_pudding": chocolate_pudding,
    "cookies": cookies,
    "cream_cheese": cream_cheese,
    "bbq_sauce": bbq_sauce,
    "ketchup": lambda: _bottle((0.80, 0.10, 0.03), WHITE, YELLOW),
    "salad_dressing": lambda: _bottle(WHITE, GREEN, (0.70, 0.80, 0.25), round_belly=True),
    "new_salad_dressing": lambda: _bottle(WHITE, GREEN, (0.70, 0.80, 0.25), 0.05, True),
    "milk": lambda: _carton(WHITE, RED, BLUE),
    "orange_juice": lambda: _carton(ORANGE, (0.98, 0.70, 0.12), GREEN),
    "black_book": lambda: _book(BLACK, SILVER, (-0.0151, 0.0143), (-0.068, 0.0438), 0.137, 0.156),
    "yellow_book": lambda: _book((0.86, 0.70, 0.18), BROWN, (-0.0104, 0.0145), (-0.050, 0.0494), 0.1235, 0.108),
    "wine_bottle": wine_bottle,
}  # fmt: skip
