"""Meta-World's environments with their own task code and little else of their cost.

Two thirds of an upstream step are Python: named look-ups in MuJoCo, scipy's rotations, small numpy
calls. A fast class is a subclass of the task's own. The task's methods are upstream's code objects,
bound to other globals in which those calls mean the quick ones of :mod:`numerics`; the methods that
all tasks share are written here. Upstream's classes and modules stay as they are.

Observations, rewards and infos are the same to the bit, and so is the state after a reset. A reset
costs 100 control steps upstream, because the scene is set twice and the arm moved each time. The
first time serves only to set what survives MuJoCo's own reset: model and attributes; it needs no
physics. A reset seen before is restored from memory.
"""

from __future__ import annotations

import functools
import types
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, TypeAlias

import mujoco  # type: ignore[import-untyped]
import numpy as np
from metaworld.env_dict import ALL_V3_ENVIRONMENTS
from metaworld.sawyer_xyz_env import SawyerXYZEnv
from metaworld.utils.reward_utils import hamacher_product

from perdure.suites.metaworld import models
from perdure.suites.metaworld.numerics import STAND_INS, norm, tolerance
from perdure.suites.metaworld.simulation_state import Piece, ResetState, SimulationData
from perdure.types import Array

KEPT = 512
"""How many resets of a task are remembered, 7 kB each."""
IDLE = 64
"""How many simulations that nobody uses are kept for the next who asks, 3 to 6 MB each."""
DOWN: Array = np.array([1.0, 0.0, 1.0, 0.0])
XZ = slice(None, None, 2)


def _rebound(item: Any) -> Any:
    """A task's function or property with the stand-ins in its globals; anything else as it is."""
    if isinstance(item, property):
        return property(_rebound(item.fget))
    if not isinstance(item, types.FunctionType):
        return item
    if item.__qualname__.endswith("assert_task_is_set.<locals>.inner"):
        # The decorator's check whether a task was set: it always is.
        (item,) = (cell.cell_contents for cell in item.__closure__ or ())
    made = types.FunctionType(
        item.__code__,
        {**item.__globals__, **{k: v for k, v in STAND_INS.items() if k in item.__globals__}},
        item.__name__,
        item.__defaults__,
        item.__closure__,
    )
    made.__kwdefaults__ = item.__kwdefaults__
    return made


Upstream: Any = SawyerXYZEnv
Kind: TypeAlias = "tuple[type[FastEnv], bool, str]"
"""The task, whether the goal is hidden, the version of the reward."""


class FastEnv(Upstream):  # type: ignore[misc]
    """What all fast classes share; :func:`fast_env` puts it before the task's own class."""

    task_class: type[Any]
    resets: OrderedDict[Any, ResetState]
    """Resets seen before, of all environments of a task; each fast class has its own."""
    still = False
    """Whether simulating means to compute positions only."""
    draws: Any = None
    """Where random vectors come from; None is the one that was set."""

    def __init__(self, hide_goal: bool = False, version: str = "v2") -> None:
        super().__init__()
        self._set_task_called = True
        if not hide_goal:
            # The space that upstream clips observations to, with the goal's bounds in it.
            self._partially_observable = False
            del self.sawyer_observation_space
        self.low, self.high = self.sawyer_observation_space.low, self.sawyer_observation_space.high
        self.mocap_least, self.mocap_most = self.mocap_low.tolist(), self.mocap_high.tolist()
        self.version = version
        self.own = frozenset(
            k
            for k, v in vars(self).items()
            if not isinstance(v, (float, int, list, tuple, np.ndarray, np.generic, type(None)))
            or (isinstance(v, np.ndarray) and Piece.find(v, self.data) is not None)
        ) | {"low", "high"}

    @property
    def kind(self) -> Kind:
        """What it is a simulation of."""
        return type(self), self._partially_observable, self.version

    def __del__(self) -> None:
        data = getattr(self, "data", None)
        if data is not None:
            data.release()

    # Making.

    def _initialize_simulation(self) -> tuple[Any, Any]:
        model = models.load(self.task_class)
        data = SimulationData(model)
        self.mocap, self.mocap_turn, self.ctrl = data.mocap_pos, data.mocap_quat, data.ctrl
        self.hand = data.body("hand").xpos
        self.right_claw, self.left_claw = data.body("rightclaw").xpos, data.body("leftclaw").xpos
        self.right_tip = data.site("rightEndEffector").xpos
        self.left_tip = data.site("leftEndEffector").xpos
        self.left_pad, self.right_pad = data.body("leftpad").xpos, data.body("rightpad").xpos
        self.pads = data.geom("leftpad_geom").id, data.geom("rightpad_geom").id
        return model, data

    @classmethod
    @functools.cache
    def dimensions(cls) -> int:
        """How many numbers place the goal and the objects."""
        return int(cls()._random_reset_space.low.size)

    # Resetting.

    def begin(self, key: Any, vector: Array | None = None, draws: Any = None) -> Array:
        """Reset to a random vector, or to the first that upstream accepts of ``draws``. The key
        stands for it: the same key, the same reset."""
        key = (key, self._partially_observable, self.version)
        seen = self.resets.get(key)
        if seen is not None:
            self.resets.move_to_end(key)
            return seen.restore(self)
        self.place(vector, draws)
        self.curr_path_length = 0
        mujoco.mj_resetData(self.model, self.data)
        obs: Array = self.reset_model()
        self._prev_obs = obs[:18].copy()
        obs[18:36] = self._prev_obs
        self.resets[key] = ResetState(self, obs)
        if len(self.resets) > KEPT:
            self.resets.popitem(last=False)
        return obs

    def place(self, vector: Array | None, draws: Any = None) -> Array:
        """Set the scene without moving the arm; the random vector that was used."""
        self._last_rand_vec = None if vector is None else vector.copy()
        self.reward_function_version = self.version
        self.draws, self.still, self.forwarded = draws, True, False
        self.reset_model()
        self.draws, self.still = None, False
        assert self._last_rand_vec is not None, "the task drew no random vector"
        return self._last_rand_vec

    def _get_state_rand_vec(self) -> Array:
        if self.draws is not None:
            space = self._random_reset_space
            self._last_rand_vec = self.draws.uniform(space.low, space.high, size=space.low.size)
        assert self._last_rand_vec is not None, "place the scene first"
        return self._last_rand_vec

    def do_simulation(self, ctrl: Any, n_frames: int) -> None:
        if self.still:
            # Nothing moves, so the first of 50 times is as good as the last.
            if not self.forwarded:
                mujoco.mj_forward(self.model, self.data)
                self.forwarded = True
        else:
            self.ctrl[:] = ctrl
            mujoco.mj_step(self.model, self.data, nstep=n_frames)

    # Stepping: push, then MuJoCo, then look.

    def push(self, action: Array) -> None:
        """Apply an action: move the point that pulls the hand, and close or open the gripper."""
        way, grip = action[:3], float(action[3])
        if not -1 <= min(reach := way.tolist()) <= max(reach) <= 1:
            way = way.clip(-1, 1)
        x, y, z = (way * self.action_scale).tolist()
        (mx, my, mz), least, most = self.mocap[0].tolist(), self.mocap_least, self.mocap_most
        self.mocap[0] = (
            min(max(mx + x, least[0]), most[0]),
            min(max(my + y, least[1]), most[1]),
            min(max(mz + z, least[2]), most[2]),
        )
        self.mocap_turn[0] = DOWN
        self.ctrl[:] = grip, -grip

    def move(self) -> None:
        """The physics of one step. It holds no Python lock, and touches nothing but this data."""
        mujoco.mj_step(self.model, self.data, self.frame_skip)
        mujoco.mj_forward(self.model, self.data)

    def look(self, action: Array) -> tuple[Array, float, Mapping[str, Any]]:
        """What the step led to: observation, reward and info."""
        obs = self._get_obs()
        obs.clip(self.low, self.high, out=obs)
        if self.version == "v2":
            return obs, *self.evaluate_state(obs, action)
        # Upstream's success depends on the reward version; here it is always v2's.
        self.reward_function_version = "v2"
        _, second = self.evaluate_state(obs, action)
        self.reward_function_version = self.version
        reward, info = self.evaluate_state(obs, action)
        return obs, reward, {**info, "success": second["success"]}

    def _gripper_caging_reward(
        self,
        action: Array,
        obj_pos: Array,
        obj_radius: float,
        pad_success_thresh: float,
        object_reach_radius: float,
        xz_thresh: float,
        desired_gripper_effort: float = 1.0,
        high_density: bool = False,
        medium_density: bool = False,
    ) -> Any:
        """How well the fingers enclose an object: upstream's formula, number by number."""
        obj_y, start = float(obj_pos[1]), self.obj_init_pos
        start_y = float(start[1])
        sides = []
        for pad in (self.left_pad, self.right_pad):
            pad_y = float(pad[1])
            sides.append(
                tolerance(
                    abs(pad_y - obj_y),
                    (obj_radius, pad_success_thresh),
                    abs(abs(pad_y - start_y) - pad_success_thresh),
                    "long_tail",
                )
            )
        tip, first_tip = self.tcp_center, self.init_tcp
        beside = tolerance(
            norm(tip[XZ] - obj_pos[XZ]),
            (0, xz_thresh),
            norm(start[XZ] - first_tip[XZ]) - xz_thresh,
            "long_tail",
        )
        caging = hamacher_product(hamacher_product(*sides), float(beside))
        closed = min(max(0, action[-1]), desired_gripper_effort) / desired_gripper_effort
        both = hamacher_product(caging, closed if caging > 0.97 else 0.0)
        if high_density:
            both = (both + caging) / 2
        if medium_density:
            margin = abs(norm(start - first_tip) - object_reach_radius)
            reach = tolerance(norm(obj_pos - tip), (0, object_reach_radius), margin, "long_tail")
            both = (both + float(reach)) / 2
        return both

    # Looking.

    def _get_obs(self) -> Array:
        obs: Array = np.zeros(39)
        obs[:3] = self.hand
        obs[3] = min(max(norm(self.right_claw - self.left_claw) / 0.1, 0.0), 1.0)
        positions, turns = self._get_pos_objects(), self._get_quat_objects()
        obs[4:7], obs[7:11] = positions[:3], turns[:4]
        if len(positions) > 3:
            obs[11:14], obs[14:18] = positions[3:], turns[4:]
        obs[18:36] = self._prev_obs
        if not self._partially_observable:
            obs[36:] = self._get_pos_goal()
        self._prev_obs = obs[:18].copy()
        return obs

    @property
    def tcp_center(self) -> Array:
        middle: Array = (self.right_tip + self.left_tip) / 2.0
        return middle

    def get_endeff_pos(self) -> Any:
        return self.hand

    def get_body_com(self, body_name: str) -> Array:
        position: Array = self.data.body(body_name).xpos
        return position

    def _get_site_pos(self, site_name: str) -> Array:
        position: Array = self.data.site(site_name).xpos.copy()
        return position

    def touching_object(self, object_geom_id: int) -> bool:
        data = self.data
        if not data.ncon:
            return False
        contacts, force = data.contact, data.efc_force
        left, right = 0.0, 0.0
        for pair, address in zip(
            contacts.geom.tolist(), contacts.efc_address.tolist(), strict=True
        ):
            if object_geom_id in pair:
                if self.pads[0] in pair:
                    left += force[address]
                if self.pads[1] in pair:
                    right += force[address]
        return bool(left > 0 and right > 0)


@functools.cache
def fast_env(name: str) -> type[FastEnv]:
    """The fast class of a task: ``reach`` is upstream's ``reach-v3``."""
    task: type[Any] = ALL_V3_ENVIRONMENTS[f"{name}-v3"]
    own = {
        k: _rebound(v)
        for k, v in vars(task).items()
        if k != "__init__" and isinstance(v, (types.FunctionType, property))
    }
    return type(
        f"Fast{task.__name__}",
        (FastEnv, task),
        {**own, "task_class": task, "resets": OrderedDict()},
    )


_idle: OrderedDict[FastEnv, Kind] = OrderedDict()


def borrow(name: str, hide_goal: bool, version: str) -> FastEnv:
    """A simulation of a task; its state is whatever the last one left, until it begins anew.

    Evaluations come back to the same tasks all life long, and making a simulation costs as much as
    30 steps of it.
    """
    kind = (fast_env(name), hide_goal, version)
    for robot, its in _idle.items():
        if its == kind:
            del _idle[robot]
            return robot
    return fast_env(name)(hide_goal, version)


def give_back(robot: FastEnv) -> None:
    """Whoever borrowed it will not use it again."""
    _idle[robot] = robot.kind
    if len(_idle) > IDLE:
        _idle.popitem(last=False)
