"""The room that bodies take, and setting them down on the work surface.

Upstream drops objects from a height that is the same for all of a scene and does not know how tall they
are: some fall by seven centimetres, others begin inside the table. Official tasks begin so. Tasks of
one's own are set down: see :func:`set_down`.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.suites.libero.scene import Scene
from perdure.suites.libero.simulation import Simulation
from perdure.types import Array

CLEARANCE = 0.002
"""Between an object that is set down and the surface."""
LIFT, LIFTS, SHALLOW = 0.005, 8, 0.003
"""By how much and how often an object is lifted that reaches into something, and what is little enough."""
ABOVE = 0.3
"""From where the surface is looked for."""


@dataclass(frozen=True)
class Extent:
    """The box around a body: its corners, in the world."""

    low: Array
    high: Array

    @property
    def middle(self) -> Array:
        """Of the box."""
        middle: Array = (self.low + self.high) / 2
        return middle


def extent_of(simulation: Simulation, name: str) -> Extent:
    """The box around what a body touches with, as it is now."""
    model, data = simulation.model, simulation.data
    geoms = [model.geom(g).id for g in simulation.scene.bodies[name].geoms]
    axes = data.geom_xmat[geoms].reshape(-1, 3, 3)
    middles = data.geom_xpos[geoms] + np.einsum("gij,gj->gi", axes, model.geom_aabb[geoms, :3])
    halves = np.einsum("gij,gj->gi", np.abs(axes), model.geom_aabb[geoms, 3:])
    return Extent((middles - halves).min(0), (middles + halves).max(0))


def surface_height(simulation: Simulation) -> float:
    """How high the work surface is, in its middle."""
    model, data, space = simulation.model, simulation.data, simulation.scene.workspace
    eye = np.array(space.offset, float) + np.array([0, 0, ABOVE])
    down = np.array([0.0, 0.0, -1.0])
    nearest = np.inf
    for geom in range(model.ngeom):
        touches = model.geom_contype[geom] or model.geom_conaffinity[geom]
        name = model.body(model.body_rootid[model.geom_bodyid[geom]]).name
        if not touches or (name != space.body and model.geom_bodyid[geom] != 0):
            continue
        if model.geom_type[geom] == int(mujoco.mjtGeom.mjGEOM_MESH):
            away = mujoco.mj_rayMesh(model, data, geom, eye, down)
        else:
            kind = int(model.geom_type[geom])
            place, axes = data.geom_xpos[geom], data.geom_xmat[geom]
            away = mujoco.mju_rayGeom(place, axes, model.geom_size[geom], eye, down, kind)
        nearest = min(nearest, away) if away >= 0 else nearest
    return float(eye[2] - nearest)


def stands_on_surface(scene: Scene, name: str) -> bool:
    """Whether the task file puts an object on the work surface at first."""
    for relation in scene.problem.init:
        if relation.predicate == "on" and relation.names[0] == name:
            region = scene.problem.region(relation.names[1])
            return region is not None and region.target == scene.workspace.name
    return False


def set_down(simulation: Simulation) -> None:
    """Set the objects that the file puts on the work surface down on it, and lift those that it puts on
    or in something out of what they reach into."""
    data = simulation.data
    height = surface_height(simulation) + CLEARANCE
    others = []
    for name, body in simulation.objects.items():
        if stands_on_surface(simulation.scene, name):
            data.joint(body.joints[-1]).qpos[2] += height - extent_of(simulation, name).low[2]
        else:
            others.append(name)
    mujoco.mj_forward(simulation.model, data)
    for name in others:
        joint = data.joint(simulation.objects[name].joints[-1])
        for _ in range(LIFTS):
            if _depth(simulation, name) < SHALLOW:
                break
            joint.qpos[2] += LIFT
            mujoco.mj_forward(simulation.model, data)
    simulation.sense()


def _depth(simulation: Simulation, name: str) -> float:
    """How deep a body reaches into anything."""
    mine = simulation.predicates.touched[name]
    contacts = simulation.data.contact
    if not len(contacts.dist):
        return 0.0
    own = mine[contacts.geom[:, 0]] | mine[contacts.geom[:, 1]]
    return float(-contacts.dist[own].min(initial=0.0))
