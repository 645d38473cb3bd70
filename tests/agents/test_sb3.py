"""Stable-Baselines3 as agents: bit-equal to its own learn(), resumable, and alone with its RNG."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")

from stable_baselines3.common.noise import (
    NormalActionNoise,
    OrnsteinUhlenbeckActionNoise,
)
from stable_baselines3.common.vec_env import DummyVecEnv

from perdure import registry
from perdure.agents.adapters._globals import GlobalRng
from perdure.agents.adapters.sb3 import SB3Agent
from perdure.errors import AgentFault, PerdureError, SpecError, UnknownName
from perdure.run.config import LifetimeConfig
from perdure.run.loop import LifetimeLoop
from perdure.seeds import seed_for
from perdure.store.log import LifetimeLog
from perdure.types import (
    Context,
    Curriculum,
    Examples,
    Exposure,
    Setup,
    Task,
    Transitions,
    evaluate,
    learn,
)

torch.set_num_threads(1)


class Odd(gymnasium.Env[Any, Any]):
    """Episodes of uneven length, half of them truncated, in any spaces."""

    def __init__(self, seen: str = "vector", done: str = "discrete") -> None:
        self.observation_space = {
            "vector": spaces.Box(-1, 1, (3,), np.float32),
            "image": spaces.Box(0, 255, (36, 40, 3), np.uint8),
            "small image": spaces.Box(0, 255, (7, 7, 3), np.uint8),
            "number": spaces.Discrete(5),
            "dict": spaces.Dict(
                {"b": spaces.Box(-1, 1, (2,), np.float64), "a": spaces.Discrete(3)}
            ),
        }[seen]
        self.action_space = {
            "discrete": spaces.Discrete(3),
            "many": spaces.MultiDiscrete([2, 3]),
            "bits": spaces.MultiBinary(2),
            "box": spaces.Box(-2.0, 2.0, (2,), np.float32),
            "uneven box": spaces.Box(-2.0, 0.7, (2,), np.float32),
        }[done]

    def _look(self) -> Any:
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(2, 9))
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        over, cut = self.left == 0, bool(self.np_random.integers(2))
        return self._look(), float(np.sum(action)), over and not cut, over and cut, {}


if "Odd-v0" not in gymnasium.registry:
    gymnasium.register("Odd-v0", Odd)


def task(name: str, **params: Any) -> Task:
    return Task("gym", name, params=params)


def steps(amount: int, where: Task) -> Curriculum:
    return Curriculum("one", (learn(Exposure(where, amount, "steps")),))


def config(curriculum: Curriculum, envs: int, checkpoint: int = 10**9) -> LifetimeConfig:
    suites = {t.suite: registry.suite(t.suite) for t in curriculum.tasks}
    first = curriculum.tasks[0]
    seen, done = suites[first.suite].spaces(first)
    return LifetimeConfig(curriculum, suites, seen, done, 5, envs, checkpoint=checkpoint)


def live(
    path: Path,
    curriculum: Curriculum,
    make: Callable[[Setup], SB3Agent],
    envs: int = 1,
    checkpoint: int = 10**9,
) -> tuple[SB3Agent, list[Any]]:
    """A lifetime in the real loop: the agent at its end, and the rows."""
    job = config(curriculum, envs, checkpoint)
    agent = make(job.setup())
    with LifetimeLog(path, "sb3", 0) as log:
        LifetimeLoop(job, agent, log).run()
        return agent, log.committed_rows()


class SeededVecEnv(DummyVecEnv):
    """Stable-Baselines3's own vector environment, whose k-th reset takes the k-th seed."""

    def __init__(self, make: Callable[[], Any], n: int, seeds: list[int]) -> None:
        super().__init__([make] * n)
        self.seeds = list(seeds)
        for env in self.envs:
            env.reset = self._seeded(env.reset)

    def _seeded(self, reset: Any) -> Any:
        def call(*, seed: int | None = None, options: Any = None) -> Any:
            # An episode that begins with the very last step has no row and no matter.
            return reset(seed=self.seeds.pop(0) if self.seeds else 0)

        return call


def seeds_of(rows: list[Any], block: int = 0) -> list[int]:
    mine = {r.episode: r.seed for r in rows if r.block == block}
    return [mine[i] for i in range(len(mine))]


def own(agent: SB3Agent, where: Task, envs: int, seeds: list[int], algo: str, **params: Any) -> Any:
    """The same model built by Stable-Baselines3 alone."""
    venv = SeededVecEnv(lambda: registry.suite("gym").env(where), envs, seeds)
    seed = seed_for(agent.setup.seed, "init")
    return getattr(sb3, algo)(env=venv, seed=seed, device="cpu", **copy.deepcopy(params))


def assert_same_weights(ours: Any, theirs: Any) -> None:
    a, b = ours.policy.state_dict(), theirs.policy.state_dict()
    assert ours.num_timesteps == theirs.num_timesteps
    assert ours._n_updates == theirs._n_updates > 0
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


CARTPOLE, PENDULUM = task("CartPole-v1"), task("Pendulum-v1")
FAST = {"learning_starts": 40, "batch_size": 16, "policy_kwargs": {"net_arch": [16, 16]}}


@pytest.mark.parametrize(
    ("algo", "where", "envs", "amount", "params"),
    [
        ("PPO", CARTPOLE, 1, 512, {"n_steps": 128}),
        ("PPO", CARTPOLE, 4, 512, {"n_steps": 64}),
        (
            "PPO",
            PENDULUM,
            2,
            512,
            {"n_steps": 128, "n_epochs": 3, "use_sde": True, "sde_sample_freq": 4},
        ),
        ("A2C", task("Odd-v0"), 3, 300, {}),
        ("PPO", task("Odd-v0", seen="dict"), 2, 128, {"n_steps": 32, "batch_size": 16}),
        ("PPO", task("Odd-v0", seen="number", done="many"), 2, 128, {"n_steps": 32}),
        ("PPO", task("Odd-v0", seen="small image", done="bits"), 2, 128, {"n_steps": 32}),
        ("A2C", task("Odd-v0", seen="image", done="box"), 2, 20, {}),
        ("DQN", CARTPOLE, 1, 400, {**FAST, "target_update_interval": 50}),
        ("DQN", task("Odd-v0"), 3, 240, {**FAST, "n_steps": 3, "gradient_steps": -1}),
        ("DQN", task("Odd-v0", seen="dict"), 2, 160, FAST),
        ("SAC", PENDULUM, 2, 240, FAST),
        ("SAC", PENDULUM, 1, 240, {**FAST, "use_sde": True, "sde_sample_freq": 3, "train_freq": 8}),
        ("TD3", task("Odd-v0", done="box"), 2, 160, {**FAST, "action_noise": 0.2}),
        ("DDPG", PENDULUM, 1, 400, {**FAST, "action_noise": 0.2, "train_freq": (1, "episode")}),
    ],
)
def test_ends_bit_equal_to_learn(
    tmp_path: Path, algo: str, where: Task, envs: int, amount: int, params: dict[str, Any]
) -> None:
    total = {"total_timesteps": amount} if algo == "DQN" else {}
    agent, rows = live(
        tmp_path, steps(amount, where), lambda w: SB3Agent(w, algo, **total, **params), envs
    )
    if "action_noise" in params:
        dim = agent.setup.action_space.shape
        sigma = np.full(dim, params["action_noise"])
        params = {**params, "action_noise": NormalActionNoise(np.zeros(dim), sigma)}
    policy = {"dict": "MultiInputPolicy", "image": "CnnPolicy"}.get(
        where.params.get("seen", ""), "MlpPolicy"
    )
    theirs = own(agent, where, envs, seeds_of(rows), algo, policy=policy, **params)
    theirs.learn(amount)
    assert_same_weights(agent.model, theirs)


def test_lifelong_with_evaluations_and_a_schedule_is_learn_twice(tmp_path: Path) -> None:
    """Evaluations leave no trace, a block begins fresh episodes, schedules run over the life."""
    probe = evaluate(Exposure(CARTPOLE, 2))
    block = learn(Exposure(CARTPOLE, 256, "steps"))
    curriculum = Curriculum("two", (probe, block, probe, block, probe))
    params: dict[str, Any] = {"n_steps": 64, "batch_size": 32}
    agent, rows = live(
        tmp_path,
        curriculum,
        lambda w: SB3Agent(w, "ppo", learning_rate="lin_0.01", total_timesteps=512, **params),
        envs=2,
    )
    theirs = own(agent, CARTPOLE, 2, seeds_of(rows, 1), "PPO", policy="MlpPolicy", **params)
    # Each learn() would count to its own total only.
    theirs.lr_schedule = lambda left: 0.01 * (1.0 - theirs.num_timesteps / 512)
    theirs.learn(256)
    venv = SeededVecEnv(lambda: registry.suite("gym").env(CARTPOLE), 2, seeds_of(rows, 3))
    theirs.set_env(venv)
    theirs.learn(256, reset_num_timesteps=False)
    assert_same_weights(agent.model, theirs)
    losses = [r.loss for r in rows if r.loss is not None]
    assert losses and all(r.learning for r in rows if r.loss is not None)


# Resuming.


class Stop(Exception):
    """The machine was switched off."""


class Mortal(SB3Agent):
    """Dies in its k-th step of learning."""

    lives = 0

    def learn(self, batch: Any, ctx: Context) -> Any:
        self.lives -= 1
        if self.lives == 0:
            raise Stop
        return super().learn(batch, ctx)


@pytest.mark.parametrize(
    ("where", "envs", "params"),
    [
        (CARTPOLE, 2, {"algo": "PPO", "n_steps": 48, "batch_size": 32, "n_epochs": 2}),
        (
            task("Odd-v0", done="box"),
            3,
            {"algo": "PPO", "n_steps": 20, "batch_size": 20, "n_epochs": 2, "use_sde": True},
        ),
        (task("Odd-v0", seen="dict"), 2, {"algo": "A2C"}),
        (task("Odd-v0"), 3, {"algo": "DQN", **FAST, "n_steps": 2, "target_update_interval": 30}),
        (task("Odd-v0", done="box"), 2, {"algo": "SAC", **FAST, "buffer_size": 100}),
        (
            task("Odd-v0"),
            1,
            {
                "algo": "DQN",
                **FAST,
                "buffer_size": 50,
                "optimize_memory_usage": True,
                "replay_buffer_kwargs": {"handle_timeout_termination": False},
            },
        ),
        (
            task("Odd-v0", done="box"),
            2,
            {
                "algo": "TD3",
                **FAST,
                "action_noise": OrnsteinUhlenbeckActionNoise(np.zeros(2), np.full(2, 0.3)),
            },
        ),
    ],
    ids=["ppo", "ppo-sde", "a2c", "dqn", "sac", "dqn-lean", "td3"],
)
def test_resumes_bit_exactly_anywhere(
    tmp_path: Path, where: Task, envs: int, params: dict[str, Any]
) -> None:
    probe = evaluate(Exposure(where, 2))
    curriculum = Curriculum(
        "resume",
        (learn(Exposure(where, 130, "steps")), probe, learn(Exposure(where, 7)), probe),
    )
    whole, rows = live(tmp_path / "whole", curriculum, lambda w: SB3Agent(w, **params), envs, 23)
    for death in (25, 47):
        job, path = config(curriculum, envs, 23), tmp_path / str(death)
        agent = Mortal(job.setup(), **params)
        agent.lives = death
        with LifetimeLog(path, "sb3", 0) as log, pytest.raises(PerdureError, match="Stop"):
            LifetimeLoop(job, agent, log).run()
        with LifetimeLog(path, "sb3", 0) as log:
            assert log.position is not None, "there is something to go on from"
        again, same = live(path, curriculum, lambda w: SB3Agent(w, **params), envs, 23)
        assert same == rows
        state = again.state()
        assert state.keys() == whole.state().keys()
        for name, array in whole.state().items():
            assert array.dtype.kind in "biuf"
            np.testing.assert_array_equal(array, state[name], err_msg=name)


# Randomness.


def everything_global() -> tuple[Any, ...]:
    _, key, *rest = np.random.get_state()  # type: ignore[misc]
    return random.getstate(), key.tolist(), rest, torch.get_rng_state().tolist()


def test_global_generators_are_untouched_and_agents_do_not_disturb_each_other() -> None:
    random.seed(1)
    np.random.seed(1)
    np.random.normal()  # Leaves a spare draw behind, which is part of the state.
    torch.manual_seed(1)
    before = everything_global()
    setup = config(steps(1, PENDULUM), 2).setup()

    def walk(agents: list[SB3Agent], disturb: bool) -> list[dict[str, Any]]:
        ctx = Context("learn", True, 0, None, np.arange(2), np.ones(2, bool))
        rng = np.random.default_rng(0)
        seen = rng.uniform(-1, 1, (41, 2, 3)).astype(np.float32)
        no = np.zeros(2, bool)
        for t in range(40):
            for agent in agents:
                actions = agent.act(seen[t], ctx)
                batch = Transitions(seen[t], actions, np.ones(2), no, no, seen[t + 1])
                if disturb:
                    random.random()
                    np.random.normal()
                    torch.rand(1)
                agent.learn(batch, ctx)
        return [dict(a.state()) for a in agents]

    def make() -> SB3Agent:
        return SB3Agent(setup, "SAC", learning_starts=10, batch_size=8, action_noise=0.1)

    alone = walk([make()], disturb=False)[0]
    assert everything_global() == before
    for state in walk([make(), make()], disturb=True):
        assert all(np.array_equal(state[k], alone[k]) for k in alone)


def test_a_guest_keeps_spare_draws_and_passing_seeds_leave_no_trace() -> None:
    def draw() -> list[float]:
        return [random.gauss(0, 1), np.random.normal(), float(torch.randn(1)), random.random()]

    one, two = GlobalRng(3), GlobalRng(3)
    with one.swapped_in():
        expected = draw() + draw() + draw()
    with two.swapped_in():
        got = draw()
    with two.swapped_in(passing=9):
        first = draw()
    with two.swapped_in(passing=9):
        assert draw() == first
    with two.swapped_in():
        got += draw()
    third = GlobalRng(0)
    third.load(two.state())
    with third.swapped_in():
        assert got + draw() == expected
    with pytest.raises(ValueError, match="inside"), two.swapped_in():
        raise ValueError("inside")


def test_a_fault_inside_puts_the_global_generators_back() -> None:
    before = everything_global()
    with pytest.raises(ZeroDivisionError), GlobalRng(1).swapped_in():
        np.random.seed(5)
        torch.manual_seed(5)
        raise ZeroDivisionError
    assert everything_global() == before


def test_evaluation_changes_nothing_and_is_deterministic() -> None:
    setup = config(steps(1, CARTPOLE), 2).setup()
    for algo in ("PPO", "DQN"):
        agent = SB3Agent(setup, algo)
        before = agent.state()
        ctx = Context("eval", False, 0, None, np.arange(2), np.ones(2, bool))
        obs = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
        assert len({tuple(agent.act(obs, ctx)) for _ in range(8)}) == 1
        after = agent.state()
        assert all(np.array_equal(before[k], after[k]) for k in before)


def test_of_a_replay_only_what_changed_is_saved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from perdure.agents.adapters.sb3 import state as module

    monkeypatch.setattr(module, "STRETCH", 64)
    agent = SB3Agent(config(steps(1, CARTPOLE), 2).setup(), "DQN", buffer_size=80)
    buffer: Any = agent.model.replay_buffer
    buffer.pos, buffer.observations[:30] = 30, np.arange(4)
    kept = {
        k: v
        for k, v in agent.state().items()
        if k.startswith("host/replay/") and hasattr(v, "chunks")
    }
    column = "host/replay/observations"
    rows = np.asarray(kept[column])
    assert len(kept[column].chunks) > 10
    again = agent.state()
    assert all(again[k].contents == kept[k].contents for k in kept), "nothing changed"
    buffer.observations[7] = -1
    after = agent.state()[column].contents
    changed = [a is not b for a, b in zip(kept[column].contents, after, strict=True)]
    assert sum(changed) == 1, "one stretch did"
    assert np.array_equal(kept[column], rows), "what was given does not change"
    agent.load(again)
    assert np.array_equal(agent.state()[column], rows)


# Slots that drop out, trajectories that are cut.


def advantages(rewards: Any, values: Any, last: float, gamma: float, lam: float) -> list[float]:
    """Generalised advantages of one trajectory, from its definition."""
    v = [*values, last]
    deltas = [r + gamma * v[t + 1] - v[t] for t, r in enumerate(rewards)]
    return [
        sum((gamma * lam) ** k * d for k, d in enumerate(deltas[t:])) for t in range(len(deltas))
    ]


def test_on_policy_learns_from_every_row_whatever_slots_are_active() -> None:
    """Two of three slots, then one: one column, each trajectory's advantages by itself."""
    setup = Setup(spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(2), 3, 0)
    agent = SB3Agent(setup, "PPO", n_steps=4, batch_size=4, n_epochs=1)
    model: Any = agent.model
    rng = np.random.default_rng(0)
    trained: list[dict[str, Any]] = []
    train = model.train

    def spy() -> None:
        b = model.rollout_buffer
        names = ("observations", "rewards", "values", "advantages", "episode_starts")
        trained.append({k: getattr(b, k).copy() for k in names})
        train()

    model.train = spy
    value = {}

    def step(slots: list[int], episode_start: list[bool], ends: list[str], look: Any) -> Any:
        marks = np.zeros(3, bool)
        marks[slots] = episode_start
        ctx = Context("learn", True, 0, None, np.array(slots), marks)
        obs, nxt = look, rng.uniform(-1, 1, (len(slots), 2)).astype(np.float32)
        with torch.no_grad():
            value.update(
                {tuple(o): float(model.policy.predict_values(torch.tensor(o[None]))) for o in nxt}
            )
        actions = agent.act(obs, ctx)
        term = np.array([e == "terminated" for e in ends])
        cut = np.array([e == "truncated" for e in ends])
        rewards = np.arange(1.0, len(slots) + 1)
        agent.learn(Transitions(obs, actions, rewards, term, cut, nxt), ctx)
        return nxt

    def fresh_obs(n: int) -> Any:
        return rng.uniform(-1, 1, (n, 2)).astype(np.float32)

    a = [fresh_obs(2)]
    a.append(step([0, 2], [True, True], ["", ""], a[-1]))
    a.append(step([0, 2], [False, False], ["truncated", ""], a[-1]))
    # Slot 0 has used up its budget; slot 2 goes on alone, and its exposure ends in mid-episode.
    b = [a[-1][1:]]
    b.append(step([2], [False], [""], b[-1]))
    assert agent.host.open.tolist() == [False, False, True]  # type: ignore[attr-defined]
    agent.leave(Context("learn", True, 0, None, np.zeros(0, int), np.zeros(0, bool), "variant"))
    assert len(trained) == 1, "five rows are at least a minibatch"
    got = trained[0]
    assert got["rewards"].shape == (5, 1)
    g, lam = model.gamma, model.gae_lambda
    v = got["values"][:, 0]
    expected = advantages([1, 1], v[:2], value[tuple(a[2][0])], g, lam)
    expected += advantages([2, 2, 1], v[2:], value[tuple(b[1][0])], g, lam)
    np.testing.assert_allclose(got["advantages"][:, 0], expected, rtol=1e-5)
    assert got["episode_starts"][:, 0].tolist() == [1, 0, 1, 0, 0]
    np.testing.assert_array_equal(got["observations"][0, 0], a[0][0])
    np.testing.assert_array_equal(got["observations"][4, 0], b[0][0])

    # The next exposure begins fresh; three rows are too few, so they wait for the next one.
    c = [fresh_obs(3)]
    c.append(step([0, 1, 2], [True] * 3, ["", "terminated", ""], c[-1]))
    agent.leave(Context("learn", True, 0, None, np.zeros(0, int), np.zeros(0, bool), "variant"))
    assert len(trained) == 1
    d = [fresh_obs(3)]
    for t in range(3):
        d.append(step([0, 1, 2], [t == 0] * 3, [""] * 3, d[-1]))
    assert len(trained) == 2, "twelve rows are a whole rollout, in its usual form"
    got = trained[1]
    assert got["rewards"].shape == (4, 3)
    assert got["episode_starts"].tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
    bonus = [g * value[tuple(c[1][0])], 0.0, g * value[tuple(c[1][2])]]
    np.testing.assert_allclose(got["rewards"][0], np.arange(1.0, 4) + bonus, rtol=1e-5)


def test_off_policy_keeps_every_transition_and_n_steps_never_cross_a_cut() -> None:
    setup = Setup(spaces.Box(-1, 99, (1,), np.float32), spaces.Discrete(2), 2, 0)
    agent = SB3Agent(setup, "DQN", n_steps=5, gamma=0.5, learning_starts=1000, buffer_size=100)
    model: Any = agent.model

    def step(slots: list[int], at: float, end: bool = False) -> None:
        n = len(slots)
        ctx = Context("learn", True, 0, None, np.array(slots), np.zeros(2, bool))
        obs = np.full((n, 1), at, np.float32)
        flags = np.full(n, end)
        batch = Transitions(obs, agent.act(obs, ctx), np.ones(n), flags, flags & False, obs + 1)
        agent.learn(batch, ctx)

    over = Context("learn", True, 0, None, np.zeros(0, int), np.zeros(0, bool), "variant")
    step([0, 1], 0)
    step([0, 1], 1)
    agent.leave(over)  # Cut in mid-episode.
    step([0, 1], 10)
    for t in (11, 12, 13):
        step([1], t, end=t == 13)  # Slot 0 is idle: one transition still waits at the end.
    assert model.replay_buffer.size() == 4
    assert len(agent.host.waiting) == 1  # type: ignore[attr-defined]
    assert model.num_timesteps == 9
    batch = model.replay_buffer._get_samples(np.arange(4).repeat(20))
    seen = {
        (float(o), float(r), float(n), float(d))
        for o, r, n, d in zip(
            batch.observations, batch.rewards, batch.next_observations, batch.dones, strict=True
        )
    }
    # From 0 two steps to the cut at 2; all others one step, since what follows is elsewhere.
    assert seen == {
        (0.0, 1.5, 2.0, 0.0),
        (1.0, 1.0, 2.0, 0.0),
        (10.0, 1.0, 11.0, 0.0),
        (11.0, 1.0, 12.0, 0.0),
        (12.0, 1.0, 13.0, 0.0),
    }
    step([0], 20)
    step([0, 1], 30)
    assert model.replay_buffer.size() == 6
    assert model.replay_buffer.dones[4].tolist() == [1, 1]
    assert model.replay_buffer.timeouts[4].tolist() == [0, 1], "one ended, the other was cut off"
    twin = SB3Agent(setup, "DQN", n_steps=5, gamma=0.5, learning_starts=1000, buffer_size=100)
    twin.load(agent.state())
    assert all(np.array_equal(v, twin.state()[k]) for k, v in agent.state().items())


@pytest.mark.parametrize("algo", ["PPO", "SAC"])
def test_side_by_side_blocks_wider_than_others(tmp_path: Path, algo: str) -> None:
    """A curriculum's slots are those of its widest block: elsewhere some are never active."""
    # In uneven bounds Stable-Baselines3 oversteps by the last bit, which the loop would refuse.
    where = task("Odd-v0", done="uneven box")
    wide = learn(Exposure(where, 60, "steps"), Exposure(where, 5), parallel=True)
    curriculum = Curriculum("wide", (wide, learn(Exposure(where, 60, "steps"))))
    params = {"n_steps": 16, "batch_size": 8} if algo == "PPO" else {**FAST, "action_noise": 0.1}
    agent, rows = live(tmp_path, curriculum, lambda w: SB3Agent(w, algo, **params), envs=2)
    assert agent.setup.slots == 4
    assert agent.model.num_timesteps == sum(r.steps for r in rows)
    assert agent.model._n_updates > 0


# Construction.


BOX, TWO = spaces.Box(-1, 1, (3,), np.float32), spaces.Discrete(2)


@pytest.mark.parametrize(
    ("seen", "done", "params", "words"),
    [
        (spaces.Tuple((BOX, BOX)), TWO, {}, "cannot take the observation space Tuple.*wrapper"),
        (spaces.Dict({"a": spaces.Dict({"b": BOX})}), TWO, {}, "under 'a'.*wrapper"),
        (spaces.Text(5), TWO, {}, "Text.*wrapper"),
        (BOX, spaces.Tuple((TWO, TWO)), {}, "actions in Tuple.*wrapper"),
        (BOX, spaces.Discrete(2, start=1), {}, "must start at 0"),
        (BOX, BOX, {"algo": "DQN"}, "DQN with MlpPolicy cannot be built.*only supports"),
        (BOX, TWO, {"algo": "SAC"}, "SAC with MlpPolicy cannot be built.*only supports"),
        (BOX, spaces.Box(-np.inf, np.inf, (1,)), {}, "finite lower and upper bound"),
        (BOX, TWO, {"policy": "CnnPolicy"}, "PPO with CnnPolicy cannot be built"),
        (BOX, TWO, {"policy": "Nope"}, "Nope"),
        (BOX, TWO, {"seed": 3}, "the lifetime decides"),
        (BOX, TWO, {"learning_rate": "log_3"}, "number or lin_NUMBER"),
        (BOX, TWO, {"total_timesteps": 0}, "at least 1"),
        (BOX, TWO, {"algo": "DQN", "train_freq": [1, "episode"]}, "one environment only"),
        (BOX, TWO, {"algo": "DQN", "optimize_memory_usage": True}, "leave it out"),
        (
            BOX,
            TWO,
            {"algo": "DQN", "replay_buffer_class": "stable_baselines3:HerReplayBuffer"},
            "rewards of other goals",
        ),
        (BOX, TWO, {"algo": "no_such_module:PPO"}, "cannot be imported"),
        (BOX, TWO, {"algo": "stable_baselines3.common.base_class:BaseAlgorithm"}, "not built on"),
    ],
)
def test_what_cannot_work_is_refused_with_the_way_out(
    seen: Any, done: Any, params: dict[str, Any], words: str
) -> None:
    with pytest.raises(SpecError, match=words):
        SB3Agent(Setup(seen, done, 2, 0), **params)


def test_unknown_names_get_a_suggestion() -> None:
    setup = Setup(BOX, TWO, 2, 0)
    with pytest.raises(UnknownName, match="did you mean 'PPO'"):
        SB3Agent(setup, "PPOO")
    with pytest.raises(UnknownName, match="did you mean 'learning_rate'"):
        SB3Agent(setup, "PPO", learning_rat=1.0)
    with pytest.raises(UnknownName, match="did you mean 'DQN'"):
        SB3Agent(setup, "stable_baselines3:DQNN")


def test_schedules_stay_put_unless_told_where_they_end() -> None:
    setup = Setup(BOX, TWO, 1, 0)
    assert SB3Agent(setup, "PPO").host.total is None
    assert SB3Agent(setup, "DQN").host.total == 100_000, "or it would explore for ever"
    assert SB3Agent(setup, "DQN", total_timesteps=50).host.total == 50


def test_data_is_refused() -> None:
    agent = SB3Agent(Setup(BOX, TWO, 1, 0))
    ctx = Context("learn", True, 0, None, np.arange(1), np.ones(1, bool))
    with pytest.raises(AgentFault, match="episodes or steps"):
        agent.learn(Examples(np.zeros((1, 3)), np.zeros(1)), ctx)
    many = Context("learn", True, 0, None, np.arange(4), np.ones(4, bool))
    with pytest.raises(AgentFault, match="episodes or steps"):
        agent.act(np.zeros((4, 3)), many)


def test_algorithms_of_others(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from stable_baselines3 import PPO\n"
        "class Mine(PPO):\n"
        "    pass\n"
        "class Stubborn(PPO):\n"
        "    def collect_rollouts(self, *args, **kwargs):\n"
        "        return super().collect_rollouts(*args, **kwargs)\n"
    )
    setup = Setup(BOX, TWO, 2, 0)
    params: dict[str, Any] = {"policy_kwargs": {"activation_fn": "torch.nn:ReLU"}}
    agent = SB3Agent(setup, f"{file}:Mine", **params)
    assert type(agent.model).__name__ == "Mine"
    assert "ReLU" in str(agent.model.policy)
    with pytest.raises(SpecError, match="collect_rollouts"):
        SB3Agent(setup, f"{file}:Stubborn")


def test_it_learns(tmp_path: Path) -> None:
    """The bandit's optimum is 1 and chance is 1/arms."""
    bandit = Task("toy", "bandit")
    curriculum = Curriculum(
        "bandit", (learn(Exposure(bandit, 2048, "steps")), evaluate(Exposure(bandit, 40)))
    )
    _, rows = live(
        tmp_path,
        curriculum,
        lambda w: SB3Agent(w, "PPO", n_steps=32, batch_size=64, learning_rate=5e-3, n_epochs=4),
        envs=4,
    )
    assert np.mean([r.ret for r in rows if not r.learning]) > 0.9


def test_it_is_found_by_name() -> None:
    assert registry.load("agents", "sb3") is SB3Agent
    assert "Stable-Baselines3" in registry.entries("agents")["sb3"].about
