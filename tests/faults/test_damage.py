"""A journal cut anywhere, a flipped bit anywhere, a checkpoint with a pickle inside: found,
named, and computed again from the last good commit."""

from __future__ import annotations

import hashlib
import pickle
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import (
    Snapshot,
    arguments,
    cli,
    contents,
    done,
    finish,
    moved,
    plan_of,
    run_here,
    same,
    snapshot,
)

from perdure.errors import Corrupt
from perdure.run.experiment import execute
from perdure.run.plan import Plan
from perdure.store import journal, state
from perdure.store.layout import LifetimeFolder
from perdure.store.log import Lifetime, LifetimeLog
from perdure.store.run import Run
from perdure.testing.agents import cut_journal

FOLDER = "q/0"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    plan = plan_of(tmp_path_factory.mktemp("damage") / "run")
    done(execute(plan))
    return plan


@pytest.fixture(scope="module")
def expected(whole: Plan) -> Snapshot:
    return snapshot(whole.path)


@pytest.fixture
def mine(whole: Plan, tmp_path: Path) -> Plan:
    """A copy to damage."""
    shutil.copytree(whole.path, tmp_path / "run")
    return moved(whole, tmp_path / "run")


def entries_of(plan: Plan) -> list[Path]:
    """The objects of the journal."""
    return sorted((plan.path / FOLDER / "_journal").iterdir())


def flip(path: Path, seed: int) -> None:
    """Flip one bit of a file."""
    rng = random.Random(seed)
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def reopened(folder: Path) -> tuple[list[str], dict[str, Any]]:
    """What opening a lifetime for writing says, and leaves."""
    with LifetimeLog(folder, "q", 0) as log:
        notes = log.notes
    left: dict[str, Any] = {p: contents(folder / p) for p in ("rows", "_ckpt", "_parts")}
    return notes, {**left, "commits": Lifetime(folder).commits}


def test_journal_cut_at_every_byte_of_its_last_entry(
    mine: Plan, whole: Plan, expected: Snapshot
) -> None:
    """As a store may leave it that cannot create an object at once."""
    folder, pristine = mine.path / FOLDER, whole.path / FOLDER
    last, count = entries_of(whole)[-1], len(expected[FOLDER]["commits"])
    cut_journal(folder, count - 1)
    notes, one_back = reopened(folder)
    assert not notes, "a journal that ends with a whole entry is whole"
    data = last.read_bytes()
    for cut in range(len(data)):
        for entry in (folder / "_journal").iterdir():
            if entry.name >= last.name:
                entry.unlink()
        for part in (f"rows/{count - 1:05d}.parquet", f"_ckpt/{count - 1:05d}.npz"):
            shutil.copy(pristine / part, folder / part)
        torn = folder / "_journal" / last.name
        torn.write_bytes(data[:cut])
        notes, found = reopened(folder)
        assert len(notes) == 1 and str(torn) in notes[0] and "torn" in notes[0], notes
        assert found == one_back, f"cut after byte {cut}"
        if cut % 100 == 1:
            done(execute(mine))
            same(mine.path, expected)
            cut_journal(folder, count - 1)
            one_back = reopened(folder)[1]
    done(execute(mine))
    same(mine.path, expected)


def test_every_bit_of_an_entry_counts(whole: Plan) -> None:
    for entry in entries_of(whole)[:2]:
        data = entry.read_bytes()
        assert journal.decode(data) is not None
        assert journal.encode(journal.decode(data)) == data
        for at in range(len(data)):
            for bit in range(8):
                damaged = bytearray(data)
                damaged[at] ^= 1 << bit
                assert journal.decode(bytes(damaged)) is None, f"byte {at}, bit {bit}"


@pytest.mark.parametrize("lost", [0, 1, 4, -1])
def test_a_journal_entry_is_missing(lost: int, mine: Plan, expected: Snapshot) -> None:
    """The first claim, the first commit, one in the middle, the last."""
    entries = entries_of(mine)
    entries[lost].unlink()
    notes = reopened(mine.path / FOLDER)[0]
    if lost == -1:
        assert not notes, "a lifetime that is not done yet"
    else:
        assert any(str(entries[lost]) in n and "missing" in n for n in notes), notes
    done(execute(mine))
    same(mine.path, expected)
    assert cli("check", str(mine.path))[0] == 0


def pieces(plan: Plan, kind: str) -> list[Path]:
    return sorted((plan.path / FOLDER / kind).iterdir())


@pytest.mark.parametrize("cut", [0, 2], ids=["done", "interrupted"])
@pytest.mark.parametrize("kind", ["_journal", "rows", "_ckpt"])
def test_flipped_bits(kind: str, cut: int, whole: Plan, expected: Snapshot, tmp_path: Path) -> None:
    """In each entry, segment and checkpoint, of a lifetime that is done and of one that is not."""
    count = len(expected[FOLDER]["commits"]) - cut
    for k in range(count + (kind == "_journal")):
        mine = moved(whole, tmp_path / f"{kind}-{k}")
        shutil.copytree(whole.path, mine.path)
        folder = mine.path / FOLDER
        cut_journal(folder, count)
        target = pieces(mine, kind)[k]
        flip(target, k)
        code, out, err = cli("check", str(mine.path))
        assert code == 1
        assert str(target) in err, f"{kind} {k} not named: {err}"
        notes = reopened(folder)[0]
        assert any(str(target) in n for n in notes), notes
        done(execute(mine))
        same(mine.path, expected)
        assert cli("check", str(mine.path))[0] == 0


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_damage_is_named_on_the_screen(executor: str, mine: Plan, expected: Snapshot) -> None:
    target = mine.path / FOLDER / "rows/00002.parquet"
    flip(target, 1)
    code, _, err = finish(arguments(mine.path, executor=executor))
    assert code == 0, err
    assert str(target) in err and "going back to commit 1" in err
    same(mine.path, expected)


def test_rows_of_a_damaged_segment_are_not_handed_out(mine: Plan) -> None:
    target = mine.path / FOLDER / "rows/00002.parquet"
    flip(target, 4)
    with pytest.raises(Corrupt, match=str(target)):
        Run(mine.path).rows()


def test_missing_files_are_found(mine: Plan, expected: Snapshot) -> None:
    for kind, n in (("rows", 3), ("_ckpt", 5)):
        cut_journal(mine.path / FOLDER, 6)
        (path,) = (mine.path / FOLDER / kind).glob(f"{n:05d}*")
        path.unlink()
        code, _, err = cli("check", str(mine.path))
        assert code == 1 and str(path) in err
        done(execute(mine))
        same(mine.path, expected)


def test_a_finished_lifetime_may_lose_its_checkpoints(mine: Plan, expected: Snapshot) -> None:
    """Deleting checkpoints to free space must not make a finished lifetime run again."""
    shutil.rmtree(mine.path / FOLDER / "_ckpt")
    done(execute(mine))
    assert len(LifetimeFolder(mine.path / FOLDER).sessions()) == 1
    same(mine.path, expected)


class Payload:
    """Writes a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_payload_is_refused(mine: Plan, expected: Snapshot, tmp_path: Path) -> None:
    """Even where its digest is right, as an attacker would make it."""
    folder, sign = mine.path / FOLDER, tmp_path / "executed"
    cut_journal(folder, 4)
    target = folder / "_ckpt/00003.npz"
    arrays: dict[str, Any] = dict(np.load(target))
    arrays["agent/table"] = np.array([Payload(sign)], dtype=object)
    with target.open("wb") as file:
        np.savez(file, **arrays)
    pickle.loads(pickle.dumps(arrays["agent/table"]))  # noqa: S301
    assert sign.exists(), "the payload works"
    sign.unlink()
    last = entries_of(mine)[-1]
    commit = journal.decode(last.read_bytes())
    assert isinstance(commit, journal.Commit) and commit.checkpoint is not None
    sha = hashlib.sha256(target.read_bytes()).hexdigest()
    manifest = {**commit.checkpoint, "bundle": {**commit.checkpoint["bundle"], "sha256": sha}}
    last.write_bytes(journal.encode(replace(commit, checkpoint=manifest)))
    with pytest.raises(Corrupt, match="pickle payload, refused"):
        state.decode(target.read_bytes(), str(target))
    code, _, err = cli("check", str(mine.path))
    assert code == 1 and str(target) in err and "pickle" in err
    notes = reopened(folder)[0]
    assert any("pickle" in n and "going back to commit 2" in n for n in notes), notes
    done(execute(mine))
    assert not sign.exists()
    same(mine.path, expected)


def test_what_is_not_a_checkpoint_is_corrupt(tmp_path: Path) -> None:
    good = state.encode({"a": np.arange(40.0), "b": np.array("text")})
    rng = random.Random(1)
    for _ in range(2000):
        bad = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        try:
            state.decode(bytes(bad[: rng.choice([len(bad), rng.randrange(len(bad))])]), "x")
        except Corrupt as e:
            assert "checkpoint x cannot be loaded" in str(e)


def test_a_run_again_after_damage_says_nothing_more(mine: Plan, expected: Snapshot) -> None:
    """Mended is mended."""
    flip(mine.path / FOLDER / "rows/00001.parquet", 1)
    done(run_here(mine.path))
    code, _, err = cli(*arguments(mine.path))
    assert code == 0 and "going back" not in err
    same(mine.path, expected)
