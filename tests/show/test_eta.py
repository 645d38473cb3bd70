"""The time that a run takes yet, worked out by hand."""

import pytest

from perdure.show.eta import JobTime, remaining, share_done, time_left


def test_agents_have_lengths_of_their_own():
    jobs = [
        JobTime("quick/0", 1.0, spent=10.0, over=True),
        JobTime("slow/0", 1.0, spent=40.0, left=60.0, running=True),
        JobTime("quick/1", 1.0),
        JobTime("slow/1", 1.0),
    ]
    assert remaining(jobs) == {"quick/0": 0.0, "slow/0": 60.0, "quick/1": 10.0, "slow/1": 100.0}
    # One worker: one after the other. By planned lengths it would be 50 / 1.4 · 2.6 s, a half of it.
    assert time_left(jobs) == 170.0
    assert share_done(jobs) == pytest.approx(50 / 220)


def test_the_rest_is_dealt_out_to_those_at_work():
    running = [JobTime(f"a/{k}", 1.0, spent=5.0, left=5.0 + k, running=True) for k in range(2)]
    jobs = [*running, *(JobTime(f"a/{k}", 1.0) for k in range(2, 5))]
    # Each takes 10.5 s; free after 5 and 6 s: 15.5, 16.5, and 26 s.
    assert time_left(jobs) == pytest.approx(26.0)


def test_finished_lifetimes_know_better_than_a_first_guess():
    first = JobTime("joint/0", 1.0, spent=100.0, over=True)
    begun = JobTime("joint/1", 1.0, spent=10.0, left=15.0, running=True)
    assert time_left([first, begun]) == 90.0
    late = JobTime("joint/1", 1.0, spent=99.0, left=15.0, running=True)
    assert time_left([first, late]) == 15.0, "it takes longer than the first, and says so"


def test_experts_are_not_like_lifetimes_and_a_stranger_is_like_the_others():
    jobs = [
        JobTime("a/0", 1.0, spent=100.0, over=True),
        JobTime("a/experts/toy--x/0", 0.25, spent=20.0, left=0.0, running=True),
        JobTime("b/0", 1.0),
        JobTime("b/experts/toy--x/0", 0.25),
    ]
    left = remaining(jobs)
    # 120 s for 1.25 lifetimes.
    assert (left["b/0"], left["b/experts/toy--x/0"]) == pytest.approx((96.0, 24.0))


def test_nothing_is_said_where_nothing_is_known_or_nobody_works():
    assert time_left([JobTime("a/0", 1.0, running=True), JobTime("a/1", 1.0)]) is None
    assert time_left([JobTime("a/0", 1.0, spent=9.0, over=True), JobTime("a/1", 1.0)]) is None
    assert share_done([JobTime("a/0", 1.0)]) is None
