"""Whether a relation holds in the simulation, as upstream's predicates answer it.

Positions are those of bodies' origins. Some of the rules are odd (a box is turned by its absolute
values, a drawer counts as closed only beyond its end); success means what it means in published
results, so they are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.errors import EnvironmentFault
from perdure.suites.libero.categories import Articulation
from perdure.suites.libero.problem import Relation
from perdure.suites.libero.scene import Body, Scene, Zone
from perdure.types import Array

SLACK = 0.01
"""How far below a box something may be and count as in it."""
HEADROOM = 0.10
"""How high above a box's top an origin may be and count as on it."""
NEAR = 0.03
"""How far apart the middles of two things may be, seen from above, that are on each other."""
RAISED = 1.0


class Predicates:
    """Answers about one simulation. Positions and contacts must be computed."""

    def __init__(self, scene: Scene, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.scene, self.data = scene, data
        self.origins = {n: data.xpos[model.body(b.root).id] for n, b in scene.bodies.items()}
        self.boxes = {
            n: (data.site_xpos[i], data.site_xmat[i].reshape(3, 3), np.array(z.size))
            for n, z in scene.zones.items()
            for i in [model.site(n).id]
        }
        joints = {j for body in scene.bodies.values() for j in body.joints}
        self.values = {
            j: data.qpos[a : a + 1] for j in joints for a in [int(model.joint(j).qposadr[0])]
        }
        self.touched: dict[str, Array] = {}
        """Which geoms are a body's."""
        for name, body in scene.bodies.items():
            mask = np.zeros(model.ngeom, bool)
            mask[[model.geom(g).id for g in body.geoms]] = True
            self.touched[name] = mask
        for relation in scene.problem.goal:
            self.check(relation)

    def check(self, relation: Relation) -> None:
        """Refuse a relation that has no answer in this scene."""
        scene, names = self.scene, relation.names
        about = [scene.bodies.get(n) or scene.zones.get(n) for n in names]
        fits = None not in about
        if fits and relation.predicate in ("on", "in"):
            fits = isinstance(about[0], Body)
            if relation.predicate == "in":
                fits = fits and isinstance(about[1], Zone)
        elif fits and relation.predicate in ("open", "close"):
            fits = self._articulation(names[0]) is not None
        elif fits and relation.predicate in ("turnon", "turnoff"):
            fits = isinstance(about[0], Body) and about[0].category.switch is not None
        if not fits:
            raise EnvironmentFault(f"{relation} has no meaning in this scene")

    def all_hold(self, relations: Iterable[Relation]) -> bool:
        """Whether each of them holds."""
        return all(self.holds(r) for r in relations)

    def holds(self, relation: Relation) -> bool:
        """Whether a relation holds now."""
        first, last = relation.names[0], relation.names[-1]
        match relation.predicate:
            case "on":
                return self._on(first, last)
            case "in":
                return self._in(first, last)
            case "up":
                return bool(self.origins[first][2] >= RAISED)
            case "open" | "close":
                articulation = self._articulation(first)
                assert articulation is not None
                owner = self.scene.bodies.get(first) or self.scene.zones[first]
                values = [float(self.values[j][0]) for j in owner.joints]
                if relation.predicate == "open":
                    return any(_is_open(articulation, v) for v in values)
                return all(_is_closed(articulation, v) for v in values)
            case _:
                return self.is_on(first) if relation.predicate == "turnon" else self.is_off(first)

    def is_on(self, name: str) -> bool:
        """Whether something with a switch is on."""
        body = self.scene.bodies[name]
        assert body.category.switch is not None
        return any(self.values[j][0] >= body.category.switch.opened[0] for j in body.joints)

    def is_off(self, name: str) -> bool:
        """Whether it is off; in between it is neither."""
        body = self.scene.bodies[name]
        assert body.category.switch is not None
        return all(self.values[j][0] < body.category.switch.closed[1] for j in body.joints)

    def touch(self, one: str, other: str) -> bool:
        """Whether two bodies are in contact."""
        pairs = self.data.contact.geom
        a, b = self.touched[one], self.touched[other]
        left, right = pairs[:, 0], pairs[:, 1]
        return bool(((a[left] & b[right]) | (b[left] & a[right])).any())

    def _articulation(self, name: str) -> Articulation | None:
        if name in self.scene.bodies:
            return self.scene.bodies[name].category.joints
        parent = self.scene.zones[name].parent
        return None if parent is None else self.scene.bodies[parent].category.joints

    def _on(self, what: str, where: str) -> bool:
        origin = self.origins[what]
        if where in self.scene.bodies:
            below = self.origins[where]
            apart = float(np.linalg.norm(below[:2] - origin[:2]))
            return bool(below[2] <= origin[2]) and apart < NEAR and self.touch(where, what)
        middle, axes, size = self.boxes[where]
        away = axes @ (origin - middle)
        inside = size[2] - 0.005 < away[2] < size[2] + HEADROOM and np.all(
            np.abs(away[:2]) < size[:2]
        )
        parent = self.scene.zones[where].parent
        return bool(inside) and (parent is None or self.touch(parent, what))

    def _in(self, what: str, where: str) -> bool:
        middle, axes, size = self.boxes[where]
        reach = np.abs(axes @ size)
        low, high = middle - reach, middle + reach
        low[2] -= SLACK
        origin = self.origins[what]
        return bool(np.all(origin > low) and np.all(origin < high))


def _is_open(joints: Articulation, value: float) -> bool:
    return value < joints.opened[1] if joints.opens_downwards else value > joints.opened[0]


def _is_closed(joints: Articulation, value: float) -> bool:
    return value > joints.closed[0] if joints.opens_downwards else value < joints.closed[1]
