"""Promises that are found out: state that changes in evaluation, seeds that decide nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from helpers import LIVES, arguments, cli, finish, run_here
from plugins import distribution, installed

from perdure import registry
from perdure.testing import CheckFailed, check_agent, check_task
from perdure.types import Task


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_an_agent_that_learns_in_evaluation(executor: str, tmp_path: Path) -> None:
    (outcome,) = run_here(tmp_path / "run", "toy/check", [f"{LIVES}:Restless"], executor=executor)
    assert outcome.status == "failed"
    assert outcome.error.startswith("AgentFault: Restless changed in evaluation (block 0)")
    assert "state()['n']" in outcome.error, "the array is named"


def test_check_agent_finds_it() -> None:
    with pytest.raises(CheckFailed, match="changed in evaluation.*'n'"):
        check_agent(f"{LIVES}:Restless", ("toy/check",))


def test_it_is_found_across_an_interruption(tmp_path: Path) -> None:
    """Commits fall into the evaluation; what the agent was before it is remembered."""
    from perdure.testing.agents import cut_journal

    out = tmp_path / "run"
    keys = {"curriculum": "toy/parallel,steps=3,episodes=10", "agents": [f"{LIVES}:Restless"]}
    (first,) = run_here(out, checkpoint=9, **keys)
    assert "changed in evaluation" in first.error
    cut_journal(out / "Restless/0", 1)
    (again,) = run_here(out, checkpoint=9, **keys)
    assert again.error == first.error


def test_check_task_finds_a_dishonest_reset() -> None:
    registry.load_file(f"{LIVES}:Dishonest")
    suite = registry.suite("gym")
    check_task(suite, Task("gym", "PerdureTroubled-v0"))
    with pytest.raises(CheckFailed) as found:
        check_task(suite, Task("gym", "PerdureDishonest-v0"))
    text = str(found.value)
    assert "reset(seed=11)" in text and "step 0, observation" in text
    assert "reset(seed) must alone decide" in text


def test_perdure_check_finds_it_too(tmp_path: Path) -> None:
    distribution(
        tmp_path,
        "dishonest_suite",
        {"suites": {"dishonest": "dishonest_suite:suite"}},
        f"""
import sys
sys.path.insert(0, {os.path.dirname(LIVES)!r})
import lives
from perdure.suite import Suite
from perdure.types import Task
class Dishonest(Suite):
    name = "dishonest"
    def tasks(self): return [Task("dishonest", "sound"), Task("dishonest", "liar")]
    def env(self, task):
        return lives.Dishonest() if task.name == "liar" else lives.Troubled()
suite = Dishonest()
""",
    )
    env = installed(tmp_path)
    code, out, err = finish(["check", "dishonest"], env=env)
    assert code == 1
    assert "problem: dishonest/liar: reset(seed=11)" in err and "dishonest/sound" not in err
    assert finish(["check", "dishonest/sound"], env=env)[0] == 0
    code, out, err = finish(["check", "dishonest/liar"], env=env)
    assert code == 1 and "must alone decide" in err


def test_a_dishonest_environment_is_not_resumed_in_silence(tmp_path: Path) -> None:
    """Playing its episode again leads elsewhere: the rows would not be those of one life."""
    curriculum = tmp_path / "life.py"
    curriculum.write_text(
        f"import sys\nsys.path.insert(0, {os.path.dirname(LIVES)!r})\n"
        "import lives\nfrom perdure.types import *\n"
        "def life():\n"
        "    task = Task('gym', 'PerdureDishonest-v0')\n"
        "    return Curriculum('x', (learn(Exposure(task, 60, 'steps')),))\n"
    )
    from perdure.testing.agents import cut_journal

    out = tmp_path / "run"
    args = arguments(out, f"{curriculum}:life", ["random"], checkpoint=17)
    assert cli(*args)[0] == 0
    cut_journal(out / "random/0", 1)
    code, _, err = cli(*args)
    assert code == 1
    assert "EnvironmentFault" in err and "not honest" in err and "cannot be resumed" in err
    sys.path.remove(os.path.dirname(LIVES))
