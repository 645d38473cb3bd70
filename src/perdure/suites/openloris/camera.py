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
LEVELS = np.arange(256)
"""All values of a byte."""
CLOSE = 5e-4
"""Part of its size by which an aimed box may still be off."""


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
    axes = Pose(azimuth, elevation, 1.0, (0.0, 0.0, 0.0)).axes
    # The direction stays, so the points are turned into the camera's axes once.
    x, y, z = np.ascontiguousarray((points @ np.stack(axes, 1)).T)
    right, up, forward = ((float(v.min()) + float(v.max())) / 2 for v in (x, y, z))
    f = FOCAL * height
    distance = f / (size * width)
    for _ in range(12):
        depth = z - (forward - distance)
        across, along = (x - right) / depth, (y - up) / depth
        low, high, bottom, top = (
            float(v) for v in (across.min(), across.max(), along.min(), along.max())
        )
        # A point at the box's middle is moved to where it is wanted.
        off = (low + high) / 2 - float(offset[0]) * width / f
        rise = (bottom + top) / 2 + float(offset[1]) * width / f
        right, up = right + distance * off, up + distance * rise
        ratio = max(high - low, top - bottom) * f / (size * width)
        distance *= ratio
        if abs(ratio - 1) < CLOSE and max(abs(off), abs(rise)) < CLOSE:
            break
    at = right * axes[0] + up * axes[1] + forward * axes[2]
    return Pose(azimuth, elevation, distance, (float(at[0]), float(at[1]), float(at[2])))


class Camera:
    """A renderer for one room."""

    def __init__(self, room: Room, width: int, height: int) -> None:
        self.mujoco = m = simulator()
        self.room = room
        self._orders: dict[bytes, Array] = {}
        self.gl = screen(width, height)
        self.data = m.MjData(room.model)
        self.scene = m.MjvScene(room.model, maxgeom=400)
        self.context = m.MjrContext(room.model, m.mjtFontScale.mjFONTSCALE_100)
        m.mjr_setBuffer(m.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
        self.context.readDepthMap = m.mjtDepthMap.mjDEPTH_ZEROFAR
        self.resize(width, height)
        self.free, self.option = m.MjvCamera(), m.MjvOption()
        self.free.type = m.mjtCamera.mjCAMERA_FREE
        self.scene.flags[m.mjtRndFlag.mjRND_SHADOW] = False
        self.scene.flags[m.mjtRndFlag.mjRND_REFLECTION] = False
        self.scene.flags[m.mjtRndFlag.mjRND_SKYBOX] = False
        self.scene.flags[m.mjtRndFlag.mjRND_HAZE] = False

    def resize(self, width: int, height: int, samples: int = 1) -> None:
        """Take frames of this size from now on, with so many points across every pixel.

        ``self.width`` and ``self.height`` count points.
        """
        self.width, self.height, self.samples = width * samples, height * samples, samples
        self.rect = self.mujoco.MjrRect(0, 0, self.width, self.height)

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

    def census(self, pose: Pose) -> Array:
        """In how many pixels each geom is seen."""
        rgb = np.empty((self.height, self.width, 3), np.uint8)
        self._render(pose, (GROUND, TARGET, OCCLUDER, OTHERS), True)
        self.mujoco.mjr_readPixels(rgb, None, self.rect, self.context)
        # There are far fewer than 65,536 geoms: two bytes of the colour hold their numbers.
        number = rgb[..., 0].ravel() + (rgb[..., 1].ravel().astype(np.uint16) << 8)
        counts = np.bincount(number, minlength=self.scene.ngeom + 1)
        out: Array = np.zeros(self.room.model.ngeom, int)
        out[self._drawn()] = counts[1 : self.scene.ngeom + 1]
        return out

    def _drawn(self) -> Array:
        """The geoms of the scene in their order; asking for each is slow, so they are remembered."""
        shown = self.room.model.geom_group.tobytes()
        if shown not in self._orders:
            self._orders[shown] = np.array([g.objid for g in self.scene.geoms[: self.scene.ngeom]])
        return self._orders[shown]

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
        self._grains: dict[float, Array] = {}

    def __call__(self, rgb: Array, light: Light, wanted: float, rng: np.random.Generator) -> Array:
        """The frame as recorded, with its mean luminance near ``wanted``."""
        height, width = rgb.shape[:2]
        rgb = np.ascontiguousarray(rgb)
        exposed = _expose(rgb, light.tint, wanted, luminance(rgb))
        y, x = rng.integers(0, self.TILE[0] - height), rng.integers(0, self.TILE[1] - width)
        out: Array = np.add(
            exposed, self._grain(light)[y : y + height, x : x + width], dtype=np.int16
        )
        return np.clip(out, 0, 255).astype(np.uint8)

    def _grain(self, light: Light) -> Array:
        if light.grain not in self._grains:
            noise = np.rint(self.tile * np.float32(light.grain))
            self._grains[light.grain] = np.clip(noise, -127, 127).astype(np.int8)
        return self._grains[light.grain]


def _expose(rgb: Array, tint: tuple[float, float, float], wanted: float, found: float) -> Array:
    """The picture with its luminance changed from ``found`` to about ``wanted``."""
    # Tables on bytes are several times faster than arithmetic, or numpy's own look-up.
    tables = {t: _curve(t * LEVELS * wanted / max(found, 1.0)) for t in set(tint)}
    if len(tables) == 1:
        return np.frombuffer(rgb.tobytes().translate(tables[tint[0]]), np.uint8).reshape(rgb.shape)
    out = np.empty_like(rgb)
    for k, t in enumerate(tint):
        plane = rgb[..., k].tobytes().translate(tables[t])
        out[..., k] = np.frombuffer(plane, np.uint8).reshape(rgb.shape[:2])
    return out


def _curve(value: Array) -> bytes:
    """A soft shoulder instead of a hard clip."""
    soft = np.where(value < 200, value, 200 + 55 * np.tanh((value - 200) / 55))
    return np.rint(soft).astype(np.uint8).tobytes()


def luminance(rgb: Array) -> float:
    """Mean of 0.299 R + 0.587 G + 0.114 B."""
    flat = rgb.reshape(-1, 3).astype(np.float32)
    # A product with ones sums columns several times faster than a reduction does.
    sums = np.ones(len(flat), np.float32) @ flat
    return float(sums @ np.array([0.299, 0.587, 0.114]) / len(flat))


def dim(room: Room, lamp: float) -> None:
    """Set the key light's strength; ambient light stays."""
    room.model.light_diffuse[0] = 0.62 * lamp
