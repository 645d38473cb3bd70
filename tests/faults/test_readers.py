"""Whatever happened to a run's folder: no reader gives numbers from it as if nothing had."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers import cli

import perdure
from perdure.errors import Corrupt, PartialRun, StoreError
from perdure.store import journal
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.run import Run
from perdure.testing.agents import cut_journal

CURRICULUM = "toy/compass,steps=50,episodes=2"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("readers") / "run"
    keys = {"lifetimes": 2, "experts": True, "executor": "serial", "out": str(out)}
    perdure.experiment(CURRICULUM, agents=["q", "random"], **keys)
    return out


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def readers(run: Path) -> Iterator[tuple[str, int, str]]:
    """Each verb that reads a run, its exit code, and all that it printed."""
    out = run.parent / "out"
    verbs = [
        ["check", str(run)],
        ["measure", str(run)],
        ["measure", str(run), "--preset", "reference"],
        ["compare", str(run), "--metric", "gem.acc", "--metric", "l2m.rp"],
        ["report", str(run), "-o", str(out / "page.html")],
        ["leaderboard", str(run)],
        ["watch", str(run)],
        *(["export", str(run), "-f", f, "-o", str(out / f)] for f in ("csv", "l2logger", "tensorboard")),
    ]  # fmt: skip
    out.mkdir(exist_ok=True)
    for verb in verbs:
        code, printed, err = cli(*verb)
        yield verb[0], code, printed + err


def swap(a: Path, b: Path) -> None:
    a.rename(a.with_name("aside"))
    b.rename(a)
    a.with_name("aside").rename(b)


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def link(path: Path) -> None:
    """The same files behind a link, as a folder from somebody else may have it."""
    elsewhere = path.parents[len(path.parts) - path.parts.index("run") - 1] / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


Q = "q/experts/toy--goal-ne"
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "two seeds swapped": (lambda r: swap(r / "q/0", r / "q/1"), "q/0"),
    "two agents swapped": (lambda r: swap(r / "q", r / "random"), "q/0"),
    "two experts swapped": (lambda r: swap(r / Q, r / "q/experts/toy--goal-sw"), f"{Q}/0"),
    "rows and journal swapped": (
        lambda r: [swap(r / "q/0" / p, r / "q/1" / p) for p in ("rows", "_journal")],
        "q/0",
    ),
    "descriptions swapped": (lambda r: swap(r / "q/0/_meta", r / "random/0/_meta"), "q/0"),
    "a copy beside it": (lambda r: shutil.copytree(r / "q/0", r / "q/0.bak"), "0.bak"),
    "a copy as another seed": (lambda r: shutil.copytree(r / "q/0", r / "q/7"), "q/7"),
    "the same seed twice": (lambda r: shutil.copytree(r / "q/0", r / "q/00"), "q/00"),
    "a copy of an agent": (lambda r: shutil.copytree(r / "q", r / "q2"), "q2/0"),
    "a copy one deeper": (lambda r: shutil.copytree(r / "q", r / "old/q"), "old/q/0"),
    "another seed described": (
        lambda r: replaced(r / "q/1/_meta/lifetime.json", '"seed": 1', '"seed": 0'),
        "q/1/_meta/lifetime.json",
    ),
    "another budget described": (
        lambda r: replaced(r / "q/1/_meta/lifetime.json", '"amount": 50', '"amount": 51'),
        "q/1/_meta/lifetime.json",
    ),
    "no description": (lambda r: (r / "q/1/_meta/lifetime.json").unlink(), "q/1"),
    "a damaged journal": (lambda r: (r / "q/1/_journal/00001.json").write_bytes(b"x"), "q/1"),
    "damaged rows": (lambda r: (r / "q/1/rows/00000.parquet").write_bytes(b"x"), "q/1"),
    "a lifetime gone": (lambda r: shutil.rmtree(r / "q/1"), "q/1"),
    "an agent gone": (lambda r: shutil.rmtree(r / "random"), "random/1"),
    "an expert gone": (lambda r: shutil.rmtree(r / Q / "0"), f"{Q}/0"),
    "an expert unfinished": (lambda r: cut_journal(r / Q / "0", 0), f"{Q}/0"),
    "an expert's rows damaged": (
        lambda r: (r / Q / "0/rows/00000.parquet").write_bytes(b"x"),
        f"{Q}/0",
    ),
    "no plan": (lambda r: (r / "_meta/jobs.json").unlink(), "jobs.json"),
    "a plan of nothing": (lambda r: (r / "_meta/jobs.json").write_text("{}"), "jobs.json"),
    "a deep plan": (lambda r: (r / "_meta/jobs.json").write_text("[" * 9**5), "jobs.json"),
    "a lifetime behind a link": (lambda r: link(r / "q/1"), "q/1"),
    "an agent behind a link": (lambda r: link(r / "q"), "/q "),
    "rows behind a link": (lambda r: link(r / "q/1/rows"), "q/1"),
    "a segment behind a link": (lambda r: link(r / "q/1/rows/00000.parquet"), "00000.parquet"),
    "an entry behind a link": (lambda r: link(r / "q/1/_journal/00001.json"), "00001.json"),
    "a description behind a link": (lambda r: link(r / "q/1/_meta"), "q/1"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_no_reader_passes_over_it(what: str, run: Path) -> None:
    damage, named = DAMAGE[what]
    damage(run)
    for verb, code, printed in readers(run):
        if verb == "watch" and code == 0:  # It shows what is there; others count it.
            assert not any(gap.damage for gap in Run(run).gaps()), printed
            continue
        assert code in (1, 2), f"{verb} exits {code}:\n{printed}"
        assert named in printed, f"{verb} does not name {named}:\n{printed}"
    with warnings.catch_warnings(), pytest.raises((StoreError, PartialRun)):
        warnings.simplefilter("error")
        for experts in (False, True):
            Run(run).rows(experts=experts)


@pytest.mark.parametrize("what", DAMAGE)
def test_told_to_go_on_they_give_what_is_good(what: str, run: Path, made: Path) -> None:
    DAMAGE[what][0](run)
    good = cli("measure", str(made), "--metric", "gem.acc")[1].splitlines()
    code, out, err = cli("measure", str(run), "--metric", "gem.acc", "--partial")
    assert "not measured" in err, err
    if what == "two agents swapped":
        assert code == 1 and "nothing could be measured" in err
        return
    assert code == 0, err
    lives = [x.split() for x in out.splitlines() if x.startswith(("q/", "random/"))]
    assert lives and all(any(line.split() == x for line in good) for x in lives), out
    columns = ["agent", "lifetime", "exp", "task", "seed", "return"]
    found = Run(run).rows(partial=True).select(columns).to_pylist()
    whole = Run(made).rows().select(columns).to_pylist()
    assert found and all(row in whole for row in found)
    assert len({(row["agent"], row["lifetime"], row["exp"]) for row in found}) == len(found)
    for kind in ("csv", "l2logger", "tensorboard"):
        code, _, err = cli(
            "export", str(run), "-f", kind, "-o", str(run.parent / kind), "--partial"
        )
        assert code == 0 and "not exported" in err, err


def test_who_belongs_to_another_run_is_damaged_to_all(made: Path, run: Path) -> None:
    """Whether its folder is checked, watched, measured, planned, or run again."""
    other = run.parent / "other"
    perdure.experiment(CURRICULUM, agents=["q"], lifetimes=2, envs=2, executor="serial", out=str(other))  # fmt: skip
    shutil.rmtree(run / "q/1")
    shutil.copytree(other / "q/1", run / "q/1")
    why = "belongs to another run"
    assert LifetimeFolder(run / "q/1").status() == "damaged"
    assert {i.id: i.status for i in Run(run).lifetimes()}["q/1"] == "damaged"
    for verb, code, said in readers(run):
        assert code in (1, 2) and why in said, (verb, code, said)
    _, said, _ = cli("watch", str(run))
    planned = len(RunFolder(run).jobs())
    assert f"{planned - 1} done" in said and "1 damaged" in said and "100%" not in said
    again = ["run", CURRICULUM, "-a", "q", "-a", "random", "-n", "2", "--experts", "--executor", "serial", "-o", str(run)]  # fmt: skip
    _, said, _ = cli(*again, "--plan")
    assert f"{planned - 1}" in said
    code, said, err = cli(*again)
    assert code == 1 and "holds another lifetime" in said + err
    assert LifetimeFolder(run / "q/1").status() == "damaged"
    assert LifetimeFolder(made / "q/1").status() == "done"


def test_every_bit_of_a_description_counts(run: Path) -> None:
    path = run / "q/1/_meta/lifetime.json"
    good, folder = path.read_bytes(), LifetimeFolder(run / "q/1")
    assert not folder.trouble()
    for at in range(0, len(good), 7):
        for bit in range(8):
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            path.write_bytes(bad)
            assert folder.trouble(), f"byte {at}, bit {bit}"


def test_scores_that_need_a_missing_expert_are_marked(run: Path) -> None:
    cut_journal(run / Q / "0", 0)
    file = run.parent / "scores.json"
    code, out, err = cli("measure", str(run), "--json", str(file))
    assert code == 1 and f"{Q}/0" in err and "without 1 of its single-task experts" in out
    found = json.loads(file.read_text())["lifetimes"]
    for life, scores in found.items():
        for name in ("l2m.rp", "l2m.se"):
            marked = any(f"{Q}/0" in note for note in scores[name].get("notes", ()))
            assert marked == life.startswith("q/"), (life, name, scores[name])
        assert not any("experts" in n for n in scores["gem.acc"].get("notes", ()))


def test_a_run_that_goes_on_can_be_read(run: Path) -> None:
    """Unfinished is said, and no damage."""
    cut_journal(run / "q/1", 0)
    shutil.rmtree(run / "random/1")
    with pytest.warns(PartialRun, match="q/1: the lifetime is interrupted"):
        assert set(Run(run).rows()["lifetime"].to_pylist()) == {0}
    code, out, _ = cli("watch", str(run))
    assert code == 0 and "1 interrupted" in out and "1 waiting" in out
    page = run.parent / "page.html"
    code, _, err = cli("report", str(run), "-o", str(page))
    assert code == 1 and "q/1" in err and "random/1" in err and page.stat().st_size > 10_000
    assert cli("report", str(run), "-o", str(page), "--partial")[0] == 0


SIDE = ["sessions/00000.json", "progress.json", "error.json"]
BAD = ["", "[]", "\x00", "[" * 9**5, '{"started": "x", "time": [1], "error": 5}',
       '{"started": 1e999, "time": -1e999, "fraction": NaN, "packages": [], "block": "7"}',
       '{"started": null, "time": null, "block": null, "steps": null, "notes": 3, "packages": 1}',
       '{"time": ' + "9" * 4000 + "}"]  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_side_files_are_not_truth(text: str, run: Path, made: Path) -> None:
    """No number depends on them, so that none is lost with them; `check` reads them all."""
    for name in SIDE:
        for job in ("q/0", "q/1"):
            (run / job / "_meta" / name).write_text(text)
    (run / "q/0/_video").mkdir()
    (run / "q/0/_video/index.json").write_text(text)
    for verb, code, printed in readers(run):
        assert code == (verb == "check"), f"{verb}: {printed}"
        if verb == "check":
            name = "sessions/00000.json" if "started" in text else "progress.json"
            assert f"q/0/_meta/{name}" in printed, printed
    assert Run(run).rows() == Run(made).rows()
    cut_journal(run / "q/1", 0)
    code, _, err = cli("run", CURRICULUM, "-a", "q", "-a", "random", "-n", "2", "--experts",
                       "--executor", "serial", "-o", str(run), "-q")  # fmt: skip
    assert code == 0, err
    assert Run(run).rows() == Run(made).rows()


def test_pipes_and_folders_in_place_of_files_are_not_waited_for(run: Path) -> None:
    for name in ("sessions/00000.json", "progress.json", "lock"):
        (run / "q/0/_meta" / name).unlink()
        os.mkfifo(run / "q/0/_meta" / name)
        (run / "q/1/_meta" / name).unlink()
        (run / "q/1/_meta" / name).mkdir()
    assert cli("measure", str(run), "--metric", "gem.acc")[0] == 0
    assert cli("watch", str(run))[0] == 0
    (run / "q/0/_meta/lifetime.json").unlink()
    os.mkfifo(run / "q/0/_meta/lifetime.json")
    code, _, err = cli("measure", str(run))
    assert code == 1 and "not a regular file" in err


@pytest.mark.parametrize("name", ["rows", "_journal", "_ckpt", "_parts", "_meta", "_meta/lock"])
def test_run_writes_and_deletes_nothing_behind_a_link(name: str, run: Path) -> None:
    treasure = run.parent / "treasure"
    treasure.mkdir()
    (treasure / "00009.parquet").write_text("mine")
    (treasure / "lock").write_text("mine")
    path = run / "q/1" / name
    cut_journal(run / "q/1", 0)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(treasure / "lock" if name.endswith("lock") else treasure)
    code, _, err = cli("run", CURRICULUM, "-a", "q", "-a", "random", "-n", "2", "--experts",
                       "--executor", "serial", "-o", str(run), "-q")  # fmt: skip
    assert code == 1 and "symbolic link" in err, err
    assert {p.name: p.read_text() for p in treasure.iterdir()} == {
        "00009.parquet": "mine", "lock": "mine"}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["../../random/0/rows/00000.parquet", "/etc/hostname", "_meta/lifetime.json", "rows/x.parquet"],
)
def test_a_journal_that_names_something_else_is_damaged(name: str, run: Path) -> None:
    """Even with its checksum right, as an attacker would make it."""
    path = run / "q/1/_journal/00001.json"
    commit = journal.decode(path.read_bytes())
    assert isinstance(commit, journal.Commit)
    path.write_bytes(journal.encode(commit.__class__(**{**commit.__dict__, "rows": name})))
    with pytest.raises(Corrupt, match="q/1"):
        Run(run).rows()
    manifest = {**(commit.checkpoint or {}), "bundle": {"name": name, "sha256": "", "bytes": 1}}
    path.write_bytes(
        journal.encode(commit.__class__(**{**commit.__dict__, "checkpoint": manifest}))
    )
    assert cli("check", str(run))[0] == 1
