"""Episodes a minute of a LIBERO evaluation with a trivial policy, beside a plain client loop on the published stack.
Writes results/evaluation.md.

The policy is asked in the evaluation's own process, and over a socket of this machine, by openpi's protocol. Time is
CPU time, since the machine may be shared: of the evaluation, and over a socket of the server too. All of an
evaluation counts from its plan to its last row, construction, resets, commits and what is played again to see that it
repeats included; imports do not. Of the published stack construction does not count either.
`--quick` plays one task in shorter episodes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# libero.py and others beside this file have packages' names.
sys.path = [p for p in sys.path if Path(p).resolve() != HERE]
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MUJOCO_GL", "egl")

SUITE = "libero_spatial"
TASKS = ("spatial-0", "spatial-5")
HORIZON = 220
ENVS = 8
SIDES = {
    "official": {"look": "official"},
    "official, fast": {"look": "official", "rendering": "fast", "solves": 1},
    "primitive": {"look": "primitive"},
    "primitive, fast": {"look": "primitive", "rendering": "fast", "solves": 1},
}
ROUNDS = 3


def evaluated(words: str, task: str, episodes: int, envs: int, horizon: int, address: str) -> dict:
    """Play an evaluation here; what it took."""
    import perdure.suites.libero.camera  # noqa: F401 (what importing costs is no part of it)
    from perdure.run.evaluation import evaluation_run, evaluation_spec, policy_spec
    from perdure.run.experiment import execute
    from perdure.run.plan import make_plan
    from perdure.store.run import Run

    changes = [f"{k}={v}" for k, v in SIDES[words].items()]
    curriculum = evaluation_spec(
        f"libero/{task}", "openpi", episodes, [*changes, f"horizon={horizon}"]
    )
    policy = policy_spec(f"p={address or f'{HERE}/policies/still.py:Still'}")
    out = tempfile.mkdtemp(prefix="evaluation-bench-")
    try:
        spec = evaluation_run([policy], curriculum, out=f"{out}/run", envs=envs, executor="serial")
        start, wall = time.process_time(), time.perf_counter()
        execute(make_plan(spec))
        cpu, wall = time.process_time() - start, time.perf_counter() - wall
        rows = Run(f"{out}/run").rows().to_pylist()
    finally:
        shutil.rmtree(out)
    assert [r["steps"] for r in rows] == [horizon] * episodes, rows
    return {"cpu": cpu, "wall": wall, "episodes": episodes}


def told(command: list[str]) -> dict:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr[-2000:]}")
    found: dict = json.loads(done.stdout.splitlines()[-1])
    print(" ".join(command[1:]), found, file=sys.stderr, flush=True)
    return found


def ours(words: str, task: str, episodes: int, envs: int, horizon: int, socket: bool) -> dict:
    """One evaluation in a process of its own, with a server in another if it goes over a socket."""
    command = [
        sys.executable,
        __file__,
        "--side",
        words,
        task,
        *map(str, (episodes, envs, horizon)),
    ]
    if not socket:
        return told([*command, ""])
    server = subprocess.Popen(
        [sys.executable, str(HERE / "policies/still.py")], stdout=subprocess.PIPE, text=True
    )
    with server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        try:
            found = told([*command, f"ws://127.0.0.1:{port}"])
        finally:
            server.terminate()
        found["server"] = float(server.stdout.readline())
    return {**found, "cpu": found["cpu"] + found["server"]}


def upstream(task: str, episodes: int, horizon: int) -> dict:
    rows = (HERE.parent / "src/perdure/suites/libero/tasks.txt").read_text().splitlines()
    folder, file = next(r.split()[1:] for r in rows if r.split()[0] == task)
    python = HERE.parent / ".venv-libero/bin/python"
    command = [str(python), str(HERE / "libero_side.py"), "--episodes", folder, file]
    found = told([*command, str(episodes), str(horizon)])
    assert not found["solved"]
    return found


def rate(parts: list[dict]) -> float:
    """Episodes a CPU minute."""
    return 60 * sum(p["episodes"] for p in parts) / sum(p["cpu"] for p in parts)


def main(tasks: tuple[str, ...], sides: tuple[str, ...], horizon: int, rounds: int) -> int:
    """Measure everything and write the page."""
    theirs = rate([upstream(t, 1, horizon) for t in tasks])
    # Upstream's pixels are slow to draw on any side: one episode tells.
    exact = rate([ours("official", t, 1, 1, horizon, False) for t in tasks])
    here: dict[str, float] = {}
    far: dict[str, float] = {}
    costs: dict[str, float] = {}
    for words in sides:
        inside, across = [], []
        for k in range(rounds):
            task = tasks[k % len(tasks)]
            inside.append(ours(words, task, ENVS, ENVS, horizon, False))
            across.append(ours(words, task, ENVS, ENVS, horizon, True))
        here[words], far[words] = rate(inside), rate(across)
        costs[words] = here[words] / far[words] - 1
    lines = [
        "# A LIBERO evaluation beside a plain client loop on the published stack",
        "",
        f"`make bench` writes this page (this one: {' '.join(['benchmarks/evaluation.py', *sys.argv[1:]])}). Tasks "
        f"{', '.join(tasks)} of {SUITE} by openpi's protocol:",
        f"{horizon} steps after ten to settle, two pictures of 256 pixels, given as 224, a chunk of actions every fifth step. "
        "The policy stays where it is,",
        "so that all episodes have the same length. Episodes a CPU minute on one core: construction (not upstream's), resets, "
        "pictures and commits included,",
        "over the socket the server too. The published stack is hf-libero 0.1.4 on robosuite 1.4.0, one environment in a "
        "loop as openpi's client has it.",
        "*fast* is `rendering=fast` and `solves=1`. Here pictures are drawn where the policy looks, every fifth step; there "
        "in every step.",
        "",
        "| | environments | in-process | × upstream | over a socket | the socket costs |",
        "|---|---:|---:|---:|---:|---:|",
        f"| upstream | 1 | {theirs:.2f} | 1.0 | | |",
        f"| official | 1 | {exact:.2f} | {exact / theirs:.1f} | | |",
        *(
            f"| {w} | {ENVS} | {here[w]:.2f} | {here[w] / theirs:.1f} | {far[w]:.2f} | {100 * costs[w]:.1f} % |"
            for w in here
        ),
    ]
    reached = [
        (f"episodes in-process, {w}, × upstream", here[w] / theirs, "≥ 8", here[w] / theirs >= 8)
        for w in here
    ]
    reached += [
        (
            f"cost of the socket, {w}, % at {ENVS} environments",
            100 * costs[w],
            "< 10",
            costs[w] < 0.1,
        )
        for w in here
    ]
    sys.path.append(str(HERE))
    from publish import publish

    return publish("evaluation", lines, reached)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        words, task, *numbers, address = sys.argv[2:]
        print(json.dumps(evaluated(words, task, *map(int, numbers), address)))
    else:
        quick = "--quick" in sys.argv
        sides = tuple(SIDES)[1:]
        sys.exit(
            main(*((TASKS[:1], sides[:2], 40, 1) if quick else (TASKS, sides, HORIZON, ROUNDS)))
        )
