"""Named, hashed evaluation protocols: every row of the published matrix, in tasks and in results."""

import json

import pytest
from click.testing import CliRunner

from perdure import experiment
from perdure.cli.main import main
from perdure.curricula.named import curriculum_of
from perdure.errors import CurriculumError, MeasureError, UnknownName
from perdure.protocol import EvalProtocol, differences
from perdure.specs import Spec
from perdure.suites.libero import eval_protocols as libero
from perdure.suites.metaworld import eval_protocols as metaworld
from perdure.types import Curriculum

HORIZONS = {"spatial": 220, "object": 280, "goal": 300, "10": 520, "90": 400}
MATRIX = {
    "episodes": {"openpi": 50, "openvla-oft": 50, "lerobot": 50, "groot": 20, "paper": 20},
    "settle": {"openpi": 10, "openvla-oft": 10, "lerobot": 10, "groot": 0, "paper": 5},
    "size": {"openpi": 256, "openvla-oft": 256, "lerobot": 360, "groot": 256, "paper": 128},
    "replan": {"openpi": 5, "openvla-oft": 8, "lerobot": 10, "groot": 8, "paper": 1},
    "orientation": {"openpi": "rotated", "groot": "rotated", "paper": "upstream"},
    "initial_states": {"openpi": "official", "groot": "random", "paper": "cycle"},
    "gripper": {"openpi": "as-is", "openvla-oft": "zero-one", "groot": "zero-one"},
    "seed": {"openpi": 7, "lerobot": 1000},
    "fixture_seed": {"openpi": 7, "openvla-oft": 0, "lerobot": None},
    "axis_angle": {"openpi": "robosuite", "vla-eval": "shortest"},
    "crop": {"openvla-oft": 0.9, "openpi": 1.0},
    "horizon": {
        "openpi": HORIZONS,
        "lerobot": {**HORIZONS, "spatial": 280},
        "groot": dict.fromkeys(HORIZONS, 720),
        "paper": dict.fromkeys(HORIZONS, 600),
    },
}


def test_the_matrix_is_the_published_one():
    for row, values in MATRIX.items():
        for name, value in values.items():
            assert libero.PROTOCOLS[name][row] == value, (name, row)
    assert len({p.hash for p in libero.PROTOCOLS.values()}) == len(libero.PROTOCOLS) == 7
    assert {*metaworld.PROTOCOLS} == {"official", "paper", "lerobot"}


def test_tasks_get_what_is_theirs_and_the_curriculum_all_of_it():
    made = curriculum_of(Spec("libero/eval-spatial", {"protocol": "lerobot"}))
    task = made.blocks[0].exposures[0].task
    assert task.params["horizon"] == 280 and task.params["size"] == 360
    assert "replan" not in task.params and "fixture_seed" not in task.params
    assert made.protocol["replan"] == 10
    again = Curriculum.from_json(json.loads(json.dumps(made.to_json())))
    assert again.protocol.hash == made.protocol.hash and again.fingerprint == made.fingerprint
    assert made.fingerprint != curriculum_of(Spec("libero/eval-spatial")).fingerprint


def test_a_change_changes_the_hash_and_is_named():
    own = curriculum_of(
        Spec("libero/eval-goal", {"protocol": "openpi", "episodes": 3, "settle": 10})
    ).protocol
    assert own.changes == {"episodes": 3} and str(own).startswith("openpi with episodes=3 (")
    base = libero.PROTOCOLS["openpi"]
    assert own.hash != base.hash and base.changed(settle=10) is base
    # The hash is of values, whatever the name: worked by hand with sha256sum.
    assert EvalProtocol("any", {"b": 1, "a": [2]}).hash == "41ff4104bc48"
    assert differences(base.values, own.values) == ["episodes: 50 | 3"]
    assert differences({"a": 1}, {"b": "x"}) == ["a: 1 | –", "b: – | x"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"gripper": "open"}, "gripper must be one of as-is"),
        ({"replan": 0}, "replan must be a whole number of at least 1"),
        ({"crop": 2}, "crop must be a share"),
        ({"episodes": 51, "protocol": "openpi"}, "at most 50"),
    ],
)
def test_wrong_values_are_refused(params, words):
    with pytest.raises(CurriculumError, match=words):
        curriculum_of(Spec("libero/eval-long", params))
    with pytest.raises(UnknownName, match="did you mean 'openpi'"):
        curriculum_of(Spec("libero/eval-long", {"protocol": "openpy"}))


def test_meta_world_by_protocol():
    official = curriculum_of(Spec("metaworld/eval-mt10"))
    first = official.blocks[0].exposures[0]
    assert first.amount == 50 and first.task.params["benchmark"] == "MT10"
    assert first.task.params["one_hot"] == [0, 10] and first.task.params["horizon"] == 500
    names = {"names": ["reach", "push"], "instructions": {"push": "Push it"}}
    seen = curriculum_of(Spec("metaworld/eval-tasks", {**names, "protocol": "lerobot"}))
    reach, push = (e.task for e in seen.blocks[0].exposures)
    assert reach.params["camera_position"] == [0.75, 0.075, 0.7] and "one_hot" not in reach.params
    assert reach.params["end_on_success"] and push.params["instruction"] == "Push it"
    counts = {n: len(t.split()) for n, t in metaworld.DIFFICULTIES.items()}
    assert counts == {"easy": 28, "medium": 11, "hard": 6, "very-hard": 5}
    assert len({t for text in metaworld.DIFFICULTIES.values() for t in text.split()}) == 50


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("protocols")
    for name, more in (("a", ""), ("b", ""), ("c", ",horizon=40")):
        text = f'metaworld/eval-tasks,names=["reach"],episodes=2,protocol=paper{more}'
        experiment(text, "random", out=str(folder / name), executor="serial")
    return folder


def test_results_say_their_protocol_and_different_ones_do_not_compare(runs, tmp_path):
    def command(*args):
        return CliRunner().invoke(main, [str(a) for a in args])

    same = command("compare", runs / "a", runs / "b")
    assert same.exit_code == 0 and "protocol: paper (" in same.output
    other = command("compare", runs / "a", runs / "c")
    assert other.exit_code == 2
    assert "-protocol horizon = 150" in other.output and "+protocol horizon = 40" in other.output
    told = command("compare", runs / "a", runs / "c", "--anyway", "--json", tmp_path / "c.json")
    assert told.exit_code == 0 and "different protocols" in told.output
    hashes = json.loads((tmp_path / "c.json").read_text())["protocols"]
    assert len(set(hashes.values())) == 2
    from perdure.show.report.study import load

    with pytest.raises(MeasureError, match=r"\+protocol horizon = 40"):
        load([runs / "a", runs / "c"], [])


def test_the_lerobot_view_of_meta_world():
    """Pictures from the moved camera, the hand's place, and an end with success."""
    from perdure import registry
    from perdure.run.vector import reset_env
    from perdure.suite import Episode
    from perdure.suites.metaworld.tasks import settings

    params = {"names": ["reach"], "protocol": "lerobot", "size": 32}
    task = curriculum_of(Spec("metaworld/eval-tasks", params)).blocks[0].exposures[0].task
    suite = registry.suite("metaworld")
    assert suite.instructions(task) and settings(task).camera_position == (0.75, 0.075, 0.7)
    env = suite.env(task)
    moved, _ = reset_env(suite, env, Episode.alone(3))
    assert env.observation_space.contains(moved) and moved["hand"].shape == (4,)
    still = dict(task.params)
    still.pop("camera_position")
    from perdure.types import Task

    other = suite.env(Task("metaworld", "reach", params=still))
    seen, _ = reset_env(suite, other, Episode.alone(3))
    assert (seen["hand"] == moved["hand"]).all() and (seen["image"] != moved["image"]).any()
    env.close(), other.close()
    from metaworld.policies import ENV_POLICY_MAP

    state = {**still, "observation": "state"}
    for name in ("size", "camera"):
        state.pop(name)
    play = suite.batched_env(Task("metaworld", "reach", params=state), 1)
    obs, expert = play.reset(0, Episode.alone(3)), ENV_POLICY_MAP["reach-v3"]()
    for step in range(200):
        import numpy as np

        action = np.clip(expert.get_action(obs.copy()), -1, 1).astype(np.float32)
        rows, _, ends, cuts, infos = play.step([0], [action])
        obs = rows[0]
        assert ends[0] == bool(infos[0]["success"]) and not cuts[0]
        if ends[0]:
            break
    assert ends[0] and step < 150
    play.close()
