"""TRPO: its parts against explicit computations, its bounds, and tasks it must solve."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import perdure
from perdure.agents.compose import make_agent
from perdure.errors import SpecError
from perdure.specs import Spec
from perdure.testing import check_agent
from perdure.types import Context, Setup, Transitions

torch = pytest.importorskip("torch")
from torch.distributions import Categorical, Independent, Normal, kl_divergence

from perdure.agents.learners.trpo import TRPOAgent
from perdure.agents.networks.policies import policy_for
from perdure.agents.networks.trust_region import assign, conjugate_gradients, flat_gradient

REACHING = Path(__file__).with_name("reaching.py")
SEEN = spaces.Box(-1, 1, (2,), np.float32)
SPACES = {"discrete": spaces.Discrete(3), "box": spaces.Box(-1, 1, (2,), np.float32)}
each = pytest.mark.parametrize("kind", SPACES)


def small(kind, **params):
    return TRPOAgent(Setup(SEEN, SPACES[kind], 1, 0, ("a",)), hidden=(3,), std=0.7, **params)


def rows(agent, n=12, seed=0):
    """A rollout's data with drawn advantages, away from the first, flat policy."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in agent.weights:
            p.add_(torch.tensor(rng.normal(0, 0.5, p.shape), dtype=torch.float32))
        obs = torch.tensor(rng.uniform(-1, 1, (n, 2)), dtype=torch.float32)
        outputs = agent.actor(obs)
        drawn = torch.tensor(agent.policy.sample(outputs, rng))
        log_prob, entropy = agent.policy.log_prob(outputs, drawn)
        terms = agent.policy.terms(outputs)
    advantages = torch.tensor(rng.normal(size=n), dtype=torch.float32)
    return {
        "obs": obs, "sampled_actions": drawn, "log_prob": log_prob, "entropy": entropy, "terms": terms,
        "advantages": advantages, "returns": advantages,
    }  # fmt: skip


def explicit_fisher(agent, obs):
    """The mean over states of E[∇ log π ∇ log πᵀ]: summed over actions, or by the Gaussian's own
    information, 1/σ² of each mean and 2 of each log σ."""
    total = 0
    for x in obs:
        outputs = agent.actor(x.unsqueeze(0))
        if outputs.shape[1] == 3:
            logs = torch.log_softmax(outputs, 1)[0]
            for log in logs:
                g = flat_gradient(log, agent.weights, retain_graph=True)
                total = total + log.exp().detach() * torch.outer(g, g)
        else:
            precision = torch.exp(-2 * agent.policy.log_std.detach())
            for mean, weight in zip(outputs[0], precision, strict=True):
                g = flat_gradient(mean, agent.weights, retain_graph=True)
                total = total + weight * torch.outer(g, g)
            # The parameters begin with the two log σ.
            total[[0, 1], [0, 1]] += 2
    return total / len(obs)


@each
def test_the_fisher_product_is_that_of_the_explicit_fisher(kind):
    agent = small(kind)
    data = rows(agent)
    fisher = explicit_fisher(agent, data["obs"])
    product = agent.fisher_product(data)
    columns = torch.stack([product(v) for v in torch.eye(len(fisher))])
    assert fisher.abs().max() > 0.1
    assert torch.allclose(columns, fisher, atol=1e-5)


def test_conjugate_gradients_solve():
    rng = np.random.default_rng(3)
    half = rng.normal(size=(8, 8))
    matrix, target = half @ half.T + np.eye(8), rng.normal(size=8)
    found = conjugate_gradients(lambda v: torch.tensor(matrix) @ v, torch.tensor(target), 8)
    assert found.numpy() == pytest.approx(np.linalg.solve(matrix, target), abs=1e-6)
    nothing = conjugate_gradients(lambda v: v, torch.zeros(3), 10)
    assert nothing.tolist() == [0, 0, 0]


@each
def test_the_divergence_is_that_of_torch(kind):
    agent = small(kind)
    data, policy = rows(agent), agent.policy
    with torch.no_grad():
        outputs = torch.randn(12, policy.outputs, generator=torch.Generator().manual_seed(1))
        found = policy.divergence(data["terms"], policy.terms(outputs))
        if kind == "discrete":
            expected = kl_divergence(Categorical(logits=data["terms"]), Categorical(logits=outputs))
        else:
            mean, log_std = data["terms"].chunk(2, 1)
            old = Independent(Normal(mean, log_std.exp()), 1)
            expected = kl_divergence(old, Independent(Normal(outputs, policy.log_std.exp()), 1))
    assert torch.allclose(found, expected, atol=1e-5)


def test_spreads_count_in_the_divergence():
    policy = policy_for(SPACES["box"], 0.5)
    means = torch.zeros(1, 2)
    old = policy.terms(means).detach()
    with torch.no_grad():
        policy.log_std += np.log(2)
    # Each number: log 2 + 1/8 − 1/2.
    assert policy.divergence(old, policy.terms(means)).item() == pytest.approx(
        2 * (np.log(2) - 0.375)
    )


@each
@pytest.mark.parametrize("kl", [0.01, 0.1])
def test_every_step_improves_within_the_bound(kind, kl):
    agent = small(kind, kl=kl)
    for seed in range(5):
        data = rows(agent, 40, seed)
        before = agent.surrogate(data).item()
        said = agent.step(data)
        apart, gained = agent.divergence(data).item(), agent.surrogate(data).item() - before
        assert 0 < apart <= kl and gained > 0
        assert (said["kl"], said["gain"]) == pytest.approx((apart, gained), abs=1e-6)
        # Of the longest step allowed a good part is taken, or the bound would be meaningless.
        assert apart > kl / 20


def flat(agent):
    return torch.cat([p.detach().reshape(-1) for p in agent.weights])


@each
def test_the_search_rejects_what_does_not_improve(kind):
    agent = small(kind)
    data = rows(agent)
    before = flat(agent)
    downhill = -0.01 * flat_gradient(agent.surrogate(data), agent.weights)
    assert agent.search(data, downhill) == (0, 0, 0)
    assert torch.equal(flat(agent), before)


@each
def test_the_search_shortens_what_goes_too_far(kind):
    agent = small(kind)
    data = rows(agent)
    before = flat(agent)
    uphill = flat_gradient(agent.surrogate(data), agent.weights)
    uphill = uphill / uphill.norm()
    gained, apart, part = agent.search(data, uphill)
    assert gained > 0 and 0 < apart <= agent.settings.kl and 0.8**14 <= part < 1
    assert torch.allclose(flat(agent), before + part * uphill)
    with torch.no_grad():
        assign(agent.weights, before)
    # Too far by more than all shortenings: the policy stays as it was.
    assert agent.search(data, 1e4 * uphill) == (0, 0, 0)
    assert torch.equal(flat(agent), before)


def test_advantages_of_zero_move_nothing():
    agent = small("box")
    data = {**rows(agent), "advantages": torch.zeros(12)}
    before = flat(agent)
    agent.step(data)
    assert torch.equal(flat(agent), before)


@pytest.mark.parametrize("baseline", ["linear", "mlp"])
@pytest.mark.parametrize(("task", "optimum"), [("bandit", 1.0), ("reach", 0.0)])
def test_it_solves_tiny_tasks(tmp_path, task, optimum, baseline):
    run = perdure.experiment(
        f"{REACHING}:reach,steps=4000,task={task}",
        [f"trpo,rollout=200,std=0.5,gamma=0.5,baseline={baseline}"],
        out=str(tmp_path / "run"),
        executor="serial",
    )
    frame = run.rows().to_pandas()
    first, last = (frame[frame.block == b]["return"].mean() for b in (0, frame.block.max()))
    assert first < optimum - 0.5 and last > optimum - (0.01 if task == "bandit" else 0.8)


def test_it_keeps_its_promises():
    check_agent("trpo,rollout=16", ("toy/check,task=reach",))
    check_agent("trpo,rollout=16,baseline=mlp,batch=8,epochs=2", ("toy/check",))


def test_strategies_are_refused_with_the_reason():
    with pytest.raises(SpecError, match="line search"):
        make_agent(Spec("ewc+trpo"), Setup(SEEN, SPACES["box"], 1, 0, ("a",)))


def test_a_short_block_is_carried_to_the_next_of_the_same_task_only():
    agent = TRPOAgent(Setup(SEEN, SPACES["box"], 1, 0, ("a", "b")), rollout=10)
    one, off = np.zeros(1, int), np.zeros(1, bool)

    def block(task, steps):
        for event in ("block", "task", "variant"):
            agent.enter(Context("learn", True, 0, (task,), one, off, event))
        held = len(agent.rows)
        for k in range(steps):
            ctx = Context("learn", True, 0, (task,), one, np.array([k == 0]))
            obs = np.zeros((1, 2), np.float32)
            agent.learn(Transitions(obs, agent.act(obs, ctx), np.ones(1), off, off, obs), ctx)
        cut = agent.rows.trajectories()["cut"].tolist()
        for event in ("variant", "task", "block"):
            agent.leave(Context("learn", True, 0, (task,), one, off, event))
        return held, cut, len(agent.rows)

    assert block("a", 3) == (0, [False, False, True], 3)
    # The episode that the first block left is a trajectory of its own.
    assert block("a", 1) == (3, [False, False, True, True], 4)
    assert block("b", 4) == (0, [False] * 3 + [True], 4)
    before = flat(agent)
    assert block("b", 1)[2] == 0 and not torch.equal(flat(agent), before)
