"""Bowls, plates, mugs, pots and pans, and what things are carried in.

Outer measures, origins and regions are those of the published models; shapes and colours are our
own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

from perdure.suites.libero.primitive.groceries import BLACK, CREAM, RED, SILVER, WHITE, YELLOW
from perdure.suites.libero.primitive.shapes import Colour, ObjectModel, about, region

WOOD: Colour = (0.62, 0.43, 0.22)
GREY: Colour = (0.30, 0.31, 0.33)


def _dish(bottom: float = -0.06, top: float = 0.04, radius: float = 0.025) -> ObjectModel:
    return ObjectModel(bottom, top, radius)


def akita_black_bowl() -> ObjectModel:
    """Black, with a golden rim."""
    thing = _dish()
    outline = ((0.026, 0.0), (0.036, 0.010), (0.046, 0.022), (0.0515, 0.036), (0.0552, 0.050),
               (0.0528, 0.050), (0.049, 0.036), (0.043, 0.023), (0.032, 0.012), (0.022, 0.006))  # fmt: skip
    thing.lathe(outline, (0.09, 0.09, 0.10))
    thing.lathe(((0.0545, 0.0490), (0.0560, 0.0505), (0.0548, 0.0526), (0.0522, 0.0515), (0.0522, 0.0495)),
                (0.85, 0.66, 0.20), ends="ring")  # fmt: skip
    thing.box((0, 0, 0.005), (0.021, 0.021, 0.004), None)
    thing.wall((0.029, 0.007), (0.0445, 0.024), 0.0035)
    thing.wall((0.0450, 0.024), (0.0535, 0.052), 0.0035)
    thing.weigh(0.0459)
    return thing


def white_bowl() -> ObjectModel:
    """White and smaller."""
    thing = _dish()
    outline = ((0.024, 0.0), (0.033, 0.006), (0.039, 0.013), (0.0420, 0.022), (0.0422, 0.0345),
               (0.0392, 0.0345), (0.0385, 0.022), (0.035, 0.014), (0.029, 0.008), (0.015, 0.005))  # fmt: skip
    thing.lathe(outline, WHITE)
    thing.box((0, 0, 0.0035), (0.019, 0.019, 0.003), None)
    thing.wall((0.026, 0.005), (0.0385, 0.016), 0.003)
    thing.wall((0.0395, 0.015), (0.0408, 0.0350), 0.003)
    thing.weigh(0.0223)
    return thing


def ramekin() -> ObjectModel:
    """White, straight and ribbed, with a rim."""
    thing = _dish()
    outline = ((0.039, 0.0), (0.0395, 0.004), (0.0420, 0.036), (0.0446, 0.037), (0.0446, 0.0430),
               (0.0400, 0.0430), (0.0365, 0.036), (0.0352, 0.008), (0.020, 0.0065))  # fmt: skip
    thing.lathe(outline, WHITE)
    for k in range(18):
        a = 2 * math.pi * k / 18
        at = (0.0408 * math.cos(a), 0.0408 * math.sin(a))
        thing.capsule((*at, 0.006), (at[0] * 1.03, at[1] * 1.03, 0.032), 0.0012, (0.80, 0.80, 0.78))
    thing.box((0, 0, 0.0035), (0.0275, 0.0275, 0.003), None)
    thing.wall((0.0375, 0.002), (0.0405, 0.0425), 0.0055)
    thing.weigh(0.038)
    return thing


def plate() -> ObjectModel:
    """White, with two red rings."""
    thing = _dish()
    outline = ((0.040, 0.0), (0.055, 0.006), (0.0686, 0.0145), (0.0686, 0.0166), (0.054, 0.0090),
               (0.044, 0.0052), (0.020, 0.0046))  # fmt: skip
    thing.lathe(outline, WHITE, sides=28)
    for r in (0.0530, 0.0610):
        z = 0.0092 + (r - 0.054) * 0.52
        thing.lathe(((r, z), (r + 0.0035, z + 0.0018), (r + 0.0035, z + 0.0023), (r, z + 0.0006)),
                    (0.75, 0.22, 0.18), sides=28, ends="ring")  # fmt: skip
    thing.box((0, 0, 0.0026), (0.032, 0.032, 0.0026), None)
    thing.wall((0.034, 0.0030), (0.0680, 0.0140), 0.0045)
    thing.weigh(0.0305)
    return thing


def _mug(outside: Colour, inside: Colour, handle: Colour, side: int, middle: float,
         radii: tuple[float, float], high: float, mass: float) -> ObjectModel:  # fmt: skip
    """``side`` is where along x its handle is; ``radii`` at its foot and at its rim."""
    thing = _dish()
    (low, rim), thick = radii, 0.004
    outline = ((low - 0.004, 0.0), (low, 0.006), ((low + rim) / 2 + 0.001, high / 2), (rim, high),
               (rim - thick, high))  # fmt: skip
    thing.lathe(
        (*outline, (rim - thick, high - 0.002), (low - thick, 0.008)), outside, (middle, 0, 0)
    )
    within = (rim - thick - 0.0005, high - 0.002), (low - thick - 0.0005, 0.0085)
    thing.lathe(within, inside, (middle, 0, 0), ends="cup")
    reach, wide = 0.026, 0.0065
    start = middle + side * (rim - 0.004)
    points = [(start, 0, high * 0.80), (start + side * reach * 0.8, 0, high * 0.76),
              (start + side * reach, 0, high * 0.55), (start + side * reach * 0.8, 0, high * 0.36),
              (start - side * 0.004, 0, high * 0.28)]  # fmt: skip
    for a, b in itertools.pairwise(points):
        thing.capsule(a, b, wide, handle, solid=True)
    thing.box((middle, 0, 0.004), (low * 0.72, low * 0.72, 0.004), None)
    thing.wall((low - thick / 2, 0.003), (rim - thick / 2, high), thick, middle=(middle, 0.0))
    thing.weigh(mass)
    return thing


def red_coffee_mug() -> ObjectModel:
    """Tall and red, with a white pattern."""
    thing = _mug(RED, WHITE, RED, 1, -0.018, (0.0375, 0.0455), 0.134, 0.124)
    for k in range(6):
        a = math.pi * k / 3 + 0.5
        r = 0.0425
        thing.box((-0.018 + r * math.cos(a), r * math.sin(a), 0.072), (0.0018, 0.007, 0.007), WHITE,
                  solid=False, turn=about("z", a))  # fmt: skip
    return thing


def white_yellow_mug() -> ObjectModel:
    """White, with a yellow handle and a yellow half."""
    thing = _mug(WHITE, WHITE, YELLOW, 1, -0.018, (0.0400, 0.0510), 0.104, 0.121)
    thing.lathe(((0.0412, 0.004), (0.0440, 0.022), (0.0470, 0.044), (0.0410, 0.044), (0.030, 0.004)),
                YELLOW, (-0.018, 0, 0))  # fmt: skip
    return thing


def chefmate_8_frypan() -> ObjectModel:
    """A black pan with a long handle."""
    thing = _dish()
    at = (0.006, 0.0)
    outline = ((0.070, 0.0), (0.080, 0.006), (0.100, 0.042), (0.097, 0.042), (0.077, 0.009), (0.030, 0.006))  # fmt: skip
    thing.lathe(outline, (0.10, 0.10, 0.11), (*at, 0), sides=28)
    thing.cylinder((*at, 0.0065), 0.070, 0.0006, (0.22, 0.22, 0.23))
    thing.capsule((0.100, 0, 0.036), (0.165, 0, 0.046), 0.009, BLACK)
    thing.capsule((0.165, 0, 0.046), (0.250, 0, 0.047), 0.011, BLACK)
    thing.box((*at, 0.004), (0.055, 0.055, 0.004), None)
    thing.wall((0.071, 0.004), (0.0985, 0.042), 0.006, middle=at)
    thing.box((0.180, 0, 0.045), (0.080, 0.009, 0.009), None, turn=about("y", -0.06))
    thing.weigh(0.2032)
    return thing


def moka_pot() -> ObjectModel:
    """Two eight-sided cones, waist to waist, with a black handle and knob; its handle is along y."""
    thing = _dish()
    thing.lathe(
        ((0.037, -0.067), (0.038, -0.062), (0.029, -0.016), (0.028, -0.010)), SILVER, sides=8
    )
    thing.lathe(((0.029, -0.010), (0.029, -0.004), (0.040, 0.052), (0.036, 0.055), (0.010, 0.062)),
                (0.84, 0.85, 0.87), sides=8)  # fmt: skip
    thing.lathe(((0.033, -0.020), (0.034, -0.012), (0.033, -0.004)), (0.62, 0.63, 0.65), sides=16)
    thing.cylinder((0, 0, 0.074), 0.0075, 0.012, BLACK)
    thing.hull(((-0.012, -0.036, 0.050), (0.012, -0.036, 0.050), (0, -0.060, 0.052), (-0.006, -0.034, 0.020),
                (0.006, -0.034, 0.020), (0, -0.036, 0.052)), (0.84, 0.85, 0.87))  # fmt: skip
    bends = ((0, 0.036, 0.046), (0, 0.070, 0.050), (0, 0.078, 0.030), (0, 0.066, -0.010))
    for a, b in itertools.pairwise(bends):
        thing.capsule(a, b, 0.0065, BLACK, solid=True)
    thing.hexagon((0, 0, -0.041), 0.0365, 0.025)
    thing.hexagon((0, 0, 0.000), 0.0300, 0.017)
    thing.hexagon((0, 0, 0.035), 0.0375, 0.019)
    thing.box((0, 0, 0.070), (0.0070, 0.0070, 0.0160), None)
    thing.box((0, -0.046, 0.046), (0.006, 0.011, 0.008), None)
    thing.weigh(0.1311)
    return thing


def basket() -> ObjectModel:
    """Woven, with a cloth over its edge."""
    thing = _dish()
    straw: Colour = (0.76, 0.66, 0.46)
    x, y, high, thick = 0.081, 0.077, 0.1457, 0.003
    thing.box((0, 0, 0.006), (x - 0.004, y - 0.004, 0.003), straw)
    for side in (-1, 1):
        thing.box((side * (x + 0.001), 0, high / 2), (thick, y, high / 2), straw)
        thing.box((0, side * (y - 0.001), high / 2), (x, thick, high / 2), straw)
        for k in range(4):
            z = 0.018 + 0.026 * k
            thing.box(
                (side * (x + 0.004), 0, z), (0.0014, y, 0.008), (0.60, 0.48, 0.30), solid=False
            )
            thing.box(
                (0, side * (y + 0.002), z), (x, 0.0014, 0.008), (0.60, 0.48, 0.30), solid=False
            )
        thing.box(
            (side * (x + 0.001), 0, high - 0.012), (0.0050, y + 0.003, 0.014), WHITE, solid=False
        )
        thing.box(
            (0, side * (y - 0.001), high - 0.012), (x + 0.004, 0.0050, 0.014), WHITE, solid=False
        )
        thing.box(
            (side * (x - 0.003), 0, high / 2), (0.0006, y - 0.004, high / 2), CREAM, solid=False
        )
        thing.box(
            (0, side * (y - 0.005), high / 2), (x - 0.004, 0.0006, high / 2), CREAM, solid=False
        )
    thing.weigh(0.5532)
    region(thing, "contain_region", (0, 0, 0.07185), (0.06108, 0.06108, 0.06949), (0, 0, 0, 1))
    return thing


def wooden_tray() -> ObjectModel:
    """A crate of slats with a bar over each end."""
    thing = _dish()
    x0, x1, y0, y1 = -0.1416, 0.1556, -0.0876, 0.0789
    cx, cy, hx, hy = (x0 + x1) / 2, (y0 + y1) / 2, (x1 - x0) / 2, (y1 - y0) / 2
    for k in range(4):
        at = y0 + (y1 - y0) * (2 * k + 1) / 8
        thing.box((cx, at, 0.004), (hx, 0.018, 0.003), WOOD, solid=False)
    thing.box((cx, cy, 0.003), (hx, hy, 0.004), None)
    for y in (y0 + 0.003, y1 - 0.003):
        thing.box((cx, y, 0.024), (hx, 0.003, 0.022), (0.52, 0.35, 0.17))
    for x in (x0 + 0.003, x1 - 0.003):
        thing.box((x, cy, 0.024), (0.003, hy, 0.022), (0.52, 0.35, 0.17))
        thing.box((x, cy, 0.073), (0.003, hy, 0.008), WOOD)
        for y in (y0 + 0.006, y1 - 0.006):
            thing.box((x, y, 0.055), (0.004, 0.005, 0.020), (0.45, 0.30, 0.14))
    thing.weigh(0.5154)
    half = math.sqrt(0.5)
    region(thing, "contain_region", (0.00863, -0.00471, 0.04255), (0.04038, 0.07839, 0.13549),
           (round(half, 5), 0, round(half, 5), 0))  # fmt: skip
    return thing


TABLEWARE: Mapping[str, Callable[[], ObjectModel]] = {
    "akita_black_bowl": akita_black_bowl,
    "white_bowl": white_bowl,
    "glazed_rim_porcelain_ramekin": ramekin,
    "plate": plate,
    "porcelain_mug": lambda: _mug(WHITE, WHITE, WHITE, -1, 0.017, (0.0390, 0.0480), 0.114, 0.1206),
    "red_coffee_mug": red_coffee_mug,
    "white_yellow_mug": white_yellow_mug,
    "chefmate_8_frypan": chefmate_8_frypan,
    "moka_pot": moka_pot,
    "basket": basket,
    "wooden_tray": wooden_tray,
}
