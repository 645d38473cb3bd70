"""OSC_POSE: an action says how the hand is to move, and the controller finds the torques.

Operational-space control (Khatib 1987) as robosuite 1.4 parameterises it for LIBERO: the first six
numbers of an action are a step of the hand relative to where it is, at most 5 cm and half a radian
about each axis of the world; stiffness 150, critically damped, position and orientation uncoupled;
what freedom the arm has left pulls it to its first posture. The seventh number opens (negative) or
closes (positive) the gripper at a constant speed. Torques are computed anew every 2 ms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import mujoco  # type: ignore[import-untyped]
import numpy as np
from scipy.linalg.lapack import dposv

from perdure.suites.libero.rotations import turn_of
from perdure.types import Array

KP = 150.0
KD = 2 * math.sqrt(KP)
POSTURE_KP = 10.0
POSTURE_KV = 2 * math.sqrt(POSTURE_KP)
STEP: Array = np.array([0.05, 0.05, 0.05, 0.5, 0.5, 0.5])
"""What a 1 in an action means: metres and radians."""
GRIPPER_SPEED = 0.01
"""Of the whole way in one 2 ms."""
ARM = tuple(f"robot0_joint{k}" for k in range(1, 8))
FINGERS = ("gripper0_finger_joint1", "gripper0_finger_joint2")
HAND = "gripper0_grip_site"
SEEN = ("jacobian", "inertia", "hand", "hand_axes", "positions", "speed")
"""What the controller knows of the robot."""


def orientation_error(goal: Array, current: Array) -> Array:
    """Half the sum of the cross products of the axes: small turns as axis times angle."""
    c, g = current, goal
    # For each pair of columns: current × goal.
    x = c[1] * g[2] - c[2] * g[1]
    y = c[2] * g[0] - c[0] * g[2]
    z = c[0] * g[1] - c[1] * g[0]
    return 0.5 * np.array([x[0] + x[1] + x[2], y[0] + y[1] + y[2], z[0] + z[1] + z[2]])


class OperationalSpaceController:
    """The controller of one robot. It reads a simulation whose positions and velocities are
    computed, and writes ``ctrl``."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.model, self.data = model, data
        joints = [model.joint(name) for name in ARM]
        first = int(joints[0].dofadr[0])
        if [int(j.dofadr[0]) for j in joints] != list(range(first, first + 7)):
            raise ValueError("the arm's joints must follow one another in the model")
        self.dofs = slice(first, first + 7)
        start = int(joints[0].qposadr[0])
        self.joints = slice(start, start + 7)
        self.site = model.site(HAND).id
        torques = [model.actuator(f"robot0_torq_j{k}").id for k in range(1, 8)]
        fingers = [model.actuator(f"gripper0_gripper_finger_joint{k}").id for k in (1, 2)]
        self.motors = slice(torques[0], torques[-1] + 1)
        self.grips = slice(fingers[0], fingers[-1] + 1)
        self.low, self.high = model.actuator_ctrlrange[self.motors].T.copy()
        least, most = model.actuator_ctrlrange[self.grips].T.copy()
        self.grip_middle, self.grip_reach = 0.5 * (most + least), 0.5 * (most - least)
        nv = model.nv
        self._jacobian: Array = np.zeros((6, nv))
        self._inertia: Array = np.zeros((nv, nv))
        self.grip_way: Array = np.zeros(2)
        self.posture: Array = np.zeros(7)
        self.goal_position: Array = np.zeros(3)
        self.goal_axes: Array = np.eye(3)
        self.grip: Array = np.zeros(2)
        """Where the fingers are sent, from -1 to 1."""
        self.due = True
        """Whether the robot has moved since it was last looked at."""

    def reset(self) -> None:
        """Take the arm's posture for its first; positions must be computed.

        The first physics step of an episode still goes by what is seen now, wherever the arm is put
        in between: so it is upstream.
        """
        self.due = True
        self._look()
        for name in SEEN:
            setattr(self, name, getattr(self, name).copy())
        self.posture, self.goal_position, self.goal_axes = self.positions, self.hand, self.hand_axes
        self.grip = np.zeros(2)

    def _look(self) -> None:
        if not self.due:
            return
        model, data, whole = self.model, self.data, self._jacobian
        mujoco.mj_jacSite(model, data, whole[:3], whole[3:], self.site)
        mujoco.mj_fullM(model, self._inertia, data.qM)
        self.jacobian: Array = whole[:, self.dofs]
        self.inertia: Array = self._inertia[self.dofs, self.dofs]
        self.hand: Array = data.site_xpos[self.site]
        self.hand_axes: Array = data.site_xmat[self.site].reshape(3, 3)
        self.positions: Array = data.qpos[self.joints]
        self.speed: Array = data.qvel[self.dofs]
        self.due = False

    def set_goal(self, action: Array) -> None:
        """Begin an action. Without a turn the hand keeps to the last orientation asked for."""
        self._look()
        step = action[:6].clip(-1, 1) * STEP
        if not all(math.isclose(x, 0.0) for x in step[3:].tolist()):
            self.goal_axes = turn_of(step[3:]).dot(self.hand_axes)
        self.goal_position = self.hand + step[:3]
        self.grip_way = np.array([-1.0, 1.0]) * GRIPPER_SPEED * np.sign(action[6])

    def control(self) -> None:
        """Write torques and gripper for the next 2 ms."""
        self._look()
        jacobian, inertia, data = self.jacobian, self.inertia, self.data
        velocity = jacobian.dot(self.speed)
        force = (self.goal_position - self.hand) * KP - velocity[:3] * KD
        torque = orientation_error(self.goal_axes, self.hand_axes) * KP - velocity[3:] * KD
        spread = jacobian.dot(_solve(inertia, jacobian.T))
        posture = POSTURE_KP * (self.posture - self.positions) - POSTURE_KV * self.speed
        wrench = np.concatenate([_solve(spread[:3, :3], force), _solve(spread[3:, 3:], torque)])
        # What keeps the posture, without what of it would move the hand.
        wrench -= _solve(spread, jacobian.dot(posture))
        torques = jacobian.T.dot(wrench) + inertia.dot(posture) + data.qfrc_bias[self.dofs]
        data.ctrl[self.motors] = np.minimum(np.maximum(torques, self.low), self.high)
        self.grip = np.minimum(np.maximum(self.grip + self.grip_way, -1.0), 1.0)
        data.ctrl[self.grips] = self.grip_middle + self.grip_reach * self.grip
        self.due = True

    def save(self) -> dict[str, Array]:
        """What it remembers from one action to the next."""
        names = (*SEEN, "posture", "goal_axes", "grip")
        return {"due": np.array(self.due), **{n: getattr(self, n).copy() for n in names}}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take over what :meth:`save` gave."""
        for name in (*SEEN, "posture", "goal_axes", "grip"):
            setattr(self, name, np.array(state[name]))
        self.due = bool(state["due"])


def _solve(matrix: Array, right: Array) -> Array:
    """Of a positive definite matrix. (LAPACK itself: numpy's way to it costs more than the work.)"""
    _, found, failed = dposv(matrix, right)
    if failed:  # A stretched arm; the pseudo-inverse is what is meant then.
        found = np.linalg.pinv(matrix).dot(right)
    solved: Array = found
    return solved
