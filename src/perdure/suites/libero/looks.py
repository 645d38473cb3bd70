"""Where the bodies of a scene come from. A look gives MJCF; the scene is put together elsewhere.

A look's models follow a few rules, so that a scene means the same in each. A thing's model has one
body ``object`` in a body without name; that outer body has the sites ``bottom_site`` and
``top_site`` (how far below and above its origin it reaches) and ``horizontal_radius_site``. Geoms
of group 0 collide and are not seen, those of group 1 are seen. The regions that task files speak
of are box sites, and joints carry the names of the official models.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection
from typing import Literal, Protocol

from perdure.errors import UnknownName
from perdure.suites.libero import assets, mjcf, primitive
from perdure.suites.libero.categories import CATEGORIES, category
from perdure.suites.libero.mjcf import Element
from perdure.suites.libero.workspaces import Workspace

RobotPart = Literal["arm", "mount", "gripper"]


class Look(Protocol):
    """A source of models; each call gives a tree of its own."""

    name: str
    lifts: bool
    """Whether what a seed places in a surface is lifted out of it. (Upstream's floor scenes put
    things centimetres deep, and leave it to the physics to push them out.)"""

    def things(self) -> Collection[str]:
        """The categories that it has models of."""

    def arena(self, workspace: Workspace) -> Element:
        """Room, surface, lights and cameras."""

    def thing(self, name: str) -> Element:
        """A fixture or an object of the category of this name."""

    def robot(self, part: RobotPart) -> Element:
        """A part of the robot."""


class OfficialLook:
    """The meshes and textures of the published benchmark, from its packages."""

    name = "official"
    lifts = False
    robots = {  # noqa: RUF012
        "arm": "robots/panda/robot.xml",
        "mount": "mounts/rethink_mount.xml",
        "gripper": "grippers/panda_gripper.xml",
    }

    def things(self) -> Collection[str]:
        """All categories."""
        return CATEGORIES

    def arena(self, workspace: Workspace) -> Element:
        """The arena's file with the textures of the workspace."""
        tree = mjcf.load(assets.root("assets") / workspace.scene, assets.check)
        for name, style in (("texplane", workspace.floor), ("tex-wall", workspace.wall)):
            texture = mjcf.named(tree, "texture", name)
            texture.set("file", str(assets.file("assets", f"textures/{style}")))
        return tree

    def thing(self, name: str) -> Element:
        """A category's file."""
        return mjcf.load(assets.root("assets") / category(name).file, assets.check)

    def robot(self, part: RobotPart) -> Element:
        """The Panda, its pedestal and its gripper."""
        return mjcf.load(assets.root("robots") / self.robots[part], assets.check)


class PrimitiveLook:
    """Our own object library, generated in code: plain colours, few faces, and no files."""

    name = "primitive"
    lifts = True

    def things(self) -> Collection[str]:
        """Those that the 130 tasks use."""
        return primitive.THINGS

    def arena(self, workspace: Workspace) -> Element:
        """A room of boxes."""
        return primitive.room(workspace)

    def thing(self, name: str) -> Element:
        """A category's model."""
        if name not in primitive.THINGS:
            raise UnknownName("category of LIBERO's primitive look", name, primitive.THINGS)
        return copy.deepcopy(_generated(name))

    def robot(self, part: RobotPart) -> Element:
        """The Panda, its pedestal and its gripper."""
        return primitive.PARTS[part]()


@functools.cache
def _generated(name: str) -> Element:
    return primitive.THINGS[name]().root


LOOKS: dict[str, Look] = {"primitive": PrimitiveLook(), "official": OfficialLook()}
DEFAULT = "primitive"
"""The one that needs nothing but this package."""
INITIAL_STATES = {"primitive": "numbered", "official": "official"}
"""How episodes begin if nothing is said; the official states come with the official look's files."""


def look(name: str) -> Look:
    """The look of this name."""
    if name not in LOOKS:
        raise UnknownName("look of LIBERO", name, LOOKS)
    return LOOKS[name]
