"""The linear baseline, the time within episodes, and rollouts of several tasks."""

import numpy as np
import pytest
from gymnasium import spaces

import perdure
from perdure.errors import SpecError
from perdure.types import Context, Setup, Transitions

torch = pytest.importorskip("torch")

from perdure.agents.learners.ppo import PPOAgent
from perdure.agents.networks.rollout_buffer import (
    advantages_and_returns,
    features,
    gae,
    linear_values,
    ridge,
)
from perdure.testing import check_agent

BOX = spaces.Box(-np.inf, np.inf, (1,), np.float32)


def agent(tasks=("a",), slots=3, **params):
    return PPOAgent(Setup(BOX, BOX, slots, 0, tuple(tasks)), **params)


def step(agent, slots, episode_start, tasks=None, ends=False, obs=0.0):
    """One step of these slots, of which the fresh begin an episode."""
    n, all_fresh = len(slots), np.zeros(agent.setup.slots, bool)
    all_fresh[episode_start] = True
    ctx = Context("learn", True, 0, tasks, np.array(slots), all_fresh)
    seen = np.full((n, 1), obs, np.float32)
    actions, ended = agent.act(seen, ctx), np.full(n, ends)
    agent.learn(Transitions(seen, actions, np.ones(n), ended, np.zeros(n, bool), seen), ctx)


def table(rewards, ends, truncated=None, slot=None, task=None, time=None):
    """Rows as trajectories() gives them."""
    n = len(rewards)
    terminated, cut = np.array(ends, bool), np.zeros(n, bool)
    truncated = np.zeros(n, bool) if truncated is None else np.array(truncated, bool)
    slot = np.zeros(n, int) if slot is None else np.array(slot)
    cut[:-1] = slot[1:] != slot[:-1]
    cut[-1] = True
    return {
        "rewards": np.array(rewards, np.float32),
        "terminated": terminated,
        "truncated": truncated,
        "cut": cut | terminated | truncated,
        "task": np.zeros(n, int) if task is None else np.array(task),
        "time": np.arange(n) if time is None else np.array(time),
    }


def test_features_by_hand():
    found = features(torch.tensor([[2.0, -3.0]]), np.array([50]))
    assert found.tolist() == [[2, -3, 4, 9, 0.5, 0.25, 0.125, 1]]


def test_ridge_is_the_closed_form():
    rng = np.random.default_rng(0)
    basis, targets = rng.normal(size=(30, 4)), rng.normal(size=30)
    expected = np.linalg.solve(basis.T @ basis + 0.5 * np.eye(4), basis.T @ targets)
    assert ridge(torch.tensor(basis), torch.tensor(targets), 0.5).numpy() == pytest.approx(expected)
    # Features that say the same twice share the weight instead of breaking.
    twice = torch.tensor(np.c_[basis, basis])
    found = ridge(twice, torch.tensor(basis @ [1.0, 2, 3, 4]))
    assert found.numpy() == pytest.approx([0.5, 1, 1.5, 2] * 2, abs=1e-4)


def test_returns_that_are_linear_in_the_features_are_met():
    """Reward 1 for 40 steps and no discount: the return is 40 − t, so no step is a surprise."""
    rows = table([1.0] * 80, [False] * 39 + [True] + [False] * 39 + [True], time=[*range(40)] * 2)
    obs = torch.zeros(80, 1)
    values, after = linear_values(rows, obs, obs, 1.0)
    assert values == pytest.approx(np.tile(np.arange(40, 0, -1.0), 2), abs=0.01)
    assert after[:39] == pytest.approx(values[1:40], abs=0.01) and after[39] == 0
    advantages, returns = advantages_and_returns(rows, obs, obs, None, 1.0, 0.9)
    assert advantages.numpy() == pytest.approx(np.zeros(80), abs=0.02)
    assert returns.numpy() == pytest.approx(values, abs=0.02)


def test_each_task_has_a_fit_of_its_own():
    pays = np.repeat([1.0, 5.0], 20)
    rows = table(pays, [True] * 40, task=np.repeat([0, 1], 20), time=np.zeros(40))
    values, after = linear_values(rows, torch.zeros(40, 1), torch.zeros(40, 1), 0.9)
    assert values == pytest.approx(pays, abs=1e-3) and not after.any()


def test_truncation_is_an_end_and_a_rollouts_end_is_not():
    """Episodes of 10 steps, reward 1: one whole, then one that the rollout cuts after 4 steps. Its
    return is not known, and is judged by what the whole one taught."""
    rows = table(
        [1.0] * 14, [False] * 14, [i == 9 for i in range(14)], time=[*range(10), *range(4)]
    )
    obs = torch.zeros(14, 1)
    values, after = linear_values(rows, obs, obs, 1.0)
    assert values == pytest.approx([*range(10, 0, -1), *range(10, 6, -1)], abs=0.05)
    assert after[9] == 0 and after[13] == pytest.approx(6, abs=0.05)
    # Where nothing is whole the cut returns must do.
    rows = table([1.0] * 4, [False] * 4)
    values, _ = linear_values(rows, obs[:4], obs[:4], 1.0)
    assert values == pytest.approx([4, 3, 2, 1], abs=0.05)


def test_advantages_are_returns_less_values_without_lambda():
    rng = np.random.default_rng(1)
    rows = table(rng.normal(size=30), rng.random(30) < 0.2, time=rng.integers(9, size=30))
    rows["terminated"][-1] = True
    obs = torch.tensor(rng.normal(size=(30, 1)), dtype=torch.float32)
    # What follows a step is the next row's observation, one step later.
    follow = torch.cat([obs[1:], obs[:1]])
    rows["time"][:] = np.arange(30)
    advantages, _ = advantages_and_returns(rows, obs, follow, None, 0.9, 1.0)
    values, _ = linear_values(rows, obs, follow, 0.9)
    returns = gae(rows["rewards"], np.zeros(30), np.zeros(30), rows["cut"], 0.9, 1.0)
    assert advantages.numpy() == pytest.approx(returns - values, abs=1e-4)


def test_time_is_counted_for_each_slot_and_saved():
    one = agent(rollout=100)
    step(one, [0, 1, 2], [0, 1, 2])
    step(one, [0, 2], [])
    step(one, [0, 2], [2])
    two = agent(rollout=100)
    two.load(one.state())
    for each in (one, two):
        step(each, [0, 1, 2], [1])
        assert each.rows["slot"].tolist() == [0, 1, 2, 0, 2, 0, 2, 0, 1, 2]
        assert each.rows["time"].tolist() == [0, 0, 0, 1, 1, 2, 0, 3, 0, 1]


class Clocked(PPOAgent):
    """Checks its count of steps in every row against an observation that counts them too."""

    checked = 0

    def rollout_data(self):
        assert np.array_equal(self.rows["time"], self.rows["obs"][:, 0])
        Clocked.checked += len(self.rows)
        return super().rollout_data()


def test_time_is_right_in_the_loop(tmp_path):
    """Through blocks that stop in mid-episode, probes, evaluations, and slots that idle."""
    check_agent(lambda setup: Clocked(setup, rollout=16, batch=8), ("toy/check,task=count",))
    assert Clocked.checked > 100


def test_rollout_and_batch_count_for_each_task_side_by_side():
    one = agent(("a", "b", "c"), rollout=4, batch=2, epochs=1)
    for k in range(4):
        assert len(one.rows) == 3 * k
        step(one, [0, 1, 2], [], ("a", "b", "c"))
    assert not len(one.rows)
    # Two slots of one task fill it in half the steps; four rows make two minibatches of two.
    for _ in range(2):
        assert one.optimizer.steps == 2
        step(one, [0, 1], [], ("b", "b"))
    assert not len(one.rows) and one.optimizer.steps == 4


def test_advantages_may_be_left_as_they_are():
    raw, normal = (agent(normalise=n, entropy=0.0, floor=0.0) for n in (False, True))
    obs = torch.zeros(4, 1)
    batch = {
        "obs": obs,
        "sampled_actions": obs,
        "log_prob": raw.policy.log_prob(raw.net.actor(obs), obs)[0].detach(),
        "advantages": torch.tensor([1.0, 2.0, 3.0, 4.0]),
        "returns": raw.net.critic(obs).squeeze(1).detach(),
    }
    assert raw.loss(batch)[0].item() == pytest.approx(-2.5)
    assert normal.loss(batch)[0].item() == pytest.approx(0, abs=1e-6)


def test_without_a_critic_nothing_is_learned_of_values():
    linear = agent(baseline="linear")
    assert linear.net.critic is None
    assert not any("critic" in name for name in linear.state())


@pytest.mark.parametrize("name", ["ppo", "trpo"])
def test_what_cannot_be_a_baseline_is_refused(name):
    make = perdure.registry.load("agents", name)
    picture = Setup(spaces.Box(0, 1, (20, 20, 3), np.float32), BOX, 1, 0, ())
    with pytest.raises(SpecError, match="flat observations"):
        make(picture, baseline="linear")
    with pytest.raises(SpecError, match="'mlp', 'linear' or 'auto', got 'none'"):
        make(Setup(BOX, BOX, 1, 0, ()), baseline="none")
