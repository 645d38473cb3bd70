"""Pictures of a scene as upstream draws them, to the pixel on the same graphics.

What can be seen is a model of its own: textures and fine meshes, two hundred megabytes of them. It is
made for the first picture, and all environments whose scenes look alike draw with the same one.
"""

from __future__ import annotations

import weakref
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.errors import EnvironmentFault
from perdure.suites._offscreen import offscreen
from perdure.suites.libero.kept import compiled
from perdure.suites.libero.lightened import light_model
from perdure.suites.libero.simulation import Simulation
from perdure.types import Array

LEAST = (640, 480)
"""Upstream's drawing surface; a larger one only for larger pictures."""
MOST_GEOMS = 1000
UNSEEN = 5
"""A group of geoms that is not drawn."""


STILL = np.zeros(3)


class Renderer:
    """Draws scenes that look alike."""

    def __init__(self, xml: str, size: int, rendering: str = "exact") -> None:
        fast = rendering == "fast"
        self.model = light_model(xml) if fast else compiled(xml)
        self.data = mujoco.MjData(self.model)
        least = LEAST if rendering == "exact" else (0, 0)
        width, height = max(least[0], size), max(least[1], size)
        screen = self.model.vis.global_
        screen.offwidth, screen.offheight = width, height
        if not self.model.light_castshadow.any():
            # Room for shadows, 64 MB of it, that nothing casts.
            self.model.vis.quality.shadowsize = 0
        self.context = offscreen(width, height)
        self.context.make_current()
        self.scene = mujoco.MjvScene(self.model, MOST_GEOMS)
        self.drawn = mujoco.MjrContext(self.model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.drawn)
        self.options, self.view = mujoco.MjvOption(), mujoco.MjvCamera()
        self.options.geomgroup[0] = 0  # What collides is not seen.
        self.nothing = mujoco.MjvPerturb()
        self.view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        names = [self.model.camera(i).name for i in range(self.model.ncam)]
        self.cameras = {name: i for i, name in enumerate(names)}
        self.places, self.in_room = self.model.cam_pos.copy(), self.model.cam_bodyid == 0
        head = self.model.vis.headlight
        parts = [head.ambient, head.diffuse, head.specular, self.model.light_ambient]
        parts += [self.model.light_diffuse, self.model.light_specular]
        self.lamps = [(part, part.copy()) for part in parts]
        """All there is of light, and as the look has it."""
        self.groups = self.model.geom_group.copy()
        self.reach = np.where(self.model.geom_rbound > 0, self.model.geom_rbound, np.inf)
        """Of geoms from their middles; planes go on for ever."""
        # Also when the process ends: then before what they need is gone.
        weakref.finalize(self, _free, self.drawn, self.context)

    def show(self, simulation: Simulation, camera_shift: Array = STILL, light: float = 1.0) -> None:
        """Take over where everything was when sensors were last read, with cameras of the room moved
        and lights as bright as they are to be."""
        reading, model, data = simulation.reading, self.model, self.data
        assert reading is not None
        numbers = list(simulation.fixtures.values())
        model.body_pos[numbers] = simulation.model.body_pos[numbers]
        model.body_quat[numbers] = simulation.model.body_quat[numbers]
        for name, site in simulation.lights.items():
            model.site(site).rgba[3] = float(simulation.lit[name])
        # Others draw with the same model: what one moved, the next puts back.
        model.cam_pos[:] = self.places + np.where(self.in_room[:, None], camera_shift, 0.0)
        for lamp, own in self.lamps:
            lamp[:] = own * light
        data.qpos[:] = reading.posed
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)

    def in_sight(self, camera: str) -> Array:
        """Which geoms may be in a camera's square picture; the others are not worth drawing."""
        number = self.cameras[camera]
        axes = self.data.cam_xmat[number].reshape(3, 3)
        x, y, z = ((self.data.geom_xpos - self.data.cam_xpos[number]) @ axes).T
        half = np.deg2rad(self.model.cam_fovy[number]) / 2
        # Along the sight, how far beyond a side of the pyramid of sight.
        beyond = np.maximum(np.abs(x), np.abs(y)) * np.cos(half) + z * np.sin(half)
        seen: Array = (beyond < self.reach) & (z < self.reach)
        return seen

    def picture(self, camera: str, size: int) -> Array:
        """What a camera sees, its first row at the bottom, as OpenGL has it."""
        if camera not in self.cameras:
            known = ", ".join(self.cameras)
            raise EnvironmentFault(f"the scene has no camera {camera!r}; it has {known}")
        self.context.make_current()
        self.view.fixedcamid = self.cameras[camera]
        self.model.geom_group[:] = np.where(self.in_sight(camera), self.groups, UNSEEN)
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(
            self.model, self.data, self.options, self.nothing, self.view, everything, self.scene
        )
        frame = mujoco.MjrRect(0, 0, size, size)
        mujoco.mjr_render(frame, self.scene, self.drawn)
        seen = np.empty((size, size, 3), np.uint8)
        mujoco.mjr_readPixels(seen, None, frame, self.drawn)
        return seen


def _free(drawn: Any, context: Any) -> None:
    context.make_current()
    drawn.free()
    context.free()


_renderers: weakref.WeakValueDictionary[tuple[str, int, str], Renderer] = (
    weakref.WeakValueDictionary()
)


def renderer(simulation: Simulation, size: int, rendering: str = "exact") -> Renderer:
    """The one that draws scenes like this; it is let go with the last who holds it."""
    least = LEAST[1] if rendering == "exact" else 0
    key = simulation.scene.visual_xml, max(least, size), rendering
    found = _renderers.get(key)
    if found is None:
        found = _renderers[key] = Renderer(*key)
    return found


def turned(picture: Array, orientation: str) -> Array:
    """A picture with its first row at the bottom, as a task's settings ask for it."""
    if orientation == "upstream":
        return picture
    return picture[::-1].copy() if orientation == "upright" else picture[::-1, ::-1].copy()
