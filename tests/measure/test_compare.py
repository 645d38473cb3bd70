import json
from math import isnan, nan, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from perdure.errors import MeasureError, UnknownName
from perdure.measure.compare import compare, compare_metrics, difference, effect_size, holm

pytestmark = pytest.mark.filterwarnings("error")

SCORE = st.floats(-100, 100).map(lambda x: round(x, 3))
SAMPLE = arrays(float, st.integers(2, 10), elements=SCORE)


def seeds(*values):
    return dict(enumerate(values))


def only(family):
    (found,) = family.comparisons
    return found


def test_paired_by_hand():
    """Differences 1, 2, 3: mean 2, standard error 1/√3, t = 2√3 with 2 df.

    With 2 df the tail has a closed form: p = 1 − t/√(t² + 2).
    """
    got = difference([3, 5, 9], [2, 3, 6], paired=True)
    t = 2 * sqrt(3)
    half = 4.302653 / sqrt(3)
    assert (got.t, got.df, got.p) == pytest.approx((t, 2, 1 - t / sqrt(t**2 + 2)))
    assert (got.value, got.low, got.high) == pytest.approx((2, 2 - half, 2 + half), rel=1e-6)
    assert (got.n_a, got.n_b, got.paired, got.method) == (3, 3, True, "paired t")


def test_welch_by_hand():
    """Means 2 and 5, variances 1 and 20/3: squared errors 1/3 and 5/3, together 2."""
    got = difference([1, 2, 3], [2, 4, 6, 8])
    assert got.t == pytest.approx(-3 / sqrt(2))
    assert got.df == pytest.approx(2**2 / ((1 / 3) ** 2 / 2 + (5 / 3) ** 2 / 3))
    assert (got.n_a, got.n_b, got.method) == (3, 4, "Welch t")


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e140])
def test_agrees_with_scipy(paired, scale):
    from scipy import stats

    rng = np.random.default_rng(1)
    a, b = rng.normal(0.5, 1, size=9), rng.normal(0, 3, size=9 if paired else 5)
    want = stats.ttest_rel(a, b) if paired else stats.ttest_ind(a, b, equal_var=False)
    low, high = want.confidence_interval(0.9)
    got = difference(a * scale, b * scale, paired=paired, level=0.9)
    assert (got.t, got.df, got.p) == pytest.approx((want.statistic, want.df, want.pvalue))
    assert (got.low / scale, got.high / scale) == pytest.approx((low, high))


def test_one_side_may_be_still():
    got = difference([1.0, 2.0, 3.0], [0.1, 0.1, 0.1])
    assert got.df == 2 and got.t == pytest.approx(1.9 * sqrt(3)) and not got.reason


def test_difference_of_few():
    assert "lifetimes of both" in difference([], [1, 2]).reason
    one = difference([3], [1, 2, 3])
    assert one.value == 1 and isnan(one.low) and isnan(one.p) and "at least 2" in one.reason
    pairs = difference([1, nan, 3, 4], [0, 1, nan, 2], paired=True)
    assert (pairs.value, pairs.n_a, pairs.dropped) == (1.5, 2, 2)


def test_nothing_varies():
    same = difference([0.1 + 0.2, 0.5], [0.3, 0.5], paired=True)
    assert (same.value, same.low, same.high) == (0, 0, 0) and isnan(same.p)
    assert "identical" in same.reason
    apart = difference([0.3] * 3, [0.2] * 4)
    assert apart.value == apart.low == pytest.approx(0.1) and isnan(apart.p)
    assert "differ" in apart.reason and "nothing varies" in apart.reason
    assert "nothing varies" in effect_size([0.3] * 3, [0.2] * 4).reason
    assert difference([0, 0], [0, 0]).value == 0


def test_effect_size_by_hand():
    """Two standard deviations apart; Hedges' factor is √(2/π) with 4 df and 1/√π with 2."""
    unpaired = effect_size([1, 2, 3], [3, 4, 5])
    assert unpaired.value == pytest.approx(-2 * sqrt(2 / pi)) and unpaired.name == "Hedges' g"
    paired = effect_size([3, 5, 9], [2, 3, 6], paired=True)
    assert paired.value == pytest.approx(2 / sqrt(pi)) and paired.name.startswith("d_z")
    assert isnan(effect_size([1, 2], [2, 5], paired=True).value)
    assert "2 pairs" in effect_size([1, 2], [2, 5], paired=True).reason
    assert "needs more" in effect_size([1, 2, 3, 4], []).reason


def test_effect_size_is_unbiased():
    """Without Hedges' factor the mean would be 1.15."""
    rng = np.random.default_rng(0)
    got = [effect_size(rng.normal(1, 1, 4), rng.normal(0, 1, 4)).value for _ in range(4000)]
    assert np.mean(got) == pytest.approx(1, abs=4 * np.std(got) / sqrt(4000))


def test_holm_by_hand():
    """0.005·4, 0.01·3, 0.03·2; then 0.04·1 is raised to what came before it."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.01, nan, 0.04]) == pytest.approx((0.02, nan, 0.04), nan_ok=True)
    assert holm([0.6, 0.7]) == (1, 1) and holm([]) == ()
    with pytest.raises(MeasureError, match="between 0 and 1"):
        holm([1.2])


@given(st.lists(st.one_of(st.floats(0, 1), st.just(nan)), max_size=12))
def test_holm_raises_and_keeps_the_order(p):
    got = holm(p)
    both = sorted((raw, new) for raw, new in zip(p, got, strict=True) if not isnan(raw))
    assert all(raw <= new <= 1 for raw, new in both)
    assert [new for _, new in both] == sorted(new for _, new in both)
    assert [isnan(x) for x in p] == [isnan(x) for x in got]


@given(SAMPLE, SCORE, st.booleans(), st.randoms(use_true_random=False), st.data())
def test_swap_order_and_offset(a, offset, paired, random, data):
    b = data.draw(arrays(float, len(a), elements=SCORE))
    one, two = difference(a, b, paired=paired), difference(b, a, paired=paired)
    close = {"abs": 1e-7, "nan_ok": True}
    assert (one.value, one.low) == pytest.approx((-two.value, -two.high), **close)
    assert one.p == pytest.approx(two.p, **close)
    there, back = effect_size(a, b, paired=paired), effect_size(b, a, paired=paired)
    assert there.value == pytest.approx(-back.value, rel=1e-6, **close)
    rows = list(range(len(a)))
    random.shuffle(rows)
    assert difference(a[rows], b[rows], paired=paired).p == pytest.approx(one.p, **close)
    moved = difference(a + offset, b, paired=paired)
    assert moved.value == pytest.approx(one.value + offset, abs=1e-9)


def test_pairs_where_all_seeds_are_shared():
    a = {3: 1.0, 1: 2.0, 2: 4.0}
    family = compare({"a": a, "b": {1: 1.0, 2: 2.0, 3: 0.5}})
    got = only(family)
    assert got.difference.paired and got.difference.value == pytest.approx(3.5 / 3)
    want = difference([1.0, 2.0, 4.0], [0.5, 1.0, 2.0], paired=True)
    assert got.difference.p == got.p_holm == pytest.approx(want.p)
    assert family.tests == 1 and [s.agent for s in family.summaries] == ["a", "b"]
    assert not only(compare({"a": a, "b": {1: 1.0, 2: 2.0, 4: 0.5}})).difference.paired
    holes = only(compare({"a": a, "b": {1: 1.0, 2: nan, 3: nan}}))  # one pair is none
    assert not holes.difference.paired and holes.difference.dropped == 2


def test_verdict_of_a_difference():
    b = seeds(0.2, 0.4, 0.3, 0.5, 0.1)
    a = seeds(0.31, 0.49, 0.40, 0.61, 0.20)  # higher by .11 .09 .1 .11 .1: mean .102, sd .0083666
    got = only(compare({"a": a, "b": b}))
    assert got.verdict == "a is higher than b by 0.102 [0.0916, 0.112], n = 5 pairs, Holm p < 0.001"
    assert only(compare({"b": b, "a": a})).verdict == got.verdict


def test_the_effect_is_told_in_the_direction_of_the_verdict():
    low, high = {0: 1.0, 1: 1.2, 2: 1.1}, {0: 2.0, 1: 2.3, 2: 2.0}
    for scores in ({"x": low, "y": high}, {"y": high, "x": low}):
        (found,) = compare(scores).comparisons
        assert found.verdict.startswith("y is higher than x") and found.effect_as_said > 0
        assert abs(found.effect_as_said) == abs(found.effect.value)


def test_verdict_of_no_difference():
    got = only(compare({"a": seeds(1, 2, 3), "b": {7: 1, 8: 2, 9: 6}}))
    assert got.verdict.startswith("no difference can be told: b − a = 1 [")
    assert got.verdict.endswith(f"n = 3 and 3 lifetimes, Holm p = {got.p_holm:.3g}")


def test_verdict_when_nothing_varies():
    got = only(compare({"a": seeds(0.5, 0.7), "b": seeds(0.5, 0.7)}))
    assert got.verdict == "a and b are identical in every lifetime, n = 2 pairs"
    got = only(compare({"a": seeds(0.5, 0.5, 0.5), "b": seeds(0.75, 0.75, 0.75)}))
    assert got.verdict == (
        "b is higher than a by 0.25 in every pair, n = 3 pairs; nothing varies, so p is undefined"
    )
    assert isnan(got.p_holm)


def test_too_few_to_tell():
    """Fewer than three pairs, or three on a side: no p, no verdict, not counted; three suffice."""
    family = compare({"a": seeds(1, 2), "b": seeds(2, 5)})
    got = only(family)
    assert got.verdict == "n = 2 pairs are too few to tell: at least 3 pairs are needed"
    assert isnan(got.difference.p) and not isnan(got.difference.low) and family.tests == 0
    sides = only(compare({"a": seeds(1, 2, 3, 4), "b": {8: 2, 9: 5}}))
    assert sides.verdict.startswith("n = 4 and 2 lifetimes are too few to tell")
    one = only(compare({"a": seeds(1), "b": seeds(1)}))
    assert one.verdict.startswith("n = 1 and 1 lifetimes are too few to tell")
    none = only(compare({"a": seeds(1, 2, 3), "b": {}}))
    assert none.verdict.startswith("n = 3 and 0 lifetimes are too few")
    assert compare({"a": seeds(1, 2, 3), "b": seeds(2, 5, 4)}).tests == 1
    holes = only(compare({"a": seeds(1, 2, nan), "b": seeds(2, 5, 4)}))
    assert holes.verdict.startswith("n = 2 pairs (1 undefined left out) are too few to tell")


def random_scores(rng, *agents):
    return {agent: seeds(*rng.normal(shift, 1, size=6)) for agent, shift in agents}


def test_the_family_is_all_metrics_and_pairs():
    rng = np.random.default_rng(5)
    agents = (("a", 0), ("b", 1), ("c", 3))
    scores = {"l2m.bt": random_scores(rng, *agents), "l2m.ft": random_scores(rng, *agents)}
    family = compare_metrics(scores)
    assert [(c.metric, c.a, c.b) for c in family.comparisons] == [
        (m, *pair) for m in scores for pair in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    raw = [c.difference.p for c in family.comparisons]
    assert family.tests == 6 and tuple(c.p_holm for c in family.comparisons) == holm(raw)
    for c in family.comparisons:
        assert ("higher" in c.verdict) == (c.p_holm <= 0.05)
        assert ("after correction for 6 tests" in c.verdict) == (c.difference.p <= 0.05 < c.p_holm)
    assert any("after correction" in c.verdict for c in family.comparisons)


def test_against_a_baseline():
    scores = random_scores(np.random.default_rng(1), ("a", 0), ("b", 1), ("c", 2))
    family = compare({**scores}, metric="m", baseline="b")
    assert [(c.metric, c.a, c.b) for c in family.comparisons] == [("m", "a", "b"), ("m", "c", "b")]
    assert family.tests == 2 and family.baseline == "b"
    with pytest.raises(UnknownName, match="did you mean 'b'"):
        compare({**scores}, baseline="bb")


def test_an_agent_without_a_metric_is_said():
    scores = random_scores(np.random.default_rng(1), ("a", 0), ("b", 1))
    family = compare_metrics({"x": scores, "y": {"a": scores["a"]}})
    missing = family.summaries[-1]
    assert (missing.metric, missing.agent, missing.estimate.n) == ("y", "b", 0)
    assert "too few to tell" in family.comparisons[-1].verdict and family.tests == 1


def test_infinite_score_is_named():
    with pytest.raises(MeasureError, match="score of a under seed 1 is inf"):
        compare({"a": seeds(1, np.inf), "b": seeds(1, 2)})
    with pytest.raises(MeasureError, match="between 0 and 1"):
        compare({}, level=1.0)


def test_as_dict_is_strict_json():
    family = compare({"a": seeds(1, 2), "b": seeds(1, 3), "c": {}})
    back = json.loads(json.dumps(family.as_dict(), allow_nan=False))
    assert back["level"] == 0.95 and back["baseline"] is None and len(back["comparisons"]) == 3
    assert back["comparisons"][0]["difference"]["p"] is None
    assert back["comparisons"][0]["difference"]["value"] == -0.5
    assert back["summaries"][2]["estimate"]["value"] is None


def test_numbers_read_well():
    got = only(compare({"a": seeds(2001, 2102, 2203.5), "b": seeds(1000, 1090, 1205)}))
    assert "by 1004 [" in got.verdict and "e+" not in got.verdict
