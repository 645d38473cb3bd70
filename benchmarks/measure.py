"""CPU and memory of measuring, beside l2metrics 3.1.0, from process start to printed table.

Scenario: 4 tasks, 3 lifetimes, 12 learning blocks each, 13 evaluation blocks × 200, one expert a
task, 1 million learning experiences in L2Logger TSV; the same rows as a Perdure run; and ten times
as many. l2metrics has its own environment (scripts/l2m_env.sh); its storing of the experts is left
out of its figure.

    make bench            writes benchmarks/results/measure.md
"""

from __future__ import annotations

import compileall
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.log import LifetimeLog
from perdure.store.rows import FORMAT, Row

HERE = Path(__file__).parent
TASKS = ("reach_a", "push_a", "open_a", "lift_a")
LIFETIMES, LESSONS, EVALUATIONS, EXPERIENCES = 3, 12, 13, 200
SEGMENT = 10_000
ROUNDS = 4
BIG = "perdure, {}, reference, 10 million rows"
START = np.datetime64("2026-01-01T00:00:00", "us")


def blocks(rng, per_block):
    """(block, learning, task index, values) of one lifetime."""
    skill = np.zeros(len(TASKS))
    number = 0
    for lesson in range(LESSONS + 1):
        each = EXPERIENCES // len(TASKS)
        for t in range(len(TASKS)):
            yield number, False, t, skill[t] + 0.1 * rng.standard_normal(each)
        number += 1
        if lesson < LESSONS:
            t = lesson % len(TASKS)
            rise = skill[t] + (1 - skill[t]) * (1 - np.exp(-np.linspace(0, 3, per_block)))
            yield number, True, t, rise + 0.1 * rng.standard_normal(per_block)
            skill *= 0.9
            skill[t] = rise[-1]
            number += 1


def expert(rng, n):
    yield 0, True, None, 1 - np.exp(-np.linspace(0, 6, n)) + 0.1 * rng.standard_normal(n)


def write_log(path, parts, tasks):
    """A lifetime as L2Logger TSV."""
    path.mkdir(parents=True)
    info = {"metrics_columns": ["reward"], "log_format_version": "1.1"}
    (path / "logger_info.json").write_text(json.dumps(info))
    scenario = {"complexity": "1-low", "difficulty": "2-medium", "scenario_type": "custom"}
    (path / "scenario_info.json").write_text(json.dumps(scenario))
    exp, files = 0, {}
    for block, learning, t, values in parts:
        n = len(values)
        kind = "train" if learning else "test"
        stamps = pa.array(START + np.arange(exp, exp + n).astype("timedelta64[us]") * 997)
        table = pa.table(
            {
                "block_num": np.full(n, block), "exp_num": np.arange(exp, exp + n),
                "worker_id": ["worker-default"] * n, "block_type": [kind] * n,
                "block_subtype": ["wake"] * n, "task_name": [tasks[t or 0]] * n,
                "task_params": ["{}"] * n, "exp_status": ["complete"] * n,
                "timestamp": pc.strftime(stamps, "%Y%m%dT%H%M%S"), "reward": values,
            }
        )  # fmt: skip
        files.setdefault((block, kind), []).append(table)
        exp += n
    for (block, kind), tables in files.items():
        folder = path / "worker-default" / f"{block}-{kind}"
        folder.mkdir(parents=True)
        options = csv.WriteOptions(delimiter="\t", quoting_style="none", include_header=False)
        with (folder / "data-log.tsv").open("wb") as f:
            f.write("\t".join(tables[0].column_names).encode() + b"\n")
            csv.write_csv(pa.concat_tables(tables), f, options)


def write_lifetime(path, parts, tasks, agent, seed, expert=""):
    """The same lifetime as Perdure writes it."""
    with LifetimeLog(path, agent, seed, expert) as log:
        exp, rows = 0, []
        for block, learning, t, values in parts:
            kind = "learn" if learning else "eval"
            for value in values.tolist():
                rows.append(
                    Row(exp, block, True, kind, learning, 0, tasks[t or 0], "", "", 0, exp, exp, exp, exp,
                        1, exp, "complete", True, False, value, None, None, None, None, None)
                )  # fmt: skip
                exp += 1
                if len(rows) == SEGMENT:
                    log.commit(rows, None, {})
                    rows = []
        log.commit(rows, None, {}, done=True)
    described = {
        "format": FORMAT,
        "agent": agent,
        "seed": seed,
        "expert": expert,
        "fingerprint": "b",
    }
    LifetimeFolder(path).write_description(described)


def make(root, rows):
    """The scenario with about ``rows`` learning experiences, as logs and as a run."""
    per_block = rows // (LIFETIMES * LESSONS)
    for i in range(LIFETIMES):
        write_log(
            root / "ll_logs" / f"life-{i}", blocks(np.random.default_rng(i), per_block), TASKS
        )
    for k, task in enumerate(TASKS):
        parts = expert(np.random.default_rng(100 + k), per_block * LESSONS // len(TASKS))
        write_log(root / "ste_logs" / f"expert-{k}", parts, [task])


def make_run(root, rows):
    per_block = rows // (LIFETIMES * LESSONS)
    run = root / "run"
    RunFolder(run).write_spec({"curriculum": "bench"})
    for i in range(LIFETIMES):
        parts = blocks(np.random.default_rng(i), per_block)
        write_lifetime(run / "agent" / str(i), parts, TASKS, "agent", i)
    for k, task in enumerate(TASKS):
        parts = expert(np.random.default_rng(100 + k), per_block * LESSONS // len(TASKS))
        folder = run / "agent/experts" / task / "0"
        write_lifetime(folder, parts, [task], "agent", 0, task)


def cost(command, env=None):
    """CPU seconds and megabytes of a command; it must say that it worked."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, cwd=HERE.parent
    )
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command} failed:\n{errors.decode()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(argv):
    python = argv[0] if argv else str(HERE.parent / ".venv-l2m/bin/python")
    measure = [str(Path(sys.executable).parent / "perdure"), "measure"]
    # As pip does when it installs; an editable install leaves it to the first run.
    compileall.compile_dir(HERE.parent / "src", quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "1M", Path(folder) / "10M"
        env = {**os.environ, "L2DATA": str(small / "l2data")}
        theirs = [python, "-m", "l2metrics"]
        print("writing 1 million rows …", flush=True)
        make(small, 1_000_000)
        make_run(small, 1_000_000)
        cost([*theirs, "-l", str(small / "ste_logs"), "-R", "-s", "a"], env)
        out = ["-O", str(small / "out"), "--no-plot", "-p", "reward"]
        reference = ["--preset", "reference"]
        logs = [*measure, str(small / "ll_logs"), "--ste", str(small / "ste_logs")]
        run = [*measure, str(small / "run")]
        commands = {
            "l2metrics 3.1.0, TSV": [*theirs, "-l", str(small / "ll_logs"), "-R", *out],
            "perdure, TSV, reference": [*logs, *reference],
            "perdure, TSV, paper": logs,
            "perdure, Parquet, reference": [*run, *reference],
            "perdure, Parquet, paper": run,
        }
        found = {name: [] for name in commands}
        for k in range(ROUNDS):
            print(f"round {k + 1} of {ROUNDS} …", flush=True)
            for name, command in commands.items():
                repeats = 1 if command[0] == python else 3
                found[name] += [cost(command, env) for _ in range(repeats)]
        print("writing 10 million rows …", flush=True)
        make(large, 10_000_000)
        make_run(large, 10_000_000)
        logs = [*measure, str(large / "ll_logs"), "--ste", str(large / "ste_logs"), *reference]
        found[BIG.format("TSV")] = [cost(logs) for _ in range(2)]
        run = [*measure, str(large / "run"), *reference]
        found[BIG.format("Parquet")] = [cost(run) for _ in range(2)]
    results = {
        name: (min(cpu for cpu, _ in costs), max(memory for _, memory in costs))
        for name, costs in found.items()
    }
    tsv, big = results["perdure, TSV, reference"], results[BIG.format("TSV")]
    base_cpu, base_memory = results["l2metrics 3.1.0, TSV"]
    lines = [
        f"# Measuring 1 million learning experiences ({platform.machine()}, Python "
        f"{platform.python_version()})",
        "",
        "`make bench`; CPU seconds (user + system) from process start to printed table, the best of",
        f"{ROUNDS} interleaved rounds (10 million rows: of 2), and peak memory.",
        "",
        "| what | CPU s | MB | CPU ÷ l2metrics | memory ÷ l2metrics |",
        "|---|---|---|---|---|",
    ]
    for name, (cpu, memory) in results.items():
        ratios = f"1/{base_cpu / cpu:.1f} | {memory / base_memory:.2f}"
        lines.append(f"| {name} | {cpu:.2f} | {memory:.0f} | {ratios} |")
    parquet = results["perdure, Parquet, reference"][0]
    lines += [
        "",
        f"- TSV against l2metrics: 1/{base_cpu / tsv[0]:.1f} of its CPU (asked: 1/20), "
        f"{tsv[1] / base_memory:.2f} of its memory (asked: 0.33)",
        f"- Parquet against TSV: {tsv[0] / parquet:.2f} × as fast with 1 million rows, "
        f"{big[0] / results[BIG.format('Parquet')][0]:.2f} × with 10 million (asked: 2)",
        f"- 10 million rows against 1 million: {big[0] / tsv[0]:.1f} × the CPU (asked: under 12), "
        f"{big[1]:.0f} MB (asked: under 2,000)",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    (HERE / "results/measure.md").write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
