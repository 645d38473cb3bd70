"""No space left, at every write: a typed error, nothing half-committed, and on it goes once
there is room."""

from __future__ import annotations

import errno
import os
import posix
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import (
    LIFE,
    Snapshot,
    arguments,
    disk_calls,
    done,
    finish,
    moved,
    plan_of,
    run_here,
    same,
    snapshot,
    statuses,
)

from perdure.errors import NoSpaceError
from perdure.run import lifetime
from perdure.run.experiment import execute
from perdure.run.plan import Plan
from perdure.store.log import Lifetime

NEEDS_SPACE = ("open", "write", "pwrite", "fsync", "replace", "link", "mkdir")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    made = plan_of(tmp_path_factory.mktemp("space") / "run", f"{LIFE},steps=24", checkpoint=90)
    return moved(made, made.path)


@pytest.fixture(scope="module")
def expected(plan: Plan) -> Snapshot:
    done(execute(plan))
    return snapshot(plan.path)


class Disk:
    """A disk that is full from its k-th use on (or only then). Writes still put down half."""

    def __init__(self, k: int, stays: bool) -> None:
        self.k, self.stays, self.refused = k, stays, 0

    def __call__(self, name: str, args: tuple[Any, ...]) -> None:
        reads = name == "open" and not args[1] & os.O_CREAT
        if name not in NEEDS_SPACE or reads:
            return
        self.k -= 1
        if self.k == 0 or (self.k < 0 and self.stays):
            self.refused += 1
            if name == "write":
                posix.write(args[0], args[1][: len(args[1]) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.slow
@pytest.mark.parametrize("stays", [True, False])
def test_full_at_every_write(
    stays: bool, plan: Plan, expected: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetime, "git_revision", lambda: None)
    k = 0
    while True:
        k += 1
        mine, disk = moved(plan, tmp_path / str(k)), Disk(k, stays)
        with disk_calls(disk, mine.path):
            try:
                outcomes = execute(mine)
            except NoSpaceError:
                outcomes = []  # Not even the specification could be written.
        if not disk.refused:
            done(outcomes)
            break
        for o in outcomes:
            if o.status == "done":  # What came after the last commit is a side file.
                assert Lifetime.read(mine.path / "q/0", verify=True).done
                continue
            assert o.status == "failed"
            assert o.error.startswith("NoSpaceError: no space left to write "), o.error
            assert "run the same command again" in o.error
        folder = mine.path / "q/0"
        life = Lifetime.read(folder, verify=True)
        assert not life.notes, f"something half-committed at {k}: {life.notes}"
        assert not list(mine.path.rglob("*.tmp")), "a temporary file takes up space"
        done(execute(mine))
        same(mine.path, expected)
    assert k > 50, "the writes are no longer seen"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of 400 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(folder)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"mounting a small disk is not permitted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_disk_that_is_really_full(executor: str, small_disk: Path, tmp_path: Path) -> None:
    keys = {"curriculum": f"{LIFE},steps=600", "lifetimes": 2, "executor": executor}
    out = small_disk / "run"
    code, _, err = finish(arguments(out, **keys))
    assert code == 1, err
    assert "NoSpaceError: no space left to write" in err
    assert "Traceback" not in err
    assert not list(small_disk.rglob("*.tmp"))
    assert {s for s, _ in statuses(out).values()} <= {"failed", "interrupted", "done"}
    subprocess.run(
        ["mount", "-o", "remount,size=50m", str(small_disk)], check=True, capture_output=True
    )
    code, _, err = finish(arguments(out, **keys))
    assert code == 0, err
    done(run_here(tmp_path / "whole", **{**keys, "executor": "serial"}))
    same(out, snapshot(tmp_path / "whole"))
