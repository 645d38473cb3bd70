"""Moving the hand: scripts that give an action at a time, seven numbers as a policy gives them."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from perdure.suites.libero.controller import STEP
from perdure.suites.libero.experts.planning_scene import PlanningScene
from perdure.types import Array

Script = Generator[Array, None, None]
"""Gives actions; the world has moved on when it goes on."""
GAIN = 1.8
"""How much of the way to its target a hand is sent, at each step, beyond what it has to go."""
OPENED, CLOSED, HOLD = -1.0, 1.0, 0.0
STRAIGHT, BENT = -0.3, -0.5
"""Angles of the elbow: from the first on an arm is too straight to be drawn back, at the second it is no more."""
LIFT = 35
"""Steps at most in which a straight arm is lifted."""


def rotation_vector(turn: Array) -> Array:
    """A rotation matrix as its axis times its angle."""
    cosine = float(np.clip((np.trace(turn) - 1) / 2, -1, 1))
    angle = float(np.arccos(cosine))
    axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    if angle < 1e-6:
        return np.zeros(3)
    if np.pi - angle < 1e-3:  # The axis cannot be read off the antisymmetric part.
        values, vectors = np.linalg.eigh((turn + turn.T) / 2)
        return np.asarray(vectors[:, np.argmax(values)] * angle)
    return np.asarray(axis / (2 * np.sin(angle)) * angle)


def toward(
    world: PlanningScene, position: Array, axes: Array | None, grip: float, speed: float = 1.0
) -> Array:
    """The action that moves the hand towards a pose, in a straight line, as fast as it may."""
    action = np.zeros(7)
    step = GAIN * (position - world.hand) / STEP[:3]
    action[:3] = step * min(1.0, speed / max(1e-9, np.abs(step).max()))
    if axes is not None:
        turn = GAIN * rotation_vector(axes @ world.hand_axes.T) / STEP[3:]
        action[3:6] = turn * min(1.0, 1.0 / max(1e-9, np.abs(turn).max()))
    action[6] = grip
    return action


def go(
    world: PlanningScene,
    position: Array,
    axes: Array | None,
    grip: float,
    near: float = 0.012,
    turned: float = 0.15,
    speed: float = 1.0,
    steps: int = 80,
) -> Script:
    """Move the hand to a pose; ends when it is there, does not come nearer, or has taken its time."""
    best, since = np.inf, 0
    for _ in range(steps):
        away = float(np.linalg.norm(position - world.hand))
        angle = (
            0.0
            if axes is None
            else float(np.linalg.norm(rotation_vector(axes @ world.hand_axes.T)))
        )
        if away < near and angle < turned:
            return
        left = away + 0.1 * angle
        if left < best - 0.002:
            best, since = left, 0
        else:
            since += 1
            if since > 12:
                return
        yield toward(world, position, axes, grip, speed)


def back_home(world: PlanningScene, home: tuple[Array, Array], grip: float = OPENED) -> Script:
    """To the posture of the beginning: what was turned and stretched on the way is undone.

    An arm that is quite straight cannot be drawn back, as nothing pulls along it. It is lifted until it bends.
    """
    for _ in range(LIFT):
        if world.elbow < BENT:
            break
        yield toward(world, world.hand + np.array([0.0, 0.0, 0.3]), None, grip)
    yield from go(world, *home, grip, near=0.04, turned=0.3, steps=40)


def wait(world: PlanningScene, grip: float, steps: int) -> Script:
    """Stay, and open or close the gripper."""
    place, axes = world.hand, world.hand_axes
    for _ in range(steps):
        yield toward(world, place, axes, grip)


def open_to(world: PlanningScene, opening: float, steps: int = 12) -> Script:
    """Open or close the fingers to about this far from the middle, staying where the hand is."""
    place, axes = world.hand, world.hand_axes
    for _ in range(steps):
        error = opening - world.opening
        if abs(error) < 0.004:
            return
        yield toward(world, place, axes, OPENED if error > 0 else CLOSED)
