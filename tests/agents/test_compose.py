"""Strategy and learner by name or file, joined by +."""

import pytest

from perdure.errors import SpecError, UnknownName
from perdure.run.experiment import execute
from perdure.run.lifetime import code
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.specs import Spec

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
        assert list(code(plan, job)) == [mine], "a change of the file must show"


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
