"""What was kept, by hand: dumbbells, ranks, sentences, and what could be forgotten at all."""

from math import isnan, nan, sqrt

import numpy as np
import pytest

from perdure.measure import kept as module
from perdure.measure.agent_comparison import compare_agents
from perdure.measure.kept import kept, sentence, verdict
from perdure.measure.matrix import Matrix
from perdure.measure.metric import Score
from perdure.measure.results import Measured, Results
from perdure.measure.stats import mean_interval
from perdure.measure.summary import distinct, never_learned
from perdure.measure.summary import metrics as summary_metrics

UNIT = (0.0, 1.0)


def matrix(order, rows):
    """A lifetime that learned the tasks in an order, with an evaluation before and after each."""
    tasks = tuple(sorted(order))
    learned = tuple(tuple(order[:k]) for k in range(len(order) + 1))
    lessons = tuple((2 * k + 1, t) for k, t in enumerate(order))
    blocks = tuple(range(0, 2 * len(order) + 1, 2))
    return Matrix(tasks, blocks, learned, np.array(rows, float), lessons)


# Columns a, b; rows before, after a, after b.
FORGETS = matrix("ab", [[0, 0], [1.0, 0], [0.2, 0.8]])
KEEPS = matrix("ab", [[0, 0], [0.9, 0], [0.9, 0.7]])
NEVER = matrix("ab", [[0.1, 0], [0.15, 0], [0.0, 0.05]])


def test_what_could_be_forgotten():
    assert FORGETS.could_be_forgotten() == ("a",)
    # Of other orders, other tasks: b is learned first here.
    assert matrix("ba", [[0, 0], [0, 1], [1, 0]]).could_be_forgotten() == ("b",)
    assert FORGETS.initial_by_task() == {"a": 0.0, "b": 0.0}


def test_a_task_that_did_not_rise_was_not_learned():
    assert never_learned({"a": 0.15, "b": 0.4}, {"a": 0.1, "b": 0.1}, UNIT) == {"a"}
    assert never_learned({"a": 0.1}, {}, UNIT) == {"a"}, "the lower bound stands for the start"
    assert never_learned({"a": 1.0}, {"a": 1.0}, UNIT) == set(), "it was there, and can be lost"
    assert never_learned({"a": -5.0, "b": -9.0}, {"a": -9.0, "b": -9.0}, None) == {"b"}


def test_the_one_who_kept_most_leads_and_chance_is_no_contestant():
    found = kept({"x": [FORGETS], "y": [KEEPS], "lazy": [NEVER], "dice": [NEVER]}, UNIT, ["dice"])
    assert [a.agent for a in found] == ["y", "x", "lazy", "dice"]
    y, x, lazy, dice = found
    assert (x.learned.value, x.kept.value) == (0.9, 0.5)
    assert (y.learned.value, y.kept.value) == pytest.approx((0.8, 0.8))
    assert lazy.nothing and dice.chance and not y.nothing
    assert [(t.task, t.exposed, t.never) for t in x.tasks] == [
        ("a", True, False),
        ("b", False, False),
    ]
    assert sentence(x) == "x scored 0.90 right after learning each of two tasks and 0.50 at the end"
    assert sentence(lazy) == "lazy never learned any of two tasks (0.03 at the end)"
    first = "y scored 0.80 right after learning each of two tasks and 0.80 at the end"
    assert verdict(found) == f"{first}; x 0.90 and 0.50; lazy never learned."


def test_a_long_field_is_said_in_short():
    lives = {f"agent{k}": [matrix("ab", [[0, 0], [1, 0], [k / 10, 1]])] for k in range(8)}
    said = verdict(kept(lives, UNIT))
    first = "agent7 scored 1.00 right after learning each of two tasks and 0.85 at the end"
    assert said.startswith(f"{first}; agent6 1.00 and 0.80;")
    assert said.endswith("agent4 1.00 and 0.70; three others between; agent0 1.00 and 0.50.")
    assert said.count(";") == module.SAID + 1


def test_without_bounds_the_best_sets_the_scale():
    good = matrix("ab", [[-50, -50], [-10, -50], [-10, -10]])
    poor = matrix("ab", [[-50, -50], [-48, -50], [-49, -10]])
    found = {a.agent: a for a in kept({"good": [good], "poor": [poor]})}
    assert found["poor"].never == ("a",) and found["good"].never == ()


def life_of(m):
    """As metrics see a lifetime that has nothing but its matrix."""

    class Life:
        matrix, measure = m, "success"

        class history:
            learned_tasks = tuple(dict.fromkeys(t for _, t in m.lessons))

    return Life


def test_forgetting_is_over_what_could_be_forgotten():
    forgetting = next(m for m in summary_metrics if m.name == "summary.forgetting").function
    found = forgetting(life_of(FORGETS))
    # By hand: a went from 1 to 0.2. b was learned last: it counts nowhere, not as 0.
    assert found.value == pytest.approx(0.8) and found.per_task == {"a": pytest.approx(0.8)}
    nothing = forgetting(life_of(NEVER))
    assert isnan(nothing.value) and "nothing was learned" in nothing.reason


def test_a_bounded_mean_has_a_bounded_interval():
    # 0.67 [-0.77, 2.10] by Student's t. By hand: the standard error ⅓ is that of p(1 − p)/e² = 2
    # observations; t² = 4.3027² = 18.513.
    found = mean_interval([1, 1, 0], bounds=UNIT)
    share, count, t2 = 2 / 3, 2.0, 4.302652729911275**2
    half = sqrt(t2 * share * (1 - share) / count + (t2 / (2 * count)) ** 2)
    room = 1 + t2 / count
    assert found.low == pytest.approx((share + t2 / (2 * count) - half) / room)
    assert found.high == pytest.approx((share + t2 / (2 * count) + half) / room)
    assert 0 < found.low < found.value < found.high < 1
    assert mean_interval([1, 1, 0]).high > 2, "without bounds it is Student's"
    # Differences lie between −1 and 1; what lies outside its bounds is not bounded.
    both = mean_interval([0.9, 1.0, 1.0], bounds=(-1.0, 1.0))
    assert -1 < both.low < both.high <= 1
    assert mean_interval([0.9, 1.0, 1.4], bounds=UNIT).method == "mean, Student t over lifetimes"
    same = mean_interval([1.0, 1.0, 1.0], bounds=UNIT)
    assert (same.low, same.high) == (1.0, 1.0)


@pytest.mark.parametrize("values", [[0, 0, 1], [0.1, 0.9], [0.99, 1, 1, 1], [0, 0.01, 0, 0]])
def test_no_bounded_interval_leaves_its_bounds(values):
    found = mean_interval(values, bounds=UNIT)
    assert 0 <= found.low <= found.value <= found.high <= 1


def measured(**agents):
    """Results of two metrics that are known by hand; forgetting is lower for who learned nothing."""
    lifetimes = []
    for agent, (final, lost) in agents.items():
        for seed, (f, g) in enumerate(zip(final, lost, strict=True)):
            scores = {"summary.final": Score(f), "summary.forgetting": Score(g)}
            lifetimes.append(
                Measured(f"{agent}/{seed}", agent, seed, scores, chance=agent == "dice")
            )
    lives = {a: [NEVER] if a in ("lazy", "dice") else [KEEPS] for a in agents}
    found = tuple(kept(lives, UNIT, ["dice"]))
    return Results("paper", "success", {}, tuple(lifetimes), {}, kept=found)


def test_who_learned_nothing_wins_nothing_by_keeping():
    results = measured(
        good=([0.9, 0.8, 0.9], [0.1, 0.2, 0.1]),
        poor=([0.2, 0.3, 0.2], [0.7, 0.6, 0.7]),
        lazy=([0.0, 0.1, 0.05], [0.0, 0.01, 0.0]),
        dice=([0.1, 0.0, 0.1], [0.0, 0.0, 0.01]),
    )
    family = compare_agents(results, summary_metrics)
    pairs = {(c.metric, c.a, c.b) for c in family.comparisons}
    assert ("summary.final", "good", "lazy") in pairs
    assert ("summary.forgetting", "good", "poor") in pairs
    assert not [p for p in pairs if "dice" in p[1:]]
    assert not [p for p in pairs if p[0] == "summary.forgetting" and "lazy" in p]
    assert family.tests == 4  # Final: three pairs; forgetting: one.
    # As a baseline, or where there is but one other agent, chance is what one compares with.
    assert {c.b for c in compare_agents(results, summary_metrics, baseline="dice").comparisons} == {
        "dice"
    }
    alone = measured(good=([0.9, 0.8], [0.1, 0.2]), dice=([0.1, 0.0], [0.0, 0.01]))
    assert {(c.a, c.b) for c in compare_agents(alone, summary_metrics).comparisons} == {
        ("good", "dice")
    }


def test_columns_that_say_the_same_stand_once():
    scores = [{"a": Score(1.0), "b": Score(1.0), "c": Score(nan, reason="no"), "d": Score(0.5)}]
    assert distinct(["a", "b", "c", "d"], scores) == ["a", "d"]
