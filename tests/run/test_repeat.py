"""The same spec gives the same rows: in fresh processes, under any executor, in any order."""

import os
import subprocess
import sys

import pytest

from perdure.run.executors.processes import Processes
from perdure.run.executors.serial import Serial
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.testing import check_executor
from perdure.testing.agents import read_rows

AGENTS = ("q", "dqn,explore=50,batch=16", "ppo,rollout=32", "random")


def rows_of(plan):
    return {j.id: read_rows(plan.path / j.id) for j in plan.jobs}


def make(path, **keys):
    keys = {"agents": AGENTS, "lifetimes": 2, "checkpoint": 60, "envs": 2, "experts": True, **keys}
    plan = make_plan(RunSpec("toy/compass,steps=90,episodes=2", out=str(path), **keys))
    plan.save()
    return plan


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    plan = make(tmp_path_factory.mktemp("repeat") / "serial")
    outcomes = []
    Serial().run(plan, plan.jobs, outcomes.append)
    assert {o.status for o in outcomes} == {"done"}, outcomes
    return rows_of(plan)


def test_processes_in_reverse_order_with_another_hash_seed(reference, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "12345")
    plan = make(tmp_path / "p")
    outcomes = []
    Processes(workers=2).run(plan, plan.jobs[::-1], outcomes.append)
    assert {o.status for o in outcomes} == {"done"}, outcomes
    assert rows_of(plan) == reference


def test_one_lifetime_alone(reference, tmp_path):
    plan = make(
        tmp_path / "alone", agents=("dqn,explore=50,batch=16",), lifetimes=1, seed=1, experts=False
    )
    Serial().run(plan, plan.jobs, lambda o: None)
    assert rows_of(plan)[plan.jobs[0].id] == reference[plan.jobs[0].id]


def test_the_worker_command_runs_a_lifetime_anywhere(reference, tmp_path):
    plan = make(tmp_path / "w")
    job = plan.jobs[0]
    env = {**os.environ, "PYTHONHASHSEED": "77"}
    done = subprocess.run(plan.command(job), capture_output=True, text=True, env=env, check=True)
    assert done.returncode == 0 and read_rows(plan.path / job.id) == reference[job.id]


def test_other_seeds_and_other_numbers_of_environments_give_other_rows(reference, tmp_path):
    assert reference["q/0"] != reference["q/1"]
    plan = make(tmp_path / "e", envs=1, agents=("q",), experts=False, lifetimes=1)
    Serial().run(plan, plan.jobs, lambda o: None)
    assert rows_of(plan)["q/0"] != reference["q/0"]
    assert plan.describe(plan.jobs[0])["envs"] == 1


@pytest.mark.parametrize("executor", [Serial(), Processes(workers=2)], ids=["serial", "processes"])
def test_executors_pass_the_public_check(executor):
    check_executor(executor)


def test_evaluating_more_does_not_change_what_is_learned(tmp_path):
    from kit import live
    from perdure.agents.compose import make_agent
    from perdure.specs import Spec
    from perdure.types import Curriculum, Exposure, Task, evaluate, learn

    goal = Task("toy", "goal-ne")
    blocks = [evaluate(Exposure(goal, 2)), learn(Exposure(goal, 400, "steps"))]
    more = [evaluate(Exposure(goal, 9), Exposure(goal, 4)), blocks[1]]

    def agent(setup):
        return make_agent(Spec("ppo"), setup)

    few, _ = live(Curriculum("x", tuple(blocks)), agent, path=tmp_path / "a")
    many, _ = live(Curriculum("x", tuple(more)), agent, path=tmp_path / "b")
    assert [r.ret for r in few if r.learning] == [r.ret for r in many if r.learning]


def test_python_is_enough():
    """The package imports and lists without any extra (as with a light install)."""
    code = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch','minigrid','stable_baselines3','mujoco','metaworld'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "from perdure.cli.main import main\n"
        "try: main(['ls'])\n"
        "except SystemExit as e: assert not e.code, e.code\n"
        "from perdure import registry\n"
        "from perdure.errors import MissingExtra\n"
        "try: registry.load('agents', 'ppo')\n"
        "except MissingExtra as e: print('OK', e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "OK perdure.agents.learners.ppo needs the 'torch' extra" in done.stdout
