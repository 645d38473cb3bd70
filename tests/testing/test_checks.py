"""Our own parts pass the public checks; deliberately broken ones fail with a useful sentence."""

import subprocess
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from perdure import registry
from perdure.agent import Agent
from perdure.measure.metric import metric
from perdure.run.executors.serial import Serial
from perdure.seeds import pack_rng, unpack_rng
from perdure.suite import Suite
from perdure.testing import (
    CheckFailed,
    check_agent,
    check_executor,
    check_metric,
    check_suite,
    check_task,
)
from perdure.types import Task


@pytest.mark.parametrize("name", ["random", "q", "dqn,explore=30,batch=8", "ppo,rollout=16"])
def test_our_agents_pass(name):
    check_agent(name)


@pytest.mark.parametrize(
    "algo", ["PPO,n_steps=16", "DQN,learning_starts=10", "SAC,learning_starts=10"]
)
def test_stable_baselines_agents_pass(algo):
    check_agent(f"sb3,algo={algo}")


@pytest.mark.parametrize("name", ["toy", "gym"])
def test_our_suites_pass(name):
    check_suite(registry.suite(name))


class Good(Agent):
    """Counts what it learned from."""

    def __init__(self, setup):
        super().__init__(setup)
        self.seen = 0

    def act(self, obs, ctx):
        space = self.setup.action_space
        if isinstance(space, spaces.Discrete):
            return (self.rng.integers(space.n, size=len(ctx.slots)) + self.seen) % space.n
        return np.zeros((len(ctx.slots), *space.shape), space.dtype)

    def learn(self, batch, ctx):
        self.seen += len(batch)

    def state(self):
        return {"seen": np.array(self.seen)}

    def load(self, state):
        self.seen = int(state["seen"])


def test_a_class_can_be_checked():
    check_agent(Good)


class Forgetful(Good):
    def state(self):
        return {}

    def load(self, state):
        self.seen = 0


class Mistyped(Good):
    memory_scope = "trials"


class LearnsInEval(Good):
    def act(self, obs, ctx):
        self.seen += 1
        return super().act(obs, ctx)


class OwnDice(Good):
    def act(self, obs, ctx):
        np.random.random()
        return super().act(obs, ctx)


class Unrepeatable(Good):
    def act(self, obs, ctx):
        rng = np.random.default_rng()
        space = self.setup.action_space
        if isinstance(space, spaces.Discrete):
            return rng.integers(space.n, size=len(ctx.slots))
        return rng.uniform(-1, 1, (len(ctx.slots), *space.shape)).astype(space.dtype)


class NoSuper(Good):
    def __init__(self, setup):
        self.seen, self.setup = 0, setup


class Outside(Good):
    def act(self, obs, ctx):
        return np.full(len(ctx.slots), 99)


class NoLoad(Agent):
    def act(self, obs, ctx):
        return np.zeros(len(ctx.slots), int)

    def state(self):
        return {"x": np.zeros(1)}


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        (Forgetful, "state() must hold everything that load() needs"),
        (LearnsInEval, "changed in evaluation (block 0): state()['seen'] differs"),
        (OwnDice, "numpy's global random"),
        (Unrepeatable, "the same seed gave other rows: draw all randomness from self.rng"),
        (NoSuper, "must call super().__init__(setup)"),
        (Outside, "expected actions from 0 to 3"),
        (NoLoad, "load() is not written"),
        (Mistyped, "unknown memory_scope 'trials'; did you mean 'trial'"),
    ],
)
def test_broken_agents_fail_with_a_useful_sentence(agent, sentence):
    with pytest.raises(CheckFailed) as caught:
        check_agent(agent)
    assert sentence in str(caught.value)


class Walk(gymnasium.Env):
    """Honest unless a subclass is not."""

    observation_space = spaces.Box(-100, 100, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def draw(self):
        return self.np_random.normal()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.draw()
        return np.array([self.x]), {}

    def step(self, action):
        self.x += self.draw()
        return np.array([self.x]), self.x, False, False, {}


class GlobalDice(Walk):
    def draw(self):
        return np.random.normal()


class RemembersHistory(Walk):
    episodes = 0

    def reset(self, *, seed=None, options=None):
        self.episodes += 1
        super().reset(seed=seed)
        self.x += self.episodes
        return np.array([self.x]), {}


class LateDice(Walk):
    """Honest at reset, not in step."""

    def reset(self, *, seed=None, options=None):
        obs = super().reset(seed=seed)
        self.private = np.random.default_rng()
        return obs

    def step(self, action):
        self.x += self.private.normal()
        return np.array([self.x]), 0.0, False, False, {}


class OutOfSpace(Walk):
    def step(self, action):
        return np.array([1e9]), 0.0, False, False, {}


class Saving(Walk):
    """Ends after nine steps, and can save itself."""

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.steps += 1
        obs, reward, *_ = super().step(action)
        return obs, reward, False, self.steps == 9, {}

    def save_state(self):
        return {
            "x": np.array(self.x),
            "steps": np.array(self.steps),
            "rng": pack_rng(self.np_random),
        }

    def load_state(self, state):
        self.x, self.steps = float(state["x"]), int(state["steps"])
        self.np_random = unpack_rng(state["rng"])


class ForgetsSteps(Saving):
    def load_state(self, state):
        super().load_state({**state, "steps": self.steps})


class ForgetsDice(Saving):
    def load_state(self, state):
        super().load_state({**state, "rng": pack_rng(self.np_random)})


class BadReward(Walk):
    def step(self, action):
        return np.array([0.0]), float("nan"), False, False, {}


def suite_with(cls):
    class One(Suite):
        name = "one"

        def tasks(self):
            return [Task("one", "walk")]

        def env(self, task):
            return cls()

    return One()


def test_an_honest_suite_passes():
    check_suite(suite_with(Walk))
    check_suite(suite_with(Saving))


def test_an_instruction_that_is_not_in_a_list():
    suite = suite_with(Walk)
    suite.instructions = lambda task: "walk on"
    with pytest.raises(CheckFailed, match=r"gave the text 'walk on', .* give \[text\]"):
        check_suite(suite)


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (GlobalDice, "uses numpy's global random"),
        (
            GlobalDice,
            "reset(seed=11) in an environment that ran other episodes before gave another",
        ),
        (RemembersHistory, "first difference at step 0, observation"),
        (LateDice, "first difference at step 1, observation"),
        (OutOfSpace, "the observation at step 1 is outside its space"),
        (BadReward, "the reward at step 1 is nan"),
        (ForgetsSteps, "saved by save_state() after 4 steps"),
        (ForgetsSteps, "(first difference at step 9, truncated)"),
        (ForgetsDice, "(first difference at step 5, observation)"),
    ],
)
def test_broken_environments_fail_with_a_useful_sentence(env, sentence):
    suite = suite_with(env)
    with pytest.raises(CheckFailed) as caught:
        check_task(suite, suite.tasks()[0])
    assert sentence in str(caught.value)


def test_a_suite_that_lists_a_task_twice():
    suite = suite_with(Walk)
    suite.tasks = lambda: [Task("one", "walk")] * 2
    with pytest.raises(CheckFailed, match="lists one/walk twice"):
        check_suite(suite)


class Forgets(Serial):
    def run(self, plan, jobs, report):
        super().run(plan, jobs[:-1], report)


class Swallows(Serial):
    def run(self, plan, jobs, report):
        from dataclasses import replace

        super().run(plan, jobs, lambda o: report(replace(o, error="oops") if o.error else o))


@pytest.mark.parametrize(
    ("executor", "sentence"),
    [(Forgets, "was reported 0 times"), (Swallows, "the original error's words are lost")],
)
def test_broken_executors_fail_with_a_useful_sentence(executor, sentence):
    with pytest.raises(CheckFailed, match=sentence):
        check_executor(executor)


@pytest.mark.parametrize("name", sorted(registry.metrics()))
def test_our_metrics_pass(name):
    check_metric(registry.metrics()[name])


def test_a_broken_metric_fails():
    @metric("broken.draws", better="higher")
    def draws(life):
        return np.random.random()

    with pytest.raises(CheckFailed, match="when asked again"):
        check_metric(draws)

    @metric("broken.names", better="higher")
    def names(life):
        return float(len(life.history.tasks[0]))

    with pytest.raises(CheckFailed, match="with tasks renamed"):
        check_metric(names)

    @metric("broken.crash", better="higher")
    def crash(life):
        return life.matrix.values[3, 0]

    with pytest.raises(CheckFailed, match="raised IndexError"):
        check_metric(crash)

    @metric("broken.silent", better="higher")
    def silent(life):
        return float("nan")

    with pytest.raises(CheckFailed, match="without a reason"):
        check_metric(silent)


class Side:
    """Walks side by side; honest unless a subclass is not."""

    def __init__(self, count):
        self.walks = [Walk() for _ in range(count)]

    def reset(self, slot, episode):
        return self.walks[slot].reset(seed=episode.seed)[0]

    def expect(self, episodes):
        pass

    def step(self, slots, actions):
        steps = [self.walks[s].step(a) for s, a in zip(slots, actions, strict=True)]
        obs, rewards, ends, cuts, _ = zip(*steps, strict=True)
        return np.stack(obs), list(rewards), list(ends), list(cuts), {}

    def close(self):
        pass


class Shared(Side):
    """One generator for all slots."""

    def reset(self, slot, episode):
        obs = super().reset(slot, episode)
        for walk in self.walks:
            walk.np_random = self.walks[slot].np_random
        return obs


class Swapped(Side):
    """Gives rows in the order of slots, not of the call."""

    def step(self, slots, actions):
        obs, *rest = super().step(slots, actions)
        return obs[np.argsort(slots)], *rest


class Rounds(Side):
    def step(self, slots, actions):
        obs, *rest = super().step(slots, actions)
        return obs.astype(np.float32).astype(np.float64), *rest


class KeepsGoing(Side):
    """A new episode does not begin anew where one was before."""

    used = 0

    def reset(self, slot, episode):
        obs = super().reset(slot, episode)
        self.used += 1
        if self.used > len(self.walks):
            self.walks[slot].x += 1
        return obs


def batched(cls):
    suite = suite_with(Walk)
    suite.batched_env = lambda task, count: cls(count)
    return suite


def test_an_honest_batched_env_passes():
    check_suite(batched(Side))


@pytest.mark.parametrize("cls", [Shared, Swapped, Rounds, KeepsGoing])
def test_a_batched_env_that_plays_otherwise_is_found(cls):
    with pytest.raises(CheckFailed, match="batched_env plays another episode of seed"):
        check_suite(batched(cls))


class Handle:
    """What a scheduler gives back; this one says of every worker that it did well."""

    exit_code = 0

    def __init__(self, command):
        self.last_lines = subprocess.run(command, capture_output=True, text=True).stderr[-500:]


def test_the_cluster_of_the_design_notes_keeps_its_promises():
    note = (Path(__file__).parents[2] / "docs/design/loop.md").read_text()
    code = next(part for part in note.split("```") if "class Cluster" in part)
    scope = {"submit": Handle, "wait_for": list}
    exec(code.removeprefix("python\n"), scope)
    check_executor(scope["Cluster"])
