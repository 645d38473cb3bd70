"""Our own object library: LIBERO's things as boxes, cylinders and small turned meshes.

It needs no files. Everything that a task means is as in the published models: outer measures,
origins, joints, regions, and what placing goes by; so one seed places everything at the same spot
in both looks, and official states fit. Shapes, colours, and how things touch in detail are our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from perdure.suites.libero.primitive.fixtures import FIXTURES
from perdure.suites.libero.primitive.groceries import GROCERIES
from perdure.suites.libero.primitive.panda import PARTS
from perdure.suites.libero.primitive.rooms import room
from perdure.suites.libero.primitive.shapes import ObjectModel
from perdure.suites.libero.primitive.tableware import TABLEWARE

THINGS: Mapping[str, Callable[[], ObjectModel]] = {**GROCERIES, **TABLEWARE, **FIXTURES}

__all__ = ["PARTS", "THINGS", "room"]
