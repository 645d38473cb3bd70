import dataclasses
import json
import subprocess
import sys
from itertools import product
from math import isnan, nan, pi, sqrt, tan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.special import stdtrit

from perdure.errors import MeasureError
from perdure.measure.stats import (
    bootstrap_interval,
    iqm,
    mean_interval,
    performance_profile,
    probability_of_improvement,
    share_limits,
    t_quantile,
    t_quantiles,
)
from perdure.store.plain import plain

pytestmark = pytest.mark.filterwarnings("error")

SCORE = st.floats(-100, 100).map(lambda x: round(x, 3))
SAMPLE = arrays(float, st.integers(2, 12), elements=SCORE)
TABLE = arrays(float, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6), elements=SCORE)


def limits(estimate):
    return estimate.value, estimate.low, estimate.high


def test_mean_by_hand():
    """Mean 3, standard deviation √2.5, standard error √0.5; t(4 df) reaches 2.776445."""
    got = mean_interval([1, 2, 3, 4, 5])
    half = 2.776445 * sqrt(0.5)
    assert limits(got) == pytest.approx((3, 3 - half, 3 + half), rel=1e-6)
    assert (got.n, got.dropped, got.reason) == (5, 0, "")


def test_mean_agrees_with_scipy():
    from scipy import stats

    x = np.random.default_rng(3).normal(size=7)
    want = stats.t.interval(0.9, 6, loc=x.mean(), scale=stats.sem(x))
    assert (mean_interval(x, 0.9).low, mean_interval(x, 0.9).high) == pytest.approx(want)


def test_mean_of_few():
    none, one = mean_interval([nan, nan]), mean_interval([nan, 0.5])
    assert isnan(none.value) and isnan(none.low) and (none.n, none.dropped) == (0, 2)
    assert none.reason == "n = 0: no lifetime has all its scores (2 have an undefined score)"
    assert (
        one.value == 0.5 and isnan(one.low) and isnan(one.high) and (one.n, one.dropped) == (1, 1)
    )
    assert one.reason == "n = 1: an interval needs at least 2 lifetimes"
    assert isnan(mean_interval([]).value)


def test_what_does_not_vary_has_no_width():
    # 0.1 + 0.1 + 0.1 is not 0.3 in floating point: naive sums give a width of 1e-17.
    assert limits(mean_interval([0.1] * 3)) == (0.1, 0.1, 0.1)
    drawn = bootstrap_interval([0.1] * 3)
    assert drawn.low == drawn.value == drawn.high == pytest.approx(0.1) and not drawn.reason


def test_iqm_by_hand():
    assert iqm([0, 1, 2, 3, 4, 5, 6, 700]) == 3.5  # of 2, 3, 4, 5
    assert iqm([9, 1, 5, 3, 100]) == pytest.approx(17 / 3)  # a quarter of five is one value
    assert iqm([1, 2, 6]) == 3  # a quarter of three is none
    assert iqm([[0, 7], [1, 6], [2, 5], [3, 4]]) == 3.5
    assert iqm([[[0, 7], [1, 6], [2, 5], [3, 4]]] * 2, axis=(1, 2)).tolist() == [3.5, 3.5]
    assert isnan(iqm([1, 2, 3, nan])) and isnan(iqm([]))


@given(arrays(float, st.integers(1, 40), elements=SCORE))
def test_iqm_is_the_quarter_trimmed_mean(x):
    from scipy.stats import trim_mean

    assert iqm(x) == pytest.approx(trim_mean(x, 0.25), abs=1e-9)


def test_bootstrap_by_hand():
    """Of 0 and 1, means of two draws are 0, ½, ½, 1: their deviation is √⅛, times √(2/1) is ½;
    t(1 df) reaches 12.7062."""
    got = bootstrap_interval([0, 1], np.mean, draws=200_000)
    assert limits(got) == pytest.approx((0.5, 0.5 - 6.3531, 0.5 + 6.3531), rel=0.01)


def test_bootstrap_of_the_mean_is_students_interval():
    x = np.random.default_rng(0).normal(size=8)
    got, want = bootstrap_interval(x, np.mean, draws=50_000), mean_interval(x)
    assert limits(got) == pytest.approx(limits(want), abs=0.02)


def test_bootstrap_draws_whole_lifetimes():
    """Each lifetime's two scores cancel; only a draw of single scores could move the mean."""
    got = bootstrap_interval([[1, -1], [5, -5], [-9, 9], [2, -2]], np.mean)
    assert limits(got) == (0, 0, 0)


def test_bootstrap_goes_by_its_seed(monkeypatch):
    x = np.random.default_rng(0).normal(size=(6, 3))
    same = bootstrap_interval(x, seed=4)
    assert bootstrap_interval(x, seed=4) == same != bootstrap_interval(x, seed=5)
    monkeypatch.setattr("perdure.measure.stats.CHUNK", 100)
    assert limits(bootstrap_interval(x, seed=4)) == pytest.approx(limits(same))


def test_bootstrap_of_few_and_of_undefined():
    got = bootstrap_interval([[1, nan], [2, 4], [nan, nan]])
    assert got.value == 3 and isnan(got.low) and (got.n, got.dropped) == (1, 2)
    assert "at least 2" in got.reason
    assert "n = 0" in bootstrap_interval([nan]).reason
    got = bootstrap_interval([0.0, 1.0], lambda x, axis: np.where(x.max(axis) > 0, 1.0, nan))
    assert got.value == 1 and isnan(got.low) and "undefined on some draws" in got.reason


def covered(intervals, truth):
    return float(np.mean([e.low <= truth <= e.high for e in intervals]))


def test_coverage_is_what_it_says():
    """Ten lifetimes × ten tasks; a lifetime's scores share its luck. True mean and IQM are 0.

    1500 simulations: the standard error of a coverage of 95 % is 0.6 %.
    """
    rng = np.random.default_rng(7)
    worlds = rng.normal(size=(1500, 10, 1)) + 0.7 * rng.normal(size=(1500, 10, 10))
    assert 0.92 <= covered([mean_interval(w.mean(axis=1)) for w in worlds], 0) <= 0.98
    assert 0.92 <= covered([bootstrap_interval(w, iqm, draws=150) for w in worlds], 0) <= 0.98
    # The same interval that takes each score of each task for an observation of its own.
    assert covered([bootstrap_interval(w.ravel(), iqm, draws=150) for w in worlds], 0) < 0.75


def test_coverage_of_probability_and_profile():
    rng = np.random.default_rng(8)
    worlds = rng.normal(size=(1500, 2, 10, 1)) + 0.7 * rng.normal(size=(1500, 2, 10, 10))
    for paired in (True, False):
        got = [probability_of_improvement(a, b, paired=paired) for a, b in worlds]
        assert 0.92 <= covered(got, 0.5) <= 0.985
    bands = [performance_profile(w[0], [0.0]) for w in worlds]
    assert 0.92 <= np.mean([p.low[0] <= 0.5 <= p.high[0] for p in bands]) <= 0.98


def test_share_limits_by_hand():
    """Four coin tosses, two heads: Wilson's formula with t²(3 df) = 3.182446² for z²."""
    t2 = 3.182446**2
    half = sqrt(t2 * 0.25 / 4 + (t2 / 8) ** 2) / (1 + t2 / 4)
    got = share_limits(np.array(0.5), np.array(0.25), 4, 0.95)
    assert got == pytest.approx((0.5 - half, 0.5 + half), rel=1e-6)
    # All three agree: 3/(3 + t²) with t(2 df) = 4.302653.
    got = share_limits(np.array([1.0, 0.0]), np.zeros(2), 3, 0.95)
    low = 3 / (3 + 4.302653**2)
    assert np.allclose(got, [[low, 0], [1, 1 - low]], atol=1e-6)


def test_profile_by_hand():
    got = performance_profile([[0, 1], [1, 1], [nan, 1]], [1, 0.5, -1])
    assert got.thresholds == (1, 0.5, -1) and got.value == (0, 0.75, 1)
    assert (got.n, got.dropped) == (2, 1)
    assert all(low <= v <= high for v, low, high in zip(got.value, got.low, got.high, strict=True))
    few = performance_profile([[0, 1]], [0.5])
    assert few.value == (0.5,) and isnan(few.low[0]) and "n = 1" in few.reason
    assert isnan(performance_profile([[nan, 1]], [0.5]).value[0])


@given(TABLE, st.lists(SCORE, min_size=1, max_size=8))
def test_profile_falls_with_the_threshold(x, thresholds):
    got = performance_profile(x, sorted(thresholds))
    for column in (got.value, got.low, got.high):
        assert np.all(np.diff(column) <= 1e-12)
        assert 0 <= min(column) and max(column) <= 1
    assert np.all(np.less_equal(got.low, got.value)) and np.all(np.less_equal(got.value, got.high))


def test_probability_by_hand():
    """Unpaired: 1 beats 0; 2 beats 0 and ties with both 2; 3 beats all: 1 + 2 + 3 of nine."""
    a, b = [1, 2, 3], [2, 2, 0]
    assert probability_of_improvement(a, b).value == pytest.approx(6 / 9)
    assert probability_of_improvement(a, b, paired=True).value == 0.5  # lost, tied, won
    tasks = probability_of_improvement([[1, 5], [1, 5]], [[2, 4], [2, 4]])
    assert tasks.value == 0.5  # lost on the first task, won on the second


def test_certain_improvement_has_width():
    got = probability_of_improvement([3, 4, 5], [0, 1, 2], paired=True)
    assert limits(got) == pytest.approx((1, 3 / (3 + 4.302653**2), 1), rel=1e-6)


def test_probability_error_is_the_bootstraps():
    """The closed form against all 27 × 256 ways to draw three lifetimes and four."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(3, 2)) + 0.5, rng.normal(size=(4, 2))
    wins = (a[:, None] > b[None]).mean(axis=-1)
    of_a, of_b = (np.array(list(product(range(n), repeat=n))) for n in (3, 4))
    drawn = wins[of_a[:, None, :, None], of_b[None, :, None, :]].mean(axis=(2, 3))
    want = share_limits(wins.mean(), drawn.std() * sqrt(3 / 2), 3, 0.95)
    got = probability_of_improvement(a, b)
    assert (got.low, got.high) == pytest.approx(want)
    assert got.n == 3 and "3 against 4" in got.method


def test_probability_leaves_out_undefined():
    a, b = [1, nan, 3, 4], [0, 5, nan, 2]
    paired = probability_of_improvement(a, b, paired=True)
    assert (paired.value, paired.n, paired.dropped) == (1, 2, 2)
    assert (probability_of_improvement(a, b).n, probability_of_improvement(a, b).dropped) == (3, 2)
    assert "n = 1" in probability_of_improvement([1], [0, 0]).reason
    assert "n = 0" in probability_of_improvement([nan], [0]).reason


@given(TABLE, st.booleans(), st.data())
def test_swapping_sides_gives_the_complement(a, paired, data):
    b = data.draw(arrays(float, a.shape, elements=SCORE))
    one, two = (
        probability_of_improvement(a, b, paired=paired),
        probability_of_improvement(b, a, paired=paired),
    )
    assert limits(one) == pytest.approx((1 - two.value, 1 - two.high, 1 - two.low), abs=1e-9)


@given(SAMPLE, SCORE, st.randoms(use_true_random=False))
def test_order_and_offset(x, offset, random):
    mixed = x.copy()
    random.shuffle(mixed)
    assert mean_interval(mixed) == mean_interval(x)
    want = [v + offset for v in limits(mean_interval(x))]
    assert limits(mean_interval(x + offset)) == pytest.approx(want, abs=1e-9)


@settings(max_examples=40)
@given(TABLE, SCORE, st.randoms(use_true_random=False))
def test_order_and_offset_of_tables(x, offset, random):
    rows = list(range(len(x)))
    random.shuffle(rows)
    got = bootstrap_interval(x, draws=50)
    assert bootstrap_interval(x[rows], draws=50) == got
    assert performance_profile(x[rows], [0.0]) == performance_profile(x, [0.0])
    moved = bootstrap_interval(x + offset, draws=50)
    assert limits(moved) == pytest.approx([v + offset for v in limits(got)], abs=1e-9)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: mean_interval([1, np.inf]), "beyond"),
        (lambda: mean_interval([[1, 2]]), "average over tasks first"),
        (lambda: mean_interval(3.0), "give lifetimes"),
        (lambda: mean_interval([1, 2], level=95), "between 0 and 1"),
        (lambda: bootstrap_interval([1, 2], draws=1), "draws = 1"),
        (lambda: bootstrap_interval(np.ones((3, 0))), "lifetimes × tasks"),
        (lambda: performance_profile([1, 2], [nan]), "thresholds"),
        (lambda: probability_of_improvement([1, 2], [1], paired=True), "same lifetimes"),
        (lambda: probability_of_improvement([[1, 2]], [[1]]), "same tasks"),
    ],
)
def test_bad_input_is_refused(call, says):
    with pytest.raises(MeasureError, match=says):
        call()


def test_plain_is_strict_json():
    shapes = [mean_interval([1]), performance_profile([[1, 2]], [0]), {3: np.float64(nan)}]
    text = json.dumps(plain([*shapes, np.arange(2)]), allow_nan=False)
    first, _, third, last = json.loads(text)
    assert first["low"] is None and first["value"] == 1 and third == {"3": None} and last == [0, 1]
    assert set(first) == {f.name for f in dataclasses.fields(shapes[0])}


def test_importing_is_cheap():
    code = "import sys, perdure.measure.compare; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_quantiles_of_students_t_are_scipys(level):
    # By hand: one degree of freedom is Cauchy's distribution, tan(π level / 2); two have t² = 2 level² / (1 − level²).
    assert t_quantile(1, level) == pytest.approx(tan(pi * level / 2), rel=1e-12)
    assert t_quantile(2, level) == pytest.approx(sqrt(2 * level**2 / (1 - level**2)), rel=1e-12)
    for df in (3, 4, 9, 58, 299, 300, 301, 7.5):
        assert t_quantile(df, level) == pytest.approx(stdtrit(df, (1 + level) / 2), rel=1e-11)
    assert np.isnan(t_quantiles(np.array([0, 2]), level)).tolist() == [True, False]
