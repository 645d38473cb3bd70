"""The tables behind the page, against cases worked out by hand."""

from itertools import pairwise
from math import isnan, sqrt

import numpy as np
import pytest
import report_runs as made

from perdure import registry
from perdure.errors import MeasureError
from perdure.show.report import data, load
from perdure.store.layout import RunFolder

T2 = 12.706204736432095
"""Student's t for two lifetimes at 95 %."""


def only(records, **keys):
    """The one record with these values."""
    found = [r for r in records if all(r[k] == v for k, v in keys.items())]
    assert len(found) == 1, (keys, found)
    return found[0]


def metrics():
    return list(registry.metrics().values())


TABLES = {
    # Scores of a and b before learning, after learning a, and after learning b.
    0: [(0.0, 0.5), (1.0, 0.5), (0.5, 1.0)],
    1: [(0.5, 0.0), (1.0, 0.5), (0.0, 1.0)],
}
LEARNING = {0: (0, 0, 1, 1), 1: (0, 1, 1, 1)}


def rows_of(seed, steps=10):
    """Two tasks in turn, two episodes an evaluation, four a learn block."""
    rows, block = [], 0
    for stage, scores in enumerate(TABLES[seed]):
        if stage:
            task = ("toy/a", "toy/b")[stage - 1]
            for value in LEARNING[seed]:
                rows.append(made.row(len(rows), block, task, True, float(value), steps=steps))
            block += 1
        for task, score in zip(("toy/a", "toy/b"), scores, strict=True):
            for value in {0.0: (0, 0), 0.5: (0, 1), 1.0: (1, 1)}[score]:
                rows.append(made.row(len(rows), block, task, False, float(value), steps=steps))
        block += 1
    return rows


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    run = made.start_run(tmp_path_factory.mktemp("runs") / "two", "toy/two")
    described = made.describe("toy/two", ("toy/a", "toy/b"), 4, 2)
    for seed in (0, 1):
        made.write_lifetime(run / "q" / str(seed), rows_of(seed), "q", seed, described=described)
    for seed, values in ((0, (0, 1, 1, 1)), (1, (1, 1, 1, 1))):
        rows = [made.row(i, 0, "toy/a", True, float(v)) for i, v in enumerate(values)]
        made.write_lifetime(run / "q/experts/toy--a" / str(seed), rows, "q", seed, expert="toy/a")
    return load([run], metrics())


def test_the_outline(study):
    found = data.outline(study)
    (curriculum,) = found["curricula"]
    assert curriculum["name"] == "toy/two" and not curriculum["generated"]
    assert curriculum["budget"] == [
        {"for": "learning", "unit": "episodes", "amount": [8, 8]},
        {"for": "evaluation", "unit": "episodes", "amount": [12, 12]},
    ]
    assert found["budget"] == curriculum["budget"]
    blocks = curriculum["strips"][0]["blocks"]
    assert [b["kind"] for b in blocks] == ["eval", "learn", "eval", "learn", "eval"]
    assert blocks[1]["weight"] == 4 and 0 < blocks[0]["weight"] < 1
    assert only(found["tasks"], task="toy/a") == {
        "task": "toy/a", "horizon": 10, "learned": [40, 40], "evaluations": [3, 3],
        "episodes": [2, 2], "params": "",
    }  # fmt: skip
    agent = only(found["agents"], agent="q")
    assert (agent["n"], agent["seeds"], agent["experts"], agent["letter"]) == (2, [0, 1], 2, "A")
    assert only(found["versions"], what="perdure")["versions"] == ["0.1.0"]


def wilson(share, count):
    """Wilson's interval of so many observations, with Student's t of two lifetimes."""
    centre, room = share + T2**2 / (2 * count), 1 + T2**2 / count
    half = T2 * sqrt(share * (1 - share) / count + T2**2 / (4 * count**2))
    return (centre - half) / room, (centre + half) / room


def test_lifetime_curves(study):
    found = data.lifetime_curves(study)
    (schedule,) = found["schedules"]
    assert (
        schedule["order"] == ["toy/a", "toy/b"]
        and schedule["unit"] == "steps"
        and schedule["exact"]
    )
    spans = found["spans"]
    assert [s["amount"] for s in spans] == [0, 40, 0, 40, 0]
    assert [s["learned"] for s in spans] == [0, 0, 40, 40, 80]
    assert all(a["stop"] == b["start"] for a, b in pairwise(spans))
    # After b, a has 0.5 and 0: mean ¼, standard error ¼, so 3 observations; Wilson's with t = 12.7.
    end = only(found["evaluations"], block=4, task="toy/a")
    assert (end["mean"], end["n"], end["min"], end["max"]) == (0.25, 2, 0.0, 0.5)
    low, high = wilson(0.25, 3)
    assert (end["low"], end["high"]) == (pytest.approx(low), pytest.approx(high))
    assert 0 < low < 0.01 and 0.98 < high < 1
    # Learning in bins of a quarter block each: one episode a bin.
    bins = [r for r in found["learning"] if r["block"] == 1]
    assert [r["mean"] for r in bins] == [0.0, 0.5, 1.0, 1.0]
    assert [(r["min"], r["max"]) for r in bins] == [(0, 0), (0, 1), (1, 1), (1, 1)]
    assert [r["x"] - spans[1]["start"] for r in bins] == pytest.approx([5, 15, 25, 35])


def test_tables_of_curves_tell_what_was_learned_and_no_place_on_the_axis(study):
    found, (schedule,) = data.lifetime_curves(study), study.schedules
    rows = data.tidy(found["learning"], schedule, learning=True)
    assert [r["learned"] for r in rows] == pytest.approx([5, 15, 25, 35, 45, 55, 65, 75])
    assert [r["within"] for r in rows] == pytest.approx([0.125, 0.375, 0.625, 0.875] * 2)
    assert all(r["unit"] == "steps" and "x" not in r for r in rows)
    rows = data.tidy(found["evaluations"], schedule)
    assert [r["learned"] for r in rows if r["task"] == "toy/a"] == [0, 40, 80]
    assert rows[0].keys() >= {"mean", "low", "high", "n"} and "within" not in rows[0]


def test_single_lifetimes(study):
    first, second = data.single_lifetimes(study)
    assert (first["seed"], second["seed"], first["finished"]) == (0, 1, True)
    assert only(second["evaluations"], block=4, task="toy/a")["value"] == 0.0
    assert [r["mean"] for r in second["learning"] if r["task"] == "toy/b"] == [0, 1, 1, 1]
    packed = data.page_data(study)["singles"][0]
    assert packed["lifetimes"][1]["value"][-2:] == [0, 1]


def test_beside_experts(study):
    found = data.expert_curves(study)
    # Only a has experts.
    assert {r["task"] for r in found["curves"]} == {"toy/a"}
    mean = {
        who: [r["mean"] for r in found["curves"] if r["who"] == who]
        for who in ("lifelong", "expert")
    }
    assert mean["lifelong"] == [0.0, 0.5, 1.0, 1.0] and mean["expert"] == [0.5, 1.0, 1.0, 1.0]
    assert [r["x"] for r in found["curves"] if r["who"] == "expert"] == [5, 15, 25, 35]
    assert only(found["scores"], task="toy/a")["n_rp"] == 2


def test_the_matrix(study):
    found = data.matrices(study)
    assert [r["fresh"] for r in found["rows"]] == [[], ["toy/a"], ["toy/b"]]
    assert [r["learned"] for r in found["rows"]] == [0, 40, 80]
    cell = only(found["cells"], row=2, task="toy/a")
    assert cell["value"] == 0.25 and cell["sd"] == pytest.approx(0.5 / sqrt(2)) and cell["n"] == 2


def test_forgetting_by_task(study):
    # a: 1 − 0.5 and 1 − 0; b is learned last, so that nothing of it can be lost.
    assert only(data.forgetting(study), task="toy/a")["value"] == 0.75
    assert {r["task"] for r in data.forgetting(study)} == {"toy/a"}


def test_transfer_by_pair(study):
    backward = [r for r in data.transfer(study) if r["way"] == "backward"]
    assert [(r["source"], r["target"]) for r in backward] == [("toy/b", "toy/a")]
    forward = [r for r in data.transfer(study) if r["way"] == "forward"]
    assert [(r["source"], r["target"], r["n"]) for r in forward] == [("toy/a", "toy/b", 2)]
    # Evaluated rows are 0 or 1, mapped to 1 and 101: b goes from 51 to 51, and from 1 to 51.
    assert forward[0]["value"] == pytest.approx((0 + 50 / 52) / 2)


def test_the_headline(study):
    found = data.headline(study)
    assert [m["metric"] for m in found["metrics"]] == [
        "summary.final", "summary.forgetting",
        "l2m.pm", "l2m.ft", "l2m.bt", "l2m.rp", "l2m.se",
    ]  # fmt: skip
    final = only(found["cells"], metric="summary.final")
    # Final scores (0.5 + 1) / 2 and (0 + 1) / 2.
    assert final["values"] == [0.75, 0.5] and final["value"] == 0.625 and final["n"] == 2
    # A standard error of ⅛ is that of 15 observations.
    assert final["low"] == pytest.approx(wilson(0.625, 15)[0])
    assert final["beats"] == [] and found["comparisons"] == [] and found["tests"] == 0
    assert len(data.everything(study)["metrics"]) == len(metrics())


def test_every_metric_has_its_formula(study):
    texts = {m["metric"]: m["text"] for m in data.method(study)["metrics"]}
    assert not [name for name, text in texts.items() if len(text) < 30]
    assert "(a − b) / (a + b)" in texts["l2m.ft"]


def test_profiles_and_aggregates(study):
    tasks, scores = data.final_scores(study)
    assert tasks == ["toy/a", "toy/b"] and scores["q"].tolist() == [[0.5, 1.0], [0.0, 1.0]]
    rows = data.profiles(study)
    assert only(rows, threshold=0.0)["share"] == 0.75 and only(rows, threshold=0.5)["share"] == 0.5
    assert max(r["threshold"] for r in rows) < 1
    sums = data.distributions(study)["aggregates"]
    assert only(sums, statistic="mean")["value"] == 0.625
    assert only(sums, statistic="IQM")["value"] == 0.75


def test_agents_are_compared_and_the_better_one_is_marked(tmp_path):
    run = made.make_run(tmp_path / "run", seeds=range(6), episodes=30)
    study = load([run], metrics())
    found = data.headline(study)
    assert only(found["cells"], metric="summary.forgetting", agent="good")["beats"] == ["poor"]
    assert only(found["cells"], metric="summary.forgetting", agent="poor")["beats"] == []
    said = only(found["comparisons"], metric="summary.forgetting")
    assert said["better"] == "good" and said["value"] < 0 and said["test"] == "paired t"
    (won,) = data.improvement(study)
    assert (won["a"], won["b"], won["paired"], won["n"]) == ("good", "poor", True, 6)
    assert won["value"] > 0.5


def test_what_did_not_end_is_in_no_number(tmp_path):
    run = made.make_run(tmp_path / "run", seeds=(0, 1), agents=[("q", 0.5)])
    whole = load([run], metrics())
    rows = made.tasks_in_turn(np.random.default_rng(5), ("toy/a", "toy/b", "toy/c"))
    made.write_lifetime(run / "q/2", rows[:100], "q", 2, done=False, error="boom")
    made.write_lifetime(run / "late/0", rows[:40], "late", 0, done=False)
    jobs = ("q/0", "q/1", "q/2", "late/0", "late/1", "late/2")
    RunFolder(run).write_jobs(dict.fromkeys(jobs, 1))
    study = load([run], metrics())
    mine = {"metric": "summary.final", "agent": "q"}
    assert only(data.headline(study)["cells"], **mine) == only(
        data.headline(whole)["cells"], **mine
    )
    states = {
        x["name"]: (x["status"], x["error"], x["rows"]) for x in data.unmeasured(study)["lifetimes"]
    }
    assert states == {"q/2": ("failed", "boom", 100), "late/0": ("interrupted", "", 40)}
    assert data.unmeasured(study)["waiting"] == 2
    # Both join the schedule of those that ended; the one without company is shown by itself.
    curves = data.lifetime_curves(study)
    assert len(curves["schedules"]) == 1
    assert {(r["agent"], r["finished"], r["n"]) for r in curves["evaluations"]} == {
        ("q", True, 2), ("late", False, 1),
    }  # fmt: skip
    late = [r for r in curves["learning"] if r["agent"] == "late"]
    block = curves["spans"][1]
    # 25 of the block's 60 episodes: it ends where the others have not.
    assert max(r["x"] for r in late) < block["start"] + 0.5 * block["amount"]
    reasons = {c["reason"] for c in data.headline(study)["cells"] if c["agent"] == "late"}
    assert reasons == {"no lifetime measured"}


def test_a_damaged_lifetime_is_told_and_does_not_stop_the_report(tmp_path):
    run = made.make_run(tmp_path / "run", seeds=(0, 1), agents=[("q", 0.5)])
    (run / "q/1/rows/00000.parquet").write_bytes(b"gone")
    study = load([run], metrics())
    assert list(study.histories) == ["q/0"]
    (life,) = data.unmeasured(study)["lifetimes"]
    assert life["status"] == "not measured" and "damaged" in life["error"]


def test_an_empty_run_is_a_report_all_the_same(tmp_path):
    run = made.start_run(tmp_path / "run")
    study = load([run], metrics())
    assert data.page_data(study)["tasks"] == [] and data.headline(study)["cells"] == []


def test_undefined_values_have_their_reason(tmp_path):
    run = made.make_run(tmp_path / "run", seeds=(0, 1))
    study = load([run], metrics())
    # No column for what no lifetime has: its reason is said below the table.
    assert not [m for m in data.headline(study)["metrics"] if m["metric"] == "l2m.rp"]
    said = only(data.headline(study)["without"], metric="l2m.rp")
    assert "no single-task expert" in said["reason"]
    cell = only(data.everything(study)["cells"], metric="l2m.rp", agent="good")
    assert isnan(cell["value"]) and "no single-task expert" in cell["reason"]
    assert cell["dropped"] == 2 and cell["n"] == 0


def test_runs_with_an_agent_of_one_name_are_kept_apart(tmp_path):
    a = made.make_run(tmp_path / "x/run", seeds=(0, 1), agents=[("q", 0.9)])
    b = made.make_run(tmp_path / "y/run", seeds=(0, 1), agents=[("q", 0.1), ("r", 0.5)])
    study = load([a, b], metrics())
    assert study.agents == ("x/run/q", "y/run/q", "r")
    assert len(study.histories) == 6
    cells = data.headline(study)["cells"]
    assert {c["agent"]: c["n"] for c in cells if c["metric"] == "summary.final"} == dict.fromkeys(
        study.agents, 2
    )
    # The same folder twice, and the folder of both, are the same runs.
    assert load([a, a / "../../y/run", a], metrics()).agents == study.agents
    assert set(load([tmp_path], metrics()).agents) == set(study.agents)


def test_other_curricula_are_refused_with_the_difference(tmp_path):
    a = made.make_run(tmp_path / "a", ("toy/a", "toy/b"), seeds=(0, 1), name="toy/one")
    b = made.make_run(tmp_path / "b", ("toy/b", "toy/a"), seeds=(0, 1), name="toy/one")
    with pytest.raises(MeasureError) as refused:
        load([a, b], metrics())
    text = str(refused.value)
    assert "-learn toy/b × 60 episodes" in text and "+learn toy/b × 60 episodes" in text
    assert "--anyway" in text
    study = load([a, b], metrics(), anyway=True)
    found = data.orders(study)
    good = [r for r in found if r["agent"] == "good" and r["metric"] == "summary.final"]
    assert [(r["order"], r["tasks"], r["n"]) for r in good] == [
        (0, ["toy/a", "toy/b"], 2),
        (1, ["toy/b", "toy/a"], 2),
    ]
    assert data.orders(load([a], metrics())) == []


def test_blocks_before_deployment_probes_and_tasks_side_by_side(tmp_path):
    run = made.start_run(tmp_path / "run")
    for seed in (0, 1):
        rng, rows = np.random.default_rng(seed), []

        def add(block, task, learning, value, rows=rows, **keys):
            rows.append(made.row(len(rows), block, task, learning, float(value), **keys))

        for _ in range(8):
            add(0, "toy/a", True, 0, deployed=False)
        for _ in range(20):
            add(1, ("toy/b", "toy/c")[rng.integers(2)], True, 1)
        for task in ("toy/b", "toy/c"):
            add(2, task, False, 1)
        add(3, "toy/d", True, 0, kind="adapt")
        add(3, "toy/d", False, 0.5, kind="adapt")
        made.write_lifetime(run / "q" / str(seed), rows, "q", seed)
    study = load([run], metrics())
    (schedule,) = study.schedules
    kinds = [(s.summary.kind, s.summary.before, s.summary.tasks) for s in schedule.spans]
    assert kinds == [
        ("learn", True, ("toy/a",)), ("learn", False, ("toy/b", "toy/c")),
        ("eval", False, ("toy/b", "toy/c")), ("adapt", False, ("toy/d",)),
    ]  # fmt: skip
    assert schedule.order == ("toy/b", "toy/c")
    probe = only(data.lifetime_curves(study)["evaluations"], task="toy/d")
    assert probe["kind"] == "adapt" and probe["mean"] == 0.5
    # The matrix knows nothing of probes.
    assert {r["task"] for r in data.matrices(study)["cells"]} == {"toy/b", "toy/c"}
    strip = data.outline(study)["curricula"][0]["strips"][0]["blocks"]
    assert strip[3]["exposures"] == [{"task": "toy/d", "amount": 10, "unit": "steps"}]
    assert strip[3]["then"] == [{"task": "toy/d", "amount": 1, "unit": "experiences"}]


def test_unequal_steps_fall_back_on_experiences(tmp_path):
    run = made.start_run(tmp_path / "run")
    for seed in (0, 1):
        rows = rows_of(seed, steps=10 + seed)
        made.write_lifetime(run / "q" / str(seed), rows, "q", seed)
    (schedule,) = load([run], metrics()).schedules
    assert schedule.unit == "experiences" and schedule.exact
    assert [s.amount for s in schedule.spans] == [0, 4, 0, 4, 0]
    rows = rows_of(0)
    made.write_lifetime(run / "q/2", rows[:5] + rows[6:], "q", 2)
    (schedule,) = load([run], metrics()).schedules
    assert schedule.unit == "steps" and not schedule.exact


def test_benchmarks_of_the_suites(tmp_path):
    loris = made.make_run(tmp_path / "l", ("openloris/a", "openloris/b"), measure="accuracy")
    (found,) = data.benchmarks(load([loris], metrics()))
    assert (found["suite"], found["picture"]) == ("openloris", "spider")
    assert [r["axis"] for r in found["rows"] if r["agent"] == "good"] == [
        "Accuracy", "BWT", "FWT", "Over-all accuracy",
    ]  # fmt: skip
    setup = made.make_run(tmp_path / "w", ("metaworld/reach", "metaworld/push"))
    (bars,) = data.benchmarks(load([setup], metrics()))
    assert {(r["agent"], r["task"]) for r in bars["rows"]} == {
        (a, t) for a in ("good", "poor") for t in ("metaworld/reach", "metaworld/push")
    }
    libero = made.make_run(tmp_path / "b", ("libero/a", "libero/b", "libero/c"))
    study = load([libero], metrics())
    cell = only(data.benchmarks(study)[0]["rows"], agent="poor", title="NBT")
    values = [s.value for n, s in study.scores("libero.nbt").items() if n.startswith("poor")]
    assert cell["n"] == 3 and cell["value"] == pytest.approx(np.mean(values))
    assert cell["error"] == pytest.approx(np.std(values, ddof=1) / sqrt(3))
    assert data.benchmarks(load([made.make_run(tmp_path / "t")], metrics())) == []


def test_logs_of_another_kind(tmp_path):
    from perdure.store.l2logger.write import write_run
    from perdure.store.run import Run

    run = made.make_run(tmp_path / "run", seeds=(0, 1), agents=[("q", 0.5)])
    write_run(Run(run), tmp_path / "logs")
    study = load([tmp_path / "logs"], metrics())
    assert study.agents == ("q",) and len(study.histories) == 2
    assert data.outline(study)["curricula"][0]["strips"][0]["blocks"][1]["kind"] == "learn"
