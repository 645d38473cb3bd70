"""Rows of the past as references into the data they came from, or as copies in their own type."""

import shutil
import threading
import time
from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from gymnasium import spaces

from kit import setting_of
from perdure.agents.compose import make_agent
from perdure.agents.learners.classifier import ClassifierAgent
from perdure.agents.networks.learner import new_rows
from perdure.agents.strategies.drawn_ahead import DrawnAhead
from perdure.agents.strategies.row_memory import Reservoir, RowFormat, joined
from perdure.arrays import leaves, map_leaves
from perdure.errors import SpecError
from perdure.run.loop import LifetimeLoop
from perdure.spaces import of_parts
from perdure.specs import Spec
from perdure.store.log import LifetimeLog
from perdure.suite import Suite
from perdure.testing.agents import cut_journal, read_rows
from perdure.types import Curriculum, Examples, Exposure, Setup, Task, evaluate, learn

TASKS = [Task("mine", f"task{k}") for k in range(3)]


class Pictures:
    """Small pictures and a number: the label is how bright the picture is, turned by the task."""

    batch_size, examples = 16, 48

    def __init__(self, task):
        rng = np.random.default_rng(TASKS.index(task))
        self.targets = rng.integers(3, size=self.examples)
        shade = (self.targets + TASKS.index(task)) % 3 * 100
        noise = rng.integers(0, 40, (self.examples, 20, 20, 3))
        self.pictures = (shade[:, None, None, None] + noise).astype(np.uint8)
        self.numbers = rng.uniform(size=(self.examples, 2)).astype(np.float32)

    def __len__(self):
        return self.examples

    def batch(self, indices):
        inputs = {"number": self.numbers[indices], "picture": self.pictures[indices]}
        return Examples(inputs, self.targets[indices])


class Mine(Suite):
    name = "mine"

    def tasks(self):
        return TASKS

    def data(self, task, learning):
        return Pictures(task)

    def spaces(self, task):
        parts = {
            "number": spaces.Box(0, 1, (2,), np.float32),
            "picture": spaces.Box(0, 255, (20, 20, 3), np.uint8),
        }
        return spaces.Dict(parts), spaces.Discrete(3)


def lifetime(agent, folder, **keys):
    """Three tasks in turn: (rows, the agent at the end)."""
    blocks = [learn(Exposure(t, 2, "epochs")) for t in TASKS]
    final = evaluate(*(Exposure(t, 1, "epochs") for t in TASKS))
    with patch("perdure.registry.suite", lambda name: Mine()):
        config = setting_of(Curriculum("x", (*blocks, final)), **keys)
    made = make_agent(Spec.parse(agent), config.setup())
    with LifetimeLog(folder, "test", 0) as log:
        LifetimeLoop(config, made, log).run()
    return read_rows(folder), made


BIT = spaces.Discrete(2)


@pytest.mark.parametrize(
    "space",
    [
        BIT,
        spaces.Dict({"a": spaces.Dict({"b": BIT, "c": spaces.Tuple([BIT, BIT])}), "e": BIT}),
        spaces.Dict({"1": BIT, "2": BIT}),
        spaces.Dict({"0": BIT, "1": spaces.Tuple([BIT])}),
        spaces.Dict({"camera/left": BIT, "camera/right": BIT}),
    ],
)
def test_an_observation_is_put_together_again_from_its_parts(space):
    seen = space.sample()
    assert of_parts(space, leaves(seen)) == seen
    assert map_leaves(lambda *two: two[0] - two[1], seen, seen) == map_leaves(lambda _: 0, seen)


def test_copies_of_parts_that_are_called_by_numbers(tmp_path):
    """Names such as those of cameras 1 and 2: no places in a tuple."""
    renamed = {"number": "1", "picture": "2"}

    def batch(self, indices, batch=Pictures.batch):
        found = batch(self, indices)
        return replace(found, inputs={renamed[k]: v for k, v in found.inputs.items()})

    def spaces_of(self, task, of=Mine.spaces):
        seen, done = of(self, task)
        return spaces.Dict({renamed[k]: v for k, v in seen.spaces.items()}), done

    agent = "replay+classifier,memory=40,keep=copies"
    rows, _ = lifetime(agent, tmp_path / "words")
    with patch.object(Pictures, "batch", batch), patch.object(Mine, "spaces", spaces_of):
        assert lifetime(agent, tmp_path / "numbers")[0] == rows


@pytest.mark.parametrize(
    "agent", ["replay,memory=30", "replay,quota=10", "joint", "agem,quota=10", "ewc,samples=20"]
)
def test_only_references_are_kept(tmp_path, agent):
    name, _, params = agent.partition(",")
    _, made = lifetime(f"{name}+classifier,{params}".rstrip(","), tmp_path / "life")
    kept = {k: np.asarray(v) for k, v in made.state().items() if k.startswith("strategy.")}
    rows = {k: v for k, v in kept.items() if k.endswith((".source", ".index"))}
    assert rows and all(v.dtype == np.int64 and v.ndim == 1 for v in rows.values())
    assert not [k for k, v in kept.items() if v.ndim > 1], "no inputs, no targets"
    assert len({int(s) for k, v in rows.items() if k.endswith("source") for s in v}) >= 1


@pytest.mark.parametrize("how", ["memory=40", "quota=12"])
def test_references_and_copies_learn_the_same(tmp_path, how, monkeypatch):
    """Where both are drawn when they are wanted."""

    def at_once(self, rows, task, drawn):
        return joined([self.form.unpack(part) for part in drawn(rows)])

    monkeypatch.setattr(DrawnAhead, "draw", at_once)
    agent = f"replay+classifier,{how},keep="
    references, a = lifetime(agent + "references", tmp_path / "references")
    copies, b = lifetime(agent + "copies", tmp_path / "copies")
    assert references == copies
    small, large = (sum(np.asarray(v).nbytes for v in x.strategy.state().values()) for x in (a, b))
    assert small < 2000 < 12_000 < large
    columns = {k: np.asarray(v) for k, v in b.strategy.state().items()}
    pictures = [v for k, v in columns.items() if k.endswith("inputs/picture")]
    assert pictures and all(v.dtype == np.uint8 for v in pictures), "in their own type"


@pytest.mark.parametrize("agent", ["replay,memory=40", "agem,quota=12"])
def test_examples_of_the_past_are_looked_up_ahead_and_nothing_else_changes(tmp_path, agent):
    """Also in a lifetime that is killed at any commit and goes on."""
    threads = Counter()

    def slow(self, indices, batch=Pictures.batch):
        time.sleep(0.002)
        threads[threading.current_thread().name.partition("_")[0]] += 1
        return batch(self, indices)

    name, _, params = agent.partition(",")
    agent = f"{name}+classifier,{params}"
    quick, _ = lifetime(agent, tmp_path / "quick", checkpoint=16)
    with patch.object(Pictures, "batch", slow):
        ahead, _ = lifetime(agent, tmp_path / "slow", checkpoint=16)
    assert ahead == quick and threads["look-up"] >= 6
    with LifetimeLog(tmp_path / "quick", "test", 0) as log:
        commits = len(log.commits)
    for k in (commits // 2, commits - 3):
        shutil.copytree(tmp_path / "quick", tmp_path / f"{k}")
        cut_journal(tmp_path / f"{k}", k)
        assert lifetime(agent, tmp_path / f"{k}", checkpoint=16)[0] == quick, k


def test_what_is_drawn_ahead_is_for_the_next_minibatch_of_the_same_task():
    pictures = [Pictures(t) for t in TASKS]
    learner = learner_of(pictures)
    memory, rng = Reservoir(100, RowFormat(learner)), np.random.default_rng(0)
    for source, data in enumerate(pictures):
        where = np.arange(20)
        given = _told(data.batch(where), source, where)
        memory.offer(new_rows(learner.minibatch(given), given), rng)
    asked = []

    def drawn(n):
        asked.append(n)
        return memory.draw(n, rng)

    ahead = DrawnAhead(memory.form)

    def draw(rows, task):
        expected = {n: v[:rows] for n, v in ahead.state("a").items() if n.endswith("index")}
        return expected.get("a.rows.index"), ahead.draw(rows, task, drawn)

    before, first = draw(16, 1)
    assert before is None and len(first["obs"]) == 16 and asked == [16, 16]
    before, fewer = draw(5, 1)
    assert fewer["index"].tolist() == before.tolist() and asked[2:] == [16]
    other = DrawnAhead(memory.form)
    other.load("a", ahead.state("a"))
    place = rng.bit_generator.state
    before, same = draw(16, 1)
    assert same["index"].tolist() == before.tolist() and asked[3:] == [16]
    rng.bit_generator.state = place
    assert other.draw(16, 1, drawn)["index"].tolist() == before.tolist()
    assert len(draw(20, 1)[1]["obs"]) == 20 and asked[5:] == [20, 20], "more are wanted"
    draw(16, 2)
    assert asked[7:] == [16, 16], "another task began"


def test_copies_within_a_budget_of_bytes(tmp_path):
    _, made = lifetime("replay+classifier,keep=copies,megabytes=0.02", tmp_path / "life")
    held = made.strategy.reservoir
    row = 2 * 4 + 20 * 20 * 3 + 8 + 2 * 8
    assert held.capacity == len(held) == 20_000 // row
    assert sum(v[: len(held)].nbytes for v in held.columns.values()) <= 20_000


KEEPERS = (
    "replay,memory=20", "replay,quota=10", "agem,quota=10", "ewc,samples=20", "online_ewc,samples=20",
    "mas,samples=20", "packnet,memory=10,retrain=3", "joint",
)  # fmt: skip


@pytest.mark.parametrize("agent", KEEPERS)
def test_copies_never_ask_for_an_example_twice(tmp_path, agent):
    """A robot that does not store what it saw."""

    def counted(self, indices, batch=Pictures.batch):
        read = self.__dict__.setdefault("read", Counter())
        read.update(indices.tolist())
        assert max(read.values()) <= 2, "once in each epoch, and never for the past"
        return batch(self, indices)

    name, _, params = agent.partition(",")
    with patch.object(Pictures, "batch", counted):
        _, made = lifetime(f"{name}+classifier,{params},keep=copies".replace(",,", ","), tmp_path)
    pictures = [v for k, v in made.state().items() if k.endswith("inputs/picture")]
    assert pictures and all(v.dtype == np.uint8 for v in pictures)


def test_tasks_share_a_budget_of_bytes(tmp_path):
    _, made = lifetime("replay+classifier,quota=12,keep=copies,megabytes=0.02", tmp_path / "life")
    row = 2 * 4 + 20 * 20 * 3 + 8 + 2 * 8
    tasks = made.strategy.per_task.tasks
    assert [len(t) for t in tasks] == [20_000 // row // 3] * 3
    held = [v[: len(t)] for t in tasks for v in t.columns.values()]
    assert sum(v.nbytes for v in held) <= 20_000
    sources = [set(t.columns["source"][: len(t)].tolist()) for t in tasks]
    assert sources == [{0}, {1}, {2}], "each has rows of its own task"
    again = make_agent(
        Spec.parse("replay+classifier,quota=12,keep=copies,megabytes=0.02"), made.setup
    )
    again.load(made.state())
    assert [len(t) for t in again.strategy.per_task.tasks] == [len(t) for t in tasks]


def learner_of(pictures):
    setup = Setup(
        *Mine().spaces(TASKS[0]), 1, 0, examples=lambda s, i: _told(pictures[s].batch(i), s, i)
    )
    return ClassifierAgent(setup)


def _told(batch, source, indices):
    batch.source, batch.indices = source, indices
    return batch


@pytest.mark.parametrize("keep", ["references", "copies"])
def test_rows_of_several_sources_come_back_in_their_order(keep):
    pictures = [Pictures(t) for t in TASKS]
    learner = learner_of(pictures)
    memory, rng = Reservoir(100, RowFormat(learner, keep)), np.random.default_rng(0)
    for source, data in enumerate(pictures):
        where = np.arange(20)
        given = _told(data.batch(where), source, where)
        memory.offer(new_rows(learner.minibatch(given), given), rng)
    rows = rng.integers(60, size=30)
    found = memory.at(rows)
    assert found["source"].tolist() == (rows // 20).tolist()
    assert found["index"].tolist() == (rows % 20).tolist()
    expected = [pictures[r // 20].targets[r % 20] for r in rows]
    assert found["targets"].tolist() == expected
    one = learner.minibatch(_told(pictures[rows[7] // 20].batch(rows[7:8] % 20), 0, rows[7:8] % 20))
    assert found["obs"][7].tolist() == one["obs"][0].tolist()


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(SpecError, match="keep must be one of references, copies"):
        RowFormat(None, "shadows")
