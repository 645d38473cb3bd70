"""The L2M paper preset against numbers worked by hand.

Most examples fix the range of every task to 0 … 100, so that a performance v is measured as v + 1,
and keep blocks under 15 experiences, which are too short to be smoothed.
"""

from dataclasses import replace
from math import isnan

import numpy as np
import pyarrow as pa
import pytest

from perdure.errors import MeasureError, UnknownName
from perdure.measure.l2m import metrics, paper, reference
from perdure.measure.l2m.recovery import MANY, robust_slope
from perdure.store.history import History

pytestmark = pytest.mark.filterwarnings("error")


def life(*blocks, experts=None, exp=None):
    """A history from blocks such as "L a 10 20 30": learning of task a with three experiences.

    E evaluates, A is an adapt block. Then s: asleep, p: before deployment. A value that ends in !
    is incomplete. A block of several tasks is a list; "L a+b 1 2 3 4" interleaves a and b.
    """
    rows = []
    for number, block in enumerate(blocks):
        for part in [block] if isinstance(block, str) else block:
            kind, tasks, *values = part.split()
            tasks = tasks.split("+")
            for i, value in enumerate(values):
                rows.append((number, tasks[i % len(tasks)], kind, value))
    names = tuple(dict.fromkeys(r[1] for r in rows))
    kinds = [r[2] for r in rows]
    numbers = np.array([float(r[3].rstrip("!")) for r in rows])
    return History(
        name="life",
        tasks=names,
        exp=np.array(exp if exp is not None else range(len(rows)), np.int64),
        block=np.array([r[0] for r in rows], np.int32),
        task=np.array([names.index(r[1]) for r in rows], np.int32),
        learning=np.array([k[0] in "LA" for k in kinds], bool),
        adapt=np.array([k[0] == "A" for k in kinds], bool),
        sleep=np.array(["s" in k for k in kinds], bool),
        before=np.array(["p" in k for k in kinds], bool),
        complete=np.array([not r[3].endswith("!") for r in rows], bool),
        steps=np.ones(len(rows), np.int64),
        columns={"return": pa.chunked_array([numbers])},
        measure="return",
        experts={t: tuple(runs) for t, runs in (experts or {}).items()},
    )


def fixed(history, **options):
    """Scores with every task's range at 0 … 100: v is measured as v + 1."""
    ranges = dict.fromkeys(history.tasks, (0.0, 100.0))
    return paper.scores(history, paper.PaperOptions(ranges=ranges, **options))


def moments(score):
    return [tuple(m) for m in score.over_time]


# Performance maintenance


def test_maintenance_is_negative_for_a_task_that_is_forgotten():
    found = fixed(
        life("E a 10", "L a 20 60", "E a 60", "L b 5 50", ["E a 40", "E b 50"], "L b 70",
             ["E a 30", "E b 70"])
    )  # fmt: skip
    # a: the evaluation after its learning is 60; then 40 − 60 = −20 and 30 − 60 = −30.
    # b: learned right before each of its evaluations, so it has no maintenance value.
    assert found["pm"].value == pytest.approx(-25)
    assert moments(found["pm"]) == [(4, "a", pytest.approx(-20)), (6, "a", pytest.approx(-30))]
    assert isnan(found["pm"].per_task["b"]) and "without b: not evaluated again" in str(
        found["pm"].notes
    )


def test_maintenance_is_positive_for_a_task_that_improves():
    found = fixed(life("L a 20 60", "E a 40", "L b 5 50", "E a 55"))
    assert found["pm"].value == pytest.approx(15)  # 55 − 40
    assert found["pm_tlp"].value == pytest.approx(-5)  # 55 − 60, the last tenth of 2 experiences


def test_maintenance_is_the_mean_over_the_lifetime_not_over_tasks():
    found = fixed(
        life("L a 60", "L c 20", ["E a 60", "E c 20"], "L b 5", ["E a 40", "E c 30"], "L b 5", "E a 30")
    )["pm"]  # fmt: skip
    # a: −20, −30; c: +10. Over the lifetime −40/3; the mean of task means would be −7.5.
    assert found.value == pytest.approx(-40 / 3)
    assert found.per_task == {"a": pytest.approx(-25), "c": pytest.approx(10)} | {
        "b": pytest.approx(float("nan"), nan_ok=True)
    }
    # Between the learning of a and its first evaluation c was learned: two values lean on that.
    assert "2 of 3 maintenance values are against an evaluation before which" in found.notes[0]


def test_relearning_renews_the_mark_of_maintenance():
    found = fixed(life("L a 1", "E a 60", "L b 1", "E a 50", "L a 1", "E a 80", "L b 1", "E a 79"))
    # 50 − 60 = −10, then the new mark 80: 79 − 80 = −1.
    assert [v for _, _, v in moments(found["pm"])] == [pytest.approx(-10), pytest.approx(-1)]
    assert found["pm"].value == pytest.approx(-5.5)


def test_maintenance_of_learning_that_was_not_measured():
    """Learning from demonstrations has no returns; it still says when a task was learned."""
    found = fixed(life("L a nan nan", "E a 60", "L b nan", ["E a 40", "E b 10"]))
    assert found["pm"].value == pytest.approx(-20)
    assert isnan(found["pm_tlp"].value) and "a: its learning rows hold no return" in (
        found["pm_tlp"].reason
    )
    assert isnan(found["rp"].value) and isnan(found["tlp"].value)
    # 61 → 41 while b was learned.
    assert found["bt"].pairs == {("b", "a"): pytest.approx(-20 / 102)}


# Transfer


def test_forward_transfer():
    found = fixed(life("E b 20", "L a 50", "E b 30", "L b 60", "E b 60"))
    # 21 → 31 while a was learned: 10/52 and 31/21. What follows is b's own learning.
    assert found["ft"].pairs == {("a", "b"): pytest.approx(10 / 52)}
    assert found["ft"].value == pytest.approx(10 / 52)
    assert found["ft"].per_task == {"b": pytest.approx(10 / 52)}
    assert found["ft_ratio"].pairs == {("a", "b"): pytest.approx(31 / 21)}
    assert isnan(found["bt"].value) and "exactly one other task" in found["bt"].reason


def test_forward_transfer_is_negative_where_learning_harms_what_comes():
    found = fixed(life("E b 30", "L a 50", "E b 20", "L b 60"))
    assert found["ft"].value == pytest.approx(-10 / 52)
    assert found["ft_ratio"].value == pytest.approx(21 / 31)


def test_backward_transfer_of_both_signs():
    found = fixed(
        life("L a 60", ["E a 60", "E c 1"], "L b 50", ["E a 40", "E b 50"], "L a 70", "L c 20",
             "E b 80", "L a 1", "E b 90")
    )  # fmt: skip
    # b → a: 61 → 41, −20/102. a → b: 81 → 91, 10/172; 51 → 81 is confounded by a and c.
    assert found["bt"].pairs == {
        ("b", "a"): pytest.approx(-20 / 102),
        ("a", "b"): pytest.approx(10 / 172),
    }
    assert found["bt"].value == pytest.approx((-20 / 102 + 10 / 172) / 2)
    assert found["bt_ratio"].value == pytest.approx((41 / 61 + 91 / 81) / 2)
    assert "confounded by the learning of several tasks: b after a, c" in found["bt"].notes[0]


def test_a_change_beside_ones_own_learning_is_confounded():
    found = fixed(life("E b 10", "L a 1", "L b 90", "E b 90"))
    assert isnan(found["ft"].value) and isnan(found["bt"].value)
    assert "1 changes left out, confounded" in found["ft"].notes[0]


def test_tasks_learned_side_by_side_confound():
    found = fixed(life("E c 10", "L a+b 1 2 3 4", "E c 90", "L c 5"))
    assert isnan(found["ft"].value) and "c after a, b" in found["ft"].notes[0]


def test_a_lesson_without_values_confounds_too():
    found = fixed(life("E c 10", "L a 5", "L b nan", "E c 90", "L c 5"))
    assert isnan(found["ft"].value) and "c after a, b" in found["ft"].notes[0]


def test_of_a_pair_the_first_occurrence_counts():
    blocks = ["E b 20", "L a 1", "E b 30", "L a 1", "E b 90", "L b 1", "E b 50", "L a 1", "E b 40",
              "L a 1", "E b 60"]  # fmt: skip
    found = fixed(life(*blocks))
    # Forward 21 → 31 (10/52), then 31 → 91, which is in over_time only.
    assert found["ft"].pairs == {("a", "b"): pytest.approx(10 / 52)}
    assert [v for _, _, v in moments(found["ft"])] == [
        pytest.approx(10 / 52),
        pytest.approx(60 / 122),
    ]
    # Backward 51 → 41 (−10/92), then 41 → 61 (20/102), which is in over_time only.
    assert found["bt"].pairs == {("a", "b"): pytest.approx(-10 / 92)}
    assert [v for _, _, v in moments(found["bt"])] == [
        pytest.approx(-10 / 92),
        pytest.approx(20 / 102),
    ]


def test_forward_transfer_needs_no_later_learning_of_its_target():
    found = fixed(life(["E b 20", "E z 5"], "L a 1", ["E b 30", "E z 50"], "L b 1"))
    # To b 21 → 31 (10/52), to z 6 → 51 (45/57).
    assert found["ft"].pairs == {
        ("a", "b"): pytest.approx(10 / 52),
        ("a", "z"): pytest.approx(45 / 57),
    }
    assert "transfer to z counts, which this lifetime never learns" in found["ft"].notes[0]


def test_unnormalised_performance_must_be_positive_for_transfer():
    history = life(
        ["E b -5", "E c 0", "E d 1"], "L a 1", ["E b 4", "E c 0", "E d 3"], "L b 1", "L c 1", "L d 1"
    )  # fmt: skip
    found = paper.scores(history, paper.PaperOptions(clamp=False, normalise=False))
    assert found["ft"].pairs == {("a", "d"): pytest.approx(0.5)}
    assert found["ft_ratio"].pairs == {("a", "d"): pytest.approx(3)}
    assert "2 changes have no contrast" in found["ft"].notes[0]


# Against single-task experts


def test_relative_performance_of_a_better_and_a_worse_learner():
    expert = life("L a 0 20 40 60")
    better = fixed(life("L a 10 30", "L a 50 60", experts={"a": [expert]}))["rp"]
    worse = fixed(life("L a 0 10", "L a 20 30", experts={"a": [expert]}))["rp"]
    # Areas of v + 1: expert 124, better 154 (its two blocks are one curve), worse 64.
    assert better.value == pytest.approx(154 / 124) and better.value > 1
    assert worse.value == pytest.approx(64 / 124) and worse.value < 1


def test_relative_performance_over_equally_many_experiences_and_several_experts():
    runs = [life("L a 0 20"), life("L a 40 40 40 40")]
    found = fixed(life("L a 10 30 50", "L b 9", experts={"a": runs}))["rp"]
    # Against the first over 2: 42/22. Against the second over 3: 93/123.
    assert found.value == pytest.approx((42 / 22 + 93 / 123) / 2)
    assert found.notes == (
        "a: compared over the expert's fewer experiences",
        "without b: no single-task expert",
    )


def test_sample_efficiency_above_and_below_one():
    expert = life("L a 0 20 40 60")  # saturates at 61 after 4
    quick = fixed(life("L a 0 60 60 60", experts={"a": [expert]}))
    assert (quick["sat"].value, quick["ets"].value) == (pytest.approx(61), 2)
    assert quick["se"].value == pytest.approx((61 / 61) * (4 / 2)) and quick["se"].notes == ()
    slow = fixed(life("L a 0 0 0 0", "L a 10 10 10 30", experts={"a": [expert]}))
    assert (slow["sat"].value, slow["ets"].value) == (pytest.approx(31), 8)
    assert slow["se"].value == pytest.approx((31 / 61) * (4 / 8))


def test_saturated_at_the_first_experience_is_one_experience():
    """The reference counts from zero and has no value here."""
    expert = life("L a 0 20 40 60")
    found = fixed(life("L a 60 60 60", experts={"a": [expert]}))
    assert found["ets"].value == 1 and found["se"].value == pytest.approx(4)


def test_doubtful_sample_efficiency_is_kept_and_said():
    """The reference counts zero in both cases."""
    expert = life("L a 0 50 100 100")
    falls = fixed(life("L a 50 40 30", experts={"a": [expert]}))["se"]
    assert falls.value == pytest.approx((51 / 101) * (3 / 1))
    assert falls.notes == (
        "a: the learning curve falls, so its maximum is not what learning led to",
    )
    weak = fixed(life("L a 0 5 10", experts={"a": [expert]}))["se"]
    assert weak.value == pytest.approx((11 / 101) * (3 / 3))
    assert weak.notes == ("a: saturates under 20% of an expert",)


def test_the_curve_falls_by_its_own_count_not_by_the_running_number():
    """A task that is left for long and resumed lower: 0 100 100 100 | 40 rises by its own count
    (line through 0 … 4: slope (−2·0 − 100 + 100 + 2·40)/10 = 8), and falls by running numbers
    0 1 2 3 1000."""
    blocks = ["L a 0 100 100 100", "L b 1", "L a 40"]
    history = life(*blocks, experts={"a": [life("L a 0 100")]}, exp=[0, 1, 2, 3, 500, 1000])
    assert np.polyfit([0, 1, 2, 3, 1000], [0, 100, 100, 100, 40], 1)[0] < 0
    assert "falls" not in str(fixed(history)["se"].notes)


def test_both_at_the_clamping_limit_is_said():
    history = life("L a 0 10 20 150", experts={"a": [life("L a 0 120 150")]})
    found = fixed(history)["se"]
    assert found.value == pytest.approx((101 / 101) * (2 / 4))
    assert "both saturate at the clamping limit" in found.notes[0]
    # Unclamped both reach 151.
    assert fixed(history, clamp=False)["se"].notes == ()


def test_experts_that_cannot_be_compared_with_are_named():
    other = replace(life("L a 1 2"), columns={"success": pa.chunked_array([[0.0, 1.0]])})
    found = fixed(life("L a 1", "L b 2", experts={"a": [other], "b": [life("L a 1")]}))
    assert isnan(found["rp"].value) and isnan(found["se"].value)
    assert found["rp"].reason == "a, b: its expert was not measured on it"
    assert fixed(life("L a 1"))["rp"].reason == "a: no single-task expert"


def test_unnormalised_areas_must_be_positive():
    history = life("L a -1 -2", experts={"a": [life("L a -3 -4")]})
    found = paper.scores(history, paper.PaperOptions(clamp=False, normalise=False))
    assert isnan(found["rp"].value) and "normalise it" in found["rp"].reason
    assert isnan(found["se"].value) and "normalise it" in found["se"].reason


# Recovery


def test_recovery_time_droop_and_rate():
    found = fixed(life("L a 20 50", "L b 1", "L a 10 20 50 60", "L b 9", "L a 70"))
    # a: back at 50 with the third experience, droop 50 − 10 = 40, rate 40/3; then its former end
    # is 60, and 70 is above it from the start: time 0, no droop, no rate.
    # b: 1, then 9: time 0.
    assert moments(found["rt"]) == [(2, "a", 3), (3, "b", 0), (4, "a", 0)]
    assert found["rt"].per_task == {"a": 1.5, "b": 0} and found["rt"].value == 0.75
    assert moments(found["droop"]) == [(2, "a", pytest.approx(40)), (3, "b", 0), (4, "a", 0)]
    assert found["droop"].value == pytest.approx(10)  # (20 + 0) / 2
    assert moments(found["rr"]) == [(2, "a", pytest.approx(40 / 3))]
    assert found["rr"].value == pytest.approx(40 / 3)
    assert "without b: performance never drooped" in found["rr"].notes


def test_performance_recovery():
    # Times 3, 2, 0 in the task's blocks 1, 2, 3: slopes −1, −2 and −3/2, whose median is −3/2.
    found = fixed(life("L a 50", "L a 10 20 50", "L a 10 50", "L a 50"))
    assert found["pr"].value == pytest.approx(1.5)
    worse = fixed(life("L a 50", "L a 50", "L a 10 50", "L a 10 20 50"))
    assert worse["pr"].value == pytest.approx(-1.5)
    # From the start, then with the fourth experience: 0 and 4.
    assert fixed(life("L a 50", "L a 60", "L a 10 20 30 60"))["pr"].value == pytest.approx(-4)


def test_the_slope_is_against_the_index_of_the_learning_block():
    # Times 3 and 0 in blocks 1 and 3 of the task; block 2 was not measured. Slope −3/2, where the
    # ordinals of the times would give −3.
    found = fixed(life("L a 50", "L a 10 20 50", "L a nan", "L a 50"))
    assert found["pr"].value == pytest.approx(1.5)


def test_a_recovery_that_never_came_is_a_lower_bound():
    found = fixed(life("L a 50", "L a 10 20", "L a 20"))
    # Never back at 50 in 2 experiences: 3. Droop 40 over the whole block; rate at most 40/3.
    # Then from the start at its former end of 20: 0.
    assert found["rt"].per_task == {"a": 1.5} and moments(found["rt"])[0] == (1, "a", 3)
    assert moments(found["droop"])[0] == (1, "a", pytest.approx(40))
    assert found["rr"].value == pytest.approx(40 / 3)
    assert found["rt"].notes == (
        "1 of 2 recovery times are lower bounds: performance was not back in the block",
    )
    assert "1 of 1 recovery rates are upper bounds" in found["rr"].notes[0]


def test_recovery_needs_blocks():
    found = fixed(life("L a 1 2", "L b 1", "L b 2"))
    assert found["rt"].per_task["b"] == 0 and isnan(found["rt"].per_task["a"])
    assert found["pr"].reason == "a: learned in one block only; b: fewer than two recovery times"


def test_the_slope_of_many_points_is_theils_incomplete_method():
    assert robust_slope([0, 1, 3], [0, 1, 9]) == 3  # slopes 1, 3, 4
    # 2001 points of x³, each of the first 1000 paired with the one 1001 further on: slopes
    # 3i² + 3·1001·i + 1001², whose median lies between i = 499 and i = 500.
    x = np.arange(MANY + 1.0)
    slope = [3 * i**2 + 3 * 1001 * i + 1001**2 for i in (499, 500)]
    assert robust_slope(x, x**3) == pytest.approx(sum(slope) / 2)


def test_a_slope_by_the_incomplete_method_is_said():
    found = fixed(life(*["L a 1"] * (MANY + 2)))["pr"]
    assert found.value == 0 and "a: over 2000 recovery times" in found.notes[0]


# Levels and averages


def test_terminal_performance_is_the_last_tenth_rounded_up():
    # 12 experiences: the last 2. 14: the last 2. 4: the last 1.
    found = fixed(life("L a 0 0 0 0 0 0 0 0 0 0 40 60", "L a 1 1 1 7"), smoothing="none")["tlp"]
    assert moments(found) == [(0, "a", pytest.approx(51)), (1, "a", pytest.approx(8))]
    assert found.value == pytest.approx(29.5)


def test_averages_weigh_blocks_then_tasks_equally():
    found = fixed(life(["E a 0 10", "E b 100"], "L a 10 20 30", "L a 40", "E a 35", "L b 50"))
    # Training: a (20 + 40)/2 = 30, b 50. Evaluation: a (5 + 35)/2 = 20, b 100. All plus 1.
    assert found["atp"].per_task == {"a": pytest.approx(31), "b": pytest.approx(51)}
    assert found["atp"].value == pytest.approx(41)
    assert found["aep"].value == pytest.approx(61)
    assert moments(found["aep"]) == [
        (0, "a", pytest.approx(6)),
        (0, "b", pytest.approx(101)),
        (3, "a", pytest.approx(36)),
    ]


def test_cumulative_gain_is_the_mean_sign_of_the_blocks_trends():
    found = fixed(life("L a 10 30 20", "L b 50 40", "L a 20 90", "E a 1"))["cg"]
    # a rises (by a straight line through 10, 30, 20: +5 a step), b falls, a rises: 1, −1, 1.
    assert moments(found) == [(0, "a", 1), (1, "b", -1), (2, "a", 1)]
    assert found.value == pytest.approx(1 / 3) and found.per_task == {"a": 1, "b": -1}
    # By blocks, not by tasks: the mean of tasks would be 0.
    level = fixed(life("L a 30 30", "L a 7", "L a 10 20 10"))["cg"]
    assert level.value == 0 and all(m.value == 0 for m in level.over_time)


def test_learn_burn_is_the_slope_after_changes_over_that_of_the_lifetime():
    found = fixed(life("L a 0 10", "L b 0 20", "L a 10 40"))["lb"]
    # Changes to b (+20 a step) and back to a (+30). All learning is 0 10 0 20 10 40: its line rises
    # by Σ(x − 2.5)(y − 80/6) / Σ(x − 2.5)² = 110/17.5 a step.
    rate = 110 / 17.5
    assert moments(found) == [
        (1, "b", pytest.approx(20 / rate)),
        (2, "a", pytest.approx(30 / rate)),
    ]
    assert found.value == pytest.approx(25 / rate)
    once = fixed(life("L a 0 10", "L a 10 20"))["lb"]
    assert isnan(once.value) and "never changes" in once.reason
    level = fixed(life("L a 0 10", "L b 10 0"))["lb"]
    assert isnan(level.value) and "neither rises nor falls" in level.reason
    falling = fixed(life("L a 50 40", "L b 30 10"))["lb"]
    assert falling.value > 0 and "performance falls over the lifetime" in falling.notes[0]


def test_short_blocks_are_smoothed_too():
    """A fifth of 12 experiences is a window of two, which becomes three to have a centre."""
    peak = "L a 0 0 0 0 0 30 0 0 0 0 0 0"
    assert fixed(life(peak))["sat"].value == pytest.approx(1 + 10)
    assert fixed(life("L a 0 0 0 30 0 0 0 0 0"))["sat"].value == pytest.approx(1 + 30)


def test_levels_of_each_block():
    found = fixed(life("L a 0 40 30", "L a 50 20"))
    assert found["sat"].value == pytest.approx(51) and found["ets"].value == 4
    assert moments(found["sat"]) == [(0, "a", pytest.approx(41)), (1, "a", pytest.approx(51))]
    assert moments(found["ets"]) == [(0, "a", 2), (1, "a", 1)]


def test_rounding_does_not_decide_when_a_level_is_reached():
    wobble = "L a 0 60 60.00000000001 60.00000000002"
    assert fixed(life(wobble))["ets"].value == 2
    assert fixed(life(wobble, "L a 60.00000000001"))["rt"].value == 0


# Preprocessing


def test_smoothing_is_centred_and_the_rolling_average_is_taken_once():
    # 20 experiences: window 4, made odd: 3. A spike of 90 at the 11th becomes 30 at the 10th to
    # the 12th.
    spike = "L a " + " ".join("90" if i == 10 else "0" for i in range(20))
    for smoothing in ("flat", "none"):
        found = fixed(life(spike), smoothing=smoothing)
        assert found["sat"].value == pytest.approx(31) and found["ets"].value == 10
    assert fixed(life(spike), smoothing="flat")["atp"].value == pytest.approx(5.5)


def test_a_window_of_ones_own():
    # Window 5 over 10 experiences; the spike of 50 at the 6th is 10 at the 4th to the 8th.
    found = fixed(life("L a 0 0 0 0 0 50 0 0 0 0"), window=5)
    assert found["sat"].value == pytest.approx(11) and found["ets"].value == 4


def test_evaluations_are_not_smoothed():
    spike = " ".join("90" if i == 10 else "0" for i in range(20))
    found = paper.scores(life("E a " + spike), paper.PaperOptions(clamp=False))
    assert found["aep"].value == pytest.approx(1 + 100 / 20)  # the maximum stays 90: 101


def test_one_scale_for_all_lifetimes():
    low, high = life("L a 0 20 50"), life("L a 0 50 100")
    alone = paper.PaperOptions(clamp=False)
    assert paper.scores(low, alone)["sat"].value == paper.scores(high, alone)["sat"].value == 101
    shared = replace(alone, limits=paper.limits([low, high], alone))
    assert shared.limits == {"a": (0, 100, "")}
    assert paper.scores(low, shared)["sat"].value == pytest.approx(51)
    assert paper.scores(high, shared)["sat"].value == pytest.approx(101)


def test_experts_take_part_in_the_limits_once_and_by_their_own_learning():
    expert = life(["E a 900", "E z 900"], "L a 200", "L z 900")
    lives = [life("L a 0", experts={"a": [expert]}), life("L a 100", experts={"a": [expert]})]
    assert paper.limits(lives, paper.PaperOptions(clamp=False)) == {"a": (0, 200, "")}
    # 0, 100 and one 200: the quantile at 90 % is 100 + 0.8 · 100.
    assert paper.limits(lives)["a"].high == pytest.approx(180)


def test_clamping_at_the_quantiles():
    # 0 … 100 in steps of 10 and 11 experiences: quantiles 10 and 90.
    history = life("L a 0 10 20 30 40 50 60 70 80 90 100")
    assert paper.limits([history])["a"] == pytest.approx((10, 90, ""))
    found = paper.scores(history)
    # (10+10+20+…+90+90)/11 = 50 → 51; the limit is first reached with the 10th.
    assert found["atp"].value == pytest.approx(51)
    assert (found["sat"].value, found["ets"].value) == (pytest.approx(101), 10)


def test_clamping_that_erases_transfer_is_said():
    # Of b's 40 values the lowest four are its evaluations before its learning. All lie under the
    # 10 % quantile, which is 30.9, between the fourth (30) and the fifth (31).
    lesson = "L b " + " ".join(str(v) for v in range(31, 45))
    blocks = ["E b 1 2", "L a 5", "E b 20 30", lesson, lesson, "L b 50 50 50 50 50 50 50 50"]
    found = paper.scores(life(*blocks), paper.PaperOptions(smoothing="none"))["ft"]
    assert found.value == 0
    assert "clamping made before and after equal in 1 of 1 changes" in found.notes[0]
    unclamped = paper.scores(life(*blocks), paper.PaperOptions(smoothing="none", clamp=False))["ft"]
    assert unclamped.value > 0.5 and not any("clamping" in n for n in unclamped.notes)


def test_a_task_that_clamping_would_erase_is_not_clamped():
    # 19 failures and a success: both quantiles are 0.
    history = life("L a 0", "E a " + "0 " * 19 + "1")
    assert paper.limits([history])["a"][:2] == (0, 1)
    found = paper.scores(history)["aep"]
    assert found.value == pytest.approx(6) and "a: not clamped" in found.notes[0]


@pytest.mark.parametrize("level", [0.1, 0.3, -1e6, 1e120, 0.0])
def test_constant_performance_says_nothing_rather_than_noise(level):
    """0.1 + 0.2 is not 0.3 in binary: such a difference must not become 100."""
    near = level * (1 + 2e-16)
    lesson = "L {} " + f"{level!r} {near!r} " * 20
    blocks = [
        [f"E a {level!r}", f"E b {near!r}"], lesson.format("a"), [f"E a {near!r}", f"E b {level!r}"],
        lesson.format("b"), [f"E a {level!r}", f"E b {near!r}"], lesson.format("a"),
    ]  # fmt: skip
    found = paper.scores(life(*blocks, experts={"a": [life(lesson.format("a"))]}))
    assert found["pm"].value == found["ft"].value == found["bt"].value == 0
    assert found["ft_ratio"].value == found["rp"].value == found["se"].value == 1
    assert found["rt"].value == found["droop"].value == found["cg"].value == 0
    assert "a: performance is constant, which says nothing of learning" in found["pm"].notes


def test_given_ranges_replace_quantiles():
    found = paper.scores(life("L a -50 50 150"), paper.PaperOptions(ranges={"a": (0, 100)}))
    assert found["atp"].value == pytest.approx((1 + 51 + 101) / 3)
    free = paper.PaperOptions(ranges={"a": (0, 100)}, clamp=False)
    assert paper.scores(life("L a -50 50 150"), free)["sat"].value == pytest.approx(151)


def test_describe_is_plain():
    options = paper.PaperOptions(clamp=False, ranges={"a": (0, 2)})
    assert paper.describe(options) == {
        "smoothing": "flat", "window": None, "clamp": False, "normalise": True,
        "ranges": {"a": {"min": 0, "max": 2}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: paper.PaperOptions(smoothing="round"), "expected one of flat"),
        (lambda: paper.PaperOptions(window=2), "at least 3"),
        (lambda: paper.PaperOptions(ranges={"a": (1, 1)}), "range of task 'a'"),
        (lambda: paper.PaperOptions(ranges={"a": (0, float("inf"))}), "range of task 'a'"),
        (
            lambda: paper.scores(life("L a 1"), paper.PaperOptions(ranges={"b": (0, 1)})),
            "no entry for",
        ),
        (
            lambda: paper.scores(life("L a 1"), paper.PaperOptions(limits={})),
            "no limits for task 'a'",
        ),
        (
            lambda: paper.limits([life("L a 1"), replace(life("L a 1"), measure="success")]),
            "name the one",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(make, says):
    with pytest.raises(MeasureError, match=says):
        make()


def test_an_unknown_measure_is_named():
    with pytest.raises(UnknownName, match="return"):
        paper.scores(life("L a 1"), paper.PaperOptions(measure="retrun"))


# Which rows count


def test_rows_before_deployment_adapt_blocks_and_incomplete_rows_do_not_count():
    plain = fixed(life("E b 20", "L a 50", "E b 30", "L b 60", "E b 60"))
    noisy = fixed(
        life("Lp b 99", "Ep b 99", "E b 20", "A b 99", "L a 50 99! nan", "E b 30 1! inf", "L b 60",
             "E b 60")
    )  # fmt: skip
    for name, score in plain.items():
        assert noisy[name].value == pytest.approx(score.value, nan_ok=True), name
    assert "b: learned before deployment" in noisy["ft"].notes[0]
    assert "1 values are infinite" in noisy["ft"].notes[-1]


def test_side_by_side_tasks_are_one_block_each():
    apart = fixed(life("L a 10 50", "L b 20 60", "L a 5 50", "L b 60"))
    beside = fixed(life("L a+b 10 20 50 60", ["L a 5 50", "L b 60"]))
    for name in ("rt", "tlp", "sat", "ets", "atp", "cg", "droop"):
        assert beside[name].value == pytest.approx(apart[name].value), name


def test_blocks_of_workers_that_overlap_are_not_torn():
    """Rows in order of exp, block 1 beginning before block 0 has ended."""
    apart = life("L a 10 50", "L a 5 50 60")
    order = [0, 2, 1, 3, 4]
    torn = replace(
        apart,
        block=apart.block[order],
        columns={"return": pa.chunked_array([apart.values()[order]])},
    )
    assert fixed(torn)["rt"].value == fixed(apart)["rt"].value == 2
    assert fixed(torn)["tlp"].over_time == fixed(apart)["tlp"].over_time


def test_tasks_are_told_apart_by_their_full_name():
    experts = {"task1_x": [life("L task1_x 9")], "task10": [life("L task10 1")]}
    found = fixed(life("L task1 5", "L task10 3", experts=experts))["rp"]
    assert found.per_task["task10"] == pytest.approx(2)  # 4/2
    assert isnan(found.per_task["task1"])


def test_rows_of_one_experience_are_averaged_for_learner_and_expert():
    one = life("L a 5 25 45", experts={"a": [life("L a 10 30 30")]})
    workers = life(
        "L a 0 10 20 30 40 50",
        exp=[0, 0, 1, 1, 2, 2],
        experts={"a": [life("L a 5 30 30 15 30 30", exp=[0, 1, 2, 0, 1, 2])]},
    )
    for name, score in fixed(one).items():
        assert fixed(workers)[name].value == pytest.approx(score.value, nan_ok=True), name


def test_asleep_evaluations_count_alone_and_asleep_learning_has_no_curve():
    found = fixed(
        life(
            "L a 50", ["E a 10", "Es a 60"], "L b 1", ["E a 90", "Es a 40"], "Ls a 80 90", "L a 50"
        )
    )
    assert found["pm"].value == pytest.approx(-20)
    assert found["bt"].pairs == {("b", "a"): pytest.approx(-20 / 102)}
    assert found["aep"].value == pytest.approx(51)  # asleep: (61 + 41) / 2
    # Awake 50 and again 50: back at once. Asleep learning would have set the level to 90.
    assert found["rt"].value == 0
    assert found["tlp"].per_task["a"] == pytest.approx((51 + 91 + 51) / 3)
    expert = life("Ls a 9 9", "L a 24")
    assert fixed(life("L a 49", experts={"a": [expert]}))["rp"].value == pytest.approx(2)  # 50/25
    only = fixed(life("Ls a 1 2"))
    assert only["sat"].reason == "a: learned asleep only" and only["atp"].value == pytest.approx(
        2.5
    )


def test_an_empty_lifetime_has_reasons():
    for history in (life(), life("L a nan", "E a nan"), life("E a 1"), life("L a 5!")):
        for name, score in paper.scores(history).items():
            assert score.reason or not isnan(score.value), name


def test_every_declared_metric_has_a_score():
    assert sorted(f"l2m.{n}" for n in paper.scores(life("L a 1"))) == sorted(
        m.name for m in metrics
    )


def test_agrees_with_the_reference_where_it_departs_from_nothing():
    """Short blocks, nothing clamped, one task learned between evaluations: two implementations of
    one definition."""
    rng = np.random.default_rng(5)
    every = ["E {} {:.3f} {:.3f}".format(t, *rng.random(2)) for t in "abc"]
    blocks = [every]
    for i in range(9):
        lesson = np.round(np.sort(rng.random(10)) + 0.2 * rng.random(10), 3)
        blocks.append(f"L {'abc'[i % 3]} " + " ".join(map(str, lesson)))
        blocks.append(["E {} {:.3f} {:.3f}".format(t, *rng.random(2)) for t in "abc"])
    experts = {
        t: [life(f"L {t} " + " ".join(map(str, np.sort(rng.random(25)))))] for t in ("a", "b")
    }
    history = life(*blocks, experts=experts)
    options = paper.PaperOptions(clamp=False, smoothing="none")
    ours = paper.scores(history, options)
    theirs = reference.scores(history, reference.ReferenceOptions(smoothing_method="none"))
    for name in ("pm", "pm_tlp", "rp", "atp", "aep"):
        per_task = {t: v for t, v in theirs[name].per_task.items() if not isnan(v)}
        assert per_task
        for task, value in per_task.items():
            assert ours[name].per_task[task] == pytest.approx(value), name
    for name in ("ft", "ft_ratio"):
        assert ours[name].pairs == pytest.approx(theirs[name].pairs)
    assert {m.block: m.value for m in ours["tlp"].over_time} == pytest.approx(
        {m.block: m.value for m in theirs["tlp"].over_time}
    )
