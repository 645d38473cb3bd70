"""Models put together from boxes, cylinders, capsules and turned profiles.

A part is added to what is seen (group 1), to what collides (group 0), or to both. What is seen is
plain colour; what collides is mostly boxes, which lie and are held more steadily in MuJoCo than
cylinders or meshes do.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Literal

import numpy as np

from perdure.suites.libero.mjcf import Element, text
from perdure.suites.libero.rotations import matrix_of, product
from perdure.types import Array

Point = Sequence[float] | Array
Colour = tuple[float, float, float]
Quaternion = Sequence[float] | Array
NO_TURN = (1.0, 0.0, 0.0, 0.0)
Y_UP = (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
"""Takes a thing that stands along z to a model that stands along y."""
CONTACT = {"solimp": "0.998 0.998 0.001", "solref": "0.001 1", "friction": "0.95 0.3 0.1"}
"""Stiff and hardly slippery, as household things are in the published models."""
SIDES = 20
"""Of what is turned on a lathe."""
Collider = tuple[str, Point, Point, Quaternion, float]
"""Of what collides: its type, place, size and turn, and its volume."""


def times(one: Quaternion, other: Quaternion) -> Array:
    """First the other turn, then this; real parts first."""
    w = product(np.roll(np.asarray(one, float), -1), np.roll(np.asarray(other, float), -1))
    return np.roll(w, 1)


def about(axis: str, angle: float) -> Array:
    """The turn about an axis."""
    turn = np.zeros(4)
    turn[0], turn[1 + "xyz".index(axis)] = math.cos(angle / 2), math.sin(angle / 2)
    return turn


class Shape:
    """The geoms of one body."""

    def __init__(self, root: Element, body: Element, frame: Quaternion = NO_TURN) -> None:
        """``root`` takes the meshes; ``frame`` turns everything."""
        self.root, self.body, self.frame = root, body, frame
        self.parts: list[Collider] = []

    def box(self, middle: Point, half: Point, colour: Colour | None, solid: bool = True,
            turn: Quaternion = NO_TURN, alpha: float = 1.0) -> None:  # fmt: skip
        """A box; without a colour it is not seen."""
        self._geom("box", middle, half, colour, turn, alpha)
        if solid:
            self.parts.append(("box", middle, half, turn, 8 * float(np.prod(half))))

    def cylinder(self, middle: Point, radius: float, half: float, colour: Colour | None,
                 solid: bool = False, turn: Quaternion = NO_TURN) -> None:  # fmt: skip
        """A cylinder along its z axis."""
        self._geom("cylinder", middle, (radius, half), colour, turn)
        if solid:
            volume = 2 * math.pi * radius**2 * half
            self.parts.append(("cylinder", middle, (radius, half), turn, volume))

    def capsule(self, start: Point, end: Point, radius: float, colour: Colour | None,
                solid: bool = False) -> None:  # fmt: skip
        """A rod with round ends."""
        a, b = np.asarray(start, float), np.asarray(end, float)
        way = b - a
        length = float(np.linalg.norm(way))
        axis, angle = np.cross((0, 0, 1), way / length), math.acos(way[2] / length)
        size = float(np.linalg.norm(axis))
        turn = np.array(NO_TURN)
        if size > 1e-9:
            turn = np.array([math.cos(angle / 2), *(axis / size * math.sin(angle / 2))])
        half = (radius, length / 2)
        self._geom("capsule", (a + b) / 2, half, colour, turn)
        if solid:
            volume = math.pi * radius**2 * (length + 4 / 3 * radius)
            self.parts.append(("capsule", (a + b) / 2, half, turn, volume))

    def hexagon(self, middle: Point, radius: float, half: float) -> None:
        """Three boxes that collide as an upright cylinder; one of them reaches lowest, so that it
        stands on four points."""
        for k in range(3):
            high = half if k == 0 else half - 0.001
            wide = (radius * math.cos(math.pi / 6), radius / 2, high)
            self.box(middle, wide, None, turn=about("z", k * math.pi / 3))

    def wall(self, low: tuple[float, float], high: tuple[float, float], thick: float,
             sides: int = 10, middle: tuple[float, float] = (0.0, 0.0)) -> None:  # fmt: skip
        """A ring of boxes that collides as the wall of a bowl, from one radius and height to
        another."""
        (r0, z0), (r1, z1) = low, high
        length, tilt = math.hypot(r1 - r0, z1 - z0), math.atan2(r1 - r0, z1 - z0)
        radius, wide = (r0 + r1) / 2, max(r0, r1) * math.tan(math.pi / sides)
        for k in range(sides):
            angle = 2 * math.pi * k / sides
            place = (
                middle[0] + radius * math.cos(angle),
                middle[1] + radius * math.sin(angle),
                (z0 + z1) / 2,
            )
            turn = times(about("z", angle), about("y", tilt))
            self.box(place, (thick / 2, wide, length / 2), None, turn=turn)

    def lathe(self, profile: Sequence[tuple[float, float]], colour: Colour,
              middle: Point = (0, 0, 0), flat: float = 1.0, sides: int = SIDES,
              ends: Literal["capped", "cup", "ring"] = "capped") -> None:  # fmt: skip
        """What a profile of radii and heights, turned about z, looks like; ``flat`` squeezes y.

        Upwards the outside is seen, downwards the inside. A disc closes both ends, only the last
        (cup), or the profile comes back to its beginning (ring).
        """
        closed = (*profile, profile[0]) if ends == "ring" else profile
        radii, heights = np.array(closed, float).T
        angles = np.arange(sides) * 2 * math.pi / sides
        rings = np.stack([
            np.outer(radii, np.cos(angles)),
            np.outer(radii, np.sin(angles)) * flat,
            np.repeat(heights[:, None], sides, axis=1),
        ], axis=-1)  # fmt: skip
        centres = np.array([[0, 0, heights[0]], [0, 0, heights[-1]]])
        points = np.concatenate([rings.reshape(-1, 3), centres])
        faces: list[tuple[int, int, int]] = []
        first, last = len(points) - 2, len(points) - 1
        top = (len(radii) - 1) * sides
        for k in range(sides):
            after = (k + 1) % sides
            for r in range(len(radii) - 1):
                a, b = r * sides + k, r * sides + after
                faces += [(a, b, b + sides), (a, b + sides, a + sides)]
            if ends == "capped":
                faces.append((first, after, k))
            if ends != "ring":
                faces.append((last, top + k, top + after))
        self._mesh(points, [f for f in faces if _area(points, f) > 1e-12], colour, middle)

    def hull(self, points: Sequence[Point], colour: Colour) -> None:
        """What a few corners, wrapped up, look like."""
        self._mesh(np.array(points, float), None, colour, (0, 0, 0))

    def _mesh(
        self, points: Array, faces: Sequence[tuple[int, int, int]] | None, colour: Colour,
        middle: Point,
    ) -> None:  # fmt: skip
        assets = self.root.find("asset")
        assert assets is not None
        name = f"mesh{len(assets)}"
        mesh = ET.SubElement(assets, "mesh", name=name, vertex=_rounded(points))
        # Nothing hangs on its inertia, and an open one has none but its shell's.
        mesh.set("inertia", "shell")
        if faces is not None:
            mesh.set("face", " ".join(str(i) for face in faces for i in face))
        self._geom("mesh", middle, (), colour, NO_TURN).set("mesh", name)

    def _geom(self, kind: str, middle: Point, size: Point, colour: Colour | None,
              turn: Quaternion, alpha: float = 1.0) -> Element:  # fmt: skip
        if colour is None:
            return Element("geom")
        geom = self._placed(kind, middle, size, turn)
        shown = {"contype": "0", "conaffinity": "0", "group": "1"}
        geom.attrib.update(shown, rgba=text((*colour, alpha)))
        return geom

    def _placed(self, kind: str, middle: Point, size: Point, turn: Quaternion) -> Element:
        geom = ET.SubElement(self.body, "geom", type=kind)
        geom.set("pos", _rounded(matrix_of(np.array(self.frame)) @ np.asarray(middle, float)))
        geom.set("quat", _rounded(times(self.frame, turn)))
        if len(size):
            geom.set("size", _rounded(np.asarray(size, float)))
        return geom

    def weigh(self, mass: float, **contact: str) -> None:
        """Write down what collides, and share a mass among it by volume."""
        whole = sum(part[-1] for part in self.parts)
        for kind, middle, size, turn, volume in self.parts:
            geom = self._placed(kind, middle, size, turn)
            geom.attrib.update(CONTACT | contact, group="0", mass=repr(mass * volume / whole))


class ObjectModel(Shape):
    """A fixture or an object: a whole model with one body ``object``, and its first shape."""

    def __init__(
        self, bottom: float, top: float, radius: float, frame: Quaternion = NO_TURN
    ) -> None:
        """``bottom``, ``top`` and ``radius`` are what placing goes by: those of the published
        models, so that a seed places a thing at the same spot in every look."""
        root = ET.Element("mujoco")
        ET.SubElement(root, "asset")
        outer = ET.SubElement(ET.SubElement(root, "worldbody"), "body")
        super().__init__(root, ET.SubElement(outer, "body", name="object"), frame)
        for name, place in (
            ("bottom_site", (0, 0, bottom)),
            ("top_site", (0, 0, top)),
            ("horizontal_radius_site", (radius, radius, 0)),
        ):
            ET.SubElement(outer, "site", name=name, pos=text(place), size="0.005", rgba="0 0 0 0")

    def part(self, name: str, place: Point = (0, 0, 0), within: Shape | None = None) -> Shape:
        """A body inside; joints and masses are its own."""
        parent = self.body if within is None else within.body
        return Shape(self.root, ET.SubElement(parent, "body", name=name, pos=text(place)))


def region(shape: Shape, name: str, place: Point, size: Point, turn: Quaternion = NO_TURN) -> None:
    """A box that task files speak of; it is not seen."""
    ET.SubElement(
        shape.body, "site", name=name, type="box", pos=text(place), size=text(size),
        quat=text(turn), rgba="0 0 0 0",
    )  # fmt: skip


def _area(points: Array, face: tuple[int, int, int]) -> float:
    a, b, c = points[list(face)]
    return float(np.linalg.norm(np.cross(b - a, c - a)))


def _rounded(values: Array) -> str:
    return " ".join(f"{float(v):.6g}" for v in np.ravel(values))
