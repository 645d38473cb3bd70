"""Plasticity: every measure by hand, every remedy on units that are known to be dead, nothing left
behind by measuring, and a network that is known to lose it."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from kit import live
from perdure import curricula
from perdure.agents.compose import make_agent
from perdure.errors import SpecError
from perdure.specs import Spec
from perdure.types import Examples, Setup, Task

torch = pytest.importorskip("torch")

from torch import nn

from perdure.agents.networks import plasticity
from perdure.agents.networks.encoders import cnn
from perdure.agents.networks.sac_networks import Layers
from perdure.agents.networks.units import Activations, add_layer_norms, by_unit, hidden_layers

BOX = spaces.Box(-1, 1, (4,), np.float32)


def test_dormant_units_by_hand() -> None:
    # Mean absolute activations 2, 0, 0.02 and 1.98: their mean is 1, so 0 and 0.02 are dormant at 0.025.
    layer = torch.tensor([[2.0, 0.0, 0.02, -1.98], [-2.0, 0.0, 0.02, 1.98]])
    other = torch.ones(2, 2)
    assert plasticity.is_dormant(layer, 0.025).tolist() == [False, True, True, False]
    assert plasticity.dormant_redo([layer, other]) == pytest.approx((0.5 + 0.0) / 2)
    # Dohare's counts units, not layers, and only those that are hardly ever other than 0.
    assert plasticity.dormant_dohare([layer, other]) == pytest.approx(1 / 6)


def test_ranks_by_hand() -> None:
    singular = np.array([3.0, 1.0])
    p, q = 0.75, 0.25
    assert plasticity.effective_rank(singular) == pytest.approx(np.exp(-p * log(p) - q * log(q)))
    assert plasticity.stable_rank(singular) == pytest.approx(10 / 9)
    assert plasticity.srank(singular) == 2.0
    assert plasticity.srank(np.array([99.5, 0.5])) == 1.0
    assert plasticity.effective_rank(np.zeros(3)) == plasticity.stable_rank(np.zeros(3)) == 0.0


def test_units_of_pictures_sequences_and_copies() -> None:
    assert by_unit(torch.zeros(5, 7, 2, 3), 5).shape == (30, 7)
    assert by_unit(torch.zeros(5, 6, 7), 5).shape == (30, 7)
    copies = torch.stack([torch.full((5, 3), k) for k in (1.0, 2.0)])
    assert by_unit(copies, 5)[0].tolist() == [1, 1, 1, 2, 2, 2]


def agent_of(text: str, space: Any = BOX, actions: Any = spaces.Discrete(3)) -> Any:
    return make_agent(Spec.parse(text), Setup(space, actions, 1, 0, ("t/a", "t/b")))


def rows_for(agent: Any, n: int = 32) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shape = agent.observation_space.shape
    inputs = rng.uniform(-1, 1, (n, *shape)).astype(np.float32)
    return dict(agent.learner.minibatch(Examples(inputs, rng.integers(3, size=n))))


def test_every_hidden_layer_is_found_with_its_weights() -> None:
    net = nn.Sequential(cnn((3, 40, 40)), nn.Linear(64, 5), nn.ReLU(), nn.Linear(5, 2))
    conv = hidden_layers(net)
    assert [la.units for layers in conv.values() for la in layers] == [32, 64, 64, 5]
    # What leads out of a channel are the weights of all its places.
    last = next(
        la for layers in conv.values() for la in layers if la.outgoing.parameter is net[1].weight
    )
    assert last.outgoing.repeats == net[1].in_features // 64
    (copies,) = hidden_layers(nn.ModuleDict({"critics": Layers([4, 6, 7, 1], 2)})).values()
    assert [la.units for la in copies] == [12, 14]
    ones = torch.arange(12.0)
    spread = copies[0].incoming[0].spread(ones)
    assert spread.shape == (2, 4, 6) and torch.equal(spread[:, 0].flatten(), ones)
    assert torch.allclose(
        copies[0].outgoing.sums()[7], copies[0].outgoing.parameter[1, 1].abs().sum()
    )


@pytest.mark.parametrize(
    "strategy", ["redo,period=1,threshold=0", "continual_backprop,replacement_rate=0.2,maturity=1"]
)
def test_a_dead_unit_is_made_new_and_nothing_that_was_known_changes(strategy: str) -> None:
    name, _, params = strategy.partition(",")
    agent = agent_of(f"{name}+classifier,hidden=[6],{params}")
    first = agent.learner.net[0][0]
    with torch.no_grad():
        first.weight[2], first.bias[2] = 0.0, -1.0
    batch = rows_for(agent)
    agent.strategy.extend(batch)
    for k in agent.learner.optimizer.buffers.values():
        k.fill_(1.0)
    before = agent.learner.predict(batch).detach().clone()
    alive = first.weight[0].detach().clone()
    for _ in range(1 if name == "redo" else 2):
        agent.strategy.stepped()
    assert first.weight[2].abs().min() > 0, "the unit has new weights"
    assert agent.learner.net[1].weight[:, 2].abs().max() == 0
    assert torch.equal(first.weight[0], alive)
    assert torch.allclose(agent.learner.predict(batch), before), "it gave nothing before either"
    mean = agent.learner.optimizer.buffers["mean"]
    part = agent.learner.optimizer.part_of(mean, first.weight)
    assert part[2].abs().max() == 0 and part[0].min() == 1


def test_shrink_and_perturb_takes_a_step_back_when_a_task_begins() -> None:
    agent = agent_of("shrink_perturb+classifier,hidden=[50],shrink=0.5,perturb=0.1")
    optimizer = agent.learner.optimizer
    birth = optimizer.weights.clone()
    optimizer.weights.fill_(2.0)
    agent.strategy.tasks = 1
    agent.strategy.begin()
    assert optimizer.weights.min() == 2.0, "nothing at the first"
    agent.strategy.tasks = 2
    agent.strategy.begin()
    added = (optimizer.weights - 1.0) / 0.1
    first = agent.learner.net[0][0].weight
    drawn, own = optimizer.part_of(added, first), optimizer.part_of(birth, first)
    assert drawn.std() == pytest.approx(float(own.std()), rel=0.2)
    assert all(float((own - v).abs().min()) < 1e-5 for v in drawn.flatten()[:20])


def test_l2_init_pulls_towards_birth() -> None:
    agent = agent_of("l2_init+classifier,strength=0.25")
    optimizer = agent.learner.optimizer
    optimizer.weights.add_(3.0)
    optimizer.zero_grad()
    agent.strategy.project()
    assert optimizer.grads.min() == pytest.approx(2 * 0.25 * 3.0)


def test_layer_norms_lie_between_layers_and_activations() -> None:
    agent = agent_of("classifier,hidden=[6,5],layer_norm=true")
    kinds = [type(m).__name__ for m in agent.net[0]]
    assert kinds == ["Linear", "LayerNorm", "ReLU"] * 2
    agent = agent_of("sac,layer_norm=true", actions=BOX)
    with Activations() as seen:
        agent.net.actor.forward(torch.randn(3, 4))
    before = torch.nn.functional.layer_norm(
        torch.baddbmm(agent.net.actor.biases[0], torch.zeros(1, 3, 4), agent.net.actor.weights[0]),
        (256,),
    )
    assert seen.outputs[0].shape == before.shape
    with pytest.raises(SpecError, match="no linear layer"):
        add_layer_norms(nn.Linear(2, 2))


LEARNERS = {
    "classifier,hidden=[8]": ("toy", "blobs", "epochs"),
    "bc,hidden=[8]": ("toy", "blobs", "epochs"),
    "dqn,preset=quick,batch=16": ("toy", "bandit", "steps"),
    "ppo,preset=quick,rollout=32,batch=16": ("toy", "bandit", "steps"),
    "te,rollout=32,batch=16,hidden=[8]": ("toy", "bandit", "steps"),
    "recurrent_ppo,rollout=32,batch=4,hidden=[8],width=4,sequence=4": ("toy", "bandit", "steps"),
    "sac,batch=16,hidden=[8,8],start=20": ("toy", "reach", "steps"),
}


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_is_measured_and_left_as_it_was(tmp_path: Path, learner: str) -> None:
    """The loop refuses an agent that an evaluation has changed."""
    suite, name, unit = LEARNERS[learner]
    task = Task(suite, name)
    amount: dict[str, int] = {"epochs": 2} if unit == "epochs" else {"steps": 150}
    life = curricula.one_task(task, unit == "steps", rounds=1, episodes=1, **amount)

    def lived(more: str) -> tuple[Any, Any]:
        spec = Spec.parse(learner + more)
        return live(life, lambda setup: make_agent(spec, setup), path=tmp_path / (more or "plain"))

    rows, _ = lived(",plasticity=24,trainability=4")
    measured = [r.more for r in rows if r.more and "plasticity.weight_norm" in r.more]
    assert len(measured) == 1, "after learning, not before"
    expected = {f"plasticity.{n}" for n in ("dormant_redo", "effective_rank", "trainability")}
    assert expected <= set(measured[0])
    assert all(np.isfinite(v) for k, v in measured[0].items() if k.startswith("plasticity."))
    plain, _ = lived("")

    def told(rows: Any) -> list[Any]:
        return [
            ({k: v for k, v in (r.more or {}).items() if k[:10] != "plasticity"}, r.ret, r.loss)
            for r in rows
        ]

    assert told(plain) == told(rows), "measuring changes nothing"


def test_who_cannot_be_measured_says_so() -> None:
    with pytest.raises(SpecError, match="rows of plasticity"):
        agent_of("classifier,trainability=8")
    for strategy in ("redo", "continual_backprop"):
        with pytest.raises(SpecError, match="not defined where that leads into itself"):
            agent_of(f"{strategy}+recurrent_ppo", actions=BOX)


@pytest.mark.parametrize("remedy", ["shrink_perturb+", "l2_init+", ""])
def test_remedies_that_recurrent_networks_take(tmp_path: Path, remedy: str) -> None:
    """On the weights of the recurrent layer too; layer norm before it."""
    learner = "recurrent_ppo,rollout=32,batch=4,hidden=[8],width=4,sequence=4"
    spec = Spec.parse(f"{remedy}{learner}{'' if remedy else ',layer_norm=true'}")
    bandits = [Task("toy", "bandit", str(k), {"shift": k}) for k in range(2)]
    life = curricula.tasks_in_turn("two", bandits, amount=80, unit="steps", episodes=1)
    rows, agent = live(life, lambda setup: make_agent(spec, setup), path=tmp_path / "life")
    assert len(rows) > 10 and all(np.isfinite(r.ret) for r in rows if r.ret is not None)
    if not remedy:
        assert any(isinstance(m, nn.LayerNorm) for m in agent.net.encoder.modules())


MEASURED = ("dormant_redo", "dormant_dohare", "effective_rank", "stable_rank", "srank", "weight_norm",
            "weight_distance")  # fmt: skip


@pytest.mark.parametrize("more", ["", ",layer_norm=true"])
def test_who_steps_otherwise_is_measured_all_the_same(tmp_path: Path, more: str) -> None:
    """TRPO: all but what takes a loss on rows of the past."""
    bandit = curricula.one_task(Task("toy", "bandit"), True, rounds=1, episodes=1, steps=150)
    spec = f"trpo,rollout=32,hidden=[8,8]{more},plasticity=24,trainability=5"
    rows, agent = live(
        bandit, lambda setup: make_agent(Spec.parse(spec), setup), path=tmp_path / "trpo"
    )
    (found,) = [r.more for r in rows if r.more and "plasticity.weight_norm" in r.more]
    assert {k for k in found if k.startswith("plasticity.")} == {
        f"plasticity.{n}" for n in (*MEASURED, "trainability")
    }
    flat = np.concatenate([p.detach().numpy().ravel() for p in agent.net.parameters()])
    assert found["plasticity.weight_norm"] == pytest.approx(np.linalg.norm(flat), rel=1e-5)
    assert 0 < found["plasticity.weight_distance"] < 1 and 1 <= found["plasticity.srank"] <= 8


@pytest.mark.parametrize("more", ["", ",layer_norm=true"])
def test_maml_is_measured_by_the_policy_that_trials_begin_with(more: str) -> None:
    agent = agent_of(
        f"maml,preset=quick,hidden=[6,5]{more},plasticity=7,trainability=300", actions=BOX
    )
    rng = np.random.default_rng(0)
    agent.probe_inputs(torch.as_tensor(rng.standard_normal((9, 4)), dtype=torch.float32))
    before = agent.flat_weights
    found = agent.diagnose()
    assert torch.equal(agent.flat_weights, before)
    assert set(found) == {f"plasticity.{n}" for n in (*MEASURED, "trainability")}
    assert found["plasticity.trainability"] == 1, "nothing was learned yet"
    assert found["plasticity.weight_distance"] == 0 and found["plasticity.srank"] <= 5
    kept = agent.state()
    assert kept["plasticity.obs"].shape == (7, 4)
    other = agent_of(
        f"maml,preset=quick,hidden=[6,5]{more},plasticity=7,trainability=300", actions=BOX
    )
    other.load(kept)
    assert other.diagnose() == found
    with torch.no_grad():
        for weight in agent.weights:
            weight.zero_()
    assert agent.diagnose()["plasticity.trainability"] < 1, "layers of zeros learn worse"


def test_the_metric_and_the_report_show_it(tmp_path: Path) -> None:
    import perdure

    run = perdure.experiment(
        "toy/blobs", agents={"mine": "classifier,plasticity=32", "plain": "classifier"},
        lifetimes=1, out=tmp_path / "run", progress=False,
    )  # fmt: skip
    scores = {life.agent: life.scores for life in run.measure().results.lifetimes}
    column = run.rows().column("plasticity.weight_norm").drop_null().to_pylist()
    assert scores["mine"]["plasticity.weight_norm"].value == pytest.approx(column[-1])
    assert len(scores["mine"]["plasticity.weight_norm"].over_time) == len(column) > 1
    assert "plasticity=512" in scores["plain"]["plasticity.weight_norm"].reason
    page = run.report(tmp_path / "page.html").read_text()
    section = page.split('id="plasticity"')[1]
    assert "Weight norm" in section and ">mine</text>" in section
