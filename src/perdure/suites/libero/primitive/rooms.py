"""The rooms: floor, walls, a work surface, and a little furniture to know them by.

Work surfaces lie where those of the published scenes lie, and cameras and lights are where theirs
are.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from perdure.suites.libero.mjcf import Element, text
from perdure.suites.libero.primitive.shapes import Colour, Shape
from perdure.suites.libero.workspaces import Workspace

CAMERAS = (
    ("frontview", "1.0 0 1.45", "0.56 0.43 0.43 0.56"),
    ("birdview", "-0.2 0 3.0", "0.7071 0 0 0.7071"),
    ("agentview", "0.5 0 1.35", "0.653 0.271 0.271 0.653"),
    ("sideview", "-0.05651774593317116 1.2761224129427358 1.4879572214102434",
     "0.009905065491771751 0.006877963156909582 0.5912228352893879 0.806418094001364"),
)  # fmt: skip
GREY_TILES: Colour = (0.70, 0.70, 0.68)
PLASTER: Colour = (0.80, 0.80, 0.78)
PLANKS: Colour = (0.62, 0.45, 0.28)
LINEN: Colour = (0.88, 0.80, 0.62)
OAK: Colour = (0.72, 0.58, 0.42)
SLATE: Colour = (0.38, 0.39, 0.41)
WALNUT: Colour = (0.40, 0.26, 0.16)
COLOURS: dict[str, tuple[Colour, Colour]] = {
    "main_table": (GREY_TILES, PLASTER),
    "kitchen_table": ((0.60, 0.61, 0.62), LINEN),
    "study_table": (GREY_TILES, PLASTER),
    "living_room_table": (PLANKS, PLASTER),
    "floor": (GREY_TILES, PLASTER),
}
"""Of floors and walls."""


def room(space: Workspace) -> Element:
    """The arena of a kind of scene."""
    root = ET.Element("mujoco")
    # Round things are small in the picture, and every corner costs.
    quality = ET.SubElement(root, "visual")
    ET.SubElement(quality, "quality", numslices="16", numstacks="4", numquads="2")
    sky = ET.SubElement(root, "asset")
    ET.SubElement(
        sky, "texture", type="skybox", builtin="gradient", rgb1=".9 .9 1", rgb2=".2 .3 .4",
        width="32", height="32",
    )  # fmt: skip
    world = ET.SubElement(root, "worldbody")
    floor, wall = COLOURS[space.name]
    # In scenes whose regions lie on the floor it is a body of its own.
    ground = ET.SubElement(world, "body", name="floor") if not space.mounted else world
    ET.SubElement(
        ground, "geom", name="floor", type="plane", size="3 3 .125", condim="3", group="1",
        rgba=text((*floor, 1)),
    )  # fmt: skip
    seen = Shape(root, world)
    for place, half in (
        ((-2, 0, 1.5), (0.01, 3, 1.5)),
        ((3, 0, 1.5), (0.01, 3, 1.5)),
        ((0.5, 3, 1.5), (2.5, 0.01, 1.5)),
        ((0.5, -3, 1.5), (2.5, 0.01, 1.5)),
    ):
        seen.box(place, half, wall, solid=False)
    _joints_of_tiles(seen, floor)
    _FURNITURE[space.name](root, world, seen)
    for name, spot in (("light1", "1 1 4"), ("light2", "-3 -3 4")):
        ET.SubElement(
            world, "light", name=name, pos=spot, dir="0 -.15 -1", diffuse=".8 .8 .8",
            specular=".3 .3 .3", castshadow="false",
        )  # fmt: skip
    for name, spot, turn in CAMERAS:
        ET.SubElement(world, "camera", mode="fixed", name=name, pos=spot, quat=turn)
    return root


def _joints_of_tiles(seen: Shape, floor: Colour) -> None:
    """Lines on the floor, by which one sees how far away things are."""
    line = (floor[0] * 0.82, floor[1] * 0.82, floor[2] * 0.82)
    for k in range(-4, 5):
        seen.box((0.5 * k, 0, 0.0002), (0.006, 3, 0.0002), line, solid=False)
        seen.box((0, 0.5 * k, 0.0002), (3, 0.006, 0.0002), line, solid=False)


def _measured_table(world: Element, top: Colour) -> None:
    """A table whose measures the scene sets, with a leg at each corner."""
    body = ET.SubElement(world, "body", name="table", pos="0 0 0.4")
    ET.SubElement(body, "geom", name="table_collision", type="box", size=".4 .4 .4", group="0")
    unseen = {"contype": "0", "conaffinity": "0", "group": "1"}
    ET.SubElement(
        body, "geom", unseen, name="table_visual", type="box", size=".4 .4 .4", rgba=text((*top, 1))
    )
    for k in range(1, 5):
        ET.SubElement(
            body, "geom", unseen, name=f"table_leg{k}_visual", type="cylinder", size=".05 .1",
            rgba=text((*SLATE, 1)),
        )  # fmt: skip
    ET.SubElement(body, "site", name="table_top", pos="0 0 0.4", size="0.001", rgba="0 0 0 0")


def _tabletop(root: Element, world: Element, seen: Shape) -> None:
    _measured_table(world, OAK)
    seen.box((-1.97, 0.9, 1.6), (0.01, 0.35, 0.25), (0.45, 0.60, 0.66), solid=False)


def _kitchen(root: Element, world: Element, seen: Shape) -> None:
    _measured_table(world, (0.74, 0.66, 0.56))
    white, top = (0.90, 0.89, 0.86), (0.32, 0.32, 0.34)
    seen.box((-1.65, 0, 0.43), (0.33, 1.60, 0.43), white, solid=False)
    seen.box((-1.65, 0, 0.88), (0.35, 1.62, 0.02), top, solid=False)
    seen.box((-1.82, 0.9, 1.85), (0.16, 0.70, 0.35), white, solid=False)
    seen.box((-1.82, -1.0, 1.85), (0.16, 0.60, 0.35), white, solid=False)
    seen.box((-1.60, -2.30, 0.90), (0.36, 0.42, 0.90), (0.72, 0.74, 0.76), solid=False)
    seen.cylinder((-1.55, 0.25, 0.99), 0.11, 0.09, (0.55, 0.56, 0.58))
    for y in (-0.8, 0.0, 0.8):
        seen.box((-1.31, y, 0.45), (0.005, 0.36, 0.36), (0.82, 0.80, 0.76), solid=False)
    light = {"directional": "true", "castshadow": "false", "dir": "0 0 -1", "pos": "-1.75 0 1.6"}
    ET.SubElement(
        world, "light", light, name="light_kitchen", diffuse=".15 .15 .15", specular="0 0 0"
    )


def _study(root: Element, world: Element, seen: Shape) -> None:
    desk = Shape(root, ET.SubElement(world, "body", name="study_table"))
    _surface(desk, (0, 0, 0.84929), (0.68946, 1.39273, 0.03584), WALNUT)
    for x in (-0.5, 0.5):
        for y in (-0.69, 0.71):
            desk.box((x, y, 0.407), (0.03, 0.05, 0.407), SLATE, solid=False)
    seen.box((-1.80, -1.0, 0.95), (0.18, 0.55, 0.95), (0.60, 0.44, 0.28), solid=False)
    books: tuple[Colour, ...] = (
        (0.6, 0.15, 0.12),
        (0.15, 0.3, 0.5),
        (0.2, 0.4, 0.2),
        (0.1, 0.1, 0.12),
    )
    for k in range(3):
        seen.box(
            (-1.61, -1.0, 0.45 + 0.55 * k), (0.01, 0.48, 0.22), (0.30, 0.20, 0.12), solid=False
        )
        for j in range(7):
            place = (-1.59, -1.40 + 0.10 * j, 0.38 + 0.55 * k)
            seen.box(place, (0.02, 0.035, 0.15), books[(j + k) % 4], solid=False)
    seen.cylinder((-1.75, 0.6, 0.22), 0.17, 0.22, (0.75, 0.45, 0.30))
    for x, y, z in ((0, 0, 0.75), (0.08, 0.12, 0.60), (-0.05, -0.13, 0.65)):
        seen.capsule((-1.75, 0.6, 0.4), (-1.75 + x, 0.6 + y, z + 0.2), 0.05, (0.15, 0.42, 0.18))
    seen.box((-1.97, 0.7, 1.7), (0.01, 0.45, 0.25), (0.35, 0.45, 0.60), solid=False)


def _living_room(root: Element, world: Element, seen: Shape) -> None:
    table = Shape(root, ET.SubElement(world, "body", name="living_room_table"))
    _surface(table, (-0.2425, 0.04, 0.42492), (0.5815, 0.86, 0.01184), (0.44, 0.27, 0.18))
    table.box((-0.25, 0.25, 0.2065), (0.41, 0.43, 0.2065), (0.36, 0.22, 0.14), solid=False)
    seen.box((-1.80, 0, 0.25), (0.19, 1.45, 0.25), (0.85, 0.85, 0.84), solid=False)
    seen.box((-1.88, 0, 1.05), (0.04, 0.70, 0.40), (0.05, 0.05, 0.06), solid=False)
    for y in (-1.2, 1.2):
        seen.box((-1.82, y, 1.0), (0.17, 0.24, 0.55), WALNUT, solid=False)


def _floor(root: Element, world: Element, seen: Shape) -> None:
    seen.box((-1.97, 0, 0.06), (0.012, 3, 0.06), (0.92, 0.92, 0.90), solid=False)


def _surface(shape: Shape, middle: tuple[float, float, float], half: tuple[float, float, float],
             colour: Colour) -> None:  # fmt: skip
    shape.box(middle, half, colour)
    shape.weigh(1.0)


_FURNITURE = {
    "main_table": _tabletop,
    "kitchen_table": _kitchen,
    "study_table": _study,
    "living_room_table": _living_room,
    "floor": _floor,
}
