"""What an expert sees: the whole state of a simulation, in a copy of it that never moves by itself."""

from __future__ import annotations

import copy

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.suites.libero.controller import ARM, FINGERS, HAND
from perdure.suites.libero.experts.solids import Solids, solids_of
from perdure.suites.libero.kept import physics_model
from perdure.suites.libero.predicates import Predicates
from perdure.suites.libero.problem import Relation
from perdure.suites.libero.scene import Body, Scene
from perdure.types import Array

POSE = 7
"""Numbers of a fixture's pose."""


class PlanningScene:
    """A scene as an expert sees it; :meth:`see` takes over what is the case now."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.model: mujoco.MjModel = copy.copy(physics_model(scene.xml))
        self.data = mujoco.MjData(self.model)
        self.predicates = Predicates(scene, self.model, self.data)
        model = self.model
        self.bodies = scene.bodies
        self.fixtures = [int(model.body(b.root).id) for b in scene.bodies.values() if not b.movable]
        self.fingers = [int(model.joint(n).qposadr[0]) for n in FINGERS]
        self.fourth = int(model.joint(ARM[3]).qposadr[0])
        self.site = int(model.site(HAND).id)
        self.roots = {n: int(model.body(b.root).id) for n, b in scene.bodies.items()}
        self.solid = [
            g for g in range(model.ngeom)
            if (model.geom_contype[g] or model.geom_conaffinity[g])
            and not model.body(model.geom_bodyid[g]).name.startswith(("robot0_", "gripper0_", "mount0_"))
            and model.geom_type[g] != int(mujoco.mjtGeom.mjGEOM_PLANE)
        ]  # fmt: skip
        self.hands = np.array(
            [model.body(b).name.startswith("gripper0_") for b in model.geom_bodyid]
        )
        self.home = np.zeros(3), np.eye(3)
        """The hand's place and axes as the episode began."""
        self._solids: dict[str, Solids] = {}

    @property
    def size(self) -> int:
        """How many numbers :meth:`Simulation.privileged` gives."""
        return len(self.fixtures) * POSE + 1 + int(self.model.nq + self.model.nv)

    def see(self, seen: Array) -> None:
        """Take over what :meth:`Simulation.privileged` gave."""
        model, data, split = self.model, self.data, len(self.fixtures) * POSE
        poses = seen[:split].reshape(-1, POSE)
        model.body_pos[self.fixtures], model.body_quat[self.fixtures] = poses[:, :3], poses[:, 3:]
        state = seen[split:]
        data.time = state[0]
        data.qpos[:], data.qvel[:] = state[1 : 1 + model.nq], state[1 + model.nq :]
        mujoco.mj_fwdPosition(model, data)
        self._solids.clear()

    # The robot.

    @property
    def hand(self) -> Array:
        """Where the grip site is."""
        place: Array = self.data.site_xpos[self.site].copy()
        return place

    @property
    def hand_axes(self) -> Array:
        """Its axes as columns: x is the way the fingers close, z the way they point."""
        return np.array(self.data.site_xmat[self.site]).reshape(3, 3)

    @property
    def elbow(self) -> float:
        """The angle of the arm's fourth joint: -0.07 where it is straight, and ends."""
        return float(self.data.qpos[self.fourth])

    @property
    def opening(self) -> float:
        """From the middle to the inside of a finger."""
        return float(np.abs(self.data.qpos[self.fingers]).mean())

    def held(self, name: str) -> bool:
        """Whether the gripper touches a thing."""
        pairs = self.data.contact.geom
        own = self.predicates.touched[name]
        left, right = pairs[:, 0], pairs[:, 1]
        return bool(((own[left] & self.hands[right]) | (own[right] & self.hands[left])).any())

    # Things.

    def holds(self, relation: Relation) -> bool:
        """Whether a relation holds now."""
        return self.predicates.holds(relation)

    def body(self, name: str) -> Body:
        """A thing's description."""
        return self.bodies[name]

    def position(self, name: str) -> Array:
        """Of a thing's origin."""
        place: Array = self.data.xpos[self.roots[name]].copy()
        return place

    def axes(self, name: str) -> Array:
        """Of a thing, as columns."""
        return np.array(self.data.xmat[self.roots[name]]).reshape(3, 3)

    def joint(self, name: str) -> float:
        """How a joint of a fixture stands."""
        return float(self.data.joint(name).qpos[0])

    def geoms_of(self, name: str) -> list[int]:
        """What touches of a thing, all its parts."""
        root = self.roots[name]
        return [g for g in self.solid if self.model.body_rootid[self.model.geom_bodyid[g]] == root]

    def part_geoms(self, body: int) -> list[int]:
        """What touches of one body of the model, without the bodies that hang on it."""
        return [g for g in self.solid if self.model.geom_bodyid[g] == body]

    def solids(self, name: str) -> Solids:
        """Of a thing, now."""
        if name not in self._solids:
            self._solids[name] = solids_of(self.model, self.data, self.geoms_of(name))
        return self._solids[name]

    def others(self, *without: str) -> Solids:
        """Everything that can be in the way but these things."""
        left_out = {g for name in without for g in self.geoms_of(name)}
        return solids_of(self.model, self.data, [g for g in self.solid if g not in left_out])

    def site_box(self, name: str) -> tuple[Array, Array, Array]:
        """Middle, axes and half the edges of a region."""
        middle, axes, size = self.predicates.boxes[name]
        return middle.copy(), axes.copy(), size
