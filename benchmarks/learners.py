"""How well the learners learn with their defaults, beside Stable-Baselines3's.

Each learner learns each task alone, with the same number of steps in one environment on both sides,
and is evaluated (most probable action, 5 episodes) at ten places on the way, in five lifetimes with
seeds that were not used to choose defaults. Both sides have their defaults, unless the duel says
otherwise. CPU-seconds are those of learning alone, environment included, one thread; the sides take
turns, so that what else the machine does hits both.

    make bench                                     CartPole and Pendulum, two lifetimes; no page
    python benchmarks/learners.py --only sac       measures these duels; no page
    python benchmarks/learners.py --whole          writes benchmarks/results/learners.md

What was measured is kept in build/learners and not measured again with the same code and settings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3
import torch
from publish import publish
from stable_baselines3.common.callbacks import BaseCallback

from perdure import experiment, registry
from perdure.curricula import interleave
from perdure.measure.stats import t_quantile
from perdure.types import Curriculum, Exposure, Task, evaluate, learn

HERE = Path(__file__).parent
KEPT = HERE.parent / "build" / "learners"
POINTS, EPISODES, LIFETIMES = 10, 5, 5
FIRST_SEED = 10
"""Defaults were chosen with seeds 0 to 2."""


WIDE = {"net_arch": [256, 256]}
ZOO = {
    "CartPole-v1": {
        "learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000,
        "gamma": 0.99, "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128,
        "exploration_fraction": 0.16, "exploration_final_eps": 0.04, "policy_kwargs": WIDE,
    },
    "Acrobot-v1": {
        "learning_rate": 6.3e-4, "batch_size": 128, "buffer_size": 50_000, "learning_starts": 0,
        "gamma": 0.99, "target_update_interval": 250, "train_freq": 4, "gradient_steps": -1,
        "exploration_fraction": 0.12, "exploration_final_eps": 0.1, "policy_kwargs": WIDE,
    },
    "MountainCar-v0": {
        "learning_rate": 4e-3, "batch_size": 128, "buffer_size": 10_000, "learning_starts": 1000,
        "gamma": 0.98, "target_update_interval": 600, "train_freq": 16, "gradient_steps": 8,
        "exploration_fraction": 0.2, "exploration_final_eps": 0.07, "policy_kwargs": WIDE,
    },
}  # fmt: skip
"""DQN as tuned by RL Baselines3 Zoo (Raffin, 2020) for each task, hyperparams/dqn.yml."""


@dataclass(frozen=True)
class Duel:
    """A learner on a task: how many steps, and what settings each side has beside its defaults."""

    learner: str
    task: str
    steps: int
    settings: str = "default"
    """In a word for the table."""
    ours: Mapping[str, Any] = field(default_factory=dict, hash=False)
    theirs: Mapping[str, Any] = field(default_factory=dict, hash=False)


def against_zoo(task, steps):
    """Our one default of DQN on a task, and what Zoo tuned for that very task."""
    return Duel("dqn", task, steps, "tuned for SB3", theirs=ZOO[task])


DUELS = (
    Duel("ppo", "CartPole-v1", 40_960),
    Duel("ppo", "Acrobot-v1", 40_960),
    Duel(
        "ppo", "Pendulum-v1", 40_960, "γ 0.9, rate 1e-3 on both",
        {"gamma": 0.9, "lr": 1e-3}, {"gamma": 0.9, "learning_rate": 1e-3},
    ),
    Duel("ppo", "Pendulum-v1", 40_960),
    against_zoo("CartPole-v1", 50_000),
    against_zoo("Acrobot-v1", 30_000),
    against_zoo("MountainCar-v0", 120_000),
    Duel("sac", "Pendulum-v1", 5_000),
    Duel("sac", "InvertedPendulum-v5", 3_000),
    Duel("sac", "Reacher-v5", 3_000),
)  # fmt: skip


@dataclass
class Curve:
    """One lifetime: CPU-seconds of learning until each evaluation, and the mean return in it."""

    cpu: list[float]
    returns: list[float]


class Clock:
    """CPU-seconds while it runs."""

    def __init__(self):
        self.total, self.since = 0.0, 0.0

    def start(self):
        self.since = time.process_time()

    def stop(self):
        self.total += time.process_time() - self.since


def course(task="CartPole-v1", steps=40_960):
    """Learning with an evaluation after each tenth."""
    here = Task("gym", task)
    blocks = [learn(Exposure(here, steps // POINTS, "steps"))] * POINTS
    evaluation = evaluate(Exposure(here, EPISODES))
    return Curriculum("learners", interleave(blocks, evaluation))


def ours(duel, seed):
    """Perdure's learner through Perdure's loop, log and checkpoints included."""
    clock, cpu = Clock(), []

    class Timed(registry.load("agents", duel.learner)):
        def enter(self, ctx):
            if ctx.learning and ctx.event == "block":
                clock.start()
            super().enter(ctx)

        def leave(self, ctx):
            super().leave(ctx)
            if ctx.learning and ctx.event == "block":
                clock.stop()
                cpu.append(clock.total)

    with tempfile.TemporaryDirectory() as folder:
        run = experiment(
            f"{Path(__file__).resolve()}:course,task={duel.task},steps={duel.steps}",
            {"ours": lambda setup: Timed(setup, **duel.ours)},
            seed=seed, out=f"{folder}/run", executor="serial", checkpoint=1_000_000,
        )  # fmt: skip
        rows = run.rows().to_pylist()
    found: dict[int, list[float]] = {}
    for row in rows:
        if row["kind"] == "eval":
            found.setdefault(row["block"], []).append(row["return"])
    means = [float(np.mean(found[block])) for block in sorted(found)]
    return Curve(cpu, means[-POINTS:])


class Evaluations(BaseCallback):
    """Evaluates at the first step after each tenth, when what came before has been learned."""

    def __init__(self, duel, seed, clock):
        super().__init__()
        self.duel, self.seed, self.clock = duel, seed, clock
        self.env = gymnasium.make(duel.task)
        self.curve = Curve([], [])

    def _on_step(self):
        # Rollouts and bursts of updates may go on beyond the last step.
        done = len(self.curve.cpu)
        if done < POINTS and self.num_timesteps > (done + 1) * self.duel.steps // POINTS:
            self.evaluate()
        return True

    def evaluate(self):
        """The mean return of the most probable actions."""
        self.clock.stop()
        returns = []
        for episode in range(EPISODES):
            obs, _ = self.env.reset(seed=1_000_000 * (self.seed + 1) + episode)
            total, over = 0.0, False
            while not over:
                action, _ = self.model.predict(obs, deterministic=True)
                obs, reward, terminated, truncated, _ = self.env.step(action)
                total, over = total + float(reward), terminated or truncated
            returns.append(total)
        self.curve.cpu.append(self.clock.total)
        self.curve.returns.append(float(np.mean(returns)))
        self.clock.start()


def theirs(duel, seed):
    """Stable-Baselines3's, as its users run it."""
    torch.set_num_threads(1)
    make = getattr(stable_baselines3, duel.learner.upper())
    model = make("MlpPolicy", gymnasium.make(duel.task), seed=seed, device="cpu", **duel.theirs)
    clock = Clock()
    callback = Evaluations(duel, seed, clock)
    clock.start()
    model.learn(duel.steps, callback=callback)
    while len(callback.curve.cpu) < POINTS:
        callback.evaluate()
    return callback.curve


@cache
def code(learner):
    """What stands for the agent modules behind a learner as they are now: other code is measured
    anew. A fresh interpreter tells which they are."""
    ask = (
        f"import sys, perdure.agents.learners.{learner}\n"
        "for name, m in sorted(sys.modules.items()):\n"
        "    if name.startswith('perdure.agents'): print(m.__file__)"
    )
    found = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    text = b"".join(Path(file).read_bytes() for file in found.stdout.split())
    return hashlib.sha256(text).hexdigest()[:8]


def measured(side, duel, seed):
    """The curve of one lifetime, from the file if it was measured before."""
    play, settings, version = (
        (ours, duel.ours, code(duel.learner))
        if side == "perdure"
        else (theirs, duel.theirs, stable_baselines3.__version__)
    )
    told = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    name = f"{side}-{version}-{duel.learner}-{duel.task}-{duel.steps}-{told}-{seed}.json"
    file = KEPT / name
    if not file.exists():
        curve = play(duel, seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(curve)))
        spent = f"{curve.cpu[-1]:.1f} s"
        print(side, duel.learner, duel.task, seed, spent, np.round(curve.returns, 1), flush=True)
    return Curve(**json.loads(file.read_text()))


def welch(a, b, level=0.95):
    """Difference of two means, and half the width of Welch's interval."""
    va, vb = (np.var(x, ddof=1) / len(x) for x in (a, b))
    gap = float(np.mean(a) - np.mean(b))
    if va + vb == 0:
        return gap, 0.0
    df = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return gap, t_quantile(df, level) * float(np.sqrt(va + vb))


def at_cpu(curve, seconds):
    """The return after so much CPU, between two evaluations in proportion."""
    return float(np.interp(seconds, curve.cpu, curve.returns))


def end_of(curve):
    """The mean of the last three evaluations: a single one of an unsteady learner is a lottery."""
    return float(np.mean(curve.returns[-3:]))


@dataclass(frozen=True)
class Result:
    """One duel over all lifetimes."""

    duel: Duel
    lifetimes: int
    ends: tuple[float, float]
    gap: tuple[float, float]
    """Ours less theirs at equal steps, and half the interval."""
    gap_at_cpu: tuple[float, float]
    cpu: tuple[float, float]

    @property
    def not_worse(self):
        """Whether the difference may be chance, or is in our favour, at equal steps and equal CPU."""
        return all(gap + half >= 0 for gap, half in (self.gap, self.gap_at_cpu))


def compared(duel, lifetimes):
    """Both sides of a duel. Equal CPU is what the cheaper side used for all its steps."""
    sides = {"perdure": [], "sb3": []}
    for seed in range(FIRST_SEED, FIRST_SEED + lifetimes):
        for side in list(sides) if seed % 2 else list(sides)[::-1]:
            sides[side].append(measured(side, duel, seed))
    mine, other = sides.values()
    spent = tuple(float(np.mean([c.cpu[-1] for c in side])) for side in (mine, other))
    ends = [[end_of(c) for c in side] for side in (mine, other)]
    level = [[at_cpu(c, min(spent)) for c in side] for side in (mine, other)]
    return Result(
        duel, lifetimes, tuple(float(np.mean(e)) for e in ends), welch(*ends), welch(*level), spent
    )


def row(result):
    """A line of the table."""
    d, (mine, other), (gap, half) = result.duel, result.ends, result.gap
    even, width = result.gap_at_cpu
    return (
        f"| {d.learner} | {d.task} | {d.steps:,} | {d.settings} | {mine:.0f} | "
        f"{other:.0f} | {gap:+.0f} ± {half:.0f} | {even:+.0f} ± {width:.0f} | "
        f"{result.cpu[0]:.0f} | {result.cpu[1]:.0f} | {result.cpu[1] / result.cpu[0]:.1f} |"
    )


def page(results):
    """What is written."""
    return [
        "# Learners beside Stable-Baselines3",
        "",
        f"Python {platform.python_version()}, torch {torch.__version__}, Stable-Baselines3 "
        f"{stable_baselines3.__version__}, Gymnasium {gymnasium.__version__}, one thread; "
        f"{results[0].lifetimes} lifetimes a side.",
        "",
        "Returns are means of the last three of ten evaluations (5 episodes each, most probable action). "
        "Differences are Perdure's less Stable-Baselines3's with Welch's 95 % interval over "
        "lifetimes, after the same steps and after the same CPU (all that the cheaper side used). "
        "Perdure has its defaults everywhere; Stable-Baselines3 its own, or where it says tuned "
        "those of RL Baselines3 Zoo for that task. CPU-seconds are of learning, environment included.",
        "",
        "| learner | task | steps | SB3 | Perdure | SB3 | at equal steps | at equal CPU | CPU | SB3's "
        "CPU | ratio |",
        "|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|",
        *map(row, results),
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--whole", action="store_true", help="all duels, and the page")
    parser.add_argument("--lifetimes", type=int, default=LIFETIMES)
    parser.add_argument("--only", metavar="TEXT", help="duels whose name has this, as sac-Pendulum")
    args = parser.parse_args()
    if args.only:
        chosen = [d for d in DUELS if args.only in f"{d.learner}-{d.task}"]
        print("\n".join(page([compared(d, args.lifetimes) for d in chosen])))
        return 0
    if not args.whole:
        results = [compared(d, 2) for d in DUELS if d.task in ("CartPole-v1", "Pendulum-v1")]
        print("\n".join(page(results)))
        return 0 if all(r.not_worse for r in results) else 1
    results = [compared(duel, args.lifetimes) for duel in DUELS]
    reached = []
    for r in results:
        name = f"{r.duel.learner} on {r.duel.task}"
        reached.append((name, r.gap[0], "not worse beyond chance", r.not_worse))
    for learner in dict.fromkeys(d.learner for d in DUELS):
        ratio = min(r.cpu[1] / r.cpu[0] for r in results if r.duel.learner == learner)
        reached.append((f"CPU of {learner}, least ratio", ratio, "at least 1.7", ratio >= 1.7))
    return publish("learners", page(results), reached)


if __name__ == "__main__":
    raise SystemExit(main())
