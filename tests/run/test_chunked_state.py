"""Lifetimes of agents whose state is in chunks: evaluation leaves no trace, adapt blocks restore,
and any commit can be resumed from."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from kit import live, setting_of
from perdure.agent import Agent
from perdure.agents.networks import column
from perdure.agents.networks.ring import Ring
from perdure.arrays import Chunk
from perdure.errors import AgentFault
from perdure.run.agent_state import AgentState
from perdure.run.loop import LifetimeLoop
from perdure.store import checkpoints
from perdure.store.log import Lifetime, LifetimeLog
from perdure.testing.agents import cut_journal, read_rows
from perdure.types import Curriculum, Exposure, Task, adapt, evaluate, learn


@pytest.fixture(autouse=True)
def tiny_chunks(monkeypatch):
    monkeypatch.setattr(column, "STRETCH", 512)
    monkeypatch.setattr(checkpoints, "SMALL", 64)


class Hoarder(Agent):
    """Acts by what it has in its ring, so that a ring that is not right shows in the rows."""

    greedy = 0
    """Rows that it adds in evaluation, which it must not."""

    def __init__(self, setup):
        super().__init__(setup)
        shape = setup.observation_space.shape
        self.ring = Ring(90, {"obs": (shape, np.float64), "reward": ((), np.float64)})

    def act(self, obs, ctx):
        if not ctx.learning and self.greedy:
            self.greedy -= 1
            self.ring.add(1, obs=obs[:1], reward=[1.0])
        seen = self.ring["reward"].sum() + self.ring["obs"].sum() + self.ring.written
        return (self.rng.integers(4, size=len(obs)) + int(seen)) % 4

    def learn(self, batch, ctx):
        self.ring.add(len(batch), obs=batch.obs, reward=batch.rewards)

    def state(self):
        return self.ring.state("ring")

    def load(self, state):
        self.ring.load("ring", state)


def life():
    ne, sw = (Task("toy", f"goal-{c}", params={"size": 3, "horizon": 9}) for c in ("ne", "sw"))
    return Curriculum("x", (
        evaluate(Exposure(ne, 3)),
        learn(Exposure(ne, 120, "steps")),
        adapt(Exposure(sw, 70, "steps"), then=[Exposure(sw, 4)]),
        evaluate(Exposure(ne, 4), Exposure(sw, 4)),
        learn(Exposure(sw, 60, "steps")),
        evaluate(Exposure(ne, 3)),
    ))  # fmt: skip


def test_resumed_from_any_commit(tmp_path):
    whole, agent = live(life(), Hoarder, path=tmp_path / "whole", envs=2, checkpoint=13)
    expected = {k: np.asarray(v).tobytes() for k, v in agent.state().items()}
    commits = len(Lifetime.read(tmp_path / "whole").commits)
    assert commits > 20 and list((tmp_path / "whole/_parts").iterdir())
    for k in range(0, commits, 2):
        path = tmp_path / f"from{k}"
        shutil.copytree(tmp_path / "whole", path)
        cut_journal(path, k)
        config = setting_of(life(), envs=2, checkpoint=13)
        with LifetimeLog(path, "test", 0) as log:
            assert len(log.commits) == k and not log.notes
            agent = Hoarder(config.setup())
            LifetimeLoop(config, agent, log).run()
        assert read_rows(path) == whole, f"resumed after commit {k}"
        assert {k: np.asarray(v).tobytes() for k, v in agent.state().items()} == expected
        assert not Lifetime.read(path, verify=True).notes


@pytest.mark.parametrize("checkpoint", [5, 10_000])
def test_a_ring_that_changes_in_evaluation_is_caught(tmp_path, checkpoint):
    """At the end of the evaluation, or at the first commit in its midst."""

    class Greedy(Hoarder):
        greedy = 1

    with pytest.raises(AgentFault, match=r"Greedy changed in evaluation \(block 0\).*'ring\.") as e:
        live(life(), Greedy, path=tmp_path / "x", checkpoint=checkpoint)
    assert "'ring.obs', 'ring.reward'" in str(e.value) or "'ring.written'" in str(e.value)
    assert not Lifetime.read(tmp_path / "x").commits, "nothing of it is committed"


def test_a_ring_that_changes_in_evaluation_after_a_resume_is_caught(tmp_path):
    class Later(Hoarder):
        def load(self, state):
            super().load(state)
            self.greedy = 1

    live(life(), Hoarder, path=tmp_path / "x", checkpoint=5)
    inside = next(c.n for c in Lifetime.read(tmp_path / "x").commits if c.position["digest"])
    cut_journal(tmp_path / "x", inside + 1)
    config = setting_of(life(), checkpoint=5)
    with (
        LifetimeLog(tmp_path / "x", "test", 0) as log,
        pytest.raises(AgentFault, match=r"changed in evaluation \(block 0\)"),
    ):
        LifetimeLoop(config, Later(config.setup()), log).run()


class Counted(Chunk):
    """Counts how often rows are copied or hashed."""

    copies = hashes = 0

    def detach(self):
        Counted.copies += 1
        super().detach()

    @property
    def digest(self):
        Counted.hashes += self.content.digest is None
        return super().digest


def test_evaluation_and_snapshots_neither_copy_nor_hash(monkeypatch):
    monkeypatch.setattr(column, "Chunk", Counted)
    config = setting_of(life())
    agent = Hoarder(config.setup())
    agent.ring.add(80, obs=np.ones((80, *agent.setup.observation_space.shape)), reward=np.ones(80))
    kept = AgentState(agent)
    kept.begin_evaluation(0, 0, 0)
    kept.end_evaluation(0)
    kept.begin_adapt(0, 0)
    assert (Counted.copies, Counted.hashes) == (0, 0)
    before = agent.ring["reward"].copy()
    agent.ring.add(1, obs=np.zeros((1, *agent.setup.observation_space.shape)), reward=[0.0])
    assert Counted.copies == len(agent.ring.columns), "of each column the stretch that changed"
    kept.end_adapt()
    assert np.array_equal(agent.ring["reward"], before)
    assert Counted.hashes == 0
