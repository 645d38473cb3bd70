"""A run is validated where it is planned; its workers trust the plan."""

import os
from collections import Counter

import pytest

from perdure.errors import CurriculumError
from perdure.run.experiment import execute
from perdure.run.plan import load_plan, make_plan
from perdure.run.spec import RunSpec

COUNTED = """
import os
import gymnasium
import numpy as np
from perdure.types import Curriculum, Exposure, Task, learn

class Counted(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, letter):
        with open(os.environ["COUNTED"], "a") as file:
            file.write(f"{os.getpid()} {letter}\\n")

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, True, False, {}

for letter in "abc":
    # Another file of this name, which another test wrote, may have been here before.
    gymnasium.registry.pop(f"Counted{letter}-v0", None)
    gymnasium.register(f"Counted{letter}-v0", entry_point=Counted, kwargs={"letter": letter})

def life(last="Countedc-v0"):
    names = ("Counteda-v0", "Countedb-v0", last)
    return Curriculum("x", tuple(learn(Exposure(Task("gym", n), 2)) for n in names))
"""


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """A curriculum of three tasks, and who made which environment how often."""
    file, log = tmp_path / "counted.py", tmp_path / "made.txt"
    file.write_text(COUNTED)
    monkeypatch.setenv("COUNTED", str(log))

    def made():
        return Counter(tuple(line.split()) for line in log.read_text().splitlines())

    return f"{file}:life", made


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_worker_makes_what_it_runs_and_few_more(counted, tmp_path, executor):
    curriculum, made = counted
    spec = RunSpec(curriculum, lifetimes=2, out=str(tmp_path / "run"), executor=executor)
    plan = make_plan(spec)
    planned, here = made(), str(os.getpid())
    assert {pid for pid, _ in planned} == {here}
    assert [planned[here, x] for x in "abc"] == [2, 2, 2], "each was tried, and its spaces compared"
    assert [(o.status, o.error) for o in execute(plan)] == [("done", "")] * 2
    more = made() - planned
    workers = {pid for pid, _ in more}
    # At its end a lifetime plays episodes again: of the first task, and of others if time allows.
    if executor == "serial":
        assert workers == {here}
        assert more[here, "a"] == 4 and {more[here, x] for x in "bc"} <= {2, 3, 4}
    else:
        assert len(workers) == 2 and here not in workers
        for pid in workers:
            assert more[pid, "a"] == 3, "one for the spaces, one to run, one to play again"
            assert {more[pid, x] for x in "bc"} <= {1, 2}


def test_what_cannot_run_is_still_refused_where_it_is_planned(counted, tmp_path):
    curriculum, _ = counted
    with pytest.raises(CurriculumError, match=r"block 2 \(learn\).*did you mean 'Countedc-v0'"):
        make_plan(RunSpec(f"{curriculum},last=Countedd-v0", out=str(tmp_path / "run")))
    with pytest.raises(CurriculumError, match="must share their spaces"):
        make_plan(RunSpec(f"{curriculum},last=CartPole-v1", out=str(tmp_path / "run")))


def test_a_loaded_plan_stands_on_the_same_ground(tmp_path):
    plan = make_plan(RunSpec("toy/check", ("q",), out=str(tmp_path / "run")))
    plan.save()
    loaded = load_plan(plan.path)
    assert plan.validated is not None and loaded.validated is None
    assert loaded.resolved == plan.resolved
