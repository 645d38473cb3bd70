"""The MuJoCo model of one object's scene: a room, the object, occluders and distractors.

Lengths are in units of a quarter metre, so that every object is about one unit long.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure.registry import extras_named
from perdure.seeds import rng_for
from perdure.suites.openloris.rendering.camera import FOV
from perdure.suites.openloris.rendering.materials import (
    Colour,
    Part,
    hsv,
    normalise,
    scale,
    texture,
)
from perdure.suites.openloris.rendering.meshes import Mesh
from perdure.suites.openloris.rendering.objects import build
from perdure.suites.openloris.rendering.objects.occluders import OCCLUDERS, build_occluder
from perdure.suites.openloris.rendering.occlusion import Rings
from perdure.suites.openloris.rendering.shadows import cast_shadow
from perdure.types import Array

METRES_PER_UNIT = 0.25
BACKGROUNDS = 20
"""Combinations of floor and walls that a scene can be set to."""
WALL_DISTANCE = 16.0
"""Of the walls from the object: farther than any camera goes."""
GROUND, TARGET, OCCLUDER, DISTRACTOR, HIDDEN = 0, 1, 2, 3, 5
"""MuJoCo's geom groups, drawn or left out together. HIDDEN is never drawn."""
LIGHT_DIRECTION = np.array([-0.45, 0.3, -1.0]) / np.linalg.norm([-0.45, 0.3, -1.0])
KEY_LIGHT, FILL_LIGHT = 0.62, 0.16
"""Diffuse strength of the two lights."""
_FLOORS = ("planks", "checker", "weave", "marble", "speckle", "noise")


def import_mujoco() -> Any:
    """The module ``mujoco``."""
    # One process renders on one core: more threads of the software renderer help little.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    with extras_named("the OpenLORIS renderer"):
        import mujoco  # type: ignore[import-untyped]
    return mujoco


@dataclass(frozen=True, eq=False)
class Scene:
    """A compiled model, and where its parts are.

    Bodies have roles: ``target``, ``occluder0`` to ``occluder2``, ``distractor0`` and so on.
    """

    model: Any
    target: Array
    """Vertices of the target's convex hull: they decide its bounding box from everywhere."""
    occluders: dict[str, Rings]
    """Vertices of each occluder, by role."""
    geoms: dict[str, list[int]]
    """Geoms by role, those of shadows as ``shadow:ROLE``; also ``floor`` and ``wall``."""
    bodies: dict[str, int]
    """Movable bodies by role, as rows of ``mocap_pos``."""
    backgrounds: dict[int, tuple[int, int]]
    """Materials of floor and walls of the backgrounds that this scene has."""

    def set_visible(self, roles: Sequence[str]) -> None:
        """Of the occluders and distractors, show these with their shadows and hide the others."""
        for key, ids in self.geoms.items():
            role = key.removeprefix("shadow:")
            if role in self.bodies and role != "target":
                own = DISTRACTOR if role.startswith("distractor") else OCCLUDER
                group = own if role == key else GROUND
                self.model.geom_group[ids] = group if role in roles else HIDDEN

    def set_background(self, number: int) -> None:
        """Change the materials of floor and walls."""
        floor, wall = self.backgrounds[number]
        self.model.geom_matid[self.geoms["floor"]] = floor
        self.model.geom_matid[self.geoms["wall"]] = wall

    def set_key_light(self, strength: float) -> None:
        """Dim the key light to this fraction of its full strength; ambient light stays."""
        self.model.light_diffuse[0] = KEY_LIGHT * strength


def build_scene(
    name: str, distractors: Sequence[str], backgrounds: Sequence[int], seed: int
) -> Scene:
    """The scene of an object, with some distractor objects, the occluders and some backgrounds."""
    # Addresses of random streams stay as they are: see the package's docstring.
    rng = rng_for(seed, "room", name)
    builder = _SceneBuilder()
    builder.add_lights()
    for number in sorted(set(backgrounds)):
        builder.add_background(number, rng_for(seed, "scene", number))
    builder.add_room()
    target = normalise(build(name), float(rng.uniform(0, 360)))
    builder.add_body("target", target, TARGET, rng)
    for i, other in enumerate(distractors):
        rotated = normalise(build(other), float(rng.uniform(0, 360)))
        parts = scale(rotated, rng.uniform(0.6, 0.95))
        builder.add_body(f"distractor{i}", parts, DISTRACTOR, rng)
    occluders = {}
    for i in range(OCCLUDERS):
        parts = build_occluder(i, rng)
        occluders[f"occluder{i}"] = _rings(parts)
        builder.add_body(f"occluder{i}", parts, OCCLUDER, rng)
    hull = _convex_hull(np.concatenate([p.mesh.vertices for p in target]))
    return builder.compile(hull, occluders)


def _rings(parts: Sequence[Part]) -> Rings:
    points = np.concatenate([p.mesh.vertices for p in parts])
    points = points[np.argsort(points[:, 2], kind="stable")]
    return points, np.flatnonzero(np.diff(points[:, 2], prepend=-1.0) > 1e-6)


def _convex_hull(points: Array) -> Array:
    from scipy.spatial import ConvexHull

    out: Array = points[ConvexHull(points).vertices]
    return out


class _SceneBuilder:
    """Adds geometry to a MuJoCo specification, and compiles it."""

    def __init__(self) -> None:
        self.mujoco = import_mujoco()
        self.spec = spec = self.mujoco.MjSpec()
        spec.visual.global_.offwidth, spec.visual.global_.offheight = 1280, 720
        spec.visual.global_.fovy = FOV
        spec.visual.quality.offsamples = 0
        spec.visual.map.znear, spec.visual.map.zfar = 0.02, 15.0
        spec.stat.extent, spec.stat.center = 4.0, [0, 0, 0]
        self.geom_roles: list[str] = []
        self.bodies: list[str] = []
        self.materials: dict[tuple[Any, ...], str] = {}
        self.backgrounds: dict[int, tuple[str, str]] = {}

    def add_lights(self) -> None:
        """A key light (number 0: ``set_key_light`` dims it), and a fill from the other side."""
        for name, direction, strength in (
            ("key", LIGHT_DIRECTION, KEY_LIGHT),
            ("fill", LIGHT_DIRECTION * [-1, -1, 1], FILL_LIGHT),
        ):
            light = self.spec.worldbody.add_light(name=name, pos=-8 * direction, dir=direction)
            light.directional, light.castshadow = True, False
            light.diffuse, light.ambient, light.specular = [strength] * 3, [0] * 3, [0.25] * 3
        head = self.spec.visual.headlight
        head.ambient, head.diffuse, head.specular = [0.34] * 3, [0.1] * 3, [0] * 3

    def material(
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
        """The name of a material; equal ones are made once."""
        key = (first, kind, second, gloss, alpha, tuple(repeat), uniform)
        if key not in self.materials:
            self.materials[key] = name = f"material{len(self.materials)}"
            image = texture(kind, first, second, rng) if kind else None
            material = self._add_material(name, image)
            material.specular, material.shininess = 0.5 * gloss, 0.3 + 0.5 * gloss
            material.rgba = [*((1, 1, 1) if kind else first), alpha]
            material.texrepeat, material.texuniform = list(repeat), uniform
        return self.materials[key]

    def _add_material(self, name: str, image: Array | None) -> Any:
        material = self.spec.add_material(name=name)
        if image is not None:
            height, width, channels = image.shape
            made = self.spec.add_texture(name=name, width=width, height=height, nchannel=channels)
            made.type = self.mujoco.mjtTexture.mjTEXTURE_2D
            made.data = image.tobytes()
            slots = [""] * int(self.mujoco.mjtTextureRole.mjNTEXROLE)
            slots[int(self.mujoco.mjtTextureRole.mjTEXROLE_RGB)] = name
            material.textures = slots
        return material

    def add_background(self, number: int, rng: np.random.Generator) -> None:
        """Materials of floor and walls, as homes, offices and shops differ by them."""
        kind = _FLOORS[number % len(_FLOORS)]
        wooden = kind == "planks"
        hue = rng.uniform(0.05, 0.1) if wooden else rng.random()
        floor = hsv(
            hue,
            rng.uniform(0.3, 0.5) if wooden else rng.uniform(0.03, 0.16),
            rng.uniform(0.6, 0.85),
        )
        second = hsv(
            hue,
            rng.uniform(0.35, 0.55) if wooden else rng.uniform(0.03, 0.2),
            rng.uniform(0.45, 0.62),
        )
        wall = hsv(rng.random(), rng.uniform(0.03, 0.2), rng.uniform(0.6, 0.9))
        repeat = {"checker": 0.12, "weave": 0.6, "planks": 0.3, "noise": 0.6}.get(kind, 0.4)
        self.backgrounds[number] = (
            self.material(floor, kind, second, 0.1, 1, (repeat, repeat), rng, uniform=True),
            self.material(wall, "noise", hsv(rng.random(), 0.1, 0.8), 0, 1, (4, 4), rng),
        )

    def add_room(self) -> None:
        """Floor, walls, and boxes along them as furniture."""
        floor_material, wall_material = next(iter(self.backgrounds.values()))
        half = WALL_DISTANCE + 1
        self._add_static("floor", "PLANE", size=[half, half, 1]).material = floor_material
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            size = [0.1 if x else WALL_DISTANCE, 0.1 if y else WALL_DISTANCE, 8]
            pos = [x * WALL_DISTANCE, y * WALL_DISTANCE, 8]
            self._add_static("wall", "BOX", size=size, pos=pos).material = wall_material
        rng = rng_for(0, "furniture", *self.backgrounds)
        for i in range(10):
            angle = 2 * np.pi * (i + rng.uniform(-0.3, 0.3)) / 10
            height = rng.uniform(1, 5)
            tint = hsv(rng.random(), rng.uniform(0.1, 0.5), rng.uniform(0.3, 0.8))
            self._add_static(
                "furniture",
                "BOX",
                size=[rng.uniform(0.6, 2.2), 0.6, height / 2],
                pos=[13.8 * np.cos(angle), 13.8 * np.sin(angle), height / 2],
                euler=[0, 0, np.rad2deg(angle) + 90],
                rgba=[*tint, 1],
            )

    def _add_static(self, role: str, shape: str, **settings: Any) -> Any:
        self.geom_roles.append(role)
        kind = getattr(self.mujoco.mjtGeom, f"mjGEOM_{shape}")
        return self.spec.worldbody.add_geom(type=kind, **settings)

    def add_body(
        self, role: str, parts: Sequence[Part], group: int, rng: np.random.Generator
    ) -> None:
        """A movable body with its shadow."""
        body = self.spec.worldbody.add_body(name=role, mocap=True)
        self.bodies.append(role)
        for p in parts:
            name = self.material(
                p.colour, p.texture, p.second_colour, p.gloss, p.alpha, p.repeat, rng
            )
            self._add_mesh(body, p.mesh, group, role).material = name
        # Shadows lie at different heights, so that overlapping ones do not flicker (z-fighting).
        height = 0.003 + 0.0004 * len(self.bodies)
        rectangle, rgba = cast_shadow([p.mesh for p in parts], LIGHT_DIRECTION, height)
        name = f"shadow {role}"
        material = self._add_material(name, rgba)
        material.rgba, material.specular = [1, 1, 1, 0.99], 0
        self._add_mesh(body, rectangle, GROUND, f"shadow:{role}").material = name

    def _add_mesh(self, body: Any, mesh: Mesh, group: int, role: str) -> Any:
        name = f"mesh{len(self.geom_roles)}"
        made = self.spec.add_mesh(name=name)
        made.uservert, made.userface = mesh.vertices.ravel(), mesh.faces.ravel().astype(int)
        made.usertexcoord = mesh.uv.ravel()
        made.inertia = self.mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
        geom = body.add_geom(type=self.mujoco.mjtGeom.mjGEOM_MESH, meshname=name, group=group)
        geom.contype = geom.conaffinity = 0
        self.geom_roles.append(role)
        return geom

    def compile(self, target: Array, occluders: dict[str, Rings]) -> Scene:
        """The finished scene."""
        model = self.spec.compile()
        # Geoms are numbered by body, the world first: the order in which they were added.
        geoms: dict[str, list[int]] = {}
        for i, role in enumerate(self.geom_roles):
            geoms.setdefault(role, []).append(i)
        bodies = {r: int(model.body_mocapid[model.body(r).id]) for r in self.bodies}
        backgrounds = {
            number: (model.material(floor).id, model.material(wall).id)
            for number, (floor, wall) in self.backgrounds.items()
        }
        return Scene(model, target, occluders, geoms, bodies, backgrounds)
