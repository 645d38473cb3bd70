"""kill -9 of ``perdure eval`` and of a lifetime whose policy others train and serve: the same command goes on, and
ends with the rows of an undisturbed one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from helpers import eventually, finish, same, snapshot, spawn

POLICIES = Path(__file__).parents[1] / "policies"
sys.path.insert(0, str(POLICIES))

from peers import OpenPi, served
from test_finetuned import CURRICULUM, finetuned

EPISODES, HORIZON = 5, 60


def evaluation(out: Path, port: int) -> list[str]:
    changes = ["--set", f"horizon={HORIZON}", "--episodes", str(EPISODES), "--envs", "1"]
    policy = ["--policy", f"far=ws://127.0.0.1:{port}"]
    return [
        "eval",
        "metaworld/reach",
        "--protocol",
        "official",
        *changes,
        *policy,
        "--out",
        str(out),
    ]


def swing(obs):
    """Moves to and fro, by what it sees: actions that depend on the observation."""
    hand = obs["observation/state"][:3]
    return np.r_[np.sin(40 * hand), 0.0][None]


def test_an_evaluation_goes_on_after_kill_9(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    with served(OpenPi(swing).handle) as port:
        assert finish(evaluation(whole, port))[0] == 0
    # The same address, which is part of what a policy is.
    peer = OpenPi(swing)
    with served(peer.handle, port):
        process = spawn(evaluation(broken, port))
        eventually(lambda: peer.count > 250, 100, process)  # Of 301, and a commit at 200.
        process.kill()
        process.communicate()
        before = peer.count
        code, told, err = finish(evaluation(broken, port))
    assert code == 0, err
    assert f"of {EPISODES}" in told
    # One question before the first episode; what was committed is not played again.
    assert peer.count - before < EPISODES * HORIZON - 200 + 10
    same(broken, snapshot(whole))


def servers(work: Path) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        mine = any("small_server.py" in part for part in line) and str(work) in line
        if mine and process.info["status"] != "zombie":
            found.append(process.pid)
    return found


@pytest.mark.parametrize("when", ["training", "evaluation"])
def test_a_lifetime_of_a_finetuned_policy_goes_on_after_kill_9(when: str, tmp_path: Path) -> None:
    """The trainer kills the run in the middle of its work, half of its files written; or the server does in the
    middle of the second evaluation."""
    agent = f"vla={finetuned(tmp_path / 'work')}"
    args = [
        "run",
        CURRICULUM,
        "--agent",
        agent,
        "--checkpoint",
        "4",
        "--executor",
        "serial",
        "--out",
    ]
    assert finish([*args, str(tmp_path / "whole")])[0] == 0
    (seed,) = (tmp_path / "work").iterdir()
    (seed / f"kill-in-{when}").touch()
    code, _, _ = finish([*args, str(tmp_path / "broken")])
    assert code == -9 and not (seed / f"kill-in-{when}").exists()
    eventually(lambda: not servers(tmp_path / "work"), 10)  # Nor does the server live on.
    code, _, err = finish([*args, str(tmp_path / "broken")])
    assert code == 0, err
    same(tmp_path / "broken", snapshot(tmp_path / "whole"))
    assert not servers(tmp_path / "work")
