"""Presets: named parameters that lie below those that are given."""

import json
from math import inf

import numpy as np
import pytest
from gymnasium import spaces

from perdure import registry
from perdure.agents.compose import make_agent
from perdure.errors import UnknownName
from perdure.specs import Spec
from perdure.types import Setup

pytest.importorskip("torch")

BOX = spaces.Box(-1, 1, (3,), np.float32)


def made(text, action=BOX):
    return make_agent(Spec.parse(text), Setup(BOX, action, 2, 0, ("a", "b")))


def test_what_is_given_wins_over_the_preset_and_the_preset_over_the_default():
    agent = made("sac,preset=quick,lr=5e-4")
    assert (agent.optimizer.lr, agent.settings.every, agent.settings.batch) == (5e-4, 2, 128)
    assert [w.shape[2] for w in agent.net.actor.weights] == [256, 256, 6]


def test_presets_work_below_strategies():
    agent = made("ewc+sac,preset=quick,strength=3,batch=16")
    assert agent.strategy.strength == 3
    assert (agent.learner.settings.every, agent.learner.settings.batch) == (2, 16)


@pytest.mark.parametrize("name", ["sac,preset=newr", "ewc+sac,preset=newr", "sac,preset=7"])
def test_an_unknown_preset_is_told_which_there_are(name):
    with pytest.raises(UnknownName, match=r"preset of agent .*sac .*paper, newer, quick, cw"):
        made(name)


def test_an_agent_without_presets_says_so():
    with pytest.raises(UnknownName, match="preset of agent random 'x' .it has: none"):
        made("random,preset=x")


def test_listed_presets_are_those_of_the_classes():
    """They are read from the source; a class that is loaded must say the same."""
    entries = registry.entries("agents")
    assert (
        entries["sac"].presets == ("paper", "newer", "quick", "cw")
        and not entries["random"].presets
    )
    for entry in entries.values():
        if entry.presets:
            assert tuple(entry.load().presets) == entry.presets, entry.name


@pytest.mark.parametrize("name", ["dqn", "maml", "pearl", "ppo", "rl2", "sac", "te", "trpo"])
def test_every_preset_makes_an_agent(name):
    action = spaces.Discrete(2) if name == "dqn" else BOX
    for preset in registry.entries("agents")[name].presets:
        made(f"{name},preset={preset}", action)


def test_ls_shows_presets(capsys):
    from perdure.cli import listing

    listing.ls(["agents"], None, as_json=True)
    listed = {item["name"]: item.get("presets") for item in json.loads(capsys.readouterr().out)}
    assert listed["ppo"] == "presets: quick, paper, newer" and listed["random"] is None
    listing.ls(["agents"], None, as_json=False)
    assert "presets: paper, newer, quick, cw" in capsys.readouterr().out


def test_presets_are_the_papers():
    sac = made("sac,preset=paper")
    assert [w.shape[2] for w in sac.net.actor.weights] == [400, 400, 400, 6]
    s = sac.settings
    assert (s.batch, s.start, s.gamma, s.tau) == (128, 1000, 0.99, 0.005)
    s = made("sac,preset=newer").settings
    assert (s.start, s.every, s.max_grad, s.replay) == (4000, 0, 1.0, 100_000)
    cw = made("sac,preset=cw")
    assert cw.net.heads == 2 and len(cw.net.actor.weights) == 5 and cw.settings.start == 10_000
    paper = made("ppo,preset=paper")
    assert paper.rows.steps == 1500 and paper.net.critic is None and paper.max_grad == inf
    assert paper.policy.log_std.exp().tolist() == pytest.approx([2.0] * 3)
    s = made("ppo,preset=newer").settings
    assert (s.rollout, s.epochs, round(10_000 / s.batch)) == (10_000, 16, 32)
    assert (s.lam, s.entropy, s.normalise) == (0.97, 5e-3, False)
    trpo = made("trpo")
    assert (trpo.settings.kl, trpo.rows.steps, trpo.critic) == (0.01, 1500, None)
    te = made("te")
    assert (te.noise.shape[1], te.settings.window, te.settings.widest) == (6, 20, 2.0)
    te = made("te,preset=garage")
    assert (te.noise.shape[1], te.settings.window, te.settings.widest, te.rows.steps) == (
        4,
        6,
        0.2,
        1024,
    )


def test_meta_learners_defaults_and_presets_are_the_papers():
    rl2 = made("rl2")
    s = rl2.settings
    assert (s.lr, s.gamma, s.trials, rl2.value_weight) == (1e-3, 0.99, 40, 0.0)
    assert rl2.policy.log_std.exp().tolist() == pytest.approx([2.0] * 3)
    s = made("rl2,preset=newer").settings
    assert (s.width, s.reward_scale, s.max_grad) == (256, 0.1, 1.0)
    s = made("maml").settings
    assert (s.inner_lr, s.tasks, s.shots, s.gamma, s.lam) == (0.05, 20, 10, 0.99, 1.0)
    newer = made("maml,preset=newer")
    s = newer.settings
    assert (s.inner_lr, s.lam, s.kl, newer.optimizer) == (0.1, 1.0, 0.01, None)
    assert [tuple(w.shape) for w in newer.weights[1::2]] == [(512, 3), (512, 512), (3, 512)]
    pearl = made("pearl")
    s = pearl.settings
    assert (pearl.z.shape[1], pearl.context.shape[1], s.kl) == (7, 64, 0.1)
    assert (s.tasks, s.batch, s.rate) == (16, 256, pytest.approx(10 / 12))
