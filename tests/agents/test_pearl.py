"""PEARL: what is believed of a task against its closed form, trials in the replay, and what moves what."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from perdure.agents.learners.pearl import PEARLAgent
from perdure.agents.networks.inference import product_of_gaussians
from perdure.agents.networks.trial_replay import TrialReplay
from perdure.errors import SpecError
from perdure.testing import check_agent
from perdure.types import Context, Setup, Transitions

BOX = spaces.Box(-1, 1, (2,), np.float32)
SMALL = {
    "tasks": 3, "batch": 4, "context": 5, "embedding": 2, "start": 8, "rate": 0.0, "replay": 200,
    "hidden": (6,), "encoder": (6,),
}  # fmt: skip


def agent_of(slots=2, **keys):
    return PEARLAgent(Setup(BOX, BOX, slots, 0), **{**SMALL, **keys})


def context(starts, trials, kind="learn", learning=True):
    slots = np.arange(len(starts))
    return Context(kind, learning, 0, None, slots, np.array(starts), trial_start=np.array(trials))


def play(agent, steps, kind="learn", length=4, trial=8):
    """Steps of both slots: episodes of ``length``, trials of ``trial`` steps."""
    rng = np.random.default_rng(0)
    for t in range(steps):
        start, first = np.full(2, t % length == 0), np.full(2, t % trial == 0)
        if first.any():
            agent.reset_memory(np.arange(2))
        ctx = context(start, first, kind)
        obs, rewards = rng.uniform(-1, 1, (2, 2)).astype(np.float32), rng.normal(size=2)
        actions, over = agent.act(obs, ctx), np.full(2, t % length == length - 1)
        agent.learn(Transitions(obs, actions, rewards, over & False, over, obs), ctx)


def test_the_posterior_is_the_product_of_its_factors():
    """Against the product of densities on a grid, with factors that the mask leaves out."""
    means = torch.tensor([[[0.5], [-1.0], [9.0]], [[0.0], [0.0], [0.0]]])
    variances = torch.tensor([[[0.4], [2.0], [1e-3]], [[1.0], [1.0], [1.0]]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    mean, variance = product_of_gaussians(means, variances, mask)
    x = torch.linspace(-6, 6, 20_001, dtype=torch.float64)
    log = sum(-((x - m) ** 2) / (2 * v) for m, v in ((0.5, 0.4), (-1.0, 2.0)))
    density = log.exp() / log.exp().sum()
    centre = (density * x).sum()
    assert mean[0].item() == pytest.approx(centre.item(), abs=1e-6)
    assert variance[0].item() == pytest.approx((density * (x - centre) ** 2).sum().item(), abs=1e-5)
    # In closed form: precisions add up, and means are weighed by them.
    assert variance[0].item() == pytest.approx(1 / (1 / 0.4 + 1 / 2.0))
    assert (mean[1].item(), variance[1].item()) == (0.0, 1.0), "the prior where nothing was seen"


def test_the_encoder_learns_from_the_critics_and_the_divergence_alone():
    agent = agent_of()
    play(agent, 24)
    batch = agent.sample()
    first = next(agent.net.encoder.parameters())
    soft = agent.net.soft

    def moved(weight):
        agent.settings = replace(agent.settings, kl=weight)
        agent.optimizer.zero_grad()
        agent.loss(batch)[0].backward()
        return first.grad.clone(), soft.actor.weights[0].grad.clone()

    with_kl, actor = moved(1.0)
    without, same = moved(0.0)
    assert with_kl.abs().max() > 0 and without.abs().max() > 0
    assert not torch.allclose(with_kl, without) and torch.allclose(actor, same)
    with torch.no_grad():
        for p in [*soft.critics.weights, *soft.critics.biases]:
            p.zero_()
    # Critics that do not read z give the encoder nothing to learn, whatever the policy would like.
    assert moved(0.0)[0].abs().max() == 0


def test_a_belief_is_drawn_when_an_episode_begins_and_stays_through_it():
    agent = agent_of()
    play(agent, 1)
    first = agent.z.copy()
    assert agent.seen.tolist() == [1, 1] and len(np.unique(first)) == 4
    obs = np.zeros((2, 2), np.float32)
    agent.act(obs, context([False, False], [False, False]))
    assert np.array_equal(agent.z, first)
    agent.act(obs, context([True, False], [False, False]))
    assert not np.array_equal(agent.z[0], first[0]) and np.array_equal(agent.z[1], first[1])
    # Of two agents with the same belief, one that evaluates takes what is most probable.
    agent.reset_memory(np.arange(2))
    agent.act(obs, context([True, True], [True, True], "eval", False))
    assert not agent.z.any(), "the prior's mean"


def test_evaluation_after_an_adaptation_begins_each_episode_with_what_that_left():
    agent = agent_of()
    before = {k: np.array(v) for k, v in agent.state().items()}
    play(agent, 6, kind="adapt")
    assert all(np.array_equal(np.array(v), before[k]) for k, v in agent.state().items())
    known, obs = agent.memory(), np.ones((2, 2), np.float32)
    over, rewards = np.ones(2, bool), np.ones(2)
    beliefs = []
    for first in (True, False):
        ctx = context([True, True], [first, first], "adapt", False)
        actions = agent.act(obs, ctx)
        agent.observe(Transitions(obs, actions, rewards, over, ~over, obs), ctx)
        beliefs.append(agent.z.copy())
    assert np.array_equal(*beliefs) and beliefs[0].any()
    assert np.array_equal(agent.memory()["context"], known["context"])
    # In an eval block that shows rewards, what is seen counts for the rest of the trial.
    ctx = context([True, True], [True, True], "eval", False)
    agent.observe(Transitions(obs, agent.act(obs, ctx), rewards, over, ~over, obs), ctx)
    assert agent.seen.tolist() == [7, 7]


def test_context_is_a_fair_choice_of_a_long_trials_steps():
    """Each of 40 steps is among the 5 kept as often as any other."""
    agent, counts = agent_of(1), np.zeros(40)
    for _ in range(600):
        agent.reset_memory(np.array([0]))
        for t in range(40):
            obs = np.full((1, 2), t / 40, np.float32)
            moves = Transitions(obs, np.zeros((1, 2)), None, [False], [False], obs)
            agent._remember(moves, np.zeros(1), np.array([0]))
        kept = np.rint(agent.context[0, :, 0] * 40).astype(int)
        assert len(set(kept)) == 5
        counts[kept] += 1
    assert abs(counts - 75).max() < 5 * 75**0.5


def test_trials_in_the_replay():
    """Rows know their trial, the oldest give way, and what was known at a moment is of before it."""
    replay = TrialReplay(9, {"x": ((), np.int64)}, 2)
    both = np.arange(2)
    for t in range(4):
        if t % 2 == 0:
            replay.begin(both)
        replay.add(both, x=np.array([t, 100 + t]))
    rows, known, mask = replay.sample(np.random.default_rng(0), 200, 3, 4)
    for k in range(200):
        seen = known["x"][k][mask[k]]
        assert len({*(rows["trial"][k]), *known["trial"][k][mask[k]]}) == 1
        assert len(set(seen)) == len(seen) >= 1
        assert sorted(seen) == sorted(sorted(set(known["x"][k][mask[k]]))[: len(seen)])
        first = {0: 0, 1: 100, 2: 2, 3: 102}[rows["trial"][k][0]]
        assert seen[0] == first, "the trial's beginning is always known"
    assert set(np.unique(rows["trial"])) == {0, 1, 2, 3}
    for t in range(4, 9):
        replay.add(both, x=np.array([t, 100 + t]))
    assert sorted(replay.ring["x"]) == [5, 6, 7, 8, 104, 105, 106, 107, 108]
    assert {t: len(places) for t, places in replay._where.items()} == {2: 4, 3: 5}
    for trial, places in replay._where.items():
        rows = replay.ring.take(np.array(places))
        assert set(rows["trial"]) == {trial} and (np.diff(rows["x"]) == 1).all()
    again = TrialReplay(9, {"x": ((), np.int64)}, 2)
    again.load("r", replay.state("r"))
    assert again._where == replay._where and list(again._where) == list(replay._where)
    assert again.current.tolist() == replay.current.tolist() and again.begun == replay.begun
    # What is loaded over the rows it was taken of, as at the end of an adapt block, looks at none again.
    before, kept = replay.state("r"), replay._where
    replay.begin(both[:1])
    replay.load("r", before)
    assert replay._where is kept and replay.begun == again.begun
    replay.begin(both)
    replay.add(both, x=np.array([9, 109]))
    replay.load("r", before)
    assert replay._where == again._where and list(replay._where) == list(again._where)


def test_check():
    life = "toy/meta-mass,steps=250,trial=3,shots=2,episodes=2,goals=2"
    small = "tasks=3,batch=4,context=5,start=50,rate=0.1,replay=90,hidden=[5],encoder=[5]"
    check_agent(f"pearl,{small}", (life,))


def test_refusals():
    with pytest.raises(SpecError, match=r"acts in Box spaces.*: rl2$"):
        PEARLAgent(Setup(BOX, spaces.Discrete(2), 1, 0))
    image = spaces.Box(0, 255, (20, 20, 3), np.uint8)
    with pytest.raises(SpecError, match=r"pearl reads .*, not image .*: rl2$"):
        PEARLAgent(Setup(image, BOX, 1, 0))
