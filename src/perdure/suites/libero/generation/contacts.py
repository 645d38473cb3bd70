"""What a simulated task does when nobody moves, and what touches what in it."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.suites.libero.simulation import Simulation

SETTLE = 20
"""Control steps until all must be at rest: a second."""
DEEP = 0.006
"""Metres by which things may reach into each other at first; models' own parts do by a little."""


class Failed(Exception):
    """A task breaks a promise; the message says which."""


def rest(simulation: Simulation, steps: int = SETTLE) -> None:
    """Let time pass while the robot stays."""
    still = np.zeros(7)
    for _ in range(steps):
        simulation.act(still)
    mujoco.mj_forward(simulation.model, simulation.data)


def owner_of(simulation: Simulation, geom: int) -> str:
    """Whose a geom is: a body's of the scene, the ``robot``'s or the ``room``'s."""
    model = simulation.model
    owners = {model.body(b.root).id: n for n, b in simulation.scene.bodies.items()}
    body = int(model.geom_bodyid[geom])
    while body:
        if body in owners:
            return owners[body]
        if model.body(body).name.startswith(("robot0", "gripper0", "mount0")):
            return "robot"
        body = int(model.body_parentid[body])
    return "room"


def touching(simulation: Simulation) -> Iterator[tuple[str, str, float]]:
    """Pairs of things in contact and how deep: bodies of the scene, ``robot``, ``room``."""
    for contact in simulation.data.contact:
        one, other = (owner_of(simulation, int(g)) for g in (contact.geom1, contact.geom2))
        if one != other and {one, other} != {"robot", "room"}:
            fixed = {n for n in (one, other) if n not in simulation.objects}
            if len(fixed) < 2 or "robot" in fixed:
                yield one, other, -float(contact.dist)
