"""Optimisers on one flat vector against torch.optim, and the schedules of their learning rates."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from perdure.errors import AgentFault, SpecError, UnknownName
from perdure.run.plan import make_agent
from perdure.specs import Spec
from perdure.types import Context, Examples, Setup

torch = pytest.importorskip("torch")

from perdure.agents.learners import sequence_bc
from perdure.agents.networks import optimizers
from perdure.agents.networks.optimizers import OptimizerSettings, make_optimizer, settings_of

STEPS = 50
THEIRS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
CASES: list[dict[str, Any]] = [
    {"name": "adam"},
    {"name": "adam", "eps": 1e-8, "betas": (0.8, 0.99)},
    {"name": "adam", "weight_decay": 0.1},
    {"name": "adamw"},
    {"name": "adamw", "weight_decay": 0.2, "eps": 1e-3},
    {"name": "sgd"},
    {"name": "sgd", "weight_decay": 0.1},
    {"name": "sgd", "momentum": 0.9},
    {"name": "sgd", "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
]


def network() -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))


def minibatches() -> Any:
    return torch.tensor(np.random.default_rng(0).normal(size=(STEPS, 8, 4)), dtype=torch.float32)


def descend(net: Any, optimizer: Any, clip: float | None = 0.5) -> None:
    for x in minibatches():
        optimizer.zero_grad()
        ((net(x) - 1) ** 2).sum().backward()
        if isinstance(optimizer, optimizers.Optimizer):
            optimizer.clip(0.5)
        else:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_numbers_are_those_of_torch(case, fused) -> None:
    settings = settings_of(case)
    mine, theirs = network(), network()
    ours = make_optimizer(mine.parameters(), 0.01, settings)
    if isinstance(ours, optimizers.Adam):
        assert ours.fused  # On the CPU, with the torch that constraints.txt pins.
        ours.fused = fused
    # Without a weight decay of ours AdamW must have that of torch.
    more = {"eps": settings.eps, **{k: v for k, v in case.items() if k != "name"}}
    if case["name"] == "sgd":
        del more["eps"]
    descend(mine, ours)
    descend(theirs, THEIRS[case["name"]](theirs.parameters(), 0.01, **more))
    for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-6)


def test_the_public_way_is_taken_where_the_private_one_is_gone(monkeypatch) -> None:
    monkeypatch.delattr(torch, "_fused_adam_")
    optimizers.fused_works.cache_clear()
    try:
        net = network()
        ours = make_optimizer(net.parameters(), 0.01, OptimizerSettings())
        assert not ours.fused
        descend(net, ours)
    finally:
        optimizers.fused_works.cache_clear()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_saved_optimizer_goes_on_alike(case) -> None:
    settings = replace(settings_of(case), schedule="inverse", halving=3.0)
    nets = [network(), network()]
    ours = [make_optimizer(net.parameters(), 0.01, settings) for net in nets]
    for _ in range(4):
        ours[0].advance(0.5)
    descend(nets[0], ours[0])
    with torch.no_grad():
        ours[1].weights.copy_(ours[0].weights)
    state = ours[0].state("optimizer")
    assert all(name.startswith("optimizer.") for name in state)
    ours[1].load("optimizer", state)
    for net, optimizer in zip(nets, ours, strict=True):
        descend(net, optimizer)
        optimizer.advance(0.5)
    assert torch.equal(ours[0].weights, ours[1].weights)
    assert ours[0].current_lr == ours[1].current_lr == pytest.approx(0.01 / (1 + 5 / 3))


def test_gradients_that_were_cut_off_are_noticed() -> None:
    net = network()
    ours = make_optimizer(net.parameters(), 0.01, OptimizerSettings())
    ours.step()
    net.zero_grad()
    with pytest.raises(AgentFault, match=r"optimizer\.zero_grad"):
        ours.step()


# Schedules.


def rates(settings: OptimizerSettings, *progress: float) -> list[float]:
    return [settings.learning_rate(2.0, p, 1) for p in progress]


def test_schedules() -> None:
    assert rates(OptimizerSettings(), 0.0, 0.5, 1.0) == [2.0, 2.0, 2.0]
    linear = OptimizerSettings(schedule="linear")
    assert rates(linear, 0.0, 0.25, 1.0) == [2.0, 1.5, 0.0]
    cosine = OptimizerSettings(schedule="cosine")
    assert rates(cosine, 0.0, 0.5, 1.0) == pytest.approx([2.0, 1.0, 0.0])
    assert rates(cosine, 0.25) == pytest.approx([1 + math.sqrt(0.5)])
    warm = replace(linear, warmup=0.2)
    assert rates(warm, 0.0, 0.1, 0.2, 0.6, 1.0) == pytest.approx([0.02, 1.0, 2.0, 1.0, 0.0])
    inverse = OptimizerSettings(schedule="inverse", halving=10.0)
    assert [inverse.learning_rate(2.0, 0.0, n) for n in (10, 30)] == [1.0, 0.5]


BOX = spaces.Box(-1, 1, (3,), np.float32)
LABELS = Setup(BOX, spaces.Discrete(3), 1, 0, ("a",))
DEMONSTRATIONS = Setup(BOX, spaces.Box(-1, 1, (2,), np.float32), 1, 0, ("a",))


@pytest.mark.parametrize("learner", ["classifier", "bc"])
def test_a_learner_follows_the_progress_of_its_exposure(learner) -> None:
    setup = LABELS if learner == "classifier" else DEMONSTRATIONS
    text = f'{learner},lr=0.1,hidden=[4],optimizer={{name="sgd", schedule="cosine"}}'
    agent = make_agent(Spec.parse(text), setup)
    x = np.zeros((4, 3), np.float32)
    y = np.zeros(4, np.int64) if learner == "classifier" else np.ones((4, 2), np.float32)
    found = []
    for part in (0.0, 0.5, 1.0):
        where = np.arange(4)
        ctx = Context(
            "learn", True, 0, ("a",) * 4, where, where == 0, fraction=lambda part=part: part
        )
        before = agent.optimizer.weights.clone()
        agent.learn(Examples(x, y), ctx)
        found.append(agent.optimizer.current_lr)
        assert torch.equal(before, agent.optimizer.weights) == (part == 1.0)
    assert found == pytest.approx([0.1, 0.05, 0.0])


def test_settings_from_the_command_line() -> None:
    agent = make_agent(Spec.parse('classifier,optimizer={name="adamw",weight_decay=1e-4}'), LABELS)
    assert agent.optimizer.settings == OptimizerSettings("adamw", weight_decay=1e-4)
    assert make_agent(Spec.parse("classifier,optimizer=adamw"), LABELS).optimizer.settings == (
        OptimizerSettings("adamw", weight_decay=0.01)
    )
    # What a table leaves open is as the learner has it.
    bc = make_agent(Spec.parse("bc,optimizer={eps=1e-8}"), DEMONSTRATIONS)
    assert bc.optimizer.settings == OptimizerSettings(eps=1e-8, schedule="inverse")
    # Of a learner that has AdamW anyway also the weight decay.
    for given in ("adamw", {"name": "adamw", "eps": 1e-8}, {"final": 0.1}):
        told = sequence_bc.SequenceBCSettings(optimizer=given)
        assert told.make_optimizer(network().parameters()).settings == sequence_bc.OPTIMIZER
    # A strategy's agent too.
    kept = make_agent(Spec.parse('ewc+classifier,optimizer={name="sgd",momentum=0.9}'), LABELS)
    assert kept.learner.optimizer.settings.momentum == 0.9


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ("adm", UnknownName, "adam"),
        ({"name": "adam", "scheduel": "linear"}, UnknownName, "schedule"),
        ({"schedule": "cosin"}, UnknownName, "cosine"),
        ({"warmup": 1.5}, SpecError, "warmup"),
        ({"betas": [0.9]}, SpecError, "betas"),
        ({"name": "sgd", "nesterov": True}, SpecError, "momentum"),
        ({"name": "adam", "momentum": 0.9}, SpecError, "momentum has no effect .*'adam'.*'sgd'"),
        ({"name": "sgd", "eps": 1e-8}, SpecError, "'adam' and 'adamw'"),
        ({"name": "sgd", "betas": (0.9, 0.99)}, SpecError, "betas has no effect"),
        ({"final": 0.1}, SpecError, "'constant'.*'linear' and 'cosine'"),
        ({"schedule": "linear", "halving": 5}, SpecError, "'inverse'"),
        ({"halving": 0}, SpecError, "halving"),
        (3, SpecError, "table"),
    ],
)
def test_what_is_no_optimizer_is_refused(given, error, says) -> None:
    with pytest.raises(error, match=says):
        settings_of(given)
