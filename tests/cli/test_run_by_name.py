"""Tasks and sequences by name, parameters as people write them, wrong ones refused when planning."""

import pytest
from click.testing import CliRunner

import perdure
from perdure.cli.main import main
from perdure.curricula.named import curriculum_of
from perdure.registry import suite
from perdure.specs import Spec
from perdure.types import Task


def run(*args):
    return CliRunner().invoke(main, ["run", *args])


def test_a_bare_task_runs_for_so_many_steps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("gym/CartPole-v1,rounds=2,episodes=1", "--agent", "mine=random", "--steps", "60",
               "--executor", "serial")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    (life,) = perdure.Run("runs/gym-CartPole-v1-rounds-2-episodes-1-steps-60").lifetimes()
    assert (life.id, life.status) == ("mine/0", "done")


def test_a_task_alone_is_learned_from_what_it_has():
    played = curriculum_of(Spec.parse("toy/goal-ne,steps=7,rounds=3"))
    amounts = [e.amount for b in played.blocks if b.kind == "learn" for e in b.exposures]
    assert amounts == [3, 2, 2] and len(played.blocks) == 7
    labelled = curriculum_of(Spec.parse("vision/digits@rotation90,epochs=2,batch_size=8"))
    (task,) = labelled.tasks
    assert task.params == {"rotation": 90, "batch_size": 8}
    assert {e.unit for b in labelled.blocks for e in b.exposures} == {"epochs"}
    assert not suite("toy").has_env(Task("toy", "blobs"))
    # Blocks too short to learn from are not made unless asked for.
    short = [
        b for b in curriculum_of(Spec.parse("toy/goal-ne,steps=2500")).blocks if b.kind == "learn"
    ]
    assert [b.exposures[0].amount for b in short] == [1250, 1250]
    checked = CliRunner().invoke(main, ["check", "gym/CartPole-v1,steps=500"])
    assert checked.exit_code == 0, checked.output


def test_a_sequence_needs_no_inner_quotes():
    made = curriculum_of(Spec.parse("gym/sequence,tasks=[Pendulum-v1, {task=Pendulum-v1, g=5}]"))
    assert [t.id for t in made.tasks] == ["gym/Pendulum-v1", "gym/Pendulum-v1@g5"]
    assert made.tasks[1].params == {"g": 5}
    made = curriculum_of(Spec.parse("metaworld/sequence,tasks=[reach,push]"))
    assert [t.name for t in made.tasks] == ["reach", "push"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("toy/compass", "-a", "ppo,lr=abc"), "agent ppo: lr must be a number, got 'abc'"),
        (("toy/compass", "-a", "ppo,hidden=3"), "must be a list of whole numbers, got 3 (write hidden=[3])"),
        (("toy/compass", "-a", "ppo,rollout=1e3"), "a whole number, got 1000.0 (write rollout=1000)"),
        (("toy/compass", "-a", "ppo,baseline=x"), "baseline must be one of mlp, linear, auto, got 'x'"),
        (("toy/compass", "-a", "ewc+ppo,group=yes"), "strategy ewc: group must be a whole number"),
        (("toy/compass,episodes=abc", "-a", "random"), "episodes must be a whole number, got 'abc'"),
        (("metaworld/mt1,task=3", "-a", "random"), "task must be text, got 3"),
        (("metaworld/sequence,tasks=reach", "-a", "random"), "a list of names, got 'reach' (write tasks=[reach])"),
        (("toy/compass", "-a", "random", "--executor", "processes,workers=x"), "workers must be a whole number"),
        (("gym/CartPol-v1", "-a", "random"), "did you mean 'gym/CartPole-v1'"),
        (("gym/CartPole-v1,color=3", "-a", "random"), "unknown parameter of gym/CartPole-v1 'color'"),
        (("gym/CartPole-v1,epochs=3,steps=3", "-a", "random"), "give steps or epochs, not both"),
        (("vision/digits", "-a", "random", "--steps", "9"), "has no environment: give it epochs or batches"),
        (("gym/sequence,tasks=[CartPole-v1,Pendulum-v1]", "-a", "random"), "are no Boxes"),
        (("toy/told", "-a", "random", "--steps", "x"), "'x' is not a valid integer"),
        (("toy/blobs", "-a", "sac"), "agent sac learns from environments, but toy/blobs has learn blocks on data"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused_when_planning(tmp_path, monkeypatch, args, says):
    if {"ppo", "sac"} & set(args[2].split(",")):
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    done = run(*args)
    assert done.exit_code == 2 and says in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())
