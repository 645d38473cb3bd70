"""Policy servers, spoken to without their packages: what they are sent, what their actions mean, and
what happens when they fail."""

import time

import msgpack
import numpy as np
import pytest
from gymnasium import spaces
from peers import OpenPi, VlaEval, groot, openpi_array, openvla, served

from perdure import experiment
from perdure.agents.infer import InferAgent
from perdure.agents.remote import RemoteAgent
from perdure.errors import PolicyServerFault, RunFailed, SpecError, UnknownName
from perdure.policies.client import parse_address
from perdure.policies.interface import Interface, axis_angle, quaternion
from perdure.policies.pictures import encoded, resized
from perdure.policies.wire import pack, unpack
from perdure.suites.libero.eval_protocols import PROTOCOLS
from perdure.types import Context, Setup

LIBERO = spaces.Dict(
    {
        "agentview_image": spaces.Box(0, 255, (256, 256, 3), np.uint8),
        "robot0_eye_in_hand_image": spaces.Box(0, 255, (256, 256, 3), np.uint8),
        "robot0_eef_pos": spaces.Box(-np.inf, np.inf, (3,), np.float64),
        "robot0_eef_quat": spaces.Box(-np.inf, np.inf, (4,), np.float64),
        "robot0_gripper_qpos": spaces.Box(-np.inf, np.inf, (2,), np.float64),
    }
)
ARM = spaces.Box(-1, 1, (7,), np.float32)


def setup(protocol="openpi", slots=2, **changes):
    chosen = PROTOCOLS[protocol].changed(**changes)
    return Setup(LIBERO, ARM, slots, 0, protocol=chosen)


def seen(n=2):
    rng = np.random.default_rng(0)
    quaternions = rng.normal(size=(n, 4))
    return {
        "agentview_image": rng.integers(0, 256, (n, 256, 256, 3), np.uint8),
        "robot0_eye_in_hand_image": rng.integers(0, 256, (n, 256, 256, 3), np.uint8),
        "robot0_eef_pos": rng.normal(size=(n, 3)),
        "robot0_eef_quat": quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True),
        "robot0_gripper_qpos": rng.normal(size=(n, 2)),
    }


def context(n=2, slots=None):
    return Context(
        "eval", False, 0, ("libero/goal-1",) * n, np.arange(n) if slots is None else slots,
        np.ones(8, bool), instructions=("open the drawer",) * n,
    )  # fmt: skip


def numbered(chunk):
    """A policy whose actions say where in which chunk they are."""
    asked = []

    def policy(obs):
        asked.append(obs)
        rows = np.arange(chunk)[:, None] / 100 + len(asked) / 10 * np.ones((1, 7))
        return rows.astype(np.float32)

    return policy


# The wire.


@pytest.mark.parametrize("dialect", ["openpi", "vla-eval", "groot"])
def test_arrays_come_back_as_they_were(dialect):
    value = {
        "a": np.arange(6, dtype=np.uint8).reshape(1, 2, 3), "b": np.float32([1.5, -2]),
        "c": [np.zeros((0, 3)), {"d": np.array(True)}], "e": "words", "f": np.int64(3),
    }  # fmt: skip
    back = unpack(pack(value, dialect))
    assert back["a"].dtype == np.uint8 and back["a"].tolist() == value["a"].tolist()
    assert back["b"].tolist() == [1.5, -2] and back["c"][0].shape == (0, 3)
    assert back["c"][1]["d"] and back["e"] == "words" and back["f"] == 3
    with pytest.raises(TypeError, match="cannot be sent"):
        pack({"a": np.array([object()])}, dialect)


def test_both_key_encodings_and_numpy_scalars_by_hand():
    a = np.float32([[1, 2]])
    for text in (False, True):
        found = unpack(msgpack.packb({"actions": openpi_array(a, text)}))
        assert found["actions"].dtype == np.float32 and found["actions"].tolist() == [[1, 2]]
    scalar = {b"__npgeneric__": True, b"data": 2.5, b"dtype": "<f4"}
    assert unpack(msgpack.packb({"x": scalar})) == {"x": np.float32(2.5)}
    legacy = {b"nd": False, b"type": "<i2", b"data": b"\x03\x00"}
    assert unpack(msgpack.packb({"x": legacy}))["x"] == 3


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({**openpi_array(np.zeros(2)), b"dtype": "|O"}, "never read"),
        ({**openpi_array(np.zeros(2)), b"shape": [3]}, "24 bytes, got 16"),
        ({**openpi_array(np.zeros(2)), b"shape": [-1]}, "whole numbers"),
        ({**openpi_array(np.zeros(2)), b"dtype": "rubbish"}, "no type of numbers"),
        ({b"nd": True, b"type": "|O", b"kind": b"O", b"shape": [1], b"data": b"x"}, "never read"),
    ],
)
def test_arrays_that_lie_are_refused(value, words):
    with pytest.raises(PolicyServerFault, match=words):
        unpack(msgpack.packb({"actions": value}))


# What is shown, and what is done.


def test_axis_angle_is_robosuites():
    """Turned by 90° about z; and the same turn as the negative quaternion, which robosuite has at 270°
    the other way round."""
    half = np.sqrt(0.5)
    assert np.allclose(axis_angle(np.array([0, 0, half, half])), [0, 0, np.pi / 2])
    assert np.allclose(axis_angle(np.array([0, 0, -half, -half])), [0, 0, -3 * np.pi / 2])
    assert np.allclose(axis_angle(np.array([0, 0, -half, -half]), True), [0, 0, np.pi / 2])
    assert axis_angle(np.array([0, 0, 0, 1.0])).tolist() == [0, 0, 0]
    for q in seen(20)["robot0_eef_quat"]:
        assert np.allclose(quaternion(axis_angle(q)), q)


def test_grippers_mean_what_the_protocol_says():
    actions = np.zeros((3, 7))
    actions[:, -1] = [0.9, 0.2, 0.5]
    done = {
        n: Interface.of(setup(n)).done(actions)[:, -1].tolist()
        for n in ("openpi", "groot", "vla-eval")
    }
    assert done == {"openpi": [0.9, 0.2, 0.5], "groot": [-1, 1, 0], "vla-eval": [1, 1, 1]}
    assert Interface.of(setup()).done(np.full((1, 7), 3.0)).tolist() == [[1.0] * 7]
    commands = np.array([[0, 0, 0, 0, 0, 0, -1.0], [0, 0, 0, 0, 0, 0, 1.0]])
    for name in PROTOCOLS:
        face = Interface.of(setup(name))
        assert (face.done(face.undone(commands)) == commands).all(), name


def test_pictures_are_resized_as_the_protocol_says():
    wide = np.full((4, 8, 3), 200, np.uint8)
    padded = resized(wide, 4)
    assert padded.shape == (4, 4, 3) and padded[0].max() == 0 and padded[1:3].min() == 200
    same = np.zeros((4, 4, 3), np.uint8)
    assert resized(same, 4) is same
    picture = seen(1)["agentview_image"][0]
    lossy = resized(picture, 224, "jpeg-lanczos")
    assert lossy.shape == (224, 224, 3) and (lossy != resized(picture, 224)).any()
    assert encoded(picture)[:4] == b"\x89PNG"


def test_a_state_that_cannot_be_made_is_refused_when_planning():
    bare = spaces.Dict({"agentview_image": LIBERO["agentview_image"]})
    with pytest.raises(SpecError, match="robot0_eef_pos, robot0_eef_quat"):
        Interface.of(Setup(bare, ARM, 1, 0, protocol=PROTOCOLS["openpi"]))
    with pytest.raises(SpecError, match="vectors of numbers"):
        Interface.of(Setup(LIBERO, spaces.Discrete(3), 1, 0))


# openpi.


@pytest.mark.parametrize("text_keys", [False, True])
def test_openpi_is_sent_its_observation_and_its_chunk_executed(text_keys):
    peer = OpenPi(numbered(10), text_keys=text_keys)
    with served(peer.handle) as port:
        agent = RemoteAgent(setup(), f"ws://127.0.0.1:{port}")
        obs = seen()
        actions = [agent.act(obs, context()) for _ in range(6)]
        agent.reset_memory(np.array([1]))
        after = agent.act(obs, context())
        agent.leave(
            Context("eval", False, 0, None, np.zeros(0, int), np.zeros(0, bool), "lifetime")
        )
    first = peer.seen[0]
    assert first.keys() == {
        "observation/image",
        "observation/wrist_image",
        "observation/state",
        "prompt",
    }
    assert first["prompt"] == "open the drawer"
    assert (first["observation/image"] == resized(obs["agentview_image"][0], 224)).all()
    wanted = [
        *obs["robot0_eef_pos"][0],
        *axis_angle(obs["robot0_eef_quat"][0]),
        *obs["robot0_gripper_qpos"][0],
    ]
    assert np.allclose(first["observation/state"], wanted, atol=0)
    # Two environments, five actions of ten each, then the next two queries; then one that began anew.
    assert np.allclose(np.array(actions)[:, 0, 0], [0.1, 0.11, 0.12, 0.13, 0.14, 0.3])
    assert np.allclose(np.array(actions)[:, 1, 0], [0.2, 0.21, 0.22, 0.23, 0.24, 0.4])
    assert np.allclose(after[:, 0], [0.31, 0.5]) and peer.count == 5
    assert actions[0].dtype == np.float32


FAULTS = {
    "slow": "expected actions within 0.5 s",
    "dead": "closed the connection",
    "garbage": "expected MessagePack",
    "text": "out of memory",
    "wrong shape": r"shape \(n, 7\), n 5 or more, got shape \(10, 6\)",
    "NaN": "got nan in action 0 of the chunk",
    "short chunk": "got a chunk of 1: the protocol executes 5",
    "no actions": "expected 'actions' in the answer, got state",
    "words": "got str",
    "lies about its size": "has 56000 bytes, got 560",
    "objects": "never read",
    "a list": "in a map, got list",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_what_was_expected(fault):
    peer = OpenPi(numbered(10), fault)
    with served(peer.handle) as port:
        agent = RemoteAgent(setup(), f"ws://127.0.0.1:{port}", timeout=0.5, connect_timeout=0.5)
        with pytest.raises(PolicyServerFault, match=FAULTS[fault]) as told:
            agent.act(seen(), context())
        assert f"ws://127.0.0.1:{port}" in str(told.value)
        agent.client.close()


def test_nobody_there_and_other_machines():
    agent = RemoteAgent(setup(), "ws://127.0.0.1:9", connect_timeout=0.2)
    with pytest.raises(PolicyServerFault, match="nobody answers there after 0.2 s"):
        agent.act(seen(), context())
    with pytest.raises(SpecError, match="anywhere=true"):
        RemoteAgent(setup(), "ws://10.0.0.1:8000")
    assert parse_address("ws://10.0.0.1", anywhere=True).port == 8000
    assert str(parse_address("tcp://[::1]")) == "tcp://[::1]:5555"
    with pytest.raises(UnknownName, match="kind of policy server"):
        parse_address("ftp://localhost")


# A whole evaluation, with a server that dies.

PENDULUM = "gym/Pendulum-v1"


def swing(obs):
    """A chunk of three for a pendulum."""
    x, y, speed = obs["observation/state"]
    return np.clip(np.array([[y], [y - 0.1 * speed], [x]]), -2, 2)


def evaluation(episodes=2):
    from perdure import Curriculum, Exposure, evaluate, registry

    return Curriculum("swings", (evaluate(Exposure(registry.task(PENDULUM), episodes)),))


def rows_of(run):
    return run.rows().select(["task", "episode", "seed", "steps", "return"]).to_pylist()


def lived(port, out, **more):
    agent = f"remote,address=ws://127.0.0.1:{port},timeout=0.5,connect_timeout=0.5"
    return experiment(evaluation(), {"far": agent}, out=str(out), checkpoint=50, **more)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with served(OpenPi(swing).handle) as port:
        return rows_of(lived(port, tmp_path_factory.mktemp("swings") / "whole"))


@pytest.mark.parametrize("fault", ["dead", "NaN", "slow"])
def test_nothing_is_lost_when_a_server_fails(fault, whole, tmp_path):
    assert len(whole) == 2
    broken = OpenPi(swing, fault, after=90)  # In the second episode: 67 queries are one.
    with served(broken.handle) as port, pytest.raises(RunFailed, match="PolicyServer(Fault|Gone)"):
        lived(port, tmp_path / "run")
    from perdure import Run

    kept = Run(str(tmp_path / "run")).rows(partial=True).num_rows
    assert kept == 1, "the episode under way is not counted, the one before is there"
    with served(OpenPi(swing).handle, port):
        assert rows_of(lived(port, tmp_path / "run")) == whole


def test_a_server_that_comes_back_in_time_is_asked_again():
    peer = OpenPi(numbered(10), "dead", after=1, until=2)
    with served(peer.handle) as port:
        agent = RemoteAgent(setup(slots=1), f"ws://127.0.0.1:{port}", connect_timeout=2)
        for _ in range(6):
            agent.act(seen(1), context(1))
        agent.client.close()
    assert peer.count == 3


# The other three.


def test_groot_gets_all_environments_in_one_query():
    def policy(obs):
        n = len(obs["annotation.human.action.task_description"])
        parts = dict.fromkeys(("x", "y", "z", "roll", "pitch", "yaw"), np.full((n, 16, 1), 0.25))
        return {**parts, "gripper": np.ones((n, 16, 1))}

    with groot(policy) as (port, asked):
        agent = RemoteAgent(setup("groot"), f"tcp://127.0.0.1:{port}", timeout=5)
        obs = seen()
        for _ in range(9):
            actions = agent.act(obs, context())
        agent.client.close()
    assert [a["endpoint"] for a in asked] == ["ping", "reset", "get_action", "get_action"]
    sent = asked[2]["data"]["observation"]
    assert sent["video.image"].shape == (2, 1, 256, 256, 3) and sent["state.gripper"].shape == (
        2,
        1,
        2,
    )
    assert (sent["video.wrist_image"][1, 0] == obs["robot0_eye_in_hand_image"][1]).all()
    turn = axis_angle(obs["robot0_eef_quat"][1]).astype(np.float32)
    assert [sent[f"state.{k}"][1, 0, 0] for k in ("roll", "pitch", "yaw")] == turn.tolist()
    assert (
        np.allclose(actions[:, :6], 0.25) and (actions[:, 6] == -1).all()
    )  # 1 opens there, −1 here.


def test_groots_errors():
    with groot(None, error="no such key") as (port, _):
        agent = RemoteAgent(setup("groot"), f"tcp://127.0.0.1:{port}", timeout=5)
        with pytest.raises(PolicyServerFault, match="no such key"):
            agent.act(seen(), context())
        agent.client.close()
    with groot(lambda obs: {"x": np.zeros((2, 8, 1))}) as (port, _):
        agent = RemoteAgent(setup("groot"), f"tcp://127.0.0.1:{port}", timeout=5)
        with pytest.raises(PolicyServerFault, match=r"expected 'action\.y'"):
            agent.act(seen(), context())
        agent.client.close()
    began = time.monotonic()
    agent = RemoteAgent(setup("groot"), "tcp://127.0.0.1:9", connect_timeout=0.3)
    with pytest.raises(PolicyServerFault, match=r"within 0\.3 s"):
        agent.act(seen(), context())
    assert time.monotonic() - began < 10


def test_vla_eval_has_a_line_for_each_environment():
    peer = VlaEval(lambda payload: np.r_[np.full(6, 0.5), 0.3])
    with served(peer.handle) as port:
        agent = RemoteAgent(setup("vla-eval"), f"vla-eval://127.0.0.1:{port}")
        obs = seen()
        actions = [agent.act(obs, context()) for _ in range(2)][-1]
        agent.reset_memory(np.array([0]))
        agent.act(obs, context())
        agent.client.close()
    kinds = [kind for kind, _ in peer.log]
    assert kinds.count("hello") == 2 and kinds.count("episode_start") == 3
    assert kinds.count("episode_end") == 1 and kinds.count("observation") == 6
    sent = next(payload for kind, payload in peer.log if kind == "observation")
    assert sent["images"].keys() == {"agentview", "wrist"} and sent["states"].shape == (8,)
    shortest = axis_angle(obs["robot0_eef_quat"][0], True)
    assert np.allclose(sent["states"][3:6], shortest, atol=0)
    assert np.allclose(actions, [[0.5] * 6 + [1]] * 2)
    with served(VlaEval(lambda p: np.zeros(7), wrong_seq=True).handle) as port:
        agent = RemoteAgent(setup("vla-eval"), f"vla-eval://127.0.0.1:{port}")
        with pytest.raises(PolicyServerFault, match="expected the answer to message"):
            agent.act(seen(), context())
        agent.client.close()


@pytest.mark.parametrize("double", [False, True])
def test_openvla_speaks_json(double):
    with openvla(lambda body: np.full((8, 7), 0.75), double) as (port, asked):
        agent = RemoteAgent(setup("openvla-oft"), f"http://127.0.0.1:{port}")
        obs = seen()
        for _ in range(9):
            actions = agent.act(obs, context())
        agent.client.close()
    path, body = asked[0]
    assert path == "/act" and len(asked) == 4 and body["instruction"] == "open the drawer"
    assert body["full_image"].shape == (224, 224, 3) and body["state"].shape == (8,)
    assert np.allclose(actions[:, :6], 0.75) and (actions[:, 6] == -1).all()


@pytest.mark.parametrize(
    ("broken", "words"), [('"error"', "the server failed: error"), ("<html>", "as JSON")]
)
def test_openvlas_errors(broken, words):
    with openvla(lambda body: np.zeros((8, 7)), broken=broken) as (port, _):
        agent = RemoteAgent(setup("openvla-oft"), f"http://127.0.0.1:{port}")
        with pytest.raises(PolicyServerFault, match=words):
            agent.act(seen(), context())
        agent.client.close()


# In this process.


def test_a_policy_with_infer_is_asked_as_a_server_would_be(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "import numpy as np\n"
        "class Policy:\n"
        "    resets, batches = 0, []\n"
        "    def reset(self): Policy.resets += 1\n"
        "    def infer_batch(self, seen):\n"
        "        Policy.batches.append(seen)\n"
        "        return [{'actions': np.full((5, 7), 0.5)} for _ in seen]\n"
        "    def infer(self, one): return self.infer_batch([one])[0]\n"
    )
    agent = InferAgent(setup(), f"{file}:Policy")
    for _ in range(6):
        actions = agent.act(seen(), context())
    assert actions.tolist() == [[0.5] * 7] * 2
    assert [len(b) for b in agent.policy.batches] == [2, 2] and agent.policy.resets == 1
    with pytest.raises(SpecError, match="has no method infer"):
        InferAgent(setup(), lambda obs: obs)
