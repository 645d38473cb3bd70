"""Scores of adaptations and of tasks that come one by one, by hand."""

from dataclasses import replace
from math import isnan

import pytest
from histories import life

from perdure.measure import meta, metaworld, online

CELLS = [
    (0, "t", True, 1.0),
    (1, "a", False, 0.0), (1, "a", False, 1.0), (1, "b", False, 0.0),
    (2, "a", True, 0.0), (2, "a", True, 1.0), (2, "a", False, 1.0), (2, "a", False, 1.0),
    (3, "b", True, 0.0), (3, "b", True, 0.0), (3, "b", False, 0.0), (3, "b", False, 1.0),
]  # fmt: skip


def test_by_hand():
    lived = life(CELLS, adapt=[2, 3])
    before, after, gain, stages = (m(lived) for m in meta.metrics)
    assert before.per_task == {"a": 0.5, "b": 0.0} and before.value == 0.25
    assert after.per_task == {"a": 1.0, "b": 0.5} and after.value == 0.75
    assert gain.per_task == {"a": 0.5, "b": 0.5} and gain.value == 0.5
    assert stages.stages == {"before": 0.25, "episode 1": 0.0, "episode 2": 0.5, "after": 0.75}
    assert list(stages.stages) == ["before", "episode 1", "episode 2", "after"]
    assert stages.value == pytest.approx(1.5 / 4)
    assert stages.stages_by_task == {
        "a": {"before": 0.5, "episode 1": 0.0, "episode 2": 1.0, "after": 1.0},
        "b": {"before": 0.0, "episode 1": 0.0, "episode 2": 0.0, "after": 0.5},
    }
    assert stages.per_task == {"a": 2.5 / 4, "b": 0.5 / 4}


def test_goals_of_a_task_are_taken_together():
    lived = life(
        [(b, {"a": "s/t@1", "b": "s/t@2"}.get(t, t), *c) for b, t, *c in CELLS], adapt=[2, 3]
    )
    stages = meta.adaptation(lived)
    assert stages.stages_by_task == {"s/t": stages.stages}


def test_meta_worlds_are_of_success_whatever_the_measure():
    lived = life(CELLS, adapt=[2, 3])
    lived = replace(lived, measure="return")
    assert metaworld.success_before(lived).value == 0.25
    assert metaworld.adaptation(lived).stages["after"] == 0.75
    assert isnan(meta.after(lived).value)


def test_the_last_adaptation_counts_and_what_came_before_it():
    """After more learning both are adapted to again; a's evaluation is older than that learning."""
    cells = [
        *CELLS,
        (4, "t", True, 1.0), (5, "b", False, 1.0),
        (6, "a", True, 0.0), (6, "a", False, 0.0), (7, "b", True, 1.0), (7, "b", False, 1.0),
    ]  # fmt: skip
    lived = life(cells, adapt=[2, 3, 6, 7])
    before = meta.before(lived)
    assert before.value == 1.0 and isnan(before.per_task["a"]) and before.notes
    assert meta.after(lived).per_task == {"a": 0.0, "b": 1.0}


def test_cut_episodes_do_not_count():
    lived = life(CELLS, adapt=[2, 3], cut=[5, 11])
    assert meta.after(lived).per_task == {"a": 1.0, "b": 0.0}
    assert meta.adaptation(lived).stages["episode 2"] == 0.0


def test_undefined_with_a_reason():
    alone = life([(0, "a", True, 1.0), (1, "a", False, 1.0)])
    for metric in (*meta.metrics, metaworld.success_before, metaworld.adaptation):
        assert metric(alone).reason == "no task was adapted to"
    unasked = life([c for c in CELLS if c[0] != 1], adapt=[2, 3])
    assert meta.before(unasked).reason == "no test task was evaluated before it was adapted to"
    assert "before" not in meta.adaptation(unasked).stages and meta.after(unasked).value == 0.75


def test_steps_of_tasks_that_come_one_by_one():
    """Four tasks: a is learned in two blocks, b adapted to and then learned, d only adapted to."""
    cells = [
        (0, "a", True, 0.0, 20), (1, "a", False, 0.5), (2, "a", True, 0.0, 10), (3, "a", False, 1.0),
        (4, "b", True, 0.0, 4), (4, "b", False, 0.0, 50), (5, "b", True, 1.0, 6),
        (6, "c", True, 1.0, 8), (7, "d", True, 1.0, 2), (7, "d", False, 1.0),
    ]  # fmt: skip
    lived = life(cells, adapt=[4, 7])
    steps = online.steps(lived)
    assert steps.per_task == {"a": 30, "b": 10, "c": 8, "d": 2} and steps.value == 12.5
    assert [(m.block, m.value) for m in steps.over_time] == [(0, 30), (4, 10), (6, 8), (7, 2)]
    assert online.speedup(lived).value == 4.0
    again = life([*cells, (8, "a", True, 1.0, 1)], adapt=[4, 7])
    assert online.speedup(again).reason.startswith("a came more than once")
    assert online.steps(life([(0, "a", True, 1.0)])).reason == "fewer than two tasks were learned"
