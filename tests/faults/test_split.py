"""One lifetime wider than one core: evaluations that several processes share give the same rows, and the
same files of rows, as one; also where processes are killed."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from helpers import (
    LIVES,
    arguments,
    committed,
    done,
    eventually,
    finish,
    plan_of,
    snapshot,
    spawn,
    statuses,
)  # fmt: skip

from perdure.errors import SpecError
from perdure.run import split
from perdure.run.experiment import execute
from perdure.store.layout import LifetimeFolder
from perdure.store.run import Run
from perdure.testing.agents import cut_journal

WIDE = f"{LIVES}:wide"
MEMORY = f"memory={LIVES}:Remembering"
TRIAL = f"trial={LIVES}:Remembering,scope=trial"
KEYS: dict[str, Any] = {
    "curriculum": WIDE,
    "agents": ["random", MEMORY, TRIAL],
    "checkpoint": 17,
    "envs": 2,
}


def run(out: Path, workers: int = 1, **keys: Any) -> None:
    done(execute(plan_of(out, **{**KEYS, **keys}), eval_workers=workers))


def same_rows(run: Path, expected: Path) -> None:
    """The same rows in the same files. What a commit says of where the lifetime stands may differ."""
    found, wanted = snapshot(run), snapshot(expected)
    assert found.keys() == wanted.keys()
    for life, parts in found.items():
        for name in ("status", "rows", "files", "not committed"):
            assert parts[name] == wanted[life][name], f"{life}: {name} differ"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "run"
    run(out)
    return out


def evaluators() -> list[psutil.Process]:
    """The processes that evaluate, of whatever run below this process."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "perdure.run.eval_worker" in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_the_rows_and_their_files_are_those_of_one_process(alone: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(out, 3)
    same_rows(out, alone)
    for life in ("random/0", "memory/0"):
        found = LifetimeFolder(out / life).repeat()
        assert found["played"] == found["agreed"] >= 1 and not found["differences"]
    # It was split: the lifetime's place at some commit is told in rows, not in environments.
    journal = LifetimeFolder(out / "random/0").journal()
    assert any("told" in c.position["inner"] for c in journal.commits)
    plain = LifetimeFolder(alone / "random/0").journal()
    assert not any("told" in c.position["inner"] for c in plain.commits)


def test_from_every_commit_with_and_without_other_processes(alone: Path, tmp_path: Path) -> None:
    """A lifetime goes on from any commit of either kind, alone or not."""
    wide = tmp_path / "wide"
    run(wide, 2, agents=[TRIAL])
    folder = LifetimeFolder(wide / "trial/0")
    commits = len(folder.journal().commits)
    assert commits > 8
    for keep in range(commits - 1, 0, -2):
        # Each time the rest is made anew, of what another kind of run left.
        cut_journal(wide / "trial/0", keep)
        run(wide, 1 + (keep % 4 > 1), agents=[TRIAL])
    rows = [snapshot(r)["trial/0"] for r in (wide, alone)]
    assert rows[0]["rows"] == rows[1]["rows"] and rows[0]["files"] == rows[1]["files"]


def test_data_generated_blocks_and_videos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # All data of the toy suite are variants of one task, which are not split: let them be.
    monkeypatch.setattr(split, "visits", lambda groups: [[place.group] for place, _ in groups])
    for k, keys in enumerate(
        (
            {"curriculum": f"{WIDE},blobs=true", "agents": ["random"], "checkpoint": 100},
            {"curriculum": f"{WIDE},generated=true", "agents": [MEMORY]},
        )
    ):
        one, two = tmp_path / f"{k}/one", tmp_path / f"{k}/two"
        run(one, **keys)
        run(two, 2, **keys)
        same_rows(two, one)
        journal = LifetimeFolder(Run(two).lifetimes()[0].path).journal()
        assert any("told" in c.position["inner"] for c in journal.commits)
    one, two = tmp_path / "video/one", tmp_path / "video/two"
    for out, workers in ((one, 1), (two, 2)):
        plan = plan_of(out, WIDE, agents=["random"], envs=2)
        done(execute(plan, video=True, eval_workers=workers))
    videos = [Run(r).folder.lifetime("random/0").videos() for r in (one, two)]
    assert videos[0] == videos[1] and videos[0] is not None and len(videos[0]["videos"]) > 8


def test_memory_of_a_block_is_not_split(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    agents = [f"block={LIVES}:Remembering,scope=block", TRIAL]
    run(one, agents=agents)
    run(two, 2, agents=agents)
    same_rows(two, one)
    journals = {a: LifetimeFolder(two / f"{a}/0").journal().commits for a in ("block", "trial")}
    shared = {a: {c.position["place"][0] for c in j if "told" in c.position["inner"]} for a, j in
             journals.items()}  # fmt: skip
    assert not shared["block"] and 3 in shared["trial"], "an adapt block's too"


def test_faults_are_those_of_one_process(tmp_path: Path) -> None:
    """An agent that raises in the middle of an evaluation, and one that learns there: the same words,
    and the same rows before."""
    agents = [f"touchy={LIVES}:Touchy,where=leave", f"restless={LIVES}:Restless",
              f"leaves={LIVES}:Touchy,where=observe,how=leaves"]  # fmt: skip
    found = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        outcomes = execute(plan_of(out, **{**KEYS, "agents": agents}), eval_workers=workers)
        found.append({o.job.id: (o.status, o.error) for o in outcomes})
    assert found[0] == found[1] and {status for status, _ in found[0].values()} == {"failed"}
    assert "changed in evaluation (block 0)" in found[0]["restless/0"][1]
    assert "sys.exit(0)" in found[0]["leaves/0"][1]
    error = LifetimeFolder(tmp_path / "2/touchy/0").error()
    assert error is not None and "lives.py" in error["traceback"] and "In the process" in error["traceback"]  # fmt: skip


def test_who_always_dies_is_reported(tmp_path: Path) -> None:
    agents = [f"always={LIVES}:Touchy,where=act,how=kill"]
    (outcome,) = execute(plan_of(tmp_path / "run", WIDE, agents=agents), eval_workers=2)
    assert outcome.status == "failed" and "WorkerLost" in outcome.error
    assert "died with signal 9, 3 times" in outcome.error


def test_killed_in_the_middle_of_an_evaluation(tmp_path: Path) -> None:
    keys = {"curriculum": f"{WIDE},pause=0.02", "agents": ["random"], "envs": 1, "checkpoint": 6}
    alone, out = tmp_path / "alone", tmp_path / "run"
    run(alone, **keys)
    command = [*arguments(out, **{**KEYS, **keys}), "--eval-workers=2"]
    process = spawn(command)
    (victim, *_) = eventually(lambda: committed(out) >= 2 and evaluators(), 60, process)
    victim.kill()  # It is replaced.
    eventually(lambda: committed(out) >= 4, 60, process)
    process.kill()
    process.communicate()
    eventually(lambda: not evaluators())
    assert statuses(out)["random/0"][0] != "done"
    code, _, err = finish([*command[:-1], "--eval-workers=3", "--executor=processes,workers=1"])
    assert code == 0, err
    same_rows(out, alone)


def test_interrupted(tmp_path: Path) -> None:
    keys = {"curriculum": f"{WIDE},pause=0.05", "agents": ["random"], "envs": 1}
    out = tmp_path / "run"
    process = spawn([*arguments(out, **{**KEYS, **keys}), "--eval-workers=2"])
    eventually(lambda: len(evaluators()) == 2, 60, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "nothing is lost" in err and "Traceback" not in err
    eventually(lambda: not evaluators())


def test_what_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path / "run", WIDE, agents=["random"])
    with pytest.raises(SpecError, match="Python objects"):
        execute(replace(plan, factories={"random": lambda setup: None}), eval_workers=2)
    for bad in (0, 5000):
        with pytest.raises(SpecError, match="eval_workers"):
            execute(plan, eval_workers=bad)
