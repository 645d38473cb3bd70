"""The 121 objects as meshes."""

from __future__ import annotations

import functools
import zlib

from perdure.suites.openloris import care, desk, kitchen, wear
from perdure.suites.openloris.labels import NAMES, category
from perdure.suites.openloris.paint import Part, colour, placed

ROOMS = (kitchen, desk, wear, care)
GOLDEN = 0.6180339887


@functools.cache
def build(name: str) -> tuple[Part, ...]:
    """The parts of an object, standing on z = 0 at the origin with its longest extent 1."""
    kind = category(name)
    mine = [n for n in NAMES if category(n) == kind]
    k = mine.index(name)
    # Neighbours of a category get hues far apart; each category starts elsewhere.
    hue = zlib.crc32(kind.encode()) / 2**32 + k * GOLDEN
    first, second = colour(hue, 0.62, 0.72), colour(hue + 0.42, 0.5, 0.88)
    maker = next(getattr(room, kind) for room in ROOMS if hasattr(room, kind))
    return tuple(placed(maker(k, first, second)))
