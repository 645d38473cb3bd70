"""Commits write what changed, keep what is needed, and find what is damaged."""

from __future__ import annotations

import os
import random
import signal

import numpy as np
import pytest

from perdure.agents.networks.ring import Ring
from perdure.arrays import Chunk, ChunkedArray, Content
from perdure.errors import AgentFault, Corrupt
from perdure.store import checkpoints, log, state
from perdure.store.log import Lifetime, LifetimeLog, sizes_of

ROW = (64,)
MIB = 1 << 20
PER_CHUNK = MIB // (64 * 4)


def ring_of(rows, capacity=6 * PER_CHUNK):
    ring = Ring(capacity, {"obs": (ROW, np.float32), "done": ((), np.bool_)})
    fill(ring, rows)
    return ring


def fill(ring, rows):
    numbers = np.arange(ring.written, ring.written + rows)
    ring.add(rows, obs=np.repeat(numbers[:, None], 64, 1), done=numbers % 2 == 0)


def saved(ring, **more):
    return {**ring.state("agent/replay"), "agent/weights": np.arange(9.0), **more}


def parts(path):
    return {p.name for p in (path / "_parts").glob("*")}


def same(a, b):
    return a.keys() == b.keys() and all(
        np.array_equal(np.asarray(a[k]), np.asarray(b[k])) for k in a
    )


def test_a_commit_writes_only_what_changed(tmp_path):
    ring = ring_of(5 * PER_CHUNK)
    with LifetimeLog(tmp_path, "a", 0) as writer:
        writer.commit([], saved(ring), {})
        first = parts(tmp_path)
        assert len(first) == 5, "five chunks of observations; the flags are few and bundled"
        stamps = {n: (tmp_path / "_parts" / n).stat().st_mtime_ns for n in first}
        writer.commit([], saved(ring), {})
        assert parts(tmp_path) == first, "nothing changed"
        fill(ring, PER_CHUNK // 2)
        writer.commit([], saved(ring), {})
        second = parts(tmp_path)
        assert len(second - first) == 1 and first < second
        assert stamps == {n: (tmp_path / "_parts" / n).stat().st_mtime_ns for n in first}
        fill(ring, PER_CHUNK)  # Wraps around.
        writer.commit([], saved(ring), {})
        expected = {k: np.asarray(v) for k, v in saved(ring).items()}
    life = Lifetime.read(tmp_path, verify=True)
    assert not life.notes and same(life.load_state(life.commits[-1]), expected)


def test_what_was_resumed_is_not_written_again(tmp_path):
    ring = ring_of(5 * PER_CHUNK)
    with LifetimeLog(tmp_path, "a", 0) as writer:
        writer.commit([], saved(ring), {})
    before = parts(tmp_path)
    other = ring_of(3)
    with LifetimeLog(tmp_path, "a", 0) as writer:
        other.load("agent/replay", writer.resumed)
        writer.commit([], saved(other), {})
        assert parts(tmp_path) == before
        fill(other, 10)
        writer.commit([], saved(other), {})
        new = parts(tmp_path) - before
        assert len(new) == 1 and all(n.startswith("1-") for n in new)
        assert same({k: np.asarray(v) for k, v in saved(other).items()},
                    Lifetime.read(tmp_path).load_state(writer.commits[-1]))  # fmt: skip


def test_an_array_that_is_there_twice_is_written_and_loaded_once(tmp_path):
    ring = ring_of(4 * PER_CHUNK)
    twice = {f"snapshot/{k}": v for k, v in ring.state("agent/replay").items()}
    with LifetimeLog(tmp_path, "a", 0) as writer:
        writer.commit([], saved(ring, **twice), {})
        assert len(parts(tmp_path)) == 4
    with LifetimeLog(tmp_path, "a", 0) as writer:
        a, b = (writer.resumed[f"{p}agent/replay.obs"] for p in ("", "snapshot/"))
        assert a.contents == b.contents
        assert all(x is y for x, y in zip(a.chunks, b.chunks, strict=True))


def test_large_plain_arrays_are_parts_and_small_ones_are_bundled(tmp_path):
    large = np.random.default_rng(0).random(checkpoints.SMALL // 8)
    given = {"large": large, "again": large.copy(), "small": large[:-1].copy(),
             "text": np.array(["x" * 70_000]), "turned": np.asfortranarray(large.reshape(8, -1))}  # fmt: skip
    with LifetimeLog(tmp_path, "a", 0) as writer:
        writer.commit([], given, {})
        assert len(parts(tmp_path)) == 2, "two are equal, and one is turned but has the same bytes"
    with LifetimeLog(tmp_path, "a", 0) as writer:
        assert same(writer.resumed, given)
        assert writer.resumed["large"].flags.writeable


def test_older_checkpoints_are_thinned_by_parts_that_no_kept_commit_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "KEEP_BYTES", 5 * MIB)
    ring = ring_of(2 * PER_CHUNK)
    with LifetimeLog(tmp_path, "a", 0) as writer:
        for _ in range(12):
            writer.commit([], saved(ring), {})
            fill(ring, PER_CHUNK)
        held = writer._held
    life = Lifetime.read(tmp_path, verify=True)
    assert [c.n for c in life.held()] == [c.n for c in held] == [10, 11]
    needed = {name for c in held for name in sizes_of(c)}
    assert {f"_parts/{n}" for n in parts(tmp_path)} == {n for n in needed if "_parts" in n}
    assert len(list((tmp_path / "_ckpt").iterdir())) == 2
    for c in held:
        life.load_state(c)
    small = tmp_path / "small"
    with LifetimeLog(small, "a", 0) as writer:
        for k in range(9):
            writer.commit([], {"w": np.full(9, k)}, {})
    assert len(Lifetime.read(small).held()) == 9, "small ones all stay"


def damage(path, seed=0):
    data = bytearray(path.read_bytes())
    data[random.Random(seed).randrange(len(data))] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["damaged", "missing", "cut"])
def test_a_damaged_part_leads_back_to_the_commit_before(tmp_path, how):
    ring = ring_of(3 * PER_CHUNK)
    with LifetimeLog(tmp_path, "a", 0) as writer:
        writer.commit([], saved(ring), {"at": 0})
        expected = {k: np.array(v) for k, v in saved(ring).items()}
        before = parts(tmp_path)
        fill(ring, PER_CHUNK)
        writer.commit([], saved(ring), {"at": 1})
    target = tmp_path / "_parts" / sorted(parts(tmp_path) - before)[0]
    if how == "damaged":
        damage(target)
    elif how == "cut":
        target.write_bytes(target.read_bytes()[:-1])
    else:
        target.unlink()
    life = Lifetime.read(tmp_path)
    with pytest.raises(Corrupt, match=str(target)):
        life.load_state(life.commits[-1])
    with LifetimeLog(tmp_path, "a", 0) as writer:
        assert writer.position == {"at": 0}
        assert any(str(target) in n and "going back to commit 0" in n for n in writer.notes)
        assert same(writer.resumed, expected)
        writer.commit([], saved(ring), {"at": 1})
    assert not Lifetime.read(tmp_path, verify=True).notes


def test_a_part_that_all_commits_share_leads_back_to_the_beginning(tmp_path):
    ring = ring_of(3 * PER_CHUNK)
    with LifetimeLog(tmp_path, "a", 0) as writer:
        for _ in range(3):
            writer.commit([], saved(ring), {})
    damage(tmp_path / "_parts" / sorted(parts(tmp_path))[0])
    assert Lifetime.read(tmp_path, verify=True).damaged == {0, 1, 2}
    with LifetimeLog(tmp_path, "a", 0) as writer:
        assert writer.position is None and writer.resumed is None
        assert any("starting again from the beginning" in n for n in writer.notes)
        assert not parts(tmp_path)


def test_a_manifest_cannot_lead_outside_or_to_objects(tmp_path):
    from perdure.errors import NameRefused, PerdureError

    reader = checkpoints.Reader(Lifetime(tmp_path).store)
    bundle = {"name": "../../etc/passwd", "sha256": "", "bytes": 0}
    with pytest.raises(NameRefused, match="refused"):
        reader.load({"bundle": bundle, "arrays": {}})
    with LifetimeLog(tmp_path, "a", 0) as writer:
        writer.commit([], {"x": np.zeros(checkpoints.SMALL)}, {})
    manifest = Lifetime.read(tmp_path).commits[0].checkpoint
    for wrong in ({"dtype": "|O"}, {"dtype": "<f4"}, {"shape": [7]}):
        array = {**manifest["arrays"]["x"], **wrong}
        with pytest.raises(PerdureError, match="cannot be loaded"):
            reader.load({**manifest, "arrays": {"x": array}})


KILLS = 10
"""Linked and unlinked: the rows, two parts, the bundle, the journal entry."""


@pytest.mark.parametrize("k", range(1, KILLS + 2))
def test_killed_around_every_part(tmp_path, k):
    """kill -9 before the k-th part, bundle or entry is written, or between its link and its end."""
    ring = ring_of(3 * PER_CHUNK)
    with LifetimeLog(tmp_path, "a", 0) as writer:
        writer.commit([], saved(ring), {"at": 0})
    expected = {k: np.array(v) for k, v in saved(ring).items()}
    pid = os.fork()
    if pid == 0:
        left = k
        link, unlink = os.link, os.unlink

        def step(call):
            def wrapped(*args, **keys):
                nonlocal left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*args, **keys)

            return wrapped

        other = ring_of(1)
        with LifetimeLog(tmp_path, "a", 0) as writer:
            os.link, os.unlink = step(link), step(unlink)
            other.load("agent/replay", writer.resumed)
            fill(other, 2 * PER_CHUNK)
            writer.commit([], saved(other), {"at": 1})
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == (-signal.SIGKILL if k <= KILLS else 0)
    with LifetimeLog(tmp_path, "a", 0) as writer:
        assert not writer.notes
        assert writer.position == {"at": int(k >= KILLS)}, "the entry is the commit"
        if k < KILLS:
            assert same(writer.resumed, expected)
            assert {f"_parts/{n}" for n in parts(tmp_path)} < sizes_of(writer.commits[0]).keys()
        assert not list(tmp_path.rglob("*.tmp"))


def test_chunks_of_other_rows_are_refused():
    with pytest.raises(ValueError, match=r"float64 rows \(2,\) in an array of float32 rows \(2,\)"):
        ChunkedArray([Chunk(np.zeros((3, 2)))], (2,), np.float32)
    array = ChunkedArray([Chunk(np.zeros((3, 2))), Chunk(np.ones((1, 2)), Content())], (2,), float)
    assert array.shape == (4, 2) and len(array) == 4 and array.nbytes == 64
    assert np.asarray(array, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="only by a copy"):
        np.array(array, copy=False)
    odd = ChunkedArray([Chunk(np.array([[None]]))], (1,), object)
    with pytest.raises(AgentFault, match="array of numbers"):
        state.checked("X.state()", {"odd": odd})
