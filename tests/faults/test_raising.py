"""Agents and environments that raise: that lifetime has failed, in the original words, and the
others finish."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import LIVES, arguments, cli, done, finish, run_here, same, snapshot, statuses

from perdure.run.lifetime import Outcome
from perdure.store.layout import LifetimeFolder

WORDS = "broken on purpose, at left and right"
METHODS = ("constructor", "act", "learn", "observe", "enter", "leave", "choose", "state", "load")
PLACES = ("make", "reset", "step", "close")
KINDS = {"two": "TwoPart", "unpicklable": "Unpicklable"}
EXECUTORS = ("serial", "processes")


def failed_in_its_own_words(outcome: Outcome, folder: Path, how: str, where: str) -> None:
    assert outcome.status == "failed", outcome
    for text in (outcome.error, statuses(folder)[outcome.job.id][1]):
        assert KINDS[how] in text and WORDS in text, text
        assert where in text, f"{text!r} does not say where: {where}"
    assert statuses(folder)[outcome.job.id][0] == "failed"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_agents_that_raise(executor: str, tmp_path: Path) -> None:
    out, life = tmp_path / "run", f"{LIVES}:every_method"
    kinds = {m: list(KINDS)[k % 2] for k, m in enumerate(METHODS)}
    agents = [f"{m}={LIVES}:Touchy,where={m},how={how}" for m, how in kinds.items()]
    outcomes = run_here(out, life, ["q", *agents, f"sound={LIVES}:Touchy"], executor=executor)
    assert len(outcomes) == len(METHODS) + 2
    for o in outcomes:
        if o.job.agent in METHODS:
            where = "Touchy" if o.job.agent == "constructor" else f"Touchy.{o.job.agent}"
            failed_in_its_own_words(o, out, kinds[o.job.agent], where)
        else:
            assert o.status == "done", o
    alone = tmp_path / "alone"
    done(run_here(alone, life, ["q"]))
    assert snapshot(alone)["q/0"] == snapshot(out)["q/0"], "others were disturbed"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_environments_that_raise(executor: str, tmp_path: Path) -> None:
    out, faults = tmp_path / "run", [f"{p}:{h}" for p in PLACES for h in KINDS]
    written = "[" + ",".join(f'"{f}"' for f in faults) + "]"
    lifetimes = len(faults) + 1
    outcomes = run_here(
        out,
        f"{LIVES}:troubled,faults={written}",
        ["random"],
        lifetimes=lifetimes,
        executor=executor,
        checkpoint=10,
    )
    assert len(outcomes) == lifetimes
    words = {"make": "making gym/PerdureTroubled-v0"}
    for o in outcomes:
        if o.job.seed < len(faults):
            where, how = faults[o.job.seed].split(":")
            place = words.get(where, f"gym/PerdureTroubled-v0.{where}")
            failed_in_its_own_words(o, out, how, place)
        else:
            assert o.status == "done", o


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_command_line_says_so(executor: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    args = arguments(
        out, "toy/check", ["q", f"bad={LIVES}:Touchy,where=learn"], executor=executor, lifetimes=2
    )
    # The second time it is tried again, and fails again.
    for _ in range(2 if executor == "serial" else 1):
        code, printed, err = finish(args) if executor == "processes" else cli(*args)
        assert code == 1
        for seed in range(2):
            line = next(x for x in err.splitlines() if x.startswith(f"failed: bad/{seed}"))
            assert "Touchy.learn" in line and "TwoPart" in line and WORDS in line
        assert "2 of 4 lifetimes failed" in err
        assert "Traceback" not in err + printed
    code, printed, err = cli("check", str(out))
    assert code == 1 and WORDS in err


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sys_exit_ends_a_lifetime_not_the_run(executor: str, tmp_path: Path) -> None:
    """And exit code 0 is not taken for success."""
    out = tmp_path / "run"
    outcomes = run_here(
        out, "toy/check", [f"bad={LIVES}:Touchy,where=learn,how=leaves", "q"], executor=executor
    )
    assert {o.job.agent: o.status for o in outcomes} == {"bad": "failed", "q": "done"}
    assert "sys.exit(0)" in statuses(out)["bad/0"][1]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_old_failure_is_not_told_again(executor: str, tmp_path: Path) -> None:
    """A lifetime that failed, and now fails for another reason before it begins."""
    out, args = tmp_path / "run", ("toy/check", [f"bad={LIVES}:Touchy,where=learn"])
    run_here(out, *args, executor=executor)
    folder = LifetimeFolder(out / "bad/0")
    folder.write_description({**(folder.description() or {}), "envs": 3})
    (outcome,) = run_here(out, *args, executor=executor)
    assert outcome.status == "failed" and WORDS not in outcome.error
    assert "SpecError" in outcome.error and '"envs": 3' in outcome.error, outcome.error
    assert '"envs": 1' in outcome.error, "the whole diff"


def test_a_failed_lifetime_is_tried_again_from_its_last_commit(tmp_path: Path) -> None:
    """Once whatever broke it is mended, it ends as if it had never broken."""
    out, flag = tmp_path / "run", tmp_path / "flags"
    flag.mkdir()
    keys = {
        "curriculum": f'{LIVES}:troubled,faults=["step:two"],flag="{flag}"',
        "agents": ["random"],
        "checkpoint": 1,
    }
    (outcome,) = run_here(out, **keys)
    assert outcome.status == "failed"
    done(run_here(out, **keys))
    assert statuses(out)["random/0"] == ("done", "")
    done(run_here(tmp_path / "whole", **keys))
    same(out, snapshot(tmp_path / "whole"))
