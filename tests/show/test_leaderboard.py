"""Runs of one curriculum ranked: order, ties, groups, and names that mean harm."""

import contextlib
import io
import re
import shutil
from math import nan

import numpy as np
import pytest
from scipy import stats

import perdure
from perdure.errors import MeasureError, UnknownName
from perdure.measure.metric import Metric, metric
from perdure.measure.stats import Estimate
from perdure.show.leaderboard import (
    DEFAULT,
    Board,
    Cell,
    RankedAgent,
    Ranking,
    _placed,
    leaderboard,
)
from perdure.show.leaderboard_page import html, place_text, remarks, table
from perdure.store.layout import LifetimeFolder, runs_below
from perdure.testing.agents import cut_journal

LIFE = """
from perdure import Curriculum, Exposure, Task, curricula, evaluate, learn

def shuffled(seed: int = 0, steps: int = 40):
    tasks = [Task("toy", f"goal-{c}") for c in ("ne", "sw", "nw", "se")]
    blocks = curricula.permute([learn(Exposure(t, steps, "steps")) for t in tasks], seed)
    return Curriculum("shuffled", curricula.interleave(blocks, evaluate(*(Exposure(t, 2) for t in tasks))))
"""


def shown(ranking):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        table(ranking).show()
    return out.getvalue()


def make(out, curriculum="toy/compass,steps=800,episodes=6", agents=("q", "random"), **keys):
    keys = {"lifetimes": 3, "executor": "serial", **keys}
    return perdure.experiment(curriculum, agents, out=str(out), **keys)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs of one curriculum, one of another, and things that are no runs."""
    root = tmp_path_factory.mktemp("board")
    make(root / "a", agents=["q"], experts=True)
    make(root / "deep/er/b", agents=["random", "q"])
    make(root / "c", "toy/compass,steps=100,episodes=6", ["random"], lifetimes=1)
    (root / "notes").mkdir()
    (root / "notes/spec.json").write_text("{}")
    return root


def test_all_runs_are_found_and_grouped_by_curriculum(folder):
    assert [p.relative_to(folder).as_posix() for p in runs_below(folder)] == ["a", "c", "deep/er/b"]
    board = leaderboard(folder)
    big, small = board.rankings
    assert {(e.run, e.agent) for e in big.entries} == {
        ("a", "q"), ("deep/er/b", "q"), ("deep/er/b", "random"),
    }  # fmt: skip
    assert [(e.run, e.agent, e.n) for e in small.entries] == [("c", "random", 1)]
    assert big.fingerprint != small.fingerprint and big.curriculum == small.curriculum
    assert big.outline == ("3 tasks, 7 blocks, learning 2,400 steps, evaluation 72 episodes")
    assert big.measure == "success"


def test_the_numbers_are_means_with_bounded_intervals_over_lifetimes(folder):
    ranking = leaderboard(folder).rankings[0]
    run = perdure.Run(folder / "a")
    rows = [r for r in run.rows().to_pylist() if r["block"] == 6]
    finals = []
    for seed in range(3):
        mine = [r for r in rows if r["lifetime"] == seed]
        tasks = sorted({r["task"] for r in mine})
        finals.append(
            np.mean([np.mean([r["success"] for r in mine if r["task"] == t]) for t in tasks])
        )
    entry = next(e for e in ranking.entries if e.run == "a")
    found = entry.cells["summary.final"].estimate
    assert found.value == pytest.approx(np.mean(finals)) and found.n == entry.n == 3
    # Wilson's with Student's t, and the observations that would have the standard error.
    mean, t2 = np.mean(finals), stats.t.ppf(0.975, 2) ** 2
    count = mean * (1 - mean) / stats.sem(finals) ** 2
    half = np.sqrt(t2 * mean * (1 - mean) / count + (t2 / (2 * count)) ** 2)
    low, high = ((mean + t2 / (2 * count) + sign * half) / (1 + t2 / count) for sign in (-1, 1))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert [m.name for m in ranking.metrics] == [
        "summary.final", "summary.forgetting", "l2m.pm", "l2m.ft", "l2m.bt", "l2m.rp", "l2m.se",
    ]  # fmt: skip
    # Only one of the runs has experts.
    assert not np.isnan(entry.cells["l2m.rp"].estimate.value)
    other = next(e for e in ranking.entries if e.run != "a" and e.agent == "q")
    assert np.isnan(other.cells["l2m.rp"].estimate.value)
    assert "expert" in other.cells["l2m.rp"].reason
    assert any("l2m.rp" in line and "expert" in line for line in remarks(ranking))
    # The same agent under the same seeds is the same, whichever run it is of.
    assert other.cells["summary.final"].estimate == found


def entries(*spans):
    """Entries with these (value, low, high) of the metric m.m."""
    return [
        RankedAgent(f"a{i}", "r", "", "", (0, 1, 2), {"m.m": Cell(Estimate(v, lo, hi, 3, 0, ""))})
        for i, (v, lo, hi) in enumerate(spans)
    ]


def places(found):
    return [(e.agent, e.place, e.best, e.worst) for e in found]


HIGH = Metric("m.m", "", "higher", (), lambda life: 0.0)
LOW = Metric("m.m", "", "lower", (), lambda life: 0.0)


def test_places_and_what_overlapping_intervals_leave_open():
    found = entries((0.5, 0.4, 0.6), (0.9, 0.8, 1.0), (0.55, 0.45, 0.65), (nan, nan, nan))
    assert places(_placed(found, HIGH)) == [
        ("a1", 1, 1, 1), ("a2", 2, 2, 3), ("a0", 3, 2, 3), ("a3", 0, 0, 0),
    ]  # fmt: skip
    assert [place_text(e) for e in _placed(found, HIGH)] == ["1", "2 (2–3)", "3 (2–3)", "–"]
    assert places(_placed(found, LOW)) == [
        ("a0", 1, 1, 2), ("a2", 2, 1, 2), ("a1", 3, 3, 3), ("a3", 0, 0, 0),
    ]  # fmt: skip
    # Equal means share a place; a single lifetime has no interval and leaves all places open.
    found = entries((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), (0.1, 0.1, 0.1), (0.2, nan, nan))
    assert places(_placed(found, HIGH)) == [
        ("a0", 1, 1, 3), ("a1", 1, 1, 3), ("a3", 3, 1, 4), ("a2", 4, 3, 4),
    ]  # fmt: skip


def test_who_acts_at_random_is_a_reference_without_a_place(folder):
    board = leaderboard(folder)
    first, small = board.rankings
    # Both runs of q are the same agent under the same seeds.
    assert [(e.agent, e.chance, e.place) for e in first.entries] == [
        ("q", False, 1), ("q", False, 1), ("random", True, 0),
    ]  # fmt: skip
    assert max(e.worst for e in first.entries) == 2, "it takes no place from others either"
    assert not small.entries[0].place, "and it wins nothing where it is alone"
    row = table(first).rows[-1]
    assert row[0] == "–" and row[1] == "random (reference)"
    assert "a reference, without a place" in html(board)


def test_one_curriculum_may_be_chosen_by_name_or_fingerprint(folder):
    every = leaderboard(folder).rankings
    chosen = leaderboard(folder, curriculum=every[1].fingerprint[:6]).rankings
    assert [r.fingerprint for r in chosen] == [every[1].fingerprint]
    assert len(leaderboard(folder, curriculum="toy/compass").rankings) == 2
    with pytest.raises(UnknownName, match="did you mean 'toy/compass'"):
        leaderboard(folder, curriculum="toy/compas")


def test_a_metric_of_ones_own_may_decide(folder):
    @metric("mine.blocks", better="lower")
    def blocks(life):
        """How many blocks."""
        return float(life.history.seed)

    ranking = leaderboard(folder, [blocks, *DEFAULT]).rankings[0]
    assert {e.cells["mine.blocks"].estimate.value for e in ranking.entries} == {1.0}
    assert {e.place for e in ranking.entries if not e.chance} == {1}
    assert "mine.blocks ↓" in shown(ranking)


def test_curricula_that_vary_by_seed_belong_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "life.py").write_text(LIFE)
    make("runs/a", "life.py:shuffled", ["q"])
    make("runs/b", "life.py:shuffled", ["random"], lifetimes=2, seed=1)
    make("runs/c", "life.py:shuffled,steps=50", ["random"])
    board = leaderboard(tmp_path / "runs")
    assert [[e.run for e in r.entries] for r in board.rankings] in (
        [["a", "b"], ["c"]], [["b", "a"], ["c"]],
    )  # fmt: skip
    assert board.rankings[0].varies and "varies by seed" in shown(board.rankings[0])


def test_what_is_not_in_a_number_is_listed(folder, tmp_path):
    shutil.copytree(folder / "deep/er/b", tmp_path / "b")
    cut_journal(tmp_path / "b/q/1", 0)
    LifetimeFolder(tmp_path / "b/q/1").write_error("boom")
    (tmp_path / "b/q/2/rows/00000.parquet").write_bytes(b"broken")
    (ranking,) = leaderboard(tmp_path).rankings
    assert set(ranking.failed) == {"b/q/1", "b/q/2"}
    said = "\n".join(remarks(ranking))
    assert "boom" in said and "b/q/2" in said and "damaged" in said
    assert {e.agent: e.n for e in ranking.entries} == {"q": 1, "random": 3}
    assert "boom" in html(Board(tmp_path, (ranking,)))


def test_protocols_that_differ_are_said(tmp_path):
    make(tmp_path / "a", "toy/compass,steps=60,episodes=2", ["q"], lifetimes=1)
    make(
        tmp_path / "b",
        "toy/compass,steps=60,episodes=2",
        ["q"],
        lifetimes=1,
        envs=2,
        hide_tasks=True,
    )
    (ranking,) = leaderboard(tmp_path).rankings
    assert {e.protocol for e in ranking.entries} == {"envs 1, tasks shown", "envs 2, tasks hidden"}
    assert "envs 2, tasks hidden" in shown(ranking)


def test_nothing_to_rank_is_a_clear_error(tmp_path):
    with pytest.raises(MeasureError, match="no Perdure run"):
        leaderboard(tmp_path)
    with pytest.raises(MeasureError, match="not a folder"):
        leaderboard(tmp_path / "no")
    (tmp_path / "x/_meta").mkdir(parents=True)
    (tmp_path / "x/_meta/spec.json").write_text("{}")
    with pytest.raises(MeasureError, match="1 runs but no lifetime"):
        leaderboard(tmp_path)


def test_a_run_itself_may_be_given(folder):
    (ranking,) = leaderboard(folder / "a").rankings
    assert [e.run for e in ranking.entries] == ["a"]


EVIL = "</style><script>alert(1)</script>\"'&\u202e\x1b[31m[bold]"


def test_names_cannot_break_out(tmp_path):
    cell = Cell(Estimate(0.5, 0.4, 0.6, 3, 1, ""), EVIL)
    entry = RankedAgent(EVIL, EVIL, EVIL, EVIL, (1, 2, 3), {"m.m": cell}, 1, 1, 1)
    ranking = Ranking(EVIL, EVIL, False, EVIL, EVIL, 0.95, (HIGH,), (entry,), {EVIL: EVIL})
    page = html(Board(tmp_path, (ranking,)), title=EVIL)
    assert "<script" not in page and page.count("</style>") == 1
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e]", page)
    text = shown(ranking)
    assert "\x1b" not in text and "\u202e" not in text and "[bold]" in text


def test_the_page_stands_alone_and_a_browser_agrees(folder, tmp_path):
    page = html(leaderboard(folder))
    assert "default-src &#39;none&#39;" in page and "unsafe" not in page.partition("<style>")[0]
    assert not re.search(r"(src|href)=", page) and len(page) < 60_000
    (tmp_path / "board.html").write_text(page)
    sync = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium here")
    with sync.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 390, "height": 800})
        said = []
        tab.on("console", lambda m: said.append(m.text))
        tab.goto((tmp_path / "board.html").as_uri())
        assert tab.locator("table").count() == 2 and not said
        # The style of the page is in force, and nothing but tables scrolls sideways.
        assert (
            tab.evaluate("getComputedStyle(document.querySelector('.card')).borderRadius") != "0px"
        )
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        browser.close()
