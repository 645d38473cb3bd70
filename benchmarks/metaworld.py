"""Meta-World's stepping, resetting and construction beside upstream's. Writes results/metaworld.md.

CPU and wall time, best of several interleaved rounds: the machine may be shared. Each side runs in a process
of its own, so that none inherits another's memory or imports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path

warnings.filterwarnings("ignore")
# This file has the package's name: do not import it in its place.
sys.path = [p for p in sys.path if Path(p).resolve() != Path(__file__).resolve().parent]
os.environ.setdefault("OMP_NUM_THREADS", "1")

RESULTS = Path(__file__).parent / "results" / "metaworld.md"
STEPS = 100
ROUNDS = 4


def cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def memory() -> float:
    """Resident megabytes now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def actions(count: int, steps: int):
    import numpy as np

    return np.random.default_rng(0).uniform(-1, 1, (steps, count, 4)).astype(np.float32)


def ours_mt(names):
    from perdure.suite import Episode
    from perdure.suites.metaworld.env import BatchedSawyer, Sawyer
    from perdure.suites.metaworld.tasks import Settings

    arms = BatchedSawyer([Sawyer(n, Settings()) for n in names])
    for k in range(len(names)):
        arms.reset(k, Episode.alone(k))
    return arms


def upstream_mt(benchmark: str, strategy: str):
    import gymnasium
    import metaworld  # noqa: F401

    return gymnasium.make_vec(f"Meta-World/{benchmark}", vector_strategy=strategy, seed=0)


def stepping(side: str) -> dict[str, float]:
    """CPU and wall microseconds of one environment's step, MT10, random actions."""
    from perdure.suite import Episode
    from perdure.suites.metaworld.tasks import MT10

    moves = actions(10, STEPS)
    if side == "limit":
        import mujoco

        arms = ours_mt(MT10)
        pairs = [(a.robot.model, a.robot.data) for a in arms.arms]

        def round_() -> None:
            # The same states as in play: the hand is moved, nothing is looked at.
            for row in moves:
                for arm, move, (model, data) in zip(arms.arms, row, pairs, strict=True):
                    arm.robot.push(move)
                    started = time.process_time()
                    mujoco.mj_step(model, data, 5)
                    mujoco.mj_forward(model, data)
                    spent[0] += time.process_time() - started

        spent, best = [0.0], float("inf")
        for _ in range(ROUNDS):
            for k in range(10):
                arms.reset(k, Episode.alone(k))
            spent[0] = 0.0
            round_()
            best = min(best, spent[0])
        return {"cpu": best / (STEPS * 10) * 1e6}
    if side in ("one", "all"):
        arms = ours_mt(MT10)
        slots = list(range(10))

        def begin() -> None:
            for k in slots:
                arms.reset(k, Episode.alone(k))

        def step(row) -> None:
            arms.step(slots, list(row))

        def end() -> None:
            arms.close()
    else:
        envs = upstream_mt("MT10", side)

        def begin() -> None:
            envs.reset()

        step, end = envs.step, envs.close
    walls, cpus = [], []
    for _ in range(ROUNDS):
        begin()
        before, wall = cpu(), time.perf_counter()
        for row in moves:
            step(row)
        walls.append(time.perf_counter() - wall)
        cpus.append(cpu() - before)
    out = {"wall": min(walls) / (STEPS * 10) * 1e6}
    end()
    return {**out, "cpu": min(cpus) / (STEPS * 10) * 1e6}


def resetting() -> dict[str, float]:
    """CPU milliseconds of a reset, mean over MT10: upstream's, ours new, ours seen before."""
    import pickle

    import numpy as np
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS
    from metaworld.types import Task

    from perdure.suites.metaworld.fast_env import fast_env
    from perdure.suites.metaworld.tasks import MT10

    sums = {"upstream": 0.0, "new": 0.0, "seen": 0.0}
    for name in MT10:
        ours, cls = fast_env(name)(), ALL_V3_ENVIRONMENTS[f"{name}-v3"]
        theirs = cls()
        best = dict.fromkeys(sums, float("inf"))
        for k in range(4):
            vector = ours.place(None, np.random.default_rng(k)).copy()
            data = {"rand_vec": vector, "env_cls": cls, "partially_observable": False}
            theirs.set_task(Task(f"{name}-v3", pickle.dumps(data)))
            times = [time.process_time()]
            theirs.reset()
            times.append(time.process_time())
            ours.begin(k, vector)
            times.append(time.process_time())
            for _ in range(20):
                ours.begin(k)
            times.append(time.process_time())
            spent = [b - a for a, b in pairwise(times)]
            spent[2] /= 20
            best = {
                what: min(old, new) for (what, old), new in zip(best.items(), spent, strict=True)
            }
        for what, value in best.items():
            sums[what] += value / len(MT10) * 1e3
    return sums


def constructing(side: str) -> dict[str, float]:
    """CPU seconds and megabytes of MT50 ready to step."""
    before, held = cpu(), memory()
    if side == "ours":
        from perdure.suites.metaworld.tasks import NAMES

        made = ours_mt(NAMES)
    else:
        made = upstream_mt("MT50", "sync")
        made.reset()
    out = {"cpu": cpu() - before, "memory": memory() - held}
    made.close()
    return out


PARTS = {"step": stepping, "reset": resetting, "build": constructing}


def child(part: str, *args: str, cache: str) -> dict[str, float]:
    """Run one part in a process of its own, with one thread unless all are asked for."""
    threads = str(len(os.sched_getaffinity(0))) if "all" in args else "1"
    done = subprocess.run(
        [sys.executable, __file__, part, *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PERDURE_CACHE": cache, "PERDURE_THREADS": threads},
    )
    if done.returncode:
        raise SystemExit(f"{part} {args}: {done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def best(results: list[dict[str, float]]) -> dict[str, float]:
    return {k: min(r[k] for r in results) for k in results[0]}


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        started = time.perf_counter()
        first = child("build", "ours", cache=cache)
        names = ("one", "all", "sync", "async", "limit")
        sides: dict[str, list[dict[str, float]]] = {side: [] for side in names}
        for _ in range(3):
            for side, results in sides.items():
                results.append(child("step", side, cache=cache))
        ours, both, sync, parallel, limit = (best(r) for r in sides.values())
        reset = child("reset", cache=cache)
        built = best([child("build", "ours", cache=cache) for _ in range(2)])
        theirs = child("build", "upstream", cache=cache)
    better = min(sync["wall"], parallel["wall"])
    busy = os.getloadavg()[2]
    text = f"""# Meta-World, beside upstream

`benchmarks/metaworld.py`, metaworld 3.1.1, MuJoCo 3.3.0, {os.cpu_count()} cores; CPU time, best of
several rounds, random actions. Ours and upstream's give the same numbers to the bit
(`tests/suites/test_metaworld.py`).

| MT10, one step of one environment | CPU µs | wall µs | upstream sync's CPU, better wall, beside it |
|---|---|---|---|
| upstream, sync | {sync["cpu"]:.0f} | {sync["wall"]:.0f} | |
| upstream, async (10 processes) | – | {parallel["wall"]:.0f} | |
| ours, one thread | {ours["cpu"]:.0f} | {ours["wall"]:.0f} | {sync["cpu"] / ours["cpu"]:.1f} × CPU, {better / ours["wall"]:.1f} × wall |
| ours, a thread for each core | {both["cpu"]:.0f} | {both["wall"]:.0f} | {sync["cpu"] / both["cpu"]:.1f} × CPU, {better / both["wall"]:.1f} × wall |
| bare `mj_step` + `mj_forward`: the limit | {limit["cpu"]:.0f} | | ours takes {ours["cpu"] / limit["cpu"]:.1f} × as much |

The load average of the last quarter of an hour was {busy:.1f} at the end: wall times count only where
that is little more than these programs' own.

| reset, mean over MT10 | CPU ms | beside upstream |
|---|---|---|
| upstream | {reset["upstream"]:.2f} | 1 |
| ours, a new scene | {reset["new"]:.2f} | {reset["upstream"] / reset["new"]:.1f} × cheaper |
| ours, a scene seen before | {reset["seen"]:.3f} | {reset["upstream"] / reset["seen"]:.0f} × cheaper |

| MT50 made and reset, imports included | CPU s | MB |
|---|---|---|
| upstream, sync | {theirs["cpu"]:.1f} | {theirs["memory"]:.0f} |
| ours, first time on a machine (models are compiled) | {first["cpu"]:.1f} | {first["memory"]:.0f} |
| ours | {built["cpu"]:.1f} | {built["memory"]:.0f} |
"""
    RESULTS.write_text(text)
    print(text)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(PARTS[sys.argv[1]](*sys.argv[2:])))
    else:
        main()
