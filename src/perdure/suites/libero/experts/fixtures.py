"""Drawers, doors and knobs: opening, closing and turning them."""

from __future__ import annotations

import numpy as np

from perdure.suites.libero.experts import grasps
from perdure.suites.libero.experts.grasps import OPEN, Grasp, downward, leaning, pointing
from perdure.suites.libero.experts.handling import FLIP, approach, close, easiest
from perdure.suites.libero.experts.motion import CLOSED, OPENED, Script, go, toward, wait
from perdure.suites.libero.experts.places import LEVEL, TWISTED, turned, twist
from perdure.suites.libero.experts.planning_scene import PlanningScene
from perdure.suites.libero.experts.solids import Solids, solids_of
from perdure.suites.libero.problem import Relation
from perdure.types import Array

TURN = 0.9
"""Radians that a knob is turned at a time."""


def owner(world: PlanningScene, name: str) -> str:
    """The thing that a region or a thing is of."""
    zone = world.scene.zones.get(name)
    return name if zone is None or zone.parent is None else zone.parent


def joint_of(world: PlanningScene, relation: Relation) -> str:
    """The joint that decides it."""
    name = relation.names[0]
    part = world.scene.bodies.get(name) or world.scene.zones[name]
    return part.joints[0]


def slides(world: PlanningScene, joint: str) -> bool:
    """Whether it is a drawer's rather than a door's."""
    return int(world.model.joint(joint).type[0]) == 2


def axis(world: PlanningScene, joint: str) -> Array:
    """Of a joint, in the world."""
    found: Array = world.data.xaxis[world.model.joint(joint).id].copy()
    return found


def parts(world: PlanningScene, joint: str) -> Solids:
    """What a joint moves."""
    body = int(world.model.jnt_bodyid[world.model.joint(joint).id])
    return solids_of(world.model, world.data, world.part_geoms(body))


def handle(world: PlanningScene, joint: str) -> tuple[Solids, Array]:
    """The bar of a drawer and the level way out of it."""
    out = -axis(world, joint)  # Drawers open as their joint falls.
    pieces = parts(world, joint)
    ends = (pieces.corners() @ out).max(1)
    front = ends.max()
    bar = pieces.take(ends > front - 0.004)
    return bar, out


def open_drawer(world: PlanningScene, relation: Relation, tried: int) -> Script:
    """Take the bar and draw it out."""
    joint = joint_of(world, relation)
    bar, out = handle(world, joint)
    poses = [
        pointing(np.cos(lean) * -LEVEL - np.sin(lean) * out, closing)
        for lean in np.deg2rad((60, 75, 45, 85))
        for closing in (LEVEL,)
    ]
    rest = world.others()
    own = {tuple(np.round(m, 5)) for m in bar.middles}
    rest = rest.take(np.array([tuple(np.round(m, 5)) not in own for m in rest.middles]))
    found = grasps.find(bar, rest, poses, openings=(OPEN, 0.025), count=8)
    if not found:
        return
    grasp = found[(2 * tried) % len(found)]
    axes = easiest(grasp.axes)
    back = grasp.position - axes[:, 2] * 0.06 + out * 0.03
    yield from approach(world, back, axes, OPENED)
    yield from go(world, grasp.position, axes, OPENED, near=0.006, turned=0.08, speed=0.6, steps=40)
    yield from close(world, grasp.position, axes)
    # Levelled along the way: the bar stays at the height it has.
    begin, first = world.hand, world.joint(joint)
    for _ in range(70):
        moved = first - world.joint(joint)
        if world.joint(joint) < -0.152:
            break
        target = begin + out * (moved + 0.06)
        yield toward(world, target, axes, CLOSED, 0.8)
    yield from wait(world, OPENED, 6)
    yield from go(
        world, world.hand + out * 0.03 - axes[:, 2] * 0.06, axes, OPENED, near=0.02, steps=25
    )
    yield from go(world, world.hand + LEVEL * 0.12, axes, OPENED, near=0.04, steps=25)


def close_drawer(world: PlanningScene, relation: Relation, tried: int) -> Script:
    """Push its front in with the tips of the closed fingers."""
    joint = joint_of(world, relation)
    bar, out = handle(world, joint)
    across = np.cross(LEVEL, out)
    lean = np.deg2rad((50, 65, 35)[tried % 3])
    axes = easiest(pointing(np.cos(lean) * -LEVEL - np.sin(lean) * out, across))
    low, high = bar.extent()
    face = (low + high) / 2
    face = face + out * ((bar.corners().reshape(-1, 3) @ out).max() - face @ out)
    tip = 0.012  # Fingers end this far beyond the grip site.
    contact = face - axes[:, 2] * tip + out * 0.01
    yield from approach(world, contact + out * 0.05, axes, CLOSED)
    begin, first = contact, world.joint(joint)
    for _ in range(80):
        if world.joint(joint) > 0.006:
            break
        target = begin - out * (world.joint(joint) - first + 0.06)
        yield toward(world, target, axes, CLOSED, 0.8)
    yield from go(world, world.hand + out * 0.08, axes, CLOSED, near=0.03, steps=20)
    yield from go(world, world.hand + LEVEL * 0.12, axes, CLOSED, near=0.04, steps=25)


def turn_knob(world: PlanningScene, relation: Relation, tried: int) -> Script:
    """Take the knob's bar from above and turn it, again if once is not enough."""
    joint = joint_of(world, relation)
    up = relation.predicate == "turnon"
    knob = parts(world, joint)
    tops = knob.corners()[..., 2].max(1)
    bar = knob.take(tops > tops.max() - 0.02)
    way = axis(world, joint)
    at = world.data.xanchor[world.model.joint(joint).id].copy()
    sense = (1.0 if up else -1.0) * np.sign(way[2])
    low, high = bar.extent()
    long = _long_axis(bar)
    yaw = float(np.arctan2(long[1], long[0]) + np.pi / 2)
    choices = [downward(yaw), downward(yaw + np.pi)]
    # The one with the most room to turn in.
    axes = min(choices, key=lambda a: abs(twist(a) + sense * TURN / 2))
    middle = (low + high) / 2
    position = np.array([middle[0], middle[1], high[2] - 0.016 + 0.004 * (tried % 3)])
    yield from approach(world, position + LEVEL * 0.06, axes, OPENED)
    yield from go(world, position, axes, OPENED, near=0.006, turned=0.06, speed=0.6, steps=40)
    yield from close(world, position, axes)
    first_twist = twist(axes)
    for k in range(30):
        angle = min(TURN, 0.08 * (k + 1))
        if abs(first_twist + sense * angle) > TWISTED or world.holds(relation):
            break
        turn = turned(sense * angle)
        target = at + turn @ (position - at)
        target[2] = position[2]
        yield toward(world, target, turn @ axes, CLOSED)
    yield from wait(world, OPENED, 5)
    yield from go(world, world.hand + LEVEL * 0.08, None, OPENED, near=0.03, steps=20)


def _long_axis(solids: Solids) -> Array:
    """Of what is seen from above."""
    points = solids.corners().reshape(-1, 3)[:, :2]
    values, vectors = np.linalg.eigh(np.cov(points.T))
    return np.asarray(vectors[:, np.argmax(values)])


def swing(world: PlanningScene, joint: str) -> tuple[Array, Array, Array]:
    """A door's hinge, the way along the door from it, and the way its free end goes as it opens."""
    number = world.model.joint(joint).id
    hinge = world.data.xanchor[number].copy()
    leaf = parts(world, joint)
    middle = leaf.middles[np.argmax(leaf.halves.prod(1))]
    along = (middle - hinge) * (1, 1, 0)
    along = along / np.linalg.norm(along)
    opening = np.cross(-axis(world, joint), along)  # Doors open as their joint falls.
    return hinge, along, opening


def _panel(world: PlanningScene, joint: str) -> Solids:
    leaf = parts(world, joint)
    return leaf.take(np.array([int(np.argmax(leaf.halves.prod(1)))]))


def _reach(panel: Solids, hinge: Array, along: Array) -> float:
    return float(((panel.corners().reshape(-1, 3) - hinge) @ along).max())


def close_door(world: PlanningScene, relation: Relation, tried: int) -> Script:
    """Push the free end of a door round to its frame, from outside."""
    joint = joint_of(world, relation)
    yield from _sweep(world, joint, -1.0, relation, tried)


def _sweep(
    world: PlanningScene, joint: str, sense: float, relation: Relation, tried: int
) -> Script:
    """Push a door with closed fingers that point down: ``sense`` is 1 to open it from inside."""
    hinge, along, opening = swing(world, joint)
    panel = _panel(world, joint)
    high = parts(world, joint).extent()[1]
    far = _reach(panel, hinge, along) - (0.02 + 0.02 * (tried % 3))
    thick = float(np.abs((panel.corners().reshape(-1, 3) - hinge) @ opening).max()) + 0.03
    height = high[2] - 0.02

    def contact(extra: float) -> tuple[Array, Array]:
        hinge, along, opening = swing(world, joint)
        place = hinge + along * far - sense * opening * (thick + extra)
        place[2] = height
        return place, easiest(pointing(-LEVEL, opening if sense > 0 else along))

    place, axes = contact(0.04)
    yield from approach(world, place, axes, CLOSED, near=0.03)
    for _ in range(150):
        if world.holds(relation):
            break
        place, axes = contact(-0.06)
        yield toward(world, place, None, CLOSED, 0.8)
    yield from go(world, world.hand - sense * opening * 0.06, None, CLOSED, near=0.03, steps=20)
    yield from go(world, world.hand + LEVEL * 0.15, None, CLOSED, near=0.04, steps=25)


def open_door(world: PlanningScene, relation: Relation, tried: int) -> Script:
    """Draw a door open by its handle a little, then push it on from inside."""
    joint = joint_of(world, relation)
    if world.joint(joint) > -0.45:
        yield from _draw(world, joint, tried)
    if world.joint(joint) < -0.2 and not world.holds(relation):
        yield from _sweep(world, joint, 1.0, relation, tried)


def _draw(world: PlanningScene, joint: str, tried: int) -> Script:
    hinge, along, opening = swing(world, joint)
    leaf = parts(world, joint)
    out = (leaf.middles - hinge) @ opening
    bar = leaf.take(np.array([int(np.argmax(out))]))
    rest = world.others()
    rest = rest.take(np.linalg.norm(rest.middles - bar.middles[0], axis=1) > 1e-5)
    for poses in ([pointing(-LEVEL, along)], leaning(-opening, np.deg2rad(45))):
        found = grasps.find(bar, rest, poses, openings=(OPEN, 0.03, 0.02), count=8)
        if found:
            break
    else:
        return
    grasp: Grasp = found[tried % len(found)]
    sense = -float(np.sign(axis(world, joint)[2]))
    # The hand turns with the door: it begins where the wrist has room for that.
    axes = min((grasp.axes, grasp.axes @ FLIP), key=lambda a: abs(twist(a) + sense * 0.75))
    yield from approach(world, grasp.position - axes[:, 2] * 0.07, axes, OPENED)
    yield from go(world, grasp.position, axes, OPENED, near=0.006, turned=0.08, speed=0.6, steps=40)
    yield from close(world, grasp.position, axes)
    begin, first = world.hand, world.joint(joint)
    for _ in range(110):
        moved = first - world.joint(joint)
        if moved > 1.0 or world.opening < 0.002:
            break
        turn = turned(sense * (moved + 0.2))
        target = hinge + turn @ (begin - hinge)
        target[2] = begin[2]
        yield toward(world, target, turned(sense * moved) @ axes, CLOSED, 0.7)
    yield from wait(world, OPENED, 5)
    yield from go(world, world.hand - axes[:, 2] * 0.10, None, OPENED, near=0.03, steps=25)
