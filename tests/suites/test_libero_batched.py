"""LIBERO's environments in several processes: the same to the bit, and none is left behind."""

import functools
import io
import os
import re
import select
import signal
import subprocess
import sys
import time
import traceback

import numpy as np
import pytest
from libero_kit import task

from perdure.errors import CurriculumError, EnvironmentFault, Hung
from perdure.registry import suite
from perdure.run.signals import deadline
from perdure.run.vector import fault
from perdure.suite import Episode
from perdure.suites._env_processes import EnvProcess, env_hosts
from perdure.suites.libero.folders import tasks_in

SUITE = suite("libero")
STEPS = 3


def batch(monkeypatch, cores, count=3, name="object-0", **params):
    monkeypatch.setenv("PERDURE_THREADS", str(cores))
    return SUITE.batched_env(task(name, look="primitive", size=16, settle=0, **params), count)


def played(envs):
    moves = np.random.default_rng(0).uniform(-1, 1, (STEPS, 3, 7)).astype("f4")
    out = [envs.reset(slot, Episode.alone(slot)) for slot in range(3)]
    for t, move in enumerate(moves):
        slots = [2, 0, 1] if t % 2 else [1, 2]
        seen, *rest = envs.step(slots, list(move[slots]))
        out += [*seen, repr(rest)]
    envs.close()
    return out


def test_processes_change_nothing(monkeypatch):
    alone, shared = played(batch(monkeypatch, 1)), played(batch(monkeypatch, 2))
    for a, b in zip(alone, shared, strict=True):
        np.testing.assert_equal(a, b)


def test_each_process_has_as_many(monkeypatch):
    """Also of tasks with one environment each, as in a block of ten tasks in parallel."""
    here, other = env_hosts(os.getpid(), 2)
    before = here.held, other.held
    several = [batch(monkeypatch, 2, 1, f"object-{k}", cameras=[]) for k in range(4)]
    assert (here.held - before[0], other.held - before[1]) == (2, 2)
    for envs in several:
        envs.close()
    assert (here.held, other.held) == before


def test_pictures_that_nobody_looks_at_are_black_in_any_process(monkeypatch):
    envs = batch(monkeypatch, 2, 2)
    for slot in (0, 1):
        envs.reset(slot, Episode.alone(slot))
    for skipped in ([0, 1], []):
        envs.skip_pictures(skipped)
        seen, *_ = envs.step([0, 1], [np.zeros(7, np.float32)] * 2)
        assert [bool(s["agentview_image"].any()) for s in seen] == [not skipped] * 2
    envs.close()


def made(host, *parts):
    number, request = host.make(functools.partial(*parts))
    host.answer(request)
    return number


def test_what_goes_wrong_in_another_process_is_raised_here(tmp_path):
    """By its own name, with its file and line, and Perdure's own as themselves."""
    (_, other) = env_hosts(os.getpid(), 2)
    with pytest.raises(Exception, match=r"^invalid literal.*'x'\n") as caught:
        made(other, int, "x")
    said = fault("making x", caught.value)
    assert isinstance(said, EnvironmentFault)
    assert re.match(r"making x raised ValueError: .*'x' \(.*_env_processes.py:\d+\)$", str(said))
    trace = "".join(traceback.format_exception(caught.value))
    assert "In the process that stepped the environment:" in trace
    assert "in _done\n    envs[number] = given[0]()" in trace
    with pytest.raises(CurriculumError, match="there is none"):
        made(other, tasks_in, str(tmp_path / "nowhere"))
    number = made(other, io.StringIO, "a cup")
    requests = [other.ask([(number, "read", (size,))]) for size in (1, 1, 3)]
    other.forget(requests[0])
    assert [other.answer(r) for r in reversed(requests[1:])] == [["cup"], [" "]]
    other.drop(number)


def children(envs):
    (other,) = (host for host in envs.hosts if isinstance(host, EnvProcess))
    return other, other._process.pid


@pytest.mark.parametrize("when", ["asked", "answered"])
def test_a_process_whose_answer_is_broken_off_is_replaced(when):
    """A deadline rings while half of a message is under way; nothing after it waits for the rest."""
    (_, other) = env_hosts(os.getpid(), 2)
    number, whole = made(other, io.BytesIO, bytes(4_000_000)), bytes(4_000_000)
    pid = other._process.pid
    with deadline(30):
        if when == "answered":
            request = other.ask([(number, "read", ())])
            select.select([other._pipe], [], [])
        os.kill(pid, signal.SIGSTOP)  # It has sent what there is room for, or reads no more.
        with pytest.raises(Hung), deadline(0.2):
            other.answer(request) if when == "answered" else other.ask(
                [(number, "write", (whole,))]
            )
        began = time.monotonic()
        other.drop(number)
        with pytest.raises(EnvironmentFault, match="was ended when its answer was not waited for"):
            other.ask([(number, "read", ())])
        (_, another) = env_hosts(os.getpid(), 2)
        other.drop(number)
        assert env_hosts(os.getpid(), 2)[1] is another is not other, (
            "only what is broken is replaced"
        )
        again = made(another, io.StringIO, "a cup")
        assert another.answer(another.ask([(again, "read", ())])) == ["a cup"]
        another.drop(again)
    assert not os.path.exists(f"/proc/{pid}") and time.monotonic() - began < 20


def test_a_process_that_is_killed_is_named_and_replaced(monkeypatch):
    envs = batch(monkeypatch, 2, 2, cameras=[])
    for slot in (0, 1):
        envs.reset(slot, Episode.alone(slot))
    (other,) = (host for host in envs.hosts if isinstance(host, EnvProcess))
    os.kill(other._process.pid, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(EnvironmentFault, match=r"exit code -9.*PERDURE_THREADS=1"):
            envs.step([0, 1], [np.zeros(7, np.float32)] * 2)
    envs.close()
    again = batch(monkeypatch, 2, 2, cameras=[])
    again.reset(1, Episode.alone(1))
    again.close()


def test_processes_end_with_the_one_that_started_them():
    program = (
        "import os; from perdure.suites._env_processes import env_hosts\n"
        "other = env_hosts(os.getpid(), 2)[1]; other.answer(other.make(int)[1])\n"
        "print(other._process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    pid = int(done.stdout)
    for _ in range(100):
        try:
            state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        except OSError:
            return
        if state == "Z":  # Nobody waits for it here.
            return
        time.sleep(0.1)
    pytest.fail(f"process {pid} is still there")


def test_first_episodes_begin_at_once_and_are_the_same(monkeypatch):
    """Also where others come than were expected, and where one of those goes wrong."""
    expected = [Episode(7, 7, 0), Episode(8, 7, 1), Episode(9, 9, 2), Episode(10, 10, 3)]
    monkeypatch.setenv("PERDURE_THREADS", "1")
    alone = SUITE.env(task("object-0", look="primitive", size=16, settle=0))
    envs = batch(monkeypatch, 2)
    envs.expect(expected)
    asked = [(host, [e.seed for e in mine.values()]) for host, _, mine in envs.begun]
    assert [seeds for _, seeds in asked] == [[7, 10], [9]], "each trial's first, in two processes"
    for slot, episode in ((1, expected[2]), (0, expected[0]), (2, expected[1])):
        np.testing.assert_equal(envs.reset(slot, episode), alone.begin(episode))
    envs.expect(expected)
    assert not envs.begun, "no episode under way is lost to one that is expected"
    envs.close()
    envs = batch(monkeypatch, 2, initial_states="official", cameras=[])
    bad = Episode(1, 1, 51)
    envs.expect([bad])
    with pytest.raises(EnvironmentFault, match="50 official"):
        envs.reset(0, bad)
    assert envs.reset(0, expected[0])["robot0_joint_pos"].shape == (7,)
    envs.close()


def test_one_core_needs_no_process(monkeypatch):
    envs = batch(monkeypatch, 1, 3, cameras=[])
    assert len(envs.hosts) == 1 and envs.hosts[0].held >= 3
    envs.close()
