"""Two runners on one lifetime: the second refuses. A dead owner holds nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from helpers import (
    LIFE,
    LIVES,
    arguments,
    committed,
    done,
    eventually,
    finish,
    run_here,
    same,
    snapshot,
    spawn,
    statuses,
)

from perdure.errors import LockedError
from perdure.store.lock import Lock
from perdure.store.log import LifetimeLog

SLOW = f"{LIVES}:troubled,pause=0.02"
"""A life of a second or two."""


@pytest.mark.parametrize("executor", ["serial", "processes,retries=0"])
def test_the_second_runner_refuses(executor: str, tmp_path: Path) -> None:
    out, keys = tmp_path / "run", {"curriculum": SLOW, "agents": ["random"], "checkpoint": 10}
    first = spawn(arguments(out, executor=executor, **keys))
    lock = out / "random/0/_meta/lock"
    eventually(lambda: committed(out) >= 1, 20, first)
    owner = json.loads(lock.read_text())
    os.kill(owner["pid"], signal.SIGSTOP)  # It lives, and is slower than any test.
    code, _, err = finish(arguments(out, executor=executor, **keys))
    os.kill(owner["pid"], signal.SIGCONT)
    assert code == 1, err
    assert f"left to its runner: random/0: {out / 'random/0'}" in err
    assert "failed" not in err, "nothing of it has"
    named = f"process {owner['pid']} on {socket.gethostname()}"
    assert named in err, "the owner is named"
    _, err = first.communicate(timeout=30)
    assert first.returncode == 0, err
    done(run_here(tmp_path / "alone", **keys))
    same(out, snapshot(tmp_path / "alone"))


def test_a_second_writer_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with LifetimeLog(tmp_path / "life", "q", 0):
        with pytest.raises(LockedError, match=f"process {os.getpid()} on"):
            LifetimeLog(tmp_path / "life", "q", 0)
    LifetimeLog(tmp_path / "life", "q", 0).close()


def test_a_dead_owners_lock_is_taken_over(tmp_path: Path) -> None:
    out, keys = tmp_path / "run", {"curriculum": SLOW, "agents": ["random"], "checkpoint": 10}
    process = spawn(arguments(out, **keys))
    lock = out / "random/0/_meta/lock"
    eventually(lambda: committed(out) >= 1, 20, process)
    assert Lock.held(lock)
    process.kill()
    process.communicate()
    assert lock.read_text(), "it could not clean up"
    assert not Lock.held(lock)
    assert statuses(out)["random/0"][0] == "interrupted"
    done(run_here(out, **keys))


def test_a_childs_child_does_not_keep_a_dead_owners_lock(tmp_path: Path) -> None:
    """An environment may fork helpers that outlive it."""
    path = tmp_path / "lock"
    ready, orphan = os.pipe(), os.pipe()
    owner = os.fork()
    if owner == 0:
        lock = Lock(path)
        lock.acquire()
        helper = os.fork()
        if helper == 0:
            os.write(ready[1], b"x")
            time.sleep(60)
            os._exit(0)
        os.write(orphan[1], str(helper).encode())
        time.sleep(60)
        os._exit(0)
    os.read(ready[0], 1)
    helper = int(os.read(orphan[0], 20))
    try:
        assert Lock.held(path), "the owner lives"
        os.kill(owner, signal.SIGKILL)
        os.waitpid(owner, 0)
        os.kill(helper, 0)
        with Lock(path):
            pass
    finally:
        os.kill(helper, signal.SIGKILL)
        for fd in (*ready, *orphan):
            os.close(fd)


def test_whoever_watches_does_not_keep_a_runner_out(tmp_path: Path) -> None:
    path, stop = tmp_path / "lock", threading.Event()
    path.touch()
    seen = []

    def watch() -> None:
        while not stop.is_set():
            seen.append(Lock.held(path))

    watchers = [threading.Thread(target=watch) for _ in range(3)]
    for w in watchers:
        w.start()
    try:
        time.sleep(0.1)
        assert not any(seen), "watchers take each other for the owner"
        for _ in range(100):
            with Lock(path):
                assert Lock.held(path)
    finally:
        stop.set()
        for w in watchers:
            w.join()


def test_a_lock_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A life whose folder is a file: a typed error, not a traceback."""
    (tmp_path / "run" / "q").mkdir(parents=True)
    (tmp_path / "run" / "q" / "0").write_text("in the way")
    (tmp_path / "run" / "_meta").mkdir()
    code, _, err = finish(arguments(tmp_path / "run", LIFE))
    assert code == 2 and "not empty and not a Perdure run" in err and "Traceback" not in err
