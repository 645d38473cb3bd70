"""SAC: its one loss against its parts, its density against torch's, and a task it must solve."""

import copy

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

import perdure
from perdure.agents.learners.sac import SACAgent
from perdure.errors import SpecError
from perdure.testing import check_agent
from perdure.types import Context, Setup, Transitions


def setup(tasks=("a",), action=None):
    action = action or spaces.Box(np.array([-1, -3], np.float32), np.array([1, 5], np.float32))
    return Setup(spaces.Box(-1, 1, (5,), np.float32), action, 1, 0, tuple(tasks))


def filled(**params):
    agent = SACAgent(setup(("a", "b")), hidden=(8, 8), batch=4, **params)
    rng = np.random.default_rng(1)
    for replay in agent.replays:
        replay.add(
            20, obs=rng.normal(size=(20, 5)), actions=rng.uniform(-1, 1, (20, 2)),
            rewards=rng.normal(size=20), terminated=rng.random(20) < 0.2,
            next_obs=rng.normal(size=(20, 5)),
        )  # fmt: skip
    return agent


def noise_of_the_loss(agent, batch):
    """What the next loss will draw."""
    drawn = copy.deepcopy(agent.rng).standard_normal((2, *batch["actions"].shape), np.float32)
    return torch.tensor(drawn)


def gradients(agent, loss):
    agent.optimizer.zero_grad()
    loss.backward()
    return {n: p.grad.clone() for n, p in agent.net.named_parameters()}


@pytest.mark.parametrize("multihead", [False, True])
def test_each_part_moves_only_what_it_should(multihead):
    """The critics' gradient is that of the squared error alone, the policy's that of entropy and
    worth alone, the temperature's that of the entropy's distance from its aim alone."""
    agent = filled(multihead=multihead)
    batch = agent.sample()
    noise, next_noise = noise_of_the_loss(agent, batch)
    found = gradients(agent, agent.loss(batch)[0])
    net, task = agent.net, batch["task"]
    alpha = net.log_alpha.detach().exp()[task]
    with torch.no_grad():
        after, logs = net.policy(batch["next_obs"], task, next_noise)
        worth = net.values(batch["next_obs"], after, task, agent.target_critics).min(0).values
        goal = batch["rewards"] + agent.settings.gamma * batch["alive"] * (worth - alpha * logs)
    values = net.values(batch["obs"], batch["actions"], task)
    critic = gradients(agent, ((values[0] - goal) ** 2).mean() + ((values[1] - goal) ** 2).mean())
    chosen, logs = net.policy(batch["obs"], task, noise)
    worth = net.values(batch["obs"], chosen, task).min(0).values
    actor = gradients(agent, (alpha * logs - worth).mean())
    _, logs = net.policy(batch["obs"], task, noise)
    aim = (net.log_alpha[task] * (-logs.detach() + 2)).mean()
    heat = gradients(agent, aim)
    for name, value in found.items():
        part = critic if name.startswith("critics") else actor if name.startswith("actor") else heat
        assert torch.allclose(value, part[name], atol=1e-6), name


def test_density_is_that_of_a_squashed_gaussian():
    agent = filled()
    batch = agent.sample()
    noise, _ = noise_of_the_loss(agent, batch)
    chosen, logs = agent.net.policy(batch["obs"], batch["task"], noise)
    mean, log_std = agent.net.gaussian(batch["obs"], batch["task"])
    squashed = TransformedDistribution(
        Independent(Normal(mean, log_std.exp()), 1), [TanhTransform(cache_size=1)]
    )
    raw = mean + log_std.exp() * noise
    assert torch.allclose(chosen, torch.tanh(raw))
    assert torch.allclose(logs, squashed.log_prob(torch.tanh(raw)), atol=1e-4)


def test_heads_are_apart():
    """A task's rows leave the other task's head alone."""
    agent = filled(multihead=True)
    agent.replays[1].clear()
    grads = gradients(agent, agent.loss(agent.sample())[0])
    last = grads["actor.weights.2"][0]
    assert last[:, :4].abs().sum() > 0 and last[:, 4:].abs().sum() == 0


def test_actions_fill_their_space():
    agent = SACAgent(setup(), hidden=(8,), start=10)
    ctx = Context("learn", True, 0, ("a",) * 200, np.arange(200), np.zeros(200, bool))
    drawn = agent.act(np.zeros((200, 5), np.float32), ctx)
    assert (drawn >= [-1, -3]).all() and (drawn <= [1, 5]).all()
    assert drawn[:, 1].min() < -2 and drawn[:, 1].max() > 4


def test_it_keeps_its_promises():
    check_agent("sac,hidden=[16,16],start=20,batch=8")


def test_discrete_actions_are_refused():
    with pytest.raises(SpecError, match="acts in Box spaces"):
        SACAgent(setup(action=spaces.Discrete(3)))


@pytest.mark.slow
def test_it_solves_reach(tmp_path):
    run = perdure.experiment(
        f"{perdure.__path__[0]}/../../tests/agents/reaching.py:reach",
        ["sac,hidden=[32,32],start=100,lr=3e-3,batch=64,every=2"],
        out=str(tmp_path / "run"),
        executor="serial",
    )
    frame = run.rows().to_pandas()
    final = frame[(frame.kind == "eval") & (frame.block == frame.block.max())]
    assert final.success.mean() >= 0.9


def two(**params):
    """An agent of two slots, and a function that steps both in two tasks side by side."""
    space = spaces.Box(-1, 1, (5,), np.float32)
    agent = SACAgent(Setup(space, space, 2, 0, ("a", "b")), hidden=(8,), batch=4, **params)
    agent.enter(Context("learn", True, 0, ("a", "b"), np.arange(2), np.ones(2, bool), "task"))
    ctx = Context("learn", True, 0, ("a", "b"), np.arange(2), np.zeros(2, bool))
    obs, off = np.zeros((2, 5), np.float32), np.zeros(2, bool)

    def step():
        agent.learn(Transitions(obs, agent.act(obs, ctx), np.ones(2), off, off, obs), ctx)

    return agent, step


def test_random_steps_count_for_each_task_side_by_side():
    agent, step = two(start=5)
    for k in range(1, 8):
        step()
        assert agent.starting == (k < 5)
    assert agent.optimizer.steps == 2 * 3


@pytest.mark.parametrize(("every", "updates"), [(0, 6), (1, 12), (2, 6), (3, 4), (4, 3)])
def test_updates_are_counted_by_steps_or_by_steps_of_all_slots(every, updates):
    agent, step = two(start=0, every=every)
    for _ in range(6):
        step()
    assert agent.optimizer.steps == updates


def test_a_new_task_empties_the_replays_unless_told_not_to():
    for restart, kept in ((True, 0), (False, 3)):
        agent, step = two(start=100, restart=restart)
        for _ in range(3):
            step()
        again = Context("learn", True, 1, ("a", "b"), np.arange(2), np.ones(2, bool), "task")
        agent.enter(again)
        assert [len(r) for r in agent.replays] == [3, 3]
        agent.enter(Context("learn", True, 2, ("b",), np.arange(1), np.ones(1, bool), "task"))
        assert [len(r) for r in agent.replays] == [kept, kept]
        assert agent.steps == (0 if restart else 6)


@pytest.mark.parametrize("restart", [True, False])
def test_an_adapt_block_is_learned_from_alone_and_leaves_nothing(restart):
    agent = filled(restart=restart, start=0)
    kept = agent.state()
    rows = [np.array(r.take(np.arange(20))["rewards"]) for r in agent.replays]
    ctx = Context("adapt", True, 3, None, np.arange(1), np.zeros(1, bool), event="task")
    agent.enter(ctx)
    assert [len(r) for r in agent.replays] == ([0, 0] if restart else [20, 20])
    obs = np.zeros((1, 5), np.float32)
    never = np.zeros(1, bool)
    agent.learn(Transitions(obs, agent.act(obs, ctx), np.ones(1), never, never, obs), ctx)
    assert len(agent.replays[0]) == (1 if restart else 21)
    agent.load(kept)
    assert [len(r) for r in agent.replays] == [20, 20] and agent.aside is None
    for replay, was in zip(agent.replays, rows, strict=True):
        assert np.array_equal(replay.take(np.arange(20))["rewards"], was)
