"""CPU milliseconds per training image, beside Avalanche and beside a hand-written torch loop.

The same network, data, batch size, optimiser and number of threads (one) for each: 4 tasks, one epoch
each, by strategy. Perdure's figure is that of a lifetime through its loop: guards, rows, checkpoint
and all. The hand-written loop does nothing else than learn, and is the limit. Avalanche 0.6.0 has an
environment of its own (avalanche_env.sh).

    make bench            writes benchmarks/results/training.md
"""

from __future__ import annotations

import copy
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from publish import publish
from torch import nn
from training_parts import (
    BATCH,
    CLASSES,
    DAMPING,
    LR,
    STRATEGIES,
    STRENGTH,
    TASKS,
    TEMPERATURE,
    TRACKS,
    data,
    network,
)

from perdure.agents.compose import make_agent
from perdure.agents.learners.classifier import ClassifierAgent
from perdure.agents.networks import learner as learners
from perdure.agents.networks.optimizers import Adam
from perdure.agents.strategies import ewc as ewc_module
from perdure.run.config import LifetimeConfig
from perdure.run.loop import LifetimeLoop
from perdure.specs import Spec
from perdure.store.log import LifetimeLog
from perdure.suite import Suite
from perdure.types import Curriculum, Examples, Exposure, Task, learn

HERE = Path(__file__).parent
ROUNDS = 7
SPRUNG = ("EWC", "online EWC")


# Perdure.


class Rows:
    """One task's data."""

    batch_size = BATCH

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y)

    def batch(self, indices):
        return Examples(self.x[indices], self.y[indices])


class Bench(Suite):
    """The tasks of a track."""

    name = "bench"

    def __init__(self, track):
        self.rows = {f"task-{k}": Rows(x, y) for k, (x, y) in enumerate(data(track))}

    def tasks(self):
        return [Task("bench", name) for name in self.rows]

    def data(self, task, learning):
        return self.rows[task.name]


class SmallClassifier(ClassifierAgent):
    """The classifier with the network that all sides share."""

    def __init__(self, setup, lr=LR):
        super().__init__(setup, lr=lr, hidden=(256,))
        track = "pixels" if len(self.inputs.shape) == 3 else "features"
        self.net = learners.network(setup, self.device, lambda: network(track))
        self.optimizer = Adam(self.net.parameters(), lr)


def spec(track, strategy):
    """What a user writes after --agents."""
    rows = TRACKS[track].rows
    return {
        "naive": "finetune+classifier",
        "LwF": f"lwf+classifier,temperature={TEMPERATURE}",
        "EWC": f"ewc+classifier,strength={STRENGTH},samples={rows},labels=given",
        "online EWC": f"online_ewc+classifier,strength={STRENGTH},samples={rows},labels=given",
        "SI": f"si+classifier,damping={DAMPING}",
    }[strategy]


def perdure(track, strategy):
    """A lifetime; and how much of it is the Fisher information of every task."""
    suite = Bench(track)
    blocks = tuple(learn(Exposure(task, 1, "epochs")) for task in suite.tasks())
    space = (
        spaces.Box(0, 255, TRACKS[track].shape, np.uint8)
        if track == "pixels"
        else spaces.Box(-np.inf, np.inf, TRACKS[track].shape, np.float32)
    )
    curriculum = Curriculum("bench", blocks)
    config = LifetimeConfig(curriculum, {"bench": suite}, space, spaces.Discrete(CLASSES), seed=0)
    agent = make_agent(Spec.parse(spec(track, strategy)), config.setup(), SmallClassifier)
    fisher, spent = ewc_module.fisher, []

    def clocked(*args):
        start = time.process_time()
        found = fisher(*args)
        spent.append(time.process_time() - start)
        return found

    ewc_module.fisher = clocked
    try:
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            with LifetimeLog(Path(folder) / "0", "bench", 0) as log:
                LifetimeLoop(config, agent, log).run()
            if strategy in SPRUNG:
                agent.strategy.end()  # The last task's, which nothing came after.
            whole = time.process_time() - start
    finally:
        ewc_module.fisher = fisher
    images = TASKS * TRACKS[track].rows
    return 1000 * whole / images, 1000 * sum(spent) / images


# By hand.


def by_hand(track, strategy):
    """The least that has to be computed, as one would write it for this strategy alone."""
    torch.manual_seed(0)
    tasks = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in data(track)]
    net = network(track)
    if track == "pixels":
        net = net.to(memory_format=torch.channels_last)
    parameters = list(net.parameters())
    optimizer = torch.optim.Adam(parameters, LR, fused=True)
    start, fisher = time.process_time(), 0.0
    teacher, penalty = None, []
    path = [torch.zeros_like(p) for p in parameters]
    for t, (inputs, labels) in enumerate(tasks):
        began = [p.detach().clone() for p in parameters]
        for rows in torch.randperm(len(labels)).split(BATCH):
            x, y = inputs[rows], labels[rows]
            if track == "pixels":
                x = x.permute(0, 3, 1, 2).float().div_(255)
            logits = net(x)
            loss = nn.functional.cross_entropy(logits, y)
            if teacher is not None:
                with torch.no_grad():
                    soft = (teacher(x) / TEMPERATURE).softmax(1)
                kept = nn.functional.cross_entropy(logits / TEMPERATURE, soft) * TEMPERATURE**2
                loss = loss / (t + 1) + kept * t / (t + 1)
            optimizer.zero_grad()
            loss.backward()
            for stiffness, anchor in penalty:
                for p, s, a in zip(parameters, stiffness, anchor, strict=True):
                    p.grad.addcmul_(s, p.detach() - a, value=STRENGTH)
            if strategy == "SI":
                before = [p.detach().clone() for p in parameters]
            optimizer.step()
            if strategy == "SI":
                for p, b, w in zip(parameters, before, path, strict=True):
                    w.addcmul_(p.grad, b.sub_(p.detach()))
        if strategy == "LwF":
            teacher = copy.deepcopy(net).eval()
        elif strategy == "SI":
            anchor = [p.detach().clone() for p in parameters]
            omega = [
                w / ((a - b).square() + DAMPING)
                for w, a, b in zip(path, anchor, began, strict=True)
            ]
            if penalty:
                omega = [o + old for o, old in zip(omega, penalty[0][0], strict=True)]
            penalty = [(omega, anchor)]
            path = [torch.zeros_like(p) for p in parameters]
        elif strategy in SPRUNG:
            since = time.process_time()
            found = squares(net, inputs, labels, track)
            fisher += time.process_time() - since
            anchor = [p.detach().clone() for p in parameters]
            if strategy == "online EWC" and penalty:
                found = [f + old for f, old in zip(found, penalty[0][0], strict=True)]
            penalty = [*penalty, (found, anchor)] if strategy == "EWC" else [(found, anchor)]
    images = TASKS * TRACKS[track].rows
    return 1000 * (time.process_time() - start) / images, 1000 * fisher / images


def squares(net, inputs, labels, track):
    """Mean squared gradient of single samples, by vmap."""
    net.eval()
    weights = {k: p.detach() for k, p in net.named_parameters()}

    def loss(values, x, y):
        logits = torch.func.functional_call(net, values, (x[None],))
        return nn.functional.cross_entropy(logits, y[None])

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    total = [torch.zeros_like(p) for p in weights.values()]
    for x, y in zip(inputs.split(BATCH), labels.split(BATCH), strict=True):
        if track == "pixels":
            x = x.permute(0, 3, 1, 2).float().div_(255)
        for sums, g in zip(total, each(weights, x, y).values(), strict=True):
            sums += g.square_().sum(0)
    net.train()
    return [sums / len(labels) for sums in total]


# Avalanche.


class Avalanche:
    """Its process, which answers one question at a time."""

    def __init__(self):
        python = HERE.parent / ".venv-avalanche" / "bin" / "python"
        self.process = subprocess.Popen(
            [python, HERE / "avalanche_side.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tempfile.gettempdir(),
        )

    def __call__(self, track, strategy):
        print(json.dumps([track, strategy]), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(rounds):
    """For each track and strategy, and each side: the least of all rounds, which is what a noisy
    neighbour took nothing from."""
    avalanche = Avalanche()
    sides = {"by hand": by_hand, "Perdure": perdure, "Avalanche": avalanche}
    best = {}
    for track in TRACKS:
        for strategy in STRATEGIES:
            cell = best[track, strategy] = dict.fromkeys(sides, (np.inf, np.inf))
            for k in range(rounds):
                for side, run in sides.items():
                    if k and side == "by hand" and strategy in SPRUNG:
                        continue  # A gradient for each sample by vmap takes most of the time here.
                    found = run(track, strategy)
                    cell[side] = tuple(map(min, cell[side], found))
            shown = ", ".join(f"{side} {whole:.3f}" for side, (whole, _) in cell.items())
            print(f"{track}, {strategy}: {shown}", flush=True)
    avalanche.close()
    return best


def goals(best):
    """What is to be reached: in words, the ratio found, and whether it is good enough."""
    naive = best["pixels", "naive"]
    ratio = naive["Perdure"][0] / naive["by hand"][0]
    yield "naive on pixels ÷ by hand", ratio, "≤ 1.05", ratio <= 1.05
    for strategy in ("LwF", "SI"):
        cell = best["pixels", strategy]
        ratio = cell["Perdure"][0] / cell["Avalanche"][0]
        yield f"{strategy} on pixels ÷ Avalanche", ratio, "≤ 1", ratio <= 1
    # Both strategies compute the same Fisher information: the best of both is of twice the rounds.
    ours, theirs = (
        min(best["pixels", s][side][1] for s in SPRUNG) for side in ("Perdure", "Avalanche")
    )
    ratio = ours / theirs
    words = "per-sample Fisher on pixels ÷ Avalanche's of batch means"
    yield words, ratio, "≤ 1", ratio <= 1
    cell = best["features", "naive"]
    ratio = cell["Avalanche"][0] / cell["Perdure"][0]
    yield "Avalanche ÷ Perdure, naive on features", ratio, "≥ 1.4", ratio >= 1.4


def table(best, part, strategies):
    """Markdown of one figure of each cell."""
    lines = [
        "| data | strategy | by hand | Perdure | Avalanche | Perdure ÷ by hand | "
        "Avalanche ÷ Perdure |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for (track, strategy), cell in best.items():
        if strategy in strategies:
            hand, ours, theirs = (cell[s][part] for s in ("by hand", "Perdure", "Avalanche"))
            numbers = f"{hand:.3f} | {ours:.3f} | {theirs:.3f}"
            ratios = f"{ours / hand:.2f} | {theirs / ours:.2f}"
            lines.append(f"| {track} | {strategy} | {numbers} | {ratios} |")
    return lines


def main(rounds):
    torch.set_num_threads(1)
    perdure("features", "naive")  # Imports are not learning.
    best = measure(rounds)
    lines = [
        "# Training: CPU milliseconds per image",
        "",
        f"`make bench` on {platform.machine()}, Python {platform.python_version()}, torch "
        f"{torch.__version__}, Avalanche 0.6.0, one thread; the best of {rounds} interleaved rounds "
        f"of each. {TASKS} tasks, one epoch each, minibatches of {BATCH}, Adam. Pixels: "
        f"{TRACKS['pixels'].rows} images of 32 × 32 a task, four convolutions with batch norms "
        f"(0.06 M parameters). Features: {TRACKS['features'].rows} rows a task, 1280-256-{CLASSES} "
        "perceptron.",
        "",
        *table(best, 0, STRATEGIES),
        "",
        "By hand: nothing but learning, with torch's fused Adam, bytes in memory and pictures laid "
        "out channels last; EWC in one round only. Perdure: a lifetime through its loop, with "
        "guards, a row of measures for each minibatch, commit and checkpoint; pictures are laid out "
        "channels last too, which is most of what it gains on pixels. Avalanche: as it is used, "
        "channels first and torch's Adam; float tensors in memory, loss and accuracy of each "
        "minibatch, no loggers.",
        "",
        "Of these, the Fisher information of every row of each task:",
        "",
        *table(best, 1, SPRUNG),
        "",
        "Perdure's and that by hand (vmap) have a gradient for each sample; Avalanche squares the mean "
        "gradient of a minibatch, which is another, smaller thing.",
    ]
    return publish("training", lines, list(goals(best)))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
