"""Our clients against others' own code: vla-eval's model server, and servers that encode with msgpack-numpy and json-numpy
as GR00T's and OpenVLA's do (neither of these is on PyPI itself)."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from test_policy_servers import context, seen, setup

from perdure.agents.remote import RemoteAgent
from perdure.errors import PolicyServerFault
from perdure.policies.interface import axis_angle
from perdure.types import Context

HERE = Path(__file__).parent
PEERS = HERE.parents[1] / ".venv-peers/bin/python"
pytestmark = pytest.mark.skipif(not PEERS.exists(), reason="scripts/peers_env.sh has not been run")


@contextmanager
def running(kind):
    command = [PEERS, "-W", "ignore", HERE / "real_peers.py", kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def failing():
    ctx = context()
    return Context(
        ctx.kind, False, 0, ctx.tasks, ctx.slots, np.ones(8, bool), instructions=("fail", "fail")
    )


def state_of(obs, k, shortest=False):
    turn = axis_angle(obs["robot0_eef_quat"][k], shortest)
    return float(np.sum([*obs["robot0_eef_pos"][k], *turn, *obs["robot0_gripper_qpos"][k]]))


def test_vla_evals_own_server():
    obs = seen()
    with running("vla-eval") as port:
        agent = RemoteAgent(setup("vla-eval"), f"vla-eval://127.0.0.1:{port}", timeout=60)
        first, second = (agent.act(obs, context()) for _ in range(2))
        assert agent.client.metadata["action_spec"]["arm"]["dims"] == 7
        agent.reset_memory(np.array([1]))
        again = agent.act(obs, context())
        with pytest.raises(PolicyServerFault, match="observation_failed.*no such task"):
            agent.act(obs, failing())
        agent.client.close()
    for k in range(2):
        assert np.isclose(first[k, 0], obs["agentview_image"][k].mean() / 255, atol=1e-6)
        assert np.isclose(first[k, 1], np.clip(state_of(obs, k, shortest=True), -1, 1), atol=1e-5)
    # Episodes are known to the server: the second query of each, and a new one for environment 1.
    assert np.allclose(second[:, 2], 0.1) and np.allclose(again[:, 2], [0.2, 0.0])
    assert (first[:, 6] == 1).all()


def test_groots_encoding_by_msgpack_numpy():
    obs = seen()
    with running("groot") as port:
        agent = RemoteAgent(setup("groot"), f"tcp://127.0.0.1:{port}", timeout=60)
        found = [agent.act(obs, context()) for _ in range(9)]
        agent.reset_memory(np.array([0, 1]))
        again = agent.act(obs, context())
        agent.reset_memory(np.array([0, 1]))
        with pytest.raises(PolicyServerFault, match="no such task"):
            agent.act(obs, failing())
        agent.client.close()
    for k in range(2):
        assert np.isclose(found[0][k, 0], obs["agentview_image"][k].mean() / 255, atol=1e-6)
        assert np.isclose(found[0][k, 1], np.clip(state_of(obs, k), -1, 1), atol=1e-5)
    # Eight of sixteen actions are executed, and then it is asked again; a reset begins anew.
    assert np.allclose([a[0, 2] for a in found], [0.0] * 8 + [0.1]) and np.allclose(again[:, 2], 0)
    assert (found[0][:, 6] == -1).all()  # 1 opens there, −1 here.


def test_openvlas_encoding_by_json_numpy():
    obs = seen()
    with running("openvla") as port:
        agent = RemoteAgent(
            setup("openvla-oft", resize="pad", image_size=None), f"http://127.0.0.1:{port}"
        )
        found = agent.act(obs, context())
        agent.reset_memory(np.array([0, 1]))
        with pytest.raises(PolicyServerFault, match="the server failed: error"):
            agent.act(obs, failing())
        agent.client.close()
    for k in range(2):
        assert np.isclose(found[k, 0], obs["agentview_image"][k].mean() / 255, atol=1e-6)
        assert np.isclose(found[k, 1], np.clip(state_of(obs, k), -1, 1), atol=1e-5)
    assert (found[:, 6] == -1).all()
