"""Behaviour cloning of sequences: it learns, remembers exactly, and works with the strategies of LIBERO."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gymnasium import spaces

from kit import load_program
from perdure.agents.compose import make_agent
from perdure.agents.learners.sequence_bc import SequenceBCAgent, policy_of
from perdure.errors import AgentFault, SpecError, UnknownName
from perdure.specs import Spec
from perdure.types import Context, Examples, Setup, Transitions

TASKS = ("t/left", "t/right")
SEEN = spaces.Dict({"arm": spaces.Box(-1, 1, (2,)), "grip": spaces.Box(-1, 1, (1,))})
WITH_PICTURES = spaces.Dict({"front": spaces.Box(0, 255, (32, 32, 3), np.uint8), **SEEN.spaces})
TINY = "language=task-id,size=small,look_back=4"
DATA: dict = {}


class FakeWords:
    """Stands for a sentence encoder: a vector for each sentence, by its letters."""

    def __call__(self, sentences, name, weights=""):
        rows = [np.random.default_rng(sum(map(ord, s))).standard_normal(6) for s in sentences]
        return np.array(rows, np.float32)


@pytest.fixture(autouse=True)
def words(monkeypatch):
    monkeypatch.setattr("perdure.agents.networks.language.embed", FakeWords())


def examples(source, indices):
    return Examples(*(part[indices] for part in DATA[source]), source, indices)


def setup(space=SEEN, slots=3):
    told = {t: (f"go {t[2:]}",) for t in TASKS}
    return Setup(space, spaces.Box(-1, 1, (2,), np.float32), slots, 0, TASKS, told, examples)


def ctx(task, n, kind="learn", event="", done=0.0, stage=(0.0, 1.0)):
    name = TASKS[task]
    said = (f"go {name[2:]}",) * n
    return Context(
        kind, kind == "learn", task, (name,) * n, np.arange(n), np.zeros(4, bool), event,
        instructions=said, fraction=lambda: done, stage=stage,
    )  # fmt: skip


def sequences(task, n=96, steps=4, space=SEEN):
    """The arm moves towards a side that only the instruction tells, by how far it went before."""
    rng = np.random.default_rng(task)
    arm = rng.uniform(-1, 1, (n, steps, 2)).astype(np.float32)
    grip = rng.uniform(-1, 1, (n, steps, 1)).astype(np.float32)
    side = (-1, 1)[task]
    past = np.cumsum(grip, 1)[..., 0] / steps
    inputs = {"arm": arm, "grip": grip}
    if space is WITH_PICTURES:
        inputs["front"] = rng.integers(0, 255, (n, steps, 32, 32, 3)).astype(np.uint8)
    return inputs, np.stack([0.5 * side * arm[..., 0], 0.8 * past], -1).astype(np.float32)


def made(text, space=SEEN):
    agent = make_agent(Spec.parse(text), setup(space))
    for k in range(2):
        inputs, targets = sequences(k, space=space)
        DATA[k] = (_Rows(inputs), targets)
    return agent


class _Rows(dict):
    def __getitem__(self, at):
        return (
            super().__getitem__(at) if isinstance(at, str) else {k: v[at] for k, v in self.items()}
        )


def train(agent, task, epochs, batch=32):
    for event in ("block", "task", "variant"):
        agent.enter(ctx(task, 1, event=event))
    rng, losses = np.random.default_rng(7), []
    for e in range(epochs):
        for rows in np.split(rng.permutation(96), 96 // batch):
            losses.append(
                agent.learn(examples(task, rows), ctx(task, batch, done=e / epochs))["loss"]
            )
    return losses


def error(agent, task):
    """Mean distance from what was shown, drawn by the same noise each time."""
    inputs, targets = sequences(task)
    noise, agent.rng = agent.rng, np.random.default_rng(5)
    answers = agent.act({k: v[:3] for k, v in inputs.items()}, ctx(task, 3, "eval"))
    agent.rng = noise
    return float(np.abs(answers - targets[:3]).mean())


@pytest.mark.parametrize("policy", ["state_mlp", "state_transformer"])
def test_it_does_what_was_shown_and_the_words_decide(policy):
    agent = made(f"sequence_bc,policy={policy},lr=3e-3,low_eval_noise=true,{TINY}")
    losses = []
    for _ in range(12 if policy == "state_mlp" else 20):
        for task in (0, 1):
            losses += train(agent, task, 2)
    assert np.mean(losses[-6:]) < losses[0] - 1.5
    inputs, targets = sequences(0)
    few = {k: v[:3] for k, v in inputs.items()}
    own, other = agent.act(few, ctx(0, 3, "eval")), agent.act(few, ctx(1, 3, "eval"))
    # The first number's sign is the task's; only the words tell.
    assert np.abs(own[..., 0] - targets[:3, :, 0]).mean() < 0.25
    assert np.abs(other[..., 0] + targets[:3, :, 0]).mean() < 0.25


@pytest.mark.parametrize("policy", ["resnet_rnn", "resnet_t", "vit_t"])
def test_small_picture_policies_see_the_robots_numbers_on_one_scale(policy):
    """A gripper's fingers move by four centimetres; beside pictures nobody would notice."""
    agent = made(f"sequence_bc,policy={policy},size=small,look_back=4", WITH_PICTURES)
    DATA[0][0]["grip"] *= 0.04
    agent.learn(examples(0, np.arange(32)), ctx(0, 32))
    assert agent.net.names == ("arm", "grip")
    shown = agent.net.numbers_of(agent.seen(agent.read(examples(0, np.arange(32)).inputs)))
    spread = shown.flatten(0, 1).std(0).detach().numpy()
    assert spread[:2] == pytest.approx([1, 1], abs=1e-3) and 0.6 < spread[2] < 1
    before = agent.net.standard.mean.clone()
    agent.learn(examples(1, np.arange(32)), ctx(1, 32))
    assert agent.net.standard.mean.equal(before)
    assert not policy_of(policy).sizes["paper"].standardise  # As published.


@pytest.mark.parametrize("policy", ["state_transformer", "resnet_rnn", "resnet_t", "vit_t"])
def test_memory_goes_on_exactly_where_it_was_saved(policy):
    space = SEEN if policy == "state_transformer" else WITH_PICTURES
    agent = made(f"sequence_bc,policy={policy},{TINY}", space)
    inputs, _ = sequences(0, steps=7, space=space)
    agent.reset_memory(np.arange(3))
    for t in range(3):
        agent.act({k: v[:3, t] for k, v in inputs.items()}, ctx(0, 3, "eval"))
    agent.reset_memory(np.array([1]))  # Another episode begins in the second slot.
    saved, state, noise = agent.memory(), agent.state(), agent.rng.bit_generator.state
    other = made(f"sequence_bc,policy={policy},{TINY}", space)
    other.load(state)
    other.load_memory(saved)
    other.rng.bit_generator.state = noise
    for t in range(3, 7):
        now = {k: v[:3, t] for k, v in inputs.items()}
        a, b = (x.act(now, ctx(0, 3, "eval")) for x in (agent, other))
        np.testing.assert_array_equal(a, b)
    assert agent.steps.tolist() == [7, 4, 7]
    # Without what was carried it would have acted otherwise.
    other.load(state)
    other.load_memory(saved)
    other.reset_memory(np.arange(3))
    agent.load_memory(saved)
    now = {k: v[:3, 3] for k, v in inputs.items()}
    for x in (agent, other):
        x.rng.bit_generator.state = noise
    a, b = (x.act(now, ctx(0, 3, "eval")) for x in (agent, other))
    assert not np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1])


@pytest.mark.parametrize(
    "strategy",
    ["finetune", "replay,quota=50", "online_ewc,labels=given,samples=64,group=16,strength=1000",
     "packnet,retrain=60,memory=96", "joint"],
)  # fmt: skip
def test_the_five_algorithms_learn_and_resume_exactly(strategy):
    name, _, params = strategy.partition(",")
    text = f"{name}+sequence_bc,policy=state_mlp,lr=3e-3,low_eval_noise=true,{TINY}" + (
        f",{params}" if params else ""
    )
    agent = made(text)
    train(agent, 0, 25)
    first = error(agent, 0)
    assert first < 0.2
    train(agent, 1, 3)
    state, noise = agent.state(), agent.rng.bit_generator.state
    other = made(text)
    other.load(state)
    other.rng.bit_generator.state = noise
    assert train(agent, 1, 3) == train(other, 1, 3)
    after = agent.state()
    assert after.keys() == other.state().keys()
    for key, value in after.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(other.state()[key]), key)
    begun = error(agent, 0)
    train(agent, 1, 20)
    kept = error(agent, 0)
    if name in ("replay", "joint"):
        assert kept < 0.3
    if name == "packnet":  # What was left of it after pruning does not change any more.
        assert kept == pytest.approx(begun, abs=2e-3) and kept < 0.4
    if name == "finetune":
        assert kept > 0.3  # The other task's words no longer tell the sides apart.


def test_each_task_begins_with_a_new_optimiser_and_the_rate_falls_over_its_blocks():
    agent = made(f"sequence_bc,policy=state_mlp,lr=1e-2,{TINY}")
    train(agent, 0, 1)
    assert agent.optimizer.steps == 3
    batch = examples(0, np.arange(8))
    agent.learn(batch, ctx(0, 8, done=1.0, stage=(0.0, 0.5)))
    assert agent.optimizer.current_lr == pytest.approx(1e-2 * (0.1 + 0.9 * 0.5))
    agent.learn(batch, ctx(0, 8, done=1.0, stage=(0.5, 0.5)))
    assert agent.optimizer.current_lr == pytest.approx(1e-3)
    for event in ("block", "task", "variant"):  # The same task again, then another.
        agent.enter(ctx(0, 1, event=event))
    assert agent.optimizer.steps == 5
    agent.enter(ctx(1, 1, event="task"))
    assert agent.optimizer.steps == 0 and not agent.optimizer.buffers["mean"].any()


def test_what_does_not_fit_is_refused_in_words():
    for text, words in (
        ("sequence_bc,policy=resnet_t", "reads pictures, and the observations have none"),
        ("ewc+sequence_bc,policy=state_mlp", "labels='given'"),
        ("redo+sequence_bc,policy=state_mlp", "steps of a sequence"),
    ):
        with pytest.raises(SpecError, match=words):
            made(text)
    with pytest.raises(SpecError, match=r"reads no pictures.*front"):
        made("sequence_bc,policy=state_mlp", WITH_PICTURES)
    with pytest.raises(UnknownName, match="resnet"):
        made("sequence_bc,policy=resnet")
    with pytest.raises(UnknownName, match=r"'hidden' \(it takes: .*size"):
        made("sequence_bc,hidden=[3]")
    agent = made(f"sequence_bc,{TINY}")
    single = Examples({k: v[:, 0] for k, v in sequences(0)[0].items()}, sequences(0)[1][:, 0])
    with pytest.raises(AgentFault, match="sequence=4"):
        agent.learn(single, ctx(0, 96))
    with pytest.raises(AgentFault, match="learns from demonstrations"):
        agent.learn(Transitions(None, None, None, np.zeros(1), np.zeros(1), None), ctx(0, 1))


def test_the_presets_are_the_papers():
    agent = made("online_ewc+sequence_bc,preset=libero,language=none,policy=state_mlp")
    penalty = agent.strategy
    # 5e4 Σ F (θ − θ*)², and F ← F + 0.9 F̃.
    assert penalty.strength / 2 * penalty.decay == pytest.approx(5e4) and penalty.decay == 0.9
    assert penalty.group == 32
    s = agent.learner.optimizer.settings
    assert (agent.learner.optimizer.lr, s.name, s.weight_decay, s.schedule) == (
        1e-4, "adamw", 1e-4, "cosine",
    )  # fmt: skip
    assert agent.learner.max_grad == 100 and isinstance(agent.learner, SequenceBCAgent)
    replay = made("replay+sequence_bc,preset=libero,language=none,policy=state_mlp").strategy
    assert replay.per_task.quota == 1000 and replay.share == 1
    pack = made("packnet+sequence_bc,preset=libero,language=none,policy=state_mlp").strategy
    assert (pack.prune, pack.retrain) == (0.75, "learned")


@pytest.mark.parametrize(
    ("policy", "space"),
    [
        ("state_mlp", SEEN),
        ("state_transformer", SEEN),
        ("resnet_rnn", WITH_PICTURES),
        ("vit_t", WITH_PICTURES),
    ],
)
def test_it_tells_how_well_it_can_still_learn(policy, space):
    agent = made(f"sequence_bc,{TINY},policy={policy},plasticity=6,trainability=2", space)
    assert agent.diagnose() == {}, "before anything was learned there is nothing to measure on"
    inputs, targets = sequences(0, 8, space=space)
    agent.enter(ctx(0, 8))
    agent.learn(Examples(inputs, targets, 0, np.arange(8)), ctx(0, 8))
    before = agent.optimizer.weights.clone()
    found = agent.diagnose()
    assert agent.probe.count == 6, "sequences"
    expected = {"dormant_redo", "dormant_dohare", "effective_rank", "stable_rank", "srank", "weight_norm",
                "weight_distance", "gradient_norm", "trainability"}  # fmt: skip
    assert set(found) == {f"plasticity.{name}" for name in expected}
    assert all(np.isfinite(v) for v in found.values())
    assert 1 <= found["plasticity.effective_rank"] <= 6 * 4
    assert 0 < found["plasticity.weight_distance"] < found["plasticity.weight_norm"]
    torch.testing.assert_close(agent.optimizer.weights, before, rtol=0, atol=0)


@pytest.mark.parametrize("policy", ["resnet_rnn", "resnet_t", "vit_t"])
def test_what_it_looks_at_can_be_drawn(policy):
    agent = made(f"sequence_bc,policy={policy},{TINY}", WITH_PICTURES)
    inputs, _ = sequences(0, n=1, space=WITH_PICTURES)
    seen = [{name: part[0, k] for name, part in inputs.items()} for k in range(4)]
    program = load_program("scripts/libero_saliency.py")
    looked = program.rows(agent, seen, "go left", 8)
    assert looked.maps["front"].shape == (4, 4) and looked.maps["front"].any()
    assert list(looked.words) == ["go", "left"]
    read = {
        "resnet_rnn": [],
        "resnet_t": ["the sentence", "arm", "grip", "front"],
        "vit_t": ["the sentence", "pictures", "arm", "grip"],
    }
    shares = looked.shares
    assert list(shares) == read[policy]
    assert sum(shares.values()) == pytest.approx(1.0 if shares else 0.0)
    assert {n: p.shape for n, p in looked.patches.items()} == (
        {"front": (2, 2)} if policy == "vit_t" else {}
    )
    # Of two cameras each has its own part, and the sentence, the last, is in none.
    of = SimpleNamespace(net=SimpleNamespace(places=[1, 4]), pictures=("front", "wrist"))
    parts = program.by_picture(of, np.arange(6))
    assert parts["front"].tolist() == [[0]] and parts["wrist"].tolist() == [[1, 2], [3, 4]]


def test_mistakes_in_drawing_are_told_in_a_line(tmp_path, monkeypatch, capsys):
    program = load_program("scripts/libero_saliency.py")
    wrong = {f"{tmp_path}:er": "StoreError", "mine:er:last": "number of a com", "mine": "RUN:AGENT"}
    for text, words in wrong.items():
        monkeypatch.setattr(sys, "argv", ["libero_saliency.py", text, "--task", "object-0"])
        with pytest.raises(SystemExit, match="2"):
            program.main()
        said = capsys.readouterr().err
        assert said.startswith("libero_saliency: ") and words in said and said.count("\n") == 1
