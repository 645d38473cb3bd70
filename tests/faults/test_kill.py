"""kill -9 at random moments of real ``perdure run`` processes, then run again: as if nothing
had happened."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest
from helpers import (
    LIFE,
    Snapshot,
    arguments,
    committed,
    done,
    eventually,
    finish,
    moved,
    no_workers,
    plan_of,
    run_here,
    same,
    snapshot,
    spawn,
    workers_of,
)

from perdure.run.experiment import execute
from perdure.store.run import Run
from perdure.testing.agents import cut_journal

LONG = {"curriculum": f"{LIFE},steps=2700", "lifetimes": 2, "checkpoint": 60}
"""Two lifetimes of some 160 commits each, so that a busy machine that is slow to kill still hits them."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    out = tmp_path_factory.mktemp("long") / "run"
    done(run_here(out, **LONG))
    return snapshot(out)


def all_done(out: Path, lifetimes: int) -> bool:
    infos = Run(out).lifetimes()
    return len(infos) == lifetimes and all(i.status == "done" for i in infos)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_killed_at_random_moments(executor: str, expected: Snapshot, tmp_path: Path) -> None:
    out, rng = tmp_path / "run", random.Random(executor)
    args = arguments(out, executor=executor, **LONG)
    # While Python starts and the folder is made; later kills fall into the life itself.
    for delay in (0.4, 0.8):
        process = spawn(args)
        time.sleep(delay)
        process.kill()
        process.communicate()
        no_workers(out)
    hits = 0
    for _ in range(7):
        process, before = spawn(args), committed(out)
        eventually(lambda b=before, p=process: committed(out) > b or p.poll() is not None)
        time.sleep(rng.uniform(0, 0.12))
        process.kill()
        process.communicate()
        # The workers' parent is gone: they must not live on, and so hold no lock.
        no_workers(out)
        if all_done(out, 2):
            break
        hits += 1
    assert hits >= 3, "too fast to be hit: make the life longer"
    code, _, err = finish(args)
    assert code == 0, err
    same(out, expected)


@pytest.mark.slow
def test_killed_workers_are_replaced(expected: Snapshot, tmp_path: Path) -> None:
    """Only a worker is killed, again and again: the run itself replays it and ends well."""
    out, rng = tmp_path / "run", random.Random(3)
    process = spawn(arguments(out, executor="processes,retries=9", **LONG))
    hits = 0
    while hits < 4 and process.poll() is None:
        before = committed(out)
        eventually(lambda b=before: committed(out) > b or process.poll() is not None)
        time.sleep(rng.uniform(0, 0.1))
        for worker in workers_of(out)[:1]:
            worker.kill()
            hits += 1
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert hits >= 3
    no_workers(out)
    same(out, expected)


@pytest.mark.slow
def test_a_network_resumes_after_kill(tmp_path: Path) -> None:
    """The same with weights, an optimiser and a replay buffer to lose."""
    life = {"curriculum": f"{LIFE},steps=200", "agents": ["dqn,batch=16"], "checkpoint": 50}
    out, whole = tmp_path / "run", tmp_path / "whole"
    args = arguments(out, **life)
    process = spawn(args)
    eventually(lambda: committed(out) >= 5, 60, process)
    process.kill()
    process.communicate()
    assert not all_done(out, 1)
    code, _, err = finish(args)
    assert code == 0, err
    assert finish(arguments(whole, **life))[0] == 0
    same(out, snapshot(whole))


@pytest.mark.parametrize(
    ("curriculum", "envs"),
    [
        ("toy/until,threshold=0.9,chunk=60,budget=60", 1),
        ("toy/chosen,choices=2,steps=60", 3),
        ("toy/drift,steps=150", 2),
        ("toy/parallel,steps=60,episodes=6", 3),
        ("toy/deployed,before=50,steps=50", 1),
        (LIFE, 3),
    ],
)
def test_resumed_from_any_commit(curriculum: str, envs: int, tmp_path: Path) -> None:
    """Whatever a commit falls into (a chosen block, a continuing task, a probe), and however
    many environments stand side by side."""
    plan = plan_of(tmp_path / "whole", curriculum, envs=envs, checkpoint=70)
    done(execute(plan))
    expected = snapshot(plan.path)
    commits = len(expected["q/0"]["commits"])
    assert commits >= 3
    for k in sorted({1, 2, commits // 2, commits - 2, commits - 1}):
        mine = moved(plan, tmp_path / str(k))
        shutil.copytree(plan.path, mine.path)
        cut_journal(mine.path / "q/0", k)
        done(execute(mine))
        same(mine.path, expected)
