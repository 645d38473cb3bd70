"""What people see while a run runs, from its files alone."""

import io
import json
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

import perdure
from perdure.show.live import Watcher, final_score, parallel, watch
from perdure.show.rounding import seconds
from perdure.show.summary import by_task, summarise
from perdure.store.history import read_run
from perdure.store.layout import LifetimeFolder
from perdure.testing.agents import cut_journal


def text(renderable, width=140):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))
    console.print(renderable)
    return console.export_text()


@pytest.fixture
def run(tmp_path):
    return perdure.experiment(
        "toy/compass,steps=50,episodes=2", ["q"], lifetimes=3, out=str(tmp_path / "x"),
        executor="serial",
    )  # fmt: skip


def everything(folder):
    """Every file with its bytes and when it was changed."""
    return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}


def test_seconds():
    assert [seconds(s) for s in (None, 5, 65, 3700)] == ["–", "5 s", "1:05 min", "1:01 h"]


def test_a_finished_run_and_one_in_every_state(run):
    group, ended = Watcher(run.path).look()
    shown = text(group)
    assert ended and "3 done" in shown and "100%" in shown and "ended after" in shown
    assert "q/2" in shown and "at the end, 3 tasks" in shown and "success" in shown
    # One that failed, one that was interrupted, one not yet begun.
    cut_journal(run.path / "q/0", 0)
    LifetimeFolder(run.path / "q/0").write_error(f"boom{60 * '!'}\x1b[31m")
    cut_journal(run.path / "q/1", 0)
    run.folder.write_jobs({**run.folder.jobs(), "q/9": 1.0})
    shown = text(Watcher(run.path).look(80)[0])
    assert f"q/0: boom{60 * '!'}[U+001B][31m" in shown
    for words in ("1 done", "1 failed", "1 interrupted", "1 waiting", "q/0", "q/1", "boom"):
        assert words in shown
    states = {i.id: (i.status, i.error) for i in run.lifetimes()}
    assert {**states, "q/0": states["q/0"][0]} == {
        "q/0": "failed",
        "q/1": ("interrupted", ""),
        "q/2": ("done", ""),
    }


def test_the_final_score_is_the_mean_over_tasks_of_the_last_evaluation(run):
    rows = [r for r in run.rows().to_pylist() if r["lifetime"] == 1 and r["block"] == 6]
    assert {r["kind"] for r in rows} == {"eval"} and len(rows) == 6
    by_hand = [sum(r["success"] for r in rows if r["task"] == t) / 2 for t in
               ("toy/goal-ne", "toy/goal-sw", "toy/goal-nw")]  # fmt: skip
    assert final_score(LifetimeFolder(run.path / "q/1")) == (
        pytest.approx(sum(by_hand) / 3),
        "success",
        3,
    )
    (run.path / "q/1/rows/00000.parquet").write_bytes(b"PAR1 broken")
    assert final_score(LifetimeFolder(run.path / "q/1")) is None


def test_the_final_score_of_a_block_that_ends_over_several_segments(tmp_path):
    keys = {"agents": ["q"], "executor": "serial"}
    parts = perdure.experiment("toy/compass,steps=50,episodes=9", out=str(tmp_path / "a"),
                               checkpoint=60, **keys)  # fmt: skip
    whole = perdure.experiment("toy/compass,steps=50,episodes=9", out=str(tmp_path / "b"), **keys)
    assert len(list((parts.path / "q/0/rows").iterdir())) > 5
    assert final_score(LifetimeFolder(parts.path / "q/0")) == final_score(
        LifetimeFolder(whole.path / "q/0")
    )


def test_time_is_that_of_the_run_not_of_the_watcher(run):
    """Pauses between sessions do not count, lifetimes side by side count once."""
    day = 86_400.0
    for job, sessions, last in (
        ("q/0", [{"started": 0.0}, {"started": day, "previous_end": 100.0}], day + 40.0),
        ("q/1", [{"started": 50.0}], 120.0),
        ("q/2", [{"started": day + 30.0}], day + 60.0),
    ):
        meta = run.path / job / "_meta"
        for k, session in enumerate(sessions):
            LifetimeFolder(run.path / job).write_session(k, session)
        (meta / "sessions/00009.json").write_text('{"started": 17')
        (meta / "progress.json").write_text(json.dumps({"time": last, "fraction": 1.0}))
    folder = LifetimeFolder(run.path / "q/0")
    assert folder.worked(day + 40.0) == ((0.0, 100.0), (day, day + 40.0))
    # 0–100 and 50–120, then 0–40 and 30–60 of the next day.
    assert "ended after 3:00 min" in text(Watcher(run.path).look()[0])
    assert parallel([]) == 0.0 and parallel([(0.0, 2.0), (1.0, 5.0), (9.0, 9.0)]) == 5.0


def test_a_session_writes_down_when_the_one_before_ended(tmp_path):
    out = str(tmp_path / "x")
    keys = {"agents": ["q"], "executor": "serial", "out": out}
    run = perdure.experiment("toy/compass,steps=50,episodes=2", **keys)
    folder = LifetimeFolder(run.path / "q/0")
    (run.path / "q/0/_meta/progress.json").write_text('{"time": 1234.0}')
    cut_journal(folder.path, 0)
    perdure.experiment("toy/compass,steps=50,episodes=2", **keys)
    assert [x["previous_end"] for x in folder.sessions()] == [None, 1234.0]


def test_watching_from_another_process_while_it_runs(tmp_path):
    """State, block, task, running score, rate and ETA; then that it was stopped; nothing touched."""
    out = tmp_path / "x"
    command = [sys.executable, "-m", "perdure", "run", "toy/compass,steps=50000000,episodes=5", "-a",
               "q", "-o", str(out), "-q", "--executor", "serial"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    watcher = Watcher(out)
    try:
        end = time.monotonic() + 60
        while True:
            shown = text(watcher.look()[0])
            if "running" in shown and "learn toy/goal-" in shown and "ETA –" not in shown:
                break
            assert process.poll() is None and time.monotonic() < end, shown
            time.sleep(0.05)
        row = next(line for line in shown.splitlines() if line.startswith("q/0"))
        assert "success" in row and "/s" in row and "/7" in row
        process.terminate()
        process.wait(60)
    finally:
        process.kill()
        process.wait()
    before = everything(out)
    group, _ = watcher.look()
    assert "1 interrupted" in text(group) and everything(out) == before


def test_a_lifetime_on_another_machine_lives_while_its_progress_changes(run, monkeypatch):
    """Its lock cannot be seen from here; its clock may be wrong."""
    meta = run.path / "q/0/_meta"
    cut_journal(run.path / "q/0", 0)
    progress = {"time": 1000.0, "fraction": 0.5, "host": "far-away"}
    (meta / "progress.json").write_text(json.dumps(progress))
    watcher = Watcher(run.path)
    assert "1 interrupted" in text(watcher.look()[0])
    (meta / "progress.json").write_text(json.dumps({**progress, "time": 1000.5}))
    assert "1 running" in text(watcher.look()[0])
    later = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: later)
    assert "1 interrupted" in text(watcher.look()[0])


def test_names_from_files_cannot_write_to_the_terminal(run):
    cut_journal(run.path / "q/0", 0)
    evil = {"task": "\x1b[2J\x1b]0;x\x07 [bold]\u202egoal", "kind": "learn", "score": 0.5,
            "measure": "\x1b[31m", "time": 0.0}  # fmt: skip
    (run.path / "q/0/_meta/progress.json").write_text(json.dumps(evil))
    (run.path / "q/1/_meta/progress.json").write_text("[1, 2]")
    out = io.StringIO()
    watch(run.path, Console(file=out, width=200, force_terminal=False))
    shown = out.getvalue()
    assert "\x1b" not in shown and "\x07" not in shown and "\u202e" not in shown
    assert "[bold]" in shown


def test_narrow_terminals_get_fewer_columns_but_the_essential_ones(run):
    wide, narrow = (text(Watcher(run.path).look(w)[0], w) for w in (140, 80))
    assert "steps" in wide and "steps" not in narrow
    row = next(line for line in narrow.splitlines() if line.startswith("q/0"))
    assert "done" in row and "7/7" in row and "success" in row


def test_the_summary_has_n_and_says_what_was_forgotten(tmp_path, capsys):
    run = perdure.experiment(
        "toy/compass,steps=1500,episodes=10", ["q", "random"], lifetimes=2,
        out=str(tmp_path / "x"), executor="serial",
    )  # fmt: skip
    table, numbers = summarise(run)
    assert numbers["q"]["acquired"] > 0.9 and numbers["q"]["forgetting"] > 0.4
    assert abs(numbers["random"]["forgetting"]) < 0.35
    table.show()
    by_task(run).show()
    shown = capsys.readouterr().out
    assert "success" in shown and "goal-sw" in shown and "forgetting ↓" in shown and "[" in shown


MIXED = """
from perdure.types import Curriculum, Exposure, Task, evaluate, learn

def mixed():
    ne, sw, se, nw = (Exposure(Task("toy", f"goal-{at}"), 2) for at in ("ne", "sw", "se", "nw"))
    seen = evaluate(ne, sw)
    blocks = [
        learn(ne, sw, parallel=True), seen, seen, learn(sw), learn(ne), seen,
        learn(ne, sw, se, nw), seen,
    ]
    return Curriculum("mixed", blocks)
"""


def test_rows_are_named_by_all_that_was_learned_since_the_last(tmp_path):
    (tmp_path / "mixed.py").write_text(MIXED)
    run = perdure.experiment(
        f"{tmp_path}/mixed.py:mixed", "random", lifetimes=4, out=str(tmp_path / "x"),
        executor="serial",
    )  # fmt: skip
    # Which of two tasks side by side ends an episode first is chance.
    assert len({h.tasks for h in read_run(run)}) > 1
    sheet = by_task(run)
    both, again, last, *more = (row[1] for row in sheet.rows)
    assert set(both.split(" and ")) == {"goal-ne", "goal-sw"}
    # Before the second evaluation nothing new is learned.
    assert (again, last, more) == (both, "goal-sw and goal-ne", ["4 tasks"])
    # Each column is of one task in all lifetimes.
    for name, cell in zip(sheet.head[2:], sheet.rows[-1][2:], strict=True):
        ends = []
        for h in read_run(run):
            last = (h.block == h.block.max()) & (h.task == h.tasks.index(f"toy/{name}"))
            ends.append(h.values("success")[last].mean() if last.any() else np.nan)
        assert cell == ("–" if np.isnan(ends).any() else f"{np.mean(ends):.2f}")


def test_at_80_columns_nothing_wraps_whatever_the_names(run):
    """Long names of lifetimes, tasks, measures and folders keep their columns."""
    for k, doing in enumerate(
        ("metaworld/a-task-of-a-long-name, metaworld/another", "toy/goal-ne")
    ):
        cut_journal(run.path / f"q/{k}", 0)
        LifetimeFolder(run.path / f"q/{k}").write_progress(
            {"kind": "video", "videos": "12/30", "task": doing, "block": 98, "blocks": 120,
             "fraction": 0.5, "eta": 359_999.0, "score": -1234.5, "measure": "a_long_measure_of_one"}
        )  # fmt: skip
    long = f"{'very-' * 8}long/0"
    agents = {**run.spec["agents"], long.partition("/")[0]: "q"}
    run.folder.write_spec({**run.spec, "agents": agents})
    run.folder.write_jobs({**run.folder.jobs(), long: 1.0})
    LifetimeFolder(run.path / long).write_error("x" * 300)
    lines = text(Watcher(run.path).look(80)[0], 80).splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("lifetime")) :]
    rows = {line.split()[0]: line for line in table if line[:2] == "q/"}
    assert sorted(rows) == ["q/0", "q/1", "q/2"] and all(len(line) <= 80 for line in lines)
    assert "recording 12/30 a-task" in rows["q/0"] and "recording 12/30 goal-ne" in rows["q/1"]
    assert "success" in rows["q/2"]
    # The clock is whole, on a line of its own where it does not fit.
    assert any("elapsed" in line and "ETA" in line for line in lines)
