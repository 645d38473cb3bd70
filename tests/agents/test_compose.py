"""Strategy and learner by name or file, joined by +."""

from dataclasses import dataclass
from inspect import signature

import numpy as np
import pytest
from gymnasium import spaces

from perdure.agents.compose import make_agent
from perdure.errors import PerdureError, SpecError, UnknownName
from perdure.run.experiment import execute
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.specs import Spec, call_with, takes_fields
from perdure.types import Setup

BOX = spaces.Box(-1, 1, (3,), np.float32)
MINE = """
from perdure.agents.learners.classifier import ClassifierAgent
from perdure.agents.strategies.base import Strategy

class Keep(Strategy):
    def __init__(self, learner, quota=3):
        super().__init__(learner)
        self.quota = quota

class Small(ClassifierAgent):
    pass

def nothing(learner):
    return None
"""


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("ppo", ("ppo",)),
        ("ewc+ppo", ("ewc", "ppo")),
        ("ewc+si+ppo", ("ewc", "si", "ppo")),
        ("mine.py:Agent", ("mine.py:Agent",)),
        ("mine.py:Keep+classifier", ("mine.py:Keep", "classifier")),
        ("ewc+mine.py:Small", ("ewc", "mine.py:Small")),
        ("ewc+a/mine.py:Small", ("ewc", "a/mine.py:Small")),
        ("/c++/a.py:Keep+/c++/b.py:Small", ("/c++/a.py:Keep", "/c++/b.py:Small")),
        ("./c++.py:Agent", ("./c++.py:Agent",)),
        ("ewc+", ("ewc", "")),
    ],
)
def test_the_joints_of_a_name(name, parts):
    assert Spec.parse(name).parts == parts


def test_folders_are_called_after_the_objects():
    assert Spec.parse("ewc+a/mine.py:Small,lr=0.1").short == "ewc+Small-lr-0.1"
    assert Spec.parse("a/mine.py:Keep+classifier").short == "Keep+classifier"


@pytest.fixture
def mine(tmp_path):
    pytest.importorskip("torch")
    # A path with a plus in it: only the joint between two names splits.
    file = tmp_path / "c++" / "mine.py"
    file.parent.mkdir()
    file.write_text(MINE)
    return str(file)


def test_both_may_be_in_files(mine, tmp_path):
    names = (f"{mine}:Keep+classifier,quota=7", f"ewc+{mine}:Small", f"{mine}:Keep+{mine}:Small")
    spec = RunSpec("toy/check,task=blobs", names, out=str(tmp_path / "run"), executor="processes")
    plan = make_plan(spec)
    assert list(plan.agents) == ["Keep+classifier-quota-7", "ewc+Small", "Keep+Small"]
    setup = plan.config(plan.jobs[0]).setup()
    agent = plan.make_agent("Keep+classifier-quota-7", setup)
    assert type(agent.strategy).__name__ == "Keep" and agent.strategy.quota == 7
    assert type(plan.make_agent("ewc+Small", setup).learner).__name__ == "Small"
    assert [o.status for o in execute(plan)] == ["done"] * 3
    for job in plan.jobs:
        assert mine in plan.code(job.agent)["agent"], "a change of the file must show"


def test_what_is_no_strategy_is_refused(mine, tmp_path):
    out = str(tmp_path / "run")
    for name, error, words in (
        (f"{mine}:nothing+classifier", SpecError, "expected a Strategy"),
        (f"{mine}:Kep+classifier", UnknownName, "did you mean 'Keep'"),
        (f"nope+{mine}:Small", UnknownName, "unknown strategy 'nope'"),
        ("ewc+si+classifier", SpecError, "one strategy and one learner"),
    ):
        with pytest.raises(error, match=words):
            make_plan(RunSpec("toy/check,task=blobs", (name,), out=out))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ppo,roll_out=5", "parameter of agent ppo 'roll_out'.* did you mean 'rollout'"),
        ("ewc+ppo,strengt=5", "parameter of strategy ewc 'strengt'.* did you mean 'strength'"),
        ("ppo,rollout=2.5", "ppo: rollout must be a whole number, got 2.5"),
        ("ppo,lr=high", "agent ppo: lr must be a number, got 'high'"),
        ("te,gamma=1.5", "te: gamma must be from 0 to 1, got 1.5"),
        ("dqn,batch=20,replay=10", "dqn: batch must be from 1 to 10, got 20"),
    ],
)
def test_settings_are_given_one_by_one_and_checked(text, says):
    pytest.importorskip("torch")
    action = spaces.Discrete(2)
    with pytest.raises(PerdureError, match=says):
        make_agent(Spec.parse(text), Setup(BOX, action, 1, 0, ("a",)))


def test_a_constructor_that_takes_the_fields_of_a_record():
    @dataclass(frozen=True, kw_only=True)
    class Settings:
        lr: float = 1.0
        width: int = 2

    class Base:
        @takes_fields(Settings)
        def __init__(self, setup: str, settings: Settings) -> None:
            self.setup, self.settings = setup, settings

    class Own(Base):
        def __init__(self, setup, depth=3):
            super().__init__(setup, width=depth)

    assert list(signature(Base).parameters) == ["setup", "lr", "width"]
    assert signature(Base).parameters["lr"].default == 1.0
    assert call_with("base", Base, "s", lr=3.0).settings == Settings(lr=3.0)
    with pytest.raises(UnknownName, match="did you mean 'width'"):
        call_with("base", Base, "s", widht=3)
    assert list(signature(Own).parameters) == ["setup", "depth"], "what a subclass takes is its own"
    assert Own("s").settings == Settings(width=3)
