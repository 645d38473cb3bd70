"""Models of the 121 objects, built from formulas.

Each category has a maker, a function of

* ``instance``: which of the category's objects to build, counted from 0;
* ``primary`` and ``accent``: the object's two colours, for makers that use them.

It returns parts of any position and size: ``build`` normalises them.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Mapping

from perdure.suites.openloris.labels import NAMES, category
from perdure.suites.openloris.rendering.materials import Colour, Part, hsv, normalise
from perdure.suites.openloris.rendering.objects import (
    accessories,
    apparel,
    electronics,
    household,
    kitchen,
    stationery,
    toys,
)

GOLDEN_RATIO = 0.6180339887
"""Hues that are multiples of this apart, modulo 1, are spread evenly for any number of them."""
MAKERS: Mapping[str, Callable[[int, Colour, Colour], list[Part]]] = {
    "battery": electronics.battery,
    "bottle": kitchen.bottle,
    "bowl": kitchen.bowl,
    "bracelet": apparel.bracelet,
    "chopsticks": kitchen.chopsticks,
    "clamp": stationery.clamp,
    "comb": household.comb,
    "corkscrew": kitchen.corkscrew,
    "cottonswab": household.cottonswab,
    "cup": kitchen.cup,
    "cushion": household.cushion,
    "glasses": apparel.glasses,
    "hat": apparel.hat,
    "headphone": electronics.headphone,
    "key": accessories.key,
    "knife": kitchen.knife,
    "ladle": kitchen.ladle,
    "mask": apparel.mask,
    "mouse": electronics.mouse,
    "nail_clippers": household.nail_clippers,
    "notebook": stationery.notebook,
    "paper_cutter": stationery.paper_cutter,
    "pencil": stationery.pencil,
    "pencilcase": stationery.pencilcase,
    "plasticbag": accessories.plasticbag,
    "plug": electronics.plug,
    "pot": kitchen.pot,
    "scissors": stationery.scissors,
    "socks": apparel.socks,
    "spoon": kitchen.spoon,
    "stapler": stationery.stapler,
    "swimming_glasses": apparel.swimming_glasses,
    "tape": stationery.tape,
    "thermometer": household.thermometer,
    "tissue": household.tissue,
    "toothpaste": household.toothpaste,
    "toy": toys.toy,
    "u_disk": electronics.u_disk,
    "umbrella": accessories.umbrella,
    "wallet": accessories.wallet,
}
"""The maker of each category."""


@functools.cache
def build(name: str) -> tuple[Part, ...]:
    """The parts of an object, standing on z = 0 at the origin with its longest extent 1."""
    kind = category(name)
    instance = [n for n in NAMES if category(n) == kind].index(name)
    # Objects of one category get hues far apart, and each category starts at another hue.
    hue = zlib.crc32(kind.encode()) / 2**32 + instance * GOLDEN_RATIO
    primary, accent = hsv(hue, 0.62, 0.72), hsv(hue + 0.42, 0.5, 0.88)
    return tuple(normalise(MAKERS[kind](instance, primary, accent)))
