"""SIGTERM and Ctrl-C: a clean exit that says how to resume, and nobody left behind."""

from __future__ import annotations

import shlex
import signal
import time
from pathlib import Path

import psutil
import pytest
from helpers import (
    LIFE,
    LIVES,
    Snapshot,
    arguments,
    committed,
    done,
    eventually,
    finish,
    no_workers,
    run_here,
    same,
    snapshot,
    spawn,
    statuses,
)

LONG = {"curriculum": f"{LIFE},steps=900", "lifetimes": 2, "checkpoint": 60}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    out = tmp_path_factory.mktemp("signals") / "run"
    done(run_here(out, **LONG))
    return snapshot(out)


@pytest.mark.parametrize("executor", ["serial", "processes"])
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_stopped(executor: str, signum: int, expected: Snapshot, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = spawn(arguments(out, executor=executor, **LONG))
    eventually(lambda: committed(out) >= 8, 20, process)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signum)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + signum, err
    assert "Traceback" not in err
    assert not [p for p in family if p.is_running()]
    no_workers(out)
    assert "interrupted" in {s for s, _ in statuses(out).values()}
    assert not [e for _, e in statuses(out).values() if e], "a stop is not a failure"
    # The line it prints is the command to give: give it.
    line = next(x for x in err.splitlines() if "To resume: " in x)
    program, *args = shlex.split(line.split("To resume: ")[1])
    assert program == "perdure"
    code, _, err = finish(args)
    assert code == 0, err
    same(out, expected)


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_stopped_in_a_hanging_environment(executor: str, tmp_path: Path) -> None:
    """Ctrl-C reaches a lifetime that waits for something that never comes."""
    out = tmp_path / "run"
    curriculum = f'{LIVES}:troubled,faults=["step:hang"]'
    process = spawn(arguments(out, curriculum, ["random"], executor=executor))
    eventually(lambda: list(out.glob("random/0/_meta/progress.json")))
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert time.monotonic() - began < 5
    no_workers(out)
