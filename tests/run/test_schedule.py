"""Shares of a run, measured costs, and the order of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from perdure.cli.main import main
from perdure.cli.planning import makespan
from perdure.errors import SpecError
from perdure.run.experiment import execute
from perdure.run.plan import Plan, make_plan
from perdure.run.schedule import Amounts, Costs, longest_first, shard_of
from perdure.run.spec import RunSpec
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.run import Run

SMALL = "toy/compass,steps=40,episodes=2"


def planned(out: Path, curriculum: str = SMALL, agents=("q", "random"), **keys) -> Plan:
    keys = {"executor": "serial", "lifetimes": 2, **keys}
    return make_plan(RunSpec(curriculum, tuple(agents), out=str(out), **keys))


def took(folder: LifetimeFolder, seconds: float, cpu: float) -> None:
    """As if its one session had lasted so long, at this share of a core."""
    (session,) = folder.sessions()
    folder.write_session(0, {**session, "started": 1000.0})
    progress = {**folder.progress(), "elapsed": 10.0, "cpu": 10.0 * cpu}
    folder.write_progress(progress)
    folder.last_sign = lambda: 1000.0 + seconds  # type: ignore[method-assign]


@pytest.mark.parametrize("shares", [1, 3, 7, 50])
def test_shares_are_all_jobs_and_none_twice(tmp_path: Path, shares: int) -> None:
    plan = planned(tmp_path, lifetimes=5, experts=True)
    parts = [shard_of(plan, f"{k}/{shares}") for k in range(1, shares + 1)]
    ids = [job.id for part in parts for job in part]
    assert sorted(ids) == sorted(job.id for job in plan.jobs) and len(set(ids)) == len(ids)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    # A share has its part of the long jobs: lifetimes and experts.
    long = [sum(not job.expert for job in part) for part in parts]
    assert max(long) - min(long) <= 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1/2/3", ""])
def test_what_is_no_share(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError, match=r"i/n with i from 1 to n"):
        shard_of(planned(tmp_path), text)


def test_shares_do_not_depend_on_what_has_run(tmp_path: Path) -> None:
    plan = planned(tmp_path / "run", experts=True)
    before = [shard_of(plan, f"{k}/3") for k in (1, 2, 3)]
    execute(plan, jobs=before[1])
    assert [
        shard_of(planned(tmp_path / "run", experts=True), f"{k}/3") for k in (1, 2, 3)
    ] == before


def test_a_run_in_shares_is_the_run(tmp_path: Path) -> None:
    whole, shares = planned(tmp_path / "whole"), planned(tmp_path / "shares")
    execute(whole)
    args = ["run", SMALL, "-a", "q", "-a", "random", "-n2", "--executor=serial"]
    for k in (2, 1, 2):  # In any order, and again.
        done = CliRunner().invoke(main, [*args, f"--out={shares.path}", f"--shard={k}/2"])
        assert done.exit_code == 0, done.output
        assert f"2 lifetimes (share {k}/2 of 4)" in done.output
    found = [Run(p.path).rows().to_pylist() for p in (whole, shares)]
    assert found[0] == found[1] and len(found[0]) > 20


def test_costs_are_what_lifetimes_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one agent one lifetime took 100 s, another 300 s at half a core: 200 s and 125 CPU-seconds
    for that curriculum, and twice that for one twice as long."""
    plan = planned(tmp_path / "run", agents=["q"], lifetimes=2)
    execute(plan)
    folders = {job.id: LifetimeFolder(plan.path / job.id) for job in plan.jobs}
    took(folders["q/0"], 100.0, 1.0)
    took(folders["q/1"], 300.0, 0.5)
    real = RunFolder.lifetime
    monkeypatch.setattr(
        RunFolder,
        "lifetime",
        lambda run, job: folders[job] if run.path == plan.path else real(run, job),
    )
    found = Costs(plan).of(plan.jobs[0])
    assert found is not None
    assert (found.seconds, found.cpu) == pytest.approx((200.0, 125.0))
    size = sum(p.stat().st_size for p in (plan.path / "q/0").rglob("*") if p.is_file())
    assert found.disk == pytest.approx(size, rel=0.2)
    longer = planned(tmp_path / "other", "toy/compass,steps=80,episodes=4", ["q"])
    assert Amounts(longer).of(plan.jobs[0]) == 2 * Amounts(plan).of(plan.jobs[0])
    twice = Costs(longer).of(plan.jobs[0])
    assert twice is not None and twice.seconds == pytest.approx(400.0)


def test_the_longest_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path / "run", lifetimes=1, experts=True)
    shorter = longest_first(plan, plan.jobs[::-1])
    assert not any(job.expert for job in shorter[:2]), "by length, where nothing is known"
    execute(plan)
    folders = {job.id: LifetimeFolder(plan.path / job.id) for job in plan.jobs}
    slow = next(job.id for job in plan.jobs if job.expert and job.agent == "random")
    for job, folder in folders.items():
        took(folder, 900.0 if job == slow else 50.0 if job == "random/0" else 9.0, 1.0)
    monkeypatch.setattr(RunFolder, "lifetime", lambda _, job: folders[job])
    assert [job.id for job in longest_first(plan, plan.jobs)][:2] == [slow, "random/0"]


def test_a_plan_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    args = ["run", SMALL, "-a", "q", "-n3", "--executor=serial", f"--out={out}"]
    first = CliRunner().invoke(main, [*args, "--plan"])
    assert first.exit_code == 0 and not out.exists()
    assert "no lifetime of q has run" in first.output
    assert CliRunner().invoke(main, [*args, "-n1"]).exit_code == 0
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    second = CliRunner().invoke(main, [*args, "--plan"])
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == before
    (line,) = (x.split() for x in second.output.splitlines() if x.startswith("q "))
    assert line[1:4] == ["3", "1", "2"] and "?" not in line
    # A run beside it, of the same agent on the same curriculum, tells as much.
    beside = CliRunner().invoke(main, [*args[:-1], f"--out={tmp_path / 'other'}", "--plan"])
    assert f"measured in {out}" in beside.output and "with 1 at a time" in beside.output


def test_makespan() -> None:
    assert makespan([4.0, 3.0, 3.0, 2.0], 2) == 6.0
    assert makespan([5.0, 1.0, 1.0], 2) == 5.0
    assert makespan([1.0, 2.0], 1) == 3.0
