"""Strategies with reinforcement learners of continuous actions: they resume, and they keep."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import perdure
from perdure.agents.compose import make_agent
from perdure.errors import SpecError
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.specs import Spec
from perdure.testing import check_agent
from perdure.types import Context, Setup, Transitions

torch = pytest.importorskip("torch")

from perdure.agents.learners.sac import SACAgent
from perdure.agents.strategies.fisher import fisher

REACHING = Path(__file__).with_name("reaching.py")
SAC = "hidden=[16,16],start=20,batch=8,every=4"
PPO = "rollout=32,batch=16,epochs=2"


@pytest.mark.parametrize(
    "agent",
    [
        f"ewc+sac,{SAC},samples=20",
        f"packnet+sac,{SAC},retrain=5,memory=20",
        f"replay+sac,{SAC},memory=30",
        f"agem+sac,{SAC}",
        f"ewc+sac,preset=quick,{SAC},multihead=true,samples=20",
        f"ewc+ppo,{PPO},samples=20",
        f"si+ppo,{PPO},baseline=linear",
        f"packnet+ppo,{PPO},retrain=5,memory=20",
        f"ewc+te,{PPO},samples=20,embedding=2,window=3",
    ],
)
def test_a_life_of_two_tasks_resumes_to_the_bit(agent):
    """Killed after its first, a middle and its last commit, it ends with the same rows."""
    assert check_agent(agent, (f"{REACHING}:turn",)) == []


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("replay+ppo", "drawn by an older policy"),
        ("agem+ppo", "drawn by an older policy"),
        ("replay+te", "drawn by an older policy"),
        ("ewc+trpo", "line search"),
    ],
)
def test_pairs_that_mean_nothing_are_refused_at_planning(agent, says):
    with pytest.raises(SpecError, match=says):
        make_plan(RunSpec(f"{REACHING}:turn", (agent,)))


def final(tmp_path, agent):
    """Mean returns of the first task and the second, at the end of a life of both."""
    run = perdure.experiment(
        f"{REACHING}:turn,steps=3000,episodes=10",
        [f"lived={agent}"],
        out=str(tmp_path / agent.partition(",")[0]),
        executor="serial",
    )
    frame = run.rows().to_pandas()
    last = frame[frame.block == frame.block.max()].groupby("variant")["return"].mean()
    return last["with"], last["against"]


def test_packnet_keeps_what_ppo_forgets(tmp_path):
    """The second task wants the opposite of the first, to stand still returns about −2.5."""
    first, second = final(tmp_path, "ppo,preset=quick,gamma=0.5")
    assert first < -4 and second > -0.8
    first, second = final(tmp_path, "packnet+ppo,preset=quick,gamma=0.5,prune=0.5")
    assert first > -0.8 and second > -0.8


@pytest.mark.parametrize("multihead", [False, True])
def test_fisher_of_sac_is_that_of_single_samples(multihead):
    """Its stacked layers are no nn.Linear, so they go the long way; critics have no part in it."""
    space = spaces.Box(-1, 1, (2,), np.float32)
    setup = Setup(space, space, 1, 0, ("a", "b"))
    sac = SACAgent(setup, hidden=(5,), multihead=multihead)
    with torch.no_grad():
        sac.net.actor.weights[-1].mul_(500)
    rng = np.random.default_rng(0)
    rows = {
        "obs": torch.tensor(rng.normal(size=(6, 2)), dtype=torch.float32),
        "task": torch.tensor([0, 1, 1, 0, 1, 0]),
    }
    found = fisher(sac, rows, "sampled", np.random.default_rng(1))
    noise = np.random.default_rng(1).standard_normal(size=(6, 4)).astype(np.float32)
    total = torch.zeros_like(found)
    for i in range(6):
        one = {name: v[i : i + 1] for name, v in rows.items()}
        mean, log_std = sac.predict(one)[0].chunk(2)
        by_mean, by_log_std = torch.tensor(noise[i]).chunk(2)
        least = log_std.detach().exp().clamp(min=0.01)
        score = -(by_mean / least * mean + by_log_std * 2**0.5 * log_std).sum()
        parts = torch.autograd.grad(
            score, sac.optimizer.parameters, allow_unused=True, materialize_grads=True
        )
        total += torch.cat([g.reshape(-1) for g in parts]).square()
    assert torch.allclose(found, total / 6, rtol=1e-4, atol=1e-6) and found.max() > 0
    size = sum(p.numel() for p in sac.net.critics.parameters())
    assert (found == 0).sum() >= size


@pytest.mark.parametrize("name", ["sac", "ppo"])
def test_the_information_of_a_gaussian_policy_is_the_variance_of_its_score(name):
    """By drawing many actions: not that of a Gaussian of unit variance, which is far smaller."""
    space = spaces.Box(-1, 1, (2,), np.float32)
    agent = make_agent(Spec.parse(name), Setup(space, space, 1, 0, ("a",)))
    outputs, std = torch.tensor([[0.3, -0.2]]), torch.tensor([[0.1, 0.5]])
    if name == "sac":
        outputs = torch.cat([outputs, std.log()], 1)
    else:
        with torch.no_grad():
            agent.policy.log_std.copy_(std[0].log())
    leaf = outputs.clone().requires_grad_()
    many = leaf.expand(200_000, -1)
    mean = many[:, :2]
    spread = many[:, 2:].exp() if name == "sac" else std
    normal = torch.distributions.Normal(mean, spread)
    rng = np.random.default_rng(0)
    noise = torch.tensor(rng.standard_normal((len(many), 2)), dtype=torch.float32)
    action = (mean + spread * noise).detach()
    # Each row's own gradient, since rows do not meet.
    (score,) = torch.autograd.grad(normal.log_prob(action).sum(), many)
    found = agent.output_fisher({}, outputs).detach()
    assert torch.allclose(found, score.var(0), rtol=0.03)
    assert found[0, 0] == pytest.approx(100, rel=1e-3), "1/σ²"


@pytest.mark.parametrize("learner", [f"sac,{SAC}", "dqn,batch=8,every=4,hidden=[8]"])
@pytest.mark.parametrize("strategy", ["replay,memory=200", "ewc,samples=200", "agem,quota=200"])
def test_what_is_kept_of_a_task_is_uniform_in_time(learner, strategy):
    """Each transition is offered once: minibatches would have offered the old ones over and over."""
    name, _, params = strategy.partition(",")
    actions = spaces.Discrete(2) if learner.startswith("dqn") else spaces.Box(-1, 1, (1,))
    setup = Setup(spaces.Box(-np.inf, np.inf, (1,)), actions, 1, 0, ("a",))
    agent = make_agent(Spec.parse(f"{name}+{learner},{params}"), setup)
    none = np.zeros(0, bool)
    for event in ("lifetime", "block", "task"):
        agent.enter(Context("learn", True, 0, ("a",), np.zeros(0, int), none, event))
    ctx = Context("learn", True, 0, ("a",), np.zeros(1, int), np.zeros(1, bool))
    steps, never = 800, np.zeros(1, bool)
    for t in range(steps):
        obs = np.full((1, 1), t, np.float32)
        action = np.zeros(1, int) if learner.startswith("dqn") else np.zeros((1, 1), np.float32)
        agent.learn(Transitions(obs, action, np.zeros(1), never, never, obs + 1), ctx)
    keep = agent.strategy
    kept = {
        "replay": lambda: keep.reservoir,
        "ewc": lambda: keep.seen,
        "agem": lambda: keep.memory.tasks[0],
    }
    times = kept[name]().all()["obs"][:, 0].numpy()
    quarters = np.histogram(times, 4, (0, steps))[0]
    assert len(set(times)) == 200 and quarters.min() > 30, "of 50 expected, with a deviation of 5.3"


def test_packnet_prunes_the_policy_alone_and_fixes_a_head_with_its_task():
    space = spaces.Box(-1, 1, (2,), np.float32)
    setup = Setup(space, space, 1, 0, ("a", "b"))
    agent = make_agent(Spec.parse("packnet+sac,hidden=[8,8],multihead=true,retrain=0"), setup)
    keep, named = agent.strategy, agent.learner.parameters()
    before = {name: p.detach().clone() for name, p in named.items()}
    none = np.zeros(0, bool)
    for task in "ab":
        agent.enter(Context("learn", True, 0, (task,), np.zeros(0, int), none, "task"))
    owner = dict(zip(named, keep.owner.split([p.numel() for p in named.values()]), strict=True))
    for name, p in named.items():
        if name.startswith(("critics", "log_alpha")) or name == "actor.weights.2":
            assert torch.equal(p, before[name]), f"{name} was pruned"
        if name.startswith(("critics", "log_alpha")):
            assert not owner[name].any(), f"{name} is owned"
    for name in ("actor.weights.0", "actor.weights.1"):
        assert (named[name] == 0).float().mean() == pytest.approx(0.75, abs=0.02)
    head = owner["actor.weights.2"].view(8, 2, 4)
    assert (head[:, 0] == 1).all() and (head[:, 1] == 0).all(), "a's head is a's, b's is free"


def test_packnet_learns_again_with_critics_that_go_on_learning():
    """By critics that stand still a policy would find their mistakes: they learn on, and all of the policy
    that is not the task's stays."""
    space = spaces.Box(-1, 1, (2,), np.float32)
    setup = Setup(space, space, 1, 0, ("a", "b"))
    agent = make_agent(
        Spec.parse("packnet+sac,hidden=[8,8],multihead=true,retrain=3,memory=20,start=0"), setup
    )
    keep, named = agent.strategy, agent.learner.parameters()
    one, none, rng = np.zeros(1, int), np.zeros(0, bool), np.random.default_rng(0)
    agent.enter(Context("learn", True, 0, ("a",), one, none, "task"))
    for _ in range(20):
        obs, after = rng.uniform(-1, 1, (2, 1, 2)).astype(np.float32)
        ctx = Context("learn", True, 0, ("a",), one, np.zeros(1, bool), "")
        ended = np.zeros(1, bool)
        agent.learn(Transitions(obs, agent.act(obs, ctx), np.ones(1), ended, ended, after), ctx)
    before = {name: p.detach().clone() for name, p in named.items()}
    agent.enter(Context("learn", True, 0, ("b",), one, none, "task"))
    owner = dict(zip(named, keep.owner.split([p.numel() for p in named.values()]), strict=True))
    for name, p in named.items():
        if name.startswith(("critics", "log_alpha")):
            moved = p != before[name]
            assert moved.any(), f"{name} stood still"
    free = owner["actor.weights.1"].view_as(named["actor.weights.1"]) == 0
    assert (named["actor.weights.1"][free] == 0).all(), "what was pruned does not grow again"


def test_lwf_holds_the_old_heads_and_not_the_new_one():
    space = spaces.Box(-1, 1, (2,), np.float32)
    setup = Setup(space, space, 1, 0, ("a", "b", "c"))
    agent = make_agent(Spec.parse("lwf+sac,hidden=[8],multihead=true"), setup)
    none = np.zeros(0, bool)
    for task in "abc":
        agent.enter(Context("learn", True, 0, (task,), np.zeros(0, int), none, "task"))
        agent.learner.optimizer.weights.add_(0.01)
    batch = {"obs": torch.ones(5, 2), "task": torch.full((5,), 2)}
    zero = torch.zeros(())
    held = agent.strategy.objective(batch, zero)
    now, old = agent.learner.predict_heads(batch), agent.strategy.teacher.net
    before = old.gaussians(batch["obs"], batch["task"])
    expected = sum((now[:, k] - before[:, k]).square().sum(1).mean() / 2 for k in (0, 1))
    assert held.item() == pytest.approx(expected.item(), rel=1e-5) and held.item() > 0
    held.backward()
    last = agent.learner.net.actor.weights[-1].grad[0].view(8, 3, 4)
    assert last[:, :2].abs().sum() > 0 and last[:, 2].abs().sum() == 0
