"""Problems whose outcome the field knows: permuted and split digits, all strategies, three lifetimes.

Each strategy must come out where it is known to, and where its few lines in plain torch come out.
"""

import numpy as np
import pytest

import perdure
from perdure.curricula.named import curriculum_of
from perdure.specs import Spec

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from plain_strategies import matrix

from perdure.suites.vision import suite

SEEDS = 3
TUNED = {"si": "strength=3", "mas": "strength=0.03", "agem": "quota=256", "replay": "quota=250"}
"""Strengths that suit the digits, as plain_strategies.py has them; else the defaults."""
PERMUTED, SPLIT = "vision/permuted-digits,tasks=4,epochs=8", "vision/split-digits,epochs=15"
DOMAIN = ("finetune", "ewc", "online_ewc", "si", "mas", "lwf", "agem", "replay", "joint")
HEADS = ("finetune", "ewc", "online_ewc", "si", "mas", "lwf", "agem", "replay", "packnet", "joint")
CLASS = ("finetune", "ewc", "lwf", "replay", "joint")


def tasks_of(name):
    blocks = curriculum_of(Spec.parse(name)).blocks
    return [b.exposures[0].task for b in blocks if b.kind == "learn"]


def ours(name, strategies, params, folder):
    """For each strategy, a matrix for each lifetime: accuracy on task j after i tasks."""
    learner = "classifier,hidden=[256,256]" + params
    agents = [f"{s}={s}+{learner}," + TUNED.get(s, "") for s in strategies]
    run = perdure.experiment(
        name, [a.rstrip(",") for a in agents], lifetimes=SEEDS, out=str(folder), executor="serial"
    )
    found = {}
    tasks = [t.variant for t in tasks_of(name)]
    for row in run.rows().to_pylist():
        if row["kind"] == "eval":
            key = row["agent"], row["lifetime"], row["block"] // 2, tasks.index(row["variant"])
            found.setdefault(key, []).append((row["accuracy"], row["steps"]))
    out = {s: np.zeros((SEEDS, len(tasks) + 1, len(tasks))) for s in strategies}
    for (agent, *where), values in found.items():
        accuracies, sizes = zip(*values, strict=True)
        out[agent][tuple(where)] = np.average(accuracies, weights=sizes)
    return out


def theirs(name, strategy, epochs, heads, lr=1e-3):
    """The same by a few lines of plain torch."""
    tasks = tasks_of(name)
    parts = []
    for learning in (True, False):
        data = [suite.data(t, learning) for t in tasks]
        parts.append([(torch.tensor(d.inputs), torch.tensor(d.targets)) for d in data])
    classes = suite.data(tasks[0], True).n_classes
    heads = len(tasks) if heads else 1
    return np.stack([matrix(strategy, *parts, s, classes, heads, epochs, lr) for s in range(SEEDS)])


def end(matrices):
    """Mean over tasks at the end of life, averaged over lifetimes."""
    return matrices[:, -1].mean()


def after(matrices):
    """Mean over tasks right after each was learned."""
    return np.mean([np.diagonal(m[1:]) for m in matrices])


def agrees(found, strategy, name, epochs, heads=False, lr=1e-3, within=0.08):
    """Whether a strategy ends where its few lines in plain torch do."""
    plain = theirs(name, strategy, epochs, heads, lr)
    assert abs(end(found[strategy]) - end(plain)) < within, strategy
    assert abs(after(found[strategy]) - after(plain)) < within, strategy


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_permuted_digits_come_out_as_the_field_knows(tmp_path):
    """Penalties keep much of what fine-tuning loses, a projected gradient more, rows nearly all."""
    found = ours(PERMUTED, DOMAIN, "", tmp_path / "x")
    score = {s: end(m) for s, m in found.items()}
    for strategy in ("ewc", "online_ewc", "si", "mas"):
        assert score["finetune"] + 0.05 < score[strategy] < score["replay"] - 0.05, score
    assert score["finetune"] + 0.1 < score["agem"] < score["joint"] - 0.05, score
    assert abs(score["replay"] - score["joint"]) < 0.05, score
    assert after(found["finetune"]) > 0.93 and after(found["ewc"]) > 0.9
    for strategy in DOMAIN:
        agrees(found, strategy, PERMUTED, 8)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_split_digits_with_heads_come_out_as_the_field_knows(tmp_path):
    """LwF works where tasks have heads, and PackNet forgets nothing."""
    name, lr = f"{SPLIT},scenario=task", 0.005
    found = ours(name, HEADS, f",multihead=true,lr={lr}", tmp_path / "x")
    score = {s: end(m) for s, m in found.items()}
    for strategy in ("lwf", "replay", "packnet", "joint"):
        assert score[strategy] > score["finetune"] + 0.01, score
    for strategy in ("lwf", "packnet"):
        assert after(found[strategy]) - score[strategy] < 0.01, score
        assert after(found[strategy]) > 0.96
    masked = found["packnet"]
    # From the next task on, what a pruned task answers never changes.
    for task in range(masked.shape[2] - 1):
        assert np.ptp(masked[:, task + 2 :, task], axis=1).max() == 0
    for strategy in HEADS:
        agrees(found, strategy, name, 15, True, lr, within=0.04)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_new_classes_are_kept_by_rows_alone(tmp_path):
    """Class-incremental: without rows only the newest classes are ever answered."""
    name = f"{SPLIT},scenario=class"
    found = ours(name, CLASS, "", tmp_path / "x")
    score = {s: end(m) for s, m in found.items()}
    for strategy in ("finetune", "ewc"):
        assert score[strategy] < 0.35, score
    assert score["replay"] > 0.85 and score["joint"] > 0.9, score
    for strategy in CLASS:
        agrees(found, strategy, name, 15)
