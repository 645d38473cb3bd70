"""Environments that hang, and environments that kill their process: a deadline, a clean
tear-down, a replay from the last commit, and an end to the patience."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest
from helpers import (
    LIVES,
    arguments,
    done,
    finish,
    no_workers,
    run_here,
    same,
    snapshot,
    statuses,
)
from lives import FAMILY

from perdure.errors import CurriculumError, SpecError
from perdure.run.executors import make_executor
from perdure.store.layout import LifetimeFolder
from perdure.store.lock import Lock

ONCE = ("step:hang", "reset:hang", "step:exit0", "step:exit1", "reset:exit3", "step:kill")
DEADLY = (*ONCE, "step:family")
SIGNS = {"hang": "no sign of life", "family": "no sign of life", "kill": "signal 9"}


def listed(faults: tuple[str, ...]) -> str:
    return "[" + ",".join(f'"{f}"' for f in faults) + "]"


def belongs_to_us(process: psutil.Process) -> bool:
    """What an environment left behind, in a worker of ours (runs beside us have their own)."""
    try:
        mine = process.environ().get("PERDURE_PARENT") == str(os.getpid())
        return mine and process.cmdline() == FAMILY
    except psutil.Error:
        return False


def sessions(out: Path, seed: int) -> int:
    """How often a lifetime was begun or resumed."""
    return len(LifetimeFolder(out / f"random/{seed}").sessions())


def test_lifetimes_that_never_get_over_it(tmp_path: Path) -> None:
    out, n = tmp_path / "run", len(DEADLY)
    began = time.monotonic()
    outcomes = run_here(
        out,
        f"{LIVES}:troubled,faults={listed(DEADLY)}",
        ["random"],
        lifetimes=n + 1,
        checkpoint=2,
        executor="processes,workers=4,deadline=5,retries=1",
    )
    assert time.monotonic() - began < 60
    no_workers(out, 0.1)
    assert not [p for p in psutil.process_iter() if belongs_to_us(p)], "the worker's family lives"
    assert sorted(o.job.seed for o in outcomes) == list(range(n + 1)), "each is reported once"
    for o in outcomes:
        assert not Lock.held(out / o.job.id / "_meta/lock")
        if o.job.seed == n:
            assert o.status == "done"
            continue
        how = DEADLY[o.job.seed].split(":")[1]
        assert o.status == "failed", o
        assert "2 times" in o.error
        assert SIGNS.get(how, f"exit code {how[4:]}") in o.error, o.error
        assert sessions(out, o.job.seed) == 2, "one retry"
        assert statuses(out)[o.job.id] == ("failed", o.error)


@pytest.mark.parametrize(
    ("executor", "faults"),
    [
        ("processes,workers=4,deadline=5,retries=1", ONCE),
        ("serial,deadline=1.5,retries=1", ONCE[:2]),
    ],
)
def test_lifetimes_that_get_over_it(executor: str, faults: tuple[str, ...], tmp_path: Path) -> None:
    """What went wrong once is played again from the last commit, to the same rows."""
    flags, n = tmp_path / "flags", len(faults)
    flags.mkdir()
    keys = {
        "curriculum": f'{LIVES}:troubled,faults={listed(faults)},flag="{flags}"',
        "agents": ["random"],
        "lifetimes": n,
        "checkpoint": 2,
    }
    out = tmp_path / "run"
    done(run_here(out, executor=executor, **keys))
    assert len(list(flags.iterdir())) == n, "every trouble came"
    assert [sessions(out, k) for k in range(n)] == [2] * n
    no_workers(out, 0.1)
    done(run_here(tmp_path / "undisturbed", **keys))
    same(out, snapshot(tmp_path / "undisturbed"))


def test_hanging_for_good_in_this_process(tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, _, err = finish(
        arguments(
            out,
            f"{LIVES}:troubled,faults={listed(ONCE[:2])}",
            ["random"],
            lifetimes=3,
            executor="serial,deadline=1.5,retries=1",
        )
    )
    assert code == 1, err
    found = statuses(out)
    for seed in range(2):
        status, error = found[f"random/{seed}"]
        assert status == "failed" and "no sign of life for 1.5 s, 2 times" in error
        assert sessions(out, seed) == 2
    assert found["random/2"][0] == "done"
    assert "2 of 3 lifetimes failed" in err


def test_hanging_while_it_is_torn_down(tmp_path: Path) -> None:
    """The alarm rings again for an environment that hangs in close after it hung in step."""
    out = tmp_path / "run"
    began = time.monotonic()
    (outcome,) = run_here(
        out,
        f'{LIVES}:troubled,faults=["step:stuck"]',
        ["random"],
        executor="serial,deadline=1,retries=0",
    )
    assert outcome.status == "failed" and "no sign of life" in outcome.error
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("who", ["serial", "processes"])
@pytest.mark.parametrize(
    "option",
    ["deadline=0.4", "deadline=nan", "deadline=inf", "deadline=soon", "deadline=true",
     "retries=-1", "retries=1.5", "retries=x", "deadline=[1]"],
)  # fmt: skip
def test_impossible_patience_is_refused(who: str, option: str) -> None:
    with pytest.raises(SpecError, match=f"{who}: {option.split('=')[0]} must be"):
        make_executor(f"{who},{option}")


@pytest.mark.parametrize("option", ["workers=-1", "workers=two", "workers=1.5", "workers=true"])
def test_impossible_numbers_of_workers_are_refused(option: str) -> None:
    with pytest.raises(SpecError, match="processes: workers must be a whole number"):
        make_executor(f"processes,{option}")


def test_hanging_while_the_run_is_planned(tmp_path: Path) -> None:
    """Planning makes every environment and closes it: that has a deadline too."""
    began = time.monotonic()
    with pytest.raises(CurriculumError, match="PerdureTroubled-v0 hangs while the run is planned"):
        run_here(tmp_path, f"{LIVES}:closing", ["random"], executor="serial,deadline=1.5,retries=0")
    assert time.monotonic() - began < 20
