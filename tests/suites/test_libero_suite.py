"""The LIBERO suite: 130 tasks, official states as episodes, honest seeds, instructions, pictures."""

import json
import os
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest
from libero_kit import (
    REFERENCE,
    blind,
    needs_assets,
    recorded,
    rotation,
    simulation,
    states_of,
    task,
)

from kit import live
from perdure.agent import Agent
from perdure.curricula.named import builder_of, curriculum_of
from perdure.errors import CurriculumError, EnvironmentFault, MissingExtra, UnknownName
from perdure.registry import extras_named, suite
from perdure.specs import Spec
from perdure.suite import Episode
from perdure.suites.libero import assets, protocols
from perdure.suites.libero.problems import problem_of
from perdure.suites.libero.tasks import find, names_of, officials, settings
from perdure.testing import check_task

sys.path.insert(0, str(REFERENCE))
from record import PICTURED, SIDE, actions

SUITE = suite("libero")


# Tasks and instructions.


def test_there_are_130_tasks_in_their_lists():
    assert len(SUITE.tasks()) == 130 and len({o.file for o in officials().values()}) == 130
    sizes = {n: len(names_of(n)) for n in ("spatial", "object", "goal", "10", "90", "100")}
    assert sizes == {"spatial": 10, "object": 10, "goal": 10, "10": 10, "90": 90, "100": 100}
    assert SUITE.task("KITCHEN_SCENE6_close_the_microwave").name == "90-33"
    assert find("90-33").scene == "KITCHEN_SCENE6"
    with pytest.raises(UnknownName, match="did you mean 'spatial-1'"):
        SUITE.task("spatial-11")
    with pytest.raises(UnknownName, match="did you mean 'object'"):
        SUITE.demonstration_tasks("objct", {})
    with pytest.raises(
        UnknownName, match="tasks of object are evaluated by libero/eval-object; perdure ls"
    ):
        builder_of(Spec.parse("libero/objct"))


def test_the_instruction_is_the_benchmarks():
    (said,) = SUITE.instructions(task("90-33"))
    assert said == "close the microwave"
    (said,) = SUITE.instructions(task("90-0"))
    assert said == "close the top drawer of the cabinet"  # KITCHEN_SCENE10 has one letter more.
    (said,) = SUITE.instructions(task("spatial-3"))
    assert said.startswith("pick up the black bowl on the cookie box")


def test_the_files_own_instruction_differs_in_29():
    pairs = {
        t.name: (SUITE.instructions(t)[0], SUITE.instructions(task(t.name, instruction="file"))[0])
        for t in SUITE.tasks()
    }
    assert sum(a != b for a, b in pairs.values()) == 29
    assert pairs["goal-0"] == (
        "open the middle drawer of the cabinet",
        "open the middle layer of the drawer",
    )


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"horizon": 0}, "horizon must be a whole number of at least 1"),
        ({"settle": -1}, "settle must be"),
        ({"initial_states": "old"}, "must be one of numbered, official, cycle, random"),
        ({"initial_state": 50}, "from 0 to 49"),
        ({"initial_state": 3, "initial_states": "random"}, "have no numbers"),
        ({"look": "real"}, "must be one of primitive, official"),
        ({"orientation": "left"}, "upright, upstream, rotated"),
        ({"cameras": "agentview"}, "list of names"),
        ({"cameras": ["a", "a"]}, "twice"),
        ({"proprioception": ["joints"]}, "unknown proprioception"),
        ({"cameras": [], "proprioception": []}, "observe something"),
        ({"objects": 1}, "true or false"),
        ({"solves": 2}, "must be one of 1, 3"),
        ({"horizn": 3}, "did you mean 'horizon'"),
    ],
)
def test_parameters_are_checked(params, words):
    with pytest.raises((CurriculumError, UnknownName), match=words):
        settings(task("goal-0", **params))


# Episodes.


@needs_assets
def test_episode_k_begins_in_state_k():
    env = SUITE.env(blind("spatial-2", settle=0))
    seen = []
    for k in (0, 1, 49):
        env.reset(seed=5, options=Episode(5, 5, k).options)
        seen.append(env.simulation.state())
        np.testing.assert_array_equal(seen[-1], states_of("spatial-2")[k], err_msg=f"episode {k}")
    assert not np.array_equal(seen[0], seen[1])
    with pytest.raises(EnvironmentFault, match="episode 50 would repeat one"):
        env.reset(seed=5, options=Episode(5, 5, 50).options)


class Still(Agent):
    """Does nothing, and remembers how episodes begin."""

    begun: ClassVar[list] = []

    def act(self, obs, ctx):
        joints = np.array(obs["plate_1_pos"])
        for k, start in enumerate(ctx.episode_start[ctx.slots]):
            if start:
                Still.begun.append(joints[k])
        return np.zeros((len(joints), 7), np.float32)


@needs_assets
def test_an_evaluation_plays_every_state_once(tmp_path):
    """Also if two environments share its episodes."""
    params = {"settle": 0, "cameras": [], "objects": True, "horizon": 1, "fixture_seed": 0}
    keys = {"names": ["spatial-2"], "episodes": 5, "look": "official", **params}
    plan = curriculum_of(Spec("libero/eval-tasks", keys))
    Still.begun = []
    rows, agent = live(plan, Still, tmp=tmp_path, envs=2)
    assert len(rows) == 5
    env, expected = SUITE.env(blind("spatial-2", **params)), []
    for k in range(5):
        seen, _ = env.reset(seed=1, options=Episode(1, 1, k).options)
        expected.append(tuple(seen["plate_1_pos"]))
    assert len(set(expected)) == 5
    assert sorted(tuple(x) for x in Still.begun) == sorted(expected)
    assert agent.setup.instructions["libero/spatial-2"] == SUITE.instructions(task("spatial-2"))


@needs_assets
def test_other_ways_to_begin():
    cycle = SUITE.env(blind("goal-1", settle=0, initial_states="cycle"))
    cycle.reset(seed=1, options=Episode(1, 1, 53).options)
    np.testing.assert_array_equal(cycle.simulation.state(), states_of("goal-1")[3])
    always = SUITE.env(blind("goal-1", settle=0, initial_state=7))
    always.reset(seed=1, options=Episode(1, 1, 12).options)
    np.testing.assert_array_equal(always.simulation.state(), states_of("goal-1")[7])
    drawn = SUITE.env(blind("goal-1", settle=0, initial_states="random"))
    states = []
    for seed in (1, 2, 1):
        drawn.reset(seed=seed, options=Episode(seed, seed, 99).options)
        states.append(drawn.simulation.state())
    assert not np.array_equal(states[0], states[1])
    np.testing.assert_array_equal(states[0], states[2])


@needs_assets
def test_fixtures_stand_where_a_seed_says():
    def places(seed, **params):
        env = SUITE.env(blind("goal-1", settle=0, **params))
        env.reset(seed=seed, options=Episode(seed, seed, 0).options)
        sim = env.simulation
        return sim.model.body_pos[list(sim.fixtures.values())].copy()

    assert not np.array_equal(places(1), places(2))
    np.testing.assert_array_equal(places(1, fixture_seed=7), places(2, fixture_seed=7))


@needs_assets
def test_an_episode_settles_and_is_cut_at_the_horizon():
    env = SUITE.env(blind("90-33", horizon=3, settle=4))
    env.reset(seed=0, options=Episode(0, 0, 0).options)
    assert env.simulation.data.time == pytest.approx(states_of("90-33")[0][0] + 4 * 0.05)
    ends = [env.step(np.zeros(7, np.float32))[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    held = env.simulation.controller.grip.copy()
    env = SUITE.env(blind("90-33", settle=4, settle_gripper="open"))
    env.reset(seed=0, options=Episode(0, 0, 0).options)
    assert env.simulation.controller.grip[0] > held[0]


@needs_assets
def test_success_ends_an_episode():
    env = SUITE.env(blind("90-33", settle=0))
    env.reset(seed=0, options=Episode(0, 0, 0).options)
    (door,) = env.simulation.scene.bodies["microwave_1"].joints
    env.simulation.data.joint(door).qpos[0] = 0.0
    _, reward, terminated, truncated, info = env.step(np.zeros(7, np.float32))
    assert (reward, terminated, truncated, info) == (1.0, True, False, {"success": 1.0})


# Promises.


@needs_assets
@pytest.mark.slow
@pytest.mark.parametrize("name", rotation()[::4])
def test_seeds_are_honest(name):
    """A few of this turn's tasks; ``perdure check libero`` plays all of them."""
    check_task(SUITE, blind(name, objects=True, horizon=40))


@needs_assets
@pytest.mark.slow
@pytest.mark.parametrize("name", rotation())
def test_this_turns_tasks_load_and_reset(name):
    """A tenth of the 130 at each turn: see libero_kit.rotation."""
    env = SUITE.env(blind(name))
    seen, _ = env.reset(seed=3, options=Episode(3, 3, 3).options)
    assert env.observation_space.contains(seen)
    seen, reward, terminated, _, _ = env.step(np.zeros(7, np.float32))
    assert env.observation_space.contains(seen)
    assert (reward, terminated) == (0.0, False)
    # What settled lies still: nothing was thrown about.
    assert np.abs(env.simulation.data.qvel).max() < 5.0


@needs_assets
@pytest.mark.parametrize("initial_states", ["official", "random"])
def test_a_saved_episode_goes_on_in_another_environment(initial_states):
    keys = {"initial_states": initial_states, "settle": 2, "objects": True, "horizon": 30}
    first, second = (SUITE.env(blind("10-2", **keys)) for _ in range(2))
    moves = actions(1, 16).astype(np.float32)
    for at in (0, 7):
        first.reset(seed=4, options=Episode(4, 4, 1).options)
        for action in moves[:at]:
            first.step(action)
        stored = {k: np.array(v) for k, v in first.save_state().items()}
        second.reset(seed=9, options=Episode(9, 9, 2).options)
        second.load_state(stored)
        for action in moves[at:]:
            one, other = first.step(action), second.step(action)
            for name, value in one[0].items():
                np.testing.assert_array_equal(value, other[0][name], err_msg=name)
            assert one[1:4] == other[1:4]
        np.testing.assert_array_equal(first.simulation.state(), second.simulation.state())
    fresh = SUITE.env(blind("10-2", **keys))
    fresh.load_state(stored)
    np.testing.assert_array_equal(fresh.step(moves[7])[0]["robot0_joint_pos"].shape, (7,))


@needs_assets
@pytest.mark.parametrize("drawn", [False, True], ids=["blind", "fast pictures, kept"])
def test_nothing_is_imported_written_or_asked(tmp_path, drawn):
    """robosuite stays unimported, the home folder empty, and standard input unread; also where a cache folder
    is given, in which scenes that are light to draw are kept."""
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    params = {"look": "official", "cameras": ["agentview"] if drawn else []}
    if drawn:
        params |= {"rendering": "fast", "size": 64}
    code = (
        "import numpy as np, sys\n"
        "from perdure.registry import suite\n"
        "from perdure.types import Task\n"
        f"env = suite('libero').env(Task('libero', 'object-0', params={params}))\n"
        "env.reset(seed=0)\n"
        "env.step(np.zeros(7, np.float32))\n"
        "print(sorted({m.split('.')[0] for m in sys.modules}"
        " & {'robosuite', 'libero', 'bddl', 'torch', 'numba', 'cv2', 'matplotlib'}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "HOME": str(home),
            "XDG_CACHE_HOME": "",
            "MPLCONFIGDIR": "",
            "PERDURE_CACHE": str(cache) if drawn else "",
        },
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    assert done.stdout.strip() == "[]"
    assert list(home.iterdir()) == []
    assert cache.exists() is drawn


# Files.


@needs_assets
def test_a_file_that_differs_is_refused(tmp_path, monkeypatch):
    name = "stable_scanned_objects/plate/plate.xml"
    target = tmp_path / "assets" / name
    target.parent.mkdir(parents=True)
    target.write_bytes(assets.file("assets", name).read_bytes())
    real = assets.root
    monkeypatch.setattr(assets, "root", lambda k: tmp_path / "assets" if k == "assets" else real(k))
    assert assets.file("assets", name) == target
    assets.check.cache_clear()
    target.write_bytes(target.read_bytes() + b" ")
    with pytest.raises(EnvironmentFault, match="is not the file that files.sha256 lists"):
        assets.file("assets", name)
    with pytest.raises(EnvironmentFault, match="is missing"):
        assets.file("assets", "stable_scanned_objects/plate/texture.png")
    with pytest.raises(EnvironmentFault, match="does not list assets/new.xml"):
        (tmp_path / "assets" / "new.xml").write_text("")
        assets.file("assets", "new.xml")
    assets.check.cache_clear()


def test_without_the_extra_its_name_is_said(monkeypatch):
    monkeypatch.setattr(assets, "ROOTS", {"assets": ("no_such_package", "assets")})
    assets.root.cache_clear()
    try:
        assert not assets.installed()
        with pytest.raises(MissingExtra, match=r"\.\[libero-official\]"):
            assets.root("assets")
    finally:
        assets.root.cache_clear()


@pytest.mark.parametrize("extra", ["libero", "metaworld", "openloris"])
def test_of_several_extras_the_suites_own_is_named(extra):
    with pytest.raises(MissingExtra, match=rf"\.\[{extra}\]"), extras_named(f"suite {extra}"):
        raise ModuleNotFoundError("No module named 'mujoco'", name="mujoco")


# Curricula.


def test_an_evaluation_plays_fifty_states_of_ten_tasks():
    made = curriculum_of(Spec("libero/eval-spatial"))
    (block,) = made.blocks
    assert block.kind == "eval" and len(block.exposures) == 10
    assert {(e.amount, e.unit) for e in block.exposures} == {(50, "episodes")}
    assert block.exposures[0].task.params["horizon"] == 220
    assert len(protocols.ORDERS) == 21 and len(set(protocols.ORDERS)) == 21
    assert all(sorted(o) == list("0123456789") for o in protocols.ORDERS)
    second = curriculum_of(Spec("libero/eval-goal", {"order": 1}))
    assert [e.task.name for e in second.blocks[0].exposures][:3] == ["goal-4", "goal-6", "goal-8"]
    # Results say which look it was, and where its episodes began.
    said = {(e.task.params["look"], e.task.params["initial_states"]) for e in block.exposures}
    assert said == {("primitive", "numbered")}
    official = curriculum_of(Spec("libero/eval-spatial", {"look": "official"})).blocks[0].exposures
    assert official[0].task.params["initial_states"] == "official"
    for name in protocols.CURRICULA.keys() - {"eval-folder", "bc"}:
        for exposure in curriculum_of(Spec(f"libero/{name}")).blocks[0].exposures:
            settings(exposure.task)
    with pytest.raises(CurriculumError, match="at most 50"):
        curriculum_of(Spec("libero/eval-long", {"episodes": 51, "look": "official"}))
    with pytest.raises(UnknownName, match="protocol"):
        curriculum_of(Spec("libero/eval-long", {"protocol": "own"}))
    json.dumps(made.to_json())


# Pictures.


@needs_assets
@pytest.mark.slow
def test_pictures_are_upstreams():
    """Both cameras, in all kinds of scene, at first and after some steps: the same pixels where the
    graphics are those of the recording, and nearly the same elsewhere."""
    told = recorded("images")
    for name, seed in PICTURED.items():
        params = {"settle": 0, "fixture_seed": seed, "size": SIDE, "orientation": "upstream"}
        env = SUITE.env(task(name, **params))
        seen, _ = env.reset(seed=0, options=Episode(0, 0, seed).options)
        for moment in ("first", "later"):
            for camera in ("agentview", "robot0_eye_in_hand"):
                expected = told[f"{name}/{moment}/{camera}"].astype(int)
                away = np.abs(seen[f"{camera}_image"] - expected)
                assert away.mean() < 2.0, (name, moment, camera, away.mean())
                assert expected.std() > 10, "an empty picture proves nothing"
            for action in actions(seed, 12):
                seen, *_ = env.step(action)
        env.close()


@needs_assets
@pytest.mark.slow
def test_pictures_are_upright_and_can_be_turned():
    seen = {}
    for orientation in ("upright", "upstream", "rotated"):
        env = SUITE.env(
            task("object-0", settle=0, size=32, cameras=["agentview"], orientation=orientation)
        )
        obs, _ = env.reset(seed=0, options=Episode(0, 0, 0).options)
        assert env.observation_space.contains(obs)
        seen[orientation] = obs["agentview_image"]
    np.testing.assert_array_equal(env.render(), seen["upright"])
    np.testing.assert_array_equal(seen["upright"], seen["upstream"][::-1])
    np.testing.assert_array_equal(seen["rotated"], seen["upstream"][::-1, ::-1])
    env.close()


@needs_assets
def test_a_lit_stove_is_seen():
    sim = simulation("90-39")
    sim.reset(0)
    (name,) = sim.lights
    assert sim.lights[name] == "flat_stove_1_burner" and sim.lit[name]
    (knob,) = sim.scene.bodies[name].joints
    sim.data.joint(knob).qpos[0] = 0.0
    sim.finish()
    assert not sim.lit[name]


@needs_assets
@pytest.mark.slow
def test_an_unknown_camera_is_refused():
    env = SUITE.env(task("object-0", settle=0, size=32, cameras=["sky"]))
    with pytest.raises(EnvironmentFault, match="no camera 'sky'; it has .*agentview"):
        env.reset(seed=0)


@needs_assets
def test_what_is_observed_has_upstreams_names():
    space, actions_space = SUITE.spaces(task("goal-0", objects=True))
    assert {"agentview_image", "robot0_eye_in_hand_image", "robot0_eef_quat", "wine_bottle_1_pos",
            "plate_1_to_robot0_eef_quat"} <= set(space)  # fmt: skip
    assert actions_space.shape == (7,)
    assert problem_of(find("goal-0")).objects[0].name == "akita_black_bowl_1"
    assert set(SUITE.spaces(blind("goal-0", proprioception=["robot0_eef_pos"]))[0]) == {
        "robot0_eef_pos"
    }
