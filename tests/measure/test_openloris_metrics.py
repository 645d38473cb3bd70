import pytest
from histories import in_turn, life

from perdure.measure import openloris

TABLE = [[0.0, 0.0, 0.0], [1.0, 0.5, 0.25], [0.75, 1.0, 0.5], [0.25, 0.5, 0.75]]

# Accuracy, BWT, FWT and Over-all read off the spider charts on the OpenLORIS-Object site (9 tasks
# a factor, lines of the paper's figure 5); a reading is good to about 0.005.
PUBLISHED = {
    "illumination LwF": (0.650, 0.593, 0.347, 0.514),
    "illumination SI": (0.609, 0.524, 0.361, 0.498),
    "illumination DGR": (0.341, 0.294, 0.206, 0.280),
    "occlusion EWC": (0.873, 0.851, 0.428, 0.676),
    "occlusion naive": (0.768, 0.714, 0.478, 0.643),
    "pixel DGR+distillation": (0.575, 0.511, 0.365, 0.481),
    "clutter DGR+feedback": (0.757, 0.710, 0.327, 0.565),
}


def test_by_hand():
    accuracy, bwt, fwt, overall = (m(life(in_turn("abc", TABLE))) for m in openloris.metrics)
    assert accuracy.value == pytest.approx((1.0 + 0.75 + 1.0 + 0.25 + 0.5 + 0.75) / 6)
    assert accuracy.per_task == pytest.approx({"a": 2 / 3, "b": 0.75, "c": 0.75})
    assert bwt.value == pytest.approx((0.75 + 0.25 + 0.5) / 3)
    assert bwt.per_task == {"a": 0.5, "b": 0.5}
    assert fwt.value == pytest.approx((0.5 + 0.25 + 0.5) / 3)
    assert fwt.per_task == {"b": 0.5, "c": 0.375}
    assert overall.value == pytest.approx(5.5 / 9)
    assert overall.per_task == pytest.approx({"a": 2 / 3, "b": 2 / 3, "c": 0.5})


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_numbers_satisfy_the_definitions(name):
    """A matrix with the published BWT and FWT as triangles, and the diagonal that the published
    Accuracy then asks for, has the published Over-all."""
    accuracy, bwt, fwt, overall = PUBLISHED[name]
    n = 9
    diagonal = ((n + 1) * accuracy - (n - 1) * bwt) / 2
    assert 0.4 < diagonal < 1.0
    table = [[0.0] * n]
    table += [[bwt if i > j else fwt if i < j else diagonal for j in range(n)] for i in range(n)]
    found = [m(life(in_turn("abcdefghi", table))).value for m in openloris.metrics]
    assert found[:3] == pytest.approx([accuracy, bwt, fwt])
    assert found[3] == pytest.approx(overall, abs=0.005)


def test_every_cell_counts():
    table = [row.copy() for row in TABLE]
    table[2][0] = None
    accuracy, bwt, fwt, overall = (m(life(in_turn("abc", table))) for m in openloris.metrics)
    for score in (accuracy, bwt, overall):
        assert "a was not evaluated after stage 2 (b)" in score.reason
    assert fwt.value == pytest.approx(1.25 / 3)


def test_undefined_with_a_reason():
    one = life(in_turn("a", [[0.0], [0.5]]))
    accuracy, bwt, fwt, overall = (m(one) for m in openloris.metrics)
    assert accuracy.value == overall.value == 0.5
    assert "nothing came after it" in bwt.reason and "nothing came before it" in fwt.reason
    again = [*in_turn("ab", [row[:2] for row in TABLE[:3]]), (9, "a", True, 1.0)]
    for m in openloris.metrics:
        assert "a is learned in stages 1 and 3" in m(life(again)).reason
