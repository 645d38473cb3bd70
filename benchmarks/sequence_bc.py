"""Gradient steps of LIBERO's policies, beside a minimal hand-written loop on the same network.

Both sides take the same minibatches of raw observations (bytes and float64) and make tensors of them, draw
the same kinds of changes to pictures, and step AdamW with clipped gradients; the loop has torch's own optimiser
and mixture. CPU time of one thread in short rounds, the sides taking turns, so that what else the machine does hits
both; the least of the rounds. Beside it, what it costs to take such a minibatch from a file of demonstrations.

    python benchmarks/sequence_bc.py               small sizes: writes benchmarks/results/sequence_bc.md
    python benchmarks/sequence_bc.py --size paper  one round of the published sizes; no page
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from publish import publish

import perdure
from perdure.agents.learners.sequence_bc import POLICIES, SequenceBCAgent
from perdure.agents.networks.augmentation import augment
from perdure.registry import suite
from perdure.run.demos import collect
from perdure.suites._held_arrays import HeldArrays
from perdure.suites.libero import demonstration_data
from perdure.types import Context, Examples, Setup, Task

STEPS, ROUNDS, TIME = 2, 7, 10
LOADS = 20
"""Minibatches that are loaded, in each of some rounds."""
SPARE = 1_000_000
"""Bytes of room for numbers, which are always held."""
ROLLOUT = 200
"""Steps of an episode that is played."""
SHAPES = {"small": (64, 16), "paper": (128, 32)}
"""Pixels, and rows of a minibatch."""


def setup(policy: str, pixels: int) -> Setup:
    """Two cameras and the robot's joints, or poses of ten objects."""
    parts: dict[str, Any] = {
        "joints": spaces.Box(-np.inf, np.inf, (7,), np.float64),
        "gripper": spaces.Box(-np.inf, np.inf, (2,), np.float64),
    }
    if policy.startswith("state"):
        parts["objects"] = spaces.Box(-np.inf, np.inf, (140,), np.float64)
    else:
        for name in ("front", "wrist"):
            parts[name] = spaces.Box(0, 255, (pixels, pixels, 3), np.uint8)
    return Setup(spaces.Dict(parts), spaces.Box(-1, 1, (7,), np.float32), 1, 0, ("t",))


def minibatch(space: spaces.Dict, rows: int, rng: np.random.Generator) -> Examples:
    """Rows as demonstrations give them."""
    inputs: dict[str, Any] = {}
    for name, part in space.spaces.items():
        shape = (rows, TIME, *(part.shape or ()))
        if part.dtype == np.uint8:
            inputs[name] = rng.integers(0, 256, shape).astype(np.uint8)
        else:
            inputs[name] = rng.standard_normal(shape)
    return Examples(inputs, rng.uniform(-1, 1, (rows, TIME, 7)).astype(np.float32))


def by_hand(agent: SequenceBCAgent) -> Callable[[Examples], None]:
    """A loop as one writes it: torch's optimiser, torch's mixture, nothing kept."""
    net, pictures = agent.net, agent.pictures
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=1e-4)
    language = torch.zeros(1, 1)
    D = torch.distributions

    def step(batch: Examples) -> None:
        seen = {}
        for name, value in batch.inputs.items():
            tensor = torch.tensor(value, dtype=torch.float32)
            seen[name] = tensor.permute(0, 1, 4, 2, 3) / 255 if name in pictures else tensor
        if pictures:
            seen.update(zip(pictures, augment([seen[n] for n in pictures], agent.rng), strict=True))
        mean, std, log_weight = net.head.split(net(seen, language.expand(len(batch), -1)))
        mixture = D.MixtureSameFamily(
            D.Categorical(logits=log_weight), D.Independent(D.Normal(mean, std), 1)
        )
        loss = -mixture.log_prob(torch.tensor(batch.targets)).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 100.0)
        optimizer.step()
        loss.item()

    return step


def seconds(step: Callable[[Examples], Any], batches: list[Examples]) -> float:
    """CPU seconds of a step."""
    began = time.process_time()
    for batch in batches:
        step(batch)
    return (time.process_time() - began) / len(batches)


def duel(policy: str, size: str, steps: int, rounds: int) -> tuple[float, float]:
    """Least CPU seconds of a step here and by hand."""
    pixels, rows = SHAPES[size]
    made = setup(policy, pixels)
    here, there = (SequenceBCAgent(made, policy=policy, size=size, language="none") for _ in "ab")
    step, rng = by_hand(there), np.random.default_rng(0)
    assert isinstance(made.observation_space, spaces.Dict)
    batches = [minibatch(made.observation_space, rows, rng) for _ in range(steps)]
    ctx = Context("learn", True, 0, ("t",) * rows, np.arange(rows), np.zeros(rows, bool))

    def learn(batch: Examples) -> None:
        here.learn(batch, ctx)

    found: list[tuple[float, float]] = []
    seconds(learn, batches[:2]), seconds(step, batches[:2])
    for _ in range(rounds):
        found.append((seconds(learn, batches), seconds(step, batches)))
    return min(f[0] for f in found), min(f[1] for f in found)


def gain(policy: str, size: str, rounds: int) -> float:
    """How many times as fast by the clock a step is with ``threads=2``: what a lifetime gains that has the machine
    to itself."""
    pixels, rows = SHAPES[size]
    made, rng = setup(policy, pixels), np.random.default_rng(0)
    assert isinstance(made.observation_space, spaces.Dict)
    batch = minibatch(made.observation_space, rows, rng)
    ctx = Context("learn", True, 0, ("t",) * rows, np.arange(rows), np.zeros(rows, bool))
    best = {1: np.inf, 2: np.inf}
    for _ in range(rounds):
        for threads in best:
            agent = SequenceBCAgent(
                made, policy=policy, size=size, language="none", threads=threads
            )
            agent.learn(batch, ctx)
            began = time.perf_counter()
            for _ in range(STEPS):
                agent.learn(batch, ctx)
            best[threads] = min(best[threads], time.perf_counter() - began)
    torch.set_num_threads(1)
    return float(best[1] / best[2])


def demonstrations(folder: Path, pixels: int) -> Path:
    """Two demonstrations with pictures."""
    collect([Task("libero", "object-0", params={"size": pixels})], folder, per_task=2)
    return folder


def loading(policy: str, folder: Path, pixels: int, rows: int, held: float = 1.0) -> float:
    """Least CPU seconds to take a minibatch from the file, once it has been read, with room for so much of what
    it shows."""
    seen: dict[str, Any] = {"cameras": [], "objects": True}
    if not policy.startswith("state"):
        seen = {"size": pixels, "proprioception": ["robot0_joint_pos", "robot0_gripper_qpos"]}
    given = {"demos": str(folder), "sequence": TIME, "batch_size": rows, **seen}
    data = suite("libero").data(Task("libero", "object-0", params=given), learning=True)
    assert isinstance(data, demonstration_data.Demonstrations)
    whole = int(data.lengths.sum()) * 2 * 3 * pixels**2
    demonstration_data.HELD = HeldArrays(int(held * whole) + SPARE)
    rng = np.random.default_rng(0)
    data.batch(np.arange(len(data)))
    found = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(LOADS):
            data.batch(rng.integers(len(data), size=rows))
        found.append((time.process_time() - began) / LOADS)
    return min(found)


def rollouts(folder: Path, workers: int) -> float:
    """Seconds by the clock of one lifetime's evaluation of ten tasks with pictures, shared by so many processes."""
    began = time.perf_counter()
    perdure.experiment(
        f"libero/eval-object,episodes=2,horizon={ROLLOUT},size=64",
        ["random"],
        out=folder / f"rollouts-{workers}",
        executor="serial",
        eval_workers=workers,
        progress=False,
    )
    return time.perf_counter() - began


def main() -> None:
    """Measure all architectures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=SHAPES, default="small")
    parser.add_argument("--only", nargs="*", default=POLICIES[1:])
    given = parser.parse_args()
    torch.set_num_threads(1)
    steps, rounds = (STEPS, ROUNDS) if given.size == "small" else (1, 1)
    pixels, rows = SHAPES[given.size]
    lines = [
        "# Gradient steps of LIBERO's policies",
        "",
        f"`python benchmarks/sequence_bc.py`, {platform.machine()}, torch {torch.__version__}, one thread. Size "
        f"`{given.size}`, {rows} sequences of {TIME} steps, two pictures of {pixels} pixels a step or poses of objects. "
        f"CPU time, the least of {rounds} rounds in which the sides take turns, beside a minimal loop on the same "
        "network. *Two threads* is how many times as fast a step is by the clock with `threads=2` on a machine of "
        f"two cores. *Replay's* are minibatches of {rows} new and {rows} past sequences of a data set of which half fits "
        "into memory.",
        "",
        "| policy | steps a CPU-second | by hand | of it | loading a minibatch, ms | of all | replay's, ms | of all | "
        "two threads |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    reached = []
    with tempfile.TemporaryDirectory() as folder:
        shown = demonstrations(Path(folder), pixels)
        for policy in given.only:
            here, there = duel(policy, given.size, steps, rounds)
            taken = loading(policy, shown, pixels, rows)
            share = taken / (taken + here)
            # Twice the rows are loaded, and learned from.
            replayed = 2 * loading(policy, shown, pixels, rows, held=0.5)
            of_all = replayed / (replayed + 2 * here)
            lines.append(
                f"| `{policy}` | {1 / here:.1f} | {1 / there:.1f} | {there / here:.2f} | {1000 * taken:.2f} | "
                f"{share:.1%} | {1000 * replayed:.2f} | {of_all:.1%} | {gain(policy, given.size, rounds):.2f} |"
            )
            print(lines[-1], flush=True)
            ratio = there / here
            reached.append((policy, ratio, "at least 0.95 of the loop", ratio >= 0.95))
            for what, part in (("loading", share), ("replay, half held,", of_all)):
                reached.append((f"{policy}'s {what}", part, "at most 0.1 of all", part <= 0.1))
        alone, shared = (rollouts(Path(folder), n) for n in (1, 2))
        lines += [
            "",
            f"Evaluation of ten tasks of LIBERO-Object, two episodes of {ROLLOUT} steps each with two pictures of 64 pixels: "
            f"{alone:.1f} s by the clock in one process, {shared:.1f} s with `--eval-workers 2` "
            f"({alone / shared:.2f} × as fast), starting these included; the rows are the same.",
        ]
    if given.size == "small" and list(given.only) == list(POLICIES[1:]):
        sys.exit(publish("sequence_bc", lines, reached))


if __name__ == "__main__":
    main()
