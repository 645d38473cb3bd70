"""Strategies pass the public check with learners that fit; broken ones fail with a useful sentence."""

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

from perdure.agents.strategies.base import Strategy
from perdure.cli.main import main
from perdure.testing import CheckFailed, check_strategy

BLOBS = ("toy/check,task=blobs",)


@pytest.mark.parametrize("name", ["ewc,samples=8", "si", "replay,quota=10", "packnet", "agem"])
def test_our_strategies_pass(name):
    assert check_strategy(name, ["classifier"], BLOBS) == []


def test_an_environment_learner_is_checked_on_environments():
    left_out = check_strategy("si", ["dqn"], ("toy/check", "toy/check,task=reach"))
    (refused,) = left_out
    assert refused.startswith("si+dqn, toy/check,task=reach: ")


class Counts(Strategy):
    """Weighs the loss by how many steps there were; honest unless a subclass is not."""

    def __init__(self, learner):
        super().__init__(learner)
        self.steps = 0

    def stepped(self):
        self.steps += 1

    def objective(self, batch, loss):
        return loss * (1 + self.steps)

    def state(self):
        return {"steps": np.array(self.steps)}

    def load(self, state):
        self.steps = int(state["steps"])


class Forgetful(Counts):
    def state(self):
        return {}

    def load(self, state):
        self.steps = 0


class ChangesInEval(Counts):
    def act(self, obs, ctx):
        self.steps += 1
        return super().act(obs, ctx)


class OwnDice(Counts):
    def objective(self, batch, loss):
        return loss * float(np.random.default_rng().uniform(0.5, 2.0))


def test_a_class_can_be_checked():
    assert check_strategy(Counts, ["classifier"], BLOBS) == []


@pytest.mark.parametrize(
    ("strategy", "sentence"),
    [
        (Forgetful, "state() must hold everything that load() needs"),
        (ChangesInEval, "changed in evaluation (block 0): state()['strategy.steps'] differs"),
        (OwnDice, "the same seed gave other rows: draw all randomness from self.rng"),
    ],
)
def test_broken_strategies_fail_with_a_useful_sentence(strategy, sentence):
    with pytest.raises(CheckFailed) as caught:
        check_strategy(strategy, ["classifier"], BLOBS)
    assert sentence in str(caught.value) and f"{strategy.__name__}+classifier" in str(caught.value)


def test_one_that_works_with_nothing_says_so():
    with pytest.raises(CheckFailed, match=r"works with no learner.*learns from data"):
        check_strategy("finetune", ["classifier"], ("toy/check",))


def test_the_learners_are_those_that_fit(monkeypatch):
    from perdure.testing import strategies

    asked = []
    monkeypatch.setattr(
        strategies, "checked", lambda agent, curricula: (asked.append(agent), ([], []))[1]
    )
    check_strategy("replay,quota=9")
    assert "replay+classifier,quota=9" in asked and "replay+sac,quota=9" in asked
    assert not {"replay+ppo,quota=9", "replay+sb3,quota=9"} & set(asked)


def test_perdure_check_knows_strategies(tmp_path, monkeypatch):
    from perdure import testing

    asked = []
    monkeypatch.setattr(testing, "check_strategy", lambda name: asked.append(name))
    file = tmp_path / "mine.py"
    file.write_text(
        "from perdure.agents.strategies.base import Strategy\nclass Mine(Strategy): pass\n"
    )
    for name in ("ewc,strength=2", f"{file}:Mine"):
        done = CliRunner().invoke(main, ["check", name])
        assert done.exit_code == 0 and f"{name}: ok" in done.output, done.output
    assert asked == ["ewc,strength=2", f"{file}:Mine"]
