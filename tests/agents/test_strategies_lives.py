"""Strategies in whole lifetimes: cut and resumed to the bit, and forgetting less than finetune."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kit import live
from perdure import curricula
from perdure.agents.compose import make_agent
from perdure.curricula.named import curriculum_of
from perdure.specs import Spec
from perdure.store.log import Lifetime
from perdure.testing import check_agent
from perdure.testing.agents import cut_journal, same
from perdure.types import Curriculum, Exposure, Task, adapt, evaluate, learn

torch = pytest.importorskip("torch")

# Resuming.


def short_life(unit: str) -> Curriculum:
    """Three tasks, evaluated in between; before the third a probe that is forgotten again."""
    if unit == "epochs":
        places = [{"shift": 4.0 * k, "angle": 90.0 * k, "examples": 96} for k in range(3)]
        tasks = [Task("toy", "blobs", f"island{k}", p) for k, p in enumerate(places)]
        amount, few = 2, 1
    else:
        tasks = [Task("toy", "bandit", f"shift{k}", {"shift": k}) for k in range(3)]
        amount, few = 120, 30
    a, b, c = (learn(Exposure(t, amount, unit)) for t in tasks)
    test = evaluate(*(Exposure(t, few, unit) for t in tasks))
    probe = adapt(Exposure(tasks[2], few, unit), then=[Exposure(tasks[0], few, unit)])
    return Curriculum("test/short", (a, test, b, test, probe, c, test))


RESUMED = {
    "finetune+classifier": "epochs",
    "replay+classifier,memory=50": "epochs",
    "replay+classifier,quota=20": "epochs",
    "joint+classifier": "epochs",
    "ewc+classifier,samples=40": "epochs",
    "ewc+classifier,samples=40,labels=sampled": "epochs",
    "online_ewc+classifier,samples=40,decay=0.9": "epochs",
    "si+classifier,strength=10": "epochs",
    "mas+classifier,samples=40": "epochs",
    "lwf+classifier": "epochs",
    "lwf+classifier,dropout=0.3,strength=0.4": "epochs",
    "rtf+classifier,decoder=[8],latent=3,dropout=0.3": "epochs",
    "agem+classifier,quota=20": "epochs",
    "packnet+classifier,retrain=5,memory=40": "epochs",
    "dgr+classifier,generator=[8],latent=3": "epochs",
    "dgr_distill+classifier,generator=[8],latent=3": "epochs",
    "rtf+classifier,decoder=[8],latent=3": "epochs",
    "classifier,layer_norm=true,plasticity=40,trainability=3": "epochs",
    "l2_init+classifier": "epochs",
    "shrink_perturb+classifier": "epochs",
    "redo+classifier,period=3": "epochs",
    "continual_backprop+classifier,replacement_rate=0.1,maturity=2": "epochs",
    "ewc+dqn,preset=quick,batch=16,samples=40": "steps",
    "redo+dqn,preset=quick,batch=16,period=9,plasticity=40,trainability=3": "steps",
    "replay+dqn,preset=quick,batch=16,memory=50": "steps",
    "packnet+dqn,preset=quick,batch=16,retrain=5": "steps",
    "ewc+ppo,preset=quick,rollout=32,batch=16,samples=40": "steps",
    "si+ppo,preset=quick,rollout=32,batch=16": "steps",
    "lwf+ppo,preset=quick,rollout=32,batch=16": "steps",
}


@pytest.mark.parametrize(
    "agent", ["agem+classifier", "joint+classifier", "replay+classifier,quota=5"]
)
def test_an_adapt_block_may_come_before_the_first_task(tmp_path, agent):
    task = Task("toy", "blobs", "turn0", {"angle": 0, "examples": 64})
    some = Exposure(task, 3, "batches")
    blocks = (adapt(some, then=[Exposure(task, 1, "epochs")]), learn(some))
    rows, _ = live(
        Curriculum("x", blocks), lambda s: make_agent(Spec.parse(agent), s), tmp=tmp_path
    )
    assert rows[-1].learning


@pytest.mark.parametrize("hidden", [False, True])
def test_what_packnet_adapts_counts_until_the_block_ends(tmp_path, hidden):
    """Of a task that owns weights, too: what an adapt block teaches moves free weights, which the task's
    own evaluation leaves out everywhere else."""
    a, b = (Task("toy", "blobs", f"turn{k}", {"angle": k, "examples": 256}) for k in (0, 90))
    tests = [Exposure(t, 1, "epochs") for t in (a, b)]
    kept = []

    def agent(setup):
        made = make_agent(Spec.parse("packnet+classifier,retrain=20"), setup)
        enter = made.enter

        def watched(ctx):
            enter(ctx)
            if not ctx.learning and ctx.event == "task":
                mine = made.learner.optimizer.weights[made.strategy.owner > 0]
                kept.append(
                    (ctx.kind, made.strategy.owner.clone(), mine, made.learner.flat_weights.clone())
                )

        made.enter = watched
        return made

    blocks = (
        learn(Exposure(a, 4, "batches")), learn(Exposure(b, 2, "batches")), evaluate(*tests),
        adapt(Exposure(a, 200, "batches"), then=tests), evaluate(*tests),
    )  # fmt: skip
    rows, _ = live(Curriculum("x", blocks), agent, tmp=tmp_path, hide_tasks=hidden)
    found: dict[tuple[int, str], list[float]] = {}
    for r in rows:
        if not r.learning:
            found.setdefault((r.block, r.variant), []).append(r.accuracy)
    score = {k: np.mean(v) for k, v in found.items()}
    assert score[3, "turn0"] > score[2, "turn0"] + 0.1, "what was adapted counts"
    assert score[4, "turn0"] == score[2, "turn0"], "and is forgotten with the block"
    (_, owner, owned, before), *others = kept
    for kind, owner_now, owned_now, weights in others:
        assert torch.equal(owner, owner_now) and torch.equal(owned, owned_now)
        assert torch.equal(before, weights) == (kind == "eval")


@pytest.mark.parametrize("name", RESUMED)
def test_a_lifetime_cut_anywhere_ends_with_the_same_rows(tmp_path: Path, name: str) -> None:
    life = short_life(RESUMED[name])

    def lived(folder: str) -> tuple[Any, Any]:
        return live(
            life, lambda w: make_agent(Spec.parse(name), w), path=tmp_path / folder, checkpoint=50
        )

    rows, whole = lived("whole")
    commits = Lifetime.read(tmp_path / "whole").commits
    blocks = [c.position["place"][0] for c in commits]
    # In the middle of the second task, of the probe, and of the third task.
    cuts = [blocks.index(b) + 1 for b in (2, 4, 5)]
    assert all(blocks[k - 1] == blocks[k] for k in (cuts[0], cuts[2]))
    for k in cuts:
        folder = f"cut{k}"
        shutil.copytree(tmp_path / "whole", tmp_path / folder)
        cut_journal(tmp_path / folder, k)
        again, resumed = lived(folder)
        assert same(again, rows)
        mine, theirs = resumed.state(), whole.state()
        assert mine.keys() == theirs.keys()
        assert all(mine[n].copy().tobytes() == theirs[n].copy().tobytes() for n in theirs)


@pytest.mark.parametrize("name", ["packnet+classifier,retrain=2", "rtf+classifier,latent=3"])
def test_the_check_for_agents(name: str) -> None:
    check_agent(name)


def test_where_identity_is_hidden_every_learn_block_is_a_task(tmp_path: Path) -> None:
    def life(hidden: bool) -> Any:
        task = Task("toy", "blobs", params={"examples": 64})
        other = Task("toy", "blobs", "b", {"examples": 64, "angle": 90.0})
        twice = [learn(Exposure(t, 1, "epochs")) for t in (task, task, other)]
        return live(
            Curriculum("test/hidden", twice),
            lambda w: make_agent(Spec.parse("packnet+classifier,retrain=0"), w),
            path=tmp_path / str(hidden),
            hide_tasks=hidden,
        )[1].strategy

    shown, hidden = life(False), life(True)
    assert (shown.tasks, hidden.tasks) == (2, 3)
    assert shown.learned == ["toy/blobs"] and hidden.learned == ["block 0", "block 1"]


# Behaviour.


def matrix(tmp_path: Path, curriculum: Curriculum, agent: str, seed: int) -> np.ndarray:
    """Accuracy or success on each task, after each learn block."""
    folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    rows, _ = live(curriculum, lambda w: make_agent(Spec.parse(agent), w), path=folder, seed=seed)
    cells: dict[int, dict[str, list[float]]] = {}
    for r in rows:
        if not r.learning:
            value = r.accuracy if r.accuracy is not None else r.success
            assert value is not None
            cells.setdefault(r.block, {}).setdefault(f"{r.task}@{r.variant}", []).append(value)
    return np.array([[np.mean(v) for v in row.values()] for row in cells.values()])


LEARNER = "classifier,lr=0.003"


@cache
def islands() -> Curriculum:
    """Noisy, so that a classifier is not quite sure of anything and parameters matter to it."""
    return curriculum_of(Spec("toy/islands", {"noise": 0.35}))


def means(tmp_path: Path, curriculum: Curriculum, agent: str, seeds: int = 3) -> np.ndarray:
    return np.mean([matrix(tmp_path, curriculum, agent, s) for s in range(seeds)], axis=0)


def test_finetune_forgets_the_first_island(tmp_path: Path) -> None:
    after = means(tmp_path, islands(), f"finetune+{LEARNER}")
    assert after[1, 0] > 0.9 and after[2, 0] < 0.5 and after[2, 1] > 0.8


KEEPERS = {
    # The margins: what is kept of the first island, and what is learned of the second.
    "joint": (0.85, 0.7),
    "replay": (0.85, 0.7),
    "replay,quota=50": (0.85, 0.7),
    "agem": (0.8, 0.7),
    "ewc,strength=1e4": (0.75, 0.65),
    "ewc,strength=1e4,labels=sampled": (0.75, 0.65),
    "online_ewc,strength=1e4": (0.75, 0.65),
    "si,strength=300": (0.75, 0.65),
    "mas,strength=0.5": (0.75, 0.65),
    "packnet": (0.9, 0.8),
}


@pytest.mark.parametrize("keeper", KEEPERS)
def test_who_keeps_the_first_island_learns_the_second_too(tmp_path: Path, keeper: str) -> None:
    name, _, params = keeper.partition(",")
    after = means(tmp_path, islands(), f"{name}+{LEARNER},{params}".rstrip(","))
    kept, learned = KEEPERS[keeper]
    assert after[2, 0] > kept and after[2, 1] > learned


@cache
def far_islands() -> Curriculum:
    """The first island is far from where a generator that learned nothing makes up inputs."""
    places = [{"shift": s, "angle": 90.0 * k, "noise": 0.35} for k, s in enumerate((6.0, 2.0))]
    return _labelled([Task("toy", "blobs", f"far{k}", p) for k, p in enumerate(places)], 20)


def _labelled(tasks: list[Task], epochs: int) -> Curriculum:
    blocks = [learn(Exposure(t, epochs, "epochs")) for t in tasks]
    test = evaluate(*(Exposure(t, 1, "epochs") for t in tasks))
    return Curriculum("test/labelled", curricula.interleave(blocks, test))


@pytest.mark.parametrize("name", ["dgr", "dgr_distill", "rtf"])
def test_what_a_generator_learned_keeps_a_far_island(tmp_path: Path, name: str) -> None:
    part = "decoder" if name == "rtf" else "generator"
    agent = f"{name}+{LEARNER},latent=8,{part}=[64,64]"
    after = means(tmp_path, far_islands(), agent)
    assert after[2, 0] > 0.8 and after[2, 1] > 0.8
    ignorant = means(tmp_path, far_islands(), f"{agent},{part}_lr=1e-9", seeds=1)
    assert ignorant[2, 0] < 0.5


@pytest.mark.parametrize("hard", ["false", "true"])
def test_lwf_keeps_what_the_inputs_of_the_new_task_tell_of(tmp_path: Path, hard: str) -> None:
    """It cannot keep an island it never sees. Here the classes are turned by 40° of the 90° between
    them: the old answers are mostly right on the new inputs, and one boundary serves both."""
    turned = [Task("toy", "blobs", f"turn{a}", {"angle": float(a)}) for a in (0, 40)]
    life = _labelled(turned, 30)
    naive = means(tmp_path, life, f"finetune+{LEARNER}")
    lwf = means(tmp_path, life, f"lwf+{LEARNER},hard={hard}")
    assert naive[2, 0] < 0.75 and lwf[2, 0] > 0.95 and lwf[2, 1] > 0.85


def test_three_islands_one_after_the_other(tmp_path: Path) -> None:
    life = curriculum_of(Spec("toy/islands", {"islands": 3, "noise": 0.3}))
    final = {
        name: means(tmp_path, life, f"{name}+{LEARNER}", seeds=2)[-1].mean()
        for name in ("finetune", "replay", "packnet")
    }
    assert final["replay"] > final["finetune"] + 0.2
    assert final["packnet"] > final["finetune"] + 0.2


# Reinforcement learning.


@cache
def bandits() -> Curriculum:
    """Two bandits that contradict each other in everything."""
    tasks = [Task("toy", "bandit", f"shift{k}", {"shift": k}) for k in range(2)]
    return curricula.tasks_in_turn("test/arms", tasks, amount=400, unit="steps", episodes=20)


def test_strategies_keep_what_dqn_forgets(tmp_path: Path) -> None:
    naive = means(tmp_path, bandits(), "finetune+dqn,preset=quick,explore=200", seeds=2)
    assert naive[1, 0] > 0.9 and naive[2, 0] < 0.2 and naive[2, 1] > 0.9
    # Without knowing the task no network can do both: EWC keeps the first and says no to the second.
    ewc = means(tmp_path, bandits(), "ewc+dqn,preset=quick,explore=200,strength=1e3", seeds=2)
    assert ewc[2, 0] > 0.9
    # With weights of its own for each task PackNet does both.
    packnet = means(tmp_path, bandits(), "packnet+dqn,preset=quick,explore=200", seeds=2)
    assert packnet[2].min() > 0.9


def test_strategies_keep_what_ppo_forgets(tmp_path: Path) -> None:
    naive = means(tmp_path, bandits(), "finetune+ppo,preset=quick", seeds=2)
    si = means(tmp_path, bandits(), "si+ppo,preset=quick,strength=100", seeds=2)
    assert naive[1, 0] > 0.9 and naive[2, 0] < 0.5
    assert si[2, 0] > naive[2, 0] + 0.3
