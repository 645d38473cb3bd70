"""Cabinets, the stove, the microwave, the caddy, the shelf and the wine rack.

Joints have the names, axes and ranges of the published models and regions their boxes, so that goals
and experts mean the same; shapes and colours are our own.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping

from perdure.suites.libero.mjcf import text
from perdure.suites.libero.primitive.groceries import BLACK, RED, SILVER, WHITE
from perdure.suites.libero.primitive.shapes import Colour, ObjectModel, Shape, about, region

SIDEWAYS = (0.70711, 0.0, 0.70711, 0.0)
PLAIN = {"solimp": "0.9 0.95 0.001", "solref": "0.02 1", "friction": "1 0.005 0.0001"}
"""MuJoCo's own contact, which the published stove's plate and microwave have."""


def _joint(shape: Shape, name: str, kind: str, axis: str, limits: tuple[float, float],
           damping: float) -> None:  # fmt: skip
    ET.SubElement(
        shape.body, "joint", name=name, type=kind, axis=axis, limited="true",
        range=text(limits), damping=repr(damping),
    )  # fmt: skip


def _heavy(shape: Shape, mass: float = 3.0) -> None:
    """Give a moving part a mass of its own, whatever it is made of."""
    ET.SubElement(shape.body, "inertial", pos="0 0 0", mass=repr(mass), diaginertia="1 1 1")


def _cabinet(wood: Colour, front: Colour, handle: Colour) -> ObjectModel:
    """Three drawers; they open towards -y."""
    thing = ObjectModel(-0.045, 0.045, 0.045)
    base = thing.part("base")
    for x in (-0.1122, 0.1190):
        base.box((x, 0.0162, 0.1143), (0.0052, 0.0954, 0.1058), wood)
    base.box((0.0035, 0.1094, 0.1143), (0.1190, 0.0023, 0.1058), wood)
    base.box((0.0039, 0.0158, 0.2216), (0.1273, 0.0941, 0.0014), wood)
    base.box((0.0040, 0.0164, 0.0069), (0.1228, 0.0896, 0.0020), wood)
    for z in (0.0793, 0.1494):
        base.box((0.0039, 0.0187, z), (0.1117, 0.0894, 0.0008), wood)
    base.weigh(0.18)
    region(base, "top_side", (0.00354, 0.01567, 0.22152), (0.12534, 0.09438, 0.00147))
    levels = (("top", 0.1836, 0.1839, 0.18563), ("middle", 0.1139, 0.1104, 0.11690),
              ("bottom", 0.0452, 0.0411, 0.04701))  # fmt: skip
    for level, z, grip, box in levels:
        drawer = thing.part(f"cabinet_{level}")
        _heavy(drawer)
        _joint(drawer, f"{level}_level", "slide", "0 1 0", (-0.16, 0.01), 50.0)
        drawer.box((0.0033, -0.0745, z - 0.0003), (0.1085, 0.0040, 0.0318), front)
        drawer.box((0.0033, 0.0908, z), (0.1050, 0.0036, 0.0300), wood)
        for x in (-0.1019, 0.1089):
            drawer.box((x, 0.0111, z), (0.0024, 0.0815, 0.0300), wood)
        drawer.box((0.0035, 0.0105, z - 0.0285), (0.1050, 0.0809, 0.0030), wood)
        drawer.box((-0.0028, -0.1016, grip), (0.0445, 0.0077, 0.0082), handle, solid=True)
        for x in (-0.0356, 0.0292):
            drawer.box((x, -0.0860, grip), (0.0051, 0.0106, 0.0055), handle)
        drawer.weigh(3.0)
        place, size = (0.00328, 0.01128, box), (0.02993, 0.07561, 0.10224)
        region(drawer, f"{level}_region", place, size, SIDEWAYS)
    return thing


def flat_stove() -> ObjectModel:
    """A grey box with a burner that glows when it is on, and a knob beside it."""
    thing = ObjectModel(-0.045, 0.045, 0.045)
    base = thing.part("base")
    burner = thing.part("burner", (0.15, 0, 0), base)
    burner.box((0, 0, 0), (0.095, 0.095, 0.02), (0.55, 0.56, 0.58))
    for r, colour in ((0.070, BLACK), (0.060, (0.28, 0.29, 0.30)), (0.044, BLACK), (0.032, (0.28, 0.29, 0.30))):  # fmt: skip
        burner.cylinder((0, 0, 0.0204 + (0.07 - r) * 0.012), r, 0.0004, colour)
    burner.box((0, 0, 0.025), (0.095, 0.095, 0.0005), None)
    burner.weigh(1.48, **PLAIN)
    ET.SubElement(
        burner.body, "site", name="burner", type="cylinder", pos="0 0 0.022",
        size="0.0625 0.0005", rgba="0.9 0.05 0.05 1",
    )  # fmt: skip
    region(burner, "cook_region", (0, 0, 0), (0.075, 0.075, 0.0025))
    knob = thing.part("button", within=base)
    _heavy(knob)
    _joint(knob, "button", "hinge", "0 0 1", (-0.005, 2.1), 1.0)
    knob.cylinder((-0.0046, 0.0013, 0.0066), 0.047, 0.0062, (0.12, 0.12, 0.13))
    knob.hexagon((-0.0046, 0.0013, 0.0066), 0.047, 0.0062)
    # The grip: along x, and higher towards the back, as far as a hand can hold it.
    knob.box((-0.0174, 0.0014, 0.0310), (0.0345, 0.0121, 0.0190), (0.16, 0.16, 0.17))
    knob.box((0.0225, 0.0012, 0.0270), (0.0190, 0.0121, 0.0140), (0.16, 0.16, 0.17))
    knob.box((0.0300, 0.0012, 0.0412), (0.0120, 0.0022, 0.0004), RED, solid=False)
    knob.weigh(3.0)
    return thing


def microwave() -> ObjectModel:
    """Dark, with a door that opens to the left and a panel of buttons."""
    thing = ObjectModel(-0.06, 0.06, 0.015)
    case: Colour = (0.16, 0.17, 0.18)
    for place, half in (
        ((-0.1580, 0.0115, 0.0935), (0.0145, 0.0996, 0.0935)),
        ((0.1180, 0.0115, 0.0935), (0.0545, 0.0996, 0.0935)),
        ((-0.0405, 0.0955, 0.0935), (0.1035, 0.0150, 0.0935)),
        ((-0.0400, -0.0035, 0.1775), (0.1035, 0.0845, 0.0095)),
        ((-0.0400, -0.0040, 0.0120), (0.1035, 0.0840, 0.0120)),
        ((0.1300, -0.0985, 0.0935), (0.0425, 0.0120, 0.0935)),
    ):
        thing.box(place, half, case)
    thing.weigh(3.0, **PLAIN)
    thing.box((-0.0400, 0.0798, 0.0960), (0.1030, 0.0006, 0.0720), (0.55, 0.55, 0.53), solid=False)
    thing.box((-0.0400, -0.0040, 0.0245), (0.1030, 0.0830, 0.0006), (0.65, 0.65, 0.63), solid=False)
    thing.box((0.1300, -0.1110, 0.1500), (0.0300, 0.0008, 0.0150), (0.25, 0.85, 0.45), solid=False)
    for row in range(3):
        for column in (-1, 0, 1):
            at = (0.1300 + 0.020 * column, -0.1110, 0.1100 - 0.026 * row)
            thing.box(at, (0.0070, 0.0008, 0.0080), SILVER, solid=False)
    door = thing.part("microdoorroot", (-0.1725, -0.088, 0.096))
    _joint(door, "microjoint", "hinge", "0 0 1", (-2.094, 0.0), 0.5)
    door.box((0.1295, -0.013, 0), (0.1295, 0.012, 0.0925), case)
    door.box((0.1150, -0.0255, 0), (0.0850, 0.0008, 0.0600), (0.02, 0.02, 0.03), solid=False)
    bar = ((0.2375, -0.054, 0.065), (0.2375, -0.054, -0.065))
    door.capsule(*bar, 0.010, SILVER, solid=True)
    for x, y, z in bar:
        door.capsule((x, y, z), (x, y + 0.030, z), 0.010, SILVER, solid=True)
    door.weigh(0.26, **PLAIN)
    region(thing, "top_side", (0, 0.01, 0.20), (0.12, 0.0835, 0.005))
    region(thing, "heating_region", (0, 0.01, 0.096), (0.12, 0.0835, 0.08))
    return thing


def desk_caddy() -> ObjectModel:
    """Four compartments: one on the left, one on the right, two between them."""
    thing = ObjectModel(-0.06, 0.04, 0.025)
    wood, inner = (0.38, 0.16, 0.11), (0.46, 0.22, 0.15)
    thing.box((0, 0, 0.0076), (0.0755, 0.2169, 0.0062), wood)
    thing.box((0.0668, 0, 0.0868), (0.0040, 0.2098, 0.0815), wood)
    thing.box((-0.0669, 0, 0.0395), (0.0040, 0.2098, 0.0346), wood)
    thing.box((-0.0669, -0.1398, 0.0877), (0.0040, 0.0766, 0.0796), wood)
    for y in (-0.2094, -0.0680):
        thing.box((0, y, 0.0850), (0.0706, 0.0062, 0.0824), wood if y < -0.1 else inner)
    for y in (0.0706, 0.2086):
        thing.box((0, y, 0.0452), (0.0706, 0.0036, 0.0333), wood)
        thing.box((0.0345, y, 0.0920), (0.0368, 0.0036, 0.0400), wood)
    thing.box((-0.0016, 0, 0.0552), (0.0040, 0.0668, 0.0434), inner)
    thing.weigh(0.278)
    turned = (0.0, 0.0, 1.0, 0.0)
    region(
        thing,
        "right_contain_region",
        (0.00631, -0.14339, 0.06558),
        (0.06196, 0.06216, 0.06046),
        turned,
    )
    region(
        thing,
        "left_contain_region",
        (0.00631, 0.14551, 0.06558),
        (0.06196, 0.06216, 0.06046),
        turned,
    )
    region(
        thing,
        "back_contain_region",
        (0.03364, -0.00064, 0.08558),
        (0.02775, 0.06216, 0.06046),
        turned,
    )
    region(thing, "front_contain_region", (-0.03102, -0.00064, 0.04054), (0.02775, 0.03595, 0.06216),
           (0.0, 0.0, 0.70711, -0.70711))  # fmt: skip
    return thing


def wooden_two_layer_shelf() -> ObjectModel:
    """Open towards -y, with a board at a third of its height."""
    thing = ObjectModel(-0.06, 0.04, 0.025)
    wood = (0.27, 0.17, 0.10)
    for x in (-0.1538, 0.1631):
        thing.box((x, 0.0162, 0.1046), (0.0071, 0.0954, 0.1044), wood)
    thing.box((0.0045, 0.1094, 0.1046), (0.1600, 0.0023, 0.1044), (0.33, 0.21, 0.13))
    thing.box((0.0052, 0.0187, 0.0700), (0.1532, 0.0894, 0.0012), (0.40, 0.26, 0.16))
    thing.box((0.0050, 0.0164, 0.2082), (0.1756, 0.0951, 0.0021), wood)
    thing.weigh(0.2063)
    region(thing, "top_side", (0.00496, 0.01567, 0.20688), (0.17557, 0.09438, 0.00147))
    region(thing, "top_region", (0.00538, 0.01687, 0.13672), (0.06739, 0.08564, 0.15093),
           (0.70711, 0.0, -0.70711, 0.0))  # fmt: skip
    region(
        thing, "bottom_region", (0.00555, 0.01687, 0.01407), (0.03528, 0.08564, 0.15580), SIDEWAYS
    )
    return thing


def wine_rack() -> ObjectModel:
    """Two slanting boards on a post; a bottle lies on the upper one, held by its lip."""
    thing = ObjectModel(-0.06, 0.04, 0.025)
    pale, dark = (0.82, 0.66, 0.46), (0.40, 0.20, 0.12)
    tilt = 2 * math.atan2(0.191, 0.681)
    for y, z, lip in ((-0.0061, 0.2512, (-0.0748, 0.2207)), (-0.0427, 0.1273, (-0.1091, 0.0974))):
        board = about("x", tilt)
        thing.box((0, y, z), (0.1344, 0.0789, 0.0045), None, turn=board)
        for k in range(5):
            thing.box(
                (-0.1344 + 0.0538 * k + 0.0268, y, z), (0.0240, 0.0789, 0.0045), pale, False, board
            )
        thing.box((0, *lip), (0.1322, 0.0087, 0.0011), dark, turn=about("x", tilt + math.pi / 2))
    thing.box((0, 0, 0.0080), (0.0930, 0.1250, 0.0045), dark)
    # The post leans against both boards from behind.
    thing.box((0, 0.0089, 0.1703), (0.0076, 0.0091, 0.1616), dark, turn=about("x", -0.277))
    thing.weigh(0.1527)
    region(thing, "top_region", (0, -0.08003, 0.21745), (0.10087, 0.02200, 0.00251),
           (0.8549119, -0.5187733, 0, 0))  # fmt: skip
    return thing


FIXTURES: Mapping[str, Callable[[], ObjectModel]] = {
    "wooden_cabinet": lambda: _cabinet((0.27, 0.17, 0.10), (0.35, 0.23, 0.14), SILVER),
    "white_cabinet": lambda: _cabinet((0.84, 0.84, 0.82), WHITE, (0.60, 0.61, 0.63)),
    "flat_stove": flat_stove,
    "microwave": microwave,
    "desk_caddy": desk_caddy,
    "wooden_two_layer_shelf": wooden_two_layer_shelf,
    "wine_rack": wine_rack,
}
