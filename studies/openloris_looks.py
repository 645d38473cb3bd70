"""Looks into the networks that the OpenLORIS studies left in their last checkpoints.

    python studies/openloris_looks.py runs/openloris-illumination

prints two Markdown tables and writes docs/results/openloris-dgr-samples.png:

* Accuracy at the end of life with the batch norms as learning left them → with their statistics taken
  anew from a task's training frames. Weights are the same in both: what the second has more of was
  not forgotten by them.
* What generative replay replays: how many different labels its old network gives to 512 inputs that its
  old generator makes up, and how sure it is of them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from perdure.run.plan import Plan, load_plan
from perdure.store.log import Lifetime

PICTURE = Path(__file__).parent.parent / "docs/results/openloris-dgr-samples.png"
GENERATIVE = ("dgr", "dgr-distillation")
HELD = ("naive", "si", "lwf", "ewc", "online-ewc", *GENERATIVE)
TASKS = (0, 3, 8)
"""The first in bright light, the first in dimmer light, the last of all."""


def restored(plan: Plan, job_id: str) -> Any:
    """The agent of a lifetime as its last checkpoint has it."""
    job = plan.job(job_id)
    agent = plan.make_agent(job.agent, plan.config(job).setup())
    life = Lifetime.read(plan.path / job_id)
    state = life.load_state(life.commits[-1])
    agent.load({k.split("/", 1)[1]: v for k, v in state.items() if k.startswith("agent/")})
    return agent


def frames(plan: Plan) -> list[list[tuple[Any, Any]]]:
    """For each of the tasks looked at: inputs and labels for learning, and for testing."""
    config = plan.config(plan.jobs[0])
    (suite,) = config.suites.values()
    exposures = (e for block in config.curriculum.blocks for e in block.exposures)
    tasks = list({e.task.id: e.task for e in exposures}.values())
    out = []
    for k in TASKS:
        held = [suite.data(tasks[k], learning) for learning in (True, False)]
        taken = [data.batch(np.arange(len(data))) for data in held]
        out.append([(t.inputs, np.asarray(t.targets)) for t in taken])
    return out


def accuracy(learner: Any, inputs: Any, labels: Any) -> float:
    """Share of rows whose label is found."""
    learner.net.eval()
    with torch.no_grad():
        found = learner.net(learner.inputs(inputs)).argmax(1).numpy()
    return float((found == labels).mean())


def renewed(learner: Any, inputs: Any) -> None:
    """Take the statistics of all batch norms from these rows."""
    for module in learner.net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None
    learner.net.train()
    with torch.no_grad():
        learner.net(learner.inputs(inputs))


def norms(plan: Plan) -> list[str]:
    """Accuracies with the batch norms as they are and renewed, means over lifetimes."""
    rows, seen = [], frames(plan)
    for label in (h for h in HELD if h in plan.agents):
        found = []
        for job in (j for j in plan.jobs if j.agent == label and not j.expert):
            agent = restored(plan, job.id)
            learner = getattr(agent, "learner", agent)
            for (inputs, _), test in seen:
                before = accuracy(learner, *test)
                kept = {name: value.clone() for name, value in learner.net.named_buffers()}
                renewed(learner, inputs)
                found.append((before, accuracy(learner, *test)))
                for name, value in learner.net.named_buffers():
                    value.copy_(kept[name])
        means = np.reshape(found, (-1, len(TASKS), 2)).mean(0)
        cells = (f"{a:.2f} → {b:.2f}" for a, b in means)
        rows.append(f"| {label} | {' | '.join(cells)} |")
    head = " | ".join(f"task {k + 1}" for k in TASKS)
    return [f"| algorithm | {head} |", "|---" * (len(TASKS) + 1) + "|", *rows]


def samples(plan: Plan, count: int = 512) -> list[str]:
    """What is replayed at the end of life; a picture of the first 64 of plain DGR's."""
    from PIL import Image

    rows = []
    for label in (g for g in GENERATIVE if g in plan.agents):
        strategy = restored(plan, f"{label}/0").strategy
        made = strategy.generator.before.net.decoder.sample(count, np.random.default_rng(0))
        teacher = strategy.teacher.net.eval()
        with torch.no_grad():
            sure, labels = teacher(made).softmax(1).max(1)
        rows.append(f"| {label} | {len(labels.unique())} | {sure.mean():.2f} |")
        if label == "dgr":
            pixels = (
                (made[:64].permute(0, 2, 3, 1).numpy(force=True) * 255)
                .clip(0, 255)
                .astype(np.uint8)
            )
            high, wide, depth = pixels.shape[1:]
            grid = pixels.reshape(4, 16, high, wide, depth).swapaxes(1, 2)
            sheet = Image.fromarray(grid.reshape(4 * high, 16 * wide, depth))
            sheet.quantize(64).save(PICTURE, optimize=True)
    return ["| algorithm | different labels of 121 | mean probability |", "|---|---|---|", *rows]


if __name__ == "__main__":
    plan = load_plan(Path(sys.argv[1]))
    print("\n".join([*norms(plan), "", *samples(plan)]))
