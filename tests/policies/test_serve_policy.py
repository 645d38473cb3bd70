"""A policy of ours behind openpi's protocol: for our client, and for the real openpi-client."""

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from perdure import experiment
from perdure.agents.compose import make_agent
from perdure.errors import PolicyServerFault, SpecError
from perdure.policies.connect import connect
from perdure.policies.interface import View
from perdure.policies.server import PolicyServer, listening
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.specs import Spec

REAL = Path(__file__).parents[2] / ".venv-openpi/bin/python"
CURRICULUM = (
    'metaworld/eval-tasks,names=["reach","drawer-close"],episodes=2,horizon=60,instruction=about'
)


def setup_of(text, envs=1):
    plan = make_plan(RunSpec(text, ("random",), envs=envs))
    return plan.config(plan.jobs[0]).setup()


@contextmanager
def serving(agent):
    server = listening(agent, port=0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.socket.getsockname()[1]
    finally:
        server.shutdown()
        thread.join()


def test_over_the_wire_an_expert_does_the_same(tmp_path):
    """The same rows from an agent in this process and from one behind a socket, with two environments
    in one query."""
    keys = {"executor": "serial", "envs": 2, "seed": 3}
    here = experiment(CURRICULUM, {"expert": "expert"}, out=str(tmp_path / "here"), **keys)
    expert = make_agent(Spec.parse("expert"), setup_of(CURRICULUM, envs=2))
    with serving(expert) as port:
        far = f"remote,address=ws://localhost:{port}"
        there = experiment(CURRICULUM, {"far": far}, out=str(tmp_path / "there"), **keys)
    columns = ["task", "episode", "seed", "steps", "return", "success"]
    assert here.rows().select(columns).equals(there.rows().select(columns))


def test_queries_that_do_not_fit_are_refused_with_what_was_expected():
    server = PolicyServer(make_agent(Spec.parse("expert"), setup_of(CURRICULUM)))
    good = {"observation/state": np.ones(41), "prompt": "Push a drawer shut."}
    assert server.answer(good)["actions"].shape == (1, 4)
    for query, words in (
        ({**good, "prompt": "fly"}, "which task is this"),
        ({"prompt": ""}, "expected observation/state"),
        ({**good, "observation/state": np.ones(3)}, r"expected shape \(41,\)"),
        ({**good, "observation/state": np.full(41, np.nan)}, "finite"),
        ([1], "as a map"),
        ({**good, "perdure/slots": [7]}, "slots below"),
    ):
        with pytest.raises(PolicyServerFault, match=words):
            server.answer(query)
    with pytest.raises(SpecError, match="vectors"):
        PolicyServer(make_agent(Spec.parse("random"), setup_of("toy/compass")))
    with pytest.raises(SpecError, match="anywhere"):
        listening(server.agent, host="0.0.0.0", port=0)


def test_liberos_three_keys_become_what_an_agent_reads():
    names = ("robot0_eef_pos", "robot0_eef_quat", "robot0_gripper_qpos")
    text = f'libero/eval-tasks,names=["goal-0"],proprioception={json.dumps(names)},size=224'
    setup = setup_of(text)

    class Keeps:
        """Remembers what it was shown."""

        observation_space, action_space = setup.observation_space, setup.action_space

        def __init__(self):
            self.setup = setup

        def reset_memory(self, slots):
            pass

        def act(self, obs, ctx):
            self.seen = obs
            return np.zeros((len(ctx.slots), 7), np.float32)

    agent = Keeps()
    server = PolicyServer(agent)
    picture = np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)
    state = np.array([0.1, 0.2, 0.3, 0.0, 0.0, np.pi / 2, 0.04, -0.04])
    query = {
        "observation/image": picture, "observation/wrist_image": picture[::-1],
        "observation/state": state, "prompt": setup.instructions["libero/goal-0"][0],
    }  # fmt: skip
    assert server.answer(query)["actions"].shape == (1, 7)
    assert (agent.seen["agentview_image"][0] == picture).all()
    half = np.sqrt(0.5)
    assert np.allclose(agent.seen["robot0_eef_quat"], [[0, 0, half, half]])
    assert np.allclose(agent.seen["robot0_gripper_qpos"], [[0.04, -0.04]])
    assert agent.observation_space.contains({k: v[0] for k, v in agent.seen.items()})


CLIENT = """
import json, sys
import numpy as np
from openpi_client import websocket_client_policy
policy = websocket_client_policy.WebsocketClientPolicy("127.0.0.1", int(sys.argv[1]))
told = policy.get_server_metadata()["perdure"]
obs = {"observation/state": np.arange(41) / 41, "prompt": "Push a drawer shut."}
first = policy.infer(obs)["actions"]
again = policy.infer(obs)["actions"]
try:
    policy.infer({"observation/state": np.zeros(3), "prompt": "Push a drawer shut."})
    error = ""
except RuntimeError as e:
    error = str(e)
print(json.dumps([told["observation"], first.shape, first.tolist(), again.tolist(), error]))
"""


@pytest.mark.skipif(not REAL.exists(), reason="scripts/openpi_env.sh has not been run")
def test_the_real_openpi_client_is_answered():
    agent = make_agent(Spec.parse("expert"), setup_of(CURRICULUM))
    with serving(agent) as port:
        done = subprocess.run(
            [REAL, "-c", CLIENT, str(port)], capture_output=True, text=True, timeout=120
        )
        health = urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10)
        assert health.status == 200 and health.read() == b"OK\n"
        client = connect(f"ws://127.0.0.1:{port}")
        view = View({}, {"state": np.arange(41) / 41}, "Push a drawer shut.")
        ours = client.infer([view])[0]
        client.close()
    assert done.returncode == 0, done.stderr
    observed, shape, first, again, error = json.loads(done.stdout)
    assert observed == {"state": [[41], "float64"]} and shape == [1, 4]
    assert first == again == ours.tolist()
    assert "Error in inference server" in error and "expected shape (41,)" in error


@pytest.mark.skipif(not REAL.exists(), reason="scripts/openpi_env.sh has not been run")
def test_pictures_are_resized_as_the_real_client_does(tmp_path):
    from perdure.policies.pictures import resized

    rng = np.random.default_rng(1)
    for k, shape in enumerate([(256, 256), (100, 180), (224, 224), (333, 91)]):
        np.save(tmp_path / f"{k}.npy", rng.integers(0, 256, (*shape, 3), np.uint8))
    code = (
        "import sys, numpy as np\nfrom openpi_client import image_tools as t\n"
        "for k in range(4):\n"
        "    a = np.load(f'{sys.argv[1]}/{k}.npy')\n"
        "    np.save(f'{sys.argv[1]}/{k}-out.npy', t.resize_with_pad(a, 224, 224))\n"
    )
    subprocess.run([REAL, "-c", code, str(tmp_path)], check=True, timeout=120)
    for k in range(4):
        theirs = np.load(tmp_path / f"{k}-out.npy")
        assert (resized(np.load(tmp_path / f"{k}.npy"), 224) == theirs).all(), k


def test_the_command_serves_until_it_is_told_to_stop():
    command = [
        sys.executable,
        "-m",
        "perdure",
        "serve",
        "random",
        "--for",
        "metaworld/reach",
        "--port",
        "0",
    ]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore it, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            address = re.search(r"ws://127\.0\.0\.1:\d+", process.stdout.readline())[0]
            client = connect(address)
            assert (
                client.batch == 8 and client.metadata["perdure"]["protocol"]["name"] == "official"
            )
            views = [View({}, {"state": np.zeros(39)}, "", slot=k) for k in range(3)]
            assert [chunk.shape for chunk in client.infer(views)] == [(1, 4)] * 3
            client.close()
        except BaseException:
            process.kill()
            raise
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(20) == 0
        finally:
            process.kill()
