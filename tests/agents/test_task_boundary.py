"""One rule for when a new task begins: evaluations and probes are no boundary, and where identity is
hidden every learn block is one."""

import numpy as np
import pytest

from kit import live
from perdure import curricula
from perdure.agents.learners.classifier import ClassifierAgent
from perdure.agents.strategies.base import Strategy
from perdure.agents.task_boundary import TaskBoundary
from perdure.registry import suite
from perdure.types import Context, Curriculum, Exposure, Task, adapt, evaluate, learn

NONE = np.zeros(0, int)
BLOBS = [Task("toy", "blobs", f"turn{a}", {"angle": a, "examples": 32}) for a in (0, 45)]


def entered(boundary, kind, block, tasks, learning=True):
    """Whether a block of these tasks begins a new task: its boundaries as the loop tells them."""
    events = [
        Context(kind, learning, block, tasks, NONE, NONE, e) for e in ("block", "task", "variant")
    ]
    return [boundary.enter(ctx) for ctx in events].count(True)


def test_what_begins_a_task():
    b = TaskBoundary()
    assert entered(b, "learn", 0, ("a",)) == 1
    assert entered(b, "eval", 1, ("b",), learning=False) == 0
    assert entered(b, "learn", 2, ("a",)) == 0, "the same task goes on after an evaluation"
    assert entered(b, "adapt", 3, ("c",)) == 0, "a probe is taken back"
    assert entered(b, "learn", 4, ("b", "a")) == 1 and b.parallel_tasks == 2
    assert entered(b, "learn", 5, ("a", "b")) == 0
    assert b.count == 2


def test_hidden_identity_makes_every_learn_block_a_task():
    b = TaskBoundary()
    assert entered(b, "learn", 0, None) == 1
    assert entered(b, "eval", 1, None, learning=False) == 0
    assert entered(b, "adapt", 2, None) == 0
    assert entered(b, "learn", 3, None) == 1
    assert entered(b, "learn", 3, None) == 0


def test_an_adapt_block_begins_once_and_its_tasks_go_with_its_state():
    b, other = TaskBoundary(), TaskBoundary()
    entered(b, "learn", 0, ("a",))
    before = b.state("x")

    def adapts(boundary, tasks, learning=True):
        events = [Context("adapt", learning, 1, tasks, NONE, NONE, e) for e in ("task", "variant")]
        return [boundary.adapts(ctx) for ctx in events]

    assert adapts(b, ("c",)) == [True, False] and b.adapting == "c"
    other.load("x", b.state("x"))
    assert adapts(other, ("a",)) == [False, False], "resumed, the block has begun already"
    assert other.adapting == "a\nc"
    assert adapts(other, ("d",), learning=False) == [False, False] and other.adapting == "a\nc"
    other.load("x", before)
    assert other.adapting == "" and adapts(other, None) == [True, False]


def test_it_resumes():
    b, other = TaskBoundary(), TaskBoundary()
    entered(b, "learn", 0, ("ä", "b"))
    other.load("x", b.state("x"))
    assert (other.current, other.count) == (b.current, b.count) == ("b\nä", 1)
    assert entered(other, "learn", 1, ("ä", "b")) == 0


class Told(Strategy):
    """Writes down what it is told, all lives in one list."""

    log: list = []

    def begin(self):
        self.log.append(("begin", self.task, self.tasks))

    def end(self):
        self.log.append(("end", self.task, self.tasks))


@pytest.mark.parametrize("hidden", [False, True])
def test_strategies_hear_of_tasks_and_not_of_probes(tmp_path, hidden):
    first, second = BLOBS
    some = [Exposure(t, 2, "batches") for t in BLOBS]
    probe = adapt(some[1], then=[some[1]])
    blocks = (learn(some[0]), probe, evaluate(some[1]), learn(some[0]), learn(some[1]), probe)
    Told.log = []
    live(Curriculum("x", blocks), lambda s: Told(ClassifierAgent(s)).agent(), tmp=tmp_path,
         hide_tasks=hidden)  # fmt: skip
    a, b = (t.id for t in BLOBS)
    names = [a, b] if not hidden else ["block 0", "block 3", "block 4"]
    expected = [("begin", names[0], 1)]
    for k, name in enumerate(names[1:], 1):
        expected += [("end", names[k - 1], k), ("begin", name, k + 1)]
    assert Told.log == expected


def test_exploration_of_q_does_not_restart_at_a_probe(tmp_path):
    from perdure.agents.learners.q import QAgent

    one, two = (suite("toy").task(f"goal-{c}") for c in ("ne", "sw"))
    probe = adapt(Exposure(two, 3), then=[Exposure(two, 1)])
    blocks = curricula.interleave([learn(Exposure(one, 200, "steps"))], probe, when=["after"])
    _, agent = live(Curriculum("x", blocks), QAgent, tmp=tmp_path)
    assert agent.explore.learned == 200 and agent.explore.boundary.current == one.id


@pytest.mark.parametrize("restart", [True, False])
def test_dqn_learns_an_adapt_block_from_a_replay_of_its_own(tmp_path, restart):
    from perdure.agents.learners.dqn import DQNAgent

    one, two = (suite("toy").task(f"goal-{c}") for c in ("ne", "sw"))
    probe = adapt(Exposure(two, 30, "steps"), then=[Exposure(two, 1)])
    held = []

    class Watched(DQNAgent):
        def leave(self, ctx):
            super().leave(ctx)
            if (ctx.event == "task" and ctx.learning) or ctx.event == "lifetime":
                held.append((ctx.kind, len(self.replay), self.replay["rewards"].copy()))

    blocks = (learn(Exposure(one, 100, "steps")), probe)
    live(
        Curriculum("x", blocks),
        lambda s: Watched(s, hidden=(8,), batch=8, restart=restart),
        tmp=tmp_path,
    )
    (_, learned, rows), (kind, adapted, _), (_, after, again) = held
    assert kind == "adapt" and adapted == (30 if restart else learned + 30)
    assert after == learned == 100 and np.array_equal(rows, again)
