import numpy as np
import pytest

from kit import live
from perdure.measure.matrix import evaluation_matrix
from perdure.store import rows
from perdure.store.history import from_table, read_lifetime
from perdure.types import Curriculum, Exposure, Task, evaluate, learn


def history(cells):
    """A history from (block, task, learning, success)."""
    made = [
        rows.Row(
            i, block, "life", "learn" if learning else "eval", learning, 0, task, "", "", 0, 0, 0, 1,
            0, "complete", True, False, 0.0, success, success, None, None, None,
        )
        for i, (block, task, learning, success) in enumerate(cells)
    ]  # fmt: skip
    return from_table(rows.decode(rows.encode(made, "a", 0, "")), "a/0")


def test_by_hand():
    """Two tasks: a is learned to 1.0 and falls to 0.25, b goes from 0 to 0.5."""
    m = evaluation_matrix(
        history(
            [
                (0, "a", False, 0.0), (0, "a", False, 0.5), (0, "b", False, 0.0),
                (1, "a", True, 1.0),
                (2, "a", False, 1.0), (2, "b", False, 0.0),
                (3, "b", True, 1.0),
                (4, "a", False, 0.0), (4, "a", False, 0.5), (4, "b", False, 0.5),
            ]
        )
    )  # fmt: skip
    assert m.tasks == ("a", "b") and m.learned == ((), ("a",), ("a", "b"))
    assert m.values.tolist() == [[0.25, 0.0], [1.0, 0.0], [0.25, 0.5]]
    assert m.initial() == 0.125
    assert m.acquired() == (1.0 + 0.5) / 2
    assert m.final() == (0.25 + 0.5) / 2
    assert m.forgetting() == pytest.approx(0.375)


def test_no_evaluation_is_nan_not_zero():
    m = evaluation_matrix(history([(0, "a", True, 1.0)]))
    assert m.values.shape == (0, 1)
    assert all(np.isnan(v) for v in (m.initial(), m.acquired(), m.forgetting()))


def test_of_a_real_lifetime(tmp_path):
    task = Task("toy", "count")
    blocks = (evaluate(Exposure(task, 2)), learn(Exposure(task, 1)), evaluate(Exposure(task, 2)))
    live(Curriculum("x", blocks), tmp=tmp_path)
    m = evaluation_matrix(read_lifetime(tmp_path / "life", "life"))
    assert m.values.tolist() == [[5.0], [5.0]] and m.learned == ((), ("toy/count",))
