from math import isnan

import pytest
from histories import history, in_turn, life

from perdure.measure import cw

TABLE = [[0.0, 0.25, 0.5], [1.0, 0.5, 0.25], [0.75, 1.0, 0.5], [0.25, 0.5, 0.75]]


def test_performance_and_forgetting_by_hand():
    lived = life(in_turn("abc", TABLE))
    assert cw.performance(lived).value == (0.25 + 0.5 + 0.75) / 3
    lost = cw.forgetting(lived)
    assert lost.per_task == {"a": 0.75, "b": 0.5, "c": 0.0}
    assert lost.value == 1.25 / 3, "the last task counts, with 0"
    assert [(m.block, m.task, m.value) for m in lost.over_time] == [
        (1, "a", 0.75), (3, "b", 0.5), (5, "c", 0.0),
    ]  # fmt: skip


def test_a_task_learned_twice_counts_once():
    """a: 1.0 and then 0.75 after its stages, b: 0.5; at the end 0.5 and 0.25."""
    cells = [
        (1, "a", True, 0.0), (2, "a", False, 1.0),
        (3, "b", True, 0.0), (4, "b", False, 0.5),
        (5, "a", True, 0.0), (6, "a", False, 0.75),
        (7, "b", True, 0.0), (8, "a", False, 0.5), (8, "b", False, 0.25),
    ]  # fmt: skip
    lost = cw.forgetting(life(cells))
    assert lost.per_task == {"a": (0.5 + 0.25) / 2, "b": (0.25 + 0.0) / 2}
    assert lost.value == (0.375 + 0.125) / 2 and len(lost.over_time) == 4
    assert cw.performance(life(cells)).value == 0.375


def test_a_missing_evaluation_is_named():
    table = [row.copy() for row in TABLE]
    table[1][0] = None
    lost = cw.forgetting(life(in_turn("abc", table)))
    assert lost.value == 0.25 and isnan(lost.per_task["a"])
    assert lost.notes == ("left out: a was not evaluated after stage 1 (a)",)
    never = life([(0, "a", False, 0.5), (1, "a", True, 0.5)])
    for m in (cw.performance, cw.forgetting):
        assert m(never).reason == "a was not evaluated after stage 1 (a)"


def lessons(block, task, scores, steps=10):
    return [(block, task, True, score, steps) for score in scores]


def test_transfer_by_hand_from_learning():
    """20 episodes of equal length are 20 spans: the mean of the curve is that of the episodes."""
    cells = lessons(0, "a", [0] * 10 + [1] * 10) + lessons(1, "b", [0] * 5 + [1] * 15)
    experts = {
        "a": [history(lessons(0, "a", [0] * 10 + [1] * 10))],
        "b": [history(lessons(0, "b", [0] * 15 + [1] * 5)), history(lessons(0, "b", [0, 1] * 10))],
    }
    score = cw.transfer(life(cells, experts=experts))
    reference = (0.25 + 0.5) / 2
    assert score.per_task == pytest.approx({"a": 0.0, "b": (0.75 - reference) / (1 - reference)})
    assert score.value == pytest.approx(0.6 / 2)
    assert [m.block for m in score.over_time] == [0, 1]


def test_time_weighs_not_episodes():
    """Failures of 50 steps for the first half of the time, then successes of 1 step: half the time
    is half the area, whatever the number of episodes."""
    cells = [(0, "a", True, 0.0, 50)] * 10 + [(0, "a", True, 1.0, 1)] * 500
    expert = history([(0, "a", True, 0.0, 100)] * 10)
    assert cw.transfer(life(cells, experts={"a": [expert]})).value == pytest.approx(0.5)


def test_long_failures_do_not_outweigh_short_successes():
    """A skill of 0.5 that never changes: every second episode succeeds after 1 step, the others
    last 9. A mean over steps would say 0.1."""
    cells = [(0, "a", True, k % 2, 1 if k % 2 else 9) for k in range(400)]
    expert = history([(0, "a", True, 0.0, 100)] * 20)
    assert cw.transfer(life(cells, experts={"a": [expert]})).value == pytest.approx(0.5)


def test_cut_episodes_spend_time_but_have_no_score():
    cells = lessons(0, "a", [1] * 10 + [0] * 10)
    expert = history(lessons(0, "a", [0] * 20))
    score = cw.transfer(life(cells, experts={"a": [expert]}, cut=range(10, 20)))
    assert score.value == 1.0


def test_an_expert_is_compared_over_the_steps_of_the_stage():
    """The expert saw both lessons of a at once: only its first half faces each stage."""
    cells = [
        *lessons(0, "a", [0] * 10 + [1] * 10),
        *lessons(1, "b", [0] * 20),
        *lessons(2, "a", [1] * 20),
    ]
    expert = history(lessons(0, "a", [0] * 20 + [1] * 20))
    score = cw.transfer(life(cells, experts={"a": [expert]}))
    assert [m.value for m in score.over_time] == [0.5, 1.0]
    assert score.per_task["a"] == 0.75 and isnan(score.per_task["b"])
    assert score.notes == ("left out: b has no single-task expert with success",)


def curve(task, scores, block=0):
    """Learn blocks of 10 steps with an evaluation after each; all learning episodes fail."""
    cells = []
    for k, score in enumerate(scores):
        cells += [(block + 2 * k, task, True, 0.0, 10), (block + 2 * k + 1, task, False, score)]
    return cells


def test_evaluations_are_the_curve_where_both_have_them():
    cells = curve("a", [0.5, 1.0])
    expert = history(curve("a", [0.0, 0.5, 1.0, 1.0]))
    assert cw.transfer(life(cells, experts={"a": [expert]})).value == (0.75 - 0.25) / (1 - 0.25)
    once = history([(0, "a", True, 0.0, 20), (1, "a", False, 1.0)])
    assert cw.transfer(life(cells, experts={"a": [once]})).value == 0.0, "by learning, all failed"


def test_transfer_undefined_with_a_reason():
    cells = lessons(0, "a", [1] * 20)
    assert "no single-task expert" in cw.transfer(life(cells)).reason
    easy = {"a": [history(lessons(0, "a", [1] * 20))]}
    score = cw.transfer(life(cells, experts=easy))
    assert isnan(score.value) and "leaves no room: its mean is 1" in score.reason
    returns = history(lessons(0, "a", [-3.0]), measure="return")
    score = cw.transfer(life(cells, measure="return", experts={"a": [returns]}))
    assert score.reason == "return ranges from -3 to 1: needs scores between 0 and 1"
    parallel = lessons(0, "a", [1] * 20) + lessons(0, "b", [1] * 20)
    score = cw.transfer(life(parallel, experts=easy))
    assert score.reason == "stage 1 teaches a and b at once"
    score = cw.transfer(life(cells, experts=easy, cut=range(20)))
    assert "a has no curve of success" in score.reason
