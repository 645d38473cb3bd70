"""What Meta-World's scripted experts reach on each of the 50 tasks. Writes
docs/results/metaworld-experts.md; about six minutes of CPU.

Every fifth of the 50 goals of MT1 made with each of the seeds 0 to 4, 500 steps, no early end. All of it is
decided by goals and physics, so another run gives the same table to the digit. Tasks that are named
(``benchmarks/metaworld_experts.py reach push``) are only printed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

# A file beside this one has the package's name: do not import it in its place.
sys.path = [p for p in sys.path if Path(p).resolve() != Path(__file__).resolve().parent]

import numpy as np

from perdure.suite import Episode
from perdure.suites.metaworld.env import BatchedSawyer, Sawyer
from perdure.suites.metaworld.expert import ExpertAgent
from perdure.suites.metaworld.tasks import NAMES, Settings, spaces_of
from perdure.types import Context, Setup

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "metaworld-experts.md"
SEEDS, GOALS, HORIZON = range(5), range(0, 50, 5), 500

HEAD = """# Meta-World's scripted experts

`python benchmarks/metaworld_experts.py`, metaworld 3.1.1, MuJoCo 3.3.0, about six minutes of CPU: every fifth
of the 50 goals of MT1 made with each of the seeds 0 to 4, 500 steps, no early end, actions clipped to their
bounds.

*any*: success rate at any step; *worst*: the same for the seed where it is lowest; *last*: success rate at
step 500; *first* and *latest*: median and maximum of the first successful step; *return* and *most*: mean
return and greatest reward, version v2.

| task | any | worst | last | first | latest | return | most |
|---|---|---|---|---|---|---|---|
"""


def episodes(name: str, places: list[tuple[int, int]]):
    """Successes and rewards of every step of the episodes at (seed, goal) places of MT1."""
    chosen = [
        Settings(goals="set", benchmark="MT1", benchmark_seed=seed, goal=goal, horizon=HORIZON)
        for seed, goal in places
    ]
    arms, slots = BatchedSawyer([Sawyer(name, c) for c in chosen]), range(len(chosen))
    task = f"metaworld/{name}"
    expert = ExpertAgent(Setup(*spaces_of(chosen[0]), len(chosen), 0, (task,)))
    obs = np.stack([arms.reset(slot, Episode.alone(0)) for slot in slots])
    episode_start = np.zeros(len(chosen), bool)
    where = Context("eval", False, 0, (task,) * len(chosen), np.array(slots), episode_start)
    success, rewards = np.zeros((2, HORIZON, len(chosen)))
    for t in range(HORIZON):
        obs, rewards[t], _, _, infos = arms.step(slots, list(expert.act(obs, where)))
        success[t] = [infos[slot]["success"] for slot in slots]
    arms.close()
    return success, rewards


def row(name: str) -> str:
    success, rewards = episodes(name, [(s, g) for s in SEEDS for g in GOALS])
    reached = success.max(axis=0)
    first = success.argmax(axis=0)[reached > 0] + 1
    worst = reached.reshape(len(SEEDS), -1).mean(axis=1).min()
    return (
        f"| {name} | {reached.mean():.2f} | {worst:.2f} | {success[-1].mean():.2f} "
        f"| {np.median(first):.0f} | {first.max()} | {rewards.sum(axis=0).mean():.0f} "
        f"| {rewards.max():.2f} |"
    )


def main() -> None:
    started, rows = time.process_time(), []
    for name in sys.argv[1:] or sorted(NAMES):
        rows.append(row(name))
        print(rows[-1], flush=True)
    if not sys.argv[1:]:
        columns = np.array([[float(x) for x in r.split("|")[2:5]] for r in rows])
        mean = " | ".join(f"{x:.3f}" for x in columns.mean(axis=0))
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(HEAD + "\n".join(rows) + f"\n| mean | {mean} | | | | |\n")
    print(f"{time.process_time() - started:.0f} CPU seconds")


if __name__ == "__main__":
    main()
