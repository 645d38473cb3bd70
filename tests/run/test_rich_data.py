"""Nested observations and data: checked, saved, resumed; sequences, references, fetching ahead."""

import shutil
import threading
import time
from unittest.mock import patch

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from kit import setting_of
from perdure.agent import Agent
from perdure.arrays import all_finite, leaves, map_leaves, rows_of, same_leaves
from perdure.errors import AgentFault, EnvironmentFault
from perdure.run.loop import LifetimeLoop
from perdure.store.log import LifetimeLog
from perdure.suite import Suite
from perdure.testing import CheckFailed, check_task
from perdure.testing.agents import cut_journal, read_rows
from perdure.types import Curriculum, Examples, Exposure, Task, evaluate, learn

TASK = Task("mine", "task")
SIGNED = Task("toy", "signed-reach")


def one(*blocks):
    return Curriculum("x", blocks)


def test_leaves():
    tree = {"a": np.zeros((2, 3)), "b": {"c": np.ones(2)}, "d": (np.arange(2), np.arange(4.0)[:2])}
    assert list(leaves(tree)) == ["a", "b/c", "d/0", "d/1"]
    assert leaves(np.ones(2)).keys() == {""}
    assert same_leaves(tree, map_leaves(np.copy, tree))
    assert not same_leaves(tree, {**tree, "a": np.ones((2, 3))}) and not same_leaves(tree, {"a": 1})
    assert rows_of(tree, [1])["d"][0].tolist() == [1]
    assert all_finite(tree) and not all_finite({**tree, "b": {"c": np.array([np.inf])}})
    assert same_leaves({"a": np.array([np.nan])}, {"a": np.array([np.nan])})


# Environments.


class Reacher(Agent):
    """Knows the answer to signed-reach, and writes down a digest of all it sees."""

    def act(self, obs, ctx):
        sign = obs["sign"].reshape(len(obs["sign"]), -1)[:, 0] > 0
        return (np.where(sign, -1, 1)[:, None] * obs["number"] * 0.5).astype(np.float32)

    def learn(self, batch, ctx):
        assert set(batch.obs) == set(batch.next_obs) == {"number", "sign"}
        assert batch.obs["sign"].dtype in (np.uint8, np.int64)
        return {"seen": float(batch.obs["number"].sum() + batch.next_obs["sign"].sum())}

    def state(self):
        return {}


class Replayed(gymnasium.Wrapper):
    """The same environment, which cannot save itself."""

    @property
    def unwrapped(self):
        return self


class Tupled(gymnasium.ObservationWrapper):
    """A Tuple that holds a Dict."""

    def __init__(self, env):
        super().__init__(env)
        number = env.observation_space["number"]
        self.observation_space = spaces.Tuple([number, spaces.Dict({"deep": number})])

    def observation(self, obs):
        return obs["number"], {"deep": obs["number"] * 2 / 2}


class TupleReacher(Agent):
    def act(self, obs, ctx):
        return (obs[0] + obs[1]["deep"]) / 4

    def state(self):
        return {}


def lifetime(config, agent, folder):
    with LifetimeLog(folder, "test", config.seed) as log:
        LifetimeLoop(config, agent, log).run()
    return read_rows(folder)


@pytest.mark.parametrize("wrap", [None, Replayed, Tupled])
@pytest.mark.parametrize("picture", [False, True])
def test_nested_observations_resume_from_any_commit(tmp_path, wrap, picture):
    """Of environments that save themselves and of those whose actions are played again."""
    from perdure.suites.toy import suite as toy

    task = Task("toy", "signed-reach", params={"picture": picture, "length": 6})
    make_env = type(toy).env
    wrapped = make_env if wrap is None else lambda self, task: wrap(make_env(self, task))
    with patch.object(type(toy), "env", wrapped):
        block = [learn(Exposure(task, 25, "steps")), evaluate(Exposure(task, 3))]
        config = setting_of(one(*block), envs=2, checkpoint=8)
        make = TupleReacher if wrap is Tupled else Reacher
        expected = lifetime(config, make(config.setup()), tmp_path / "whole")
        if make is Reacher:
            assert expected[-1].success == 1.0 and expected[-1].ret == pytest.approx(0, abs=1e-5)
        with LifetimeLog(tmp_path / "whole", "test", 0) as log:
            commits = len(log.commits)
        for k in range(1, commits):
            shutil.copytree(tmp_path / "whole", tmp_path / f"{k}")
            cut_journal(tmp_path / f"{k}", k)
            again = lifetime(config, make(config.setup()), tmp_path / f"{k}")
            assert again == expected, k


# Data.


class Dicts:
    """Sixty examples of a number and a picture, the target their sum."""

    batch_size, examples = 8, 60

    def __init__(self, learning=True, pause=0.0):
        rng = np.random.default_rng(int(learning))
        self.number = rng.uniform(-1, 1, (self.examples, 1)).astype(np.float32)
        self.picture = rng.integers(0, 2, (self.examples, 2, 2, 1)).astype(np.uint8)
        self.threads, self.pause, self.asked = set(), pause, []

    def __len__(self):
        return self.examples

    def batch(self, indices):
        time.sleep(self.pause)
        self.threads.add(threading.current_thread().name)
        self.asked.append(indices)
        inputs = {"number": self.number[indices], "picture": self.picture[indices]}
        return Examples(inputs, self.number[indices] / 2)


class Sequences(Dicts):
    """The same as sequences of three steps, with a target for each."""

    def batch(self, indices):
        batch = super().batch(indices)
        inputs = {k: np.stack([v] * 3, axis=1) for k, v in batch.inputs.items()}
        return Examples(inputs, np.stack([batch.targets] * 3, axis=1))


def suite_of(data):
    class Mine(Suite):
        name = "mine"

        def tasks(self):
            return [TASK]

        def data(self, task, learning):
            return data(learning)

        def spaces(self, task):
            parts = {
                "number": spaces.Box(-1, 1, (1,), np.float32),
                "picture": spaces.Box(0, 255, (2, 2, 1), np.uint8),
            }
            return spaces.Dict(parts), spaces.Box(-1, 1, (1,), np.float32)

    return Mine()


class Halver(Agent):
    """Knows the answer, and looks examples up again."""

    def __init__(self, setup):
        super().__init__(setup)
        self.references = []

    def act(self, obs, ctx):
        return obs["number"] / 2

    def learn(self, batch, ctx):
        self.references.append((batch.source, batch.indices))
        first = self.setup.examples(*self.references[0])
        again = self.setup.examples(batch.source, batch.indices)
        assert same_leaves(again.inputs, batch.inputs) and len(first) == 8
        return {"sum": float(batch.targets.sum()), "progress": ctx.progress}

    def state(self):
        return {}


def run(data, blocks, agent=Halver, **keys):
    with patch("perdure.registry.suite", lambda name: suite_of(data)):
        config = setting_of(one(*blocks))
    return live_with(config, agent, **keys)


def live_with(config, agent, path):
    made = agent(config.setup())
    return lifetime(config, made, path), made


BOTH = [learn(Exposure(TASK, 2, "epochs")), evaluate(Exposure(TASK, 1, "epochs"))]


def test_examples_are_looked_up_again_by_reference(tmp_path):
    rows, agent = run(Dicts, BOTH, path=tmp_path / "life")
    assert len(agent.references) == 16 and {s for s, _ in agent.references} == {0}
    for epoch in (agent.references[:8], agent.references[8:]):
        assert sorted(np.concatenate([i for _, i in epoch])) == list(range(60))
    assert [r.loss for r in rows if not r.learning] == [0.0] * 8
    progress = [r.more["progress"] for r in rows if r.learning]
    assert progress == pytest.approx([(k + 1) / 16 for k in range(16)])


def test_an_unknown_source_is_refused(tmp_path):
    class Wild(Halver):
        def learn(self, batch, ctx):
            self.setup.examples(7, batch.indices)

    with pytest.raises(AgentFault, match="source 7.*from 0 to 0"):
        run(Dicts, BOTH, Wild, path=tmp_path / "life")


@pytest.mark.parametrize("sort", [Dicts, Sequences])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: {"count": x["number"], "picture": x["picture"]},
         r"got count, picture in place of number, picture"),
        (lambda x: {"number": x["number"]}, "got number in place of number, picture"),
        (lambda x: x["number"], "got an array in place of number, picture"),
        (lambda x: {**x, "picture": x["picture"][..., 0]},
         r"got picture of shape .*2, 2\) for each example in place of \(2, 2, 1\)"),
    ],
)  # fmt: skip
def test_data_that_are_not_of_the_space_are_at_fault(tmp_path, sort, change, words):
    class Other(sort):
        def batch(self, indices):
            batch = super().batch(indices)
            return Examples(change(batch.inputs), batch.targets)

    for k, blocks in enumerate((BOTH, BOTH[1:])):
        with pytest.raises(EnvironmentFault, match=f"data of mine/task, batch 0: .*{words}"):
            run(Other, blocks, path=tmp_path / f"{k}")


def test_sequences_are_scored_over_all_their_steps(tmp_path):
    rows, _ = run(Sequences, BOTH, path=tmp_path / "life")
    assert [r.loss for r in rows if not r.learning] == [0.0] * 8

    class Short(Halver):
        def act(self, obs, ctx):
            return obs["number"][:, 0]

    with pytest.raises(AgentFault, match=r"an answer for each step of \(8, 3\) sequences"):
        run(Sequences, BOTH[1:], Short, path=tmp_path / "short")


def test_nan_inside_a_dict_and_parts_of_other_lengths_are_refused(tmp_path):
    class Broken(Dicts):
        def batch(self, indices):
            batch = super().batch(indices)
            batch.inputs["number"] = np.full_like(batch.inputs["number"], np.nan)
            return batch

    class Ragged(Dicts):
        def batch(self, indices):
            batch = super().batch(indices)
            batch.inputs["number"] = batch.inputs["number"][:3]
            return batch

    with pytest.raises(EnvironmentFault, match="mine/task, batch 0: expected finite inputs"):
        run(Broken, BOTH, path=tmp_path / "nan")

    class Aimless(Dicts):
        def batch(self, indices):
            batch = super().batch(indices)
            return Examples(batch.inputs, np.full_like(batch.targets, np.nan))

    with pytest.raises(EnvironmentFault, match=r"expected 8 inputs.*number of shape \(3, 1\)"):
        run(Ragged, BOTH, path=tmp_path / "ragged")
    with pytest.raises(EnvironmentFault, match="mine/task, batch 0: expected finite targets"):
        run(Aimless, BOTH, path=tmp_path / "targets")


@pytest.mark.parametrize("data", [Dicts, Sequences])
def test_check_reads_dicts_and_sequences_of_data(data):
    check_task(suite_of(data), TASK)

    class Outside(data):
        def batch(self, indices):
            batch = super().batch(indices)
            return Examples({**batch.inputs, "number": batch.inputs["number"] + 5}, batch.targets)

    with pytest.raises(CheckFailed, match="data holds an input outside Dict"):
        check_task(suite_of(Outside), TASK)


# Environments of many slots with nested observations.


class Parts(gymnasium.Env):
    """A number that grows and a picture, as a tuple."""

    observation_space = spaces.Tuple(
        (
            spaces.Box(0, 99, (1,), np.float32),
            spaces.Dict({"picture": spaces.Box(0, 255, (2, 2, 1), np.uint8)}),
        )
    )
    action_space = spaces.Discrete(2)

    def see(self):
        picture = np.full((2, 2, 1), self.seed % 7, np.uint8)
        return np.array([self.time], np.float32), {"picture": picture}

    def reset(self, *, seed=None, options=None):
        self.seed, self.time = seed, 0
        return self.see(), {}

    def step(self, action):
        self.time += 1
        return self.see(), 0.0, False, self.time >= 5, {}


class Side:
    """Several of them."""

    def __init__(self, count):
        self.envs = [Parts() for _ in range(count)]

    def reset(self, slot, episode):
        return self.envs[slot].reset(seed=episode.seed)[0]

    def expect(self, episodes):
        pass

    def step(self, slots, actions):
        seen, rewards, ends, cuts, _ = zip(
            *(self.envs[s].step(a) for s, a in zip(slots, actions)), strict=True
        )
        return list(seen), list(rewards), list(ends), list(cuts), {}

    def close(self):
        pass


class Nan(Side):
    def step(self, slots, actions):
        seen, *rest = super().step(slots, actions)
        return [(number * np.nan, picture) for number, picture in seen], *rest


class Joined(Side):
    """Puts them together in a way that the loop does not read."""

    def step(self, slots, actions):
        seen, *rest = super().step(slots, actions)
        return {"0": np.stack([s[0] for s in seen]), "1": [s[1] for s in seen]}, *rest


def sided(cls):
    class Mine(Suite):
        name = "mine"

        def tasks(self):
            return [TASK]

        def env(self, task):
            return Parts()

        def batched_env(self, task, count):
            return cls(count)

    return Mine()


class Zero(Agent):
    def act(self, obs, ctx):
        return np.zeros(len(ctx.slots), np.int64)


def test_nested_observations_of_a_batched_env_are_checked(tmp_path):
    blocks = [learn(Exposure(TASK, 3))]

    def live(cls):
        with patch("perdure.registry.suite", lambda name: sided(cls)):
            config = setting_of(one(*blocks), envs=2)
        return live_with(config, Zero, path=tmp_path / cls.__name__)

    check_task(sided(Side), TASK)
    assert len(live(Side)[0]) == 3
    with pytest.raises(EnvironmentFault, match=r"mine/task.step.*expected a finite observation"):
        live(Nan)
    with pytest.raises(EnvironmentFault, match="expected a list with the observation of each slot"):
        live(Joined)
    with pytest.raises(CheckFailed, match="expected a list with the observation of each slot"):
        check_task(sided(Joined), TASK)


def test_check_finds_a_batched_env_that_does_not_know_trials():
    class ByTrial(Parts):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=(options or {}).get("trial_seed", seed))

    class Deaf(Side):
        def __init__(self, count):
            self.envs = [ByTrial() for _ in range(count)]

        def reset(self, slot, episode):
            told = {**episode.options, "trial_seed": episode.seed}
            return self.envs[slot].reset(options=told)[0]

    class Hearing(Deaf):
        def reset(self, slot, episode):
            return self.envs[slot].reset(options=episode.options)[0]

    def suite(cls):
        made = sided(cls)
        made.env, made.reset_options = lambda task: ByTrial(), True
        return made

    check_task(suite(Hearing), TASK)
    with pytest.raises(CheckFailed, match="batched_env plays another episode"):
        check_task(suite(Deaf), TASK)


def test_slow_data_is_fetched_ahead_and_nothing_else_changes(tmp_path):
    made = []

    def slow(learning):
        made.append(Dicts(learning, pause=0.002))
        return made[-1]

    quick, _ = run(Dicts, BOTH, Plain, path=tmp_path / "quick")
    ahead, _ = run(slow, BOTH, Plain, path=tmp_path / "slow")
    assert ahead == quick
    fetched = [name for data in made for name in data.threads if name.startswith("prefetch")]
    assert len(fetched) == 2, "learning and evaluation"
    assert not [t for t in threading.enumerate() if t.name.startswith("prefetch")]


class Plain(Halver):
    """Learns for a while from each batch."""

    def learn(self, batch, ctx):
        time.sleep(0.001)
        return {"sum": float(batch.targets.sum())}


def test_learning_does_not_wait_for_data(tmp_path):
    """While a minibatch is learned, the next one is fetched: learning that waits for it comes to an end."""
    made = {}

    def data(learning):
        return made.setdefault(learning, Dicts(learning, 0.01))

    class Waiting(Halver):
        learned = 0

        def learn(self, batch, ctx):
            self.learned += 1
            end = time.monotonic() + 60
            # The first are fetched when they are wanted, to see how long that takes.
            while 2 < self.learned < 40 and len(made[True].asked) <= self.learned:
                assert time.monotonic() < end, "nothing is fetched while it learns"
                time.sleep(0.001)

    _, agent = run(data, [learn(Exposure(TASK, 5, "epochs"))], Waiting, path=tmp_path / "life")
    assert agent.learned == 40


def test_an_error_of_the_fetching_thread_is_told_as_any_other(tmp_path):
    class Failing(Dicts):
        def batch(self, indices):
            if len(self.asked) == 5:
                raise OSError("the disk is gone")
            return super().batch(indices)

    with pytest.raises(
        EnvironmentFault, match="data of mine/task raised OSError: the disk is gone"
    ):
        run(lambda learning: Failing(learning, 0.002), BOTH, Plain, path=tmp_path / "life")


def test_data_is_let_go_of_unless_it_is_looked_up(tmp_path):
    config = setting_of(one(learn(Exposure(Task("toy", "blobs"), 1, "epochs"))))
    task = config.curriculum.tasks[0]
    held = config.datasets
    assert held.open(task, True) is held.open(task, True)
    held.close(task, True)
    assert not held._opened
    held.examples(0, np.arange(2))
    held.close(task, True)
    assert len(held._opened) == 1
