"""Each strategy against a small computation of its own: closed forms, hand-worked steps, exact masks."""

from __future__ import annotations

import copy
import inspect
from math import exp, inf, log
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from scipy import stats

from perdure import registry
from perdure.agents.compose import make_agent
from perdure.agents.networks.learner import new_rows
from perdure.errors import SpecError
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.specs import Spec
from perdure.types import Context, Examples, Setup

torch = pytest.importorskip("torch")

from torch import nn

from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import TorchLearner
from perdure.agents.networks.optimizers import Adam
from perdure.agents.strategies import distillation, persample, vae
from perdure.agents.strategies.base import Strategy, works_with
from perdure.agents.strategies.ewc import EWC
from perdure.agents.strategies.fisher import fisher
from perdure.agents.strategies.online_ewc import OnlineEWC
from perdure.agents.strategies.quadratic_penalty import QuadraticPenalty
from perdure.agents.strategies.row_memory import PerTaskBuffer, Reservoir, UniqueBuffer
from perdure.agents.strategies.si import SI

# A learner small enough to compute by hand.


class Tiny(TorchLearner):
    """Any network; cross-entropy for logits, half the squared error for numbers."""

    learns_from = ("data",)
    predicts = "logits"
    replayable = True
    max_grad = inf

    def __init__(self, net: nn.Module, shape: tuple[int, ...], numbers: bool = False) -> None:
        super().__init__(Setup(spaces.Box(0, 1, shape, np.float32), spaces.Discrete(3), 1, 0))
        self.inputs, self.net = Inputs(self.setup.observation_space), net
        self.optimizer = Adam(net.parameters(), 0.01)
        self.predicts = "regression" if numbers else "logits"

    def act(self, obs, ctx):
        self.net.eval()
        with torch.inference_mode():
            out = self.net(self.inputs(obs)).numpy()
        self.net.train()
        return out

    def loss(self, batch):
        out = self.predict(batch)
        if self.predicts == "logits":
            loss = nn.functional.cross_entropy(out, batch["targets"])
        else:
            loss = (out - batch["targets"]).square().sum(1).mean() / 2
        return loss, {"loss": loss.detach()}

    def predict(self, batch):
        return self.net(batch["obs"])


@pytest.fixture(autouse=True)
def _own_torch_generator():
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def linear(inputs: int = 4, classes: int = 3, numbers: bool = False) -> Tiny:
    return Tiny(nn.Linear(inputs, classes), (inputs,), numbers)


def rows(n: int = 30, inputs: int = 4, classes: int = 3, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, inputs)).astype(np.float32)
    return {"obs": torch.tensor(x), "targets": torch.tensor(rng.integers(classes, size=n))}


def noise(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def learn(agent: Any, task: str, steps: int, seed: int = 0, n: int = 16) -> None:
    """Some minibatches of a task, through the agent's own way of learning."""
    none = np.zeros(0, int)
    ctx = Context("learn", True, 0, (task,) * n, np.arange(n), none)
    for event in ("task", "variant"):
        agent.enter(Context("learn", True, 0, (task,), none, none, event))
    rng = np.random.default_rng(seed)
    space, classes = agent.setup.observation_space, int(agent.setup.action_space.n)
    for _ in range(steps):
        if space.dtype == np.uint8:
            x = rng.integers(256, size=(n, *space.shape)).astype(np.uint8)
        else:
            x = rng.random((n, *space.shape), np.float32)
        agent.learn(Examples(x, rng.integers(classes, size=n)), ctx)


def evaluation(*tasks: str) -> Context:
    return Context("eval", False, 1, tasks, np.arange(len(tasks)), np.zeros(0, bool))


def classifier(spec: str, shape: tuple[int, ...] = (4,), dtype: Any = np.float32) -> Any:
    high = 255 if dtype == np.uint8 else 1
    setup = Setup(spaces.Box(0, high, shape, dtype), spaces.Discrete(3), 1, 0, ("a", "b", "c"))
    return make_agent(Spec.parse(spec), setup)


# Fisher information.


def softmax_fisher(learner: Tiny, batch: Any, labels: np.ndarray) -> np.ndarray:
    """By hand: the gradient of −log p(y|x) is (p − onehot(y)) xᵀ for weights, p − onehot(y) for
    biases."""
    w, b = (p.detach().numpy().astype(float) for p in learner.net.parameters())
    x = batch["obs"].numpy().astype(float)
    logits = x @ w.T + b
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    error = p - np.eye(3)[labels]
    each = np.einsum("nc,ni->nci", error, x)
    return np.concatenate([(each**2).mean(0).ravel(), (error**2).mean(0)])


def test_fisher_of_softmax_regression_by_hand() -> None:
    learner, batch = linear(), rows()
    logits = learner.predict(batch).detach()
    drawn = logits + torch.tensor(noise().gumbel(size=logits.shape), dtype=torch.float32)
    labels = {
        "predicted": logits.argmax(1).numpy(),
        "sampled": drawn.argmax(1).numpy(),
        "given": batch["targets"].numpy(),
    }
    found = {}
    for kind, y in labels.items():
        got = fisher(learner, batch, kind, noise())
        assert got.numpy() == pytest.approx(softmax_fisher(learner, batch, y), rel=1e-5)
        found[kind] = got
    assert not torch.allclose(found["predicted"], found["given"])
    assert not torch.allclose(found["predicted"], found["sampled"])


def test_sampled_labels_give_the_true_fisher_information() -> None:
    # E over y of (p_c − [y = c])² = p_c (1 − p_c).
    learner = linear()
    x = torch.tensor([[0.5, -1.0, 2.0, 0.3]])
    p = torch.softmax(learner.predict({"obs": x}), 1)[0].detach().numpy()
    got = fisher(learner, {"obs": x.repeat(10_000, 1)}, "sampled", noise())
    expected = np.outer(p * (1 - p), x[0].numpy() ** 2).ravel()
    assert got[:12].numpy() == pytest.approx(expected, rel=0.08)


def test_numbers_are_gaussians_of_unit_spread() -> None:
    # Σ over outputs of (∂ f_o / ∂ w_oi)² is x_i² for each o, and 1 for a bias.
    learner = linear(numbers=True)
    x = torch.tensor([[0.5, -1.0, 2.0, 0.3]])
    for kind in ("predicted", "sampled"):
        got = fisher(learner, {"obs": x.repeat(10_000, 1)}, kind, noise())
        expected = np.concatenate([np.tile(x[0].numpy() ** 2, 3), np.ones(3)])
        assert got.numpy() == pytest.approx(expected, rel=0.08)


def test_the_square_of_a_mean_gradient_is_another_and_smaller_thing() -> None:
    learner, batch = linear(), rows(32)
    single = fisher(learner, batch, "given", noise())
    grouped = fisher(learner, batch, "given", noise(), group=8)
    w = list(learner.net.parameters())
    by_hand = torch.zeros(15)
    for k in range(0, 32, 8):
        part = {n: v[k : k + 8] for n, v in batch.items()}
        g = torch.autograd.grad(learner.loss(part)[0], w)
        by_hand += torch.cat([v.reshape(-1) for v in g]) ** 2 / 4
    assert torch.allclose(grouped, by_hand, rtol=1e-4)
    assert grouped.sum() < 0.5 * single.sum()


def conv_net() -> nn.Module:
    encoder = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
        nn.Conv2d(4, 5, 3, dilation=2, bias=False), nn.ReLU(), nn.Dropout(),
        nn.Conv2d(5, 4, 1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(),
        nn.Linear(144, 6), nn.BatchNorm1d(6), nn.ReLU(),
    )  # fmt: skip
    net = nn.Sequential(encoder, nn.Linear(6, 3))
    for layer in net.modules():
        if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)):
            assert layer.running_mean is not None and layer.running_var is not None
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2.0)
    return net


class Tokens(nn.Module):
    """One linear layer on several places, then a mean over them."""

    def __init__(self, again: bool = False, norm: bool = False) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(2, 2), nn.Linear(2, 3)
        self.again, self.norm = again, nn.LayerNorm(2) if norm else nn.Identity()

    def forward(self, x):
        h = torch.tanh(self.first(x.view(len(x), -1, 2)))
        if self.again:
            h = torch.tanh(self.first(h))
        return self.last(self.norm(h).mean(1))


@pytest.mark.parametrize(
    ("net", "shape", "by_layers"),
    [
        (conv_net, (20, 20, 3), True),
        (lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), (6,), True),
        (Tokens, (6,), True),
        (lambda: Tokens(again=True), (6,), False),
        (lambda: Tokens(norm=True), (6,), False),
    ],
)
@pytest.mark.parametrize("of", [torch.square, torch.abs])
def test_sums_over_samples_are_those_of_a_loop_over_samples(net, shape, by_layers, of) -> None:
    learner = Tiny(net(), shape)
    batch = {"obs": torch.rand(70, *learner.inputs.shape), "targets": torch.randint(3, (70,))}
    before = {k: v.clone() for k, v in learner.net.state_dict().items()}

    def score(some):
        return learner.loss(some)[0]

    got = persample.mean_gradients(learner, batch, score, of)
    learner.net.eval()
    part = persample._part(batch, 0, 64)
    assert persample._is_layers(learner, part, score) is by_layers
    expected = torch.zeros_like(got)
    for i in range(70):
        one = {k: v[i : i + 1] for k, v in batch.items()}
        g = torch.autograd.grad(score(one), list(learner.net.parameters()))
        expected += of(torch.cat([v.reshape(-1) for v in g])) / 70
    assert torch.allclose(got, expected, rtol=1e-3, atol=1e-6)
    # Looking leaves no trace: no running statistics move, no hook stays.
    assert all(torch.equal(v, before[k]) for k, v in learner.net.state_dict().items())
    assert not any(m._forward_hooks for m in learner.net.modules())


def test_looking_goes_back_to_training_mode_and_needs_no_gradient_buffers() -> None:
    learner = Tiny(conv_net(), (20, 20, 3))
    learner.optimizer.grads.fill_(3.0)
    fisher(learner, {"obs": torch.rand(5, 3, 20, 20)}, "predicted", noise())
    assert learner.net.training and bool((learner.optimizer.grads == 3.0).all())


# Springs: EWC, online EWC, SI, MAS.


def test_springs_of_many_tasks_are_one_spring() -> None:
    rng = np.random.default_rng(0)
    stiff, anchors = rng.random((4, 15)), rng.normal(size=(4, 15))
    stiff[:, 3] = 0.0
    stiff[0, 5] = 0.0
    learner, penalty = linear(), QuadraticPenalty()
    for s, a in zip(stiff, anchors, strict=True):
        penalty.add(torch.tensor(s, dtype=torch.float32), torch.tensor(a, dtype=torch.float32))
    for seed in (1, 2):
        theta = np.random.default_rng(seed).normal(size=15)
        learner.optimizer.weights.copy_(torch.tensor(theta))
        learner.optimizer.zero_grad()
        penalty.add_gradient(learner.optimizer, 2.5)
        expected = 2.5 * (stiff * (theta - anchors)).sum(0)
        assert learner.optimizer.grads.numpy() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_ewc_adds_a_spring_for_each_task() -> None:
    learner = linear()
    ewc = EWC(learner, strength=10.0, samples=8, labels="given")
    total, anchored = np.zeros(15), np.zeros(15)
    for seed in (0, 1):
        ewc.begin()
        batch = rows(8, seed=seed)
        ewc.collect(new_rows(batch))
        ewc.end()
        found = softmax_fisher(learner, batch, batch["targets"].numpy())
        total += found
        anchored += found * learner.optimizer.weights.numpy()
        learner.optimizer.weights.add_(0.3)
    learner.optimizer.zero_grad()
    ewc.project()
    expected = 10.0 * (total * learner.optimizer.weights.numpy() - anchored)
    assert learner.optimizer.grads.numpy() == pytest.approx(expected, rel=1e-4)


def test_the_divisor_of_the_openloris_release() -> None:
    found = {}
    for divisor in ("n", "n-1"):
        ewc = EWC(linear(), samples=8, labels="given", divisor=divisor)
        ewc.learner.optimizer.weights.fill_(0.1)
        ewc.begin()
        ewc.collect(new_rows(rows(8)))
        found[divisor] = ewc.importance()
    assert torch.allclose(found["n-1"], found["n"] * 8 / 7)


def test_online_ewc_by_hand() -> None:
    online = OnlineEWC(linear(), strength=4.0, decay=0.5)
    weights = online.learner.optimizer.weights
    for value, found in ((1.0, 8.0), (2.0, 6.0), (3.0, 1.0)):
        weights.fill_(value)
        online.importance = lambda found=found: torch.full((15,), found)
        online.end()
    # F̃: 8, then 6 + ½·8 = 10, then 1 + ½·10 = 6; the penalty takes ½·6 and holds to 3.
    weights.fill_(3.5)
    online.learner.optimizer.zero_grad()
    online.project()
    assert online.learner.optimizer.grads.tolist() == pytest.approx([4.0 * 3.0 * 0.5] * 15)


def test_a_task_in_which_nothing_was_learned_holds_nothing() -> None:
    for name in ("ewc", "online_ewc", "mas"):
        keep = registry.load("strategies", name)(linear())
        keep.begin()
        keep.end()
        assert keep.penalty.importance is None


def test_si_by_hand_over_two_steps_and_into_the_second_task() -> None:
    learner = Tiny(nn.Linear(2, 1, bias=False), (2,))
    si = SI(learner, strength=0.5, damping=0.25)
    optimizer = learner.optimizer
    optimizer.weights.copy_(torch.tensor([1.0, -1.0]))
    si.begin()

    def step(gradient: list[float], move: list[float]) -> list[float]:
        optimizer.grads.copy_(torch.tensor(gradient))
        si.project()
        seen: list[float] = optimizer.grads.tolist()
        optimizer.clip(0.1)  # What is clipped is not what the loss fell by.
        optimizer.weights.add_(torch.tensor(move))
        si.stepped()
        return seen

    assert step([2.0, -4.0], [-0.2, 0.4]) == [2.0, -4.0]
    assert step([1.0, 2.0], [-0.3, 0.1]) == [1.0, 2.0]
    # w = −Σ g Δ: 2·0.2 + 1·0.3 = 0.7 and 4·0.4 − 2·0.1 = 1.4; both moved by 0.5 in all.
    assert si.path.tolist() == pytest.approx([0.7, 1.4])
    si.end()
    si.begin()
    assert si.penalty.importance.tolist() == pytest.approx([0.7 / 0.5, 1.4 / 0.5])
    optimizer.weights.add_(torch.tensor([0.1, -0.1]))
    # The penalty's gradient is 2 · strength · Ω · 0.1, and counts in the path.
    assert step([1.0, 1.0], [-1.0, 0.0]) == pytest.approx([1.14, 0.72])
    assert si.path.tolist() == pytest.approx([1.14, 0.0])
    # From (0.5, −0.5) to (−0.4, −0.6): moved by −0.9 and −0.1.
    si.end()
    assert si.penalty.importance.tolist() == pytest.approx([1.4 + 1.14 / (0.81 + 0.25), 2.8])
    assert si.penalty.anchor.tolist() == pytest.approx([-0.4, -0.6])


def test_mas_of_a_linear_model_by_hand() -> None:
    learner = linear()
    mas = registry.load("strategies", "mas")(learner, strength=3.0, samples=30)
    batch = rows(30)
    mas.begin()
    mas.collect(new_rows(batch))
    mas.end()
    w, b = (p.detach().numpy().astype(float) for p in learner.net.parameters())
    x = batch["obs"].numpy().astype(float)
    f = x @ w.T + b
    # ∂‖f‖²/∂w_oi = 2 f_o x_i and ∂‖f‖²/∂b_o = 2 f_o.
    expected = np.concatenate(
        [np.abs(2 * np.einsum("no,ni->noi", f, x)).mean(0).ravel(), np.abs(2 * f).mean(0)]
    )
    assert mas.penalty.importance.numpy() == pytest.approx(expected, rel=1e-4)
    learner.optimizer.weights.add_(0.5)
    learner.optimizer.zero_grad()
    mas.project()
    assert learner.optimizer.grads.numpy() == pytest.approx(2 * 3.0 * expected * 0.5, rel=1e-4)
    mas.end()
    assert bool((mas.penalty.importance > torch.tensor(expected)).all())


# Distillation.


def test_soft_distillation_by_hand() -> None:
    student, teacher = torch.tensor([[log(4.0), 0.0]]), torch.tensor([[0.0, 2 * log(3.0)]])
    # At T = 2: the teacher says 1/4, 3/4; the student 2/3, 1/3.
    expected = -4 * (0.25 * log(2 / 3) + 0.75 * log(1 / 3))
    assert distillation.soft(student, teacher, 2.0).item() == pytest.approx(expected)
    assert distillation.hard(student, teacher).item() == pytest.approx(-log(1 / 5))
    a, b = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[0.0, 4.0], [1.0, 0.0]])
    assert distillation.squared_error(a, b).item() == pytest.approx((5 + 1) / 2 / 2)


@pytest.mark.parametrize(("hard", "share"), [(False, False), (True, False), (False, True)])
def test_lwf_weighs_by_tasks_and_learns_what_the_old_network_said(hard: bool, share: bool) -> None:
    params = f"hard={str(hard).lower()},strength=0.7,weighting={'share' if share else 'sum'}"
    agent = classifier(f"lwf+classifier,hidden=[5],{params}")
    keep, learner = agent.strategy, agent.learner
    learn(agent, "a", 3)
    batch = rows(8)
    plain = learner.loss(batch)[0]
    assert keep.objective(batch, plain) is plain  # Nothing to keep in the first task.
    for task, present in (("b", 1 / 2), ("c", 1 / 3)):
        with torch.no_grad():
            old = learner.predict(batch)
        learn(agent, task, 3)
        loss = learner.loss(batch)[0]
        got = keep.objective(batch, loss)
        now = learner.predict(batch)
        assert not torch.allclose(now, old)
        distance = distillation.hard(now, old) if hard else distillation.soft(now, old, 2.0)
        expected = loss + 0.7 * distance
        if share:
            expected = present * loss + (1 - present) * distance
        assert got.item() == pytest.approx(expected.item())


def test_lwf_passes_the_student_once_and_the_teacher_in_evaluation_mode() -> None:
    agent = classifier("lwf+classifier,hidden=[5]", (20, 20, 3), np.uint8)
    learner = agent.learner
    learner.net = conv_net()
    learner.optimizer = Adam(learner.net.parameters(), 1e-3)
    agent.strategy.teacher.live = learner.net
    learn(agent, "a", 2)
    learn(agent, "b", 0)
    teacher, calls = agent.strategy.teacher.net, []
    assert not teacher.training and learner.net.training
    for name, net in (("student", learner.net), ("teacher", teacher)):
        net[1].register_forward_hook(lambda *_, name=name: calls.append(name))
    before = {k: v.clone() for k, v in teacher.state_dict().items()}
    learn(agent, "b", 1)
    assert calls == ["student", "teacher"]
    assert all(torch.equal(v, before[k]) for k, v in teacher.state_dict().items())


def test_lwf_distils_numbers_by_their_distance() -> None:
    learner = linear(numbers=True)
    keep = registry.load("strategies", "lwf")(learner)
    keep.end()
    batch = {"obs": rows(6)["obs"], "targets": torch.zeros(6, 3)}
    old = learner.predict(batch).detach()
    learner.optimizer.weights.mul_(1.5)
    loss = learner.loss(batch)[0]
    expected = loss + ((learner.predict(batch) - old) ** 2).sum() / 6 / 2
    assert keep.objective(batch, loss).item() == pytest.approx(expected.item())


# A-GEM.


def gradient(learner: Any, batch: Any) -> Any:
    parts = torch.autograd.grad(learner.loss(batch)[0], list(learner.net.parameters()))
    return torch.cat([g.reshape(-1) for g in parts])


def agem_step(flip: bool) -> tuple[Any, Any, Any]:
    """(gradient of the present, of the past, what A-GEM follows)"""
    learner = linear()
    keep = registry.load("strategies", "agem")(learner, quota=8)
    past, present = rows(8), rows(8, seed=1)
    if flip:  # The same inputs with other labels: certainly against the past.
        present = {"obs": past["obs"], "targets": (past["targets"] + 1) % 3}
    for batch in (past, present):
        keep.tasks += 1
        keep.begin()
        keep.collect(new_rows(batch))
        keep.extend(batch)
    (kept,) = keep.memory.draw(8, copy.deepcopy(keep.rng), 1)
    drawn = keep.memory.form.unpack(kept)
    g, reference = gradient(learner, present), gradient(learner, drawn)
    learner.optimizer.grads.copy_(g)
    keep.project()
    return g, reference, learner.optimizer.grads.clone()


def test_agem_steps_orthogonally_where_gradients_conflict() -> None:
    g, reference, got = agem_step(flip=True)
    assert g @ reference < -0.01
    assert abs(float(got @ reference)) < 1e-6
    # The nearest such step: what was taken away is along the reference.
    away = g - got
    cosine = (away @ reference) / (away.norm() * reference.norm())
    assert float(cosine) == pytest.approx(-1.0, abs=1e-5)


def test_agem_leaves_other_gradients_as_they_are() -> None:
    g, reference, got = agem_step(flip=False)
    assert g @ reference > 0
    assert torch.equal(got, g)


# PackNet.


def packnet(spec: str = "packnet+classifier,hidden=[20,20],retrain=5,prune=0.6") -> Any:
    return classifier(spec)


def test_packnet_masks_are_disjoint_and_owned_weights_never_change() -> None:
    agent = packnet()
    keep, weights = agent.strategy, agent.learner.optimizer.weights
    free = [w.stop - w.start for w in keep.layers]
    assert free == [4 * 20, 20 * 20, 20 * 3]
    kept = torch.zeros(len(weights), dtype=torch.bool)
    for number, task in enumerate("abcd"):
        learn(agent, task, 0)  # It begins, so that the one before ends.
        assert int(keep.owner.max()) == number
        if number:
            owned = keep.owner == number
            assert not bool((owned & kept).any())
            per_layer = [int(owned[w].sum()) for w in keep.layers]
            assert per_layer == [round(0.4 * n) for n in free]
            free = [n - k for n, k in zip(free, per_layer, strict=True)]
            # Pruned weights are zero until a later task moves them.
            assert bool((weights[keep.owner == 0] == 0).all())
        kept, values = keep.owner > 0, weights.clone()
        learn(agent, task, 10, seed=number)
        assert torch.equal(weights[kept], values[kept])
        assert not torch.equal(weights[~kept], values[~kept])
    biases = torch.ones(len(weights), dtype=torch.bool)
    for where in keep.layers:
        biases[where] = False
    assert bool((keep.owner[biases] == 1).all()) and int(biases.sum()) == 43


def test_packnet_keeps_the_largest_weights_of_each_layer() -> None:
    agent = packnet("packnet+classifier,hidden=[20,20],retrain=0,prune=0.6")
    learn(agent, "a", 10)
    before = agent.learner.optimizer.weights.clone()
    learn(agent, "b", 0)
    for where in agent.strategy.layers:
        size, owned = before[where].abs(), agent.strategy.owner[where] == 1
        assert size[owned].min() >= size[~owned].max()
        # Without retraining what is kept is as it was.
        assert torch.equal(agent.learner.optimizer.weights[where][owned], before[where][owned])


def test_packnet_retrains_what_the_task_owns_and_nothing_else() -> None:
    for retrain, again in ((0, 0), (20, 20), ("learned", 10)):
        agent = packnet(f"packnet+classifier,hidden=[20,20],retrain={retrain},prune=0.6")
        learn(agent, "a", 10)
        steps, before = agent.learner.optimizer.steps, agent.learner.optimizer.weights.clone()
        agent.strategy.end()
        assert agent.strategy.seen.offered == 10 * 16  # Rows learned again are not seen again.
        weights, owned = agent.learner.optimizer.weights, agent.strategy.owner == 1
        assert agent.learner.optimizer.steps == steps + again
        assert torch.equal(weights[owned], before[owned]) is (again == 0)
        assert bool((weights[~owned] == 0).all())


def test_packnet_retrains_by_a_schedule_of_its_own() -> None:
    agent = packnet(
        'packnet+classifier,hidden=[20,20],retrain=4,prune=0.6,lr=0.01,optimizer={schedule="linear"}'
    )
    learn(agent, "a", 10)
    optimizer, rates = agent.learner.optimizer, []
    optimizer.advance(1.0)
    assert optimizer.current_lr == 0  # The task has been learned to the end.
    descend = agent.learner.descend

    def noted(batch: Any) -> Any:
        rates.append(optimizer.current_lr)
        return descend(batch)

    agent.learner.descend = noted
    agent.strategy.end()
    assert rates == pytest.approx([0.01, 0.0075, 0.005, 0.0025])
    assert optimizer.updates == 0  # The next task's begins where it would have.


def test_packnet_evaluates_a_task_as_it_was_however_much_came_after() -> None:
    agent = packnet()
    x = np.random.default_rng(5).random((9, 4), np.float32)
    net = agent.learner
    net.act = lambda obs, ctx: net.net(net.inputs(obs)).detach().numpy()  # Logits, not labels.
    learn(agent, "a", 20)
    learn(agent, "b", 1, seed=1)
    first = agent.act(x, evaluation(*"aaaaaaaaa"))
    learn(agent, "b", 20, seed=2)
    learn(agent, "c", 20, seed=3)
    before = {k: v.copy() for k, v in agent.state().items()}
    assert agent.act(x, evaluation(*"aaaaaaaaa")).tobytes() == first.tobytes()
    second, whole = agent.act(x, evaluation(*"bbbbbbbbb")), agent.act(x, evaluation(*"ccccccccc"))
    # All weights for the task being learned, for one never seen, and where identity is hidden.
    assert np.array_equal(whole, agent.act(x, evaluation(*"zzzzzzzzz")))
    hidden = Context("eval", False, 1, None, np.arange(9), np.zeros(0, bool))
    assert np.array_equal(whole, agent.act(x, hidden))
    # Side by side, each row by its own weights.
    mixed = agent.act(x, evaluation(*"abcabcabc"))
    by_row = [(first, second, whole)[i % 3][i] for i in range(9)]
    assert np.allclose(mixed, np.stack(by_row), atol=1e-6) and not np.allclose(first, whole)
    assert all(np.array_equal(v, before[k]) for k, v in agent.state().items())


def test_packnet_freezes_norms_with_their_statistics() -> None:
    agent = classifier("packnet+classifier,hidden=[5],retrain=3", (20, 20, 3), np.uint8)
    learner = agent.learner
    learner.net = conv_net()
    learner.optimizer = Adam(learner.net.parameters(), 1e-3)
    agent = type(agent.strategy)(learner, retrain=3).agent()
    x = np.random.default_rng(5).integers(256, size=(9, 20, 20, 3)).astype(np.uint8)

    def logits() -> Any:
        with persample.evaluating(learner.net), torch.no_grad():
            return learner.net(learner.inputs(x))

    learner.act = lambda obs, ctx: logits().numpy()
    learn(agent, "a", 5)
    learn(agent, "b", 1, seed=1)
    first = agent.act(x, evaluation(*"aaaaaaaaa"))
    statistics = {k: v.clone() for k, v in learner.net.state_dict().items() if "running" in k}
    learn(agent, "b", 10, seed=2)
    assert agent.act(x, evaluation(*"aaaaaaaaa")).tobytes() == first.tobytes()
    after = learner.net.state_dict()
    assert len(statistics) == 4 and all(torch.equal(after[k], v) for k, v in statistics.items())
    assert not np.allclose(logits().numpy(), first)


def test_packnet_knows_biases_of_any_shape_and_what_only_steers() -> None:
    space = spaces.Box(-1, 1, (2,), np.float32)
    learner = registry.load("agents", "sac")(Setup(space, space, 1, 0, ("a", "b")), hidden=[6])
    learner.non_policy_parameters = ("log_alpha",)
    keep = registry.load("strategies", "packnet")(learner)
    named = learner.parameters()
    weights = [p.numel() for name, p in named.items() if "weights" in name]
    assert [w.stop - w.start for w in keep.layers] == weights
    biases = sum(p.numel() for name, p in named.items() if "biases" in name)
    assert sum(w.stop - w.start for w in keep.others) == biases


# Memories.


def test_the_reservoir_is_uniform() -> None:
    n, capacity, lives = 12, 3, 5000
    rng, counts = np.random.default_rng(0), np.zeros(n)
    for _ in range(lives):
        memory = Reservoir(capacity)
        for start, end in ((0, 2), (2, 7), (7, 8), (8, 12)):
            memory.offer(new_rows({"x": torch.arange(start, end)}), rng)
        assert len(memory) == capacity == len(set(memory.all()["x"].tolist()))
        counts[memory.all()["x"].numpy()] += 1
    share = capacity / n
    # Counts of draws without replacement vary less than a multinomial's, by 1 − share.
    spread = ((counts - lives * share) ** 2).sum() / (lives * share * (1 - share)) * (n - 1) / n
    assert 0.001 < stats.chi2.sf(spread, n - 1) < 0.999


def test_quotas_hold_a_uniform_sample_of_each_task() -> None:
    rng, memory = np.random.default_rng(1), PerTaskBuffer(10)
    for task, n in enumerate((50, 4, 30)):
        memory.begin(rng)
        memory.offer(new_rows({"x": torch.arange(100 * task, 100 * task + n)}), rng)
    assert [len(t) for t in memory.tasks] == [10, 4, 10]
    assert memory.held() == 24 and memory.held(2) == 14 and memory.held(0) == 0
    drawn = np.concatenate([part["x"] for part in memory.draw(14_000, rng, 2)])
    values, counts = np.unique(drawn, return_counts=True)
    assert len(values) == 14 and values.max() == 103
    assert stats.chisquare(counts).pvalue > 0.001


def test_replay_with_quotas_replays_finished_tasks_only() -> None:
    keep = registry.load("strategies", "replay")(linear(), quota=5)
    sizes = []
    for task in range(3):
        keep.tasks += 1
        keep.begin()
        for _ in range(3):
            x = torch.full((6, 4), float(task))
            batch = {"obs": x, "targets": torch.zeros(6)}
            keep.collect(new_rows(batch))
            got = keep.extend(batch)["obs"][:, 0]
            assert bool((got[:6] == task).all()) and bool((got[6:] < task).all())
            sizes.append(len(got))
    assert sizes == [6] * 3 + [12] * 6


@pytest.mark.parametrize("params", [{}, {"quota": 4}])
def test_replay_of_a_past_without_rows_is_the_present(params: dict[str, int]) -> None:
    keep = registry.load("strategies", "replay")(linear(), **params)
    for _ in range(2):
        keep.tasks += 1
        keep.begin()
    assert len(keep.extend(rows(6))["obs"]) == 6


def test_distinct_rows_are_kept_once_whatever_the_epoch() -> None:
    inputs = Inputs(spaces.Box(-np.inf, np.inf, (2,), np.float32))
    memory = UniqueBuffer(inputs)
    x = torch.arange(200.0).view(100, 2)
    for _ in range(3):
        for part in x[torch.randperm(100)].split(16):
            memory.offer(new_rows({"obs": part, "y": part[:, 0].long()}))
    assert len(memory) == 100
    kept = memory.at(np.arange(100))
    assert sorted(kept["obs"][:, 0].tolist()) == x[:, 0].tolist()
    assert torch.equal(kept["y"], kept["obs"][:, 0].long())
    again = UniqueBuffer(inputs)
    again.load("m", memory.state("m"))
    again.offer(new_rows({"obs": x[:5], "y": x[:5, 0].long()}))
    assert len(again) == 100


def test_joint_gives_every_task_the_same_share() -> None:
    keep = registry.load("strategies", "joint")(linear())
    sizes = (10, 200, 40)
    drawn = []
    for task, n in enumerate(sizes):
        keep.tasks += 1
        keep.begin()
        x = torch.zeros(n, 4)
        x[:, 0], x[:, 1] = task, torch.arange(n)
        for k in range(300):
            at = torch.arange(32 * k, 32 * k + 32) % n
            batch = {"obs": x[at], "targets": x[at, 0].long()}
            keep.collect(new_rows(batch))
            got = keep.extend(batch)
            assert got["obs"].shape == (32, 4)
            assert torch.equal(got["obs"][:, 0].long(), got["targets"])
            if task == 2:
                drawn.append(got["obs"].numpy().copy())
    assert [len(t) for t in keep.memory] == list(sizes)
    seen = np.concatenate(drawn)
    assert stats.chisquare(np.bincount(seen[:, 0].astype(int))).pvalue > 0.001
    second = np.bincount(seen[seen[:, 0] == 1, 1].astype(int), minlength=200)
    assert stats.chisquare(second).pvalue > 0.001


# Generative replay.


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
def test_the_loss_of_a_vae_by_hand(likelihood: Any) -> None:
    net = vae.VAE(3, (5,), (4,), likelihood)
    if likelihood == "gaussian":
        with torch.no_grad():
            net.decoder.raw.copy_(torch.tensor([-0.5, 0.0, 1.0, -20.0]))
    x = torch.rand(6, 4)
    got = net.loss(x, noise()).item()
    p = {k: v.detach().numpy().astype(float) for k, v in net.state_dict().items()}

    def layer(h: np.ndarray, name: str) -> np.ndarray:
        return h @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0.0)

    h = np.maximum(layer(x.numpy(), "encoder.1.0"), 0)
    mean, logvar = layer(h, "latent.mean"), layer(h, "latent.logvar")
    z = mean + np.exp(logvar / 2) * noise().standard_normal((6, 3), np.float32)
    out = layer(np.maximum(layer(z, "decoder.net.0.0"), 0), "decoder.net.1")
    xs = x.numpy().astype(float)
    if likelihood == "bernoulli":
        q = 1 / (1 + np.exp(-out))
        surprise = -(xs * np.log(q) + (1 - xs) * np.log(1 - q)).sum(1)
    else:
        log_spread = -4 + np.log1p(np.exp(p["decoder.raw"] + 4))
        surprise = (((xs - out) / np.exp(log_spread)) ** 2 / 2 + log_spread).sum(1)
        assert exp(log_spread[3]) == pytest.approx(exp(-4), rel=1e-4)
    divergence = 0.5 * (mean**2 + np.exp(logvar) - 1 - logvar).sum(1)
    assert got == pytest.approx((surprise + divergence).mean() / 4, rel=1e-4)


def test_a_vae_learns_what_it_is_shown() -> None:
    rng = np.random.default_rng(0)
    net = vae.VAE(2, (32,), (2,), "gaussian")
    optimizer = Adam(net.parameters(), 0.01)
    for _ in range(600):
        side = rng.integers(2, size=64) * 2 - 1
        x = np.stack([3 * side, -side + 5], 1) + rng.normal(0, 0.1, (64, 2))
        optimizer.zero_grad()
        net.loss(torch.tensor(x, dtype=torch.float32), rng).backward()
        optimizer.step()
    drawn = net.decoder.sample(2000, rng).numpy()
    # Most of what is drawn lies by one of the two places, and both are drawn.
    far = np.minimum(*(np.abs(drawn - c).max(1) for c in ([3, 4], [-3, 6])))
    assert (far < 0.6).mean() > 0.6 and 0.3 < (drawn[:, 0] > 0).mean() < 0.7


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Box(0, 255, (20, 20, 3), np.uint8), "bernoulli"),
        (spaces.Box(0, 10, (7, 7, 3), np.uint8), "bernoulli"),
        (spaces.Box(0, 255, (5,), np.uint8), "bernoulli"),
        (spaces.Box(0, 255, (20, 20, 3), np.float32), "bernoulli"),
        (spaces.Box(0, 1, (5,), np.float32), "bernoulli"),
        (spaces.Discrete(4), "bernoulli"),
        (spaces.Box(-1, 1, (20, 20, 3), np.float32), "gaussian"),
        (spaces.Box(-np.inf, np.inf, (5,), np.float32), "gaussian"),
    ],
)
def test_the_likelihood_fits_the_inputs(space: Any, expected: str) -> None:
    assert vae.fitting(space) == expected
    space.seed(0)
    agent = make_agent(
        Spec.parse("dgr+classifier,generator=[6],latent=2"), Setup(space, spaces.Discrete(3), 1, 0)
    )
    x = agent.learner.inputs(np.stack([space.sample() for _ in range(3)]))
    drawn = agent.strategy.generator.net.decoder.sample(50, noise())
    assert drawn.shape[1:] == x.shape[1:]
    if expected == "bernoulli":
        assert 0 <= x.min() and x.max() <= 1 and 0 <= drawn.min() and drawn.max() <= 1


@pytest.mark.parametrize("name", ["dgr", "dgr_distill"])
def test_replayed_inputs_and_their_labels_come_from_the_copies_of_the_past(name: str) -> None:
    agent = classifier(f"{name}+classifier,hidden=[5],generator=[6],latent=2")
    learn(agent, "a", 5)
    old, source = (copy.deepcopy(n) for n in (agent.learner.net, agent.strategy.generator.net))
    learn(agent, "b", 5, seed=1)
    batch = rows(8)
    loss = agent.learner.loss(batch)[0]
    rng = copy.deepcopy(agent.rng)
    rng.standard_normal((8, 2), np.float32)  # The VAE's own noise comes first.
    x = source.decoder.sample(8, rng)
    said, now = old(x).detach(), agent.learner.net(x).detach()
    distance = distillation.hard(now, said)
    if name == "dgr_distill":
        distance = distillation.soft(now, said, 2.0)
    expected = loss / 2 + distance / 2
    before = copy.deepcopy(agent.strategy.generator.net)
    vae_noise = copy.deepcopy(agent.rng)
    assert agent.strategy.objective(batch, loss).item() == pytest.approx(expected.item())
    # The VAE takes a step down half of each part.
    v = before.loss(batch["obs"], vae_noise)
    vae_noise.standard_normal((8, 2), np.float32)
    v = v / 2 + before.loss(x, vae_noise) / 2
    grads = torch.autograd.grad(v, list(before.parameters()))
    flat = torch.cat([g.reshape(-1) for g in grads])
    assert torch.allclose(agent.strategy.generator.optimizer.grads, flat, atol=1e-6)


def test_feedback_shares_the_encoder_and_replays_its_own_past() -> None:
    agent = classifier("rtf+classifier,hidden=[5],decoder=[6],latent=2")
    keep, learner = agent.strategy, agent.learner
    learn(agent, "a", 5)
    old, source = copy.deepcopy(learner.net), copy.deepcopy(keep.feedback.net)
    learn(agent, "b", 5, seed=1)
    moved = zip(source.parameters(), keep.feedback.net.parameters(), strict=True)
    assert all(not torch.equal(a, b) for a, b in moved)
    batch = rows(8)
    loss = learner.loss(batch)[0]
    rng = copy.deepcopy(agent.rng)

    def surprise(x: Any) -> Any:
        net = keep.feedback.net
        return vae.negative_elbo(x, net.latent(learner.net[0](x)), net.decoder, rng)

    v = surprise(batch["obs"])
    x = source.decoder.sample(8, rng)
    kept = distillation.soft(learner.net(x), old(x).detach(), 2.0) + surprise(x)
    expected = (loss + v) / 2 + kept / 2
    got = keep.objective(batch, loss)
    assert got.item() == pytest.approx(expected.item(), rel=1e-5)
    # One backward reaches the encoder through the decoder, and the decoder itself.
    learner.optimizer.zero_grad()
    (got - loss / 2 - distillation.soft(learner.net(x), old(x).detach(), 2.0) / 2).backward()
    encoder = learner.net[0][0].weight.grad
    assert encoder.abs().sum() > 0 and keep.feedback.optimizer.grads.abs().sum() > 0
    assert learner.net[1].weight.grad.abs().max() < 1e-6


def test_an_auxiliary_network_does_not_begin_with_the_learners_random_numbers() -> None:
    # Both are linear layers from 4 to 5, initialised in the same way.
    agent = classifier("dgr+classifier,hidden=[5],generator=[5],latent=2")
    mine = agent.strategy.generator.net.encoder[1][0].weight
    assert mine.shape == agent.learner.net[0][0].weight.shape
    assert not torch.allclose(mine, agent.learner.net[0][0].weight)
    again = classifier("dgr+classifier,hidden=[5],generator=[5],latent=2")
    assert torch.equal(mine, again.strategy.generator.net.encoder[1][0].weight)


@pytest.mark.parametrize("name", ["dgr", "dgr_distill", "rtf"])
@pytest.mark.parametrize(("shape", "dtype"), [((20, 20, 3), np.uint8), ((6,), np.float32)])
def test_generative_replay_on_pictures_and_features(name: str, shape: Any, dtype: Any) -> None:
    agent = classifier(f"{name}+classifier,hidden=[8]", shape, dtype)
    learn(agent, "a", 2)
    learn(agent, "b", 2)
    auxiliary = agent.strategy.feedback if name == "rtf" else agent.strategy.generator
    # By default the network of the authors.
    assert auxiliary.net.decoder.latent == 100
    assert [m.out_features for m in auxiliary.net.decoder.net.modules() if hasattr(m, "in_features")] == [
        400, 400, int(np.prod(shape))
    ]  # fmt: skip
    assert auxiliary.net.latent.logvar.bias is None
    assert all(np.isfinite(v).all() for v in agent.state().values())


# Saving.


@pytest.mark.parametrize("name", sorted({*registry.entries("strategies")} - {"pcgrad"}))
@pytest.mark.parametrize("cut", ["", "a", "ab"])
def test_a_saved_agent_is_the_same_again_whatever_it_lived_since(name: str, cut: str) -> None:
    agent = classifier(f"{name}+classifier,hidden=[5]")

    def live(tasks: str) -> dict[str, Any]:
        for k, task in enumerate(tasks):
            learn(agent, task, 3, seed=k)
        return {k: v.copy() for k, v in agent.state().items()}

    def same(a: Any, b: Any) -> bool:
        return a.keys() == b.keys() and all(np.array_equal(v, b[k]) for k, v in a.items())

    saved, rng = live(cut), copy.deepcopy(agent.rng)
    once = live("bcb")
    assert not same(once, saved)
    agent.load(saved)
    agent.rng = rng
    assert same(agent.state(), saved)
    assert same(live("bcb"), once)


# What works with what.

EVERY = (
    "finetune", "ewc", "online_ewc", "si", "mas", "lwf", "packnet",
    "l2_init", "shrink_perturb", "redo", "continual_backprop",
)  # fmt: skip
REPLAYED = ("replay", "agem")
LABELLED = ("joint", "dgr", "dgr_distill", "rtf")
PARALLEL = ("pcgrad",)


def test_every_strategy_says_which_learners_it_works_with() -> None:
    names = list(registry.entries("strategies"))
    assert sorted(names) == sorted((*EVERY, *REPLAYED, *LABELLED, *PARALLEL))
    for name in names:
        able, refused = works_with(registry.load("strategies", name))
        assert ("classifier" in able) == (name not in PARALLEL) and not set(able) & set(refused)
        assert set(able) | set(refused) == set(registry.entries("agents"))
        assert all("closed box" in refused[n] for n in ("q", "random", "sb3", "tella"))
        assert ("ppo" in able) == (name in EVERY)
        assert ("dqn" in able) == (name in EVERY + REPLAYED)


@pytest.mark.parametrize(
    ("agent", "curriculum", "says"),
    [
        ("replay+ppo", "toy/compass", "drawn by an older policy"),
        ("agem+ppo", "toy/compass", "drawn by an older policy"),
        ("joint+dqn", "toy/compass", "learns from environments"),
        ("dgr+dqn", "toy/compass", "replays labelled inputs"),
        ("rtf+ppo", "toy/compass", "replays labelled inputs"),
        ("ewc+q", "toy/compass", "closed box"),
        ("ewc+ppo,labels=given", "toy/compass", "needs labelled data"),
        ("lwf+dqn,hard=true", "toy/compass", "predicts real numbers"),
        ("ewc+classifier,labels=mine", "toy/islands", "predicted, sampled, given"),
        ("ewc+classifier,divisor=2", "toy/islands", "divisor"),
        ("ewc+classifier,strength=-1", "toy/islands", "strength"),
        ("packnet+classifier,prune=1.5", "toy/islands", "prune"),
        ("replay+classifier,memory=0", "toy/islands", "at least one row"),
        ("dgr+classifier,likelihood=poisson", "toy/islands", "likelihood"),
        ("lwf+classifier,temperature=0", "toy/islands", "temperature"),
    ],
)
def test_what_cannot_work_is_refused_at_planning(tmp_path, agent, curriculum, says) -> None:
    with pytest.raises(SpecError, match=says):
        make_plan(RunSpec(curriculum, (agent,), out=str(tmp_path)))


def test_no_parameter_means_both_a_strategy_and_a_learner() -> None:
    """``ewc+ppo,x=1`` must say without doubt whose x it is."""
    taken: dict[str, str] = {}
    for name, entry in registry.entries("agents").items():
        if entry.source.startswith("perdure.agents.learners"):
            parameters = inspect.signature(registry.load("agents", name)).parameters
            taken |= {p: name for p in parameters}
    for name in registry.entries("strategies"):
        mine = set(inspect.signature(registry.load("strategies", name)).parameters) - {"learner"}
        assert not mine & set(taken), (name, mine & set(taken))


def test_finetune_is_the_learner_alone_to_the_bit() -> None:
    bare, kept = classifier("classifier,hidden=[5]"), classifier("finetune+classifier,hidden=[5]")
    assert type(kept.strategy) is Strategy
    for task in "ab":
        learn(bare, task, 5)
        learn(kept, task, 5)
    mine = kept.state()
    assert all(np.array_equal(v, mine[k]) for k, v in bare.state().items())
