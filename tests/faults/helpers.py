"""What the fault tests share: running, killing, comparing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from click.testing import CliRunner

from perdure.agents.learners.q import QAgent
from perdure.cli.main import main
from perdure.run.experiment import execute
from perdure.run.lifetime import Outcome
from perdure.run.plan import Plan, make_plan
from perdure.run.spec import RunSpec
from perdure.store.journal import Commit
from perdure.store.layout import LifetimeFolder
from perdure.store.log import Lifetime
from perdure.store.rows import Row
from perdure.store.run import Run
from perdure.testing.agents import read_rows

LIVES = Path(__file__).with_name("lives.py")
LIFE = f"{LIVES}:life"
COMMAND = [sys.executable, "-m", "perdure"]
Snapshot = dict[str, dict[str, Any]]


def plan_of(out: Path, curriculum: str = LIFE, agents: Sequence[str] = ("q",), **keys: Any) -> Plan:
    """A plan, serial and with small checkpoints unless told otherwise."""
    keys = {"executor": "serial", "checkpoint": 40, **keys}
    return make_plan(RunSpec(curriculum, tuple(agents), out=str(out), **keys))


def moved(plan: Plan, out: Path) -> Plan:
    """The same plan for another folder, without checking everything again: for tests that run
    one life hundreds of times."""
    new = replace(plan, spec=replace(plan.spec, out=str(out)), factories={"q": QAgent})
    new.__dict__.update(resolved=plan.resolved, jobs=plan.jobs)
    return new


def run_here(out: Path, *args: Any, **keys: Any) -> list[Outcome]:
    """Run (or resume) with the executor living in this process."""
    return execute(plan_of(out, *args, **keys))


def done(outcomes: Sequence[Outcome]) -> None:
    """Every lifetime ended well."""
    assert not [o for o in outcomes if o.status != "done"], outcomes


def arguments(
    out: Path, curriculum: str = LIFE, agents: Sequence[str] = ("q",), **keys: Any
) -> list[str]:
    """The same as a command line's arguments."""
    keys = {"executor": "serial", "checkpoint": 40, **keys}
    flags = [f"--{k}={v}" for k, v in keys.items()]
    return ["run", curriculum, *(f"--agent={a}" for a in agents), f"--out={out}", *flags]


def cli(*args: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command, in this process."""
    result = CliRunner().invoke(main, list(args))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def spawn(args: Sequence[str], **keys: Any) -> subprocess.Popen[str]:
    """A real ``perdure`` process."""
    keys = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **keys}
    return subprocess.Popen([*COMMAND, *args], **keys)


def finish(args: Sequence[str], **keys: Any) -> tuple[int, str, str]:
    """Run a real ``perdure`` process to its end."""
    process = spawn(args, **keys)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def eventually(
    what: Callable[[], Any], seconds: float = 20.0, process: subprocess.Popen[str] | None = None
) -> Any:
    """Wait until something is true; in vain if the process that should do it has ended."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.005)
    return found


def workers_of(out: Path) -> list[psutil.Process]:
    """Every living worker of a run, whoever its parent is."""
    found = []
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            continue
        if alive and "perdure.run.worker" in line and str(out) in line:
            found.append(process)
    return found


def no_workers(out: Path, seconds: float = 5.0) -> None:
    """No worker of a run lives on."""
    eventually(lambda: not workers_of(out), seconds)


def committed(out: Path) -> int:
    """How many commits the lifetimes of a run have together."""
    return sum(len(LifetimeFolder(p.parent).journal().commits) for p in out.glob("*/*/_journal"))


def snapshot(run: Path) -> Snapshot:
    """All that must be equal: the rows, the bytes of their files, the commits (which hold the
    digest of every checkpoint and the place of each), and that nothing is damaged."""
    out: Snapshot = {}
    for info in Run(run).lifetimes():
        if info.status == "failed":
            continue
        life = Lifetime.read(info.path, verify=True)
        assert not life.notes, life.notes
        for c in life.held():
            life.load_state(c)
        files = {f"rows/{name}": data for name, data in contents(info.path / "rows").items()}
        out[info.id] = {
            "status": info.status,
            "rows": read_rows(info.path),
            "files": [files.pop(c.rows) for c in life.commits],
            "not committed": files,
            "commits": [told(c) for c in life.commits],
        }
    assert out
    return out


def told(commit: Commit) -> dict[str, Any]:
    """A commit without the session that made it, by whose number objects are named."""
    out = {k: v for k, v in commit.__dict__.items() if k not in ("token", "rows", "checkpoint")}
    found = commit.checkpoint
    if found is not None:
        parts = {n: {**a, "parts": [p.split("-")[1] for p in a["parts"]]} for n, a in
                 found["arrays"].items()}  # fmt: skip
        out["checkpoint"] = {"bundle": found["bundle"]["sha256"], "arrays": parts}
    return json.loads(json.dumps(out))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, if there is one."""
    return {p.name: p.read_bytes() for p in sorted(folder.glob("*"))}


def same(run: Path, expected: Snapshot) -> None:
    """A run is done and equals an undisturbed one to the last byte."""
    found = snapshot(run)
    assert found.keys() == expected.keys()
    for life, parts in found.items():
        assert parts["status"] == "done", life
        for name, value in parts.items():
            assert value == expected[life][name], f"{life}: {name} differ"


def statuses(run: Path) -> dict[str, tuple[str, str]]:
    """Status and error of each lifetime."""
    return {i.id: (i.status, i.error) for i in Run(run).lifetimes()}


# Commits of a lifetime that nobody lives.


def row(exp: int, who: int) -> Row:
    """A row that tells who wrote it."""
    return Row(
        exp, 0, True, "learn", True, 0, "toy/x", "", "", 0, exp, exp, who, 0, 1, exp, "complete",
        True, False, float(who), None, None, None, None, None,
    )  # fmt: skip


def saved(who: int, n: int) -> dict[str, Any]:
    """Small and large, half of it the same for everybody."""
    return {"own": np.full(9, 100 * who + n), "large": np.full(40_000, float(n))}


# The calls by which anything reaches the disk.

CALLS = ("open", "write", "pwrite", "fsync", "replace", "link", "mkdir", "ftruncate", "unlink")


@contextmanager
def disk_calls(before: Callable[[str, tuple[Any, ...]], None], under: Path) -> Iterator[None]:
    """Call ``before(name, args)`` ahead of each of these ``os`` calls on files under a folder."""
    originals = {name: getattr(os, name) for name in (*CALLS, "close")}
    ours: set[int] = set()

    def wrap(name: str) -> Callable[..., Any]:
        original = originals[name]

        def call(*args: Any, **keys: Any) -> Any:
            target = args[0]
            if isinstance(target, int):
                mine = target in ours
            else:
                mine = os.fspath(target).startswith(str(under))
            if mine and name in CALLS:
                before(name, args)
            result = original(*args, **keys)
            if name == "open" and mine:
                ours.add(result)
            if name == "close":
                ours.discard(target)
            return result

        return call

    for name in originals:
        setattr(os, name, wrap(name))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(os, name, original)
