"""Which of a folder's tasks the scripted experts solve."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from perdure.pools import worker_pool
from perdure.suites.libero import bddl
from perdure.suites.libero.env import Libero
from perdure.suites.libero.experts import solve
from perdure.suites.libero.folders import ENDING
from perdure.suites.libero.tasks import HORIZONS, Settings

SOLVED = "_solved.jsonl"
"""What came of each task; the same call again goes on from there."""


def times_solved(path: Path, look: str, states: int) -> int:
    """From how many of the first initial states the experts solve the task of a file, within the steps
    of a long task."""
    settings = Settings(
        horizon=HORIZONS["10"], cameras=(), look=look, solves=1, folder=str(path.parent),
        initial_states="random",
    )  # fmt: skip
    env = Libero(bddl.read(path), settings)
    try:
        return sum(solve(env, seed=k).success for k in range(states))
    finally:
        env.close()


def solve_tasks(
    root: Path,
    digests: Mapping[str, str],
    look: str,
    states: int,
    workers: int,
    report: Callable[[int, int], None] | None = None,
) -> dict[str, int]:
    """For each task of a folder, given with the digest of its file: from how many of ``states`` initial
    states it is solved."""
    notes = root / SOLVED
    found: dict[str, int] = {}
    asked = {name: [digest, look, states] for name, digest in digests.items()}
    for line in notes.read_text("utf-8").splitlines() if notes.is_file() else ():
        try:
            name, *what, times = json.loads(line)
        except ValueError:
            break  # The last line of a call that was killed.
        if asked.get(name) == what:
            found[name] = times
    missing = [name for name in digests if name not in found]

    def note(name: str, times: int) -> None:
        found[name] = times
        with notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps([name, *asked[name], times]) + "\n")
        if report:
            report(len(found), len(digests))

    if report:
        report(len(found), len(digests))
    if workers < 2 or len(missing) < 2:
        for name in missing:
            note(name, times_solved(root / f"{name}{ENDING}", look, states))
    else:
        with worker_pool(workers) as pool:
            begun = [
                (n, pool.submit(times_solved, root / f"{n}{ENDING}", look, states)) for n in missing
            ]
            for name, future in begun:
                note(name, future.result())
    return {name: found[name] for name in digests}


def share(solved: Mapping[str, int], states: int) -> str:
    """What experts solve, in words, and which tasks they never do."""
    times, of = sum(solved.values()), states * len(solved)
    never = [name for name, k in solved.items() if not k]
    text = f"experts solve {times / of:.0%} of {of} episodes"
    return text + (f"; never {_listed(never)}" if never else "")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
