"""Learning to adapt, at reduced size: after adaptation each method is better than before it, and than any
policy that does not adapt. ``docs/results/meta-toy.md`` has the whole."""

import numpy as np
import pytest

import perdure
from perdure.suites.toy.families import Bernoulli, Mass, best_after

pytest.importorskip("torch")


def before_and_after(curriculum, agent, tmp_path, envs=20):
    """Mean return on held-out tasks before they are adapted to, and after."""
    made = perdure.experiment(
        curriculum, [f"it={agent}"], envs=envs, executor="serial", out=str(tmp_path / "run")
    )
    rows = made.rows().to_pylist()
    before = [r["return"] for r in rows if r["kind"] == "eval"]
    after = [r["return"] for r in rows if r["kind"] == "adapt" and not r["learning"]]
    return float(np.mean(before)), float(np.mean(after))


MASS = {
    "maml,preset=quick": "steps=50000,trial=10,shots=5",
    "pearl,preset=quick,rate=0.15": "steps=10000,trial=4,shots=3",
    "rl2,preset=quick,lr=3e-3": "steps=40960,trial=4,shots=3",
}


@pytest.mark.slow
@pytest.mark.parametrize("agent", MASS)
def test_a_mass_is_known_after_a_few_episodes(agent, tmp_path):
    before, after = before_and_after(f"toy/meta-mass,{MASS[agent]}", agent, tmp_path, envs=32)
    assert after > before + 0.2
    # More than half of the way from what can be had without adapting to what can be had.
    assert after > (Mass.adapted + Mass.unadapted) / 2, (before, after)
    if not agent.startswith("rl2"):
        # Who remembers within an episode is better than that already in its first.
        assert before < Mass.unadapted + 0.5


@pytest.mark.slow
def test_the_best_arm_is_known_after_a_few_episodes(tmp_path):
    agent = "maml,preset=quick,inner_lr=1.0"
    curriculum = "toy/meta-bandit,steps=60000,trial=10,shots=5,goals=40"
    before, after = before_and_after(curriculum, agent, tmp_path)
    best = 10 * best_after(20)  # Of the 50 pulls that it has; more are worth little more.
    assert after > before + 0.5 and Bernoulli.unadapted + 1.0 < after < best + 1.0
