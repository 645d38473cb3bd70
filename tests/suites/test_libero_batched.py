"""LIBERO's environments in several processes: the same to the bit, and none is left behind."""

import functools
import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from libero_kit import task

from perdure.errors import EnvironmentFault
from perdure.registry import suite
from perdure.suite import Episode
from perdure.suites._env_processes import EnvProcess, env_hosts

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


def test_what_goes_wrong_in_another_process_is_raised_here():
    (_, other) = env_hosts(os.getpid(), 2)
    with pytest.raises(EnvironmentFault, match=r"ValueError: invalid literal.*'x'"):
        other.make(functools.partial(int, "x"))
    number = other.make(functools.partial(io.StringIO, "a cup"))
    requests = [other.ask([(number, "read", (size,))]) for size in (2, 3)]
    assert [other.answer(r) for r in reversed(requests)] == [["cup"], ["a "]]
    other.drop(number)


def test_a_process_that_is_killed_is_named_and_replaced(monkeypatch):
    envs = batch(monkeypatch, 2, 2, cameras=[])
    for slot in (0, 1):
        envs.reset(slot, Episode.alone(slot))
    (other,) = (host for host in envs.hosts if isinstance(host, EnvProcess))
    os.kill(other._process.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFault, match=r"exit code -9.*PERDURE_THREADS=1"):
        envs.step([0, 1], [np.zeros(7, np.float32)] * 2)
    envs.close()
    again = batch(monkeypatch, 2, 2, cameras=[])
    again.reset(1, Episode.alone(1))
    again.close()


def test_processes_end_with_the_one_that_started_them():
    program = (
        "import os; from perdure.suites._env_processes import env_hosts\n"
        "other = env_hosts(os.getpid(), 2)[1]; other.make(int)\n"
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


def test_one_core_needs_no_process(monkeypatch):
    envs = batch(monkeypatch, 1, 3, cameras=[])
    assert len(envs.hosts) == 1 and envs.hosts[0].held >= 3
    envs.close()
