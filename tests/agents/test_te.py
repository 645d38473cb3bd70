"""Task embeddings: the augmented reward by hand, its parts, and two tasks that look the same."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import perdure
from perdure.errors import SpecError
from perdure.testing import check_agent
from perdure.types import Context, Setup, Transitions

torch = pytest.importorskip("torch")
from torch.distributions import Independent, Normal

from perdure.agents.learners.te import TEAgent, earlier, gaussian, log_density

REACHING = Path(__file__).with_name("reaching.py")
BOX = spaces.Box(-1, 1, (2,), np.float32)


def small(tasks=("a", "b"), slots=2, **params):
    setup = Setup(BOX, BOX, slots, 0, tuple(tasks))
    return TEAgent(setup, **{"embedding": 3, "window": 3, "rollout": 50, "batch": 8, **params})


def step(agent, episode_start, tasks=("a", "b"), truncated=False, obs=None):
    n = len(tasks)
    ctx = Context("learn", True, 0, tuple(tasks), np.arange(n), np.array(episode_start))
    seen = np.zeros((n, 2), np.float32) if obs is None else np.float32(obs)
    actions = agent.act(seen, ctx)
    off, cut = np.zeros(n, bool), np.full(n, truncated)
    agent.learn(Transitions(seen, actions, np.ones(n), off, cut, seen + 0.5), ctx)


def filled(**params):
    agent = small(**params)
    rng = np.random.default_rng(0)
    for k in range(12):
        begins = k % 4 == 0
        step(agent, [begins] * 2, truncated=k % 4 == 3, obs=rng.uniform(-0.5, 0.5, (2, 2)))
    return agent


def test_augmented_reward_by_hand():
    agent = small(inference=0.05, entropy=0.02)
    rewards, log_q = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, -10.0, 10.0])
    log_prob = torch.tensor([-1.0, 0.0, 2.0])

    def softplus(x):
        return np.log1p(np.exp(x))

    # The second guess is worse than −3 counts, the third better than 3 counts.
    expected = [
        1 - 0.05 * softplus(-0.5) + 0.02 * softplus(1.0),
        2 - 0.05 * softplus(3.0) + 0.02 * softplus(0.0),
        3 - 0.05 * softplus(-3.0) + 0.02 * softplus(-2.0),
    ]
    assert agent.augmented(rewards, log_q, log_prob).tolist() == pytest.approx(expected)


def test_the_rollout_is_judged_by_augmented_rewards():
    """Advantages are those of r + price + prize, computed here from the networks."""
    agent = filled(lam=0.9, gamma=0.8)
    data, windows = agent.rollout_data()
    from perdure.agents.networks.rollout_buffer import gae, linear_values

    rows = agent.rows.trajectories()
    task, noise = torch.tensor(rows["task"]), torch.tensor(rows["noise"])
    with torch.no_grad():
        mean, log_std = agent.encode_task(task)
        z = mean + log_std.exp() * noise
        obs = agent.inputs(rows["obs"])
        outputs = agent.net.actor(torch.cat([obs, z], 1))
        spread = agent.policy.log_std.exp()
        log_pi = Normal(outputs, spread).log_prob(torch.tensor(rows["sampled_actions"])).sum(1)
        guess = gaussian(agent.net.inference(windows(torch.arange(24))), 2.0, np.inf)
        log_q = Normal(guess[0], guess[1].exp()).log_prob(z).sum(1)
    assert torch.allclose(data["z"], z)
    unclear = np.log1p(np.exp(np.clip(-log_q.numpy(), -3, 3)))
    varied = np.log1p(np.exp(-log_pi.numpy()))
    rows["rewards"] = (1 - 0.05 * unclear + 0.02 * varied).astype(np.float32)
    after = torch.cat([agent.inputs(rows["next_obs"]), z], 1)
    values, later = linear_values(rows, torch.cat([obs, z], 1), after, 0.8)
    plain = gae(rows["rewards"], values, later, rows["cut"], 0.8, 0.9)
    expected = (plain - plain.mean()) / plain.std()
    assert data["advantages"].numpy() == pytest.approx(expected, abs=1e-3)
    assert data["discount"].tolist() == pytest.approx([0.8**t for t in [0, 1, 2, 3] * 6])


def test_windows_end_with_what_followed_and_begin_with_their_episode():
    cut = np.array([False, False, True, False, True])
    assert earlier(cut, 2).tolist() == [[0, 0], [0, 1], [1, 2], [3, 3], [3, 4]]
    assert earlier(cut, 0).shape == (5, 0)
    agent = small(("a",), slots=1, window=3)
    for k in range(3):
        step(agent, [k == 0], ("a",), obs=[[k / 10, -k / 10]])
    _, windows = agent.rollout_data()
    third = windows(torch.tensor([2]))[0].tolist()
    assert third == pytest.approx([0.1, -0.1, 0.2, -0.2, 0.7, 0.3])
    first = windows(torch.tensor([0]))[0].tolist()
    assert first == pytest.approx([0, 0, 0, 0, 0.5, 0.5])


def test_densities_are_torchs_and_spreads_bounded():
    out = torch.tensor([[0.3, -4.0, 50.0, -50.0]])
    mean, log_std = gaussian(out, 0.1, 0.2)
    assert mean.tolist()[0] == pytest.approx(np.tanh([0.3, -4.0]))
    assert log_std.exp().tolist()[0] == pytest.approx([0.2, 1e-6])
    z = torch.tensor([[0.1, 0.2], [0.4, -0.1]])
    mean, log_std = torch.tensor([[0.0, 0.5]]), torch.tensor([[-1.0, 0.3]])
    expected = Independent(Normal(mean, log_std.exp()), 1).log_prob(z)
    assert torch.allclose(log_density(z, mean, log_std), expected)


def test_a_point_is_drawn_once_an_episode_and_slot():
    agent = small()
    step(agent, [True, True])
    first = agent.noise.copy()
    step(agent, [False, False])
    assert np.array_equal(agent.noise, first)
    step(agent, [False, True])
    assert np.array_equal(agent.noise[0], first[0])
    assert not np.isclose(agent.noise[1], first[1]).any()
    assert np.array_equal(agent.rows["noise"][-2:], agent.noise)


def test_in_evaluation_the_point_is_the_tasks_mean_and_nothing_is_drawn():
    agent = small()
    before = agent.state()
    ctx = Context("eval", False, 0, ("a", "b"), np.arange(2), np.ones(2, bool))
    obs = np.zeros((2, 2), np.float32)
    with torch.no_grad():
        z = agent.encode_task(torch.tensor([0, 1]))[0]
        means = agent.net.actor(torch.cat([torch.zeros(2, 2), z], 1))
    assert np.array_equal(agent.act(obs, ctx), means.numpy())
    assert all(np.array_equal(v, before[k]) for k, v in agent.state().items())


def test_ratios_are_one_before_the_first_step():
    agent = filled()
    data, windows = agent.rollout_data()
    everything = {**data, "window": windows(torch.arange(24))}
    log_prob, _ = agent.policy.log_prob(agent.predict(everything), data["sampled_actions"])
    assert torch.allclose(log_prob, data["log_prob"], atol=1e-6)


def test_each_loss_moves_its_own_networks():
    agent = filled(encoder_entropy=0.0)
    data, windows = agent.rollout_data()
    everything = {**data, "window": windows(torch.arange(24))}

    def moved(**change):
        agent.optimizer.zero_grad()
        agent.loss({**everything, **change})[0].backward()
        return {n.split(".")[0] for n, p in agent.net.named_parameters() if p.grad.any()}

    policy = {"policy", "encoder", "actor"}
    assert moved() == policy | {"inference"}
    assert moved(advantages=torch.zeros(24)) == {"inference"}
    assert moved(discount=torch.zeros(24)) == policy


def test_entropy_widens_the_places():
    agent = filled(encoder_entropy=1.0)
    data, windows = agent.rollout_data()
    still = {"advantages": torch.zeros(24), "window": windows(torch.arange(24))}
    before = agent.encode_task(data["task"])[1].mean().item()
    for _ in range(20):
        agent.descend({**data, **still})
    assert agent.encode_task(data["task"])[1].mean().item() > before + 0.01


def test_two_tasks_that_look_the_same_are_both_learned(tmp_path):
    """To stand still returns −2.5 in both; a policy that cannot tell them apart does no better."""
    run = perdure.experiment(
        f"{REACHING}:twins,steps=3000",
        ["te,rollout=200,std=0.5,lr=3e-3,embedding=2,window=4"],
        out=str(tmp_path / "run"),
        executor="serial",
    )
    frame = run.rows().to_pandas()
    final = frame[frame.block == frame.block.max()].groupby("variant")["return"].mean()
    assert len(final) == 2 and final.min() > -1.2


def test_it_keeps_its_promises():
    small = "te,rollout=16,batch=8,epochs=2,embedding=2,window=3"
    check_agent(small, ("toy/check", "toy/check,task=reach"))


def test_hidden_tasks_and_images_are_refused():
    with pytest.raises(SpecError, match="layer widths"):
        small(hidden=[])
    with pytest.raises(SpecError, match="do not hide"):
        TEAgent(Setup(BOX, BOX, 1, 0, ()))
    picture = spaces.Box(0, 1, (20, 20, 3), np.float32)
    with pytest.raises(SpecError, match="te reads .*, not image as in"):
        TEAgent(Setup(picture, BOX, 1, 0, ("a",)))
