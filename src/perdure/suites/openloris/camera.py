"""Taking pictures: where the camera stands, and what its sensor makes of the light."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perdure.suites.openloris.room import (
    FOV,
    GROUND,
    OCCLUDER,
    OTHERS,
    TARGET,
    UNIT,
    Room,
    screen,
    simulator,
)
from perdure.types import Array

FOCAL = 0.5 / np.tan(np.deg2rad(FOV / 2))
"""Focal length in frame heights."""


@dataclass(frozen=True, slots=True)
class Pose:
    """A camera that looks from ``azimuth`` and ``elevation`` (degrees) at a point."""

    azimuth: float
    elevation: float
    distance: float
    at: tuple[float, float, float]

    @property
    def axes(self) -> tuple[Array, Array, Array]:
        """Unit vectors to the right, upward and forward."""
        a, e = np.deg2rad(self.azimuth), np.deg2rad(self.elevation)
        forward = -np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        # right × forward, written out: numpy's cross costs more than the projection.
        f, s, c = forward, right[0], right[1]
        up = np.array([c * f[2], -s * f[2], s * f[1] - c * f[0]])
        return right, up, forward

    @property
    def place(self) -> Array:
        """Where the camera is."""
        here: Array = np.array(self.at) - self.distance * self.axes[2]
        return here


def project(points: Array, pose: Pose, width: int, height: int) -> Array:
    """Points as (column, row, depth)."""
    right, up, forward = pose.axes
    off = points - pose.place
    z = off @ forward
    f = FOCAL * height
    return np.stack([width / 2 + f * (off @ right) / z, height / 2 - f * (off @ up) / z, z], -1)


def aim(
    points: Array,
    azimuth: float,
    elevation: float,
    size: float,
    offset: Array,
    width: int,
    height: int,
) -> Pose:
    """The pose from which the points' box is ``size`` frame widths long, ``offset`` from the middle.

    ``offset`` is in frame widths to the right and downward.
    """
    middle = (points.min(0) + points.max(0)) / 2
    distance = FOCAL * height / (size * width)
    pose = Pose(azimuth, elevation, distance, (0.0, 0.0, 0.0))
    right, up, _ = pose.axes
    centre = middle
    for _ in range(6):
        pose = Pose(
            azimuth, elevation, distance, (float(centre[0]), float(centre[1]), float(centre[2]))
        )
        seen = project(points, pose, width, height)[:, :2]
        low, high = seen.min(0), seen.max(0)
        # A point at the box's middle is moved to where it is wanted.
        off = (low + high) / 2 - [width / 2, height / 2] - np.asarray(offset) * width
        per_pixel = distance / (FOCAL * height)
        centre = centre + per_pixel * (off[0] * right - off[1] * up)
        distance *= (high - low).max() / (size * width)
    return pose


class Camera:
    """A renderer for one room at one size of frame."""

    def __init__(self, room: Room, width: int, height: int) -> None:
        self.mujoco = m = simulator()
        self.room, self.width, self.height = room, width, height
        self.gl = screen(width, height)
        self.data = m.MjData(room.model)
        self.scene = m.MjvScene(room.model, maxgeom=400)
        self.context = m.MjrContext(room.model, m.mjtFontScale.mjFONTSCALE_100)
        m.mjr_setBuffer(m.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
        self.context.readDepthMap = m.mjtDepthMap.mjDEPTH_ZEROFAR
        self.rect = m.MjrRect(0, 0, width, height)
        self.free, self.option = m.MjvCamera(), m.MjvOption()
        self.free.type = m.mjtCamera.mjCAMERA_FREE
        self.scene.flags[m.mjtRndFlag.mjRND_SHADOW] = False
        self.scene.flags[m.mjtRndFlag.mjRND_REFLECTION] = False
        self.scene.flags[m.mjtRndFlag.mjRND_SKYBOX] = False
        self.scene.flags[m.mjtRndFlag.mjRND_HAZE] = False

    def close(self) -> None:
        """Free the renderer; OSMesa complains at exit otherwise."""
        self.gl.make_current()
        self.context.free()
        self.gl.free()

    def place(self, role: str, x: float, y: float) -> None:
        """Stand a movable thing on the ground here."""
        self.data.mocap_pos[self.room.bodies[role]] = [x, y, 0]

    def settle(self) -> None:
        """Make moved things take their places."""
        self.gl.make_current()
        self.mujoco.mj_kinematics(self.room.model, self.data)
        self.mujoco.mj_camlight(self.room.model, self.data)

    def picture(self, pose: Pose) -> tuple[Array, Array]:
        """Colours and raw depth of all that is there."""
        rgb, depth = np.empty((self.height, self.width, 3), np.uint8), self._depth()
        self._render(pose, (GROUND, TARGET, OCCLUDER, OTHERS), False)
        self.mujoco.mjr_readPixels(rgb, depth, self.rect, self.context)
        return rgb[::-1], depth[::-1]

    def depth(self, pose: Pose, group: int) -> Array:
        """Raw depth of one group alone; 0 where there is nothing."""
        depth = self._depth()
        self._render(pose, (group,), True)
        self.mujoco.mjr_readPixels(None, depth, self.rect, self.context)
        return depth[::-1]

    def identity(self, pose: Pose) -> Array:
        """The number of the geom seen in each pixel, or −1."""
        rgb = np.empty((self.height, self.width, 3), np.uint8)
        self._render(pose, (GROUND, TARGET, OCCLUDER, OTHERS), True)
        self.mujoco.mjr_readPixels(rgb, None, self.rect, self.context)
        # There are far fewer than 65,536 geoms: two bytes of the colour hold their numbers.
        number = rgb[::-1, :, 0] + (rgb[::-1, :, 1].astype(np.uint16) << 8)
        known = np.full(self.scene.ngeom + 1, -1, np.int32)
        for g in self.scene.geoms[: self.scene.ngeom]:
            if g.segid >= 0:
                known[g.segid + 1] = g.objid
        out: Array = known[number]
        return out

    def metres(self, raw: Array) -> Array:
        """Raw depth in metres."""
        m = self.room.model
        near, far = m.vis.map.znear * m.stat.extent, m.vis.map.zfar * m.stat.extent
        # Depth is stored reversed: 1 at the near plane, 0 at the far one.
        out: Array = near * far / (near + raw * (far - near)) * UNIT
        return out

    def _depth(self) -> Array:
        return np.empty((self.height, self.width), np.float32)

    def _render(self, pose: Pose, groups: tuple[int, ...], plain: bool) -> None:
        m = self.mujoco
        self.option.geomgroup[:] = 0
        self.option.geomgroup[list(groups)] = 1
        # MuJoCo measures a free camera by the direction in which it looks.
        self.free.azimuth, self.free.elevation = pose.azimuth + 180, -pose.elevation
        self.free.distance, self.free.lookat[:] = pose.distance, pose.at
        for flag in (m.mjtRndFlag.mjRND_SEGMENT, m.mjtRndFlag.mjRND_IDCOLOR):
            self.scene.flags[flag] = plain
        m.mjv_updateScene(
            self.room.model,
            self.data,
            self.option,
            None,
            self.free,
            int(m.mjtCatBit.mjCAT_ALL),
            self.scene,
        )
        m.mjr_render(self.rect, self.scene, self.context)


@dataclass(frozen=True, slots=True)
class Light:
    """A level of illumination: the lamp's strength, what the camera makes of it, and its grain."""

    lamp: float
    exposure: tuple[float, float]
    """Mean luminance that automatic exposure reaches at this light, between these."""
    grain: float
    """Standard deviation of the noise at mid grey, of 255."""
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)


class Sensor:
    """Exposure, tint and noise. Noise comes from one large tile, shifted for every frame."""

    TILE = (800, 1400)

    def __init__(self, rng: np.random.Generator) -> None:
        self.tile = rng.standard_normal((*self.TILE, 3), np.float32)

    def __call__(self, rgb: Array, light: Light, wanted: float, rng: np.random.Generator) -> Array:
        """The frame as recorded, with its mean luminance near ``wanted``."""
        height, width = rgb.shape[:2]
        gain = wanted / max(luminance(rgb), 1.0)
        value = np.arange(256, dtype=np.float32)
        out = np.empty(rgb.shape, np.float32)
        y, x = rng.integers(0, self.TILE[0] - height), rng.integers(0, self.TILE[1] - width)
        for k in range(3):
            # A soft shoulder instead of a hard clip, then noise that grows where light is scarce.
            v = value * gain * light.tint[k]
            curve = np.where(v < 200, v, 200 + 55 * np.tanh((v - 200) / 55)).astype(np.float32)
            np.take(curve, rgb[..., k], out=out[..., k])
        out += self.tile[y : y + height, x : x + width] * np.float32(light.grain)
        np.clip(out, 0, 255, out=out)
        return out.astype(np.uint8)


def luminance(rgb: Array) -> float:
    """Mean of 0.299 R + 0.587 G + 0.114 B."""
    flat = rgb.reshape(-1, 3).astype(np.float32)
    # A product with ones sums columns several times faster than a reduction does.
    sums = np.ones(len(flat), np.float32) @ flat
    return float(sums @ np.array([0.299, 0.587, 0.114]) / len(flat))


def dim(room: Room, lamp: float) -> None:
    """Set the key light's strength; ambient light stays."""
    room.model.light_diffuse[0] = 0.62 * lamp
