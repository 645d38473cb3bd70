"""What must hold for the L2M paper preset whatever the lifetime."""

from dataclasses import replace
from math import isfinite, isinf, isnan

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perdure.errors import MeasureError
from perdure.measure.l2m import paper
from perdure.measure.l2m.smoothing import WINDOWS, averages
from perdure.store.history import History

pytestmark = pytest.mark.filterwarnings("error")

TASKS = ("a", "b", "c")
COUNTED = ("rt", "ets", "pr")
"""In experiences, not in performance."""


def history(task, block, learning, values, experts=None, **marks):
    n = len(values)
    columns = {"return": pa.chunked_array([np.asarray(values, np.float64)])}
    no = np.zeros(n, bool)
    flags = {"adapt": no, "sleep": no, "before": no, "complete": ~no, "exp": np.arange(n)} | marks
    return History(
        name="x", tasks=TASKS, block=np.asarray(block, np.int32), task=np.asarray(task, np.int32),
        learning=np.asarray(learning, bool), steps=np.ones(n, np.int64), columns=columns,
        measure="return", experts=experts or {}, **flags,
    )  # fmt: skip


levels = st.floats(-50, 50).map(lambda v: round(v, 3))


@st.composite
def lifetimes(draw):
    """Evaluations of some tasks between learning blocks, with experts of some tasks. Curves are of
    a few levels, so that plateaus are frequent; long ones are smoothed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    few = np.array(draw(st.lists(levels, min_size=1, max_size=5)))
    task, block, learning = [], [], []
    for number, taught in enumerate(draw(st.lists(st.integers(0, 2), min_size=1, max_size=5))):
        for tested in np.flatnonzero(rng.random(3) < 0.7):
            n = int(rng.integers(1, 4))
            task += [tested] * n
            block += [2 * number] * n
            learning += [False] * n
        n = int(rng.integers(1, 30))
        task += [taught] * n
        block += [2 * number + 1] * n
        learning += [True] * n
    experts = {}
    for i in np.flatnonzero(rng.random(3) < 0.5):
        n = int(rng.integers(1, 30))
        experts[TASKS[i]] = (history([i] * n, [0] * n, [True] * n, rng.choice(few, n)),)
    return history(task, block, learning, rng.choice(few, len(task)), experts)


options = st.builds(
    paper.PaperOptions,
    smoothing=st.sampled_from(WINDOWS),
    window=st.none() | st.integers(3, 12),
    clamp=st.booleans(),
)


def mapped(h, change):
    """The same lifetime with every value changed."""
    return replace(
        h,
        columns={"return": pa.chunked_array([change(h.values())])},
        experts={t: tuple(mapped(e, change) for e in runs) for t, runs in h.experts.items()},
    )


@settings(deadline=None)
@given(st.lists(lifetimes(), min_size=2, max_size=4), options, st.randoms())
def test_the_order_of_lifetimes_does_not_matter(lives, o, random):
    shuffled = list(lives)
    random.shuffle(shuffled)
    assert paper.limits(lives, o) == paper.limits(shuffled, o)


@settings(deadline=None)
@given(lifetimes(), options)
def test_names_of_tasks_do_not_matter(h, o):
    new = dict(zip(TASKS, ("zebra", "_", "a b"), strict=True))

    def renamed(h):
        experts = {new[t]: tuple(map(renamed, runs)) for t, runs in h.experts.items()}
        return replace(h, tasks=tuple(new[t] for t in h.tasks), experts=experts)

    before, after = paper.scores(h, o), paper.scores(renamed(h), o)
    for name, score in before.items():
        assert after[name].value == pytest.approx(score.value, nan_ok=True)
        assert {new[t]: v for t, v in score.per_task.items()} == pytest.approx(
            after[name].per_task, nan_ok=True
        )
        assert [(new[s], new[t]) for s, t in score.pairs] == list(after[name].pairs)


@settings(deadline=None)
@given(lifetimes(), options, st.floats(0.01, 100), st.floats(-100, 100))
def test_the_unit_of_reward_does_not_matter(h, o, scale, shift):
    moved = mapped(h, lambda v: v * scale + shift)
    before, after = paper.scores(h, o), paper.scores(moved, o)
    for name, score in before.items():
        assert after[name].value == pytest.approx(score.value, rel=1e-6, abs=1e-6, nan_ok=True), (
            name
        )


@settings(deadline=None)
@given(lifetimes(), options, levels)
def test_constant_performance_is_neither_kept_nor_transferred(h, o, level):
    found = paper.scores(mapped(h, lambda v: np.full(len(v), level)), o)
    for name, nothing in {"pm": 0, "pm_tlp": 0, "ft": 0, "bt": 0, "ft_ratio": 1, "bt_ratio": 1,
                          "rp": 1, "se": 1, "droop": 0, "cg": 0, "pr": 0}.items():  # fmt: skip
        assert isnan(found[name].value) or found[name].value == nothing, name


@settings(deadline=None)
@given(lifetimes(), options, st.lists(st.floats(0, 30), min_size=1, max_size=9))
def test_a_better_learner_never_has_less_relative_performance(h, o, gains):
    more = np.resize(gains, len(h))
    better = replace(h, columns={"return": pa.chunked_array([h.values() + more * h.learning])})
    o = replace(o, limits=paper.limits([h, better], o))
    worse, well = paper.scores(h, o)["rp"].value, paper.scores(better, o)["rp"].value
    assert isnan(worse) == isnan(well)
    assert isnan(worse) or well >= worse - 1e-9


@settings(deadline=None)
@given(lifetimes(), options)
def test_processed_performance_lies_between_1_and_101(h, o):
    for name in ("tlp", "sat", "atp", "aep"):
        for value in paper.scores(h, o)[name].per_task.values():
            assert 1 - 1e-9 <= value <= 101 + 1e-9


odd = st.sampled_from(
    [0.0, 1.0, -1.0, 0.1, 1e-300, -5e-324, 1e150, -1e150, 1e308, np.nan, np.inf, -np.inf]
)


@st.composite
def oddities(draw, depth=1):
    """Rows in any order, of any kind, with any values."""
    n = draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    few = draw(st.lists(odd | levels, min_size=1, max_size=5))

    def rarely():
        return rng.random(n) < draw(st.sampled_from([0.0, 0.2, 1.0]))

    experts = {}
    if depth:
        for t in draw(st.sets(st.sampled_from((*TASKS, "stranger")))):
            experts[t] = tuple(draw(st.lists(oddities(depth - 1), max_size=2)))
    block, exp = rng.integers(0, 9, n), np.sort(rng.integers(0, draw(st.integers(1, 60)), n))
    made = history(
        rng.integers(0, 3, n),
        np.sort(block) if draw(st.booleans()) else block,
        rng.random(n) < 0.5,
        rng.choice(few, n),
        experts,
        adapt=rarely(),
        sleep=rarely(),
        before=rarely(),
        complete=~rarely(),
        exp=exp,
    )
    return replace(made, columns={} if n > 38 and not depth else made.columns)


@settings(deadline=None, max_examples=300)
@given(oddities(), options, st.booleans(), st.booleans())
def test_odd_data_has_a_value_or_a_reason(h, o, normalise, given_ranges):
    ranges = dict.fromkeys(TASKS, (0.0, 1.0)) if given_ranges else None
    o = replace(o, normalise=normalise, ranges=ranges)
    try:
        found = paper.scores(h, o)
        pooled = paper.scores(h, replace(o, limits=paper.limits([h, h], o)))
    except MeasureError:
        return
    for name, score in [*found.items(), *pooled.items()]:
        assert isfinite(score.value) or (isnan(score.value) and score.reason), name
        every = [*score.per_task.values(), *score.pairs.values(), *(m[2] for m in score.over_time)]
        assert not any(isinf(v) for v in every), name
        assert not any(isnan(m.value) for m in score.over_time), name


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300),
    st.integers(1, 130),
)
def test_means_of_stretches_are_those_of_a_convolution(values, length):
    x = np.array(values)
    assume(length <= len(x))
    expected = np.convolve(np.full(length, 1 / length), x, mode="valid")
    found = averages("flat", length, x)
    assert len(found) == len(x) - length + 1
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * max(1, np.abs(x).max()))


def test_a_mean_is_spoilt_by_nothing_outside_its_stretch():
    x = np.array([1.0, 1e18, 2.0, 4.0, np.nan, 3.0, 5.0, 7.0])
    found = averages("flat", 2, x)
    assert found[[2, 5, 6]].tolist() == [3.0, 4.0, 6.0]
    assert np.isnan(found[[3, 4]]).all()
