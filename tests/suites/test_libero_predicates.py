"""LIBERO's predicates: on states made true and false, and equal to upstream's recorded answers."""

import sys

import mujoco
import numpy as np
import pytest
from libero_kit import REFERENCE, in_both_looks, needs_assets, recorded, simulation

from perdure.errors import EnvironmentFault
from perdure.suites.libero.placement import Pose
from perdure.suites.libero.problem import Relation

sys.path.insert(0, str(REFERENCE))
from record import ASKED


@needs_assets
def test_answers_are_upstreams():
    """In states in which goals hold, are nearly missed, or do not hold."""
    told = recorded("predicates")
    counts = {}
    for seed, name in enumerate(ASKED):
        sim = simulation(name)
        sim.reset(seed)
        states, answers = told[f"{name}/states"], told[f"{name}/answers"]
        goal = sim.scene.problem.goal
        assert answers.shape == (len(states), len(goal))
        for state, expected in zip(states, answers, strict=True):
            sim.set_state(state)
            found = [sim.predicates.holds(r) for r in goal]
            assert found == expected.tolist(), (name, [str(r) for r in goal])
            for relation, answer in zip(goal, found, strict=True):
                where = relation.names[-1]
                kind = "body" if where in sim.scene.bodies else "zone"
                if kind == "zone" and sim.scene.zones[where].parent is None:
                    kind = "surface"
                counts.setdefault((relation.predicate, kind), []).append(answer)
    assert {("on", "body"), ("on", "zone"), ("on", "surface"), ("in", "zone"), ("open", "zone"),
            ("open", "body"), ("close", "zone"), ("close", "body"), ("turnon", "body"),
            ("turnoff", "body")} == counts.keys()  # fmt: skip
    for kind, given in counts.items():
        assert True in given, f"{kind} never held"
        if kind != ("turnon", "body"):  # Its false states are made below.
            assert False in given, f"{kind} always held"


def joint(sim, name, value):
    sim.data.joint(name).qpos[0] = value
    mujoco.mj_forward(sim.model, sim.data)


def put(sim, name, place):
    sim.put({name: Pose(np.array(place, float), np.array([1.0, 0, 0, 0]))})
    mujoco.mj_forward(sim.model, sim.data)


@in_both_looks
def test_drawers_are_open_closed_or_neither(look):
    sim = simulation("goal-0", look)
    sim.reset(0)
    drawer = "wooden_cabinet_1_middle_level"
    region, body = "wooden_cabinet_1_middle_region", "wooden_cabinet_1"
    assert sim.scene.zones[region].joints == (drawer,)

    def now():
        return [
            sim.predicates.holds(Relation(p, (n,)))
            for p in ("open", "close")
            for n in (region, body)
        ]

    joint(sim, drawer, -0.1401)
    assert now() == [True, True, False, False]
    joint(sim, drawer, -0.1399)
    assert now() == [False, False, False, False]
    joint(sim, drawer, 0.0)
    assert now() == [False, False, False, False], "closed only beyond the end"
    joint(sim, drawer, 1e-4)
    assert now() == [False, False, True, False], "the others are at their end, not beyond it"
    for other in ("top", "bottom"):
        joint(sim, f"wooden_cabinet_1_{other}_level", 1e-4)
    assert now() == [False, False, True, True]


@in_both_looks
def test_the_microwave_and_the_stove(look):
    sim = simulation("90-35", look)
    sim.reset(0)
    (door,) = sim.scene.bodies["microwave_1"].joints
    opened, closed = Relation("open", ("microwave_1",)), Relation("close", ("microwave_1",))
    for value, expected in (
        (-1.31, (True, False)),
        (-1.29, (False, False)),
        (-0.004, (False, True)),
    ):
        joint(sim, door, value)
        assert (sim.predicates.holds(opened), sim.predicates.holds(closed)) == expected
    sim = simulation("90-39", look)
    sim.reset(0)
    (knob,) = sim.scene.bodies["flat_stove_1"].joints
    on, off = Relation("turnon", ("flat_stove_1",)), Relation("turnoff", ("flat_stove_1",))
    for value, expected in ((0.5, (True, False)), (0.49, (False, False)), (-1e-4, (False, True))):
        joint(sim, knob, value)
        assert (sim.predicates.holds(on), sim.predicates.holds(off)) == expected


@in_both_looks
def test_on_a_body_needs_contact_and_nearness(look):
    sim = simulation("spatial-0", look)
    sim.reset(0)
    goal = Relation("on", ("akita_black_bowl_1", "plate_1"))
    assert sim.scene.problem.goal == (goal,)
    plate, bowl = sim.predicates.origins["plate_1"].copy(), "akita_black_bowl_1"
    put(sim, bowl, np.add(plate, (0, 0, 0.2)))
    assert not sim.predicates.touch(bowl, "plate_1") and not sim.success()
    for height in np.arange(0.05, 0, -0.001):  # Lower it to the plate.
        put(sim, bowl, np.add(plate, (0, 0, height)))
        if sim.predicates.touch("plate_1", bowl):
            break
    assert sim.predicates.touch(bowl, "plate_1") and sim.success()
    for away, expected in ((0.029, True), (0.031, False)):
        put(sim, bowl, np.add(plate, (away, 0, height / 2)))
        assert sim.predicates.touch("plate_1", bowl) and sim.success() is expected
    put(sim, bowl, np.add(plate, (0, 0, -0.001)))
    assert not sim.success(), "below it"


@in_both_looks
def test_in_a_box_and_on_a_part_of_the_table(look):
    sim = simulation("object-0", look)
    sim.reset(0)
    middle = sim.predicates.boxes["basket_1_contain_region"][0].copy()
    size = sim.scene.zones["basket_1_contain_region"].size
    for away, expected in (((0, 0, 0), True), ((0, 0, -size[2] - 0.009), True),
                           ((0, 0, -size[2] - 0.011), False), ((0, 0, size[2] + 1e-3), False),
                           ((0.5, 0, 0), False)):  # fmt: skip
        put(sim, "alphabet_soup_1", np.add(middle, away))
        assert sim.success() is expected, away
    sim = simulation("90-70", look)
    sim.reset(0)
    (goal,) = sim.scene.problem.goal
    zone = sim.scene.zones[goal.names[1]]
    assert zone.parent is None
    middle, _, size = sim.predicates.boxes[zone.name]
    middle = middle.copy()
    for away, expected in (((0, 0, size[2]), True), ((0, 0, size[2] - 0.006), False),
                           ((0, 0, size[2] + 0.099), True), ((0, 0, size[2] + 0.101), False),
                           ((size[0] * 0.99, 0, size[2]), True),
                           ((size[0] * 1.01, 0, size[2]), False)):  # fmt: skip
        put(sim, goal.names[0], np.add(middle, away))
        assert sim.success() is expected, away


@in_both_looks
def test_up_is_above_a_metre(look):
    sim = simulation("spatial-0", look)
    sim.reset(0)
    up = Relation("up", ("plate_1",))
    assert not sim.predicates.holds(up)
    put(sim, "plate_1", (0, 0, 1.0))
    assert sim.predicates.holds(up)


@in_both_looks
@pytest.mark.parametrize(
    "relation",
    [
        Relation("in", ("akita_black_bowl_1", "plate_1")),
        Relation("open", ("plate_1",)),
        Relation("turnon", ("wooden_cabinet_1",)),
        Relation("on", ("wooden_cabinet_1_top_region", "plate_1")),
        Relation("on", ("cup_1", "plate_1")),
    ],
    ids=str,
)
def test_what_means_nothing_is_refused(relation, look):
    with pytest.raises(EnvironmentFault, match="no meaning"):
        simulation("spatial-0", look).predicates.check(relation)
