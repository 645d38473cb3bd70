"""A policy behind a server, trained between blocks by a command: forgetting is measured as of any agent.

The trainer is a small one that stands for a large one: it fits what the last block showed, and nothing
else, so that it forgets all that came before."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from perdure import Curriculum, Exposure, Run, evaluate, experiment, learn
from perdure.errors import RunFailed, SpecError
from perdure.suite import Suite
from perdure.types import Examples, Task

TRAIN = """
import os, sys
import numpy as np
data, before, out = sys.argv[1:4]
if before and os.path.exists(os.path.join(os.path.dirname(data), "fail")):
    sys.exit("out of memory")
seen = np.load(os.path.join(data, "data.npz"))
assert seen["observation/state"].shape[1:] == (2,) and os.path.exists(os.path.join(data, "about.json"))
np.save(os.path.join(out, "mean.npy"), seen["actions"].mean(0))
"""
SERVE = """
import os, sys, signal
import msgpack, numpy as np
from websockets.sync.server import serve
checkpoint, port = sys.argv[1], int(sys.argv[2])
mean = np.load(os.path.join(checkpoint, "mean.npy")) if checkpoint else np.zeros(2)
def handle(ws):
    ws.send(msgpack.packb({}))
    for message in ws:
        a = np.float32([mean])
        ws.send(msgpack.packb({"actions": {b"__ndarray__": True, b"data": a.tobytes(), b"dtype": a.dtype.str,
                                           b"shape": list(a.shape)}}))
with serve(handle, "127.0.0.1", port, compression=None) as server:
    server.serve_forever()
"""
WAYS = {"east": 1.0, "west": -1.0}


class Point(gymnasium.Env):
    """A point that is to go far enough east or west in four steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, way):
        self.way = way

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = np.zeros(2, np.float32), 0
        return self.at.copy(), {}

    def step(self, action):
        self.at, self.steps = self.at + action, self.steps + 1
        success = float(self.way * self.at[0] > 2)
        return self.at.copy(), success, False, self.steps >= 4, {"success": success}


class Shown:
    batch_size = 4

    def __init__(self, way):
        self.way = way

    def __len__(self):
        return 8

    def batch(self, indices):
        return Examples(
            np.zeros((len(indices), 2), np.float32),
            np.tile(np.float32([self.way, 0]), (len(indices), 1)),
        )


class Points(Suite):
    name = "points"

    def tasks(self):
        return [Task("points", n) for n in WAYS]

    def env(self, task):
        return Point(WAYS[task.name])

    def data(self, task, learning):
        return Shown(WAYS[task.name])


suite = Points()


def curriculum():
    from perdure import registry

    registry._own_suites["points"] = suite
    tasks = suite.tasks()
    played = evaluate(*(Exposure(t, 2) for t in tasks))
    blocks = [b for t in tasks for b in (learn(Exposure(t, 1, "epochs")), played)]
    return Curriculum("points/turn", (played, *blocks))


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "serve.py").write_text(SERVE)
    trainer = f"{sys.executable} {tmp_path}/train.py {{data}} '{{checkpoint}}' {{out}}"
    server = f"{sys.executable} {tmp_path}/serve.py '{{checkpoint}}' {{port}}"
    return f'finetuned,trainer="{trainer}",server="{server}",work="{tmp_path}/work"'


def lived(spec, out):
    return experiment(curriculum, {"vla": spec}, out=str(out), checkpoint=4)


def shares(run):
    rows = [r for r in run.rows(partial=True).to_pylist() if not r["learning"]]
    blocks = sorted({r["block"] for r in rows})
    return [[np.mean([r["success"] for r in rows if r["block"] == b and r["task"] == f"points/{t}"])
             for t in WAYS] for b in blocks]  # fmt: skip


def test_forgetting_of_a_served_policy_is_measured_and_a_stopped_trainer_resumes(spec, tmp_path):
    run = lived(spec, tmp_path / "whole")
    assert shares(run) == [[0, 0], [1, 0], [0, 1]]
    from perdure.measure.summary import forgetting
    from perdure.show.summary import _lives

    (life,) = _lives(Run(str(tmp_path / "whole")))[1]["vla"]
    assert forgetting(life).per_task == {"points/east": 1.0}
    # A trainer that fails in the second block: what was learned before is there, and it goes on.
    other = spec.replace(f"{tmp_path}/work", f"{tmp_path}/other")
    (tmp_path / "other").mkdir()
    seed_folder = next((tmp_path / "work").iterdir()).name
    (tmp_path / "other" / seed_folder).mkdir()
    (tmp_path / "other" / seed_folder / "fail").touch()
    with pytest.raises(RunFailed, match="out of memory"):
        lived(other, tmp_path / "run")
    assert shares(Run(str(tmp_path / "run"))) == [[0, 0], [1, 0]]
    (tmp_path / "other" / seed_folder / "fail").unlink()
    assert shares(lived(other, tmp_path / "run")) == [[0, 0], [1, 0], [0, 1]]


def test_commands_without_their_places_are_refused(tmp_path):
    with pytest.raises(SpecError, match="trainer must have"):
        experiment(curriculum, "finetuned,trainer=x,server=y,work=z", out=str(tmp_path / "r"))
