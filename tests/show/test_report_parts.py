"""What the report is built from: thinning, colours, intervals, packing, numbers in words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.measure.stats import mean_interval
from perdure.show import colours
from perdure.show.names import task_labels
from perdure.show.report.numbers import band, packed, rounded
from perdure.show.report.page import clean, embedded
from perdure.show.report.tables import number
from perdure.show.rounding import column_places
from perdure.show.thin import thin


def test_thinning_by_hand():
    at = np.array([0.1, 0.25, 0.3, 0.5, 1.0])
    found = thin(at, np.array([1.0, 3.0, -7.0, 9.0, 2.0]), 4)
    # Bins are closed on the right: (0, ¼] has 1 and 3, (¼, ½] has −7 and 9.
    assert found.mean.tolist()[:2] == [2.0, 1.0]
    assert found.low.tolist()[:2] == [1.0, -7.0] and found.high.tolist()[:2] == [3.0, 9.0]
    assert np.isnan(found.mean[2]) and found.mean[3] == 2.0
    assert found.n.tolist() == [2, 2, 0, 1]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200), st.integers(1, 20), st.integers(0, 5)
)
def test_no_spike_is_lost(values, bins, holes):
    values = np.array(values)
    values[: min(holes, len(values) - 1)] = np.nan
    at = np.arange(1, len(values) + 1) / len(values)
    found = thin(at, values, bins)
    there = values[~np.isnan(values)]
    assert np.nanmin(found.low) == there.min() and np.nanmax(found.high) == there.max()
    assert found.n.sum() == len(there)
    total = np.nansum(found.mean * found.n)
    assert total == pytest.approx(there.sum(), abs=1e-6 * max(1, np.abs(there).max()))


def test_a_spike_among_a_million():
    values = np.zeros(1_000_000)
    values[654_321] = 1e9
    assert thin(np.arange(1, 1_000_001) / 1e6, values, 100).high[65] == 1e9


def _linear(colour):
    c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _contrast(a, b):
    lums = sorted(_linear(x) @ [0.2126, 0.7152, 0.0722] for x in (a, b))
    return (lums[1] + 0.05) / (lums[0] + 0.05)


def _lab(linear):
    """OKLab."""
    m1 = [[0.41222, 0.53633, 0.05145], [0.2119, 0.6807, 0.1074], [0.0883, 0.28172, 0.62998]]
    m2 = [[0.21045, 0.79362, -0.00407], [1.978, -2.42859, 0.45059], [0.0259, 0.78277, -0.80868]]
    return np.array(m2) @ np.cbrt(np.array(m1) @ np.clip(linear, 0, 1))


BLIND = {  # Machado et al. 2009, full severity.
    "protan": [
        [0.15229, 1.05258, -0.20487],
        [0.1145, 0.78628, 0.09922],
        [-0.00388, -0.04812, 1.052],
    ],
    "deutan": [
        [0.36732, 0.86065, -0.22797],
        [0.28009, 0.6725, 0.04741],
        [-0.01182, 0.04294, 0.96888],
    ],
}


def test_colours_stand_out_and_keep_apart():
    for palette, ground in ((colours.LIGHT, "#ffffff"), (colours.DARK, "#161a20")):
        assert len(set(palette)) == len(palette)
        assert all(_contrast(c, ground) >= 2.99 for c in palette)
    for palette, ground in ((colours.AGENT_LIGHT, "#ffffff"), (colours.AGENT_DARK, "#161a20")):
        assert all(_contrast(c, ground) >= 4 for c in palette)
    for palette in (colours.LIGHT[:8], colours.DARK[:8]):
        for matrix in (np.eye(3), *map(np.array, BLIND.values())):
            labs = [_lab(matrix @ _linear(c)) for c in palette]
            apart = [np.linalg.norm(a - b) for i, a in enumerate(labs) for b in labs[:i]]
            # A step of 0.02 is what a person can just tell.
            assert min(apart) > 0.035


def test_a_style_is_a_matter_of_place():
    tasks = [f"t{i}" for i in range(60)]
    styles = colours.task_styles(tasks)
    assert len({(s.light, s.dash) for s in styles.values()}) == 60
    assert styles["t0"].dash == "" and styles["t24"].light == styles["t0"].light
    agents = colours.agent_styles([f"a{i}" for i in range(30)])
    assert len({(s.light, s.mark) for s in agents.values()}) == 30
    assert [s.letter for s in agents.values()][:3] == ["A", "B", "C"]
    assert [colours.letter(i) for i in (25, 26, 27, 701, 702)] == ["Z", "AA", "AB", "ZZ", "AAA"]


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.one_of(st.just(np.nan), st.floats(-1e3, 1e3)), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    )
)
def test_a_band_is_the_interval_of_each_cell(values):
    found = band(np.array(values))
    for j in range(3):
        alone = mean_interval([row[j] for row in values])
        assert found.n[j] == alone.n
        for mine, theirs in (
            (found.mean, alone.value),
            (found.low, alone.low),
            (found.high, alone.high),
        ):
            assert mine[j] == pytest.approx(theirs, abs=1e-6, nan_ok=True)


def test_rounding_and_packing():
    assert rounded({"a": [1.23456, float("nan"), 2.0, 1e20], "b": np.float64(0.1)}) == {
        "a": [1.235, None, 2, 1e20],
        "b": 0.1,
    }
    table = packed(
        [
            {"t": "x", "v": 1.0, "k": 7},
            {"t": "y", "v": np.nan, "k": 7},
            {"t": "x", "v": 3.0, "k": 7},
        ]
    )
    assert table == {
        "n": 3,
        "columns": {
            "t": {"levels": ["x", "y"], "codes": [0, 1, 0]},
            "v": [1, None, 3],
            "k": {"all": 7},
        },
    }
    assert packed([]) == {"n": 0, "columns": {}}
    # True and 1 are equal, and not alike.
    assert packed([{"a": True}, {"a": 1}])["columns"]["a"] == [True, 1]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (-0.0, "0"), (0.3391, "0.34"), (1.0, "1.00"), (-99.44, "−99.4"),
        (1234.5, "1,234"), (0.00443, "0.0044"), (-2.5e-7, "−2.50e-7".replace("-", "−")),
        (1.234e9, "1.23e9"), (float("nan"), "–"), (None, "–"), (float("inf"), "–"),
    ],
)  # fmt: skip
def test_numbers_in_words(value, text):
    assert number(value) == text


def test_decimal_places_follow_the_interval():
    assert column_places(None, [(0.315, 0.363)]) == 3
    assert column_places((-100, 100), [(-20.0, 34.0)]) == 0
    assert column_places(None, [(float("nan"), float("nan"))]) is None
    assert column_places((-1, 1), [(-0.001, 0.002)]) == 2
    assert number(1.0, 3, 2) == "1.00" and number(-0.001, 3, 2) == "0.00"
    # What rounding leaves of nothing is nothing, however many places a column has.
    assert {number(v, 3, places) for v in (0.0, -1.1e-16) for places in (None, 1, 2)} == {"0"}


def test_hidden_signs_are_spelt_out():
    assert clean("a\x1b[31m\u202eb\nc") == "a[U+001B][31m[U+202E]b\nc"
    assert clean({"\x07": ["\ud800", 1, None]}) == {"[U+0007]": ["[U+D800]", 1, None]}
    assert clean("Zoë 日本 \u05d0 🙂") == "Zoë 日本 \u05d0 🙂"


def test_embedded_json_has_no_markup():
    text = embedded({"a": "</script><!--&\u2028\u2029"})
    assert not set("<>&\u2028\u2029") & set(text)


def test_tasks_are_called_by_what_tells_them_apart():
    assert task_labels(["toy/a", "toy/b"]) == {"toy/a": "a", "toy/b": "b"}
    assert task_labels(["toy/a", "gym/b"]) == {"toy/a": "toy/a", "gym/b": "gym/b"}
    variants = ["openloris/pixel@segment1", "openloris/pixel@segment2"]
    assert list(task_labels(variants).values()) == ["segment1", "segment2"]
    mixed = ["openloris/pixel@level1", "openloris/clutter@level1"]
    assert list(task_labels(mixed).values()) == ["pixel@level1", "clutter@level1"]
    assert task_labels(["toy/a@b"]) == {"toy/a@b": "a@b"}
