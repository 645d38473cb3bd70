from math import isnan

from histories import life

from perdure.measure import metaworld

CELLS = [
    (0, "a", False, 1.0),
    (1, "a", True, 1.0), (1, "b", True, 1.0),
    (2, "a", False, 1.0), (2, "a", False, 0.0), (2, "b", False, 1.0), (2, "b", False, 1.0),
]  # fmt: skip
ENDS = {0: 1.0, 3: 0.0, 4: 0.0, 5: 1.0, 6: 0.0}


def test_by_hand():
    lived = life(CELLS, ends=ENDS)
    any_step, at_end = metaworld.success(lived), metaworld.success_end(lived)
    assert any_step.per_task == {"a": 0.5, "b": 1.0} and any_step.value == 0.75
    assert at_end.per_task == {"a": 0.0, "b": 0.5} and at_end.value == 0.25
    assert not any_step.notes


def test_cut_episodes_do_not_count():
    score = metaworld.success(life(CELLS, cut=[4]))
    assert score.per_task == {"a": 1.0, "b": 1.0}


def test_meta_testing_counts_what_follows_the_adaptation():
    """c is adapted to twice: the later time counts, and of it what was evaluated."""
    cells = [
        *CELLS,
        (3, "c", True, 0.0), (3, "c", False, 0.0),
        (4, "c", True, 0.0), (4, "c", False, 1.0), (4, "c", False, 0.0),
    ]  # fmt: skip
    score = metaworld.success(life(cells, adapt=[3, 4]))
    assert score.per_task == {"a": 0.5, "b": 1.0, "c": 0.5} and score.value == 2 / 3
    assert score.notes == ("after adapting: c",)


def test_meta_testing_alone():
    """Trained before deployment, and nothing but adapted after it."""
    cells = [(0, "a", True, 1.0), (1, "a", False, 1.0), (2, "b", True, 1.0), (2, "b", False, 0.25)]
    score = metaworld.success(life(cells, before=[0, 1], adapt=[2]))
    assert score.per_task == {"b": 0.25} and score.value == 0.25


def test_an_evaluation_before_the_last_learning_is_named():
    score = metaworld.success(life([*CELLS, (3, "a", True, 0.0), (4, "a", False, 1.0)]))
    assert score.per_task == {"a": 1.0, "b": 1.0}
    assert score.notes == ("not evaluated after the last learning: b",)


def test_undefined_with_a_reason():
    assert metaworld.success(life(CELLS, measure="return")).reason == "the rows hold no success"
    score = metaworld.success_end(life(CELLS))
    assert isnan(score.value) and score.reason == "the rows hold no success_end"
    score = metaworld.success(life(CELLS[1:3]))
    assert score.reason == "no task was evaluated on success"


def test_success_does_not_depend_on_the_chosen_measure():
    lived = life(CELLS)
    assert metaworld.success(type(lived)(lived.history, "return")).value == 0.75
