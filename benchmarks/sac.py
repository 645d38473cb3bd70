"""Updates of soft actor-critic per CPU-second, beside Stable-Baselines3 and a minimal JAX.

The same sizes of networks and minibatches, one thread each, sampling from the replay included, no
environment. Stable-Baselines3 has one temperature and no tasks; it gets minibatches as large. JAX is
sac_jax.py, written for this, in an environment of its own (jax_env.sh).

    make bench            writes benchmarks/results/sac.md
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from publish import publish
from sac_parts import ACTIONS, LR, REPLAY, SIZES, rows, widths
from stable_baselines3.common.logger import configure

from perdure.agents.learners.sac import SACAgent
from perdure.types import Setup

HERE = Path(__file__).parent
ROUNDS = 9
WHY = (
    "Perdure gains on Stable-Baselines3 where overhead counts: one loss and one backward pass for "
    "policy, critics and temperatures, both critics in one batched product, Adam on one flat vector. "
    "JAX compiles 20 updates into one program, so that nothing of Python is left between products; "
    "at the large size products are nearly all of it on every side."
)


def clocked(update, count):
    """CPU seconds per update."""
    start = time.process_time()
    update(count)
    return (time.process_time() - start) / count


class Ours:
    """Perdure's learner with full replays."""

    def __init__(self, size):
        inputs, hidden = widths(size)
        names = tuple(f"task-{k}" for k in range(size.tasks))
        seen = spaces.Box(-np.inf, np.inf, (inputs,), np.float32)
        setup = Setup(seen, spaces.Box(-1, 1, (ACTIONS,), np.float32), size.tasks, 0, names)
        self.agent = SACAgent(setup, lr=LR, hidden=hidden, batch=size.batch // size.tasks)
        for replay, held in zip(self.agent.replays, rows(size), strict=True):
            replay.add(REPLAY, **held)

    def __call__(self, count):
        for _ in range(count):
            self.agent.update()


class Space(gymnasium.Env):
    """What Stable-Baselines3 asks for its spaces; never stepped."""

    def __init__(self, inputs):
        self.observation_space = spaces.Box(-np.inf, np.inf, (inputs,), np.float32)
        self.action_space = spaces.Box(-1, 1, (ACTIONS,), np.float32)


class Theirs:
    """Stable-Baselines3's, with a full replay."""

    def __init__(self, size):
        inputs, hidden = widths(size)
        self.model = stable_baselines3.SAC(
            "MlpPolicy", Space(inputs), learning_rate=LR, buffer_size=REPLAY * size.tasks,
            batch_size=size.batch, policy_kwargs={"net_arch": list(hidden)}, device="cpu",
        )  # fmt: skip
        self.model.set_logger(configure(format_strings=[]))
        self.batch = size.batch
        for held in rows(size):
            for k in range(REPLAY):
                row = {name: column[k : k + 1] for name, column in held.items()}
                self.model.replay_buffer.add(
                    row["obs"], row["next_obs"], row["actions"], row["rewards"],
                    row["terminated"], [{}],
                )  # fmt: skip

    def __call__(self, count):
        self.model.train(gradient_steps=count, batch_size=self.batch)


class Jax:
    """Its process, which answers one question at a time."""

    def __init__(self):
        python = HERE.parent / ".venv-jax" / "bin" / "python"
        self.process = subprocess.Popen(
            [python, HERE / "sac_jax.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self.process.stdout.readline().strip()

    def __call__(self, size, count):
        print(json.dumps([size, count]), file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(rounds, jax):
    """For each size and side: the least of all rounds, which is what a noisy neighbour took nothing
    from."""
    best = {}
    for name, size in SIZES.items():
        ours, theirs = Ours(size), Theirs(size)
        torch.set_num_threads(1)
        sides = {
            "Perdure": lambda n, run=ours: clocked(run, n),
            "Stable-Baselines3": lambda n, run=theirs: clocked(run, n),
            "JAX": lambda n, name=name: jax(name, n),
        }
        cell = best[name] = dict.fromkeys(sides, np.inf)
        for _ in range(rounds):
            for side, run in sides.items():
                cell[side] = min(cell[side], run(size.updates))
        print(name, {side: round(1 / each, 1) for side, each in cell.items()}, flush=True)
    return best


def main(rounds):
    jax = Jax()
    best = measure(rounds, jax)
    jax.close()
    small, large = (cell["Stable-Baselines3"] / cell["Perdure"] for cell in best.values())
    reached = [
        (f"{name}: Perdure ÷ Stable-Baselines3", ratio, f"≥ {goal}", ratio >= goal)
        for name, ratio, goal in zip(SIZES, (small, large), (1.4, 1.0), strict=True)
    ]
    lines = [
        "# Soft actor-critic: updates per CPU-second",
        "",
        f"`make bench` on {platform.machine()}, Python {platform.python_version()}, torch "
        f"{torch.__version__}, Stable-Baselines3 {stable_baselines3.__version__}, JAX {jax.version}, "
        f"one thread; the best of {rounds} interleaved rounds. Sampling from the replay is in it.",
        "",
        "| networks | Perdure | Stable-Baselines3 | JAX, 20 updates a call | "
        "Perdure ÷ Stable-Baselines3 | Perdure ÷ JAX |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, cell in best.items():
        ours, theirs, xla = (1 / cell[s] for s in ("Perdure", "Stable-Baselines3", "JAX"))
        figures = f"{ours:.1f} | {theirs:.1f} | {xla:.1f} | {ours / theirs:.2f} | {ours / xla:.2f}"
        lines.append(f"| {name} | {figures} |")
    lines += ["", WHY]
    return publish("sac", lines, reached)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
