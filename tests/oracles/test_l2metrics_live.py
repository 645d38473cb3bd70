"""The real l2logger and l2metrics, run on what we write and on random logs.

They live in an environment of their own: ``scripts/l2m_env.sh``.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from l2m_tools import count, differences, experts_in, options_of

import perdure
from perdure.errors import PerdureError
from perdure.measure.l2m import reference, regimes
from perdure.measure.l2m.smoothing import smooth_reference
from perdure.store.history import read_experts, read_run
from perdure.store.l2logger.read import find_logs, read_log
from perdure.store.l2logger.view import as_log
from perdure.store.l2logger.write import write_run

HERE = Path(__file__).parent
PYTHON = Path(
    os.environ.get("PERDURE_L2M_PYTHON") or HERE.parents[1] / ".venv-l2m" / "bin" / "python"
)
pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason=f"no {PYTHON}: make it with scripts/l2m_env.sh"
)
BOTH = ["-m", "both", "-t", "both"]


def real(folder, groups, validate=()):
    """What the real packages say of logs: (verdict of each folder, runs of each group)."""
    folder.mkdir()
    job, result = folder / "job.json", folder / "result.json"
    plain = [{k: _text(v) for k, v in g.items()} for g in groups]
    job.write_text(json.dumps({"validate": [str(f) for f in validate], "groups": plain}))
    done = subprocess.run(
        [PYTHON, HERE / "l2m_driver.py", job, result], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(result.read_text())
    return found["validated"], found["groups"]


def _text(value):
    if isinstance(value, list):
        return [_text(v) for v in value]
    return str(value) if isinstance(value, Path) else value


# Comparing -----------------------------------------------------------------------------------


def values(history, options):
    """Ours, as l2metrics would write it."""
    found = reference.analyse(history, options)
    return {"metrics": in_order(found.metrics, options), "regimes": found.regimes()}


def in_order(metrics, options):
    """Where variants are pooled, l2metrics lists experts as the file system lists its files: there,
    take each list in order of size."""
    if options.variant_mode != "agnostic":
        return metrics
    tasks = {}
    for task, entry in metrics["task_metrics"].items():
        tasks[task] = dict(entry)
        for key in entry:
            if key.startswith(("ste_", "se_", "sample_")) and key.endswith("_vals"):
                tasks[task][key] = sorted(entry[key], key=lambda v: (v is None or v != v, v or 0))
    return {**metrics, "task_metrics": tasks}


def undecided(history, options, ours, monkeypatch):
    """Places of values that rounding decides, so that they differ between machines: which of several
    equally high points of a smoothed curve counts, or whatever changes when every value is moved
    in its twelfth digit, as in a task whose values are all the same."""
    out = set()
    for which in (0, -1):
        with monkeypatch.context() as patched:
            for module in (reference, regimes):
                patched.setattr(module, "saturated", lambda curve, w=which: highest(curve, w))
            out |= {where for where, _ in differences(values(history, options), ours)}
    for seed in range(2):
        moved = shaken(history, np.random.default_rng(seed))
        out |= {where for where, _ in differences(values(moved, options), ours)}
    return out


def highest(curve, which):
    smoothed = smooth_reference(curve)
    top = float(smoothed.max())
    return top, int(np.flatnonzero(smoothed >= top - 1e-9 * max(1.0, abs(top)))[which])


def shaken(history, rng):
    columns = {
        m: pa.chunked_array([history.values(m) * (1 + 1e-12 * rng.standard_normal(len(history)))])
        for m in history.columns
    }
    experts = {t: tuple(shaken(h, rng) for h in runs) for t, runs in history.experts.items()}
    return replace(history, columns=columns, experts=experts)


@dataclass
class Tally:
    values: int = 0
    undecided: int = 0
    failures: int = 0
    wrong: list = field(default_factory=list)

    def compare(self, history, run, monkeypatch, what, folder=None):
        options = options_of(run["options"], folder)
        try:
            ours = values(history, options)
        except PerdureError as e:
            self.failures += 1
            if not run["error"]:
                self.wrong.append((what, f"ours fails: {e}"))
            return
        if run["error"]:
            self.wrong.append((what, f"theirs fails: {run['error']}"))
            return
        theirs = {"metrics": in_order(run["metrics"], options), "regimes": run["regimes"]}
        shaky = undecided(history, options, plain(ours), monkeypatch)
        self.values += count(ours)
        self.undecided += len(shaky)
        found = differences(ours, theirs)
        self.wrong += [(what, where, said) for where, said in found if where not in shaky]


def plain(value):
    """NaN as None, as a comparison expects it of the other side."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


# A real run ----------------------------------------------------------------------------------

SETTINGS = [
    ["-p", "reward"],
    ["-p", "reward", *BOTH, "-x"],
    ["-p", "reward", *BOTH, "-g", "none", "-n", "none"],
    ["-p", "reward", *BOTH, "-v", "time", "-a", "median", "-n", "run"],
    ["-p", "reward", *BOTH, "-r", "agnostic", "-g", "hamming", "-w", "5", "-G"],
    ["-p", "success", *BOTH],
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    root = tmp_path_factory.mktemp("exported")
    run = perdure.experiment(
        "toy/compass,steps=900,episodes=8", ["q", "random"], lifetimes=2, out=str(root / "run"),
        executor="serial", experts=True,
    )  # fmt: skip
    logs = write_run(run, root / "out")
    groups = [
        {
            "experts": root / "out" / "ste_logs" / agent,
            "logs": [root / "out" / "ll_logs" / f"{agent}-{seed}" for seed in (0, 1)],
            "options": SETTINGS,
        }
        for agent in ("q", "random")
    ]
    verdicts, found = real(root / "real", groups, validate=logs)
    return run, logs, groups, verdicts, found


def test_the_real_validator_takes_every_log(exported):
    _, logs, _, verdicts, _ = exported
    assert len(logs) == 2 * 2 * (1 + 3)
    assert verdicts == {str(log): "passed" for log in logs}


def test_the_real_metrics_are_ours_read_back_and_direct(exported, monkeypatch):
    run, _, groups, _, found = exported
    experts = read_experts(run.lifetimes())[0]
    direct = {h.agent + f"-{h.seed}": replace(h, experts=experts[h.agent]) for h in read_run(run)}
    tally = Tally()
    for group, runs in zip(groups, found, strict=True):
        read_back = experts_in(group["experts"])
        assert len(read_back) == 3 and all(len(r) == 2 for r in read_back.values())
        for i, result in enumerate(runs):
            log = group["logs"][i // len(SETTINGS)]
            tally.compare(replace(read_log(log), experts=read_back), result, monkeypatch, log.name)
            tally.compare(as_log(direct[log.name]), result, monkeypatch, f"{log.name} direct")
    assert not tally.wrong, tally.wrong[:20]
    assert not tally.failures and tally.values > 10_000
    assert tally.undecided < 0.1 * tally.values, tally  # Returns of this toy repeat a lot.


# Random logs ---------------------------------------------------------------------------------


class Scenario:
    """A random lifetime and its experts, written as logs."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 5))
        stems = rng.choice(["nav", "Pick", "push"], n)
        self.tasks = [f"{stem}{i}_{rng.choice(['a', 'b', '1'])}" for i, stem in enumerate(stems)]
        if seed % 3 == 0:
            self.tasks = [f"fam_{'abcd'[i]}" for i in range(n)]
        self.sleepy = seed % 5 == 1
        self.repeats = seed % 4 == 2
        """Whether experience numbers repeat."""
        self.workers = ["worker-default"] if self.repeats or seed % 3 else ["w.1", "w-2"]
        self.scale = {t: rng.choice([1.0, 100.0, -3.0]) for t in self.tasks}
        self.offset = {t: rng.choice([0.0, -1.0, 5.0]) for t in self.tasks}
        self.rate = rng.uniform(0.01, 0.1)

    def write(self, root: Path) -> None:
        rng = self.rng
        self._begin()
        self._test()
        for _ in range(rng.integers(1, 4)):
            for task in rng.permutation(self.tasks):
                parallel = rng.permutation(self.tasks)[:2] if rng.random() < 0.15 else [task]
                for t in parallel:
                    sub = "sleep" if self.sleepy and rng.random() < 0.3 else "wake"
                    self._rows("train", t, sub, int(rng.integers(2, 120)))
                self._next_block()
                self._test()
        write_log(root / "ll" / "life", self.rows)
        ranges = {t: {"min": -2.0 - i, "max": 100.0 + i} for i, t in enumerate(self.tasks)}
        (root / "range.json").write_text(json.dumps(ranges))
        for i, task in enumerate(self.tasks):
            for k in range(rng.choice([0, 1, 1, 2])):
                self._begin()
                if rng.random() < 0.3:
                    self._rows("test", task, "wake", 5)
                    self._next_block()
                self._rows("train", task, "wake", int(rng.integers(20, 200)))
                write_log(root / "ste" / f"ste_{i}_{k}", self.rows)

    def _begin(self) -> None:
        self.rows, self.block, self.exp = [], 0, 0
        self.skill = dict.fromkeys(self.tasks, 0.0)

    def _next_block(self) -> None:
        self.block += 1
        self.exp += 1

    def _test(self) -> None:
        if self.rng.random() < 0.15:
            return
        some = list(self.rng.permutation(self.tasks)[: self.rng.integers(1, 5)])
        tasks = self.tasks if self.rng.random() < 0.8 else some
        for sub in ("wake", "sleep") if self.sleepy else ("wake",):
            for task in tasks:
                self._rows("test", task, sub, int(self.rng.integers(1, 20)))
        self._next_block()

    def _rows(self, kind: str, task: str, sub: str, n: int) -> None:
        rng = self.rng
        for _ in range(n):
            if kind == "train":
                for t in self.tasks:
                    if t == task:
                        self.skill[t] += self.rate * (1 - self.skill[t])
                    else:
                        self.skill[t] *= 1 - self.rate * rng.choice([0, 0.1, -0.02])
            value = self.scale[task] * (self.skill[task] + 0.05 * rng.standard_normal())
            # Few digits: l2metrics' reader rounds long numbers in its own way.
            value = round(self.offset[task] + value, 6)
            if rng.random() < 0.02:
                value = float("nan")
            status = "incomplete" if rng.random() < 0.03 else "complete"
            worker = rng.choice(self.workers)
            self.rows.append((worker, self.block, kind, sub, task, self.exp, status, value))
            self.exp += 0 if self.repeats and rng.random() < 0.5 else 1


def write_log(folder: Path, rows: list) -> None:
    """A log, written by hand so that our writer has no part in it."""
    folder.mkdir(parents=True)
    info = {"complexity": "1-low", "difficulty": "2-medium", "scenario_type": "custom"}
    (folder / "scenario_info.json").write_text(json.dumps(info))
    (folder / "logger_info.json").write_text(json.dumps({"metrics_columns": ["reward"]}))
    files: dict[Path, list[str]] = {}
    for worker, block, kind, sub, task, exp, status, value in rows:
        time = f"20260101T{exp // 3600:02d}{exp // 60 % 60:02d}{exp % 60:02d}.{exp:06d}"
        line = (block, exp, worker, kind, sub, task, "{}", status, time, value)
        place = folder / worker / f"{block}-{kind}" / "data-log.tsv"
        files.setdefault(place, []).append("\t".join(map(str, line)))
    header = (
        "block_num\texp_num\tworker_id\tblock_type\tblock_subtype\ttask_name\ttask_params\t"
        "exp_status\ttimestamp\treward"
    )
    for place, lines in files.items():
        place.parent.mkdir(parents=True)
        place.write_text("\n".join([header, *lines]) + "\n")


OPTIONS = [
    [],
    [*BOTH, "-x"],
    [*BOTH, "-g", "none", "-n", "none"],
    [*BOTH, "-r", "agnostic"],
    [*BOTH, "-v", "time", "-g", "hamming", "-w", "7"],
    ["-a", "median", "-n", "run", "-G", "-g", "blackman"],
    [*BOTH, "-w", "20", "-G", "-x"],
    [*BOTH, "-d", "range.json"],
    [*BOTH, "-d", "range.json", "-n", "run", "-x", "-r", "agnostic"],
]


SCENARIOS = range(5)


def test_random_logs_give_the_same_values(tmp_path, monkeypatch):
    groups = []
    for seed in SCENARIOS:
        root = tmp_path / f"f{seed}"
        Scenario(seed).write(root)
        groups.append(group_of(root, OPTIONS))
    logs = [log for seed in SCENARIOS for log in find_logs(tmp_path / f"f{seed}")]
    verdicts, found = real(tmp_path / "real", groups, validate=logs)
    assert set(verdicts.values()) == {"passed"}
    tally = tallied(groups, found, monkeypatch)
    assert not tally.wrong, (len(tally.wrong), tally.wrong[:20])
    assert tally.values > 1000 * len(SCENARIOS)
    assert tally.undecided < 0.05 * tally.values, tally


def group_of(root, options):
    experts = root / "ste" if (root / "ste").exists() else None
    given = [[str(root / o) if o == "range.json" else o for o in some] for some in options]
    return {"experts": experts, "logs": [root / "ll" / "life"], "options": given}


def tallied(groups, found, monkeypatch):
    tally = Tally()
    for group, runs in zip(groups, found, strict=True):
        (log,) = group["logs"]
        experts = experts_in(group["experts"]) if group["experts"] else {}
        history = replace(read_log(log), experts=experts)
        for run in runs:
            tally.compare(history, run, monkeypatch, f"{log} {run['options']}", log.parents[1])
    return tally


# Corners -------------------------------------------------------------------------------------


def rising(task, n, block=0, start=0, kind="train"):
    """Rows of one task, rising and noisy."""
    noise = np.random.default_rng(start).standard_normal(n)
    return [
        ("w", block, kind, "wake", task, start + i, "complete", round(float(i / 10 + noise[i]), 4))
        for i in range(n)
    ]


def life(*tasks):
    rows, block = [], 0
    for learned in (None, *tasks, *tasks, *tasks):
        if learned:
            rows += rising(learned, 40, block, len(rows))
            block += 1
        for task in tasks:
            rows += rising(task, 4, block, len(rows), "test")
        block += 1
    return rows


def blank(task, start, n):
    return [("w", 0, "test", "wake", task, start + i, "complete", float("nan")) for i in range(n)]


def span(low, high):
    return {"min": float(low), "max": float(high)}


AB = {"A_1": span(-5, 20), "b_1": span(-3, 9)}
CORNERS = {
    "a range for a task that is not there": (
        life("a_1", "b_1"), [rising("a_1", 60)], {**AB, "z_1": span(-99, 99)},
        [["-d", "range.json"], ["-d", "range.json", "-n", "run"], ["-d", "range.json", "-x"]],
    ),
    "a range missing, where it is needed and where not": (
        life("a_1", "b_1"), [], {"a_1": span(-5, 20)},
        [["-d", "range.json"], ["-d", "range.json", "-n", "none"], ["-d", "range.json", "-x", "-n", "none"]],
    ),
    "no range at all in the file": (
        life("a_1", "b_1"), [], {}, [["-d", "range.json"], ["-d", "range.json", "-x", "-n", "none"]],
    ),
    "a task's name within another's": (
        life("nav_a", "navi_b"), [rising("nav_a", 60)], {"nav_a": span(-5, 20), "navi_b": span(-30, 90)},
        [["-r", "agnostic"], ["-r", "agnostic", "-d", "range.json"]],
    ),
    "a task's name begins another's": (
        life("task1_a", "task10_a"), [rising(t, 60) for t in ("task1_a", "task10_a", "task10_b")], None,
        [BOTH, [*BOTH, "-r", "agnostic"]],
    ),
    "tasks without variants, experts with": (
        life("nav", "pick"), [rising(t, 60) for t in ("nav_a", "nav_b", "pick")], None,
        [[*BOTH, "-v", "time"], [*BOTH, "-n", "none", "-v", "time"]],
    ),
    "an expert with a test of nothing but NaN amid its learning": (
        life("a_1", "b_1"), [[*rising("a_1", 60), *blank("b_1", 60, 3), *rising("a_1", 30, start=63)]],
        None, [BOTH],
    ),
    "an expert that was tested on another task": (
        life("a_1", "b_1"), [[*rising("a_1", 60), *rising("c_1", 3, 1, 60, "test")]],
        {**AB, "c_1": span(0, 5)}, [["-d", "range.json"], ["-n", "none"], []],
    ),
    "two rows": (rising("a_1", 2), [rising("a_1", 2)], None, [BOTH, [*BOTH, "-n", "none"]]),
    "the same everywhere": (
        [("w", 0, "train", "wake", "a_1", i, "complete", 2.0) for i in range(20)], [], None,
        [["-n", "run"], []],
    ),
}  # fmt: skip


def test_corners(tmp_path, monkeypatch):
    groups = []
    for i, (rows, experts, ranges, options) in enumerate(CORNERS.values()):
        root = tmp_path / f"corner{i}"
        write_log(root / "ll" / "life", rows)
        for k, learned in enumerate(experts):
            write_log(root / "ste" / f"ste{k}", learned)
        (root / "range.json").write_text(json.dumps(ranges))
        groups.append(group_of(root, options))
    _, found = real(tmp_path / "real", groups)
    wrong, failures = {}, 0
    for name, group, runs in zip(CORNERS, groups, found, strict=True):
        tally = tallied([group], [runs], monkeypatch)
        failures += tally.failures
        if tally.wrong:
            wrong[name] = tally.wrong[:5]
    assert not wrong
    assert failures == 5  # Theirs too: a range that is needed, a foreign task, all the same.
