"""Figures for papers: every file is there, is what the data say, and is the same each time."""

import csv
import subprocess
import sys
from math import isnan, nan
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

import perdure
from perdure import registry
from perdure.errors import StoreError
from perdure.show.colours import agent_styles, task_styles
from perdure.show.figures import FORMATS, PLOTS, benchmarks, style, table_bytes, write_figures
from perdure.show.figures.spread import by_task
from perdure.show.report import data, load

LIFE = """
from perdure import Curriculum, Exposure, Task, curricula, evaluate, learn

def shuffled(seed: int = 0):
    tasks = [Task("toy", f"goal-{c}") for c in ("ne", "sw")]
    blocks = curricula.permute([learn(Exposure(t, 40, "steps")) for t in tasks], seed)
    return Curriculum("shuffled", curricula.interleave(blocks, evaluate(*(Exposure(t, 2) for t in tasks))))
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures") / "run"
    perdure.experiment(
        "toy/compass,steps=200,episodes=3", ["q", "random"], lifetimes=2, experts=True,
        executor="serial", out=str(out),
    )  # fmt: skip
    return load([out], list(registry.metrics().values()))


@pytest.fixture(scope="module")
def written(study, tmp_path_factory):
    before = dict(matplotlib.rcParams)
    folder = tmp_path_factory.mktemp("out") / "figures"
    files = write_figures(study, folder)
    assert dict(matplotlib.rcParams) == before
    return folder, files


NAMES = (
    "kept", "curriculum", "lifetimes", "experts-q", "experts-random", "matrix", "transfer-forward",
    "transfer-backward", "forgetting", "distributions", "profiles", "improvement", "aggregates",
)  # fmt: skip


def test_every_plot_is_there_in_every_format_with_its_table(written):
    folder, files = written
    assert {p.name for p in folder.iterdir()} == {p.name for p in files}
    pictures = {p.stem for p in files if p.suffix == ".png"}
    assert pictures == set(NAMES)
    for name in NAMES:
        for kind in FORMATS:
            assert (folder / f"{name}.{kind}").stat().st_size > 2000
        assert list(folder.glob(f"{name}*.csv"))
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        with Image.open(folder / f"{name}.png") as image:
            width = image.width / style.DPI
            assert width == pytest.approx(style.COLUMN) or width == pytest.approx(style.PAGE)
            assert image.height / style.DPI <= style.TALLEST
            # Something is drawn, on white.
            pixels = np.asarray(image.convert("L"))
            assert pixels[0, 0] == 255 and (pixels < 128).mean() > 0.001


def read(path):
    with path.open(newline="") as f:
        return list(csv.DictReader(f))


def same(text, value):
    """Whether a cell of the table holds this value, to the last bit."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return text == ""
    if isinstance(value, (list, tuple)):
        return text == ";".join(map(str, value))
    if isinstance(value, float):
        return float(text) == value
    return text == str(value)


def tables(study):
    curves, experts, matrix = (
        data.lifetime_curves(study), data.expert_curves(study), data.matrices(study),
    )  # fmt: skip
    spread = data.distributions(study)
    (schedule,) = study.schedules
    return {
        "lifetimes-evaluations": data.tidy(curves["evaluations"], schedule),
        "lifetimes-learning": data.tidy(curves["learning"], schedule, learning=True),
        "experts-q-curves": [r for r in experts["curves"] if r["agent"] == "q"],
        "experts-random-scores": [r for r in experts["scores"] if r["agent"] == "random"],
        "matrix-cells": matrix["cells"],
        "matrix-rows": matrix["rows"],
        "transfer-forward": [r for r in data.transfer(study) if r["way"] == "forward"],
        "forgetting": data.forgetting(study),
        "distributions-values": spread["values"],
        "aggregates": spread["aggregates"],
        "profiles": data.profiles(study),
        "improvement": data.improvement(study),
    }


def test_the_tables_are_the_data(study, written):
    folder, _ = written
    for name, records in tables(study).items():
        rows = read(folder / f"{name}.csv")
        assert len(rows) == len(records) > 0, name
        for row, record in zip(rows, records, strict=True):
            assert list(row) == list(record)
            for column in record:
                assert same(row[column], record[column]), (name, column)
    blocks = read(folder / "curriculum.csv")
    assert [b["kind"] for b in blocks] == ["eval", "learn"] * 3 + ["eval"]
    assert blocks[0]["tasks"] == "toy/goal-ne;toy/goal-sw;toy/goal-nw"
    assert blocks[1]["amounts"] == "200" and blocks[1]["units"] == "steps"
    cells = data.headline(study)["cells"]
    means = read(folder / "distributions-means.csv")
    assert [m["value"] for m in means] == [
        "" if isnan(c["value"]) else repr(c["value"]) for c in cells
    ]


def test_twice_gives_the_same_bytes(study, written, tmp_path):
    folder, _ = written
    again = write_figures(study, tmp_path / "again", formats=("svg", "pdf"))
    assert len(again) > 24
    for path in again:
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name
    for name in NAMES:
        assert b"<dc:date>" not in (folder / f"{name}.svg").read_bytes()
        assert b"CreationDate" not in (folder / f"{name}.pdf").read_bytes()


def figures_of(study):
    for plot in PLOTS:
        with style.drawing():
            for drawn in plot(study):
                if drawn.figure is not None:
                    drawn.figure.draw_without_rendering()
                    yield drawn.name, drawn.figure


def test_letters_are_large_enough_and_inside(study):
    for name, figure in figures_of(study):
        whole = figure.bbox
        for text in figure.findobj(Text):
            if text.get_text().strip() and text.get_visible():
                assert text.get_fontsize() >= 7, (name, text.get_text())
                box = text.get_window_extent()
                outside = (
                    whole.x0 - box.x0,
                    box.x1 - whole.x1,
                    whole.y0 - box.y0,
                    box.y1 - whole.y1,
                )
                # Tick labels beyond the limits of their axis are not drawn.
                if text in (
                    t for a in figure.axes for t in (*a.get_xticklabels(), *a.get_yticklabels())
                ):
                    continue
                assert max(outside) < 2, (name, text.get_text(), outside)


def test_colours_of_tasks_are_the_reports(study):
    for name, figure in figures_of(study):
        if name == "lifetimes":
            legend = figure.legends[0]
            drawn = {t.get_text(): h.get_color() for t, h in
                     zip(legend.get_texts(), legend.legend_handles, strict=True)}  # fmt: skip
            assert drawn == {t.split("/")[1]: s.light for t, s in study.task_styles.items()}
            return
    pytest.fail("no lifetimes")


def test_orders_that_differ_have_figures_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "life.py").write_text(LIFE)
    perdure.experiment("life.py:shuffled", ["random"], lifetimes=5, executor="serial", out="runs/x")
    study = load([tmp_path / "runs/x"], list(registry.metrics().values()))
    assert len(study.schedules) == 2
    files = {p.name for p in write_figures(study, tmp_path / "f", formats=("png",))}
    for name in ("lifetimes-1.png", "lifetimes-2.png", "matrix-2.png", "orders.png", "orders.csv"):
        assert name in files


def estimate(value):
    return {
        "value": value,
        "low": value - 0.1,
        "high": value + 0.1,
        "n": 3,
        "dropped": 0,
        "reason": "",
    }


EVIL = "$\\frac{1}$ </script>\u202e\x1b[31m \N{SNOWMAN}"


def shown(kind, rows):
    """A benchmark's record as figures get it."""
    names = dict.fromkeys(r["metric"] for r in rows)
    leads = [{"metric": n, "title": n, "better": "higher"} for n in names]
    return {"suite": "x", "picture": kind, "bounds": (0.0, 1.0), "metrics": leads, "rows": rows}


@pytest.fixture
def made_up():
    """A study of three agents on the benchmarks' own measures."""
    agents, tasks = ("ewc", "si", EVIL), (f"x/{EVIL}", "x/reach", "x/push")
    rows = {
        "spider": [
            {"axis": axis, "metric": axis, "agent": a, **estimate(0.4)}
            for a in agents for axis in ("Accuracy", "BWT", "FWT", "Over-all accuracy")
        ],
        "bars": [
            {"metric": "metaworld.success", "agent": a, "task": t, **estimate(0.5)}
            for a in agents for t in tasks
        ],
        "table": [
            {"agent": a, "metric": t, "title": t, "value": v, "error": nan, "n": 1, "reason": "n = 1"}
            for t in ("FWT", "NBT", "AUC") for a, v in zip(agents, (0.2, nan, 0.4), strict=True)
        ],
    }  # fmt: skip
    found = {kind: shown(kind, own) for kind, own in rows.items()}
    styles = {"agent_styles": agent_styles(agents), "task_styles": task_styles(tasks)}
    return SimpleNamespace(agents=agents, tasks=tasks, **styles), found


@pytest.mark.parametrize("kind", ["spider", "bars", "table"])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_benchmarks_own_pictures(kind, made_up, monkeypatch):
    study, found = made_up
    monkeypatch.setattr(data, "benchmarks", lambda study: [found[kind]])
    with style.drawing():
        (drawn,) = benchmarks.benchmarks(study)
        pictures = dict(style.files_of(drawn.figure, ("png", "svg")))
    assert drawn.tables == {"": found[kind]["rows"]} and len(pictures["png"]) > 5000
    # A dollar sign is a dollar sign, and nothing in a name reaches the file as markup.
    assert b"</script>" not in pictures["svg"]
    with style.drawing():
        by_task(study, found["bars"]["rows"], study.tasks, "success").draw_without_rendering()


@pytest.mark.parametrize("many", [False, True])
def test_the_spider_has_a_spoke_for_each_of_many_agents(many):
    agents = ("naive", "lwf", "ewc", "si", "dgr")[: 5 if many else 2]
    averages = ("Accuracy", "BWT", "FWT", "Over-all accuracy")
    found = [
        {"axis": axis, "metric": axis, "agent": a, **estimate(0.1 * i + 0.01 * k)}
        for i, a in enumerate(agents) for k, axis in enumerate(averages)
    ]  # fmt: skip
    with style.drawing():
        study = SimpleNamespace(agent_styles=agent_styles(agents))
        figure = benchmarks.spider(study, shown("spider", found))
    (axes,) = figure.axes
    assert [t.get_text() for t in axes.get_xticklabels()] == list(agents if many else averages)
    lines = [line.get_ydata()[:-1].tolist() for line in axes.lines]
    rows = [[0.1 * i + 0.01 * k for k in range(4)] for i in range(len(agents))]
    assert lines == pytest.approx(np.transpose(rows) if many else np.array(rows))
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == list(averages if many else agents)


def test_unknown_formats_are_refused_before_anything_is_drawn(study, tmp_path):
    with pytest.raises(StoreError, match="'gif' unknown, expected some of pdf, svg, png"):
        write_figures(study, tmp_path / "f", formats=("png", "gif"))
    assert not (tmp_path / "f").exists()


def test_small_things():
    assert [style.thousands(v) for v in (0, 950, 3000, 1.25e6, 2e9)] == [
        "0", "950", "3k", "1.25M", "2G",
    ]  # fmt: skip
    assert style.short("a" * 40, 10) == "aaaaa…aaaa" and style.short("x\u202ey") == "x[U+202E]y"
    assert style.slugged("../ewc+ppo é") == "..-ewc+ppo--"
    assert style.short_names(["toy/a", "toy/b"]) == {"toy/a": "a", "toy/b": "b"}
    assert style.short_names(["toy/a", "gym/b"]) == {"toy/a": "toy/a", "gym/b": "gym/b"}
    assert table_bytes([{"a": nan, "b": [1, "x"], "c": 0.1, "d": None}]) == b"a,b,c,d\n,1;x,0.1,\n"


def test_importing_draws_nothing_in():
    code = (
        "import sys, perdure.show.figures\n"
        "assert not {'matplotlib', 'torch', 'gymnasium'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
