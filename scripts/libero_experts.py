"""Plays LIBERO's scripted experts and writes docs/results/libero-experts.md.

    python scripts/libero_experts.py --look official --states 50 --lists object,spatial

Every episode is a line of a file beside the run (``--log``), so a run that is stopped goes on where it
was, and more states or lists are added to what is there. ``--page`` writes the page from the file alone.
"""

import argparse
import importlib.metadata
import json
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from perdure.registry import suite
from perdure.suites.libero.experts import solve
from perdure.suites.libero.looks import LOOKS
from perdure.suites.libero.tasks import LISTS, names_of, officials
from perdure.types import Task

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/results/libero-experts.md"
LOG = ROOT / "docs/results/libero-experts.jsonl"
TARGETS = {"object": 0.98, "spatial": 0.98, "goal": 0.95, "10": 0.85, "90": 0.85}
HEAD = """# LIBERO's scripted experts

`python scripts/libero_experts.py --look LOOK --states N`: {horizon} steps, without pictures, constraints solved once a
physics step (`solves=1`). {versions}. In the official look episode k begins in the k-th official state; in the primitive one it
is drawn by seed k. *won* is of episodes played, which are the first ones. *steps* is the mean of those that were won.

"""
OF_LISTS = """| list | tasks played | episodes | won | share | steps | CPU s an episode | wanted |
|---|---|---|---|---|---|---|---|
"""
OF_TASKS = """
| task | won | steps | what did not hold at the end of lost episodes | instruction |
|---|---|---|---|---|
"""


def played(log: Path) -> dict[tuple[str, str, int], dict]:
    """Episodes that were played, the last where one was played twice."""
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return {(r["look"], r["task"], r["state"]): r for r in rows}


def play(
    names: list[str], look: str, states: int, horizon: int, log: Path, workers: int = 1
) -> None:
    """Play what has not been played."""
    done = played(log)
    missing = {n: [k for k in range(states) if (look, n, k) not in done] for n in names}
    tasks = [(n, look, missing[n], horizon, log) for n in names if missing[n]]
    if workers == 1:
        for task in tasks:
            play_task(*task)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for future in [pool.submit(play_task, *task) for task in tasks]:
            future.result()


def play_task(name: str, look: str, states: list[int], horizon: int, log: Path) -> None:
    """Play some episodes of a task; each is a line of the log, written at once."""
    params = {"cameras": [], "solves": 1, "horizon": horizon, "look": look}
    env = suite("libero").env(Task("libero", name, params=params)).unwrapped
    for k in states:
        began = time.process_time()
        attempt = solve(env, seed=k, options={"episode": k})
        goal = env.problem.goal
        left = [str(r) for r in goal if not env.simulation.predicates.holds(r)]
        row = {
            "look": look, "task": name, "state": k, "won": attempt.success,
            "steps": len(attempt.actions), "left": left,
            "cpu": round(time.process_time() - began, 2), "horizon": horizon,
        }  # fmt: skip
        with log.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(name, k, "won" if attempt.success else f"lost: {', '.join(left)}", flush=True)
    env.close()


def page(log: Path) -> str:
    """The page of everything played."""
    rows = played(log)
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("mujoco", "numpy"))
    text = HEAD.format(versions=versions, horizon=max(r["horizon"] for r in rows.values()))
    for look in LOOKS:
        tasks = defaultdict(list)
        for (_, name, _), row in sorted(r for r in rows.items() if r[0][0] == look):
            tasks[name].append(row)
        if tasks:
            text += f"**The {look} look**\n\n" + of_lists(tasks) + of_tasks(tasks) + "\n"
    return text


def of_lists(tasks: dict[str, list[dict]]) -> str:
    """A line for each list."""
    text = OF_LISTS
    for list_name in LISTS:
        names = [n for n in names_of(list_name) if n in tasks]
        rows = [r for n in names for r in tasks[n]]
        if not rows:
            continue
        won = [r for r in rows if r["won"]]
        steps = sum(r["steps"] for r in won) / max(1, len(won))
        cpu = sum(r["cpu"] for r in rows) / len(rows)
        text += (
            f"| {list_name} | {len(names)} of {len(names_of(list_name))} | {len(rows)} | {len(won)} "
            f"| {100 * len(won) / len(rows):.1f} % | {steps:.0f} | {cpu:.1f} "
            f"| {100 * TARGETS[list_name]:.0f} % |\n"
        )
    return text


def of_tasks(tasks: dict[str, list[dict]]) -> str:
    """A line for each task."""
    text = OF_TASKS
    for name, official in officials().items():
        rows = tasks.get(name, [])
        if not rows:
            continue
        won = [r for r in rows if r["won"]]
        steps = f"{sum(r['steps'] for r in won) / len(won):.0f}" if won else ""
        left = sorted({f"`{x}`" for r in rows if not r["won"] for x in r["left"]})
        text += (
            f"| {name} | {len(won)}/{len(rows)} | {steps} | {', '.join(left)} "
            f"| {official.instruction} |\n"
        )
    return text


def main() -> None:
    """Play and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--look", choices=LOOKS, default="primitive")
    parser.add_argument("--states", type=int, default=50, help="the first so many of the 50")
    parser.add_argument("--lists", default=",".join(LISTS), help="lists or tasks, with commas")
    parser.add_argument("--horizon", type=int, default=600)
    parser.add_argument("--log", type=Path, default=LOG)
    parser.add_argument("--workers", type=int, default=1, help="processes, a task each")
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args()
    names = [
        n for part in given.lists.split(",") for n in (names_of(part) if part in LISTS else (part,))
    ]
    if not given.page:
        play(names, given.look, given.states, given.horizon, given.log, given.workers)
    # What was written by hand below the tables stays.
    _, mark, notes = (PAGE.read_text() if PAGE.exists() else "").partition("\n## ")
    PAGE.write_text(page(given.log) + mark + notes)


if __name__ == "__main__":
    main()
