"""MAML: the outer gradient against finite differences, the inner step against plain policy gradient,
trials and their stages."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from perdure.agents.learners import maml
from perdure.agents.learners.maml import MAMLAgent
from perdure.agents.networks import products
from perdure.agents.networks.adaptable import _padded, rows_at
from perdure.agents.networks.meta_gradient import outer_gradient
from perdure.agents.networks.trust_region import flat_gradient
from perdure.errors import AgentFault, SpecError
from perdure.testing import check_agent
from perdure.types import Context, Setup, Transitions

BOX, ARMS = spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(3)


@pytest.fixture(params=[products.ENOUGH, 0], ids=["small", "large"])
def library(request, monkeypatch):
    """Products as small networks make them, and as large ones do."""
    monkeypatch.setattr(products, "ENOUGH", request.param)


def agent_of(actions=BOX, slots=3, **keys):
    settings = {"shots": 2, "tasks": 3, "hidden": (4,), "gamma": 0.9, "inner_lr": 0.3, **keys}
    return MAMLAgent(Setup(BOX, actions, slots, 0), **settings)


def play(agent, episodes, length=3, kind="learn", seed=0, rewarded=lambda actions: None):
    """Whole episodes of one trial in every slot; what the slots' episodes began with is random."""
    rng, slots = np.random.default_rng(seed), np.arange(len(agent.rows))
    for episode in range(episodes):
        for t in range(length):
            start = np.full(len(slots), t == 0)
            trial = start & (episode == 0)
            if trial.any():
                agent.reset_memory(slots)
            ctx = Context(kind, True, 0, None, slots, start, trial_start=trial)
            obs = rng.uniform(-1, 1, (len(slots), 2)).astype(np.float32)
            actions = agent.act(obs, ctx)
            rewards = rewarded(actions)
            if rewards is None:
                rewards = rng.normal(size=len(slots))
            over = np.full(len(slots), t == length - 1)
            agent.learn(Transitions(obs, actions, rewards, ~over & over, over, obs), ctx)


def stages_of(agent):
    """The trials that were played, as the outer step reads them."""
    for slot in range(len(agent.rows)):
        agent._finish(slot, whole=True)
    return [
        agent.stage_data([rows_at(trial, k) for trial in agent.trials])
        for k in range(agent.settings.inner_steps + 1)
    ]


def in_double(agent, stages):
    agent.net.double()
    agent.weights = list(agent.net.parameters())
    return [
        {k: v.double() if v.is_floating_point() else v for k, v in data.items()} for data in stages
    ]


@pytest.mark.parametrize("hidden", [(6,), (5, 7, 4)])
def test_the_outer_gradient_that_is_written_out_is_autograds(hidden, library):
    """Some ratios are beyond the clip, some episodes shorter than others; spreads differ."""
    agent = agent_of(hidden=hidden, clip=0.1)
    play(agent, 4)
    play(agent, 4, length=5, seed=1)
    stages = stages_of(agent)
    with torch.no_grad():
        for k, w in enumerate(agent.weights):
            w += 0.2 * torch.randn(w.shape, generator=torch.Generator().manual_seed(k))
        ratios = agent.ratios(stages)
    assert 0.1 < float(((ratios - 1).abs() > 0.1).float().mean()) < 0.95
    expected = flat_gradient(agent.objective(stages), agent.weights) * len(stages[0]["obs"])
    settings = agent.settings
    assert agent.written_out
    with torch.no_grad(), agent._products(stages):
        value, found = outer_gradient(agent.weights, stages, settings.inner_lr, settings.clip)
    together = torch.cat([g.flatten() for g in found])
    assert together.numpy() == pytest.approx(expected.numpy(), rel=1e-5, abs=1e-5)
    assert float(value) == pytest.approx(
        len(stages[0]["obs"]) * float(agent.objective(stages).detach()), abs=1e-5
    )


@pytest.mark.parametrize(
    "settings", [{"inner_steps": 2}, {"layer_norm": True}, {"outer": "trpo"}, {"actions": ARMS}]
)
def test_what_is_not_written_out_is_left_to_autograd(settings):
    assert not agent_of(**settings).written_out


@pytest.mark.parametrize("inner_steps", [1, 2])
@pytest.mark.parametrize("actions", [BOX, ARMS], ids=["box", "discrete"])
def test_the_outer_gradient_is_that_of_finite_differences(actions, inner_steps):
    agent = agent_of(actions, inner_steps=inner_steps, clip=10.0)
    play(agent, 2 * inner_steps + 2)
    stages = in_double(agent, stages_of(agent))
    found = flat_gradient(agent.objective(stages), agent.weights)
    expected, step = [], 1e-5
    with torch.no_grad():
        for w in agent.weights:
            for k in range(w.numel()):
                at, values = w.view(-1)[k].item(), []
                for moved in (at + step, at - step):
                    w.view(-1)[k] = moved
                    values.append(agent.objective(stages).item())
                w.view(-1)[k] = at
                expected.append((values[0] - values[1]) / (2 * step))
    assert found.abs().max() > 1e-2
    assert found.numpy() == pytest.approx(np.array(expected), rel=1e-4, abs=1e-7)
    # The second order is a part of it that would be missed.
    with torch.no_grad():
        fast = agent.adapt(stages)
    fast = [w.requires_grad_() for w in fast]
    ratio = agent._ratios(fast, stages[-1])
    first = torch.autograd.grad((ratio * stages[-1]["advantages"]).sum(1).mean(), fast)
    first_order = torch.cat([g.sum(0).reshape(-1) for g in first])
    assert not torch.allclose(found, first_order, rtol=1e-2, atol=1e-4)


def test_tasks_adapt_as_if_each_were_alone(library):
    """The batch over tasks gives each the step that its own policy gradient gives."""
    agent = agent_of()
    play(agent, 4)
    stages = stages_of(agent)
    with torch.no_grad(), agent._products(stages):
        together = agent.adapt(stages)
    before = [w.detach().clone() for w in agent.weights]
    for k in range(3):
        rows = {name: v[k] for name, v in stages[0].items()}
        terms = agent.net.terms(rows["obs"][None], [w[None] for w in agent.weights])
        log_prob = agent.policy.scored(terms, rows["sampled"])
        # At the weights that played, the gradient of the ratio is that of the log-probability.
        loss = (log_prob * rows["advantages"]).sum()
        for w, was, g in zip(
            together, before, torch.autograd.grad(loss, agent.weights), strict=True
        ):
            assert torch.allclose(w[k], was + agent.settings.inner_lr * g, atol=1e-5)
    slots = torch.cat([w.flatten(1) for w in together], 1)
    assert torch.allclose(slots, agent.adapted, atol=1e-5), "what was played with"


def test_episodes_of_many_lengths_are_padded_to_few():
    """Else there would be a kernel of each product for each; what is padded changes nothing."""
    agent = agent_of(tasks=99)
    for seed, length in enumerate((9, 17, 7)):
        play(agent, 4, length=length, seed=seed)
    stages = stages_of(agent)
    assert [s["obs"].shape[1] for s in stages] == [36, 36], "2 episodes of 17 at most"
    padded = {
        _padded([{"rewards": range(n + 1), "ended": np.eye(n + 1)[[-1, 0]].any(0)}])
        for n in range(128, 1024)
    }
    assert len(padded) == 24
    found = flat_gradient(agent.objective(stages), agent.weights)
    more = [
        {k: torch.cat([v, torch.zeros_like(v[:, :5])], 1) for k, v in data.items()}
        for data in stages
    ]
    wider = flat_gradient(agent.objective(more), agent.weights)
    assert wider.numpy() == pytest.approx(found.numpy(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("actions", [BOX, ARMS], ids=["box", "discrete"])
def test_threads_change_nothing(actions, monkeypatch):
    """Groups of tasks are computed side by side, and added up in their order."""
    monkeypatch.setattr(maml, "CACHE", 1)
    ends = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PERDURE_THREADS", threads)
        agent = agent_of(actions, tasks=9)
        for seed in range(3):
            play(agent, 4, seed=seed)
        stages_of(agent)
        said = agent.update()
        ends.append((said, [w.detach().numpy().tobytes() for w in agent.weights]))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("outer", ["ppo", "trpo"])
def test_the_outer_step_gains_within_its_bound(outer):
    agent = agent_of(outer=outer, kl=0.02)
    play(agent, 4)
    stages_of(agent)
    before = [w.detach().clone() for w in agent.weights]
    said = agent.update()
    assert said["gain"] > 0 and not agent.trials
    assert any(not torch.equal(a, b) for a, b in zip(before, agent.weights, strict=True))
    if outer == "trpo":
        assert 0 < said["kl"] <= 0.02


def test_a_trial_adapts_after_its_shots_and_begins_again_with_the_next():
    agent = agent_of()
    play(agent, 1, kind="adapt")
    assert agent.stage.tolist() == [0, 0, 0]
    play(agent, 2, kind="adapt")
    assert agent.stage.tolist() == [1, 1, 1]
    assert not torch.allclose(agent.adapted[0], agent.adapted[1]), "each to its own"
    agent.reset_memory(np.array([1]))
    assert agent.stage.tolist() == [1, 0, 1] and not agent.rows[1]


def test_adaptation_in_an_adapt_block_is_memory_alone():
    agent = agent_of()
    before = {k: np.array(v) for k, v in agent.state().items()}
    play(agent, 3, kind="adapt")
    after = agent.state()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[k], after[k]) for k in before)
    assert agent.stage.tolist() == [1, 1, 1]
    other = agent_of()
    other.load(agent.state())
    other.load_memory(agent.memory())
    assert torch.equal(other.adapted, agent.adapted)
    ctx = Context("adapt", False, 0, None, np.arange(3), np.ones(3, bool))
    obs = np.ones((3, 2), np.float32)
    acted = agent.act(obs, ctx)
    assert np.array_equal(other.act(obs, ctx), acted) and len(np.unique(acted, axis=0)) == 3


def test_refusals():
    agent = agent_of(shots=4)
    play(agent, 3)
    with pytest.raises(AgentFault, match=r"4 episodes .* a trial had 3: .* at least 5"):
        agent.reset_memory(np.arange(3))
    with pytest.raises(SpecError, match="outer must be"):
        agent_of(outer="sgd")
    with pytest.raises(SpecError, match=r"maml reads .*, not image .*: rl2$"):
        image = spaces.Box(0, 255, (20, 20, 3), np.uint8)
        MAMLAgent(Setup(image, BOX, 1, 0))


@pytest.mark.parametrize("outer", ["ppo", "trpo"])
def test_check(outer):
    life = "toy/meta-mass,steps=330,trial=4,shots=2,episodes=2,goals=2"
    check_agent(f"maml,shots=2,tasks=3,hidden=[5],outer={outer}", (life,))
