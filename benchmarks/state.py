"""What a large replay costs: a commit, an evaluation and an adapt block of an agent that remembers
1 GB, beside writing, digesting and copying all of it.

The replay is a real :class:`~perdure.agents.networks.ring.Ring` with the columns that SAC has on
Meta-World. Everything is written to the disk this runs on, fsync included.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from publish import publish

from perdure.agent import Agent
from perdure.agents.networks.ring import Ring
from perdure.run.agent_state import AgentState
from perdure.run.config import LifetimeConfig
from perdure.run.loop import LifetimeLoop
from perdure.run.validate import validate
from perdure.store import state
from perdure.store.disk import DiskStore
from perdure.store.log import LifetimeLog
from perdure.types import Curriculum, Exposure, Task, adapt, evaluate

BYTES = 1_000_000_000
NEW = 10_000
ROUNDS = 5
COLUMNS = {
    "obs": ((39,), np.float32),
    "actions": ((4,), np.float32),
    "rewards": ((), np.float32),
    "terminated": ((), np.bool_),
    "next_obs": ((39,), np.float32),
}
ROW = sum(int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in COLUMNS.values())
TASK = Task("toy", "goal-ne")


class Rememberer(Agent):
    """Acts by chance and remembers a row for every step it learns from."""

    def __init__(self, setup, rows=0):
        super().__init__(setup)
        self.ring = Ring(max(rows, 1000), COLUMNS)
        for start in range(0, rows, 50_000):
            self.remember(min(50_000, rows - start))

    def remember(self, rows):
        made = {n: self.rng.random((rows, *shape)).astype(d) for n, (shape, d) in COLUMNS.items()}
        self.ring.add(rows, **made)

    def act(self, obs, ctx):
        return self.rng.integers(4, size=len(obs))

    def learn(self, batch, ctx):
        self.remember(len(batch))

    def state(self):
        return self.ring.state("replay")

    def load(self, state):
        self.ring.load("replay", state)


class Plain(Rememberer):
    """The same with its state as plain arrays."""

    def state(self):
        return {name: np.asarray(value) for name, value in super().state().items()}


def config_of(block):
    curriculum = Curriculum("bench/state", (block,))
    ground = validate(curriculum)
    spaces = (ground.observation_space, ground.action_space)
    return LifetimeConfig(curriculum, ground.suites, *spaces, seed=0, checkpoint=10**9)


def size(folder):
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def timed(call):
    os.sync()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def commits(agent, folder):
    """Seconds and bytes: of a file with everything, of a first commit, of one after 10,000 rows."""
    kept = AgentState(agent)
    everything = {name: np.asarray(value) for name, value in agent.state().items()}
    whole = timed(lambda: DiskStore(folder).put("whole/all.npz", state.encode(everything)))
    whole_bytes = size(folder / "whole")
    everything.clear()
    with LifetimeLog(folder / "life", "a", 0) as log:
        first = timed(lambda: log.commit([], kept.save(None), {}))
        first_bytes = size(folder / "life")
        times, sizes = [], []
        for _ in range(ROUNDS):
            agent.remember(NEW)
            before = {p for p in (folder / "life").rglob("*") if p.is_file()}
            times.append(timed(lambda: log.commit([], kept.save(None), {})))
            new = {p for p in (folder / "life").rglob("*") if p.is_file()} - before
            sizes.append(sum(p.stat().st_size for p in new))
    return (whole, whole_bytes), (first, first_bytes), (max(times), max(sizes))


def block_ms(agent, block, folder):
    """Milliseconds of one block, the best of several."""
    config, times = config_of(block), []
    with LifetimeLog(folder, "a", 0) as log:
        for _ in range(ROUNDS):
            loop = LifetimeLoop(config, agent, log)
            times.append(timed(lambda loop=loop: loop._block(0, block, None)))
    return 1000 * min(times)


def main():
    rows = BYTES // ROW
    setup = config_of(evaluate(Exposure(TASK, 1))).setup()
    blocks = {
        "evaluation, 5 episodes": evaluate(Exposure(TASK, 5)),
        "adapt, 200 steps and 5 episodes": adapt(
            Exposure(TASK, 200, "steps"), then=[Exposure(TASK, 5)]
        ),
    }
    with tempfile.TemporaryDirectory(dir=".", prefix="_bench-state-") as name:
        folder = Path(name)
        agent = Rememberer(setup, rows)
        whole, first, later = commits(agent, folder)
        small, plain = Rememberer(setup), Plain(setup)
        plain.ring = agent.ring
        ms = {}
        for k, (words, block) in enumerate(blocks.items()):
            for j, who in enumerate((small, agent, plain)):
                ms[words, j] = block_ms(who, block, folder / f"{k}-{j}")
    lines = [
        "# State: what a replay of 1 GB costs",
        "",
        f"`make bench` on {platform.machine()}, Python {platform.python_version()}, NumPy "
        f"{np.__version__}: {rows:,} rows of {ROW} bytes, written to the disk of this folder, fsync "
        "included.",
        "",
        "| commit | seconds | MB |",
        "|---|---:|---:|",
        f"| everything as one file | {whole[0]:.2f} | {whole[1] / 1e6:,.1f} |",
        f"| the first commit | {first[0]:.2f} | {first[1] / 1e6:,.1f} |",
        f"| a commit after {NEW:,} new rows, the worst of {ROUNDS} | {later[0]:.3f} | "
        f"{later[1] / 1e6:,.1f} |",
        "",
        "| milliseconds of a block | empty replay | 1 GB | 1 GB as plain arrays |",
        "|---|---:|---:|---:|",
        *(
            f"| {words} | {ms[words, 0]:.1f} | {ms[words, 1]:.1f} | {ms[words, 2]:,.0f} |"
            for words in blocks
        ),
    ]
    fastest, least = min(whole[0], first[0]), min(whole[1], first[1])
    evaluation, adaptation = (ms[words, 1] - ms[words, 0] for words in blocks)
    goals = [
        ("time of a commit ÷ that of everything", later[0] / fastest, "≤ 0.1"),
        ("bytes of a commit ÷ those of everything", later[1] / least, "≤ 0.1"),
    ]
    reached = [(*goal, goal[1] <= 0.1) for goal in goals]
    reached.append(("ms of an evaluation beyond its episodes", evaluation, "< 50", evaluation < 50))
    reached.append(("ms of an adapt block beyond its steps", adaptation, "< 50", adaptation < 50))
    return publish("state", lines, reached)


if __name__ == "__main__":
    sys.exit(main())
