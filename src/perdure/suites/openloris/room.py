"""The MuJoCo model of one object's shooting: a room, the object, things to stand before and around it.

Lengths are in units of a quarter metre, so that every object is about one unit long. Shadows are
soft dark pictures on the ground, drawn once from the outline that each thing casts: a shadow map
costs as much as the frame itself and speckles at a distance.
"""

from __future__ import annotations

import ctypes.util
import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure.registry import extras_named
from perdure.seeds import rng_for
from perdure.suites.openloris.kitchen import tray
from perdure.suites.openloris.objects import build
from perdure.suites.openloris.paint import SIDE, Colour, Part, colour, pattern, placed
from perdure.suites.openloris.shapes import Mesh, box, lathe
from perdure.types import Array

UNIT = 0.25
"""Metres in a unit of length."""
SCENES = 20
WALL = 16.0
"""Distance of the walls from the object: farther than any camera goes."""
FOV = 42.0
"""Vertical field of view in degrees, that of a RealSense D435's colour camera."""
GROUND, TARGET, OCCLUDER, OTHERS, HIDDEN = 0, 1, 2, 3, 5
"""Groups of geometry, shown and hidden together."""
OCCLUDERS = 3
LIGHT = np.array([-0.45, 0.3, -1.0]) / np.linalg.norm([-0.45, 0.3, -1.0])
BLUR = 0.16
"""Softness of a shadow's edge."""
DARK = 0.62
"""Opacity of the deepest shadow."""
_FLOORS = ("planks", "checker", "weave", "marble", "speckle", "noise")


def simulator() -> Any:
    """MuJoCo."""
    # One process renders on one core: more threads of the software renderer help little.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    with extras_named("the OpenLORIS renderer"):
        import mujoco  # type: ignore[import-untyped]
    return mujoco


def screen(width: int, height: int) -> Any:
    """A picture to draw into without a display, by what MUJOCO_GL says or is installed."""
    simulator()
    found = "egl" if ctypes.util.find_library("EGL") else "osmesa"
    kind = os.environ.get("MUJOCO_GL") or found
    # MuJoCo chooses when it is first imported, which may have been before anyone knew.
    made = importlib.import_module(f"mujoco.{kind}").GLContext(width, height)
    made.make_current()
    return made


@dataclass(frozen=True, eq=False)
class Room:
    """A compiled model, and where its parts are."""

    model: Any
    target: Array
    """Vertices of the target's convex hull: they decide its box from everywhere."""
    occluders: dict[str, tuple[Array, Array]]
    """Vertices of each occluder about its own place, by height, and where each height begins."""
    geoms: dict[str, list[int]]
    """Geoms by role: ``target``, ``other3``, ``occluder1``; shadows as ``shadow:other3``."""
    bodies: dict[str, int]
    """Movable bodies by role, as rows of ``mocap_pos``."""
    floors: dict[int, tuple[int, int]]
    """Material of floor and wall of each scene."""

    def show(self, roles: Sequence[str]) -> None:
        """Let only these movable things be seen."""
        for role, ids in self.geoms.items():
            name = role.removeprefix("shadow:")
            if name in self.bodies and name != "target":
                group = GROUND if name != role else OTHERS if name[:5] == "other" else OCCLUDER
                self.model.geom_group[ids] = group if name in roles else HIDDEN

    def dress(self, scene: int) -> None:
        """Lay the floor and paint the walls of a scene."""
        floor, wall = self.floors[scene]
        self.model.geom_matid[self.geoms["floor"]] = floor
        self.model.geom_matid[self.geoms["wall"]] = wall


def furnish(name: str, others: Sequence[str], scenes: Sequence[int], seed: int) -> Room:
    """The room of an object, with some other objects, three occluders, and some scenes to choose."""
    mujoco = simulator()
    rng = rng_for(seed, "room", name)
    spec = mujoco.MjSpec()
    spec.visual.global_.offwidth, spec.visual.global_.offheight = 1280, 720
    spec.visual.global_.fovy = FOV
    spec.visual.quality.offsamples = 0
    spec.visual.map.znear, spec.visual.map.zfar = 0.02, 15.0
    spec.stat.extent, spec.stat.center = 4.0, [0, 0, 0]
    build_ = _Builder(mujoco, spec)
    build_.lights()
    for s in sorted(set(scenes)):
        build_.scene(s, rng_for(seed, "scene", s))
    build_.ground()
    parts = placed(list(build(name)), float(rng.uniform(0, 360)))
    build_.thing("target", parts, TARGET, rng)
    for i, other in enumerate(others):
        turned = placed(list(build(other)), float(rng.uniform(0, 360)))
        build_.thing(f"other{i}", _sized(turned, rng.uniform(0.6, 0.95)), OTHERS, rng)
    occluders = {}
    for i in range(OCCLUDERS):
        stack = _occluder(i, rng)
        occluders[f"occluder{i}"] = _rings(stack)
        build_.thing(f"occluder{i}", stack, OCCLUDER, rng)
    return build_.done(_hull(np.concatenate([p.mesh.vertices for p in parts])), occluders)


def _rings(parts: Sequence[Part]) -> tuple[Array, Array]:
    points = np.concatenate([p.mesh.vertices for p in parts])
    points = points[np.argsort(points[:, 2], kind="stable")]
    return points, np.flatnonzero(np.diff(points[:, 2], prepend=-1.0) > 1e-6)


def _hull(points: Array) -> Array:
    from scipy.spatial import ConvexHull

    out: Array = points[ConvexHull(points).vertices]
    return out


def _occluder(kind: int, rng: np.random.Generator) -> list[Part]:
    """A carton, a vase or a pile of books, tall enough to hide a part of anything."""
    first = colour(rng.random(), rng.uniform(0.2, 0.6), rng.uniform(0.45, 0.85))
    second = colour(rng.random(), 0.4, 0.85)
    if kind == 0:
        return _sized([*tray(first, second)], 1.3)
    if kind == 1:
        t = np.linspace(0, 1, 16)
        profile = [
            (0.0, 0.0),
            *[(0.2 + 0.1 * np.sin(2.6 * x + 0.3), 1.3 * x) for x in t],
            (0.0, 1.27),
        ]
        glaze = "bands" if rng.random() < 0.5 else "marble"
        return [Part(lathe(profile), first, glaze, second, 0.8)]
    parts: list[Part] = []
    z = 0.0
    while z < 1.2:
        high = rng.uniform(0.12, 0.22)
        book = box(rng.uniform(0.58, 0.7), rng.uniform(0.4, 0.5), high)
        book = book.turned("z", rng.uniform(-9, 9)).at(0, 0, z + high / 2)
        cover, print_ = colour(rng.random(), 0.5, 0.6), colour(rng.random(), 0.2, 0.9)
        parts.append(Part(book, cover, "label", print_))
        z += high
    return parts


def _sized(parts: list[Part], scale: float) -> list[Part]:
    return [
        Part(
            p.mesh.scaled(scale, scale, scale),
            p.colour,
            p.pattern,
            p.second,
            p.gloss,
            p.alpha,
            p.repeat,
        )
        for p in parts
    ]


def _shadow(parts: Sequence[Part], z: float) -> tuple[Mesh, Array]:
    """What the light throws on the ground: a plate, and its picture with a blurred opacity."""
    from PIL import Image, ImageDraw, ImageFilter

    meshes = [p.mesh for p in parts]
    flat = [m.vertices[:, :2] - LIGHT[:2] / LIGHT[2] * m.vertices[:, 2:] for m in meshes]
    everything = np.concatenate(flat)
    low, high = everything.min(0) - BLUR, everything.max(0) + BLUR
    mask = Image.new("L", (SIDE, SIDE))
    draw = ImageDraw.Draw(mask)
    for points, mesh in zip(flat, meshes, strict=True):
        corners = ((points - low) / (high - low) * SIDE)[mesh.faces].reshape(-1, 6)
        for triangle in corners.tolist():
            draw.polygon(triangle, fill=255)
    soft = mask.filter(ImageFilter.GaussianBlur(BLUR / 3 * SIDE / float((high - low).max())))
    picture = np.zeros((SIDE, SIDE, 4), np.uint8)
    picture[..., 3] = np.asarray(soft) * DARK
    (x0, y0), (x1, y1) = low, high
    # A fifth point off the plane lets the plate pass for a solid.
    plate = [[x0, y0, z], [x1, y0, z], [x1, y1, z], [x0, y1, z], [x0, y0, z - 1e-3]]
    uv = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]], float)
    return Mesh(np.array(plate), np.array([[0, 1, 2], [0, 2, 3]]), uv), picture


class _Builder:
    """Collects geometry until the model is compiled."""

    def __init__(self, mujoco: Any, spec: Any) -> None:
        self.mujoco, self.spec = mujoco, spec
        self.roles: list[str] = []
        self.movable: list[str] = []
        self.paints: dict[tuple[Any, ...], str] = {}
        self.scenes: dict[int, tuple[str, str]] = {}

    def lights(self) -> None:
        """A lamp that the level of illumination dims, and a fill from the other side."""
        for name, direction, bright in (("key", LIGHT, 0.62), ("fill", LIGHT * [-1, -1, 1], 0.16)):
            light = self.spec.worldbody.add_light(name=name, pos=-8 * direction, dir=direction)
            light.directional, light.castshadow = True, False
            light.diffuse, light.ambient, light.specular = [bright] * 3, [0] * 3, [0.25] * 3
        head = self.spec.visual.headlight
        head.ambient, head.diffuse, head.specular = [0.34] * 3, [0.1] * 3, [0] * 3

    def paint(
        self,
        first: Colour,
        kind: str,
        second: Colour,
        gloss: float,
        alpha: float,
        repeat: Sequence[float],
        rng: np.random.Generator,
        uniform: bool = False,
    ) -> str:
        """The name of a material, made once."""
        key = (first, kind, second, gloss, alpha, tuple(repeat), uniform)
        if key not in self.paints:
            self.paints[key] = name = f"paint{len(self.paints)}"
            picture = pattern(kind, first, second, rng) if kind else None
            material = self._material(name, picture)
            material.specular, material.shininess = 0.5 * gloss, 0.3 + 0.5 * gloss
            material.rgba = [*((1, 1, 1) if kind else first), alpha]
            material.texrepeat, material.texuniform = list(repeat), uniform
        return self.paints[key]

    def _material(self, name: str, picture: Array | None) -> Any:
        material = self.spec.add_material(name=name)
        if picture is not None:
            height, width, channels = picture.shape
            texture = self.spec.add_texture(
                name=name, width=width, height=height, nchannel=channels
            )
            texture.type = self.mujoco.mjtTexture.mjTEXTURE_2D
            texture.data = picture.tobytes()
            roles = [""] * int(self.mujoco.mjtTextureRole.mjNTEXROLE)
            roles[int(self.mujoco.mjtTextureRole.mjTEXROLE_RGB)] = name
            material.textures = roles
        return material

    def scene(self, number: int, rng: np.random.Generator) -> None:
        """Materials of one of the twenty scenes: homes, offices and shops differ by these."""
        kind = _FLOORS[number % len(_FLOORS)]
        warm = kind == "planks"
        hue = rng.uniform(0.05, 0.1) if warm else rng.random()
        floor = colour(
            hue, rng.uniform(0.3, 0.5) if warm else rng.uniform(0.03, 0.16), rng.uniform(0.6, 0.85)
        )
        other = colour(
            hue,
            rng.uniform(0.35, 0.55) if warm else rng.uniform(0.03, 0.2),
            rng.uniform(0.45, 0.62),
        )
        wall = colour(rng.random(), rng.uniform(0.03, 0.2), rng.uniform(0.6, 0.9))
        every = {"checker": 0.12, "weave": 0.6, "planks": 0.3, "noise": 0.6}.get(kind, 0.4)
        self.scenes[number] = (
            self.paint(floor, kind, other, 0.1, 1, (every, every), rng, uniform=True),
            self.paint(wall, "noise", colour(rng.random(), 0.1, 0.8), 0, 1, (4, 4), rng),
        )

    def ground(self) -> None:
        """Floor, walls and some furniture along them."""
        first = next(iter(self.scenes.values()))
        plane = self.spec.worldbody.add_geom(
            type=self.mujoco.mjtGeom.mjGEOM_PLANE, size=[WALL + 1, WALL + 1, 1]
        )
        plane.material = first[0]
        self.roles.append("floor")
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            size = [0.1 if x else WALL, 0.1 if y else WALL, 8]
            wall = self.spec.worldbody.add_geom(
                type=self.mujoco.mjtGeom.mjGEOM_BOX, size=size, pos=[x * WALL, y * WALL, 8]
            )
            wall.material = first[1]
            self.roles.append("wall")
        rng = rng_for(0, "furniture", *self.scenes)
        for i in range(10):
            angle = 2 * np.pi * (i + rng.uniform(-0.3, 0.3)) / 10
            high = rng.uniform(1, 5)
            tint = colour(rng.random(), rng.uniform(0.1, 0.5), rng.uniform(0.3, 0.8))
            self.spec.worldbody.add_geom(
                type=self.mujoco.mjtGeom.mjGEOM_BOX,
                size=[rng.uniform(0.6, 2.2), 0.6, high / 2],
                pos=[13.8 * np.cos(angle), 13.8 * np.sin(angle), high / 2],
                euler=[0, 0, np.rad2deg(angle) + 90],
                rgba=[*tint, 1],
            )
            self.roles.append("furniture")

    def thing(self, role: str, parts: Sequence[Part], group: int, rng: np.random.Generator) -> None:
        """A movable body with its shadow."""
        body = self.spec.worldbody.add_body(name=role, mocap=True)
        self.movable.append(role)
        for p in parts:
            material = self.paint(p.colour, p.pattern, p.second, p.gloss, p.alpha, p.repeat, rng)
            self._mesh(body, p.mesh, group, role).material = material
        # Plates of different things lie at different heights, so that none flickers in another.
        plate, picture = _shadow(parts, 0.003 + 0.0004 * len(self.movable))
        name = f"shadow {role}"
        material = self._material(name, picture)
        material.rgba, material.specular = [1, 1, 1, 0.99], 0
        self._mesh(body, plate, GROUND, f"shadow:{role}").material = name

    def _mesh(self, body: Any, mesh: Mesh, group: int, role: str) -> Any:
        name = f"mesh{len(self.roles)}"
        made = self.spec.add_mesh(name=name)
        made.uservert, made.userface = mesh.vertices.ravel(), mesh.faces.ravel().astype(int)
        made.usertexcoord = mesh.uv.ravel()
        made.inertia = self.mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
        geom = body.add_geom(type=self.mujoco.mjtGeom.mjGEOM_MESH, meshname=name, group=group)
        geom.contype = geom.conaffinity = 0
        self.roles.append(role)
        return geom

    def done(self, target: Array, occluders: dict[str, tuple[Array, Array]]) -> Room:
        """Compile."""
        model = self.spec.compile()
        # Geoms are numbered by body, the world first: the order in which they were added.
        geoms: dict[str, list[int]] = {}
        for i, role in enumerate(self.roles):
            geoms.setdefault(role, []).append(i)
        bodies = {r: int(model.body_mocapid[model.body(r).id]) for r in self.movable}
        floors = {
            s: (model.material(a).id, model.material(b).id) for s, (a, b) in self.scenes.items()
        }
        return Room(model, target, occluders, geoms, bodies, floors)
