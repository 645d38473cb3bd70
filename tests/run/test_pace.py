"""How long the rest of a lifetime takes, worked out by hand."""

import pytest

from perdure.run.pace import MOST, BlockWork, expected, time_left


def test_each_kind_of_block_has_its_own_pace():
    blocks = [
        BlockWork("eval", 100, 100),
        BlockWork("learn", 1000, 500),
        BlockWork("eval", 100, 0),
        BlockWork("learn", 1000, 0),
        BlockWork("eval", 100, 0),
    ]
    # An evaluation took 50 s; half a lesson took 10 s, 0.02 s a step: 10 + 20 s of lessons are left.
    assert time_left(blocks, {0: 50.0, 1: 10.0}) == pytest.approx(10 + 20 + 2 * 50)


def test_a_lesson_that_has_just_begun_goes_by_those_before():
    blocks = [BlockWork("learn", 100, 100), BlockWork("learn", 100, 1)]
    # One step that took 9 s is no pace: 99 more take a second each.
    assert time_left(blocks, {0: 100.0, 1: 9.0}) == pytest.approx(99.0)


def test_lessons_that_take_longer_each_time_go_on_doing_so():
    blocks = [BlockWork("learn", 10, 10)] * 2 + [BlockWork("learn", 10, 0)] * 2
    # 1 s a step, then 2 s: 3 and 4 s are to be expected.
    assert time_left(blocks, {0: 10.0, 1: 20.0}) == pytest.approx(30 + 40)
    paces = {0: 1.0, 1: 3.0}
    assert expected(paces, [*blocks, *blocks], 7) == MOST * 3.0, "but not for ever"
    assert expected({0: 2.0, 1: 1.0}, blocks, 2) == pytest.approx(1.5), "less is a matter of luck"


def test_what_an_earlier_session_did_has_no_pace():
    blocks = [BlockWork("learn", 10, 10), BlockWork("learn", 10, 5), BlockWork("learn", 10, 0)]
    assert time_left(blocks, {1: 5.0}) == pytest.approx(5 + 10)


def test_nothing_is_known_before_anything_is_done():
    assert time_left([BlockWork("learn", 10, 0)], {}) is None
    assert time_left([BlockWork("learn", 10, 0)], {0: 3.0}) is None
    assert time_left([BlockWork("learn", 100, 1), BlockWork("eval", 100, 0)], {0: 1.0}) == 199.0
