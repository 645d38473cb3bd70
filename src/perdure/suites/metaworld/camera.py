"""Pictures of a scene, by the cheap way: no shadows, reflections, sky or multisampling.

Those cost twelve times as much as all the rest and show a robot nothing. A camera has a model of
its own with all that can be seen; where everything is, it copies from the simulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.errors import EnvironmentFault
from perdure.suites._offscreen import offscreen
from perdure.suites.metaworld import models
from perdure.types import Array

if TYPE_CHECKING:
    from perdure.suites.metaworld.fast_env import FastEnv

COSTLY = (
    mujoco.mjtRndFlag.mjRND_SHADOW,
    mujoco.mjtRndFlag.mjRND_REFLECTION,
    mujoco.mjtRndFlag.mjRND_SKYBOX,
    mujoco.mjtRndFlag.mjRND_HAZE,
)


class Camera:
    """One of a task's cameras: corner, corner2, corner3, corner4, topview, behindGripper or
    gripperPOV. With ``hide_goal`` the marks of goals are not drawn; what the goal is about, such as a
    drawer, is."""

    def __init__(
        self,
        cls: type[Any],
        name: str,
        size: int,
        hide_goal: bool = False,
        position: tuple[float, float, float] | None = None,
    ) -> None:
        self.model = models.load(cls, visual=True)
        names = [self.model.camera(i).name for i in range(self.model.ncam)]
        if name not in names:
            raise EnvironmentFault(f"Meta-World has no camera {name!r}; it has {', '.join(names)}")
        self.data, self.size, self.hide_goal = mujoco.MjData(self.model), size, hide_goal
        if position is not None:
            self.model.cam_pos[self.model.camera(name).id] = position
        if hide_goal:
            for k in range(self.model.nsite):
                if "goal" in self.model.site(k).name:
                    self.model.site_rgba[k, 3] = 0.0
        quality, screen = self.model.vis.quality, self.model.vis.global_
        quality.offsamples = quality.shadowsize = 0
        screen.offwidth = screen.offheight = size
        self.context = offscreen(size, size)
        self.context.make_current()
        self.scene = mujoco.MjvScene(self.model, 1000)
        for flag in COSTLY:
            self.scene.flags[flag] = 0
        self.drawn = mujoco.MjrContext(self.model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.drawn)
        self.options, self.view = mujoco.MjvOption(), mujoco.MjvCamera()
        self.view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self.view.fixedcamid = self.model.camera(name).id
        self.frame = mujoco.MjrRect(0, 0, size, size)
        # Meta-World's corner cameras are mounted upside down.
        mujoco.mj_forward(self.model, self.data)
        self.upright = self.data.camera(name).xmat.reshape(3, 3)[2, 1] > -0.1

    def picture(self, robot: FastEnv) -> Array:
        """What it sees of a robot's scene now: rows, columns and colours."""
        model, data = self.model, self.data
        model.body_pos[:], model.site_pos[:] = robot.model.body_pos, robot.model.site_pos
        data.qpos[:] = robot.data.qpos
        data.mocap_pos[:], data.mocap_quat[:] = robot.data.mocap_pos, robot.data.mocap_quat
        mujoco.mj_forward(model, data)
        # Upstream moves these marks after its physics, and where the model has them is elsewhere.
        for name, place in robot._target_site_config:
            data.site(name).xpos = place[:3]
            if self.hide_goal:
                model.site(name).rgba[3] = 0.0
        self.context.make_current()
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(
            model, data, self.options, None, self.view, everything.value, self.scene
        )
        for flag in COSTLY:
            self.scene.flags[flag] = 0
        mujoco.mjr_render(self.frame, self.scene, self.drawn)
        seen = np.empty((self.size, self.size, 3), np.uint8)
        mujoco.mjr_readPixels(seen, None, self.frame, self.drawn)
        # OpenGL's rows go upwards.
        return seen[::-1].copy() if self.upright else seen[:, ::-1].copy()

    def close(self) -> None:
        """Free what the graphics hold."""
        self.drawn.free()
        self.context.free()
