"""Agents that leave threads and children behind, shout, or crash in compiled code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from helpers import LIVES, arguments, done, eventually, finish, run_here, spawn, statuses

from perdure.run.executors.output import END, WorkerOutput
from perdure.run.lifetime import FAILED, NOTE
from perdure.store.layout import LifetimeFolder

CURRICULUM = f"{LIVES}:troubled"
EXECUTORS = ("serial", "processes,retries=0")


def agent(how: str, **keys: object) -> str:
    more = "".join(f',{k}="{v}"' if isinstance(v, Path) else f",{k}={v}" for k, v in keys.items())
    return f"a={LIVES}:Misbehaving,how={how}{more}"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_threads_left_behind_do_not_keep_a_run_from_ending(executor: str, tmp_path: Path) -> None:
    """Far sooner than the deadline of ten minutes."""
    code, _, err = finish(
        arguments(tmp_path / "run", CURRICULUM, [agent("thread")], executor=executor)
    )
    assert code == 0, err
    assert "left-behind" in err, "the thread is named"
    assert statuses(tmp_path / "run") == {"a/0": ("done", "")}


def test_much_output_and_a_long_error(tmp_path: Path) -> None:
    out = tmp_path / "run"
    (outcome,) = run_here(out, CURRICULUM, [agent("loud")], executor="processes,retries=0")
    assert outcome.status == "failed"
    for text in (outcome.error, statuses(out)["a/0"][1]):
        assert "RuntimeError: it begins yyy" in text and "it ends" in text[-200:]
        assert "characters left out" in text and len(text) < 5000
    kept = json.loads(Path(LifetimeFolder(out / "a/0").error_in).read_text())
    assert len(kept["traceback"]) < 200_000 and "misbehave" in kept["traceback"]


def test_output_is_kept_small_and_has_both_its_ends() -> None:
    notes: list[str] = []
    output = WorkerOutput(notes.append)
    write = "import os\nfor _ in range(64): os.write(1, b'x' * (1 << 20))"
    script = f"{write}\nprint('\\n{FAILED}the end')"
    os.write(output.fd, f"{NOTE}a word at first\n".encode())
    subprocess.run([sys.executable, "-c", script], stdout=output.fd, check=True)
    tail, failure = output.said()
    assert notes == [f"{NOTE}a word at first"]
    assert failure == "the end" and tail.endswith(f"{FAILED}the end")
    assert len(output.text()) < 3 * END
    output.close()


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="what left its group is found by /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("how", ["child", "daemon"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_children_do_not_outlive_a_killed_run(
    executor: str, how: str, number: signal.Signals, tmp_path: Path
) -> None:
    """Also such as have left the worker's group and session."""
    flag = tmp_path / "flag"
    bad = agent(how, flag=flag, pause=1.0)
    run = spawn(arguments(tmp_path / "run", CURRICULUM, [bad], executor=executor))
    told = flag.with_suffix(".pid")
    child = int(eventually(lambda: told.exists() and told.read_text(), 60, run))
    assert not gone(child)
    run.send_signal(number)
    run.communicate(timeout=60)
    eventually(lambda: gone(child), 20)


def test_a_finished_run_leaves_the_children_of_its_own_process_alone(tmp_path: Path) -> None:
    """They belong to whoever called it, and may be of use to them."""
    flag = tmp_path / "flag"
    done(run_here(tmp_path / "run", CURRICULUM, [agent("child", flag=flag)]))
    child = psutil.Process(int(flag.with_suffix(".pid").read_text()))
    try:
        assert child.is_running() and child.status() != psutil.STATUS_ZOMBIE
    finally:
        child.kill()
        child.wait(10)
    assert "PERDURE_FAMILY" not in os.environ


def test_a_crash_in_compiled_code_says_where(tmp_path: Path) -> None:
    out = tmp_path / "run"
    (outcome,) = run_here(out, CURRICULUM, [agent("crash")], executor="processes,retries=1")
    assert outcome.status == "failed"
    assert "died with signal 11, 2 times. Segmentation fault at" in outcome.error
    assert "lives.py:" in outcome.error and "in misbehave" in outcome.error
    kept = LifetimeFolder(out / "a/0").error()
    assert kept is not None and "in act" in kept["traceback"]


def test_a_crash_of_the_run_itself_is_told_by_the_next(tmp_path: Path) -> None:
    out, flag = tmp_path / "run", tmp_path / "flag"
    args = arguments(out, CURRICULUM, [agent("crash", flag=flag)])
    assert finish(args)[0] == -signal.SIGSEGV
    assert "in misbehave" in LifetimeFolder(out / "a/0").crash()
    code, _, err = finish(args)
    assert code == 0, err
    assert "the last session crashed: Segmentation fault at" in err and "in misbehave" in err
    assert statuses(out) == {"a/0": ("done", "")}
    assert not list(out.rglob("crash.txt")), "it is told once"
