"""Several runs started together in one folder: each ends well, and the plan is that of all."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers import arguments, done, run_here, same, snapshot, spawn
from rich.console import Console

from perdure.run.plan import load_plan
from perdure.show.live import Watcher
from perdure.store.layout import RunFolder

MANY = 8
BARRIER = f"""
import os, time
from pathlib import Path
from perdure.types import Curriculum, Exposure, Task, evaluate, learn

def life():
    '''Planned when all are planning.'''
    here = Path({{here!r}})
    (here / str(os.getpid())).touch()
    while len(list(here.iterdir())) < {MANY}:
        time.sleep(0.005)
    task = Task("toy", "goal-ne", params={{{{"size": 3, "horizon": 9}}}})
    return Curriculum("together", (learn(Exposure(task, 20, "steps")), evaluate(Exposure(task, 2))))
"""


@pytest.mark.parametrize("executor", ["serial", "processes,workers=1"])
def test_eight_at_once(executor: str, tmp_path: Path) -> None:
    """Different agents, and different numbers of lifetimes."""
    here, out, file = tmp_path / "here", tmp_path / "run", tmp_path / "life.py"
    here.mkdir()
    file.write_text(BARRIER.format(here=str(here)))
    wanted = {f"a{k}": 1 + k % 3 for k in range(MANY)}
    runs = [
        spawn(arguments(out, f"{file}:life", [f"{a}=q"], executor=executor, lifetimes=n))
        for a, n in wanted.items()
    ]
    for run in runs:
        said = run.communicate(timeout=120)
        assert run.returncode == 0, said
    expected = {f"{a}/{seed}" for a, n in wanted.items() for seed in range(n)}
    assert RunFolder(out).jobs().keys() == expected
    plan = load_plan(out)
    assert plan.agents.keys() == wanted.keys() and plan.spec.lifetimes == max(wanted.values())
    shown = io.StringIO()
    group, ended = Watcher(out).look(200)
    Console(file=shown, width=200).print(group)
    assert ended and f"{len(expected)} done" in shown.getvalue()
    done(run_here(tmp_path / "alone", f"{file}:life", [f"{a}=q" for a in wanted], lifetimes=3))
    alone = snapshot(tmp_path / "alone")
    same(out, {life: alone[life] for life in expected})


def test_the_code_of_all_who_plan_at_once_is_kept(tmp_path: Path) -> None:
    """Who writes it has read what the others wrote."""
    record = {"agent": {"a.py": "1"}, "world": {"b.py": "2"}, "versions": {"python": "3"}}
    agents = [f"a{k}" for k in range(32)]
    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(lambda agent: RunFolder(tmp_path).write_code({agent: record}), agents))
    assert [a for a in agents if RunFolder(tmp_path).code(a) != record] == []


def test_what_is_planned_only_grows(tmp_path: Path) -> None:
    """A smaller run in the folder of a larger one does not make it look finished."""
    out = tmp_path / "run"
    run_here(out, "toy/check", ["random"], lifetimes=3)
    run_here(out, "toy/check", ["q"], lifetimes=1)
    assert set(RunFolder(out).jobs()) == {"random/0", "random/1", "random/2", "q/0"}


def test_a_run_that_is_planned_already_is_not_written_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_here(out, "toy/check", ["random"])
    before = {p: p.stat().st_mtime_ns for p in (out / "_meta").iterdir()}
    run_here(out, "toy/check", ["random"])
    assert {p: p.stat().st_mtime_ns for p in (out / "_meta").iterdir()} == before
