"""A benchmark of one's own is shown its own way: one record beside its metrics, no edit elsewhere."""

import json
import re

import pytest
import report_runs as made

from perdure import registry
from perdure.errors import MeasureError, UnknownName
from perdure.measure.benchmark import Benchmark
from perdure.measure.metric import metric
from perdure.show.figures import write_figures
from perdure.show.report import data, load, write_page

MINE = """
from perdure.measure.benchmark import Benchmark
from perdure.measure.metric import Score, metric

@metric("mine.kept", better="higher", title="Kept")
def kept(life):
    "What is there at the end."
    last = life.matrix.last()
    per = {task: 10 * v for task, v in last.items()}
    return Score(10 * sum(last.values()), per, stages={"before": 1.0, "after": sum(per.values())})

@metric("mine.lost", better="lower", title="Lost")
def lost(life):
    "What is gone."
    return 10 - 10 * sum(life.matrix.last().values())

@metric("mine.detail", better="higher")
def detail(life):
    "Not in the first table."
    return 0.0

BENCHMARK = Benchmark(
    "mine", "My own benchmark", ("mine.kept", "mine.lost"), PICTURE, about="As it is seen.",
    bounds=(-20.0, 40.0), published={"Naive": {"mine.kept": 1.25}, "Joint": {"mine.lost": 2.5}},
)
metrics = BENCHMARK.of(kept, lost, detail)
"""


def shown(folder, picture):
    """A report of runs on the made-up benchmark's tasks."""
    file = folder / f"{picture}.py"
    file.write_text(MINE.replace("PICTURE", repr(picture)))
    mine = registry.as_metrics(registry.load_file(f"{file}:metrics"), str(file))
    run = made.make_run(folder / "run", ("mine/a", "mine/b"))
    return load([run], [*registry.metrics().values(), *mine])


@pytest.mark.parametrize("picture", ["spider", "bars", "stages", "table"])
def test_one_record_is_enough(tmp_path, picture):
    study = shown(tmp_path, picture)
    head = [m["metric"] for m in data.headline(study)["metrics"]]
    own = [name for name in head if not name.startswith("summary.")]
    assert head[:2] == ["summary.final", "summary.forgetting"], "what leads everywhere"
    assert own[:2] == ["mine.kept", "mine.lost"] and "mine.detail" not in head
    (found,) = data.benchmarks(study)
    assert (found["title"], found["picture"]) == ("My own benchmark", picture)
    assert {r["agent"] for r in found["rows"]} == {"good", "poor"}
    key = {"spider": "axis", "bars": "task", "stages": "stage", "table": "title"}[picture]
    expected = {"bars": {"mine/a", "mine/b"}, "stages": {"before", "after"}}
    expected = expected.get(picture, {"Kept", "Lost"})
    assert {r[key] for r in found["rows"]} == expected

    names = {p.name for p in write_figures(study, tmp_path / "figures", formats=("svg",))}
    drawn = "mine-adaptation" if picture == "stages" else "mine"
    assert {f"{drawn}.svg", f"{drawn}.csv"} <= names

    text = write_page(study, tmp_path / "page.html").read_text()
    section = text[text.index('<section id="benchmarks"') :].split("</section>")[0]
    words = re.sub(r"\s*<[^>]+>\s*", " ", section)
    assert "My own benchmark: published" in words
    assert re.search(r"Naive\s+1\.25\s+–\s+Joint\s+–\s+2\.50?", words), words
    if picture == "table":
        assert "As it is seen." in words and re.search(r"good .* ± .* n=3", words)
        assert 'data-chart="benchmarks"' not in section
    else:
        assert 'data-chart="benchmarks"' in section


def test_a_suite_may_have_several(tmp_path):
    """Each with its own metrics: how Meta-World shows success, and success while adapting."""
    study = shown(tmp_path, "bars")
    other = Benchmark("mine", "Mine too", ("mine.lost",), "spider")
    metrics = [m for m in study.metrics if m.name != "mine.lost"]
    metrics += other.of(*(m for m in study.metrics if m.name == "mine.lost"))
    # The first one's leads are no longer all of its own, but still there.
    both = load([tmp_path / "run"], metrics)
    assert [b["title"] for b in data.benchmarks(both)] == ["My own benchmark", "Mine too"]


def test_it_is_for_its_own_tasks_alone(tmp_path):
    study = shown(tmp_path, "spider")
    other = load([made.make_run(tmp_path / "other")], study.metrics)
    assert data.benchmarks(other) == []
    assert not any(m["metric"].startswith("mine.") for m in data.headline(other)["metrics"])


def test_what_a_record_may_not_say():
    @metric("mine.kept", better="higher")
    def kept(life):
        return 1.0

    with pytest.raises(UnknownName, match="did you mean 'spider'"):
        Benchmark("mine", "Mine", ("mine.kept",), "spidr")
    with pytest.raises(MeasureError, match="at least one leading metric"):
        Benchmark("mine", "Mine", ())
    with pytest.raises(UnknownName, match=r"did you mean 'mine\.kept'"):
        Benchmark("mine", "Mine", ("mine.kep",)).of(kept)
    (carried,) = Benchmark("mine", "Mine", ("mine.kept",)).of(kept)
    assert carried == kept and hash(carried) == hash(kept), "the record is no part of its identity"


def test_page_data_is_plain(tmp_path):
    json.dumps(data.page_data(shown(tmp_path, "table"))["benchmarks"], allow_nan=False)
