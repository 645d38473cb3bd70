"""Multi-task learners on soft actor-critic: soft modularization, BRC, and PCGrad beside them."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import perdure
from perdure.agents.compose import make_agent
from perdure.errors import SpecError
from perdure.specs import Spec
from perdure.testing import check_agent
from perdure.types import Setup

torch = pytest.importorskip("torch")

from torch import nn

from perdure.agents.learners.brc import ResidualBlocks, ReturnScales, project
from perdure.agents.learners.soft_modularization import SoftModularizationSettings, SoftModules
from perdure.agents.strategies.pcgrad import without_conflicts

REACHING = Path(__file__).with_name("reaching.py")
SETUP = Setup(spaces.Box(-1, 1, (5,), np.float32), spaces.Box(-1, 1, (2,), np.float32), 2, 0, ("a", "b", "c"))  # fmt: skip
SMALL = "batch=8,start=20,every=4"
MODULAR = f"soft_modularization,{SMALL},hidden=[8],embedding=8,width=8,layers=3"
BRC = f"brc,{SMALL},hidden=[8],width=16,blocks=1,embedding=4,atoms=11"


def made(text):
    return make_agent(Spec.parse(text), SETUP)


# PCGrad.


def test_two_gradients_that_conflict_by_hand():
    """(1, 0) and (−1, 1): the first loses its part along the second and is (½, ½), the second loses its
    part along the first and is (0, 1)."""
    given = np.array([[1.0, 0.0], [-1.0, 1.0]])
    shares = without_conflicts(given @ given.T, np.random.default_rng(0))
    assert shares @ given == pytest.approx([0.25, 0.75])


def test_many_gradients_are_projected_as_the_paper_writes_it():
    rng = np.random.default_rng(3)
    given = rng.normal(size=(6, 4))
    order = np.random.default_rng(7)
    projected = []
    for i in range(6):
        g = given[i].copy()
        for j in order.permutation(6):
            if j != i and g @ given[j] < 0:
                g = g - (g @ given[j]) / (given[j] @ given[j]) * given[j]
        projected.append(g)
    found = without_conflicts(given @ given.T, np.random.default_rng(7)) @ given
    assert found == pytest.approx(np.mean(projected, 0))
    assert not np.allclose(found, given.mean(0))


def test_without_conflict_it_is_the_mean():
    given = np.array([[1.0, 0.0], [1.0, 2.0]])
    assert without_conflicts(given @ given.T, np.random.default_rng(0)) == pytest.approx([0.5, 0.5])


def minibatch(agent, rng):
    n = 12
    return {
        "obs": torch.tensor(rng.normal(size=(n, 5)), dtype=torch.float32),
        "next_obs": torch.tensor(rng.normal(size=(n, 5)), dtype=torch.float32),
        "actions": torch.tensor(rng.uniform(-1, 1, (n, 2)), dtype=torch.float32),
        "rewards": torch.tensor(rng.normal(size=n), dtype=torch.float32),
        "alive": torch.ones(n),
        "task": torch.arange(n) % 3,
    }


def test_policy_and_critics_are_compared_apart():
    """The gradient that is left is that of three tasks, each projected within its own networks."""
    agent = made("pcgrad+sac,hidden=[8],batch=4")
    learner = agent.learner
    batch = minibatch(agent, np.random.default_rng(1))
    learner.rng = np.random.default_rng(5)
    each = []
    for k in range(3):
        part = {name: v[batch["task"] == k] for name, v in batch.items()}
        learner.optimizer.zero_grad()
        learner.loss(part)[0].backward()
        each.append(learner.optimizer.grads.clone().numpy())
    each = np.stack(each)
    critics = np.concatenate([
        np.full(p.numel(), name.startswith("critics.")) for name, p in learner.net.named_parameters()
    ])  # fmt: skip
    policy = np.concatenate([
        np.full(p.numel(), name.startswith("actor.")) for name, p in learner.net.named_parameters()
    ])  # fmt: skip
    expected = each.mean(0)
    for where in (policy, critics):
        mine = each[:, where].astype(np.float64)
        expected[where] = without_conflicts(mine @ mine.T, learner.rng) @ mine
    learner.rng = np.random.default_rng(5)
    learner.optimizer.step = lambda: None
    learner.descend(batch)
    assert learner.optimizer.grads.numpy() == pytest.approx(expected, abs=1e-5)


def test_one_task_is_learned_as_without_it():
    rng = np.random.default_rng(2)
    plain, with_it = made("sac,hidden=[8],batch=4"), made("pcgrad+sac,hidden=[8],batch=4")
    batch = {**minibatch(plain, rng), "task": torch.zeros(12, dtype=torch.int64)}
    plain.rng, with_it.rng = np.random.default_rng(0), np.random.default_rng(0)
    plain.descend(batch)
    with_it.learner.descend(batch)
    assert torch.equal(plain.optimizer.weights, with_it.learner.optimizer.weights)


def test_rows_without_a_task_are_refused():
    with pytest.raises(
        SpecError, match="cannot work with PPOAgent: .*nor say which one a row is of"
    ):
        made("pcgrad+ppo")


# Soft modularization.


def test_rows_go_their_own_ways_through_the_modules():
    """One network, row by row and module by module."""
    s = SoftModularizationSettings(hidden=(6,), embedding=5, layers=3, modules=2, width=4)
    net = SoftModules(7, 3, 2, 2, s)
    x, task = torch.randn(4, 7), torch.tensor([0, 1, 1, 0])
    found = net(x, task)
    for copy in range(2):
        for row in range(4):
            p = iter(net.stack)

            def layer(v, module=None, p=p, copy=copy):
                w, b = next(p), next(p)
                at = copy if module is None else copy * 2 + module
                return v @ w[at] + b[at, 0]

            def layers(vs, p=p, copy=copy):
                w, b = next(p), next(p)
                return [v @ w[copy * 2 + k] + b[copy * 2 + k, 0] for k, v in enumerate(vs)]

            f = layer(torch.relu(layer(x[row])))
            asked = f * next(p)[copy, task[row]]
            given = [torch.relu(v) for v in layers([torch.relu(f)] * 2)]
            routes = None
            for _ in range(2):
                seen = asked if routes is None else layer(routes) * asked
                routes = layer(torch.relu(seen))
                shares = routes.view(2, 2).softmax(1)
                read = [shares[i, 0] * given[0] + shares[i, 1] * given[1] for i in range(2)]
                given = [torch.relu(v) for v in layers(read)]
            out = sum(layers(given))
            assert torch.allclose(found[copy, row], out, atol=1e-6)


def test_it_has_the_authors_sizes():
    settings = made("soft_modularization").settings
    assert (settings.layers, settings.modules, settings.width) == (2, 2, 256)
    deep = made("soft_modularization,preset=deep").settings
    assert (deep.layers, deep.modules, deep.width) == (4, 4, 128)
    with pytest.raises(SpecError, match="leave multihead= out"):
        made("soft_modularization,multihead=true")


# BRC.


def test_a_distribution_is_moved_to_its_neighbours_by_hand():
    """0.25 lies a quarter of the way from 0 to 1; 7 and −7 are moved to the ends."""
    atoms = torch.linspace(-2, 2, 5)
    found = project(torch.tensor([[0.25, 7.0], [-7.0, 1.0]]), torch.tensor([[0.4, 0.6], [0.5, 0.5]]), atoms)  # fmt: skip
    assert found.tolist() == [
        pytest.approx([0, 0, 0.3, 0.1, 0.6]),
        pytest.approx([0.5, 0, 0, 0.5, 0]),
    ]


def test_within_the_bound_the_mean_stays():
    rng = torch.Generator().manual_seed(0)
    atoms = torch.linspace(-10, 10, 101)
    values = torch.rand(50, 101, generator=rng) * 20 - 10
    chances = torch.rand(50, 101, generator=rng).softmax(1)
    moved = project(values, chances, atoms)
    assert torch.allclose(moved @ atoms, (values * chances).sum(1), atol=1e-4)
    assert torch.allclose(moved.sum(1), torch.ones(50), atol=1e-5)


def test_blocks_are_those_of_torch():
    net = ResidualBlocks(5, 3, 2, 2, 6, 1, 4)
    x, task = torch.randn(7, 5), torch.tensor([0, 1, 1, 0, 1, 0, 0])
    found = net(x, task)
    with torch.no_grad():
        for p in net.stack:  # Norms that scale and shift.
            p.add_(0.1 * torch.randn_like(p))
        found = net(x, task)
        for copy in range(2):
            p = iter([q[copy] for q in net.stack])
            told = nn.functional.normalize(next(p), dim=1)[task]

            def linear(a, b, p=p):
                layer = nn.Linear(a, b)
                layer.weight.copy_(next(p).T)
                layer.bias.copy_(next(p)[0])
                return layer

            def normed(a, b, p=p):
                layer, norm = linear(a, b), nn.LayerNorm(b)
                norm.weight.copy_(next(p)[0])
                norm.bias.copy_(next(p)[0])
                return nn.Sequential(layer, norm)

            h = torch.relu(normed(9, 6)(torch.cat([x, told], 1)))
            first, second = normed(6, 6), normed(6, 6)
            h = h + second(torch.relu(first(h)))
            assert torch.allclose(found[copy], linear(6, 3)(h), atol=1e-5)


def test_rewards_are_divided_by_a_scale_of_their_tasks_returns():
    rng = np.random.default_rng(0)
    gamma, scales = 0.9, ReturnScales(2, 2, 0.9, 10.0)
    seen, running = {0: [], 1: []}, np.zeros(2)
    for t in range(200):
        rewards = np.array([rng.normal(), 100 + rng.normal()])
        ended = np.array([t % 20 == 19, t % 7 == 6])
        scales.add(np.arange(2), np.array([0, 1]), rewards, ended)
        running = gamma * running + rewards
        seen[0].append(running[0])
        seen[1].append(running[1])
        running[ended] = 0
    small, large = scales.scales()
    assert small == pytest.approx(max(np.std(seen[0]), np.abs(seen[0]).max() / 10))
    assert large == pytest.approx(max(np.std(seen[1]), np.abs(seen[1]).max() / 10))
    assert large > 10 * small


# All of them.


@pytest.mark.parametrize("agent", [MODULAR, BRC, f"pcgrad+sac,{SMALL},hidden=[8]"])
def test_tasks_side_by_side_resume_to_the_bit(agent):
    assert check_agent(agent, (f"{REACHING}:twins,steps=40,episodes=2",)) == []


@pytest.mark.parametrize(
    "agent",
    [
        "soft=soft_modularization,hidden=[16],embedding=16,width=16,lr=3e-3,batch=32,start=100,every=4",
        "brc=brc,hidden=[32],width=32,blocks=1,embedding=4,lr=3e-3,batch=32,start=100,every=4,gamma=0.9",
        "pcgrad=pcgrad+sac,multihead=true,hidden=[32,32],lr=3e-3,batch=32,start=100,every=4",
    ],
)
def test_two_tasks_that_look_the_same_are_learned_apart(agent, tmp_path):
    """To stand still returns −2.5 in both; a policy that cannot tell them apart does no better."""
    out = str(tmp_path / "run")
    run = perdure.experiment(f"{REACHING}:twins,steps=1000", [agent], out=out, executor="serial")
    frame = run.rows().to_pandas()
    final = frame[frame.block == frame.block.max()].groupby("variant")["return"].mean()
    assert len(final) == 2 and final.min() > -1.0
