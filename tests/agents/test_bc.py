"""Behaviour cloning: recovers a linear demonstrator, keeps its scaling, can be saved."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gymnasium import spaces

from perdure.agents.learners.bc import BCAgent
from perdure.agents.networks.scaling import Standardise
from perdure.errors import AgentFault, SpecError
from perdure.types import Context, Examples, Setup, Transitions

WORLD = Setup(
    spaces.Box(-np.inf, np.inf, (3,), np.float64), spaces.Box(-2.0, 4.0, (2,), np.float32), 1, 0
)


def ctx(n):
    return Context("learn", True, 0, ("t",) * n, np.arange(n), np.zeros(n, bool))


def demonstrations(rng, n=64, shift=0.0):
    inputs = rng.normal(0.7 + shift, 0.05, (n, 3))
    inputs[:, 2] = shift
    wanted = np.stack([10 * (inputs[:, 0] - 0.7 - shift), 1 - 8 * (inputs[:, 1] - 0.7 - shift)], 1)
    return Examples(inputs, np.clip(wanted, -2, 4).astype(np.float32))


def trained(agent, steps, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return [agent.learn(demonstrations(rng, shift=shift), ctx(64))["loss"] for _ in range(steps)]


def test_it_does_what_was_shown():
    agent = BCAgent(WORLD, hidden=(32, 32))
    losses = trained(agent, 400)
    assert losses[-1] < losses[0] / 50
    unseen = demonstrations(np.random.default_rng(9))
    actions = agent.act(unseen.inputs, ctx(64))
    assert actions.dtype == np.float32 and np.abs(actions - unseen.targets).mean() < 0.1
    far = agent.act(np.full((1, 3), 100.0), ctx(1))
    assert WORLD.action_space.contains(far[0])


def test_inputs_are_scaled_by_the_first_minibatch_and_never_again():
    agent = BCAgent(WORLD, hidden=(8,))
    first = demonstrations(np.random.default_rng(0)).inputs
    trained(agent, 1)
    assert agent.standard.mean.tolist() == pytest.approx(first.mean(0), abs=1e-6)
    # A spread of 0.05, or of nothing, is less than is divided by.
    assert agent.standard.std.tolist() == pytest.approx([0.1, 0.1, 0.1])
    before = agent.standard.mean.clone()
    trained(agent, 3, shift=5.0)
    assert torch.equal(agent.standard.mean, before)


def test_the_least_deviation_can_be_chosen_and_what_is_constant_counts_little():
    standard = Standardise((3,), least=0.03)
    # Deviations by hand: 0.01 and 0.05 times the square root of 2, and nothing.
    standard.fit(torch.tensor([[0.0, 0.0, 7.0], [0.02, 0.1, 7.0]]))
    assert standard.std.tolist() == pytest.approx([0.03, 0.05 * 2**0.5, 0.1])
    assert standard(torch.tensor([[0.04, 0.05, 7.1]]))[0].tolist() == pytest.approx(
        [1, 0, 1], abs=1e-5
    )


def test_steps_become_smaller_within_a_block():
    agent = BCAgent(WORLD, hidden=(8,), lr=0.01, optimizer={"halving": 2.0})
    trained(agent, 4)
    assert agent.optimizer.current_lr == pytest.approx(0.01 / 3)
    for kind, learning in (("eval", False), ("learn", True)):
        agent.enter(replace(ctx(0), kind=kind, learning=learning, event="block"))
        assert agent.optimizer.updates == (0 if learning else 4)
    trained(agent, 1)
    assert agent.optimizer.current_lr == pytest.approx(0.01 / 1.5)


def test_a_saved_learner_goes_on_alike():
    one, other = BCAgent(WORLD, hidden=(8,)), BCAgent(WORLD, hidden=(8,))
    trained(one, 5)
    other.load({k: np.array(v) for k, v in one.state().items()})
    assert trained(one, 5, seed=1) == trained(other, 5, seed=1)
    assert all(np.array_equal(v, other.state()[k]) for k, v in one.state().items())


def test_what_it_refuses():
    words = Setup(WORLD.observation_space, spaces.Text(3), 1, 0)
    with pytest.raises(SpecError, match="bc acts in .*, not in Text"):
        BCAgent(words)
    nothing = np.zeros((1, 3))
    moves = Transitions(nothing, nothing, np.zeros(1), *(np.zeros(1, bool),) * 2, nothing)
    with pytest.raises(AgentFault, match="demonstrations"):
        BCAgent(WORLD).learn(moves, ctx(1))
