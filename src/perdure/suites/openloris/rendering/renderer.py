"""Off-screen rendering of a scene with MuJoCo: RGB, depth, and pixels by geom."""

from __future__ import annotations

import ctypes.util
import importlib
import os
from typing import Any

import numpy as np

from perdure.suites.openloris.rendering.camera import Pose
from perdure.suites.openloris.rendering.scene import (
    DISTRACTOR,
    GROUND,
    METRES_PER_UNIT,
    OCCLUDER,
    TARGET,
    Scene,
    import_mujoco,
)
from perdure.types import Array

MAX_GEOMS = 400
VISIBLE_GROUPS = (GROUND, TARGET, OCCLUDER, DISTRACTOR)


def offscreen_context(width: int, height: int) -> Any:
    """An OpenGL context without a display: $MUJOCO_GL, else EGL if installed, else OSMesa."""
    import_mujoco()
    installed = "egl" if ctypes.util.find_library("EGL") else "osmesa"
    kind = os.environ.get("MUJOCO_GL") or installed
    # MuJoCo's own choice is made at its first import, which may have been before MUJOCO_GL was set.
    context = importlib.import_module(f"mujoco.{kind}").GLContext(width, height)
    context.make_current()
    return context


class Renderer:
    """Renders one scene. Raw depth is OpenGL's, reversed: 1 at the near plane, 0 at the far one."""

    def __init__(self, scene: Scene, width: int, height: int) -> None:
        self.mujoco = m = import_mujoco()
        self.scene = scene
        self.gl = offscreen_context(width, height)
        self.data = m.MjData(scene.model)
        self.context = m.MjrContext(scene.model, m.mjtFontScale.mjFONTSCALE_100)
        m.mjr_setBuffer(m.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
        self.context.readDepthMap = m.mjtDepthMap.mjDEPTH_ZEROFAR
        self.resize(width, height)
        self._camera, self._options = m.MjvCamera(), m.MjvOption()
        self._camera.type = m.mjtCamera.mjCAMERA_FREE
        self._visual = m.MjvScene(scene.model, maxgeom=MAX_GEOMS)
        self._visual.flags[m.mjtRndFlag.mjRND_SHADOW] = False
        self._visual.flags[m.mjtRndFlag.mjRND_REFLECTION] = False
        self._visual.flags[m.mjtRndFlag.mjRND_SKYBOX] = False
        self._visual.flags[m.mjtRndFlag.mjRND_HAZE] = False
        self._geom_orders: dict[bytes, Array] = {}

    def resize(self, width: int, height: int, supersampling: int = 1) -> None:
        """Render frames of this size from now on, with so many samples along each side of a pixel.

        ``self.width`` and ``self.height`` count samples.
        """
        self.supersampling = supersampling
        self.width, self.height = width * supersampling, height * supersampling
        self.viewport = self.mujoco.MjrRect(0, 0, self.width, self.height)

    def close(self) -> None:
        """Free the OpenGL context; OSMesa complains at exit otherwise."""
        self.gl.make_current()
        self.context.free()
        self.gl.free()

    def move(self, role: str, x: float, y: float) -> None:
        """Move a movable body on the ground; it takes effect with ``update``."""
        self.data.mocap_pos[self.scene.bodies[role]] = [x, y, 0]

    def update(self) -> None:
        """Apply moves and changes of lights, and make this renderer's context the current one."""
        self.gl.make_current()
        self.mujoco.mj_kinematics(self.scene.model, self.data)
        self.mujoco.mj_camlight(self.scene.model, self.data)

    def render(self, pose: Pose) -> tuple[Array, Array]:
        """RGB and raw depth of everything that is visible."""
        rgb, depth = self.empty_rgb(), self.empty_depth()
        self.draw(pose, VISIBLE_GROUPS)
        self.read(rgb, depth)
        return rgb[::-1], depth[::-1]

    def render_depth(self, pose: Pose, group: int) -> Array:
        """Raw depth of one group of geoms alone; 0 where there is none."""
        depth = self.empty_depth()
        self.draw(pose, (group,), segmentation=True)
        self.read(None, depth)
        return depth[::-1]

    def count_pixels(self, pose: Pose) -> Array:
        """For each geom of the model, how many samples show it."""
        rgb = self.empty_rgb()
        self.draw(pose, VISIBLE_GROUPS, segmentation=True)
        self.read(rgb, None)
        # There are far fewer than 65,536 geoms: two bytes of the colour hold their numbers.
        number = rgb[..., 0].ravel() + (rgb[..., 1].ravel().astype(np.uint16) << 8)
        counts = np.bincount(number, minlength=self._visual.ngeom + 1)
        out: Array = np.zeros(self.scene.model.ngeom, int)
        out[self._geom_order()] = counts[1 : self._visual.ngeom + 1]
        return out

    def depth_in_metres(self, raw: Array) -> Array:
        """Raw depth in metres."""
        m = self.scene.model
        near, far = m.vis.map.znear * m.stat.extent, m.vis.map.zfar * m.stat.extent
        out: Array = near * far / (near + raw * (far - near)) * METRES_PER_UNIT
        return out

    def empty_rgb(self) -> Array:
        """An array for ``read`` to fill."""
        return np.empty((self.height, self.width, 3), np.uint8)

    def empty_depth(self) -> Array:
        """An array for ``read`` to fill."""
        return np.empty((self.height, self.width), np.float32)

    def draw(self, pose: Pose, groups: tuple[int, ...], segmentation: bool = False) -> None:
        """Draw some groups of geoms into the context, in colour or each geom in its number's."""
        m = self.mujoco
        self._options.geomgroup[:] = 0
        self._options.geomgroup[list(groups)] = 1
        # MuJoCo measures a free camera by the direction in which it looks.
        self._camera.azimuth, self._camera.elevation = pose.azimuth + 180, -pose.elevation
        self._camera.distance, self._camera.lookat[:] = pose.distance, pose.lookat
        for flag in (m.mjtRndFlag.mjRND_SEGMENT, m.mjtRndFlag.mjRND_IDCOLOR):
            self._visual.flags[flag] = segmentation
        m.mjv_updateScene(
            self.scene.model,
            self.data,
            self._options,
            None,
            self._camera,
            int(m.mjtCatBit.mjCAT_ALL),
            self._visual,
        )
        m.mjr_render(self.viewport, self._visual, self.context)

    def read(self, rgb: Array | None, depth: Array | None) -> None:
        """Read back what was drawn last, bottom row first."""
        self.mujoco.mjr_readPixels(rgb, depth, self.viewport, self.context)

    def _geom_order(self) -> Array:
        """The model's geoms in drawing order; cached, as asking MuJoCo for each is slow."""
        groups = self.scene.model.geom_group.tobytes()
        if groups not in self._geom_orders:
            drawn = self._visual.geoms[: self._visual.ngeom]
            self._geom_orders[groups] = np.array([g.objid for g in drawn])
        return self._geom_orders[groups]
