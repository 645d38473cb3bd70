"""What people see while a run runs, from its files alone."""

import json

from rich.console import Console

import perdure
from perdure.show.live import Watcher, seconds
from perdure.show.summary import by_task, summarise


def text(renderable):
    console = Console(width=140, record=True, file=open("/dev/null", "w"))
    console.print(renderable)
    return console.export_text()


def test_seconds():
    assert [seconds(s) for s in (None, 5, 65, 3700)] == ["–", "5 s", "1:05 min", "1:01 h"]


def test_a_finished_run_and_one_in_every_state(tmp_path):
    run = perdure.experiment(
        "toy/compass,steps=50,episodes=2", ["q"], lifetimes=3, out=str(tmp_path / "x"),
        executor="serial",
    )  # fmt: skip
    group, ended = Watcher(run.path).look()
    assert ended and "3 done" in text(group) and "100%" in text(group)
    # One that failed, one that was interrupted, one not yet begun.
    meta = run.path / "q/0/_meta"
    lines = (meta / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (meta / "journal.jsonl").write_bytes(b"".join(lines[:-1]))
    (meta / "error.json").write_text(json.dumps({"error": "boom", "traceback": ""}))
    (run.path / "q/1/_meta/journal.jsonl").write_bytes(b"")
    jobs = json.loads((run.path / "_meta/jobs.json").read_text())
    (run.path / "_meta/jobs.json").write_text(json.dumps({**jobs, "q/9": 1.0}))
    shown = text(Watcher(run.path).look()[0])
    for words in ("1 done", "1 failed", "1 interrupted", "1 waiting", "q/0", "q/1"):
        assert words in shown
    states = {i.id: (i.status, i.error) for i in run.lifetimes()}
    assert states == {"q/0": ("failed", "boom"), "q/1": ("interrupted", ""), "q/2": ("done", "")}


def test_the_summary_has_n_and_says_what_was_forgotten(tmp_path):
    run = perdure.experiment(
        "toy/compass,steps=1500,episodes=10", ["q", "random"], lifetimes=2,
        out=str(tmp_path / "x"), executor="serial",
    )  # fmt: skip
    table, numbers = summarise(run)
    assert numbers["q"]["acquired"] > 0.9 and numbers["q"]["forgotten"] > 0.4
    assert abs(numbers["random"]["forgotten"]) < 0.35
    shown = text(table) + text(by_task(run))
    assert "success" in shown and "toy/goal-sw" in shown and "± " in shown
