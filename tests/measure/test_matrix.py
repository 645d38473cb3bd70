from dataclasses import replace
from math import isnan, nan

import numpy as np
import pytest
from histories import history, in_turn, life
from hypothesis import given, settings
from hypothesis import strategies as st

import perdure
from kit import live
from perdure.measure import cw, gem, libero, metaworld, openloris
from perdure.measure.matrix import Stage, evaluation_matrix
from perdure.measure.metric import LifetimeData
from perdure.store.history import read_experts, read_lifetime, read_run
from perdure.types import Curriculum, Exposure, Task, evaluate, learn

EVERY = (*gem.metrics, *openloris.metrics, *libero.metrics, *cw.metrics, *metaworld.metrics)


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
    assert np.isnan(m.train_test.values).all() and m.train_test.values.shape == (2, 1)


def test_of_a_real_lifetime(tmp_path):
    task = Task("toy", "count")
    blocks = (evaluate(Exposure(task, 2)), learn(Exposure(task, 1)), evaluate(Exposure(task, 2)))
    live(Curriculum("x", blocks), tmp=tmp_path)
    m = evaluation_matrix(read_lifetime(tmp_path / "life", "life"))
    assert m.values.tolist() == [[5.0], [5.0]] and m.learned == ((), ("toy/count",))


def test_episodes_that_the_budget_cut_off_do_not_count():
    cells = [(0, "a", False, 1.0), (0, "a", False, 0.0), (0, "b", False, 0.0)]
    assert evaluation_matrix(history(cells)).values.tolist() == [[0.5, 0.0]]
    cut = evaluation_matrix(history(cells, cut=[1, 2])).values
    assert cut[0, 0] == 1.0 and isnan(cut[0, 1])


def test_an_evaluation_budget_of_steps_leaves_no_trace_of_the_cut_episode(tmp_path):
    """Episodes of count last 5 steps and return 5: of 7 steps the last 2 are no episode."""
    task = Task("toy", "count")
    live(Curriculum("x", (evaluate(Exposure(task, 7, "steps")),)), tmp=tmp_path)
    lived = read_lifetime(tmp_path / "life", "life")
    assert lived.steps.tolist() == [5, 2] and lived.complete.tolist() == [True, False]
    assert evaluation_matrix(lived).values.tolist() == [[5.0]]


def test_adapt_blocks_and_what_came_before_deployment_leave_no_trace():
    cells = [
        (0, "a", True, 1.0), (1, "a", False, 1.0),
        (2, "a", False, 0.5),
        (3, "a", True, 1.0), (4, "b", True, 1.0), (4, "b", False, 0.25), (5, "a", False, 0.75),
    ]  # fmt: skip
    table = evaluation_matrix(history(cells, before=[0, 1], adapt=[4])).train_test
    assert table.stages == (Stage(("a",), (3,)),) and table.tasks == ("a",)
    assert table.values.tolist() == [[0.5], [0.75]]


def test_stages_run_over_evaluations_and_end_when_other_tasks_are_taught():
    cells = [
        (0, "b", True, 1.0), (1, "a", False, 1.0), (2, "b", True, 1.0),
        (3, "a", True, 1.0),
        (4, "b", True, 1.0), (4, "a", True, 1.0), (5, "a", True, 1.0), (5, "b", True, 1.0),
        (6, "b", True, 1.0),
    ]  # fmt: skip
    table = evaluation_matrix(history(cells)).train_test
    assert [(s.tasks, s.blocks) for s in table.stages] == [
        (("b",), (0, 2)), (("a",), (3,)), (("b", "a"), (4, 5)), (("b",), (6,)),
    ]  # fmt: skip


def test_train_test_takes_the_last_evaluation_between_stages():
    cells = [
        (0, "x", False, 0.125), (0, "b", False, 0.0), (1, "b", False, 0.25),
        (2, "b", True, 1.0), (3, "b", False, 0.5), (3, "x", False, 0.5),
        (4, "b", True, 1.0), (5, "b", False, 0.75), (6, "b", False, 1.0), (6, "a", False, 0.25),
        (7, "a", True, 1.0), (8, "a", False, 1.0),
    ]  # fmt: skip
    m = evaluation_matrix(history(cells))
    assert m.train_test.tasks == ("b", "a", "x"), "learned tasks first, in order of learning"
    expected = [[0.25, nan, 0.125], [1.0, 0.25, nan], [nan, 1.0, nan]]
    assert np.array_equal(m.train_test.values, expected, equal_nan=True)
    assert m.train_test.irregular == ""
    assert m.curve((2, 4), "b") == {2: 0.5, 4: 0.75}
    assert m.train_test.hole([(0, "b"), (1, "a")]) == ""
    assert m.train_test.hole([(0, "a")]) == "a was not evaluated before learning"
    assert m.train_test.hole([(-1, "b")]) == "b was not evaluated after stage 2 (a)"


def test_irregular_lifetimes_are_named():
    parallel = evaluation_matrix(history([(0, "a", True, 1.0), (0, "b", True, 1.0)])).train_test
    assert "stage 1 teaches a and b at once" in parallel.irregular
    again = evaluation_matrix(
        history([(0, "a", True, 1.0), (1, "b", True, 1.0), (2, "a", True, 1.0)])
    ).train_test
    assert "a is learned in stages 1 and 3" in again.irregular


@st.composite
def tables(draw):
    n = draw(st.integers(1, 5))
    cell = st.integers(0, 8).map(lambda k: k / 8)
    return draw(st.lists(st.lists(cell, min_size=n, max_size=n), min_size=n + 1, max_size=n + 1))


def scores(cells, tasks):
    expert = history([(0, task, True, k / 8) for k, task in enumerate(tasks)])
    lived = life(cells, experts={task: [expert] for task in tasks})
    return [m(lived) for m in EVERY]


@settings(max_examples=25, deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_names_and_the_order_of_evaluations_do_not_matter(table, random):
    n = len(table[0])
    tasks, order = "abcde"[:n], list(range(n))
    random.shuffle(order)
    other = [random.choice("pqr") + t for t in tasks]
    plain = scores(in_turn(tasks, table), tasks)
    shuffled = scores(in_turn(tasks, table, order), tasks)
    renamed = scores(in_turn(other, table), other)
    for score, same, again in zip(plain, shuffled, renamed, strict=True):
        assert isnan(score.value) == bool(score.reason)
        assert score.value == pytest.approx(same.value, nan_ok=True)
        assert score.value == pytest.approx(again.value, nan_ok=True)
        assert dict(score.per_task) == pytest.approx(dict(same.per_task), nan_ok=True)
        back = {t[1]: v for t, v in again.per_task.items()}
        assert dict(score.per_task) == pytest.approx(back, nan_ok=True)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.floats(0, 1))
def test_a_constant_score_is_neither_forgotten_nor_transferred(n, value):
    lived = life(in_turn("abcde"[:n], [[value] * n] * (n + 1)))
    for m in (gem.bwt, gem.fwt, libero.nbt, cw.forgetting):
        assert m(lived).value == 0, m.name
    same = [gem.acc, *openloris.metrics, libero.fwt, libero.auc, cw.performance, metaworld.success]
    for m in same:
        assert m(lived).value == pytest.approx(value), m.name


@settings(max_examples=25, deadline=None)
@given(tables())
def test_papers_agree_where_their_formulas_do(table):
    n = len(table[0])
    lived = life(in_turn("abcde"[:n], table))
    assert gem.acc(lived).value == pytest.approx(cw.performance(lived).value)
    if n > 1:
        lost = list(cw.forgetting(lived).per_task.values())[:-1]
        assert gem.bwt(lived).value == pytest.approx(-np.mean(lost))
        accuracy, _, fwt, overall = (m(lived).value for m in openloris.metrics)
        assert overall == pytest.approx(((n + 1) * accuracy + (n - 1) * fwt) / (2 * n))


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    out = tmp_path_factory.mktemp("measure") / "run"
    run = perdure.experiment(
        "toy/compass,steps=120,episodes=3", ["q"], lifetimes=1, out=str(out),
        executor="serial", experts=True,
    )  # fmt: skip
    (lived,) = read_run(run)
    return lived, read_experts(run.lifetimes())[0]["q"]


@pytest.mark.parametrize("m", EVERY, ids=lambda m: m.name)
def test_every_metric_on_a_real_lifetime(real, m):
    lived, experts = real
    for given_experts in ({}, experts):
        score = m(LifetimeData(replace(lived, experts=given_experts), lived.measure))
        assert isnan(score.value) == bool(score.reason), score
        assert m.about and all(t in lived.tasks for t in score.per_task)
    # It adapts to nothing, and what is measured of that is undefined.
    adapts = ("metaworld.success_before", "metaworld.adaptation")
    assert isnan(score.value) == (m.name in adapts), score.reason
