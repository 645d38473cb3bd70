"""A task's scene as one MuJoCo model: arena, robot, objects, fixtures, and what can be asked of them.

The tree is that which robosuite 1.4 would build for the task, element by element, so that the
compiled physics is the same.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perdure.errors import EnvironmentFault
from perdure.suites.libero import mjcf
from perdure.suites.libero.categories import Category, category
from perdure.suites.libero.looks import DEFAULT, Look, look
from perdure.suites.libero.mjcf import Element, text
from perdure.suites.libero.problem import Problem, Region
from perdure.suites.libero.workspaces import Workspace, workspace

BASE = """
<mujoco model="base">
  <compiler angle="radian" inertiagrouprange="0 0"/>
  <option impratio="20" cone="elliptic" density="1.2" viscosity="0.00002" timestep="0.002"/>
  <size nconmax="5000" njmax="5000"/>
  <visual><map znear="0.001"/></visual>
  <asset/>
  <actuator/>
  <worldbody/>
</mujoco>
"""
DAMPING = (0.1, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01)
"""Of the arm's joints."""
ZONE_HEIGHT = 0.007
"""Half the height of a region of the work surface."""


@dataclass(frozen=True)
class Body:
    """A fixture or an object in the model."""

    name: str
    category: Category
    movable: bool
    root: str
    """Its outermost body."""
    joints: tuple[str, ...]
    """Its own and, last, the free one of an object."""
    geoms: tuple[str, ...]
    """Those that count as touching."""
    bottom: float
    top: float
    """How far it reaches below and above its origin."""
    radius: float

    @property
    def light(self) -> str | None:
        """A site that is seen while it is switched on."""
        return f"{self.name}_{self.category.light}" if self.category.light else None


@dataclass(frozen=True)
class Zone:
    """A region as a box: a site of a body, or a part of the work surface."""

    name: str
    parent: str | None
    """None for the work surface."""
    joints: tuple[str, ...]
    """Those that move it, as far as they count as its own."""
    size: tuple[float, float, float]


@dataclass(frozen=True)
class Scene:
    """The model of a task before it is compiled."""

    problem: Problem
    workspace: Workspace
    xml: str
    """All that moves, touches and can be asked for, and nothing that is only seen."""
    visual_xml: str
    """All that can be seen, in the same bodies; tasks with the same things in the same kind of scene
    have one in common."""
    bodies: Mapping[str, Body]
    """Objects first, then fixtures, as they stand in the model."""
    zones: Mapping[str, Zone]
    lifts: bool = False
    """See :class:`~perdure.suites.libero.looks.Look`."""


def build(problem: Problem, look_name: str = DEFAULT) -> Scene:
    """Put a task's scene together."""
    space, source = workspace(problem.name), look(look_name)
    root = ET.fromstring(BASE.strip())
    arena = _arena(source, space)
    zones: dict[str, Zone] = {}
    things: list[tuple[Body, Element, Element]] = []
    for thing in problem.objects:
        things.append(_thing(source, thing.name, thing.category, movable=True))
    for thing in problem.fixtures:
        if thing.category != space.category:
            things.append(_thing(source, thing.name, thing.category, movable=False))
    bodies = {body.name: body for body, _, _ in things}
    sites: list[Element] = []
    for region in problem.regions:
        if space.name in region.full_name:
            zone, site = _surface_zone(space, region)
            sites.append(site)
            zones[zone.name] = zone
        else:
            for body, tree, _ in things:
                found = _own_zone(body, tree, region.full_name)
                if found is not None:
                    zones[found.name] = found
    mjcf.merge(root, arena)
    mjcf.section(root, "visual").extend(list(mjcf.section(arena, "visual")))
    mjcf.merge(root, _robot(source, space))
    for _, tree, inner in things:
        mjcf.merge_assets(root, tree)
        mjcf.section(root, "worldbody").append(inner)
    for relation in (*problem.init, *problem.goal):
        for name in relation.names:
            if (
                name not in bodies
                and name not in zones
                and problem.category(name) != space.category
            ):
                raise EnvironmentFault(f"{relation}: nothing in the scene is called {name}")
    visual = ET.tostring(root, encoding="unicode")
    mjcf.named(root, "body", space.body).extend(sites)
    _strip_visuals(root)
    xml = ET.tostring(root, encoding="unicode")
    return Scene(problem, space, xml, visual, bodies, zones, source.lifts)


def _arena(source: Look, space: Workspace) -> Element:
    arena = source.arena(space)
    if space.table is not None:
        _set_table(mjcf.named(arena, "body", space.body), space)
    world = mjcf.section(arena, "worldbody")
    for name, position, turn in space.cameras:
        camera = next((c for c in world.iter("camera") if c.get("name") == name), None)
        if camera is None:
            camera = ET.SubElement(world, "camera", name=name)
        camera.set("pos", text(position))
        camera.set("quat", text(turn))
    return arena


def _set_table(body: Element, space: Workspace) -> None:
    assert space.table is not None
    half = np.array(space.table.size) / 2
    body.set("pos", text(np.array([0, 0, -half[2]]) + space.offset))
    geoms = {g.get("name"): g for g in body.iter("geom")}
    for name in ("table_collision", "table_visual"):
        geoms[name].set("size", text(half))
    geoms["table_collision"].set("friction", text(space.table.friction))
    mjcf.named(body, "site", "table_top").set("pos", text((0, 0, half[2])))
    height = (space.offset[2] - half[2]) / 2
    for k, (dx, dy) in enumerate(((0.1, 0.1), (-0.1, 0.1), (-0.1, -0.1), (0.1, -0.1)), 1):
        leg = geoms[f"table_leg{k}_visual"]
        # Legs stand 10 cm from the edges.
        x, y = np.sign(dx) * half[0] - dx, np.sign(dy) * half[1] - dy
        leg.set("pos", text((x, y, -height)))
        leg.set("size", text((0.025, height)))


def _robot(source: Look, space: Workspace) -> Element:
    arm = mjcf.prefixed(source.robot("arm"), "robot0_")
    for k, joint in enumerate(arm.iterfind("worldbody//joint")):
        joint.attrib.setdefault("frictionloss", "0.1")
        joint.attrib.setdefault("armature", text((5.0 / (k + 1),)))
        joint.set("damping", text((DAMPING[k],)))
    base = arm.find("worldbody/body")
    assert base is not None
    base.set("pos", text(space.base))
    if space.mounted:
        mount = mjcf.prefixed(source.robot("mount"), "mount0_")
        foot = mount.find("worldbody/body")
        assert foot is not None
        foot.set("pos", "0.0 0.0 0.01")
        mjcf.merge(arm, mount, base)
    gripper = mjcf.prefixed(source.robot("gripper"), "gripper0_")
    for site in gripper.iter("site"):
        # Marks for people who look at the robot in a window.
        site.set("rgba", " ".join([*site.get("rgba", "0.5 0.5 0.5 1").split()[:3], "0"]))
    mjcf.merge(arm, gripper, mjcf.named(arm, "body", "robot0_right_hand"))
    return arm


def _thing(
    source: Look, name: str, category_name: str, movable: bool
) -> tuple[Body, Element, Element]:
    """What can be asked of a body, its model, and the part of it that goes into the scene."""
    kind, prefix = category(category_name), f"{name}_"
    tree = source.thing(category_name)
    outer = tree.find("worldbody/body")
    inner = None if outer is None else outer.find("body[@name='object']")
    if outer is None or inner is None:
        raise EnvironmentFault(f"the model of {category_name} has no body 'object'")
    for k, geom in enumerate(list(inner.iter("geom"))):
        geom.attrib.setdefault("name", f"g{k}")
    if movable:
        inner.append(ET.Element("joint", type="free", damping="0.0005", name="joint0"))
    joints = [j.get("name", "") for j in inner.iter("joint")]
    geoms = [g.get("name", "") for g in inner.iter("geom") if g.get("group", "0") == "0"]
    offsets = {s.get("name", ""): mjcf.numbers(s.get("pos")) for s in outer.findall("site")}
    mjcf.prefixed(tree, prefix)
    inner.set("name", f"{prefix}main")

    def own(names: list[str]) -> tuple[str, ...]:
        return tuple(n if n.startswith(prefix) else prefix + n for n in names)

    body = Body(
        name=name,
        category=kind,
        movable=movable,
        root=f"{prefix}main",
        joints=own(joints),
        geoms=own(geoms),
        bottom=float(offsets["bottom_site"][2]),
        top=float(offsets["top_site"][2]),
        radius=float(offsets["horizontal_radius_site"][0]),
    )
    return body, tree, inner


def _surface_zone(space: Workspace, region: Region) -> tuple[Zone, Element]:
    if not region.ranges:
        raise EnvironmentFault(f"region {region.full_name} is on {space.name}, but has no :ranges")
    r = region.ranges[0]
    size = ((r.x1 - r.x0) / 2, (r.y1 - r.y0) / 2, ZONE_HEIGHT)
    dx, dy, dz = space.zone_offset
    middle = ((r.x1 + r.x0) / 2 + dx, (r.y1 + r.y0) / 2 + dy, dz)
    site = ET.Element(
        "site",
        name=region.full_name,
        type="box",
        pos=text(middle),
        quat="1 0 0 0",
        size=text(size),
        rgba=text(region.rgba or (0, 0, 1, 0)),
    )
    return Zone(region.full_name, None, (), size), site


def _own_zone(body: Body, tree: Element, name: str) -> Zone | None:
    """A site of a body as a region.

    Its joints are those of the innermost body that the search comes to; it ends at the first body
    without sites. (Upstream's rule, which decides what "open" means for a region.)
    """
    found: Zone | None = None
    outer = tree.find("worldbody/body")
    assert outer is not None
    for part in outer.findall(".//body"):
        sites = part.findall(".//site")
        if not sites:
            break
        joints = tuple(j.get("name", "") for j in part.findall("joint") if j.get("type") != "free")
        for site in sites:
            if site.get("name") == name:
                x, y, z = mjcf.numbers(site.get("size"))
                found = Zone(name, body.name, joints, (float(x), float(y), float(z)))
    return found


def _strip_visuals(root: Element) -> None:
    """Take away geoms that touch nothing and weigh nothing, and all that belongs to looks.

    The dynamics are the same to the bit, and compiling needs no mesh but the robot's few.
    """
    needed: set[str | None] = set()
    for parent in list(root.iter()):
        for geom in parent.findall("geom"):
            passive = geom.get("contype") == "0" and geom.get("conaffinity") == "0"
            # Geoms of group 0 have mass.
            if passive and geom.get("group", "0") != "0":
                parent.remove(geom)
            else:
                geom.attrib.pop("material", None)
                needed.add(geom.get("mesh"))
    assets = mjcf.section(root, "asset")
    for asset in list(assets):
        if asset.tag in ("texture", "material") or asset.get("name") not in needed:
            assets.remove(asset)
