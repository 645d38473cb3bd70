"""Learners learn, resume to the bit, leave no trace of evaluation, and repeat in new processes."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from perdure import registry
from perdure.agent import Agent
from perdure.arrays import ChunkedArray
from perdure.errors import AgentFault, SpecError
from perdure.seeds import pack_rng, seed_for, unpack_rng
from perdure.spaces import SYMBOLS
from perdure.types import Context, Examples, Setup, Task, Transitions

torch = pytest.importorskip("torch")

from perdure.agents.learners.dqn import DQNSettings
from perdure.agents.networks.encoders import encoder_for
from perdure.agents.networks.exploration import EpsilonGreedy
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.policies import Gaussian, policy_for
from perdure.agents.networks.ring import Ring
from perdure.agents.networks.rollout_buffer import gae

# A small driver: the learners are tested without the loop.


class Drive:
    """Some environments of one task and the agent in them, one vector step at a time."""

    def __init__(self, agent: Agent, task: Task, envs: int, seed: int = 0) -> None:
        self.agent, self.task, self.seed, self.episodes = agent, task, seed, 0
        suite = registry.suite_of(task)
        self.envs = [suite.env(task) for _ in range(envs)]
        self.episode_start = np.ones(envs, bool)
        self.obs = [self._reset(i) for i in range(envs)]
        self.returns, self.totals = [], np.zeros(envs)
        self.actions: list[Any] = []

    def _reset(self, i: int) -> Any:
        self.episodes += 1
        self.episode_start[i] = True
        return self.envs[i].reset(seed=seed_for(self.seed, self.episodes))[0]

    def context(self, learning: bool, slots: list[int], event: str = "") -> Context:
        kind = "learn" if learning else "eval"
        ids = (self.task.id,) * len(slots or self.envs)
        return Context(kind, learning, 0, ids, np.array(slots, int), self.episode_start, event)

    def enter(self, learning: bool = True) -> None:
        for event in ("block", "task", "variant"):
            self.agent.enter(self.context(learning, [], event))

    def leave(self, learning: bool = True) -> None:
        for event in ("variant", "task", "block"):
            self.agent.leave(self.context(learning, [], event))

    def step(self, learning: bool = True, slots: list[int] | None = None) -> None:
        slots = list(range(len(self.envs))) if slots is None else slots
        ctx = self.context(learning, slots)
        obs = np.array([self.obs[i] for i in slots])
        actions = np.asarray(self.agent.act(obs, ctx))
        self.actions.append(actions.copy())
        space = self.envs[0].action_space
        assert all(space.contains(a) for a in actions), (space, actions)
        results = [self.envs[i].step(a) for i, a in zip(slots, actions, strict=True)]
        after, rewards, ends, cuts, _ = zip(*results, strict=True)
        batch = Transitions(
            obs,
            actions,
            np.array(rewards, float) if learning else None,
            np.array(ends),
            np.array(cuts),
            np.array(after),
        )
        if learning:
            self.agent.learn(batch, ctx)
        else:
            self.agent.observe(batch, ctx)
        self.episode_start[slots] = False
        for k, i in enumerate(slots):
            self.totals[i] += rewards[k]
            self.obs[i] = after[k]
            if ends[k] or cuts[k]:
                self.returns.append(self.totals[i])
                self.totals[i] = 0.0
                self.obs[i] = self._reset(i)


def make(name: str, task: Task, slots: int = 4, seed: int = 0, **params: Any) -> Agent:
    observation, action = registry.suite_of(task).spaces(task)
    tasks = tuple(dict.fromkeys((task.id, OTHER.id)))
    learner = registry.load("agents", name)
    # Toy tasks and few steps: the defaults are for larger ones.
    quick = learner.presets["quick"] if name in ("ppo", "dqn") else {}
    agent: Agent = learner(Setup(observation, action, slots, seed, tasks), **{**quick, **params})
    return agent


def trained(name: str, task: Task, steps: int, envs: int = 4, **params: Any) -> Agent:
    agent = make(name, task, envs, **params)
    drive = Drive(agent, task, envs, seed=1)
    drive.enter()
    for _ in range(steps // envs):
        drive.step()
    drive.leave()
    return agent


def score(agent: Agent, task: Task, episodes: int = 50) -> float:
    drive = Drive(agent, task, 4, seed=2)
    while len(drive.returns) < episodes:
        drive.step(learning=False)
    return float(np.mean(drive.returns))


def same(a: Any, b: Any) -> bool:
    return a.keys() == b.keys() and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in ((np.asarray(a[k]), np.asarray(b[k])) for k in a)
    )


BANDIT, REACH, COUNT = (registry.task(f"toy/{n}") for n in ("bandit", "reach", "count"))
GOAL, OTHER = registry.task("toy/goal-ne"), registry.task("toy/goal-sw")

CASES = {
    "q": ("q", GOAL, {}),
    "dqn": ("dqn", GOAL, {"batch": 16, "replay": 60, "target": 5}),
    "ppo-discrete": ("ppo", GOAL, {"rollout": 32, "batch": 16, "epochs": 2}),
    "ppo-box": ("ppo", REACH, {"rollout": 32, "batch": 16, "epochs": 2}),
    "ppo-count": ("ppo", COUNT, {"rollout": 30, "batch": 16, "epochs": 2}),
    "ppo-linear": ("ppo", REACH, {"rollout": 32, "batch": 16, "epochs": 2, "baseline": "linear"}),
    "trpo": ("trpo", REACH, {"rollout": 32}),
    "trpo-mlp": ("trpo", GOAL, {"rollout": 32, "baseline": "mlp", "batch": 16, "epochs": 2}),
    "te": ("te", REACH, {"rollout": 32, "batch": 16, "epochs": 2, "embedding": 2, "window": 3}),
    "sac": ("sac", REACH, {"hidden": [8, 8], "start": 40, "batch": 8, "replay": 60, "every": 4}),
}
each = pytest.mark.parametrize("case", CASES)


# Learning.


@pytest.mark.parametrize("name", ["q", "dqn", "ppo"])
def test_bandit_to_its_optimum(name: str) -> None:
    assert score(trained(name, BANDIT, 2000), BANDIT) == 1.0


def optimum(episodes: int = 200) -> float:
    """The mean return of shortest paths over the episodes that :func:`score` plays."""
    env: Any = registry.suite_of(GOAL).env(GOAL)
    best = []
    for i in range(1, episodes + 1):
        env.reset(seed=seed_for(2, i))
        best.append(1 - 0.02 * (env.distance() - 1))
    return float(np.mean(best))


@pytest.mark.parametrize("name", ["q", "dqn", "ppo"])
@pytest.mark.parametrize("envs", [1, 8])
def test_goal_to_near_its_optimum(name: str, envs: int) -> None:
    assert score(trained(name, GOAL, 3000, envs), GOAL, 200) > optimum() - 0.05


def test_reach_to_near_its_optimum() -> None:
    before = score(make("ppo", REACH), REACH)
    assert before < -2
    assert score(trained("ppo", REACH, 6000), REACH) > -0.5


def test_cartpole_with_ppo() -> None:
    task = registry.task("gym/CartPole-v1")
    agent = trained("ppo", task, 12_000, 8, gamma=0.99, rollout=256)
    assert score(agent, task, 10) > 200


@pytest.mark.parametrize("name", ["q", "dqn", "ppo"])
def test_the_second_corner_drives_out_the_first(name: str) -> None:
    agent = trained(name, GOAL, 3000, 8)
    drive = Drive(agent, OTHER, 8, seed=3)
    drive.enter()
    for _ in range(375):
        drive.step()
    drive.leave()
    assert score(agent, OTHER, 100) > 0.8
    assert score(agent, GOAL, 100) < 0.3


class Corridor(gymnasium.Env[Any, int]):
    """One state, one action, reward 1 at every step; ends or is cut off after a step."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)


def test_values_of_dqn_stay_small_where_hubers_loss_lets_them_grow() -> None:
    """Under Huber's loss, where an end counts no more than any other row, a target network that
    follows fast lets them grow to tens of thousands with this seed, though not with every one. What
    can be earned is 100."""
    task = registry.task("gym/CartPole-v1")
    settings = dataclasses.asdict(DQNSettings(every=1, tau=0.05))
    agent: Any = trained("dqn", task, 2500, 1, **settings)
    with torch.no_grad():
        values = agent.predict(agent.sample(500))
    assert values.max() < 1000


@pytest.mark.parametrize("name", ["q", "dqn", "ppo"])
@pytest.mark.parametrize("ends", [True, False])
def test_values_go_on_through_truncation_but_not_through_the_end(name: str, ends: bool) -> None:
    params: dict[str, Any] = {"gamma": 0.5}
    params |= {"lr": 0.01, "every": 1, "target": 10, "tau": 1.0} if name == "dqn" else {}
    params |= {"lr": 0.01, "lam": 0.5, "rollout": 128, "epochs": 2} if name == "ppo" else {}
    agent: Any = registry.load("agents", name)(
        Setup(Corridor.observation_space, Corridor.action_space, 1, 0), **params
    )
    obs = np.ones((1, 1), np.float32)
    ctx = Context("learn", True, 0, None, np.arange(1), np.ones(1, bool))
    for _ in range(1500):
        actions = agent.act(obs, ctx)
        flag = np.array([ends])
        agent.learn(Transitions(obs, actions, np.ones(1), flag, ~flag, obs), ctx)
    if name == "q":
        value = agent.table[agent.rows[obs.tobytes()]].max()
    else:
        with torch.no_grad():
            net = agent.net.critic if name == "ppo" else agent.net
            value = net(torch.tensor(obs)).max().item()
    assert value == pytest.approx(1.0 if ends else 2.0, abs=0.1)


# Resuming.


def schedule(n: int) -> Iterator[tuple[str, list[int]]]:
    """A learning life: all slots, fewer, a task boundary, all again."""
    for i in range(n):
        yield "step", ([0, 1, 2, 3] if i % 7 else [1, 3])
        if i == n // 2:
            yield "boundary", []


def live(drive: Drive, moves: list[tuple[str, list[int]]]) -> None:
    for what, slots in moves:
        if what == "step":
            drive.step(slots=slots)
        else:
            drive.leave()
            drive.enter()


@each
def test_resumes_to_the_bit_at_every_step(case: str) -> None:
    name, task, params = CASES[case]
    moves = list(schedule(41))
    whole = make(name, task, **params)
    first = Drive(whole, task, 4)
    first.enter()
    saved = []
    for move in moves:
        state = whole.state()
        assert state is not None
        saved.append(({k: v.copy() for k, v in state.items()}, pack_rng(whole.rng)))
        live(first, [move])
    for cut in range(0, len(moves), 3):
        # The environments are played again from their start; the agent only from its state. It
        # has lived another life before, as in an adapt block: none of that may be left over.
        agent = make(name, task, seed=0 if cut % 2 else 5, **params)
        again = Drive(make(name, task, **params), task, 4)
        again.enter()
        live(again, moves[:cut])
        if cut % 4 == 0:
            other = Drive(agent, task, 4, seed=9)
            other.enter()
            live(other, moves[:5])
        again.agent = agent
        state, words = saved[cut]
        agent.load(state)
        agent.rng = unpack_rng(words)
        live(again, moves[cut:])
        assert same(agent.state(), whole.state()), cut
        assert all(
            np.array_equal(a, b) for a, b in zip(first.actions, again.actions, strict=True)
        ), cut


@each
def test_state_is_arrays_that_do_not_change(case: str) -> None:
    name, task, params = CASES[case]
    agent = make(name, task, **params)
    drive = Drive(agent, task, 4)
    drive.enter()
    drive.step()
    state = agent.state()
    assert state and all(type(v) in (np.ndarray, ChunkedArray) for v in state.values())
    assert all(v.dtype != object for v in state.values())
    before = {k: v.copy() for k, v in state.items()}
    for _ in range(40):
        drive.step()
    assert same(state, before)
    assert not same(state, agent.state())


@each
def test_evaluation_leaves_the_state_as_it_was(case: str) -> None:
    name, task, params = CASES[case]
    agent = make(name, task, **params)
    drive = Drive(agent, task, 4)
    drive.enter()
    for _ in range(19):
        drive.step()
    before, words = agent.state(), pack_rng(agent.rng)
    evaluation = Drive(agent, task, 2, seed=7)
    evaluation.enter(learning=False)
    for _ in range(30):
        evaluation.step(learning=False)
    evaluation.leave(learning=False)
    assert same(agent.state(), before)
    # Greedy evaluation draws nothing at all.
    assert np.array_equal(pack_rng(agent.rng), words)


def test_ppo_evaluates_by_its_policy_when_told_to() -> None:
    greedy, sampled = (make("ppo", GOAL, greedy=g) for g in (True, False))
    for agent, kinds in ((greedy, 1), (sampled, 4)):
        drive = Drive(agent, GOAL, 1)
        obs = np.repeat(np.array(drive.obs), 200, axis=0)
        assert len(set(agent.act(obs, drive.context(False, list(range(200)))))) == kinds


# Repeating.


def fingerprint(case: str) -> str:
    name, task, params = CASES[case]
    agent = make(name, task, **params)
    drive = Drive(agent, task, 4)
    drive.enter()
    live(drive, list(schedule(60)))
    state = agent.state()
    assert state is not None
    digest = hashlib.sha256()
    for key in sorted(state):
        digest.update(key.encode() + state[key].copy().tobytes())
    return digest.hexdigest()


def test_the_same_in_new_processes_whatever_their_threads_and_hash_seed() -> None:
    code = "import test_learners as t; print(*(t.fingerprint(c) for c in t.CASES))"
    found = set()
    for seed, threads in (("0", "1"), ("77", "2")):
        paths = [os.path.dirname(__file__), *sys.path]
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
            "PYTHONHASHSEED": seed,
            "OMP_NUM_THREADS": threads,
        }
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        found.add(done.stdout.split("\n")[-2])
    found.add(" ".join(fingerprint(c) for c in CASES))
    assert len(found) == 1


@each
def test_no_global_generator_is_touched(case: str) -> None:
    torch.manual_seed(5)
    np.random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].tobytes()
    fingerprint(case)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tobytes() == before[1]
    assert torch.get_num_threads() == 1


def test_torch_has_the_threads_that_the_specification_says() -> None:
    """One, whatever the machine has and an agent before it was given."""
    make("ppo", GOAL, threads=2)
    assert torch.get_num_threads() == 2
    make("ppo", GOAL)
    assert torch.get_num_threads() == 1
    with pytest.raises(SpecError, match="threads"):
        make("ppo", GOAL, threads=0)


@pytest.mark.parametrize("name", ["dqn", "ppo"])
def test_seeds_decide_the_first_weights(name: str) -> None:
    a, b, c = (make(name, GOAL, seed=s).state() for s in (1, 1, 2))
    assert same(a, b)
    assert not same(a, c)


# What strategies rely on.


@pytest.mark.parametrize("case", ["dqn", "ppo-discrete", "ppo-box"])
def test_a_loss_that_strategies_can_add_to(case: str) -> None:
    name, task, params = CASES[case]
    agent: Any = make(name, task, **params)
    drive = Drive(agent, task, 4)
    drive.enter()
    for _ in range(7):
        drive.step()
    batch = agent.sample(8) if name == "dqn" else agent.rollout_data()
    assert agent.predict(batch).requires_grad
    loss, measures = agent.loss(batch)
    assert loss.shape == () and all(not m.requires_grad for m in measures.values())
    names = agent.parameters()
    gradients = torch.autograd.grad(loss, list(names.values()), allow_unused=True)
    assert any(g is not None and g.abs().sum() > 0 for g in gradients)
    before = {k: p.detach().clone() for k, p in names.items()}
    plain = agent.loss
    agent.loss = lambda b: (plain(b)[0] + sum((p**2).sum() for p in names.values()), {})
    agent.descend(batch)
    assert all(not torch.equal(before[k], p) for k, p in agent.parameters().items())


# PPO's parts.


def test_gae_by_hand() -> None:
    rewards, values = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25, 0.125])
    after, cut = np.array([0.25, 0.0, 4.0]), np.array([False, True, False])
    got = gae(rewards, values, after, cut, 0.5, 0.5)
    second, third = 2 - 0.25, 3 + 0.5 * 4 - 0.125
    assert got == pytest.approx([1 + 0.5 * 0.25 - 0.5 + 0.25 * second, second, third])


def test_slots_that_come_and_go_have_trajectories_of_their_own() -> None:
    agent: Any = make("ppo", COUNT, slots=3, rollout=100)
    obs = np.zeros((3, 1))
    for slots in ([0, 1, 2], [0, 2], [2]):
        ctx = Context("learn", True, 0, None, np.array(slots), np.zeros(3, bool))
        n = len(slots)
        actions = agent.act(obs[:n], ctx)
        off = np.zeros(n, bool)
        agent.learn(Transitions(obs[:n], actions, 10.0 ** np.array(slots), off, off, obs[:n]), ctx)
    data = agent.rollout_data()
    with torch.no_grad():
        value = agent.net.critic(torch.zeros(1, 1)).item()
    gamma, carry = agent.settings.gamma, agent.settings.gamma * agent.settings.lam
    errors = [10.0**s + gamma * value - value for s in range(3)]
    expected = [errors[0] * (1 + carry), errors[0], errors[1]]
    expected += [errors[2] * (1 + carry + carry**2), errors[2] * (1 + carry), errors[2]]
    assert data["advantages"].tolist() == pytest.approx(expected, rel=1e-5)


def test_trajectories_are_cut_where_episodes_end_and_continued_where_they_were_truncated() -> None:
    agent: Any = make("ppo", COUNT, slots=1, rollout=100)
    ctx = Context("learn", True, 0, None, np.array([0]), np.zeros(1, bool))
    obs = np.zeros((1, 1))
    for ended, cut in ((False, False), (False, True), (True, False), (False, False)):
        flags = np.array([ended]), np.array([cut])
        agent.learn(Transitions(obs, agent.act(obs, ctx), np.ones(1), *flags, obs), ctx)
    with torch.no_grad():
        value = agent.net.critic(torch.zeros(1, 1)).item()
    going, over = 1 + agent.settings.gamma * value - value, 1 - value
    expected = [going + agent.settings.gamma * agent.settings.lam * going, going, over, going]
    assert agent.rollout_data()["advantages"].tolist() == pytest.approx(expected, rel=1e-5)


def test_what_was_drawn_is_learned_not_what_was_clipped() -> None:
    agent: Any = make("ppo", REACH, rollout=1000)
    with torch.no_grad():
        agent.policy.log_std.fill_(1.0)
    drive = Drive(agent, REACH, 4)
    for _ in range(20):
        drive.step()
    assert np.abs(np.concatenate(drive.actions)).max() == 1.0
    assert np.abs(agent.rows["sampled_actions"]).max() > 1.5


def test_a_task_end_learns_what_makes_a_minibatch_and_drops_the_rest() -> None:
    for steps, learned in ((4, True), (3, False)):
        agent: Any = make("ppo", GOAL, batch=16)
        drive = Drive(agent, GOAL, 4)
        drive.enter()
        for _ in range(steps):
            drive.step()
        before = agent.net.actor[1].weight.detach().clone()
        drive.leave()
        assert len(agent.rows) == 0
        assert torch.equal(before, agent.net.actor[1].weight) is not learned


def test_box_actions_stay_inside_and_the_drawn_number_is_kept() -> None:
    low, high = np.array([-2.0, 0.0, -np.inf]), np.array([2.0, 0.01, np.inf])
    space = spaces.Box(low.astype(np.float32), high.astype(np.float32))
    policy = policy_for(space)
    assert isinstance(policy, Gaussian)
    means = torch.zeros(500, 3)
    with torch.no_grad():
        policy.log_std.fill_(1.0)
        drawn = policy.sample(means, np.random.default_rng(0))
        inside = policy.to_space(drawn)
        log_prob, entropy = policy.log_prob(means, torch.tensor(drawn))
    assert all(space.contains(a) for a in inside)
    assert np.abs(drawn[:, 0]).max() > 1 and inside[:, 0].max() == 2.0
    reference = torch.distributions.Normal(means, policy.log_std.detach().exp())
    assert torch.allclose(log_prob, reference.log_prob(torch.tensor(drawn)).sum(1), atol=1e-4)
    assert torch.allclose(entropy, reference.entropy().sum(1), atol=1e-4)


def test_gumbel_draws_follow_the_logits() -> None:
    policy = policy_for(spaces.Discrete(3, start=5))
    logits = torch.log(torch.tensor([[0.1, 0.2, 0.7]])).repeat(20_000, 1)
    drawn = policy.sample(logits, np.random.default_rng(1))
    assert np.bincount(drawn) / len(drawn) == pytest.approx([0.1, 0.2, 0.7], abs=0.02)
    assert set(policy.to_space(drawn)) == {5, 6, 7}
    log_prob, entropy = policy.log_prob(logits[:3], torch.tensor([0, 1, 2]))
    assert log_prob.exp().tolist() == pytest.approx([0.1, 0.2, 0.7])
    assert entropy[0].item() == pytest.approx(-sum(p * np.log(p) for p in (0.1, 0.2, 0.7)))


# Networks.


@pytest.mark.parametrize(
    ("space", "shape"),
    [
        (spaces.Discrete(5, start=2), (5,)),
        (spaces.MultiDiscrete([2, 3]), (5,)),
        (spaces.MultiBinary(4), (4,)),
        (spaces.Box(-1, 1, (2, 3)), (6,)),
        (spaces.Box(0, SYMBOLS - 1, (7, 7, 3), np.uint8), (7 * 7 * 3 * SYMBOLS,)),
        (spaces.Box(0, SYMBOLS - 1, (20, 20, 3), np.uint8), (3, 20, 20)),
        (spaces.Box(0, 255, (7, 7, 3), np.uint8), (3, 7, 7)),
        (spaces.Box(0, 255, (16, 16, 1), np.uint8), (1, 16, 16)),
        (spaces.Box(0, 255, (1, 84, 84), np.uint8), (1, 84, 84)),
        (spaces.Box(0, 255, (84, 84), np.uint8), (1, 84, 84)),
        (spaces.Box(0, 255, (2, 40, 48, 3), np.uint8), (6, 40, 48)),
        (spaces.Box(0, 255, (4, 3, 40, 48), np.uint8), (12, 40, 48)),
        (spaces.Box(0, 255, (4, 128), np.uint8), (4 * 128,)),
        (spaces.Box(0, 255, (20, 20, 3), np.float32), (3, 20, 20)),
        (spaces.Box(0, 255, (40, 48, 3), np.uint8), (3, 40, 48)),
        (spaces.Box(0, 255, (4, 84, 84), np.uint8), (4, 84, 84)),
        (spaces.Box(0, 1, (9, 9, 2), np.float32), (2, 9, 9)),
    ],
)
def test_every_simple_space_has_an_encoder(space: Any, shape: tuple[int, ...]) -> None:
    space.seed(0)
    inputs = Inputs(space)
    batch = np.stack([space.sample() for _ in range(3)])
    x = inputs(batch)
    assert inputs.shape == shape and x.shape == (3, *shape) and x.dtype == torch.float32
    assert x.min() >= -1 and x.max() <= 1
    encoder, features = encoder_for(inputs, [16, 8])
    assert encoder(x).shape == (3, features) == (3, 8)


def test_inputs_say_what_the_observation_says() -> None:
    assert Inputs(spaces.Discrete(4, start=1))(np.array([3])).tolist() == [[0, 0, 1, 0]]
    several = Inputs(spaces.MultiDiscrete([2, 3]))(np.array([[1, 0], [0, 2]]))
    assert several.tolist() == [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]]
    grid = np.zeros((1, 2, 2, 1), np.uint8)
    grid[0, 1, 0, 0] = SYMBOLS - 1
    x = Inputs(spaces.Box(0, SYMBOLS - 1, (2, 2, 1), np.uint8))(grid).reshape(4, SYMBOLS)
    assert x.argmax(1).tolist() == [0, 0, SYMBOLS - 1, 0] and x.sum() == 4
    picture = np.full((1, 20, 20, 3), 51, np.uint8)
    picture[0, 4, 5, 2] = 255
    x = Inputs(spaces.Box(0, 255, (20, 20, 3), np.uint8))(picture)
    assert x[0, 2, 4, 5] == 1.0 and x[0, 0, 0, 0].item() == pytest.approx(0.2)
    frames = np.zeros((1, 2, 9, 8, 3), np.uint8)
    frames[0, 1, 4, 5, 2] = 255
    x = Inputs(spaces.Box(0, 255, (2, 9, 8, 3), np.uint8))(frames)
    assert x.shape == (1, 6, 9, 8) and x[0, 5, 4, 5] == 1.0 and x.sum() == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int32])
@pytest.mark.parametrize("side", [3, 8, 16, 17, 40])
def test_pictures_of_any_size_and_type_are_read_by_their_bounds(side: int, dtype: Any) -> None:
    space = spaces.Box(0, 255, (side, side, 3), dtype)
    x = Inputs(space)(np.full((1, *space.shape), 51, dtype))
    assert x.shape == (1, 3, side, side) and torch.allclose(x, torch.tensor(0.2))


def test_vectors_are_read_as_they_are_unless_they_are_bytes() -> None:
    numbers = np.array([[3.0, -4.0]])
    for space in (spaces.Box(-5, 5, (2,), np.float32), spaces.Box(-5, 5, (2,), np.int64)):
        assert Inputs(space)(numbers.astype(space.dtype)).tolist() == [[3, -4]]
    assert Inputs(spaces.Box(0, 255, (2,), np.uint8))(np.array([[0, 255]])).tolist() == [[0, 1]]
    most = np.finfo(np.float32).max  # No bound in truth.
    assert Inputs(spaces.Box(-most, most, (2, 2, 1), np.float32)).parts[""].scale == 1


def test_ring_overwrites_its_oldest_rows() -> None:
    ring = Ring(5, {"x": ((), np.int64)})
    for start, n in ((0, 3), (3, 3), (6, 1)):
        ring.add(n, x=np.arange(start, start + n))
    assert len(ring) == 5 and ring["x"].tolist() == [5, 6, 2, 3, 4]
    again = Ring(5, {"x": ((), np.int64)})
    again.load("r", ring.state("r"))
    again.add(1, x=[7])
    assert again["x"].tolist() == [5, 6, 7, 3, 4]


# Exploration.


def test_exploration_restarts_at_a_new_task_only() -> None:
    explore = EpsilonGreedy(0.1, 100, restart=True)

    def enter(task: str | None, learning: bool = True) -> bool:
        tasks = None if task is None else (task,)
        none = np.zeros(0, int)
        events = ("block", "task", "variant")
        return [
            explore.enter(Context("learn", learning, 0, tasks, none, none, e)) for e in events
        ].count(True) == 1

    assert enter("a")
    explore.learned = 50
    assert explore.epsilon == pytest.approx(0.55)
    assert not enter("a") and not enter("b", learning=False)
    assert explore.learned == 50
    assert enter("b") and explore.epsilon == 1.0
    explore.restart, explore.learned = False, 1000
    assert enter("a") and explore.epsilon == pytest.approx(0.1)


def choosing(learning: bool, starts: Sequence[bool]) -> Context:
    """A context with a row for each slot."""
    return Context("learn", learning, 0, None, np.arange(len(starts)), np.array(starts))


def test_ties_go_to_the_lowest_number() -> None:
    values = np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
    for learning, repeat in itertools.product((True, False), (1, 5)):
        explore = EpsilonGreedy(0.0, 0, restart=True, repeat=repeat)
        ctx = choosing(learning, [False, False])
        assert explore.choose(values, np.random.default_rng(0), ctx).tolist() == [1, 0]


def test_random_actions_are_repeated_and_are_the_part_epsilon_of_all() -> None:
    explore, rng = EpsilonGreedy(0.3, 0, restart=True, repeat=8), np.random.default_rng(0)
    going_on, values = choosing(True, [False] * 200), np.zeros((200, 1000))
    chosen = np.stack([explore.choose(values, rng, going_on) for _ in range(500)])
    # Action 0 is the greedy one, and among 1000 none comes twice in a row by chance.
    assert (chosen > 0).mean() == pytest.approx(0.3, abs=0.02)
    begins = (chosen[1:] > 0) & (chosen[1:] != chosen[:-1])
    assert (chosen[1:] > 0).sum() / begins.sum() == pytest.approx(8, abs=0.5)

    again = EpsilonGreedy(0.3, 0, restart=True, repeat=8)
    again.load(explore.state())
    after, same = (e.choose(values, np.random.default_rng(1), going_on) for e in (explore, again))
    assert after.tolist() == same.tolist()
    # What is being repeated ends with its episode.
    explore.final = 0.0
    assert explore.choose(values, rng, going_on).any()
    assert not explore.choose(values, rng, choosing(True, [True] * 200)).any()


def test_dqn_empties_its_replay_at_a_new_task_unless_told_not_to() -> None:
    for restart, kept in ((True, 0), (False, 40)):
        agent: Any = make("dqn", GOAL, restart=restart)
        drive = Drive(agent, GOAL, 4)
        drive.enter()
        for _ in range(10):
            drive.step()
        drive.leave()
        drive.enter()
        assert len(agent.replay) == 40
        Drive(agent, OTHER, 4).enter()
        assert len(agent.replay) == kept


# Refusals.


@pytest.mark.parametrize(
    ("make_agent", "says"),
    [
        (lambda: make("q", REACH), "Discrete"),
        (lambda: make("dqn", REACH), "Discrete"),
        (lambda: make("q", GOAL, gamma=2), "gamma"),
        (lambda: make("dqn", GOAL, batch=0), "batch"),
        (lambda: make("ppo", GOAL, epochs=0), "epochs"),
        (lambda: make("ppo", GOAL, lr=-1.0), "lr"),
        (lambda: make("ppo", GOAL, hidden=[]), "hidden"),
        (lambda: make("dqn", GOAL, hidden=64), "hidden"),
        (lambda: Inputs(spaces.Dict({"a": spaces.Text(2)})), "Dict or Tuple of these"),
    ],
)
def test_what_cannot_work_is_refused(make_agent: Callable[[], Any], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        make_agent()


@pytest.mark.parametrize("name", ["q", "dqn", "ppo"])
def test_labelled_data_is_refused(name: str) -> None:
    agent = make(name, GOAL)
    ctx = Context("learn", True, 0, None, np.zeros(0, int), np.zeros(0, bool))
    with pytest.raises(AgentFault, match=f"{name} learns from rewards"):
        agent.learn(Examples(np.zeros((2, 25)), np.zeros(2)), ctx)
