"""LIBERO's scripted experts, alone, as an agent and as demonstrators."""

import json

import numpy as np
import pytest
from gymnasium import spaces
from libero_kit import blind, needs_assets, states_of, task

h5py = pytest.importorskip("h5py")

from perdure.agents.expert import SuiteExpert
from perdure.errors import CurriculumError, EnvironmentFault, SpecError
from perdure.registry import entries, suite
from perdure.run.demos import collect
from perdure.suites._demonstrations import DemonstrationFile
from perdure.suites.libero import tasks as libero_tasks
from perdure.suites.libero.demonstration_data import Demonstrations
from perdure.suites.libero.demonstrations import axis_angle_of, replay
from perdure.suites.libero.env import PRIVILEGED, look_of, scene_of
from perdure.suites.libero.experts import Expert, solve
from perdure.suites.libero.experts.clearing import sidestep
from perdure.suites.libero.experts.grasps import downward, find
from perdure.suites.libero.experts.motion import rotation_vector
from perdure.suites.libero.experts.places import Held, twist
from perdure.suites.libero.experts.plan import ordered
from perdure.suites.libero.experts.planning_scene import PlanningScene
from perdure.suites.libero.experts.solids import Solids, gripper, hits_gripper
from perdure.suites.libero.problem import Relation
from perdure.suites.libero.problems import problem_of
from perdure.suites.libero.rotations import turn_of
from perdure.types import Context, Setup, Task

SUITE = suite("libero")
SHORT = "90-33"
"""Closing a microwave: the expert's shortest task."""


def box(middle, half, yaw=0.0, is_round=False):
    c, s = np.cos(yaw), np.sin(yaw)
    axes = np.array([[[c, -s, 0], [s, c, 0], [0, 0, 1.0]]])
    return Solids(np.array([middle], float), axes, np.array([half], float), np.array([is_round]))


def test_points_in_solids():
    quarter = box((1, 0, 0), (0.5, 0.1, 0.1), np.pi / 4)
    points = np.array([[1, 0, 0], [1.3, 0.3, 0], [1.3, -0.3, 0], [1.3, 0.3, 0.2]])
    assert quarter.inside(points).tolist() == [True, True, False, False]
    assert quarter.inside(points, 0.11).tolist() == [True, True, False, True]
    corner = np.array([[1.09, 0.09, 0]])
    assert box((1, 0, 0), (0.1, 0.1, 0.1)).inside(corner).all()
    assert not box((1, 0, 0), (0.1, 0.1, 0.1), is_round=True).inside(corner).any()
    low, high = quarter.extent()
    assert np.allclose(high[:2], np.array([1, 0]) + 0.6 / np.sqrt(2)) and np.allclose(low[2], -0.1)


def test_a_bar_is_grasped_across_and_not_through_what_stands_beside_it():
    bar = box((0, 0, 0.1), (0.10, 0.01, 0.01))
    free = box((1, 1, 0), (0.01, 0.01, 0.01))
    best = find(bar, free)[0]
    assert abs(best.axes[1, 0]) > 0.95, "fingers close across the bar"
    assert np.linalg.norm(best.position[:2]) < 0.02, "near its weight"
    shape = gripper(best.opening).moved(best.axes, best.position)
    assert not shape.inside(bar.surface()).any()
    wall = box((0.0, 0.05, 0.1), (0.03, 0.03, 0.2))
    for grasp in find(bar, wall):
        local = (wall.surface(0.01) - grasp.position) @ grasp.axes
        assert not hits_gripper(gripper(grasp.opening), local)


class Table:
    """A world of a hand that holds a cube, and of solids around it."""

    hand, hand_axes = np.array([0.0, 0.0, 0.1]), downward(0.0)

    def __init__(self, *around):
        self.around = around

    def others(self, *_):
        parts = [vars(solid) for solid in self.around]
        return Solids(*(np.concatenate([p[n] for p in parts]) for n in parts[0]))


def test_out_from_under_what_is_above():
    """A cube of 6 cm in the hand, under a board whose edge is 3 cm to the right of its middle."""
    held = Held("cube", np.eye(3), np.zeros(3), box((0, 0, 0), (0.03, 0.03, 0.03)))
    far = box((2, 2, 0), (0.01, 0.01, 0.01))
    board = box((-0.17, 0, 0.3), (0.2, 0.29, 0.01))
    assert not sidestep(Table(far), held, 0.5).any(), "nothing is above it"
    assert not sidestep(Table(far, board), held, 0.2).any(), "it does not go up so far"
    step = sidestep(Table(far, board), held, 0.5)
    # Half its diagonal from the edge, and 8 mm.
    assert step[0] - 0.03 > np.hypot(0.03, 0.03) and abs(step[1]) < 0.05 and not step[2]
    assert np.linalg.norm(step) <= 0.12


def test_turns():
    for angle in (0.3, 2.0, np.pi):
        axis = np.array([0.6, 0.0, 0.8])
        turn = turn_of(axis * angle)
        found = rotation_vector(turn)
        assert np.allclose(turn_of(found), turn, atol=1e-5)
        assert np.isclose(np.linalg.norm(found), angle, atol=1e-3)
    assert np.isclose(twist(downward(np.pi / 2 + 0.4)), 0.4)
    half = np.array([0, 0, np.sin(0.5), np.cos(0.5)])
    assert np.allclose(axis_angle_of(half), [0, 0, 1]) and not axis_angle_of(np.eye(4)[3]).any()


@needs_assets
def test_goals_are_put_in_order():
    def order(name):
        scene = scene_of(problem_of(libero_tasks.find(name)), "official")
        return [str(r) for r in ordered(scene.problem.goal, PlanningScene(scene))]

    assert [r.split("(")[0] for r in order("10-3")] == ["in", "close"]
    stacked = order("90-63")
    assert stacked[0].startswith("in(akita_black_bowl_2") and stacked[1].startswith("on(")


@needs_assets
@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("object-1", 0),
        ("goal-7", 0),
        ("goal-0", 0),
        ("90-22", 0),
        (SHORT, 7),
        ("spatial-0", 3),
        ("goal-5", 1),
        ("90-84", 0),
    ],
)
def test_experts_do_what_is_asked(name, state):
    """One task of each skill: into a basket, a knob, opening and closing a drawer, a door, onto a
    plate, a plate that is pushed, and a mug so far away that the arm is straight. scripts/libero_experts.py plays all."""
    env = SUITE.env(blind(name, solves=1, horizon=250)).unwrapped
    attempt = solve(env, options={"episode": state})
    assert attempt.success and np.abs(attempt.actions).max() <= 1
    assert not np.array_equal(env.simulation.state(), states_of(name)[state])


def ctx(start):
    return Context("eval", False, 0, (f"libero/{SHORT}",), np.arange(1), np.array([start]))


@needs_assets
def test_the_agent_plays_and_its_memory_brings_it_back():
    assert entries("agents")["expert"].source == "perdure.agents.expert"
    shown = blind(SHORT, solves=1, privileged=True)
    seen_space, action_space = SUITE.spaces(shown)
    setup = Setup(seen_space, action_space, 1, 0, (shown.id,), shown_tasks=(shown,))
    one, other = SuiteExpert(setup), SuiteExpert(setup)
    env = SUITE.env(shown)
    obs, _ = env.reset(seed=0, options={"episode": 0})
    assert obs["privileged"].shape == (PRIVILEGED,)
    done, k = False, 0
    while not done and k < 200:
        batch = {n: v[None] for n, v in obs.items()}
        if k == 12:
            other.load_memory(one.memory())
        action = one.act(batch, ctx(k == 0))
        if k >= 12:
            assert np.array_equal(action, other.act(batch, ctx(False)))
        obs, _, done, _, _ = env.step(action[0])
        k += 1
    assert done


def test_the_agent_plays_in_the_look_that_it_is_shown():
    """It needs no published meshes, and measures those things that are there."""
    shown = Task(
        "libero",
        "object-3",
        params={"cameras": [], "privileged": True, "solves": 1, "horizon": 300},
    )
    setup = Setup(*SUITE.spaces(shown), 1, 0, (shown.id,), shown_tasks=(shown,))
    agent, env = SuiteExpert(setup), SUITE.env(shown)
    obs, _ = env.reset(seed=0, options={"episode": 0})
    assert look_of(obs["privileged"]) == "primitive"
    done, cut, k = False, False, 0
    while not (done or cut):
        where = Context("eval", False, 0, (shown.id,), np.arange(1), np.array([k == 0]))
        action = agent.act({n: v[None] for n, v in obs.items()}, where)
        obs, _, done, cut, _ = env.step(action[0])
        k += 1
    assert done


def test_the_agent_says_what_it_needs():
    space = spaces.Dict({"robot0_joint_pos": spaces.Box(-1, 1, (7,))})
    action = spaces.Box(-1, 1, (7,))
    with pytest.raises(SpecError, match="privileged = true"):
        SuiteExpert(Setup(space, action, 1, 0, ("libero/object-0",)))
    with pytest.raises(SpecError, match="identity"):
        SuiteExpert(Setup(space, action, 1, 0))
    with pytest.raises(SpecError, match="one suite"):
        SuiteExpert(Setup(space, action, 1, 0, ("libero/object-0", "metaworld/reach")))
    with pytest.raises(SpecError, match="suite toy has no scripted experts"):
        SuiteExpert(Setup(space, action, 1, 0, ("toy/reach",)))


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    out = tmp_path_factory.mktemp("demos")
    params = {"cameras": [], "solves": 1, "horizon": 200, "look": "official"}
    (path,) = collect(SUITE.demonstration_tasks(SHORT, params), out, 2)
    return path


@needs_assets
def test_demonstrations_have_the_original_layout_and_succeed_again(demos):
    official = libero_tasks.find(SHORT)
    assert demos.parts[-2:] == (official.folder, f"{official.file}_demo.hdf5")
    with h5py.File(demos) as file:
        data = file["data"]
        assert (
            json.loads(data.attrs["problem_info"])["language_instruction"] == official.instruction
        )
        assert json.loads(data.attrs["env_args"])["env_kwargs"]["controller"] == "OSC_POSE"
        assert "(:goal" in data.attrs["bddl_file_content"]
        demo = data["demo_1"]
        n = demo.attrs["num_samples"]
        shapes = {
            "actions": (n, 7), "robot_states": (n, 9), "rewards": (n,), "dones": (n,),
            "obs/joint_states": (n, 7), "obs/gripper_states": (n, 2), "obs/ee_pos": (n, 3),
            "obs/ee_ori": (n, 3), "obs/ee_states": (n, 6),
        }  # fmt: skip
        assert {name: demo[name].shape for name in shapes} == shapes
        assert demo["states"].shape[1] == states_of(SHORT).shape[1]
        assert np.array_equal(demo["states"][0], demo.attrs["init_state"])
        assert not np.array_equal(data["demo_0"]["states"][0], demo["states"][0])
    file = DemonstrationFile(demos)
    shown = blind(SHORT, solves=1)
    assert all(replay(shown, file.read(n)) for n in file.names)
    nothing = file.read("demo_0")
    nothing.arrays["actions"][:] = 0
    assert not replay(shown, nothing)
    file.close()


@needs_assets
def test_demonstrations_are_data(demos):
    folder = str(demos.parents[1])
    shown = blind(SHORT, demos=folder, sequence=4, objects=True)
    data = SUITE.data(shown, True)
    assert isinstance(data, Demonstrations)
    file = DemonstrationFile(demos)
    assert len(data) == sum(file.lengths)
    last = file.lengths[0] - 1
    batch = data.batch(np.array([0, last]))
    actions = file.read("demo_0").arrays["actions"].astype(np.float32)
    assert np.array_equal(batch.targets[0], actions[:4])
    assert np.array_equal(batch.targets[1], np.repeat(actions[-1:], 4, 0)), "the end is repeated"
    seen, _ = SUITE.spaces(shown)
    single = {n: v[0, 0] for n, v in batch.inputs.items()}
    assert seen.contains(single)
    stored = file.read("demo_0").arrays["obs/joint_states"]
    assert np.allclose(batch.inputs["robot0_joint_pos"][0], stored[:4], atol=0.01)
    steps = SUITE.data(blind(SHORT, demos=str(demos.parent)), True).batch(np.array([3]))
    assert steps.targets.shape == (1, 7) and steps.inputs["robot0_eef_pos"].shape == (1, 3)
    with pytest.raises(CurriculumError, match="held out"):
        SUITE.data(shown, False)
    with pytest.raises(CurriculumError, match="set demos"):
        SUITE.data(blind(SHORT), True)
    with pytest.raises(CurriculumError, match="perdure demos"):
        SUITE.data(blind("object-0", demos=folder), True)
    with pytest.raises(EnvironmentFault, match="no pictures of agentview"):
        SUITE.data(task(SHORT, demos=folder), True).batch(np.array([0]))


@needs_assets
def test_an_expert_sees_what_the_simulation_is(demos):
    env = SUITE.env(blind(SHORT, solves=1)).unwrapped
    env.reset(seed=5, options={"episode": 3})
    simulation = env.simulation
    expert = Expert(simulation.scene)
    expert.world.see(simulation.privileged())
    for name, number in simulation.fixtures.items():
        assert np.allclose(expert.world.position(name), simulation.model.body_pos[number])
    closed = Relation("close", ("microwave_1",))
    assert expert.world.holds(closed) == simulation.predicates.holds(closed) is False


def test_points_in_solids_are_those_that_each_solid_says():
    """Solids that are elsewhere are left out of the search; turned ones and cylinders too."""
    rng = np.random.default_rng(3)
    turns, _ = np.linalg.qr(rng.standard_normal((40, 3, 3)))
    shapes = Solids(
        rng.uniform(-0.5, 0.5, (40, 3)),
        turns,
        rng.uniform(0.01, 0.2, (40, 3)),
        rng.random(40) < 0.3,
    )
    for width, margin in ((1.0, 0.0), (0.1, 0.02), (0.02, -0.005)):
        points = rng.uniform(-0.5, 0.5, 3) + rng.uniform(-width, width, (300, 3))
        each = np.zeros((40, 300), bool)
        for k in range(40):
            local = np.abs((points - shapes.middles[k]) @ shapes.axes[k])
            half = shapes.halves[k] + margin
            flat = (
                np.hypot(local[:, 0], local[:, 1]) < half[0]
                if shapes.round[k]
                else (local[:, :2] < half[:2]).all(1)
            )
            each[k] = flat & (local[:, 2] < half[2])
        assert np.array_equal(shapes.inside(points, margin), each.any(0))
    low, high = shapes.extent()
    ends = shapes.corners().reshape(-1, 3)
    assert low == pytest.approx(ends.min(0)) and high == pytest.approx(ends.max(0))
