"""A compact copy says what the run says, to every reader, and cannot be gone on with."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import perdure
from cli.test_cli import perdure as command
from perdure.errors import SpecError, StoreError
from perdure.store.compact import write_compact
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.log import Lifetime

SPEC = {
    "curriculum": "toy/compass,steps=200,episodes=3", "agents": ["q", "random"], "lifetimes": 2,
    "executor": "serial", "checkpoint": 40, "experts": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return perdure.experiment(**SPEC, out=str(tmp_path_factory.mktemp("compact") / "a/run"))


@pytest.fixture(scope="module")
def copy(run):
    return perdure.Run(write_compact(run, run.path.parents[1] / "b/run"))


def size(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def test_rows_and_descriptions_are_the_runs(run, copy):
    for experts in (False, True):
        ours, theirs = run.rows(experts=experts), copy.rows(experts=experts)
        seeds = ["seed", "trial_seed"]
        assert len(ours) and theirs.drop_columns(seeds).equals(ours.drop_columns(seeds))
        # Those of learning episodes follow from the lifetime's.
        for name in seeds:
            kept = [None if learning else s for s, learning in
                    zip(ours[name].to_pylist(), ours["learning"].to_pylist(), strict=True)]  # fmt: skip
            assert theirs[name].to_pylist() == kept and any(kept)
    assert copy.spec == run.spec and copy.folder.jobs() == run.folder.jobs()
    for a, b in zip(run.lifetimes(), copy.lifetimes(), strict=True):
        assert (a.id, a.status, a.rows, a.description) == (b.id, b.status, b.rows, b.description)
        assert len(Lifetime.read(a.path).commits) > 1 == len(Lifetime.read(b.path).commits)
    assert copy.verify() == []


def test_it_is_small_and_names_no_machine(run, copy):
    files = {f.relative_to(copy.path).as_posix() for f in copy.path.rglob("*") if f.is_file()}
    folders = {Path(f).parent.name for f in files}
    assert folders == {"_meta", "sessions", "_journal", "rows"}
    assert sum("/rows/" in f for f in files) == len(run.lifetimes())
    assert size(copy.path) < 8000 * len(run.lifetimes()) < size(run.path)
    session = LifetimeFolder(run.lifetimes()[0].path).sessions()[0]
    text = b"".join((copy.path / f).read_bytes() for f in files if f.endswith(".json")).decode()
    assert session["host"] not in text and str(session["argv"][0]) not in text
    assert session["packages"] == LifetimeFolder(copy.lifetimes()[0].path).sessions()[0]["packages"]


def test_the_same_run_gives_the_same_bytes(run, copy):
    again = write_compact(run, run.path.with_name("again"))
    third = write_compact(copy, run.path.with_name("third"))
    for other in (again, third):
        for file in copy.path.rglob("*"):
            if file.is_file():
                assert (other / file.relative_to(copy.path)).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("verb", ["measure", "compare"])
def test_numbers_are_identical(verb, run, copy, tmp_path):
    said = []
    for k, folder in enumerate((run.path, copy.path)):
        file = tmp_path / f"{k}.json"
        done = command(verb, str(folder), "--json", str(file))
        assert done.returncode == 0, done.stderr
        said.append((done.stdout, file.read_bytes()))
    assert said[0] == said[1]
    assert json.loads(said[0][1])


@pytest.mark.parametrize("verb", ["check", "leaderboard", "watch"])
def test_readers_say_the_same(verb, run, copy):
    said = []
    for folder in (run.path, copy.path):
        done = command(verb, str(folder))
        assert done.returncode == 0, done.stderr
        said.append((done.stdout + done.stderr).replace(str(folder), "RUN"))
    assert said[0] == said[1] and "random" in said[0]


def test_a_report_shows_the_same_data(run, copy, tmp_path):
    pages = []
    for k, folder in enumerate((run.path, copy.path)):
        done = command("report", str(folder), "--out", str(tmp_path / f"{k}.html"))
        assert done.returncode == 0, done.stderr
        text = (tmp_path / f"{k}.html").read_text()
        data = re.findall(r'<script type="application/json".*?</script>', text, re.S)
        pages.append([d.replace(str(folder), "RUN") for d in data])
    assert pages[0] == pages[1] and "random" in "".join(pages[0])


def test_run_refuses_to_go_on_with_it(copy):
    before = {f: f.read_bytes() for f in copy.path.rglob("*") if f.is_file()}
    with pytest.raises(
        SpecError, match="compact copy of a finished run.*another folder with --out"
    ):
        perdure.experiment(**SPEC | {"lifetimes": 3}, out=str(copy.path))
    assert before == {f: f.read_bytes() for f in copy.path.rglob("*") if f.is_file()}


def test_an_unfinished_run_has_no_compact_copy(run, tmp_path):
    part = tmp_path / "part"
    shutil.copytree(run.path, part)
    folder = RunFolder(part).lifetime("q/0")
    folder.forget_after(1)
    with pytest.raises(StoreError, match="not finished .q/0: the lifetime is interrupted"):
        write_compact(perdure.Run(part), tmp_path / "copy")
    shutil.rmtree(folder.path)
    with pytest.raises(StoreError, match="q/0: the lifetime has not begun"):
        write_compact(perdure.Run(part), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("what", ["rows", "description"])
def test_damage_is_found(what, run, tmp_path):
    copy = write_compact(run, tmp_path / "copy")
    [file] = (copy / "q/0").rglob("*.parquet" if what == "rows" else "lifetime.json.gz")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    done = command("check", str(copy))
    assert done.returncode != 0 and file.name in done.stderr
    with pytest.raises(StoreError, match=file.name):
        write_compact(perdure.Run(copy), tmp_path / "other")
    assert not (tmp_path / "other").exists()
