"""Two writers of one lifetime without a lock between them: every entry of the journal has one
author, whoever is overtaken is told, and nothing that it wrote counts."""

from __future__ import annotations

import multiprocessing
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import (
    LIVES,
    arguments,
    committed,
    done,
    eventually,
    row,
    run_here,
    same,
    saved,
    snapshot,
    statuses,
)

from perdure.errors import LockedError, NameRefused
from perdure.store import journal, log
from perdure.store.disk import DiskStore
from perdure.store.lock import Lock
from perdure.store.log import Lifetime, LifetimeLog, sizes_of

ROUNDS = 120
"""Of each kind of race."""


@pytest.fixture(autouse=True)
def no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps writers apart must not be the lock."""
    monkeypatch.setattr(Lock, "acquire", lambda self: None)


def live(path: Path, who: int, commits: int, barrier: Any, seed: int) -> int:
    """Open, race, and say how many commits went well: those the caller was told of."""
    pause = random.Random(seed)
    barrier.wait()
    made = 0
    try:
        with LifetimeLog(path, "a", 0) as writer:
            for _ in range(commits):
                n = len(writer.commits)
                writer.commit([row(n, who)], saved(who, n), {"who": who, "n": n})
                made += 1
                if pause.random() < 0.3:
                    threading.Event().wait(pause.random() * 0.002)
    except LockedError as e:
        assert "taken over by" in str(e) or "written by another" in str(e)
    return made


def sound(path: Path, told: int) -> None:
    """The commits are one chain, each with its rows and its state, and none was lost."""
    life = Lifetime.read(path, verify=True)
    assert not life.notes, life.notes
    assert len(life.commits) >= 1
    assert life.entries == len(life.sessions) + told, "two were told of one commit"
    by_token = {s.token: s for s in life.sessions}
    assert len(by_token) == len(life.sessions) == len({s.number for s in life.sessions})
    for n, c in enumerate(life.commits):
        (found,) = life.segment(c).to_pylist()
        who = c.position["who"]
        assert c.n == n == c.position["n"] == found["exp"] and found["return"] == who
    for c in life.held():
        loaded = life.load_state(c)
        expected = saved(c.position["who"], c.n)
        assert all(np.array_equal(loaded[k], expected[k]) for k in expected)
    # Whoever opens it next leaves what counts, and nothing else.
    with LifetimeLog(path, "a", 0) as writer:
        assert len(writer.commits) == len(life.commits)
    named = {c.rows for c in life.commits} | {n for c in life.held() for n in sizes_of(c)}
    left = {str(p.relative_to(path)) for f in ("rows", "_ckpt", "_parts")
            for p in (path / f).glob("*")}  # fmt: skip
    assert left == named


def test_threads_race(tmp_path: Path) -> None:
    for k in range(ROUNDS):
        path, count = tmp_path / str(k), 2 + k % 3
        barrier, made = threading.Barrier(count), [0] * count

        def one(who: int, path: Path = path, barrier: Any = barrier, made: Any = made,
                k: int = k) -> None:  # fmt: skip
            made[who] = live(path, who, 4, barrier, 10 * k + who)

        threads = [threading.Thread(target=one, args=(who,)) for who in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        sound(path, sum(made))


def racer(root: str, who: int, rounds: int, barrier: Any, told: Any) -> None:
    Lock.acquire = lambda self: None  # type: ignore[method-assign]
    for k in range(rounds):
        told.put((k, live(Path(root) / str(k), who, 4, barrier, 10 * k + who)))


def test_processes_race(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    barrier, told = fork.Barrier(2), fork.Queue()
    racers = [fork.Process(target=racer, args=(str(tmp_path), who, ROUNDS, barrier, told))
              for who in range(2)]  # fmt: skip
    for r in racers:
        r.start()
    made = [0] * ROUNDS
    for _ in range(2 * ROUNDS):
        k, count = told.get(timeout=60)
        made[k] += count
    for r in racers:
        r.join(20)
        assert r.exitcode == 0
    for k in range(ROUNDS):
        sound(tmp_path / str(k), made[k])


def test_put_if_absent_has_one_winner(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    for k in range(100):
        barrier, won = threading.Barrier(6), []

        def one(who: int, k: int = k, barrier: Any = barrier, won: Any = won) -> None:
            barrier.wait()
            if store.put_if_absent(f"deep/er/{k}", bytes([who]) * 5000):
                won.append(who)

        threads = [threading.Thread(target=one, args=(who,)) for who in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        (winner,) = won
        assert store.get(f"deep/er/{k}") == bytes([winner]) * 5000
    assert len(store.list("deep/er")) == 100 and not list(tmp_path.rglob("*.tmp"))


def opened(path: Path) -> LifetimeLog:
    return LifetimeLog(path, "a", 0)


def test_a_paused_writer_cannot_commit_after_another_has_opened(tmp_path: Path) -> None:
    old = opened(tmp_path)
    old.commit([row(0, 1)], saved(1, 0), {"who": 1, "n": 0})
    new = opened(tmp_path)  # While the old one sleeps.
    with pytest.raises(LockedError, match=rf"process \d+ on {socket.gethostname()} \(session 1\)"):
        old.commit([row(1, 1)], saved(1, 1), {"who": 1, "n": 1})
    assert len(Lifetime.read(tmp_path).commits) == 1
    assert len(list((tmp_path / "rows").iterdir())) == 1, "the loser leaves nothing"
    new.commit([row(1, 2)], saved(2, 1), {"who": 2, "n": 1})
    with pytest.raises(LockedError):
        old.commit([row(1, 1)], saved(1, 1), {"who": 1, "n": 1})
    sound(tmp_path, 2)


def test_a_paused_writer_wakes_after_the_other_has_gone_back(tmp_path: Path) -> None:
    """The old writer is two commits ahead of where the repair went on: its entry would come after
    theirs."""
    old = opened(tmp_path)
    for n in range(3):
        old.commit([row(n, 1)], saved(1, n), {"who": 1, "n": n})
    (tmp_path / "rows/00001.parquet").write_bytes(b"damaged")
    new = opened(tmp_path)
    assert len(new.commits) == 1 and any("going back to commit 0" in n for n in new.notes)
    for n in (1, 2):
        new.commit([row(n, 2)], saved(2, n), {"who": 2, "n": n})
        with pytest.raises(LockedError):
            old.commit([row(3, 1)], saved(1, 3), {"who": 1, "n": 3})
    assert [c.position["who"] for c in Lifetime.read(tmp_path).commits] == [1, 2, 2]
    assert not Lifetime.read(tmp_path, verify=True).notes


class Paused:
    """Stops a store before the k-th call of a method, to run something else there."""

    def __init__(self, store: Any, method: str, k: int, meanwhile: Any) -> None:
        self.store, self.method, self.k, self.meanwhile = store, method, k, meanwhile

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if name == self.method:
            self.k -= 1
            if self.k == 0:
                self.meanwhile()
        return found


@pytest.mark.parametrize("method", ["put_if_absent", "delete"])
def test_overtaken_at_every_step_of_a_commit(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each write of its commit and each deletion of its thinning, the whole life of another
    writer passes."""
    monkeypatch.setattr(log, "KEEP_BYTES", 0)
    overtaken = 0
    for k in range(1, 9):
        path = tmp_path / str(k)
        old = opened(path)
        for n in range(4):
            old.commit([row(n, 1)], saved(1, n), {"who": 1, "n": n})
        others: list[int] = []

        def meanwhile(path: Path = path, others: list[int] = others) -> None:
            with opened(path) as new:
                first = len(new.commits)
                for n in range(first, first + 4):
                    new.commit([row(n, 2)], saved(2, n), {"who": 2, "n": n})
                    others.append(n)

        pausing = Paused(old.store, method, k, meanwhile)
        old.store = pausing  # type: ignore[assignment]
        old._checkpoints.store = pausing  # type: ignore[assignment]
        made = 4
        try:
            old.commit([row(4, 1)], saved(1, 4), {"who": 1, "n": 4})
            made += 1
        except LockedError:
            assert others
        overtaken += bool(others)
        sound(path, made + len(others))
    assert overtaken == {"put_if_absent": 4, "delete": 2}[method]


@pytest.mark.parametrize("method", ["list", "get", "put_if_absent", "delete", "unfinished"])
def test_overtaken_at_every_step_of_opening(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dead writer left rows that nobody committed; while the first who opens it cleans up, a
    second opens it and computes the very same."""
    from perdure.store import lifetime_folder

    overtaken = 0
    for k in range(1, 14):
        path = tmp_path / str(k)
        dead = opened(path)
        for n in range(2):
            dead.commit([row(n, 1)], saved(1, n), {"who": 1, "n": n})
        DiskStore(path).put("rows/00002.parquet", b"not committed")
        DiskStore(path).put("_ckpt/00002.npz", b"not committed")
        (path / "rows/00001.parquet").write_bytes(b"damaged")
        others: list[int] = []
        armed = [True]

        def meanwhile(path: Path = path, others: list[int] = others, armed: Any = armed) -> None:
            armed[0] = False
            with opened(path) as new:
                for n in range(len(new.commits), 5):
                    new.commit([row(n, 1)], saved(1, n), {"who": 1, "n": n})
                    others.append(n)

        real = lifetime_folder.store_at

        def store_at(
            where: Any, run: Any, k: int = k, armed: Any = armed, go: Any = meanwhile
        ) -> Any:
            found = real(where, run)
            return Paused(found, method, k, go) if armed[0] else found

        made = 2
        with monkeypatch.context() as m:
            m.setattr(lifetime_folder, "store_at", store_at)
            try:
                slow = opened(path)
                for n in range(len(slow.commits), 5):
                    slow.commit([row(n, 1)], saved(1, n), {"who": 1, "n": n})
                    made += 1
            except LockedError:
                assert others
        overtaken += bool(others)
        sound(path, made + len(others))
        assert len(Lifetime.read(path).commits) == 5
    assert overtaken >= 3, "the steps are no longer seen"


def test_a_claim_that_is_damaged_is_no_claim(tmp_path: Path) -> None:
    with opened(tmp_path) as writer:
        writer.commit([row(0, 1)], saved(1, 0), {"who": 1, "n": 0})
    opened(tmp_path)
    (tmp_path / "_journal/00002.json").write_bytes(b"{}")
    with opened(tmp_path) as writer:
        assert any("00002.json is torn or damaged" in n for n in writer.notes)
        assert len(writer.commits) == 1
        writer.commit([row(1, 1)], saved(1, 1), {"who": 1, "n": 1})
    life = Lifetime.read(tmp_path, verify=True)
    assert len(life.commits) == 2 and not life.notes


def test_an_answer_that_was_lost_is_no_defeat(tmp_path: Path) -> None:
    """A store that is asked again says that the entry is there: it is our own."""
    store = DiskStore(tmp_path)
    claim = journal.Session.here(0, 0)
    journal.append(store, 0, claim)
    journal.append(store, 0, claim)
    with pytest.raises(LockedError, match="session 0"):
        journal.append(store, 0, journal.Session.here(0, 0))


@pytest.fixture
def without_links(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def link(*args: Any, **keys: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", link)
    yield


def test_file_systems_without_links(tmp_path: Path, without_links: None) -> None:
    store = DiskStore(tmp_path)
    assert store.put_if_absent("a/b", b"1") and not store.put_if_absent("a/b", b"2")
    assert store.get("a/b") == b"1"
    test_a_paused_writer_cannot_commit_after_another_has_opened(tmp_path / "life")


@pytest.mark.parametrize("name", ["../x", "a/../x", "/etc/x", "", "a//b", "a\0b", "./a", "a/"])
def test_names_stay_inside(name: str, tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "store")
    for call in (lambda: store.put(name, b""), lambda: store.put_if_absent(name, b""),
                 lambda: store.get(name), lambda: store.delete(name)):  # fmt: skip
        with pytest.raises(NameRefused):
            call()
    assert not list(tmp_path.rglob("*"))


SLOW = f"{LIVES}:troubled,pause=0.02"


def test_a_whole_run_wakes_up_late(tmp_path: Path) -> None:
    """Real processes on a file system where a lock is not seen: one sleeps, another takes over and
    lives to the end; the first is told, and the rows are those of a lifetime alone."""
    out, keys = tmp_path / "run", {"curriculum": SLOW, "agents": ["random"], "checkpoint": 5}
    wrapper = tmp_path / "unlocked.py"
    wrapper.write_text(
        "import sys\nfrom perdure.store.lock import Lock\nLock.acquire = lambda self: None\n"
        "from perdure.cli.main import main\nmain(sys.argv[1:])\n"
    )
    command = [sys.executable, str(wrapper), *arguments(out, executor="serial", **keys)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: committed(out) >= 1, 20, first)
    first.send_signal(signal.SIGSTOP)
    second = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, err = second.communicate(timeout=60)
    first.send_signal(signal.SIGCONT)
    _, told = first.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (1, 0), told + err
    assert "left to its runner" in told and f"taken over by process {second.pid} on" in told
    assert statuses(out)["random/0"] == ("done", ""), "it has not failed: it is another's"
    done(run_here(tmp_path / "alone", **keys))
    same(out, snapshot(tmp_path / "alone"))
