"""kill -9 of agents with something in mind: a GRU in mid-trial, a replay of pictures, meta-learners in
the midst of an adaptation."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from helpers import arguments, committed, done, eventually, finish, run_here, same, snapshot, spawn

LIVES = {
    "a GRU that recalls a cue": {
        "curriculum": "toy/recall,steps=3000,episodes=20",
        "agents": ["recurrent_ppo,rollout=200"],
        "envs": 3,
        "checkpoint": 170,
    },
    "a GRU in mid-trial": {
        "curriculum": "toy/trials,steps=2500,episodes=60",
        "agents": ["recurrent_ppo,scope=trial,rollout=150"],
        "envs": 4,
        "checkpoint": 130,
    },
    "RL2 that adapts": {
        "curriculum": "toy/meta-bandit,steps=1500,trial=4,shots=3,goals=3",
        "agents": ["rl2,trials=6,sequence=40,batch=4,epochs=2,hidden=[8],width=8"],
        "envs": 3,
        "checkpoint": 70,
    },
    "MAML that adapts": {
        "curriculum": "toy/meta-mass,steps=2400,trial=5,shots=3,goals=3",
        "agents": ["maml,shots=3,tasks=6,hidden=[8]"],
        "envs": 3,
        "checkpoint": 110,
    },
    "PEARL that adapts": {
        "curriculum": "toy/meta-mass,steps=1200,trial=4,shots=3,goals=3",
        "agents": ["pearl,preset=quick,start=100,replay=500,tasks=4,batch=8,context=20"],
        "envs": 3,
        "checkpoint": 70,
    },
    "SAC on numbers and pictures": {
        "curriculum": "toy/signed-reach,steps=400,episodes=3",
        "agents": ["sac,start=50,batch=16,hidden=[32],every=4"],
        "envs": 2,
        "checkpoint": 45,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIVES)
def test_killed_resumed_and_repeated(name: str, tmp_path: Path) -> None:
    life, out = LIVES[name], tmp_path / "run"
    done(run_here(tmp_path / "whole", **life))
    expected = snapshot(tmp_path / "whole")
    done(run_here(tmp_path / "again", **life))
    same(tmp_path / "again", expected)
    args = arguments(out, **life)
    for delay in (0.0, 0.03):
        process, before = spawn(args), committed(out)
        eventually(lambda b=before: committed(out) >= b + 2, 60, process)
        time.sleep(delay)
        process.kill()
        process.communicate()
    assert 4 <= committed(out) < committed(tmp_path / "whole"), "killed before its end"
    code, _, err = finish(args)
    assert code == 0, err
    same(out, expected)
