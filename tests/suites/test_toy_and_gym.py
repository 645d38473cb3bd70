import gymnasium
import numpy as np
import pytest

from perdure import registry
from perdure.specs import Spec
from perdure.suite import Episode
from perdure.suites._cartpole import CartPoles, first_doubles
from perdure.types import Task


def play(env, policy, seed):
    obs, _ = env.reset(seed=seed)
    total = 0.0
    while True:
        obs, reward, terminated, truncated, info = env.step(policy(env, obs))
        total += reward
        if terminated or truncated:
            return total, info


def straight(env, obs):
    x, y = env.x, env.y
    if x != env.goal[0]:
        return 1 if x < env.goal[0] else 3
    return 2 if y < env.goal[1] else 0


@pytest.mark.parametrize("corner", ["ne", "nw", "se", "sw"])
def test_the_grids_optimum_is_the_shortest_path(corner):
    env = registry.suite("toy").env(registry.task(f"toy/goal-{corner}"))
    for seed in range(30):
        env.reset(seed=seed)
        best = 1 - 0.02 * (env.distance() - 1)
        total, info = play(env, straight, seed)
        assert total == pytest.approx(best) and info["success"]


def test_other_optima():
    suite = registry.suite("toy")
    bandit = suite.env(Task("toy", "bandit", params={"shift": 1}))
    assert play(bandit, lambda e, o: (int(np.argmax(o)) + 1) % 4, 0) == (1.0, {"success": True})
    reach = suite.env(Task("toy", "reach"))
    total, info = play(reach, lambda e, o: np.array([0.5 * o[0]], np.float32), 0)
    assert total == pytest.approx(0.0, abs=1e-5) and info["success"]


def test_first_doubles_are_numpys():
    seeds = [0, 1, 2**32 - 1, *np.random.default_rng(0).integers(2**32, size=300).tolist()]
    for s, found in zip(seeds, first_doubles(seeds)):
        assert found == np.random.Generator(np.random.PCG64(s)).random(4).tolist()


def test_cartpole_is_bit_equal_to_gymnasiums():
    """Several slots of ours against as many environments of theirs: falls and time limits."""
    ours, theirs = CartPoles(3), [gymnasium.make("CartPole-v1") for _ in range(3)]
    rng = np.random.default_rng(1)
    seed, limits, falls = 0, 0, 0
    obs = []
    for k, env in enumerate(theirs):
        obs.append(env.reset(seed=seed)[0])
        assert np.array_equal(ours.reset(k, Episode.alone(seed)), obs[k])
        seed += 1
    for t in range(4000):
        # One slot balances, the others play at random; sometimes one sits out.
        actions = [int(obs[0][2] + 0.3 * obs[0][3] > 0), *rng.integers(2, size=2)]
        slots = [0, 1, 2] if t % 7 else [0, 2]
        seen, rewards, ends, cuts, infos = ours.step(slots, [np.int64(actions[s]) for s in slots])
        assert infos == {} and seen.dtype == np.float32
        for k, s in enumerate(slots):
            expected = theirs[s].step(np.int64(actions[s]))
            assert np.array_equal(expected[0], seen[k])
            assert expected[1:4] == (rewards[k], ends[k], cuts[k])
            obs[s] = expected[0]
            falls, limits = falls + ends[k], limits + cuts[k]
            if ends[k] or cuts[k]:
                obs[s] = theirs[s].reset(seed=seed)[0]
                assert np.array_equal(ours.reset(s, Episode.alone(seed)), obs[s])
                seed += 1
    assert falls > 50 and limits >= 5


def test_the_gym_suite_uses_it_only_for_the_plain_task():
    suite = registry.suite("gym")
    assert isinstance(suite.batched_env(Task("gym", "CartPole-v1"), 2), CartPoles)
    other = Task("gym", "CartPole-v1", params={"max_episode_steps": 50})
    assert suite.batched_env(other, 2) is None
    env = suite.env(other)
    assert env.spec.max_episode_steps == 50


def test_rows_are_the_same_with_and_without_batched_stepping(tmp_path):
    from dataclasses import replace

    from kit import setting_of
    from perdure.agents.compose import make_agent
    from perdure.run.loop import LifetimeLoop
    from perdure.store.log import LifetimeLog
    from perdure.testing.agents import read_rows
    from perdure.types import Curriculum, Exposure, evaluate, learn

    task = Task("gym", "CartPole-v1")
    blocks = (learn(Exposure(task, 300, "steps")), evaluate(Exposure(task, 7)))
    batched = setting_of(Curriculum("x", blocks), envs=3)
    suite = registry.suite("gym")

    class Plain(type(suite)):
        def batched_env(self, task, count):
            return None

    found = []
    for name, config in {"a": batched, "b": replace(batched, suites={"gym": Plain()})}.items():
        agent = make_agent(Spec("random"), config.setup())
        with LifetimeLog(tmp_path / name, "x", 0) as log:
            LifetimeLoop(config, agent, log).run()
        found.append(read_rows(tmp_path / name))
    assert found[0] == found[1]


# Families to adapt to.


def played(name, policy, trials=300, **params):
    """Mean return of an episode of each of many trials by a policy of (environment, observation)."""
    env = registry.suite_of(Task("toy", name)).env(Task("toy", name, params=params))
    returns = []
    for k in range(trials):
        obs, _ = env.reset(seed=k, options={"trial_seed": 1000 + k})
        total, over = 0.0, False
        while not over:
            obs, reward, ended, cut, _ = env.step(policy(env, obs))
            total, over = total + reward, ended or cut
        returns.append(total)
    return float(np.mean(returns))


KNOWING = {
    # Its steps have a greatest length, not a greatest coordinate.
    "navigation": lambda env, obs: (
        (env.goal - env.at) / max(np.linalg.norm(env.goal - env.at), 0.2)
    ),
    "bernoulli": lambda env, obs: int(env.chances.argmax()),
    "mass": lambda env, obs: np.clip(-obs / env.gain, -1, 1),
}
UNKNOWING = {
    "navigation": lambda env, obs: np.zeros(2, np.float32),
    "bernoulli": lambda env, obs: 0,
    "mass": lambda env, obs: np.zeros(1, np.float32),
}


@pytest.mark.parametrize("name", KNOWING)
def test_families_say_what_can_be_had(name):
    env = registry.suite_of(Task("toy", name)).env(Task("toy", name))
    spread = {"navigation": 1e-6, "bernoulli": 0.35, "mass": 0.03}[name]
    assert played(name, KNOWING[name]) == pytest.approx(env.adapted, abs=spread)
    spread = {"navigation": 1e-6, "bernoulli": 0.35, "mass": 0.35}[name]
    assert played(name, UNKNOWING[name]) == pytest.approx(env.unadapted, abs=spread)


@pytest.mark.parametrize("name", KNOWING)
def test_what_a_family_hides_is_the_trials_or_the_instances(name):
    drawn = {"navigation": "goal", "bernoulli": "chances", "mass": "gain"}[name]

    def hidden(seed, trial, **params):
        env = registry.suite_of(Task("toy", name)).env(Task("toy", name, params=params))
        env.reset(seed=seed, options={"trial_seed": trial})
        return np.array(getattr(env, drawn)).tolist()

    assert hidden(1, 5) == hidden(2, 5) != hidden(1, 6)
    assert hidden(1, 5, instance=3) == hidden(2, 6, instance=3) != hidden(1, 5, instance=4)
    with pytest.raises(ValueError, match="instance must be a whole number"):
        hidden(1, 5, instance=-1)


def test_what_exploring_a_bandit_is_worth():
    """After one pull of an arm: the mean of the greatest of 2/3 (or 1/3) and 1/2. After very many, the
    greatest of the chances."""
    from perdure.suites.toy.families import best_after

    assert best_after(0) == 0.5
    assert best_after(1, 2) == pytest.approx(0.5 * 2 / 3 + 0.5 * 1 / 2)
    assert best_after(2, 2) < best_after(8, 2) < best_after(20, 2) < 2 / 3
