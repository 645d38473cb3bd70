"""Strategies with reinforcement learners of continuous actions: they resume, and they keep."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import perdure
from perdure.errors import SpecError
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.testing import check_agent
from perdure.types import Setup

torch = pytest.importorskip("torch")

from perdure.agents.learners.sac import SACAgent
from perdure.agents.strategies.fisher import fisher

REACHING = Path(__file__).with_name("reaching.py")
SAC = "hidden=[16,16],start=20,batch=8,every=4"
PPO = "rollout=32,batch=16,epochs=2"


@pytest.mark.parametrize(
    "agent",
    [
        f"ewc+sac,{SAC},samples=20",
        f"packnet+sac,{SAC},retrain=5,memory=20",
        f"replay+sac,{SAC},memory=30",
        f"agem+sac,{SAC}",
        f"ewc+sac,preset=quick,{SAC},multihead=true,samples=20",
        f"ewc+ppo,{PPO},samples=20",
        f"si+ppo,{PPO},baseline=linear",
        f"packnet+ppo,{PPO},retrain=5,memory=20",
        f"ewc+te,{PPO},samples=20,embedding=2,window=3",
    ],
)
def test_a_life_of_two_tasks_resumes_to_the_bit(agent):
    """Killed after its first, a middle and its last commit, it ends with the same rows."""
    assert check_agent(agent, (f"{REACHING}:turn",)) == []


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("replay+ppo", "drawn by an older policy"),
        ("agem+ppo", "drawn by an older policy"),
        ("replay+te", "drawn by an older policy"),
        ("ewc+trpo", "line search"),
    ],
)
def test_pairs_that_mean_nothing_are_refused_at_planning(agent, says):
    with pytest.raises(SpecError, match=says):
        make_plan(RunSpec(f"{REACHING}:turn", (agent,)))


def final(tmp_path, agent):
    """Mean returns of the first task and the second, at the end of a life of both."""
    run = perdure.experiment(
        f"{REACHING}:turn,steps=3000,episodes=10",
        [f"lived={agent}"],
        out=str(tmp_path / agent.partition(",")[0]),
        executor="serial",
    )
    frame = run.rows().to_pandas()
    last = frame[frame.block == frame.block.max()].groupby("variant")["return"].mean()
    return last["with"], last["against"]


def test_packnet_keeps_what_ppo_forgets(tmp_path):
    """The second task wants the opposite of the first, to stand still returns about −2.5."""
    first, second = final(tmp_path, "ppo,preset=quick,gamma=0.5")
    assert first < -4 and second > -0.8
    first, second = final(tmp_path, "packnet+ppo,preset=quick,gamma=0.5,prune=0.5")
    assert first > -0.8 and second > -0.8


@pytest.mark.parametrize("multihead", [False, True])
def test_fisher_of_sac_is_that_of_single_samples(multihead):
    """Its stacked layers are no nn.Linear, so they go the long way; critics have no part in it."""
    space = spaces.Box(-1, 1, (2,), np.float32)
    setup = Setup(space, space, 1, 0, ("a", "b"))
    sac = SACAgent(setup, hidden=(5,), multihead=multihead)
    with torch.no_grad():
        sac.net.actor.weights[-1].mul_(500)
    rng = np.random.default_rng(0)
    rows = {
        "obs": torch.tensor(rng.normal(size=(6, 2)), dtype=torch.float32),
        "task": torch.tensor([0, 1, 1, 0, 1, 0]),
    }
    found = fisher(sac, rows, "sampled", np.random.default_rng(1))
    noise = np.random.default_rng(1).standard_normal(size=(6, 4)).astype(np.float32)
    total = torch.zeros_like(found)
    for i in range(6):
        one = {name: v[i : i + 1] for name, v in rows.items()}
        score = -(torch.tensor(noise[i]) * sac.predict(one)[0]).sum()
        parts = torch.autograd.grad(
            score, sac.optimizer.parameters, allow_unused=True, materialize_grads=True
        )
        total += torch.cat([g.reshape(-1) for g in parts]).square()
    assert torch.allclose(found, total / 6, rtol=1e-4, atol=1e-6) and found.max() > 0
    size = sum(p.numel() for p in sac.net.critics.parameters())
    assert (found == 0).sum() >= size
