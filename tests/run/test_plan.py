import pytest

import perdure
from perdure.errors import AgentFault, NameRefused, PerdureError, SpecError, UnknownName
from perdure.run.plan import load_plan, make_plan
from perdure.run.spec import RunSpec
from perdure.specs import Spec
from perdure.types import Curriculum, Exposure, Task, Visibility, adapt, evaluate, learn


def test_spec_strings():
    assert Spec.parse("ppo") == Spec("ppo")
    parsed = Spec.parse("fast=ppo,lr=3e-4,hidden=[64, 64],name=tanh,on=true")
    assert parsed == Spec(
        "ppo", {"lr": 3e-4, "hidden": [64, 64], "name": "tanh", "on": True}, "fast"
    )
    assert Spec.parse(str(parsed)) == parsed and parsed.short == "fast"
    assert Spec.parse("ppo,lr=0.1").short == "ppo-lr-0.1"
    assert Spec.parse("a/b.py:Mine,x=1").short == "Mine-x-1"
    for bad in ("", "ppo,lr", "ppo,3=4"):
        with pytest.raises(SpecError):
            Spec.parse(bad)


@pytest.mark.parametrize("label", ["../x", "/abs", "a\0b", "x" * 300, "experts"])
def test_labels_that_could_escape_are_refused(label):
    with pytest.raises((NameRefused, SpecError)):
        make_plan(RunSpec("toy/check", (f"{label}=random",)))


@pytest.mark.parametrize(
    "keys",
    [
        {"lifetimes": 0}, {"lifetimes": 1.5}, {"envs": 0}, {"seed": -1}, {"checkpoint": 0},
        {"agents": ()}, {"agents": 3}, {"agents": {"a": "q"}}, {"experts": 1}, {"seed": True},
    ],
)  # fmt: skip
def test_bad_values_are_refused(keys):
    with pytest.raises(SpecError):
        RunSpec("toy/check", **keys)


def test_toml(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text('curriculum = "toy/check"\nagents = ["q"]\nlifetimes = 3\n')
    spec = RunSpec.from_toml(path, lifetimes=2)
    assert spec == RunSpec("toy/check", ("q",), lifetimes=2)
    path.write_text('curriculum = "toy/check"\nagents = "q"\n')
    assert RunSpec.from_toml(path) == RunSpec("toy/check", ("q",))
    path.write_text('curriculum = "toy/check"\nlifetime = 3\n')
    with pytest.raises(UnknownName, match="did you mean 'lifetimes'"):
        RunSpec.from_toml(path)
    path.write_text("curriculum = ")
    with pytest.raises(SpecError, match=r"spec\.toml"):
        RunSpec.from_toml(path)


def test_at_most_ten_keys():
    from dataclasses import fields

    assert len(fields(RunSpec)) == 10


def test_what_cannot_work_is_refused_before_anything_runs(tmp_path):
    for agent, words in {
        "pppo": "did you mean 'ppo'",
        "q,alpha=1,gama=2": "gam",
        "nope+q": "unknown strategy 'nope'",
        "missing.py:X": "missing.py",
    }.items():
        with pytest.raises(PerdureError, match=words):
            make_plan(RunSpec("toy/check", (agent,), out=str(tmp_path)))
    mine = tmp_path / "mistyped.py"
    mine.write_text(
        "from perdure.agents.random import RandomAgent\n"
        "class Mistyped(RandomAgent):\n    memory_scope = 'trials'\n"
    )
    with pytest.raises(AgentFault, match="memory_scope 'trials'; did you mean 'trial'"):
        make_plan(RunSpec("toy/check", (f"{mine}:Mistyped",), out=str(tmp_path)))
    mine.unlink()
    with pytest.raises(SpecError, match="cannot work together"):
        make_plan(RunSpec("toy/blobs", ("q",)))
    with pytest.raises(
        SpecError, match=r"maml learns from trials of at least 11.*has trials of 10"
    ):
        make_plan(RunSpec("toy/meta-mass", ("maml",)))
    # Also where blocks are made up on the way; and what is said to work does.
    online = "toy/online-navigation,tasks=2,steps=60,chunk=60,shots=2,episodes=1"
    with pytest.raises(SpecError, match=r"has trials of 2.*trial=4"):
        make_plan(RunSpec(f"{online},trial=2", ("maml,shots=2",)))
    make_plan(RunSpec(f"{online},trial=3", ("maml,shots=2",)))
    # Whoever adapts to more episodes than there are would be evaluated as it was.
    few = online.replace("shots=2", "shots=1")
    for life in (f"{few},trial=3", "toy/meta-navigation,steps=60,trial=4,shots=1"):
        with pytest.raises(
            SpecError, match=r"to 2 episodes.*gives 1 to adapt.*\(shots=2\), or the agent"
        ):
            make_plan(RunSpec(life, ("maml,shots=2",)))
        make_plan(RunSpec(life, ("maml,shots=1", "rl2")))
    with pytest.raises(UnknownName, match="did you mean 'toy/compass'"):
        make_plan(RunSpec("toy/compas"))
    assert not any(tmp_path.iterdir())


def test_who_learns_from_rewards_is_not_planned_where_they_are_hidden(tmp_path):
    some, hidden = Exposure(Task("toy", "bandit"), 5), Visibility(rewards=False)
    few = adapt(some, then=[some], visibility=hidden)
    for kind, block in (("learn", learn(some, visibility=hidden)), ("adapt", few)):
        curriculum = Curriculum("blind", (evaluate(some), block))
        for agent in ("q", "dqn", "si+ppo,rollout=8"):
            with pytest.raises(SpecError, match=rf"hides them in block 1 \({kind}\): show them"):
                make_plan(RunSpec("blind", (agent,), out=str(tmp_path)), builder=curriculum)
        make_plan(RunSpec("blind", ("random",), out=str(tmp_path)), builder=curriculum)


def test_jobs_and_experts(tmp_path):
    spec = RunSpec("toy/compass", ("q", "r=random"), 2, 5, str(tmp_path / "x"), experts=True)
    plan = make_plan(spec)
    ids = [j.id for j in plan.jobs]
    assert ids[:4] == ["q/5", "r/5", "q/6", "r/6"] and len(ids) == 4 + 3 * 4
    assert "q/experts/toy--goal-ne/5" in ids
    plan.save()
    again = load_plan(tmp_path / "x")
    assert [j.id for j in again.jobs] == ids
    assert all(again.describe(j) == plan.describe(j) for j in plan.jobs)


def test_a_changed_spec_is_refused_with_a_diff_but_more_may_be_added(tmp_path):
    def plan(curriculum="toy/check", agents=("q",), **keys):
        made = make_plan(RunSpec(curriculum, agents, out=str(tmp_path / "x"), **keys))
        made.save()
        return made

    plan()
    plan(agents=("random",), lifetimes=3)
    assert set(load_plan(tmp_path / "x").agents) == {"q", "random"}
    for keys, diff in (
        ({"seed": 1}, r'-.*"seed": 0\n\+.*"seed": 1'),
        ({"envs": 2}, '"envs": 2'),
        ({"curriculum": "toy/compass"}, "toy/compass"),
        ({"agents": ("q=q,gamma=0.5",)}, "gamma=0.5"),
    ):
        with pytest.raises(SpecError, match=diff):
            plan(**keys)


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SpecError, match="not empty and not a Perdure run"):
        make_plan(RunSpec("toy/check", out=str(tmp_path))).save()


def test_experts_of_tasks_with_like_names_have_folders_of_their_own(tmp_path):
    """Two names that give the same slug: each expert in its own folder, and each runs."""
    file = tmp_path / "like.py"
    file.write_text(
        "from perdure.types import *\n"
        "def life(turned=False):\n"
        "    tasks = [Task('toy', 'bandit', v, {}) for v in ('a b', 'a_b', 'A b', 'c')]\n"
        "    tasks = tasks[::-1] if turned else tasks\n"
        "    return Curriculum('like', [learn(Exposure(t, 2)) for t in tasks])\n"
    )
    found = []
    for text in (f"{file}:life", f"{file}:life,turned=true"):
        plan = make_plan(RunSpec(text, ("q",), out=str(tmp_path / "x"), experts=True))
        found.append({j.expert: j.id for j in plan.jobs if j.expert})
    assert found[0] == found[1], "whatever their order"
    assert len(found[0]) == 4 == len({i.lower() for i in found[0].values()})
    assert found[0]["toy/bandit@c"] == "q/experts/toy--bandit~c/0", "the others as ever"
    run = perdure.experiment(f"{file}:life", ["q"], out=str(tmp_path / "run"), experts=True,
                             executor="serial")  # fmt: skip
    assert run.verify() == [] and run.gaps() == [] and len(run.rows(experts=True)) == 8


@pytest.mark.parametrize(
    ("curriculum", "agent", "measure"),
    [
        ("toy/compass", "q", "success"),
        ("toy/meta", "q", "success"),
        ("toy/blobs", "random", "accuracy"),
        ("gym/CartPole-v1", "random", ""),
    ],
)
def test_a_plan_tells_what_evaluations_are_scored_by_where_it_can(
    tmp_path, curriculum, agent, measure
):
    plan = make_plan(RunSpec(curriculum, (agent,), out=str(tmp_path / "run")))
    assert plan.config(plan.jobs[0]).measure == measure
