"""The classifier's networks and presets, its dropout, and rows kept as bytes."""

from __future__ import annotations

import copy
import itertools
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from perdure.agents.compose import make_agent
from perdure.errors import SpecError, UnknownName
from perdure.registry import entries, load
from perdure.specs import Spec
from perdure.types import Context, Examples, Setup

torch = pytest.importorskip("torch")

from perdure.agents.networks.encoders import Dropout
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import new_rows
from perdure.agents.strategies.row_memory import UniqueBuffer


def setup(*shape: int, dtype: Any = np.uint8, classes: int = 5) -> Setup:
    return Setup(spaces.Box(0, 255, shape, dtype), spaces.Discrete(classes), 1, 0)


def made(spec: str, where: Setup) -> Any:
    agent = make_agent(Spec.parse(spec), where)
    agent.rng = np.random.default_rng(3)
    return agent


def pictures(side: int, n: int = 6, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    shown = rng.integers(256, size=(n, side, side, 3)).astype(np.uint8)
    return Examples(shown, rng.integers(5, size=n))


CTX = Context("learn", True, 0, ("a",) * 6, np.arange(6), np.zeros(0, int))


def size(net: Any) -> int:
    return sum(p.numel() for p in net.parameters())


def test_the_authors_network() -> None:
    where = Setup(spaces.Box(0, 255, (50, 50, 3), np.uint8), spaces.Discrete(121), 1, 0)
    agent = made("classifier,preset=openloris", where)
    # Thirteen convolutions with norms, and 512-4096-4096-121.
    widths = [3, 64, 64, 128, 128, *[256] * 3, *[512] * 6]
    convolutions = sum(9 * a * b + 2 * b for a, b in itertools.pairwise(widths))
    linear = sum((a + 1) * b for a, b in ((512, 4096), (4096, 4096), (4096, 121)))
    assert size(agent.net) == convolutions + linear and round(size(agent.net) / 1e6, 1) == 34.1
    assert agent.optimizer.lr == 1e-4
    drops = [m for m in agent.net.modules() if isinstance(m, Dropout)]
    assert [d.probability for d in drops] == [0.5, 0.5]


def test_presets_reach_strategies_and_explicit_values_win() -> None:
    ewc = made("ewc+classifier,preset=openloris,convolutions=small,hidden=[8]", setup(32, 32, 3))
    keep = ewc.strategy
    assert (keep.strength, keep.seen.capacity, keep.divisor) == (5240.0, 12_283, "n-1")
    assert ewc.learner.optimizer.lr == 1e-4 and ewc.learner.net[1].in_features == 8
    small = made("online_ewc+classifier,preset=openloris-small,strength=7", setup(32, 32, 3))
    assert small.strategy.strength == 7 and small.strategy.decay == 1
    authors = made("online_ewc+classifier,preset=openloris-small", setup(32, 32, 3)).strategy
    assert authors.strength == 5240.0
    kinds = [load("strategies", name) for name in entries("strategies")]
    for kind in kinds:
        for base in kind.__mro__[1:]:
            assert set(getattr(base, "presets", ())) <= set(getattr(kind, "presets", ())), kind
    si = made("si+classifier,preset=openloris-small", setup(32, 32, 3)).strategy
    assert (si.strength, si.damping) == (0.3, 0.2)
    with pytest.raises(UnknownName, match="openloris-small"):
        made("ewc+classifier,preset=openloris-smal", setup(32, 32, 3))


def test_feedback_has_the_authors_mlp_and_generators_their_vae() -> None:
    rtf = made("rtf+classifier,preset=openloris", setup(50, 50, 3, classes=121))
    assert size(rtf.learner.net) == 7501 * 400 + 401 * 400 + 401 * 121
    decoder = rtf.strategy.feedback.net.decoder
    assert size(decoder) == 101 * 400 + 401 * 400 + 401 * 7500
    dgr = made(
        "dgr+classifier,preset=openloris,convolutions=none,hidden=[4]",
        setup(50, 50, 3, classes=121),
    )
    vae = dgr.strategy.generator.net
    assert size(vae.encoder) == 7501 * 400 + 401 * 400 and size(vae.decoder) == size(decoder)


def test_networks_are_refused_where_they_do_not_fit() -> None:
    with pytest.raises(SpecError, match="one of plain, none, small, vgg16"):
        made("classifier,convolutions=vgg", setup(50, 50, 3))
    with pytest.raises(SpecError, match="32 pixels are one, got 24"):
        made("classifier,convolutions=vgg16", setup(24, 24, 3))
    with pytest.raises(SpecError, match="dropout"):
        made("classifier,dropout=1", setup(50, 50, 3))
    with pytest.raises(SpecError, match="'norm' must be one of batch, frozen, group, none"):
        made("classifier,convolutions=small,norm=layer", setup(32, 32, 3))


SMALL = "classifier,convolutions=small,hidden=[16]"


def test_norms_with_and_without_statistics() -> None:
    kinds = {
        norm: [
            type(m).__name__ for m in made(f"{SMALL},norm={norm}", setup(32, 32, 3)).net.modules()
        ]
        for norm in ("batch", "group", "none")
    }
    assert kinds["batch"].count("BatchNorm2d") == 3 and kinds["group"].count("GroupNorm") == 3
    assert not any("Norm" in kind for kind in kinds["none"])
    # Two tasks; the second is darker. What a batch norm knows of the first is lost.
    light = pictures(32)
    dark = Examples((light.inputs // 8).astype(np.uint8), light.targets)
    first, second = CTX, replace(CTX, block=2, tasks=("b",) * 6)
    for norm, kept in (("batch", False), ("frozen", True), ("group", True)):
        agent = made(f"ewc+{SMALL},norm={norm},lr=0,strength=0", setup(32, 32, 3))
        agent.enter(replace(first, event="task"))
        for _ in range(3):
            agent.learn(light, first)
        logits = answers(agent, light)
        agent.enter(replace(first, block=1, event="task"))  # The same task once more.
        saved = agent.state()
        agent.learn(dark, first)
        assert np.array_equal(answers(agent, light), logits) == (norm == "group")
        agent.load(saved)
        agent.enter(replace(second, event="task"))
        agent.learn(dark, second)
        assert np.array_equal(answers(agent, light), logits) == kept
        # A resumed agent knows that its norms are frozen.
        other = made(f"ewc+{SMALL},norm={norm},lr=0,strength=0", setup(32, 32, 3))
        other.load(agent.state())
        other.learn(dark, second)
        assert np.array_equal(answers(other, light), logits) == kept


def answers(agent: Any, examples: Examples) -> Any:
    net = agent.learner.net.eval()
    with torch.no_grad():
        out = net(agent.learner.inputs(examples.inputs)).numpy()
    net.train()
    return out


def test_dropout_drops_its_part_and_keeps_the_mean() -> None:
    rng = np.random.default_rng(0)
    drop = Dropout(0.25, lambda: rng)
    x = torch.full((400, 100), 3.0)
    out = drop(x)
    assert sorted(set(out.flatten().tolist())) == [0.0, 4.0]
    assert abs(float((out == 0).float().mean()) - 0.25) < 0.01
    assert drop.eval()(x) is x


def test_dropout_draws_from_the_agent_and_leaves_torch_alone() -> None:
    agent = made("classifier,dropout=0.5,convolutions=small,hidden=[16]", setup(32, 32, 3))
    batch = pictures(32)
    before = torch.random.get_rng_state()
    agent.learn(batch, CTX)
    # Acting drops nothing and draws nothing.
    drawn = copy.deepcopy(agent.rng.bit_generator.state)
    agent.act(batch.inputs, CTX)
    assert agent.rng.bit_generator.state == drawn
    assert torch.equal(torch.random.get_rng_state(), before)
    # From the same state, with the same generator, the next step is the same.
    saved = agent.state()
    other = made("classifier,dropout=0.5,convolutions=small,hidden=[16]", setup(32, 32, 3))
    other.load(saved)
    other.rng.bit_generator.state = drawn
    assert agent.learn(batch, CTX) == other.learn(batch, CTX)
    mine, theirs = agent.state(), other.state()
    assert all(mine[k].tobytes() == theirs[k].tobytes() for k in mine)


@pytest.mark.parametrize(
    ("space", "kept"),
    [
        (spaces.Box(0, 255, (20, 20, 3), np.uint8), np.uint8),
        (spaces.Box(0, 10, (7, 7, 3), np.uint8), np.uint8),  # symbols: ones and zeros
        (spaces.Box(0, 3, (20, 20, 3), np.uint8), np.uint8),
        (spaces.Box(0, 1, (20, 20, 1), np.uint8), np.uint8),
        (spaces.Box(0, 255, (5,), np.uint8), np.uint8),
        (spaces.Box(0, 255, (20, 20, 3), np.float32), np.float32),
        (spaces.Discrete(4), np.uint8),
        (spaces.Box(0, 6, (9,), np.float32), np.float32),
        (spaces.Box(0, 1, (20, 20, 3), np.float32), np.float32),
    ],
)
def test_rows_that_came_as_bytes_are_kept_as_bytes(space: Any, kept: Any) -> None:
    space.seed(0)
    inputs = Inputs(space)
    x = inputs(np.stack([space.sample() for _ in range(30)]))
    memory = UniqueBuffer(inputs)
    memory.offer(new_rows({"obs": x, "targets": torch.arange(30)}))
    assert memory.columns["obs"].dtype == kept and len(memory) == 30
    again = UniqueBuffer(inputs)
    again.load("m", memory.state("m"))
    again.offer(new_rows({"obs": x, "targets": torch.arange(30)}))
    assert len(again) == 30
    assert torch.equal(again.at(np.arange(30))["obs"], x)


def test_every_byte_comes_back_bit_by_bit() -> None:
    inputs = Inputs(spaces.Box(0, 255, (16, 17, 1), np.uint8))
    every = np.arange(272).astype(np.uint8).reshape(1, 16, 17, 1)
    x = inputs(every)
    assert torch.equal(inputs.unpacked(torch.tensor(inputs.packed(x))), x)


def test_the_studies_name_agents_that_exist() -> None:
    found = sorted((Path(__file__).parents[2] / "studies").glob("openloris-*.toml"))
    assert len(found) >= 6
    agents = set()
    for path in found:
        study = tomllib.loads(path.read_text())
        features = "track=features" in study["curriculum"]
        agents |= {(text, features) for text in study["agents"]}
    assert len(agents) >= 18
    for text, features in sorted(agents):
        made(text, setup(1280, dtype=np.float32) if features else setup(32, 32, 3))


@pytest.mark.parametrize("name", ["dgr", "dgr_distill", "rtf"])
@pytest.mark.parametrize("track", ["pixels", "features"])
def test_generators_make_up_pixels_and_features(name: str, track: str) -> None:
    """After a task of one picture, what is made up is nearer to it than a picture of noise is."""
    rng = np.random.default_rng(0)
    if track == "pixels":
        space = spaces.Box(0, 255, (16, 17, 3), np.uint8)
        shown = np.repeat(rng.choice(np.array([0, 255], np.uint8), (1, 16, 17, 3)), 6, axis=0)
    else:
        space = spaces.Box(0, 6, (40,), np.float32)
        shown = np.repeat(6 * rng.random((1, 40), np.float32), 6, axis=0)
    where = Setup(space, spaces.Discrete(5), 1, 0)
    agent = made(f"{name}+classifier,preset=openloris-small,convolutions=none,lr=3e-3", where)
    none = np.zeros(0, int)
    for task in "ab":
        agent.enter(Context("learn", True, 0, (task,), none, none, "task"))
        for _ in range(150 if task == "a" else 2):
            measures = agent.learn(Examples(shown, np.zeros(6, int)), CTX)
            assert np.isfinite(measures["loss"])
    keep = agent.strategy
    past = (keep.feedback if name == "rtf" else keep.generator).before.net
    drawn = past.decoder.sample(50, np.random.default_rng(1))
    inputs = agent.learner.inputs
    truth = inputs(shown[:1])
    assert drawn.shape == (50, *inputs.shape)
    if track == "pixels":
        assert drawn.min() >= 0 and drawn.max() <= 1
    space.seed(0)
    noise = inputs(np.stack([space.sample() for _ in range(50)]))
    assert (drawn - truth).abs().mean() < 0.6 * (noise - truth).abs().mean()
