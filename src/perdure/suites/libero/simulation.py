"""The physics of one scene: placing, setting states, and control steps of 50 ms.

What the robot senses is read at one of the 25 physics steps of a control step, by a clock that runs
as robosuite's does; with its timing observations are upstream's, which are two milliseconds old
when the step ends.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.errors import EnvironmentFault
from perdure.suites.libero import placement
from perdure.suites.libero.controller import ARM, FINGERS, OperationalSpaceController
from perdure.suites.libero.kept import physics_model
from perdure.suites.libero.placement import Crowded, Pose
from perdure.suites.libero.predicates import Predicates
from perdure.suites.libero.scene import Scene
from perdure.types import Array

SUBSTEPS = 25
TIMESTEP = 0.002
PERIOD = 0.05
SOLVES = 3
"""How often the constraints are solved in each physics step. robosuite computes everything three
times, twice with the torques of the step before; as the solver begins where it last ended, the
first two move the result by about 1e-8. One solve is enough for all but equality with it."""
POSTURE: Array = np.array([0, -1.61037389e-01, 0.0, -2.44459747, 0.0, 2.22675220, np.pi / 4])
"""Of the arm at first."""
GRIPPER: Array = np.array([0.020833, -0.020833])
LIFTS = 5
"""How often at most objects are raised before an episode begins."""
TOUCH = 0.0005
"""How deep, in metres, things may begin in each other."""
STATE = mujoco.mjtState.mjSTATE_INTEGRATION


@dataclass
class SensorClock:
    """When sensors are read: once a period, early in it, counted from the last forced reading."""

    elapsed: float = 0.0
    read: bool = False

    def force(self) -> None:
        """A reading out of turn."""
        self.elapsed += TIMESTEP
        self.read = True
        self._wrap()

    def tick(self) -> bool:
        """Two milliseconds pass; whether sensors are read now."""
        self.elapsed += TIMESTEP
        now = not self.read and self.elapsed <= PERIOD
        self.read = self.read or now
        self._wrap()
        return now

    def _wrap(self) -> None:
        if self.elapsed >= PERIOD:
            self.elapsed %= PERIOD
            self.read = False


@dataclass(frozen=True)
class Reading:
    """What is computed from when sensors are read."""

    posed: Array
    """Joint positions that bodies' places belong to: those before the last physics step."""
    positions: Array
    velocities: Array
    origins: Array
    quaternions: Array
    """Of objects, and last of the robot's hand."""
    hand: Array


class Simulation:
    """A scene that moves."""

    def __init__(self, scene: Scene, solves: int = SOLVES) -> None:
        self.scene, self.solves = scene, solves
        self.model: mujoco.MjModel = copy.copy(physics_model(scene.xml))
        self.data = mujoco.MjData(self.model)
        self.controller = OperationalSpaceController(self.model, self.data)
        self.predicates = Predicates(scene, self.model, self.data)
        self.clock = SensorClock()
        model = self.model
        self.arm = [int(model.joint(n).qposadr[0]) for n in ARM]
        self.arm_dofs = [int(model.joint(n).dofadr[0]) for n in ARM]
        self.fingers = [int(model.joint(n).qposadr[0]) for n in FINGERS]
        self.finger_dofs = [int(model.joint(n).dofadr[0]) for n in FINGERS]
        self.fixtures = {
            n: int(model.body(b.root).id) for n, b in scene.bodies.items() if not b.movable
        }
        self.objects = {n: b for n, b in scene.bodies.items() if b.movable}
        hand = int(model.body("robot0_right_hand").id)
        self.sensed = np.array([*(int(model.body(b.root).id) for b in self.objects.values()), hand])
        self.own_places = model.body_pos.copy(), model.body_quat.copy()
        self.lights = {n: b.light for n, b in scene.bodies.items() if b.light is not None}
        self.lit: dict[str, bool] = {}
        """Which lights are seen, as of the end of the last control step."""
        self.reading: Reading | None = None

    # Resetting.

    def reset(self, seed: int) -> None:
        """Place everything as a seed decides, whatever came before."""
        draws = np.random.RandomState(seed)
        for _ in range(placement.REDRAWS):
            try:
                self._place(draws)
                break
            except Crowded as e:
                problem = e
        else:
            raise EnvironmentFault(f"the scene cannot be set: {problem}")
        mujoco.mj_forward(self.model, self.data)
        if self.scene.lifts:
            self._lift()
        self.clock = SensorClock()
        self._settle_lights()
        self.sense()

    def _lift(self) -> None:
        """Raise objects out of what they were placed in, the upper of two first."""
        model, data = self.model, self.data
        free = {int(model.body(b.root).id): b.joints[-1] for b in self.objects.values()}
        for _ in range(LIFTS):
            depths: dict[int, float] = {}
            for pair, distance in zip(data.contact.geom, data.contact.dist, strict=True):
                owners = [int(model.body_rootid[model.geom_bodyid[g]]) for g in pair]
                movable = [i for i in owners if i in free]
                if distance < -TOUCH and movable:
                    upper = max(movable, key=lambda i: float(data.xpos[i][2]))
                    depths[upper] = max(depths.get(upper, 0.0), float(-distance))
            if not depths:
                break
            for number, depth in depths.items():
                data.joint(free[number]).qpos[2] += depth + TOUCH
            mujoco.mj_forward(model, data)

    def _place(self, draws: np.random.RandomState) -> None:
        model, data = self.model, self.data
        # Upstream's noise of the first posture, which has no size.
        draws.randn(len(POSTURE))
        mujoco.mj_resetData(model, data)
        model.body_pos[:], model.body_quat[:] = self.own_places
        data.qpos[self.arm] = POSTURE
        mujoco.mj_forward(model, data)
        self.controller.reset()
        data.qpos[self.fingers] = GRIPPER
        for joint, value in placement.joint_values(self.scene, draws).items():
            data.joint(joint).qpos[0] = value
        mujoco.mj_forward(model, data)
        zones = (z for z in self.scene.zones.values() if z.parent is not None)
        sites = {z.name: data.site(z.name).xpos.copy() for z in zones}
        self.put(placement.poses(self.scene, draws, sites))

    def put(self, poses: Mapping[str, Pose]) -> None:
        """Move bodies."""
        for name, pose in poses.items():
            body = self.scene.bodies[name]
            if body.movable:
                place = self.data.joint(body.joints[-1]).qpos
                place[:3], place[3:] = pose.position, pose.quaternion
            else:
                number = self.fixtures[name]
                self.model.body_pos[number] = pose.position
                self.model.body_quat[number] = pose.quaternion

    @property
    def state_size(self) -> int:
        """How many numbers an official state has: time, positions, velocities."""
        return int(1 + self.model.nq + self.model.nv)

    def state(self) -> Array:
        """Time, positions and velocities, as official states have them."""
        return np.concatenate([[self.data.time], self.data.qpos, self.data.qvel])

    def privileged(self) -> Array:
        """Poses of fixtures, then the state: all that an expert must be told."""
        numbers = list(self.fixtures.values())
        fixed = np.hstack([self.model.body_pos[numbers], self.model.body_quat[numbers]])
        return np.concatenate([fixed.ravel(), self.state()])

    def set_state(self, state: Array) -> None:
        """Take over an official state; fixtures and the controller stay as they are."""
        if state.shape != (self.state_size,):
            raise EnvironmentFault(
                f"the scene's state has {self.state_size} numbers, got {state.shape}"
            )
        nq = self.model.nq
        self.data.time = state[0]
        self.data.qpos[:], self.data.qvel[:] = state[1 : 1 + nq], state[1 + nq :]
        mujoco.mj_forward(self.model, self.data)
        self._settle_lights()
        self.sense()

    # Stepping.

    def act(self, action: Array) -> None:
        """One control step."""
        model, data, control = self.model, self.data, self.controller
        step1, step2, solve = mujoco.mj_step1, mujoco.mj_step2, mujoco.mj_forwardSkip
        more, velocity = range(self.solves - 1), mujoco.mjtStage.mjSTAGE_VEL
        for k in range(SUBSTEPS):
            step1(model, data)
            for _ in more:
                solve(model, data, velocity, 1)
            if k == 0:
                control.set_goal(action)
            control.control()
            if self.clock.tick():
                posed = data.qpos.copy()
                step2(model, data)
                self._read(posed)
            else:
                step2(model, data)

    def finish(self) -> None:
        """What changes its look at the end of a control step."""
        self._settle_lights()

    def _settle_lights(self) -> None:
        for name in self.lights:
            self.lit[name] = self.predicates.is_on(name)

    def sense(self) -> None:
        """Read the sensors out of turn, of positions that have just been computed."""
        self.clock.force()
        self._read(self.data.qpos.copy())

    def _read(self, posed: Array) -> None:
        data = self.data
        self.reading = Reading(
            posed,
            data.qpos.copy(),
            data.qvel.copy(),
            data.xpos[self.sensed],
            data.xquat[self.sensed],
            data.site_xpos[self.controller.site].copy(),
        )

    def success(self) -> bool:
        """Whether the goal holds now."""
        return self.predicates.all_hold(self.scene.problem.goal)

    # Saving.

    def save(self) -> dict[str, Array]:
        """Everything that the future depends on."""
        assert self.reading is not None, "reset before the first save"
        whole = np.empty(mujoco.mj_stateSize(self.model, STATE))
        mujoco.mj_getState(self.model, self.data, whole, STATE)
        numbers = list(self.fixtures.values())
        return {
            "simulation": whole,
            "fixture_positions": self.model.body_pos[numbers],
            "fixture_turns": self.model.body_quat[numbers],
            "clock": np.array([self.clock.elapsed, float(self.clock.read)]),
            "lit": np.array([self.lit[n] for n in self.lights], bool),
            **{f"controller_{k}": v for k, v in self.controller.save().items()},
            **{f"reading_{k}": v for k, v in vars(self.reading).items()},
        }

    def load(self, state: Mapping[str, Array]) -> None:
        """Go on from what :meth:`save` gave."""
        numbers = list(self.fixtures.values())
        self.model.body_pos[:], self.model.body_quat[:] = self.own_places
        self.model.body_pos[numbers] = state["fixture_positions"]
        self.model.body_quat[numbers] = state["fixture_turns"]
        mujoco.mj_setState(self.model, self.data, np.array(state["simulation"]), STATE)
        mujoco.mj_step1(self.model, self.data)
        self.clock = SensorClock(float(state["clock"][0]), bool(state["clock"][1]))
        self.lit = dict(zip(self.lights, state["lit"].tolist(), strict=True))
        head = "controller_"
        self.controller.load({k[len(head) :]: v for k, v in state.items() if k.startswith(head)})
        names = Reading.__dataclass_fields__
        self.reading = Reading(**{n: np.array(state[f"reading_{n}"]) for n in names})
