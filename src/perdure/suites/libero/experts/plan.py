"""From a goal formula to skills: which relation first, and what to do for it."""

from __future__ import annotations

from perdure.suites.libero.experts import fixtures, handling, pushing
from perdure.suites.libero.experts.motion import HOLD, STRAIGHT, Script, back_home, wait
from perdure.suites.libero.experts.planning_scene import PlanningScene
from perdure.suites.libero.problem import Relation

FIRST = {"turnoff": 0, "turnon": 0, "open": 1, "in": 2, "on": 2, "close": 3}
"""In which order relations are made true, where nothing else decides."""

LOOKS = 2
"""How often a way is looked for and not found before it is left."""


def ordered(goal: tuple[Relation, ...], world: PlanningScene) -> list[Relation]:
    """A goal's relations in an order in which one does not undo another."""
    filled = {fixtures.owner(world, r.names[1]) for r in goal if r.predicate == "in"}

    def rank(relation: Relation) -> tuple[int, int]:
        first = FIRST.get(relation.predicate, 2)
        if relation.predicate == "close" and fixtures.owner(world, relation.names[0]) not in filled:
            first = 1
        # What something else is put on comes before that.
        carries = sum(r.names[-1] == relation.names[0] for r in goal if r.predicate in ("on", "in"))
        return first, -carries

    return sorted(goal, key=rank)


def script(world: PlanningScene) -> Script:
    """Do what a task's goal asks for, and try again what failed, for ever."""
    goal = ordered(world.scene.problem.goal, world)
    tries: dict[Relation, int] = {}
    vain: dict[Relation, int] = {}
    """How often no way was found: to look is slow, and what is around changes little."""
    world.home = world.hand, world.hand_axes
    while True:
        todo = [needed_first(world, r) for r in goal if not world.holds(r)]
        todo = [r for r in todo if vain.get(r, 0) < LOOKS]
        acted = False
        if todo:
            relation = todo[0]
            count = tries[relation] = tries.get(relation, -1) + 1
            if count or world.elbow > STRAIGHT:
                yield from back_home(world, world.home)
            for action in skill(world, relation, count):
                acted = True
                yield action
            if not acted:
                vain[relation] = vain.get(relation, 0) + 1
        # Things may still be moving.
        yield from wait(world, HOLD, 5 if acted else 20)


def needed_first(world: PlanningScene, relation: Relation) -> Relation:
    """The relation, or that the drawer is open which it puts something into."""
    if relation.predicate == "in":
        zone = world.scene.zones[relation.names[1]]
        if zone.parent is not None and world.bodies[zone.parent].category.joints is not None:
            whole = zone.parent if not zone.joints else relation.names[1]
            opened = Relation("open", (whole,))
            if not world.holds(opened) and any(
                world.joint(j) > -0.12
                for j in (world.scene.zones.get(whole) or world.bodies[whole]).joints
            ):
                return opened
    return relation


def skill(world: PlanningScene, relation: Relation, tried: int) -> Script:
    """What makes a relation true. ``tried`` is how often it has failed, for something else to be tried."""
    match relation.predicate:
        case "on" | "in":
            if pushing.can_be_pushed(world, relation) and tried % 4 < 3:
                return pushing.push(world, relation, tried)
            return handling.move(world, relation, tried)
        case "turnon" | "turnoff":
            return fixtures.turn_knob(world, relation, tried)
        case "open" | "close":
            drawer = fixtures.slides(world, fixtures.joint_of(world, relation))
            if relation.predicate == "open":
                make = fixtures.open_drawer if drawer else fixtures.open_door
            else:
                make = fixtures.close_drawer if drawer else fixtures.close_door
            return make(world, relation, tried)
        case other:
            raise ValueError(f"no skill makes {other} true")
