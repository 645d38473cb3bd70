import numpy as np
import pytest

from perdure import curricula
from perdure.errors import CurriculumError, NameRefused, UnknownName
from perdure.run.validate import validate
from perdure.show.outline import outline
from perdure.types import Block, Curriculum, Exposure, Task, Visibility, adapt, evaluate, learn

A, B, C = (Task("toy", f"goal-{c}") for c in ("ne", "sw", "nw"))


def kinds(blocks):
    return "".join(b.kind[0] for b in blocks)


@pytest.mark.parametrize("amount", [0, -1, 2.5, True, "3", None, float("nan")])
def test_limits_must_be_positive_whole_numbers(amount):
    with pytest.raises(CurriculumError, match=r"toy/goal-ne.*(whole number|at least 1)"):
        Exposure(A, amount, "steps")


def test_units_kinds_and_empty_blocks():
    with pytest.raises(CurriculumError, match="unit must be one of"):
        Exposure(A, 1, "hours")
    with pytest.raises(CurriculumError, match="kind must be one of"):
        Block("sleep", (Exposure(A, 1),))
    with pytest.raises(CurriculumError, match="empty learn block"):
        learn()
    with pytest.raises(CurriculumError, match="is empty"):
        Curriculum("x", ())
    with pytest.raises(CurriculumError, match="needs 'then'"):
        adapt(Exposure(A, 1), then=[])
    with pytest.raises(CurriculumError, match="only an adapt block"):
        Block("eval", (Exposure(A, 1),), then=(Exposure(A, 1),))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Exposure("toy/reach", 5), r"expected a Task such as Task\('toy', 'reach'\), got"),
        (lambda: Exposure(None, 5), "expected a Task such as Task"),
        (lambda: Curriculum("x", generate=lambda: None, tasks=("toy/reach",)), "expected a Task"),
        (lambda: Visibility(rewards="no"), "rewards must be True, False or None, got 'no'"),
        (lambda: Visibility(task_ids=None), "task_ids must be True or False, got None"),
        (lambda: Visibility(instructions=0), "instructions must be True, False or None, got 0"),
        (
            lambda: learn(Exposure(A, 1), visibility={"rewards": False}),
            "visibility must be a Visib",
        ),
        (lambda: Block("learn", Exposure(A, 1)), "exposures must be Exposures one by one"),
        (lambda: adapt(Exposure(A, 1), then=Exposure(A, 1)), "then must be Exposures one by one"),
        (lambda: learn(Exposure(A, 1), parallel="yes"), "parallel must be True or False"),
    ],
)
def test_what_is_of_another_type_is_refused(make, says):
    with pytest.raises(CurriculumError, match=says):
        make()


def test_a_visibility_of_numpy_is_one_of_python():
    assert Visibility(rewards=np.bool_(False)).to_json() == {"rewards": False}


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a\0b", "x" * 300, "", ".hidden", "a//b"])
def test_names_that_could_escape_are_refused(name):
    with pytest.raises(NameRefused):
        Task("toy", name)
    with pytest.raises(NameRefused):
        Curriculum(name, (learn(Exposure(A, 1)),))


def test_params_must_be_plain():
    with pytest.raises(CurriculumError, match="plain JSON"):
        Task("toy", "count", params={"f": object()})


def test_interleave():
    blocks, e = [learn(Exposure(t, 1)) for t in (A, B, C)], evaluate(Exposure(A, 1))
    assert kinds(curricula.interleave(blocks, e)) == "elelele"
    assert kinds(curricula.interleave(blocks, e, when=["after"])) == "llle"
    assert kinds(curricula.interleave(blocks, e, when=["before", "between"])) == "elelel"
    assert kinds(curricula.interleave(blocks * 2, e, every=2)) == "ellellelle"
    with pytest.raises(CurriculumError, match="'when' takes"):
        curricula.interleave(blocks, e, when=["sometimes"])
    with pytest.raises(CurriculumError, match="eval or adapt"):
        curricula.interleave(blocks, blocks[0])


def test_permute_is_decided_by_the_seed_alone():
    blocks = [learn(Exposure(A, n)) for n in range(1, 9)]
    assert curricula.permute(blocks, 3) == curricula.permute(blocks, 3)
    assert sorted(b.exposures[0].amount for b in curricula.permute(blocks, 3)) == list(range(1, 9))
    assert len({curricula.permute(blocks, s) for s in range(20)}) > 15


def test_experts_get_the_same_total_exposure():
    blocks = [learn(Exposure(A, 10), Exposure(B, 7, "steps")), learn(Exposure(A, 5))]
    made = Curriculum("x", curricula.interleave(blocks, evaluate(Exposure(A, 3), Exposure(B, 2))))
    by_task = curricula.experts(made)
    assert set(by_task) == {A, B}
    assert kinds(by_task[A].blocks) == "ele"
    assert [str(e) for e in by_task[A].blocks[1].exposures] == ["toy/goal-ne × 15 episodes"]
    assert [str(e) for e in by_task[B].blocks[1].exposures] == ["toy/goal-sw × 7 steps"]
    assert by_task[B].blocks[0].exposures == (Exposure(B, 2),)
    with pytest.raises(CurriculumError, match="never learns"):
        curricula.expert(made, C)
    with pytest.raises(CurriculumError, match="generated"):
        curricula.experts(curricula.agent_chosen("y", [A]))


def test_fingerprint_changes_with_everything_that_runs():
    def make(amount=1, params=None, parallel=False):
        block = learn(
            Exposure(Task("toy", "count", params=params or {}), amount), parallel=parallel
        )
        return Curriculum("x", (block,)).fingerprint

    assert make() == make()
    assert len({make(), make(2), make(params={"length": 3}), make(parallel=True)}) == 4


def test_validation_says_where():
    def curriculum(task):
        return Curriculum("x", (evaluate(Exposure(A, 1)), learn(Exposure(A, 1), Exposure(task, 1))))

    where = r"curriculum x, block 1 \(learn\), exposure 1"
    with pytest.raises(CurriculumError, match=where + ".*did you mean 'size'"):
        validate(curriculum(Task("toy", "goal-ne", "v", {"sise": 7})))
    with pytest.raises(CurriculumError, match=where + ".*observation space"):
        validate(curriculum(Task("toy", "goal-ne", "big", {"size": 7})))
    with pytest.raises(CurriculumError, match=where + ".*unknown suite 'toi'; did you mean 'toy'"):
        validate(curriculum(Task("toi", "goal-ne")))
    with pytest.raises(CurriculumError, match=where + ".*ValueError: corner"):
        validate(curriculum(Task("toy", "goal-ne", "v", {"corner": "up"})))
    with pytest.raises(CurriculumError, match="has no data"):
        validate(Curriculum("x", (learn(Exposure(A, 1, "epochs")),)))
    with pytest.raises(CurriculumError, match="has no environment"):
        validate(Curriculum("x", (learn(Exposure(Task("toy", "blobs"), 1)),)))


def test_missing_constructor_parameters_are_named():
    import gymnasium
    from gymnasium.envs.registration import register, registry

    class Needy(gymnasium.Env):
        def __init__(self, depth): ...

    if "Needy-v0" not in registry:
        register("Needy-v0", Needy)
    with pytest.raises(CurriculumError, match="needs the parameter 'depth'"):
        validate(Curriculum("x", (learn(Exposure(Task("gym", "Needy-v0"), 1)),)))
    with pytest.raises(CurriculumError, match="did you mean 'depth'"):
        task = Task("gym", "Needy-v0", params={"dept": 1})
        validate(Curriculum("x", (learn(Exposure(task, 1)),)))


def test_unknown_tasks_get_a_suggestion():
    from perdure import registry

    with pytest.raises(UnknownName, match="did you mean.*'goal-ne'"):
        registry.task("toy/goal-n")
    with pytest.raises(UnknownName, match="CartPole-v1"):
        registry.task("gym/CartPole-v")


def test_outline_shows_blocks_and_budgets():
    text = "\n".join(outline(curricula.tasks_in_turn("x", [A, B], amount=1000, unit="steps")))
    assert "learn toy/goal-ne × 1,000 steps" in text
    assert "2 tasks; learning 2,000 steps; evaluation 60 episodes" in text


def test_an_outline_says_what_is_shown_and_hidden():
    from perdure.show.outline import outline
    from perdure.types import Visibility, adapt

    task = Task("toy", "hidden-goal")
    probe = adapt(
        Exposure(task, 4, episodes_per_trial=2),
        then=[Exposure(task, 2)],
        visibility=Visibility(task_ids=False),
        then_visibility=Visibility(rewards=True, task_ids=False, instructions=True),
    )
    line = outline(Curriculum("x", (probe,)))[1]
    assert "toy/hidden-goal × 4 episodes in trials of 2 (task ids hidden); then evaluate" in line
    assert "(rewards shown, task ids hidden, instructions shown); then restore" in line
