from math import isnan

import numpy as np
import pytest
from histories import in_turn, life

from perdure.measure import libero

TABLE = [[0.0, 0.25, 0.5], [1.0, 0.5, 0.25], [0.75, 1.0, 0.5], [0.25, 0.5, 0.75]]


def test_curve_stays_at_its_first_best():
    flat = libero.kept_best(np.array([0.0, 0.5, 0.25, 0.75, 0.5, 0.75]))
    assert flat.tolist() == [0.0, 0.5, 0.25, 0.75, 0.75, 0.75]
    assert libero.kept_best(np.array([0.5, 0.25])).tolist() == [0.5, 0.5]


def checkpoints():
    """a is evaluated at 4 checkpoints (0, 0.5, 1, 0.25) and once more at 0.75, b at 3 (0.25, 0.5,
    0.5) and not after its last lesson but for the final evaluation of all."""
    return [
        (0, "a", False, 0.0),
        (1, "a", True, 0.0), (2, "a", False, 0.5),
        (3, "a", True, 0.0), (4, "a", False, 1.0),
        (5, "a", True, 0.0), (6, "a", False, 0.25),
        (7, "a", False, 0.75), (7, "b", False, 0.25),
        (8, "b", True, 0.0), (9, "b", False, 0.5),
        (10, "b", True, 0.0), (11, "a", False, 0.5), (11, "b", False, 0.5),
    ]  # fmt: skip


def test_by_hand():
    fwt, nbt, auc = (m(life(checkpoints())) for m in libero.metrics)
    of_a = (0.0 + 0.5 + 1.0 + 1.0) / 4
    of_b = (0.25 + 0.5 + 0.5) / 3
    assert fwt.per_task == pytest.approx({"a": of_a, "b": of_b})
    assert fwt.value == pytest.approx((of_a + of_b) / 2)
    assert nbt.per_task == {"a": 1.0 - 0.5} and nbt.value == 0.5
    assert auc.per_task == pytest.approx({"a": (of_a + 0.5) / 2, "b": of_b})
    assert auc.value == pytest.approx(((of_a + 0.5) / 2 + of_b) / 2)
    assert not fwt.notes and not auc.notes


def test_three_tasks_by_hand():
    """Two points a task: as it came into its stage, and after it."""
    fwt, nbt, auc = (m(life(in_turn("abc", TABLE))) for m in libero.metrics)
    assert fwt.per_task == {"a": 0.5, "b": 0.75, "c": 0.625}
    assert fwt.value == 1.875 / 3
    assert nbt.per_task == {"a": ((1.0 - 0.75) + (1.0 - 0.25)) / 2, "b": 1.0 - 0.5}
    assert nbt.value == 0.5, "K − 1 terms: the last task has none"
    assert auc.per_task == {"a": (0.5 + 0.75 + 0.25) / 3, "b": (0.75 + 0.5) / 2, "c": 0.625}
    assert auc.value == pytest.approx(1.75 / 3)
    assert "3 of 3 curves have fewer than 3 points" in fwt.notes[0]


def test_one_evaluation_a_stage_is_the_curve():
    table = [[None] * 3, [1.0, None, None], [0.75, 1.0, None], [0.25, 0.5, 0.75]]
    fwt, nbt, auc = (m(life(in_turn("abc", table))) for m in libero.metrics)
    assert fwt.per_task == {"a": 1.0, "b": 1.0, "c": 0.75}
    assert nbt.value == 0.5
    assert auc.per_task == pytest.approx({"a": 2 / 3, "b": 0.75, "c": 0.75})


def test_a_task_that_learning_made_worse_keeps_its_start():
    """The best checkpoint is then the one that came into the stage."""
    fwt, nbt, _ = (m(life(in_turn("ab", [[0.75, 0], [0.5, 0], [0.5, 1]]))) for m in libero.metrics)
    assert fwt.per_task["a"] == 0.75 and nbt.value == 0.25


def test_missing_cells():
    table = [row.copy() for row in TABLE]
    table[2][0] = None
    fwt, nbt, auc = (m(life(in_turn("abc", table))) for m in libero.metrics)
    assert fwt.value == 0.625
    assert isnan(nbt.per_task["a"]) and nbt.value == 0.5 and "without a" in nbt.notes[0]
    assert isnan(auc.per_task["a"]) and auc.value == 0.625
    never = life(in_turn("ab", [[0, 0], [None, 0], [0.5, None]]))
    for m in libero.metrics:
        assert m(never).reason == "a was not evaluated in its own stage"
    late = life(in_turn("ab", [[0, 0], [1, 0], [None, 1]]))
    assert libero.nbt(late).reason == "a was not evaluated after stage 2 (b)"


def test_undefined_with_a_reason():
    one = life(in_turn("a", [[0.0], [1.0]]))
    assert libero.fwt(one).value == libero.auc(one).value == 0.5
    assert libero.nbt(one).reason == "one task was learned: nothing came after it"
    parallel = life([(0, "a", True, 1.0), (0, "b", True, 1.0), (1, "a", False, 0.5)])
    for m in libero.metrics:
        assert isnan(m(parallel).value) and "at once" in m(parallel).reason
