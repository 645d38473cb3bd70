from math import isnan

import pytest
from histories import in_turn, life

from perdure.measure import gem

TABLE = [
    [0.0, 0.25, 0.5],
    [1.0, 0.5, 0.25],
    [0.75, 1.0, 0.5],
    [0.25, 0.5, 0.75],
]


def test_by_hand():
    lived = life(in_turn("abc", TABLE))
    acc, bwt, fwt = (m(lived) for m in gem.metrics)
    assert acc.value == (0.25 + 0.5 + 0.75) / 3
    assert acc.per_task == {"a": 0.25, "b": 0.5, "c": 0.75}
    assert bwt.value == ((0.25 - 1.0) + (0.5 - 1.0)) / 2
    assert bwt.per_task == {"a": -0.75, "b": -0.5}
    assert fwt.value == ((0.5 - 0.25) + (0.5 - 0.5)) / 2
    assert fwt.per_task == {"b": 0.25, "c": 0.0}


def test_tasks_that_are_only_evaluated_do_not_count():
    cells = in_turn("abc", [[*row, 1.0] for row in TABLE[:3]])
    assert gem.acc(life(cells)).per_task == {"a": 0.75, "b": 1.0}
    assert gem.fwt(life(cells)).per_task == {"b": 0.25}


def test_a_missing_cell_leaves_out_its_task():
    table = [row.copy() for row in TABLE]
    table[3][0] = None
    lived = life(in_turn("abc", table))
    assert gem.acc(lived).value == (0.5 + 0.75) / 2
    assert gem.bwt(lived).value == -0.5 and isnan(gem.bwt(lived).per_task["a"])
    assert "without a" in gem.bwt(lived).notes[0]


def test_undefined_with_a_reason():
    one = life(in_turn("a", [[0.0], [1.0]]))
    assert gem.acc(one).value == 1.0
    assert "nothing came after it" in gem.bwt(one).reason
    assert "nothing came before it" in gem.fwt(one).reason
    parallel = life([(0, "a", True, 1.0), (0, "b", True, 1.0), (1, "a", False, 0.5)])
    assert gem.acc(parallel).value == 0.5
    assert "at once" in gem.bwt(parallel).reason and isnan(gem.bwt(parallel).value)
    assert gem.fwt(parallel).reason == "no task was evaluated before any learning"
    never = life(in_turn("ab", [[0, 0], [None, None], [1.0, 1.0]]))
    assert gem.bwt(never).reason == "a was not evaluated after stage 1 (a)"
    assert gem.fwt(never).reason == "b was not evaluated after stage 1 (a)"
    assert gem.acc(life([(0, "a", True, 1.0)])).reason == "no task was evaluated"


@pytest.mark.parametrize("measure", ["return", "accuracy"])
def test_of_any_measure(measure):
    assert gem.bwt(life(in_turn("abc", TABLE), measure=measure)).value == -0.625
