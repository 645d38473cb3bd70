"""RL²: memory across the episodes of a trial, and weights that stay as they are at test."""

import numpy as np
import pytest
from gymnasium import spaces

from perdure.agents.learners.rl2 import RL2Agent
from perdure.testing import check_agent
from perdure.types import Context, Setup, Transitions

BOX, ARMS = spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(3)


def agent_of(**keys):
    settings = {"trials": 10_000, "sequence": 8, "hidden": (6,), "width": 5, **keys}
    return RL2Agent(Setup(BOX, ARMS, 2, 0), **settings)


def context(start, trial, kind="learn", learning=True):
    start, trial = np.full(2, start), np.full(2, trial)
    return Context(kind, learning, 0, None, np.arange(2), start, trial_start=trial)


def play(agent, steps, kind="learn", length=2, trial=4, learning=True, paid=None):
    """Steps of both slots: episodes of ``length`` steps, trials of ``trial``; the memory after each."""
    rng, out = np.random.default_rng(0), []
    for t in range(steps):
        ctx = context(t % length == 0, t % trial == 0, kind, learning)
        if t % trial == 0 and kind != "adapt":
            agent.reset_memory(np.arange(2))
        obs = rng.uniform(-1, 1, (2, 2)).astype(np.float32)
        actions, over = agent.act(obs, ctx), np.full(2, t % length == length - 1)
        rewards = rng.uniform(size=2) if paid is None else np.array(paid[t])
        moves = Transitions(obs, actions, rewards, over & False, over, obs)
        (agent.learn if learning else agent.observe)(moves, ctx)
        out.append((agent.hidden.copy(), agent.extras.copy()))
    return out


def test_memory_lives_across_episodes_and_dies_with_the_trial():
    agent = agent_of(reward_scale=0.5)
    seen = play(agent, 4, paid=[[1, 0], [3, 2], [0, 0], [0, 0]])
    # The last step of the first episode: its action, its reward as scaled, and that it ended.
    acted = agent.rows[0][1]["sampled"]
    assert seen[1][1][0].tolist() == [*np.eye(3)[acted], 1.5, 1.0]
    inputs = [row["inputs"] for row in agent.rows[0]]
    assert inputs[2][2:].tolist() == seen[1][1][0].tolist(), "read at the next episode's beginning"
    assert np.array_equal(agent.rows[0][2]["hidden"], seen[1][0][0]) and seen[1][0][0].any()
    assert [bool(row["start"]) for row in agent.rows[0]] == [True, False, False, False]
    play(agent, 1)
    begun = agent.rows[0][4]
    assert begun["start"] and not begun["hidden"].any() and not begun["inputs"][2:].any()


def test_returns_go_on_through_the_trial_and_stop_at_its_end():
    """A reward at the last step of each trial, γ = λ = 1 and no baseline: 1 all the way back."""
    agent = agent_of(gamma=1.0, lam=1.0)
    agent._fit_baseline = lambda: [
        r.update(value=0.0, last_value=0.0) for m in agent.rows for r in m
    ]
    paid = [[float(t % 4 == 3)] * 2 for t in range(8)]
    play(agent, 8, paid=paid)
    assert agent.rollout_data()["returns"][0].tolist() == pytest.approx([1.0] * 8)


def test_the_linear_baseline_is_fitted_to_the_trials_returns():
    """Rewards that are the time within the trial: the baseline foretells their sums."""
    agent = agent_of(gamma=1.0, lam=1.0)
    paid = [[float(t % 4)] * 2 for t in range(32)]
    play(agent, 32, paid=paid)
    agent.rollout_data()
    values = [float(row["value"]) for row in agent.rows[0]]
    assert values == pytest.approx([6, 6, 5, 3] * 8, abs=0.05)
    assert [row["time"] for row in agent.rows[0]][:5] == [0, 1, 2, 3, 0]


def test_weights_are_learned_after_so_many_trials_and_never_in_adapt_blocks():
    agent = agent_of(trials=4, epochs=1)
    before = agent.optimizer.weights.clone()
    play(agent, 8)
    assert agent.optimizer.weights.equal(before), "four trials are over when the next begins"
    play(agent, 1)
    assert not agent.optimizer.weights.equal(before)
    after = {k: np.array(v) for k, v in agent.state().items()}
    agent.reset_memory(np.arange(2))
    carried = play(agent, 40, kind="adapt", trial=100)
    assert all(np.array_equal(np.array(v), after[k]) for k, v in agent.state().items())
    assert carried[-1][0].any()


def test_a_block_of_fewer_trials_than_asked_for_is_learned_from_at_its_end():
    agent = agent_of(trials=9, epochs=1)
    before = agent.optimizer.weights.clone()
    play(agent, 8)
    assert agent.optimizer.weights.equal(before)
    agent.leave(context(False, False))
    after = agent.optimizer.weights.clone()
    assert not after.equal(before) and not any(agent.rows)
    # Where the block was learned from, the few trials that are left over are not.
    play(agent, 25)
    learned = agent.optimizer.weights.clone()
    assert not learned.equal(after) and any(agent.rows)
    agent.leave(context(False, False))
    assert agent.optimizer.weights.equal(learned) and not any(agent.rows)


def test_each_evaluation_episode_begins_with_what_adaptation_left():
    agent = agent_of()
    agent.reset_memory(np.arange(2))
    left = play(agent, 4, kind="adapt", trial=100)[-1]
    begun = []
    for episode in range(3):
        ctx = context(True, episode == 0, "adapt", False)
        agent._begin_evaluation(ctx)
        begun.append((agent.hidden.copy(), agent.extras.copy()))
        for t in range(2):
            ctx = context(t == 0, episode == 0 and t == 0, "adapt", False)
            actions, over = agent.act(np.ones((2, 2), np.float32), ctx), np.full(2, t == 1)
            obs = np.ones((2, 2), np.float32)
            agent.observe(Transitions(obs, actions, np.ones(2), over & False, over, obs), ctx)
        assert not np.array_equal(agent.hidden, left[0])
        # A checkpoint in the midst of it knows what adaptation left.
        other = agent_of()
        other.load_memory(agent.memory())
        agent = other
    for hidden, extras in begun:
        assert np.array_equal(hidden, left[0]) and np.array_equal(extras, left[1])


def test_check():
    life = "toy/meta-bandit,steps=330,trial=3,shots=2,episodes=2,goals=2"
    check_agent("rl2,trials=3,sequence=20,batch=4,epochs=2,hidden=[5],width=4", (life,))
