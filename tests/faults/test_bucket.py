"""A run in an object store keeps the promises of one on disk: against real servers on loopback."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gcs_peer
import object_stores
import pytest
from helpers import (
    LIFE,
    LIVES,
    arguments,
    cli,
    done,
    eventually,
    finish,
    row,
    run_here,
    saved,
    snapshot,
    spawn,
    statuses,
    told,
)  # fmt: skip

from perdure.errors import LockedError, MissingExtra, MissingObject, NameRefused, StoreError
from perdure.measure.sources import find
from perdure.run.persistence import save_spec
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.store import journal, lifetime_folder
from perdure.store.bucket import BucketStore
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.log import Lifetime, LifetimeLog, sizes_of
from perdure.store.run import Run
from perdure.store.urls import UrlPath, is_url, output_beside, place

RACES = 1000


SERVERS = {"s3": object_stores.seaweedfs, "az": object_stores.azurite}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-objects-", dir=memory) as folder:
        with SERVERS[request.param](Path(folder)):
            yield request.param


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> UrlPath:
    """A place of its own for each test."""
    return UrlPath(f"{server}://perdure-tests/{request.node.originalname}")


def test_urls_are_paths_that_no_file_is_opened_by() -> None:
    path = place("s3://bucket/runs/x")
    assert isinstance(path, UrlPath) and str(path) == "s3://bucket/runs/x" == str(place(path))
    assert (path / "q/0", path.parent, path.name) == (
        UrlPath("s3://bucket/runs/x/q/0"), UrlPath("s3://bucket/runs"), "x",
    )  # fmt: skip
    assert str(path / "q" / "0") == "s3://bucket/runs/x/q/0"
    assert str((path / "q/0").relative_to(path)) == "q/0"
    for use in (lambda: open(path), path.read_bytes, path.mkdir, path.stat):
        with pytest.raises(StoreError, match="s3://bucket/runs/x is in an object store"):
            use()
    assert (
        is_url("gs://b/x") and is_url("az://b/x") and not is_url("runs/s3") and not is_url("s3:/b")
    )
    assert not isinstance(place("runs/x"), UrlPath)
    for bad in ("s3://", "s3://b/../x"):
        with pytest.raises(StoreError, match="BUCKET/FOLDER"):
            place(bad)
    assert output_beside(path, "_report.html") == Path("x_report.html")


def test_what_is_asked_of_a_store(url: UrlPath) -> None:
    store = BucketStore(url)
    assert store.list("a") == () == store.folders()
    assert store.put_if_absent("a/b", b"1") and not store.put_if_absent("a/b", b"2")
    store.put("a/c/d", memoryview(b"333"))
    store.put("a/a", b"22")
    assert store.get("a/b") == b"1" and store.get("a/c/d") == b"333"
    assert store.list("a") == ("a/a", "a/b") and store.sizes("a") == {"a/a": 2, "a/b": 1}
    assert store.folders() == ("a",) and store.folders("a") == ("a/c",)
    with pytest.raises(StoreError, match="3 bytes, more than 2"):
        store.get("a/c/d", 2)
    with pytest.raises(MissingObject, match="a/nothing is missing"):
        store.get("a/nothing")
    other = BucketStore(url)
    assert other.get("a/b") == b"1" == store.get("a/b")
    assert store.replace("a/b", b"mine") and not other.replace("a/b", b"theirs")
    assert other.get("a/b") == b"mine" and other.replace("a/b", b"theirs")
    store.delete("a/b")
    store.delete("a/b")
    assert store.list("a") == ("a/a",) and store.unfinished("a") == ()
    with pytest.raises(NameRefused):
        store.get("../x")


def test_a_store_that_ignores_conditions_is_refused(tmp_path: Path) -> None:
    with object_stores.rclone(tmp_path / "rclone"):
        store = BucketStore(UrlPath("s3://perdure-tests/run"))
        with pytest.raises(StoreError, match=r"overwrites what it was told not to \(If-None-Match"):
            store.probe("_meta/probe")
        code, _, err = cli(*arguments("s3://perdure-tests/run"))  # type: ignore[arg-type]
        assert code == 2 and "two processes could both commit" in err
        assert not RunFolder("s3://perdure-tests/run").exists(), "nothing is planned there"


def test_a_store_that_keeps_its_promises_is_taken(url: UrlPath) -> None:
    store = BucketStore(url)
    store.probe("_meta/probe")
    assert store.list("_meta") == (), "nothing of it is left"


def test_google_cloud_storage_by_its_documented_requests(tmp_path: Path) -> None:
    """No server of theirs can be installed here: a peer stands in for it."""
    with gcs_peer.gcs(tmp_path):
        test_what_is_asked_of_a_store(UrlPath("gs://perdure-tests/asked"))
        BucketStore(UrlPath("gs://perdure-tests/probed")).probe("probe")
        test_killed_and_resumed(UrlPath("gs://perdure-tests/killed"), tmp_path)


def test_conflict_is_neither_yes_nor_no() -> None:
    with object_stores.hesitant(5) as served:
        store = BucketStore(UrlPath("s3://perdure-tests/x"))
        assert store.put_if_absent("a", b"1") and served.conflicts < 0
        assert not store.put_if_absent("a", b"2") and store.get("a") == b"1"
    with object_stores.hesitant(10**6):
        with pytest.raises(StoreError, match="answered 12 times that others do"):
            BucketStore(UrlPath("s3://perdure-tests/x")).put_if_absent("a", b"1")


def test_a_thousand_races_for_a_journal(url: UrlPath) -> None:
    """Two writers try for every entry; each has one author, who was told so."""
    won: list[dict[int, str]] = [{} for _ in range(2)]
    barrier = threading.Barrier(2)

    def race(who: int) -> None:
        store = BucketStore(url)
        for n in range(RACES):
            claim = journal.Session.here(n, 0)
            barrier.wait()
            try:
                journal.append(store, n, claim)
                won[who][n] = claim.token
            except LockedError:
                pass

    threads = [threading.Thread(target=race, args=(who,)) for who in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    authors = [[who for who in range(2) if n in won[who]] for n in range(RACES)]
    assert all(len(a) == 1 for a in authors)
    assert min(map(len, won)) > 20, "no race: one of them was always first"
    found = journal.read(BucketStore(url)).sessions
    assert [s.token for s in found] == [won[a[0]][n] for n, a in enumerate(authors)]


def test_writers_race_for_a_lifetime(url: UrlPath) -> None:
    """Whole sessions: claims, rows, checkpoints, deletions."""
    for k in range(8):
        path, made = url / f"{k}/a/0", [0, 0, 0]

        def live(who: int, path: UrlPath = path, made: list[int] = made, k: int = k) -> None:
            pause = random.Random(10 * k + who)
            try:
                with LifetimeLog(path, "a", 0) as writer:
                    for _ in range(3):
                        n = len(writer.commits)
                        writer.commit([row(n, who)], saved(who, n), {"who": who, "n": n})
                        made[who] += 1
                        time.sleep(pause.random() * 0.02)
            except LockedError:
                pass

        threads = [threading.Thread(target=live, args=(who,)) for who in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        life = Lifetime.read(path, verify=True)
        assert not life.notes and life.entries == len(life.sessions) + sum(made)
        for n, c in enumerate(life.commits):
            (found,) = life.segment(c).to_pylist()
            assert c.n == n == found["exp"] and found["return"] == c.position["who"]
        with LifetimeLog(path, "a", 0) as writer:
            assert len(writer.commits) == len(life.commits) >= 1
        named = {c.rows for c in life.commits} | {n for c in life.held() for n in sizes_of(c)}
        store = BucketStore(path)
        assert {n for f in ("rows", "_ckpt", "_parts") for n in store.list(f)} == named


def equal(out: UrlPath, alone: Path) -> None:
    """Rows, the bytes of their objects and the commits are those of a run on disk."""
    expected = snapshot(alone)
    assert statuses(out).keys() == expected.keys()  # type: ignore[arg-type]
    for job, parts in expected.items():
        life = Lifetime.read(out / job, verify=True)
        assert life.done and not life.notes
        assert [life.store.get(c.rows) for c in life.commits] == parts["files"], job
        assert [told(c) for c in life.commits] == parts["commits"], job
        assert len(life.store.list("rows")) == len(life.commits)


def commits(out: UrlPath) -> int:
    """How many there are; a look now and then, since each is several requests."""
    time.sleep(0.2)
    return len(LifetimeFolder(out / "random/0").journal().commits)


PAUSED = f"{LIVES}:troubled,pause=0.08"
SLOW = f"{LIVES}:troubled,pause=0.3"


def test_killed_and_resumed(url: UrlPath, tmp_path: Path) -> None:
    keys = {"curriculum": PAUSED, "agents": ["random"], "checkpoint": 5}
    for k in (1, 2):
        process = spawn(arguments(url, executor="serial", **keys))  # type: ignore[arg-type]
        eventually(lambda k=k: commits(url) >= 2 * k, 60, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert statuses(url)["random/0"][0] == "interrupted"  # type: ignore[arg-type]
    # Shared by two processes that end it, and never a second time.
    code, _, err = finish(arguments(url, executor="processes,workers=2", **keys))  # type: ignore[arg-type]
    assert code == 0, err
    done(run_here(tmp_path / "alone", **keys))
    equal(url, tmp_path / "alone")
    before = commits(url)
    assert finish(arguments(url, executor="processes", **keys))[0] == 0  # type: ignore[arg-type]
    assert commits(url) == before


def test_a_run_wakes_up_late(url: UrlPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one process gives signs of life, another is refused. It sleeps, and another takes over and
    ends the lifetime; the first is told."""
    wrapper = tmp_path / "quick.py"
    wrapper.write_text(
        "import sys\nfrom perdure.store import lifetime_folder\nlifetime_folder.PACE = 1.0\n"
        "from perdure.cli.main import main\nmain(sys.argv[1:])\n"
    )
    keys = {"curriculum": SLOW, "agents": ["random"], "checkpoint": 5}
    command = [sys.executable, str(wrapper), *arguments(url, executor="serial", **keys)]  # type: ignore[arg-type]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    first = subprocess.Popen(command, **pipes)
    eventually(lambda: commits(url) >= 1, 60, first)
    with monkeypatch.context() as m:
        m.setattr(lifetime_folder, "PACE", 2.0)
        with pytest.raises(LockedError, match=f"is being written by process {first.pid}"):
            LifetimeLog(url / "random/0", "random", 0)
    first.send_signal(signal.SIGSTOP)
    second = subprocess.Popen(command, **pipes)
    _, err = second.communicate(timeout=150)
    first.send_signal(signal.SIGCONT)
    _, told_first = first.communicate(timeout=150)
    assert (first.returncode, second.returncode) == (1, 0), told_first + err
    assert f"taken over by process {second.pid} on" in told_first
    assert statuses(url)["random/0"] == ("done", "")  # type: ignore[arg-type]
    done(run_here(tmp_path / "alone", **keys))
    equal(url, tmp_path / "alone")


def test_plans_made_together_are_all_kept(url: UrlPath) -> None:
    """No lock: what is written takes the place of what was read, or is read again."""
    plans = [make_plan(RunSpec(LIFE, (f"a{k}=random",), out=str(url))) for k in range(8)]

    def add(k: int) -> None:
        plan = plans[k]
        weights = {job.id: 1.0 for job in plan.jobs}
        save_spec(plan.spec, plan.agents, plan.curriculum(0).to_json(), weights)

    threads = [threading.Thread(target=add, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert RunFolder(url).spec()["agents"].keys() == {f"a{k}" for k in range(8)}
    assert RunFolder(url).jobs().keys() == {f"a{k}/0" for k in range(8)}


def test_everything_that_reads_reads_urls(
    url: UrlPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done(run_here(url / "run"))  # type: ignore[arg-type]
    done(run_here(tmp_path / "disk"))
    assert Run(str(url / "run")).rows() == Run(tmp_path / "disk").rows()
    scores = [
        cli("measure", str(p), "--json", "scores.json") for p in (url / "run", tmp_path / "disk")
    ]
    assert scores[0][0] == scores[1][0] == 0 and scores[0][1] == scores[1][1]
    assert len(find(url).sources) == 1, "a folder of runs"
    code, out, _ = cli("watch", str(url / "run"))
    assert code == 0 and "1 done" in out
    code, out, _ = cli("report", str(url / "run"))
    assert code == 0 and (tmp_path / "run_report.html").stat().st_size > 10_000
    assert cli("check", str(url / "run"))[0] == 0
    code, _, err = cli("run", LIFE, "--agent=q", "--checkpoint=41", f"--out={url / 'run'}")
    assert code == 2 and "holds another run" in err
    view = spawn(["view", str(url / "run")])
    try:
        assert view.stdout is not None
        served = view.stdout.readline().split()[0]
        with urllib.request.urlopen(f"{served}/report", timeout=60) as page:
            assert b"perdure" in page.read().lower()
    finally:
        view.send_signal(signal.SIGINT)
        view.communicate(timeout=20)
    assert LifetimeFolder(url / "run/q/0").status() == "done"


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingExtra, match="a run in s3://nowhere needs the 'objectstore' extra"):
        BucketStore(UrlPath("s3://nowhere/x"))
