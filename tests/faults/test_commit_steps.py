"""kill -9 between each two steps of a commit, and half-way through each write."""

from __future__ import annotations

import os
import posix
import random
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import (
    LIFE,
    Snapshot,
    contents,
    disk_calls,
    done,
    moved,
    plan_of,
    same,
    snapshot,
    told,
)

from perdure.run import lifetime
from perdure.run.experiment import execute
from perdure.run.plan import Plan
from perdure.store.log import Lifetime, LifetimeLog, sizes_of


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    made = plan_of(tmp_path_factory.mktemp("steps") / "run", f"{LIFE},steps=24", checkpoint=60)
    return moved(made, made.path)


@pytest.fixture(scope="module")
def expected(plan: Plan) -> Snapshot:
    done(execute(plan))
    found = snapshot(plan.path)
    assert len(found["q/0"]["commits"]) >= 3
    return found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking git for the revision is most of what a tiny life costs."""
    monkeypatch.setattr(lifetime, "git_revision", lambda: None)


def killed_at(plan: Plan, k: int, halves: bool = False) -> bool:
    """Run in a fork that kills itself before its k-th call, or half-way through its k-th write;
    whether it came so far."""

    def before(name: str, args: tuple[Any, ...]) -> None:
        nonlocal k
        if halves and name != "write":
            return
        k -= 1
        if k == 0:
            if halves:
                posix.write(args[0], args[1][: len(args[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

    def run() -> None:
        with disk_calls(before, plan.path):
            done(execute(plan))

    code = in_fork(run)
    assert code in (0, -signal.SIGKILL)
    return code != 0


def in_fork(run: Callable[[], None]) -> int:
    """Exit code (negative: signal) of a function run in a fork of this process."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        run()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(99)


def sound(plan: Plan, expected: Snapshot) -> None:
    """What counts as committed after a kill is a beginning of the undisturbed life, and whole:
    nothing is missing, torn or damaged. Opening leaves nothing else."""
    folder = plan.path / "q/0"
    life = Lifetime.read(folder, verify=True)
    assert not life.notes, life.notes
    assert [told(c) for c in life.commits] == expected["q/0"]["commits"][: len(life.commits)]
    assert life.entries == len(life.commits) + len(life.sessions), "a commit was lost"
    for c in life.commits:
        life.load_state(c)
    if folder.exists():
        LifetimeLog(folder, "q", 0).close()
        named = {c.rows for c in life.commits} | {n for c in life.commits for n in sizes_of(c)}
        left = {f"{p}/{n}" for p in ("rows", "_ckpt", "_parts") for n in contents(folder / p)}
        assert left == named
        assert not list(folder.rglob("*.tmp"))


@pytest.mark.slow
def test_killed_before_every_call(plan: Plan, expected: Snapshot, tmp_path: Path) -> None:
    k = 0
    while True:
        k += 1
        mine = moved(plan, tmp_path / str(k))
        if not killed_at(mine, k):
            break
        sound(mine, expected)
        done(execute(mine))
        same(mine.path, expected)
    assert k > 80, "the calls are no longer seen"


@pytest.mark.slow
def test_killed_in_the_middle_of_every_write(
    plan: Plan, expected: Snapshot, tmp_path: Path
) -> None:
    k = 0
    while True:
        k += 1
        mine = moved(plan, tmp_path / str(k))
        if not killed_at(mine, k, halves=True):
            break
        sound(mine, expected)
        done(execute(mine))
        same(mine.path, expected)
    assert k > 12, "the writes are no longer seen"


def test_killed_again_and_again_while_repairing(
    plan: Plan, expected: Snapshot, tmp_path: Path
) -> None:
    """Each life is killed early in every resume, often before it has repaired anything."""
    rng = random.Random(5)
    for trial in range(5):
        mine = moved(plan, tmp_path / str(trial))
        kills = 0
        while kills < 12 and killed_at(mine, rng.randint(1, 60)):
            kills += 1
            sound(mine, expected)
        assert kills
        done(execute(mine))
        same(mine.path, expected)
