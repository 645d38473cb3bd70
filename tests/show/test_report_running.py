"""What the report shows of a run that is under way: from the plan, from signs of life, between commits."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from report_runs import describe, make_run, start_run, tasks_in_turn

from perdure import registry
from perdure.show.report import data, load, render
from perdure.show.report.running import running
from perdure.show.view import newest
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.log import Lifetime, LifetimeLog

TASKS = ("toy/a", "toy/b", "toy/c")


def read(path):
    return load([path], list(registry.metrics().values()))


@pytest.fixture
def planned(tmp_path):
    """A run of two agents that has not begun."""
    outline = describe("made/up", TASKS, 60, 5)["curriculum"]
    path = start_run(
        tmp_path / "run", agents={"x": "q", "y": "q"}, outline=outline, lifetimes=2, seed=0
    )
    RunFolder(path).write_jobs({"x/0": 1.0, "x/1": 1.0, "y/0": 1.0, "y/1": 1.0})
    return path


def begin(path, rows, *, committed, shown=0):
    """A lifetime that goes on for as long as its log is open."""
    log = LifetimeLog(path / "x" / "0", "x", 0)
    folder = LifetimeFolder(path / "x" / "0")
    about = {"format": 2, "agent": "q", "seed": 0, "expert": ""}
    folder.write_description(about | describe("made/up", TASKS, 60, 5))
    folder.write_progress(
        {"block": 2, "blocks": 7, "kind": "eval", "task": "toy/a", "fraction": 0.25, "eta": 90.0,
         "measure": "success"}
    )  # fmt: skip
    if committed:
        log.commit(rows[:committed], None, {})
    if shown:
        log.show(rows[committed:shown])
    return log


def test_before_anything_began_tasks_come_from_the_plan(planned):
    study = read(planned)
    assert study.tasks == TASKS and study.measure == ""
    page = render(study)
    assert "made/up: three tasks in turn" in page and "4 not begun" in page


def test_between_commits(planned):
    rows = tasks_in_turn(np.random.default_rng(0), TASKS)
    # 15 episodes before learning, 60 of learning a, then 15: of these 10 are shown, none committed.
    log = begin(planned, rows, committed=0, shown=85)
    before = newest([planned])
    study = read(planned)
    found = running(study)
    (life,) = found["lifetimes"]
    assert (life["status"], life["doing"], life["block"], life["eta"]) == (
        "running",
        "evaluating a",
        3,
        90.0,
    )
    a, b = life["tasks"][:2]
    now = [np.mean([r.success for r in rows[75:80]]), np.mean([r.success for r in rows[80:85]])]
    assert (a["learned"], a["last"]) == (now[0], now[0]) and a["evaluations"] == 2
    assert (b["learned"], b["last"], b["way"]) == (None, now[1], "yet")
    assert found["waiting"] == [{"agent": "x", "n": 1}, {"agent": "y", "n": 2}]
    assert {r["block"] for r in data.lifetime_curves(study)["evaluations"]} == {0, 2}
    assert not study.histories, "no number counts them"
    page = render(study)
    assert (
        "So far" in page
        and "failed" not in page.partition("<script")[0]
        and 'id="unmeasured"' not in page
    )
    # What is committed is not shown twice, and more of it is something new to see.
    log.commit(rows[:80], None, {})
    log.show(rows[80:90])
    assert newest([planned]) != before
    table = Lifetime.read(planned / "x/0", owner=("x", 0, "")).shown(["exp"])
    assert table["exp"].to_pylist() == list(range(90))
    # Rows shown by an older commit, or of another lifetime, do not count.
    log.commit(rows[80:95], None, {})
    assert len(Lifetime.read(planned / "x/0", owner=("x", 0, "")).shown(["exp"])) == 95
    LifetimeFolder(planned / "x/0").write_pending(b"PAR1 torn")
    assert len(Lifetime.read(planned / "x/0", owner=("x", 0, "")).shown(["exp"])) == 95
    log.close()
    (life,) = read(planned).lifetimes
    assert (life.status, life.error) == ("interrupted", "")


def test_a_lifetime_that_has_no_measure_yet(planned):
    rows = [
        r._replace(success=None, loss=1.0) for r in tasks_in_turn(np.random.default_rng(0), TASKS)
    ]
    log = begin(planned, rows, committed=5)
    study = read(planned)
    assert study.measure == "success", "as it says of itself"
    assert running(study)["tasks"] == [] and "So far" in render(study)
    log.close()


def test_a_finished_run_has_nothing_to_tell(tmp_path):
    study = read(make_run(tmp_path / "run"))
    assert running(study)["lifetimes"] == [] and 'id="live"' not in render(study)


def test_a_real_run_shows_rows_before_its_first_commit_and_none_after_its_end(tmp_path):
    out = tmp_path / "x"
    command = [sys.executable, "-m", "perdure", "run", "toy/compass,steps=300000,episodes=5", "-a", "q",
               "-o", str(out), "-q", "--executor", "serial", "--checkpoint", "100000000"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pending, end = out / "q/0/_meta/pending.rows", time.monotonic() + 60
    try:
        while not pending.exists():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        study = read(out)
        (history,) = study.unfinished.values()
        assert len(history) and history.tasks[0] == "toy/goal-ne"
        assert running(study)["lifetimes"][0]["tasks"][0]["evaluations"] == 1
        # Killed, it shows no more than what it committed: nothing.
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not read(out).unfinished
    finally:
        process.kill()
        process.wait()
    short = tmp_path / "y"
    subprocess.run([*command[:4], "toy/compass,steps=50,episodes=2", *command[5:8], str(short),
                    "-q", "--executor", "serial"], check=True, capture_output=True)  # fmt: skip
    assert not (short / "q/0/_meta/pending.rows").exists()
