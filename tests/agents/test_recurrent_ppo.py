"""A GRU that remembers through an episode or a trial: tasks whose optimum needs just that."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

import perdure
from perdure.agents.learners.recurrent_ppo import GRU, RecurrentPPOAgent
from perdure.agents.networks import products
from perdure.errors import SpecError
from perdure.testing import check_agent
from perdure.types import Context, Setup, Transitions

BOX, ARMS = spaces.Box(-1, 1, (3,), np.float32), spaces.Discrete(4)


def agent_of(slots=2, **keys):
    return RecurrentPPOAgent(Setup(BOX, ARMS, slots, 0), **{"rollout": 10_000, **keys})


def context(starts, trials=None, learning=True):
    starts = np.array(starts)
    trial = starts if trials is None else np.array(trials)
    slots = np.arange(len(starts))
    return Context("learn", learning, 0, None, slots, starts, trial_start=trial)


def play(agent, steps, *, ends=(), trials=None, rewards=None):
    """Step both slots; those at ``ends`` (step, slot) end an episode there, by termination."""
    rng, start = np.random.default_rng(0), np.ones(2, bool)
    out = []
    for t in range(steps):
        first = start if trials is None else start & np.array([(t, s) in trials for s in (0, 1)])
        scope = first if agent.memory_scope == "trial" else start
        agent.reset_memory(np.flatnonzero(scope))
        ctx = context(start, first)
        obs = rng.uniform(-1, 1, (2, 3)).astype(np.float32)
        actions = agent.act(obs, ctx)
        over = np.array([(t, s) in ends for s in (0, 1)])
        paid = rng.uniform(size=2) if rewards is None else np.array(rewards[t])
        agent.learn(Transitions(obs, actions, paid, over, np.zeros(2, bool), obs), ctx)
        out.append(agent.hidden.copy())
        start = over
    return out


def test_what_is_learned_is_what_was_played():
    """The whole sequence at once gives the log-probabilities and values of step by step."""
    agent = agent_of(sequence=5)
    play(agent, 12, ends={(3, 0), (7, 1)})
    data = agent.rollout_data()
    assert data["obs"].shape == (6, 5, 3 + 4 + 2) and int(data["mask"].sum()) == 24
    outputs, values, _ = agent.net(data["obs"], data["hidden"], data["start"])
    log_prob, _ = agent.policy.log_prob(outputs[data["mask"]], data["sampled"][data["mask"]])
    assert torch.allclose(log_prob, data["log_prob"][data["mask"]], atol=1e-6)
    expected = np.concatenate([[row["value"] for row in mine] for mine in agent.rows])
    assert values[data["mask"]].detach().numpy() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("enough", [products.ENOUGH, 0], ids=["small", "large"])
def test_its_gru_is_torchs(enough, monkeypatch):
    """The same numbers and gradients as torch's own with the same weights, by either library of products."""
    monkeypatch.setattr(products, "ENOUGH", enough)
    mine, theirs = GRU(5, 4), torch.nn.GRU(5, 4, batch_first=True)
    with torch.no_grad():
        for name, layer in (("ih", mine.inputs), ("hh", mine.recurrent)):
            layer.weight.copy_(getattr(theirs, f"weight_{name}_l0"))
            layer.bias.copy_(getattr(theirs, f"bias_{name}_l0"))
    x, h = torch.randn(3, 7, 5), torch.randn(3, 4)
    seen, after = mine(x, h, torch.zeros(3, 7, dtype=torch.bool))
    expected, last = theirs(x, h[None])
    assert torch.allclose(seen, expected, atol=1e-6) and torch.allclose(after, last[0], atol=1e-6)
    seen.square().sum().backward()
    expected.square().sum().backward()
    assert torch.allclose(mine.recurrent.weight.grad, theirs.weight_hh_l0.grad, atol=1e-5)
    # Where a step starts anew, what came before is forgotten.
    start = torch.zeros(3, 7, dtype=torch.bool)
    start[1, 3] = True
    fresh = mine(x, h, start)[0]
    alone = mine(x[:, 3:], torch.zeros(3, 4), torch.zeros(3, 4, dtype=torch.bool))[0]
    assert torch.allclose(fresh[1, 3:], alone[1], atol=1e-6)
    assert torch.allclose(fresh[0], seen[0], atol=1e-6)


def test_it_reads_its_last_action_and_reward():
    agent = agent_of()
    play(agent, 1, rewards=[[0.25, -1.0]])
    rows = [agent.rows[slot][0]["sampled"] for slot in (0, 1)]
    assert agent.extras.tolist() == [
        [*np.eye(4)[rows[0]], 0.25, 0.0],
        [*np.eye(4)[rows[1]], -1.0, 0.0],
    ]


@pytest.mark.parametrize(("scope", "cut"), [("episode", True), ("trial", False)])
def test_returns_go_on_through_a_trial_and_not_through_an_episodes_end(scope, cut):
    """Two episodes of two steps in one trial, a reward of 1 at the very last step: with λ = γ = 1
    the return of every step before is 1, unless the first episode's end is an end."""
    agent = agent_of(scope=scope, gamma=1.0, lam=1.0)
    ends, trials = {(1, s) for s in (0, 1)} | {(3, s) for s in (0, 1)}, {(0, 0), (0, 1)}
    play(agent, 4, ends=ends, trials=trials, rewards=[[0, 0], [0, 0], [0, 0], [1, 1]])
    returns = agent.rollout_data()["returns"][0, :4].tolist()
    assert returns == pytest.approx([0, 0, 1, 1] if cut else [1, 1, 1, 1], abs=1e-5)


def test_memory_is_forgotten_by_slot():
    agent = agent_of()
    play(agent, 3)
    kept = agent.hidden[1].copy()
    agent.reset_memory(np.array([0]))
    assert not agent.hidden[0].any() and not agent.extras[0].any()
    assert np.array_equal(agent.hidden[1], kept) and kept.any()
    other = agent_of()
    other.load_memory(agent.memory())
    assert np.array_equal(other.hidden, agent.hidden)


def test_evaluation_changes_memory_alone():
    agent = agent_of()
    play(agent, 3)
    before = {k: np.array(v) for k, v in agent.state().items()}
    ctx = context([True, True], learning=False)
    obs = np.zeros((2, 3), np.float32)
    actions = agent.act(obs, ctx)
    agent.observe(Transitions(obs, actions, None, np.ones(2, bool), np.zeros(2, bool), obs), ctx)
    after = agent.state()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[k], after[k]) for k in before)


def success(curriculum, agent, tmp_path, **keys):
    keys = {"envs": 8, "executor": "serial", "out": str(tmp_path / "run"), **keys}
    rows = perdure.experiment(curriculum, [agent], **keys).rows().to_pylist()
    last = max(r["block"] for r in rows)
    return [r for r in rows if r["block"] == last]


@pytest.mark.slow
def test_a_cue_is_recalled_by_who_remembers(tmp_path):
    steps = "toy/recall,steps=15000"
    rows = success(steps, "recurrent_ppo", tmp_path / "gru")
    assert np.mean([r["return"] for r in rows]) >= 0.98, "the optimum is 1"
    rows = success(steps, "ppo", tmp_path / "ppo")
    assert np.mean([r["return"] for r in rows]) <= 0.75, "half of two cues is a guess"


@pytest.mark.slow
def test_a_hidden_goal_is_found_within_its_trial(tmp_path):
    """Of three arms: 1/3 in the first episode of a trial, 2/3 in the second, 1 in the third."""
    agent = "recurrent_ppo,scope=trial,lr=5e-3"
    rows = success("toy/trials,steps=30000", agent, tmp_path)
    by_episode = [np.mean([r["success"] for r in rows if r["episode"] % 3 == k]) for k in range(3)]
    assert by_episode[0] <= 0.5 and by_episode[1] >= 0.55 and by_episode[2] >= 0.95
    for row in rows:
        assert row["trial"] == row["episode"] // 3


def test_check_and_refusals():
    check_agent("recurrent_ppo,rollout=20,sequence=8")
    with pytest.raises(SpecError, match="scope must be 'episode' or 'trial'"):
        agent_of(scope="block")


def test_strategies_that_read_rows_are_refused_and_others_work():
    from perdure.agents.compose import make_agent
    from perdure.specs import Spec

    setup = Setup(BOX, ARMS, 2, 0)
    with pytest.raises(SpecError, match="its minibatches are sequences"):
        make_agent(Spec.parse("ewc+recurrent_ppo"), setup)
    composed = make_agent(Spec.parse("si+recurrent_ppo,scope=trial"), setup)
    assert composed.memory_scope == "trial" and composed.memory().keys() == {"hidden", "extras"}
