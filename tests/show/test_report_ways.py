"""Lifetimes that went different ways, had different budgets, or too little to tell."""

import numpy as np
import pytest
import report_runs as made
from browser import opened

from perdure import registry
from perdure.measure.benchmark import Benchmark
from perdure.show.report import data, load, render, write_page
from perdure.show.report.hero import title


def metrics():
    return list(registry.metrics().values())


@pytest.fixture(scope="module")
def unlike(tmp_path_factory):
    """Two runs of the same blocks, of 30 episodes and of 18."""
    folder = tmp_path_factory.mktemp("runs")
    keys = {"seeds": (0, 1), "tasks": ("toy/a", "toy/b")}
    long = made.make_run(folder / "long", agents=[("good", 0.9)], amount=30, **keys)
    short = made.make_run(folder / "short", agents=[("poor", 0.4)], amount=18, **keys)
    return load([long, short], metrics(), anyway=True)


def test_budgets_that_differ_have_an_axis_each(unlike):
    curves = data.lifetime_curves(unlike)
    amounts = {
        c["curriculum"]: [s["amount"] for s in curves["spans"]
                          if s["schedule"] == c["schedule"] and s["kind"] == "learn"]
        for c in curves["schedules"]
    }  # fmt: skip
    assert amounts == {"long": [300, 300], "short": [180, 180]}
    assert [c["agents"] for c in curves["schedules"]] == [["good"], ["poor"]]
    assert all(c["exact"] for c in curves["schedules"])


def test_the_first_screen_tells_budgets_apart(unlike):
    outline = data.outline(unlike)
    assert outline["budget"][0] == {"for": "learning", "unit": "episodes", "amount": [36, 60]}
    assert [c["budget"][0]["amount"] for c in outline["curricula"]] == [[60, 60], [36, 36]]
    shares = [s["share"] for c in outline["curricula"] for s in c["strips"]]
    assert shares == pytest.approx([1, 0.6])
    text = render(unlike)
    assert "36–60" in text and "learning 36 episodes, evaluation 30 episodes" in text


def test_ways_stand_one_below_the_other_each_under_its_name(unlike, tmp_path):
    page = write_page(unlike, tmp_path / "r.html")
    with opened(page) as seen:
        part = seen.draw("curves")
        assert part.locator(".facet").count() == 2
        assert part.locator("h3").all_inner_texts() == ["1: long · good", "2: short · poor"]
        ends = [
            max(int(t.replace(",", "")) for t in chart.locator("text").all_text_contents()
                if t.replace(",", "").isdigit())
            for chart in part.locator("svg[role=img]").all()
        ]  # fmt: skip
        assert ends == [600, 360]
        part.locator("select").first.select_option("1")
        assert part.locator(".facet header").all_inner_texts()[0].startswith("B")
        assert "2 of 4 lifetimes" in part.inner_text() and "good" in part.inner_text()
        matrix = seen.draw("matrix")
        assert matrix.locator("svg[role=img]").count() == 2
        seen.well(page)


def test_orders_that_differ_are_all_on_the_first_screen(tmp_path):
    run = made.start_run(tmp_path / "run", "toy/shuffled,length=60")
    orders = {0: ("toy/a", "toy/b"), 1: ("toy/b", "toy/a"), 2: ("toy/a", "toy/b")}
    for seed, tasks in orders.items():
        rows = made.tasks_in_turn(np.random.default_rng(seed), tasks)
        described = made.describe("toy/shuffled", tasks, 60, 5)
        made.write_lifetime(run / "q" / str(seed), rows, "q", seed, described=described)
    study = load([run], metrics())
    (curriculum,) = data.outline(study)["curricula"]
    assert [s["label"] for s in curriculum["strips"]] == [
        "Order 1 · seeds 0, 2 · n = 2", "Order 2 · seed 1 · n = 1",
    ]  # fmt: skip
    text = render(study)
    assert "The order of tasks is not the same in all lifetimes" in text
    # The title is in words; what was asked for with it stands below.
    assert "<bdi>toy/shuffled: two tasks in turn</bdi>" in text and "<bdi>length=60</bdi>" in text
    assert "steps, longest episode" in text and "Perdure <span>0.1.0</span>" in text


def test_generated_ways_are_named_by_their_agents(tmp_path):
    run = made.start_run(tmp_path / "run", "toy/until")
    described = {"curriculum": {"name": "toy/until", "generated": True, "blocks": []},
                 "fingerprint": "f" * 12}  # fmt: skip
    for agent, tasks in (("q", ("toy/a", "toy/b")), ("random", ("toy/a", "toy/a", "toy/b"))):
        for seed in (0, 1):
            rng = np.random.default_rng(seed)
            rows = made.tasks_in_turn(rng, tasks, amount=20, episodes=2)
            made.write_lifetime(run / agent / str(seed), rows, agent, seed, described=described)
    study = load([run], metrics())
    (curriculum,) = data.outline(study)["curricula"]
    assert [s["label"] for s in curriculum["strips"]] == [
        "Way 1 · q · seeds 0, 1 · n = 2", "Way 2 · random · seeds 0, 1 · n = 2",
    ]  # fmt: skip
    assert curriculum["budget"][0] == {"for": "learning", "unit": "steps", "amount": [400, 600]}
    page = write_page(study, tmp_path / "r.html")
    with opened(page) as seen:
        part = seen.draw("curves")
        texts = part.locator("select").first.locator("option").all_inner_texts()
        assert len(set(texts)) == 3 and "· q" in texts[1] and "· random" in texts[2]
        assert part.locator(".facet").count() == 2
        seen.well(page)


@pytest.fixture(scope="module")
def adapted(tmp_path_factory):
    """A lifetime evaluated within adapt blocks alone."""
    run = made.start_run(tmp_path_factory.mktemp("runs") / "meta")
    for seed in (0, 1):
        rows = []
        for block, (task, kind) in enumerate([("toy/a", ""), ("toy/b", "adapt")]):
            rows += [made.row(len(rows) + i, block, task, True, 1.0, kind=kind) for i in range(8)]
        rows += [made.row(len(rows) + i, 1, "toy/b", False, 1.0, kind="adapt") for i in range(4)]
        made.write_lifetime(run / "q" / str(seed), rows, "q", seed)
    return load([run], metrics())


def test_the_title_tells_what_was_learned_before_deployment(tmp_path):
    run, rows = made.start_run(tmp_path / "runs/pretrained"), []
    for block, (task, deployed) in enumerate([("toy/a", False), ("toy/b", True), ("toy/c", True)]):
        for learning in (True, False):
            rows.append(made.row(len(rows), block, task, learning, 1.0, deployed=deployed))
    made.write_lifetime(run / "q" / "0", rows, "q", 0)
    assert title(load([run], metrics())).endswith(": two tasks in turn, after pretraining on one")


def test_what_is_measured_after_adapting_is_a_headline(adapted):
    assert title(adapted).endswith(": one task, one to adapt to")
    head = data.headline(adapted)
    assert head["metrics"][0]["metric"] == "meta.after" and head["cells"][0]["value"] == 1.0
    # A benchmark of the tasks says itself what leads.
    told = [m for m in adapted.metrics if m.name != "metaworld.success"]
    own = Benchmark("toy", "Toys", ("metaworld.success",), adapted="metaworld.success")
    told += own.of(*(m for m in adapted.metrics if m.name == "metaworld.success"))
    head = data.headline(load([f.path for f in adapted.folders], told))
    assert head["metrics"][0]["metric"] == "metaworld.success"
    assert head["cells"][0]["value"] == 1.0 and "after adapting: toy/b" in head["cells"][0]["notes"]


def test_elsewhere_it_is_not(unlike):
    shown = {m["metric"] for m in data.headline(unlike)["metrics"]}
    assert not shown & {"metaworld.success", "meta.after"}


def test_without_a_final_score_nothing_is_drawn_of_it(adapted, tmp_path):
    assert data.profiles(adapted) == [] and data.distributions(adapted)["aggregates"] == []
    page = write_page(adapted, tmp_path / "r.html")
    assert 'id="profiles"' not in page.read_text()
    with opened(page) as seen:
        part = seen.draw("spread")
        # Success after adapting has two names, and stands once.
        assert part.locator(".panel").count() == 1
        said = seen.page.locator("#results .foot").first.inner_text()
        assert "Without a value in any lifetime:" in said
        assert "summary.final (no task was evaluated)" in said and "summary.forgetting" in said
        seen.well(page)


def test_too_few_lifetimes_to_test_are_called_so(tmp_path):
    few = render(load([made.make_run(tmp_path / "few", seeds=(0, 1))], metrics()))
    assert "too few lifetimes to test (at least 3 of each agent)" in few
    assert "0 tests" not in few
    more = render(load([made.make_run(tmp_path / "more", seeds=(0, 1, 2))], metrics()))
    assert "too few lifetimes to test" not in more and "Holm’s correction over" in more


def test_what_did_not_end_finds_its_budget(tmp_path):
    """An unfinished lifetime joins those that were to learn as much as it."""
    keys = {"seeds": (0,), "tasks": ("toy/a", "toy/b"), "agents": [("q", 0.9)]}
    long = made.make_run(tmp_path / "long", amount=30, **keys)
    short = made.make_run(tmp_path / "short", amount=18, **keys)
    rows = made.tasks_in_turn(np.random.default_rng(1), ("toy/a", "toy/b"), amount=18)
    described = made.describe("made/up", ("toy/a", "toy/b"), 18, 5)
    made.write_lifetime(short / "q/1", rows[:20], "q", 1, described=described, done=False)
    study = load([long, short], metrics(), anyway=True)
    assert [c.names for c in study.schedules] == [("long/q/0",), ("short/q/0", "short/q/1")]
