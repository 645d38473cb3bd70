"""The simulation's memory: named parts looked up once, and resets that are kept.

Tasks hold pieces of this memory as attributes, some of them on purpose and some not; rewards depend
on it, so what is live in one environment must be live in another that takes over its reset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.types import Array

if TYPE_CHECKING:
    from perdure.suites.metaworld.fast_env import FastEnv

STATE = mujoco.mjtState.mjSTATE_INTEGRATION


class NamedPart:
    """A named part of the simulation; its arrays are looked up once and stay live."""

    def __init__(self, part: Any, arrays: tuple[str, ...]) -> None:
        self.__dict__.update({name: getattr(part, name) for name in arrays}, _part=part)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._part, name, value)


class SimulationData(mujoco.MjData):  # type: ignore[misc]
    """MuJoCo's data, with named parts looked up once.

    The views hold memory of this object, so whoever owns it must :meth:`release` it.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        super().__init__(model)
        self.views: dict[tuple[str, str], NamedPart] = {}

    def release(self) -> None:
        """Break the circle of data and views: numpy's arrays are invisible to the collector."""
        self.views.clear()

    def body(self, name: str) -> Any:
        found = self.views.get(("body", name))
        if found is None:
            found = NamedPart(super().body(name), ("id", "xpos", "xmat", "xquat"))
            self.views["body", name] = found
        return found

    def geom(self, name: str) -> Any:
        found = self.views.get(("geom", name))
        if found is None:
            found = NamedPart(super().geom(name), ("id", "xpos", "xmat"))
            self.views["geom", name] = found
        return found

    def site(self, name: str) -> Any:
        found = self.views.get(("site", name))
        if found is None:
            found = NamedPart(super().site(name), ("id", "xpos", "xmat"))
            self.views["site", name] = found
        return found

    def joint(self, name: str) -> Any:
        found = self.views.get(("joint", name))
        if found is None:
            found = NamedPart(super().joint(name), ("id", "qpos", "qvel"))
            self.views["joint", name] = found
        return found


LIVE = (
    *(f"{kind}{what}" for kind in ("", "geom_", "site_") for what in ("xpos", "xmat")),
    *("xquat", "qpos", "ctrl", "mocap_pos", "mocap_quat"),
)
"""The simulation's arrays that a task may hold a piece of."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Where in the simulation's memory an attribute lies: it is to change with the simulation."""

    array: str
    start: int
    length: int

    @classmethod
    def find(cls, value: Array, data: mujoco.MjData) -> Piece | None:
        """The piece that an array is, None if it has memory of its own."""
        for name in LIVE:
            array = getattr(data, name)
            if np.may_share_memory(value, array):
                return cls(name, (value.ctypes.data - array.ctypes.data) // 8, value.size)
        return None

    def of(self, data: mujoco.MjData) -> Array:
        """The same piece of another simulation of the same model."""
        whole: Array = getattr(data, self.array).reshape(-1)
        return whole[self.start : self.start + self.length]


class ResetState:
    """All that a reset decides."""

    __slots__ = ("attributes", "bodies", "obs", "pieces", "sites", "state")

    def __init__(self, env: FastEnv, obs: Array) -> None:
        self.state = np.empty(mujoco.mj_stateSize(env.model, STATE))
        mujoco.mj_getState(env.model, env.data, self.state, STATE)
        self.bodies, self.sites = env.model.body_pos.copy(), env.model.site_pos.copy()
        self.attributes: dict[str, Any] = {}
        self.pieces: dict[str, Piece] = {}
        for name, value in vars(env).items():
            if name in env.own:
                continue
            if not isinstance(value, np.ndarray):
                self.attributes[name] = value
            elif piece := Piece.find(value, env.data):
                self.pieces[name] = piece
            else:
                self.attributes[name] = value.copy()
        self.obs = obs.copy()

    def restore(self, env: FastEnv) -> Array:
        """Bring an environment of the same task to this reset."""
        mujoco.mj_setState(env.model, env.data, self.state, STATE)
        env.model.body_pos[:], env.model.site_pos[:] = self.bodies, self.sites
        now = env.__dict__
        for name, value in self.attributes.items():
            now[name] = value.copy() if type(value) is np.ndarray else value
        for name, piece in self.pieces.items():
            now[name] = piece.of(env.data)
        return self.obs.copy()
