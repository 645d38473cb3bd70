"""Pictures that nobody looks at are not drawn: a policy that executes chunks is shown the same, and does the same."""

from __future__ import annotations

import numpy as np
import pytest
from test_policy_servers import context, seen, setup

from perdure import experiment
from perdure.agent import Agent
from perdure.agents._chunks import ChunkAgent
from perdure.run.env_runner import EnvRunner
from perdure.suites.libero.env import Libero

pytest.importorskip("mujoco")
CURRICULUM = (
    'libero/eval-tasks,names=["goal-1"],horizon=23,size=32,image_size=32,episodes=3,settle=1'
)
POLICY = """
import hashlib
import numpy as np
class Looks:
    '''Its actions come from the picture: another one, and the hand goes elsewhere.'''
    seen = []
    def infer(self, observation):
        picture = observation["observation/image"]
        assert picture.any(), "a black picture was shown"
        Looks.seen.append(hashlib.sha256(picture.tobytes()).hexdigest())
        way = np.frombuffer(hashlib.sha256(picture.tobytes()).digest()[:12], np.uint8) / 255 - 0.5
        return {"actions": np.tile([*way[:6], -1.0], (5, 1))}
policy = Looks()
"""


@pytest.fixture
def drawn(monkeypatch):
    """How often pictures are drawn, all of them in this process."""
    monkeypatch.setenv("PERDURE_THREADS", "1")
    count = [0]
    plain = Libero._shown

    def shown(self, size):
        count[0] += 1
        return plain(self, size)

    monkeypatch.setattr(Libero, "_shown", shown)
    return count


def rows(tmp_path, name, **keys):
    file = tmp_path / "own.py"
    file.write_text(POLICY)
    agent = f'infer,policy="{file}:policy"'
    run = experiment(CURRICULUM, {"p": agent}, out=str(tmp_path / name), executor="serial", **keys)
    told = ["task", "episode", "seed", "steps", "return", "success"]
    return run, run.rows().select(told).to_pylist()


def test_the_same_rows_with_a_fifth_of_the_pictures(tmp_path, drawn, monkeypatch):
    run, found = rows(tmp_path, "a", envs=2)
    sparing = drawn[0]
    # 23 steps in chunks of 5: five looks an episode, and what is played again at the end.
    assert len(found) == 3 and 15 <= sparing <= 25
    (life,) = run.lifetimes()
    assert run.folder.lifetime(life.id).repeat()["differences"] == []
    monkeypatch.setattr(ChunkAgent, "skips_observation", Agent.skips_observation)
    drawn[0] = 0
    assert rows(tmp_path, "b", envs=2)[1] == found
    assert drawn[0] > 3 * sparing


def test_it_is_resumed_in_the_middle_of_a_chunk(tmp_path, monkeypatch):
    """A commit every seven steps falls into chunks; the run is broken off behind the third."""
    _, whole = rows(tmp_path, "whole", envs=1, checkpoint=7)
    plain, steps = EnvRunner._skip, [0]

    def breaking(self, numbers, ctx):
        steps[0] += 1
        if steps[0] == 25:
            raise KeyboardInterrupt
        plain(self, numbers, ctx)

    with monkeypatch.context() as patch:
        patch.setattr(EnvRunner, "_skip", breaking)
        with pytest.raises(BaseException):
            rows(tmp_path, "broken", envs=1, checkpoint=7)
    assert steps[0] == 25
    assert rows(tmp_path, "broken", envs=1, checkpoint=7)[1] == whole


def test_chunks_say_when_they_are_used_up():
    class Told(ChunkAgent):
        who = "told"

        def query(self, views):
            return [np.zeros((3, 7))] * len(views)

    agent = Told(setup(replan=3))
    said = []
    for _ in range(4):
        agent.act(seen(), context())
        said.append(agent.skips_observation(np.array([0, 1])).tolist())
    assert said == [[True, True], [True, True], [False, False], [True, True]]
