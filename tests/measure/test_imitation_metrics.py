"""L2M against experts where learning rows hold no score: imitation, which is scored by playing."""

from math import isnan

import pytest
from histories import history

from perdure.measure.l2m import paper

RANGES = {"a": (0.0, 1.0), "b": (0.0, 1.0)}


def measured(cells, experts):
    plain = paper.PaperOptions(clamp=False, ranges=RANGES, smoothing="none")
    return paper.scores(history(cells, experts=experts), plain)


def test_evaluations_after_lessons_stand_for_the_curve():
    # a is learned and played (0.5), then b (1.0); experts of each, played after learning alone: 1.
    cells = [
        (0, "a", False, 0.0), (0, "b", False, 0.0), (1, "a", True, None),
        (2, "a", False, 0.5), (2, "b", False, 0.0), (3, "b", True, None),
        (4, "a", False, 0.0), (4, "b", False, 1.0),
    ]  # fmt: skip
    alone = {
        t: [history([(0, t, False, 0.0), (1, t, True, None), (2, t, False, 1.0)])] for t in "ab"
    }
    found = measured(cells, alone)
    # By hand, on the scale from 1 to 101: a has 51 of 101, b all.
    assert found["rp"].per_task == {"a": pytest.approx(51 / 101), "b": 1.0}
    assert found["se"].value == pytest.approx((51 / 101 + 1) / 2)
    assert "evaluations after its lessons" in " ".join(found["rp"].notes)
    # What was played after something else had been learned is not what the lesson led to.
    late = [c for c in cells if c[:2] != (2, "a")]
    assert isnan(measured(late, alone)["rp"].per_task["a"])


def test_scores_of_learning_come_first():
    cells = [(0, "a", False, 0.0), (1, "a", True, 0.2), (1, "a", True, 0.4), (2, "a", False, 1.0)]
    alone = {"a": [history([(0, "a", True, 0.4), (0, "a", True, 0.8), (1, "a", False, 1.0)])]}
    found = measured(cells, alone)["rp"]
    assert found.value == pytest.approx((21 + 41) / (41 + 81)) and not found.notes
