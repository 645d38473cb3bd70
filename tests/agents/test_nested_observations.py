"""Dict and Tuple observations: each part by the encoder that fits it, in learners and strategies."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import perdure
from perdure.arrays import leaves
from perdure.errors import SpecError
from perdure.run.plan import make_agent
from perdure.specs import Spec
from perdure.types import Context, Examples, Setup, Transitions

torch = pytest.importorskip("torch")

from perdure.agents.networks.encoders import PartsEncoder, encoder_for
from perdure.agents.networks.inputs import Inputs
from perdure.spaces import SYMBOLS

BODY = spaces.Box(-1, 1, (2,), np.float32)
SMALL = spaces.Box(0, SYMBOLS - 1, (8, 8, 3), np.uint8)
"""A map of symbols."""
FLOATS = spaces.Box(0, 1, (8, 8, 3), np.float32)
"""Passes convolutions."""
IMAGE = spaces.Box(0, 255, (20, 20, 3), np.uint8)
SIDE = spaces.Box(-1, 1, (1,), np.float32)
SLOTS = 8
TASKS = ("t/a", "t/b")


def nested(camera: Any) -> spaces.Dict:
    return spaces.Dict({"camera": camera, "body": BODY})


def make(text: str, space: Any = None, action: Any = None) -> Any:
    learner = Spec.parse(text).name.rpartition("+")[2]
    if action is None:
        action = SIDE if learner in ("sac", "bc") else spaces.Discrete(2)
    return make_agent(Spec.parse(text), Setup(space or nested(SMALL), action, SLOTS, 0, TASKS))


def look(space: Any, n: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Observations, and the answer to them: is a light on and the body on the right? Either part
    alone tells three answers of four at best."""
    body = np.where(rng.random((n, 2)) < 0.5, -1, 1).astype(np.float32)
    light = rng.random(n) < 0.5
    camera = space["camera"]
    images = np.zeros((n, *camera.shape), camera.dtype)
    images[light, 3:5, 3:5] = camera.high.max()
    return {"body": body, "camera": images}, (body[:, 0] > 0) & light


def context(n: int, task: str = "t/a", **more: Any) -> Context:
    return Context("learn", True, 0, (task,) * n, np.arange(n), np.ones(n, bool), **more)


def enter(agent: Any, task: str) -> None:
    for event in ("block", "task", "variant"):
        agent.enter(context(1, task, event=event))


def reward_of(actions: np.ndarray, right: np.ndarray) -> np.ndarray:
    if actions.dtype.kind == "f":
        return -np.abs(actions[:, 0] - np.where(right, 0.5, -0.5)).astype(np.float32)
    return (actions == right).astype(np.float32)


def practise(agent: Any, steps: int, task: str = "t/a", seed: int = 1, n: int = SLOTS) -> list[Any]:
    """Episodes of one step each, or minibatches."""
    rng, space, found = np.random.default_rng(seed), agent.observation_space, []
    enter(agent, task)
    for _ in range(steps):
        if "data" in agent.learns_from:
            obs, right = look(space, 32, rng)
            targets = right.astype(np.int64)
            if agent.action_space is SIDE:
                targets = np.where(right, 0.5, -0.5).astype(np.float32)[:, None]
            found.append(agent.learn(Examples(obs, targets), context(32, task)))
            continue
        obs, right = look(space, n, rng)
        actions = np.asarray(agent.act(obs, context(n, task)))
        over = np.ones(n, bool)
        found.append(
            agent.learn(
                Transitions(obs, actions, reward_of(actions, right), over, ~over, obs),
                context(n, task),
            )
        )
    return found


def score(agent: Any) -> float:
    obs, right = look(agent.observation_space, 200, np.random.default_rng(99))
    ctx = Context("eval", False, 0, ("t/a",) * 200, np.zeros(200, int), np.ones(200, bool))
    actions = np.asarray(agent.act(obs, ctx))
    if actions.dtype.kind == "f":
        return float(((actions[:, 0] > 0) == right).mean())
    return float((actions == right).mean())


# Reading.


def test_parts_lie_flat_one_after_the_other_in_the_order_of_the_space() -> None:
    space = spaces.Dict(
        {
            "image": IMAGE,
            "inner": spaces.Tuple((BODY, spaces.Discrete(3, start=1))),
            "last": spaces.MultiBinary(2),
        }
    )
    inputs = Inputs(space)
    assert inputs.shape == (1200 + 2 + 3 + 2,) and inputs.has_images
    image = np.random.default_rng(0).integers(256, size=(4, 20, 20, 3)).astype(np.uint8)
    body = np.arange(8, dtype=np.float32).reshape(4, 2)
    obs = {
        "last": np.array([[1, 0]] * 4, np.int8),
        "image": image,
        "inner": (body, np.array([1, 2, 3, 1])),
    }
    x = inputs(obs)
    assert x.shape == (4, 1207) and x.dtype == torch.float32
    assert x[:, :1200].numpy() == pytest.approx(image.reshape(4, -1) / 255)
    assert np.array_equal(x[:, 1200:1202].numpy(), body)
    assert x[:, 1202:1205].argmax(1).tolist() == [0, 1, 2, 0]
    assert x[:, 1205:].tolist() == [[1, 0]] * 4
    # The encoder sees the image as it would be read alone.
    alone = Inputs(IMAGE)(image)
    assert torch.allclose(inputs.parts["image"].to_image(x[:, :1200]), alone)
    # Rows in columns, and back.
    columns = inputs.columns("obs")
    assert columns["obs/image"] == ((20, 20, 3), np.uint8) and "obs/inner/1" in columns
    rows = inputs.rows("obs", obs)
    assert rows.keys() == columns.keys()
    assert torch.equal(inputs(inputs.gather("obs", rows)), x)


def test_what_is_not_nested_is_read_as_before() -> None:
    inputs = Inputs(IMAGE)
    assert inputs.shape == (3, 20, 20) and list(inputs.columns("obs")) == ["obs"]
    array = np.zeros((2, 20, 20, 3), np.uint8)
    assert inputs.rows("obs", array)["obs"] is array
    assert inputs.gather("obs", {"obs": array}) is array


def test_images_get_convolutions_and_vectors_do_not() -> None:
    encoder, features = encoder_for(Inputs(nested(IMAGE)), (7, 5))
    assert features == 5 and isinstance(encoder[0], PartsEncoder)
    assert sum(isinstance(m, torch.nn.Conv2d) for m in encoder.modules()) == 2
    plain, _ = encoder_for(Inputs(nested(SMALL)), (7, 5))
    assert plain[0].in_features == 8 * 8 * 3 * SYMBOLS + 2
    two = spaces.Dict({"left": IMAGE, "right": spaces.Box(0, 1, (3, 40, 40), np.float32)})
    encoder, _ = encoder_for(Inputs(two), (5,), convolutions="small")
    assert sum(isinstance(m, torch.nn.Conv2d) for m in encoder.modules()) == 6


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(SpecError, match="Text"):
        Inputs(spaces.Dict({"a": BODY, "words": spaces.Text(3)}))
    with pytest.raises(SpecError, match="te reads .*, not image as in Dict"):
        make("te", nested(IMAGE))
    with pytest.raises(SpecError, match="baseline='linear' reads flat"):
        make("ppo,baseline=linear", nested(IMAGE))
    make("te", nested(SMALL))
    twice = spaces.Dict({"a/b": BODY, "a": spaces.Dict({"b": BODY})})
    for text in ("sac", "q", "bc"):
        with pytest.raises(SpecError, match="two parts .* path 'a/b'.*rename one"):
            make(text, twice)


# Learning.

LEARNERS = {
    "dqn": "dqn,preset=quick,hidden=[32],explore=500,gamma=0,every=2,lr=3e-3",
    "ppo": "ppo,preset=quick,hidden=[32],rollout=128,lr=2e-3,gamma=0",
    "sac": "sac,hidden=[32,32],batch=64,start=100,lr=3e-3,gamma=0,every=8,alpha=0.1",
    "bc": "bc,hidden=[32],lr=5e-3",
    "classifier": "classifier,hidden=[32],lr=5e-3",
}
STEPS = {"dqn": 125, "ppo": 200, "sac": 700, "bc": 120, "classifier": 150}


@pytest.mark.parametrize(
    ("learner", "camera"),
    [(name, SMALL) for name in LEARNERS] + [(name, FLOATS) for name in ("sac", "classifier")],
    ids=lambda value: value if isinstance(value, str) else str(value.dtype),
)
def test_an_answer_that_takes_both_parts_is_learned(learner, camera) -> None:
    agent = make(LEARNERS[learner], nested(camera))
    # What a map of symbols shows is spread over thousands of numbers, and takes longer.
    practise(agent, STEPS[learner] if camera is SMALL else STEPS[learner] // 2)
    assert score(agent) > 0.9


def test_numbers_and_a_small_picture_are_learned_to_the_optimum(tmp_path) -> None:
    """The best return is 0; whoever does not look at the picture gets about −2.5 at best."""
    run = perdure.experiment(
        "toy/signed-reach,steps=500,episodes=10",
        ["x=sac,hidden=[32,32],batch=64,start=100,lr=5e-3,gamma=0,every=1,alpha=0.02"],
        out=str(tmp_path / "run"),
        executor="serial",
    )
    rows = [r for r in run.rows().to_pylist() if r["kind"] == "eval"]
    last = [r for r in rows if r["block"] == max(r["block"] for r in rows)]
    assert np.mean([r["return"] for r in last]) > -0.3
    assert np.mean([r["success"] for r in last]) > 0.9


def test_rows_keep_their_own_type() -> None:
    dqn, ppo, sac = (make(LEARNERS[name]) for name in ("dqn", "ppo", "sac"))
    for agent, ring in ((dqn, dqn.replay), (ppo, ppo.rows.ring), (sac, sac.replays[0])):
        practise(agent, 3)
        for name in ("obs/camera", "next_obs/camera"):
            assert ring[name].dtype == np.uint8 and ring[name].shape[1:] == (8, 8, 3)
        assert ring["obs/body"].dtype == np.float32 and "obs" not in ring.columns


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("camera", [SMALL, IMAGE], ids=["symbols", "image"])
def test_a_saved_learner_goes_on_alike(learner, camera) -> None:
    space = nested(camera)
    one, other = make(LEARNERS[learner], space), make(LEARNERS[learner], space)
    practise(one, 18)
    state = {name: np.array(value) for name, value in one.state().items()}
    other.load(state)
    other.rng.bit_generator.state = one.rng.bit_generator.state
    assert practise(one, 2, seed=3) == practise(other, 2, seed=3)
    again = other.state()
    assert all(np.array_equal(value, again[name]) for name, value in one.state().items())


# SAC's convolutions.


def test_only_the_critics_move_the_convolutions_and_a_target_follows_them() -> None:
    agent = make("sac,hidden=[8],batch=4,start=0,every=1,tau=0.25", nested(FLOATS))
    practise(agent, 2)
    batch, net = agent.sample(), agent.net
    agent.optimizer.zero_grad()
    rng = copy.deepcopy(agent.rng)
    agent.loss(batch)[0].backward()
    found = [p.grad.clone() for p in net.encoder.parameters()]
    with torch.no_grad():
        noise = torch.tensor(rng.standard_normal((2, *batch["actions"].shape), np.float32))
        after, log_after = net.policy(net.features(batch["next_obs"]), batch["task"], noise[1])
        future = net.values(
            agent.target_encoder(batch["next_obs"]), after, batch["task"], agent.target_critics
        ).amin(0)
        future = future - net.log_alpha[batch["task"]].exp() * log_after
        goal = batch["rewards"] + agent.settings.gamma * batch["alive"] * future
    agent.optimizer.zero_grad()
    values = net.values(net.features(batch["obs"]), batch["actions"], batch["task"])
    (values - goal).square().mean(1).sum().backward()
    for p, g in zip(net.encoder.parameters(), found, strict=True):
        assert torch.equal(p.grad, g) and g.abs().sum() > 0
    before = [p.clone() for p in agent.target_encoder.parameters()]
    agent.update()
    for old, now, live in zip(
        before, agent.target_encoder.parameters(), net.encoder.parameters(), strict=True
    ):
        assert torch.allclose(now, old + 0.25 * (live - old)) and not torch.equal(now, old)


def test_flat_observations_have_no_encoder() -> None:
    agent = make("sac,hidden=[8]", BODY)
    assert agent.net.encoder is None and agent.target_encoder is None


# Strategies.


@pytest.mark.parametrize("learner", ["dqn", "sac", "classifier", "bc", "ppo"])
@pytest.mark.parametrize("strategy", ["ewc", "replay", "packnet", "lwf"])
def test_strategies_compose(strategy, learner) -> None:
    if (strategy, learner) == ("replay", "ppo"):
        pytest.skip("PPO's loss means nothing on rows of the past")
    more = {"ewc": ",samples=8", "replay": ",memory=16", "packnet": ",retrain=2,memory=16"}
    start = ",batch=8,start=8" if learner == "sac" else ",batch=8" if learner == "dqn" else ""
    text = f"{strategy}+{learner},hidden=[6]{start}{more.get(strategy, '')}"
    agent = make(text, nested(FLOATS))
    for seed, task in enumerate((*TASKS, TASKS[0])):
        for measures in practise(agent, 17 if learner == "ppo" else 5, task, seed):
            assert measures is None or all(np.isfinite(v) for v in measures.values())
    other = make(text, nested(FLOATS))
    other.load({name: np.array(value) for name, value in agent.state().items()})
    # Tasks side by side, each by its own weights in PackNet.
    obs, _ = look(agent.observation_space, 4, np.random.default_rng(3))
    ctx = Context("eval", False, 0, (*TASKS, *TASKS), np.arange(4), np.ones(4, bool))
    assert np.array_equal(agent.act(obs, ctx), other.act(obs, ctx))
    for k in range(4):
        alone = {name: value[k : k + 1] for name, value in leaves(obs).items()}
        single = Context("eval", False, 0, (TASKS[k % 2],), np.arange(1), np.ones(1, bool))
        assert np.allclose(
            agent.act(alone, single)[0], np.asarray(agent.act(obs, ctx))[k], atol=1e-5
        )


@pytest.mark.parametrize("strategy", ["joint", "dgr", "rtf", "mas", "agem"])
def test_strategies_on_data_compose(strategy) -> None:
    agent = make(f"{strategy}+classifier,hidden=[6]", nested(IMAGE))
    for seed, task in enumerate(TASKS):
        assert all(np.isfinite(m["loss"]) for m in practise(agent, 4, task, seed))
    other = make(f"{strategy}+classifier,hidden=[6]", nested(IMAGE))
    other.load({name: np.array(value) for name, value in agent.state().items()})
    assert practise(agent, 0) == practise(other, 0)
