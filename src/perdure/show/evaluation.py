"""What an evaluation found: a table of success by task, paired tests, and LeRobot's ``eval_info.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan
from typing import Any

from perdure.errors import MeasureError
from perdure.measure.compare import holm
from perdure.measure.paired import (
    Episodes,
    PairedTest,
    mcnemar,
    overall,
    success_by_task,
)
from perdure.measure.stats import Estimate
from perdure.names import join_task_id, split_task_id
from perdure.protocol import EvalProtocol
from perdure.show.sheet import Sheet
from perdure.store.rows import Row
from perdure.store.run import Run

WIDE = 0.1
"""Half of an interval that is too wide to tell policies apart by."""


@dataclass(frozen=True)
class EvaluatedPolicy:
    """All episodes of a policy that were played to their end."""

    name: str
    rows: Sequence[Row]
    videos: Mapping[str, Sequence[str]]
    """By task."""
    measure: str = "success"
    seconds: float = nan
    """How long it was worked on, by the clock; of several lifetimes, together."""

    @property
    def episodes(self) -> Episodes:
        """Success by task, number and seed."""
        out: dict[tuple[str, int, int], float] = {}
        for row in self.rows:
            value = getattr(row, self.measure)
            if value is not None and row.status == "complete":
                out[(_task(row), row.episode, row.seed or 0)] = value
        return out


def evaluated(run: Run) -> list[EvaluatedPolicy]:
    """The policies of an evaluation's folder, with what of them has been played."""
    protocol = protocol_of(run)
    measure = "success_end" if protocol and protocol.get("success") == "end" else "success"
    found: dict[str, tuple[list[Row], dict[str, list[str]]]] = {}
    worked: dict[str, float] = {}
    for info in run.lifetimes():
        if info.expert or info.status == "damaged":
            continue
        rows, videos = found.setdefault(info.agent, ([], {}))
        rows += [row for row in info.read().rows() if not row.learning]
        folder = run.folder.lifetime(info.id)
        spans = folder.worked(folder.last_sign())
        worked[info.agent] = worked.get(info.agent, 0.0) + sum(end - start for start, end in spans)
        for video in (folder.videos() or {}).get("videos", ()):
            path, mine = folder.video_path(video["file"]), videos.setdefault(video["task"], [])
            mine += [] if path in mine else [path]  # One video may be the first and the best.
    return [
        EvaluatedPolicy(name, rows, videos, measure, worked[name])
        for name, (rows, videos) in found.items()
        if rows
    ]


def protocol_of(run: Run) -> EvalProtocol | None:
    """The protocol by which a run evaluates, where it has a name."""
    for info in run.lifetimes():
        told = info.description.get("curriculum") if info.status != "damaged" else None
        if isinstance(told, Mapping) and "protocol" in told:
            return EvalProtocol.from_json(told["protocol"])
    return None


def success_table(policies: Sequence[EvaluatedPolicy], title: str) -> Sheet:
    """Success of each policy at each task, and over all."""
    each = {p.name: success_by_task(p.episodes) for p in policies}
    tasks = list(dict.fromkeys(t for by_task in each.values() for t in by_task))
    sheet = Sheet(title, ["task", *each], words=["task"])
    for task in tasks:
        sheet.rows.append((task, *(_cell(by.get(task)) for by in each.values())))
    if len(tasks) > 1:
        sheet.rows.append(())
        sheet.rows.append(("mean of tasks", *(_cell(overall(by)) for by in each.values())))
    return sheet


def paired_table(policies: Sequence[EvaluatedPolicy]) -> tuple[Sheet, list[str]]:
    """Every two policies on the episodes that both played, p corrected by Holm, and what remains open."""
    tests: list[tuple[str, str, PairedTest]] = []
    remarks = []
    for a, b in combinations(policies, 2):
        try:
            tests.append((a.name, b.name, mcnemar(a.episodes, b.episodes)))
        except MeasureError as e:
            remarks.append(f"{a.name} and {b.name}: {e}")
    head = ["policies", "episodes", "difference", "only first", "only second", "p (McNemar, Holm)"]
    sheet = Sheet("the same episodes, policy by policy", head, words=["policies"])
    corrected = holm([t.p for _, _, t in tests])
    for (one, other, t), p in zip(tests, corrected, strict=True):
        cells = (str(t.n), f"{100 * t.difference:+.1f} points", str(t.first), str(t.second))
        sheet.rows.append((f"{one} – {other}", *cells, f"{p:.3g}"))
        if t.doubt:
            remarks.append(f"{one} and {other}: {t.doubt}")
    return sheet, remarks


def doubts(policies: Sequence[EvaluatedPolicy]) -> list[str]:
    """Where there are too few episodes to tell much."""
    out = []
    for policy in policies:
        by_task = success_by_task(policy.episodes)
        if not by_task:
            continue
        found = overall(by_task)
        half = (found.high - found.low) / 2
        if isnan(half) or half > WIDE:
            wide = (
                "has no interval" if isnan(half) else f"is known to ±{100 * half:.0f} points only"
            )
            out.append(f"{policy.name}: success {wide}, of {found.episodes} episodes")
    return out


def eval_info(policy: EvaluatedPolicy, protocol: EvalProtocol | None) -> dict[str, Any]:
    """What LeRobot's ``eval_info.json`` holds; ``perdure`` has what it lacks."""
    groups: dict[str, list[Row]] = {}
    per_task = []
    by_task: dict[str, list[Row]] = {}
    for row in policy.rows:
        if row.status == "complete":
            by_task.setdefault(_task(row), []).append(row)
    for task, rows in by_task.items():
        group, number = _group(task)
        groups.setdefault(group, []).extend(rows)
        metrics = {
            "sum_rewards": [row.ret for row in rows],
            "max_rewards": [_most(row) for row in rows],
            "successes": [bool(getattr(row, policy.measure)) for row in rows],
            "video_paths": list(policy.videos.get(task, ())),
        }
        per_task.append({"task_group": group, "task_id": number, "metrics": metrics})
    every = [row for rows in groups.values() for row in rows]
    videos = [path for paths in policy.videos.values() for path in paths]
    taken = None if isnan(policy.seconds) else policy.seconds
    intervals = {t: _interval(e) for t, e in success_by_task(policy.episodes).items()}
    return {
        "per_task": per_task,
        "per_group": {g: _sums(rows, policy.measure, videos) for g, rows in groups.items()},
        "overall": {
            **_sums(every, policy.measure, videos),
            "eval_s": taken,
            "eval_ep_s": taken / len(every) if taken is not None and every else None,
        },
        "perdure": {
            "policy": policy.name,
            "protocol": None if protocol is None else protocol.to_json(),
            "success": intervals,
        },
    }


def _sums(rows: Sequence[Row], measure: str, videos: Sequence[str]) -> dict[str, Any]:
    most = [m for m in map(_most, rows) if m is not None]
    sums = [row.ret for row in rows if row.ret is not None]
    return {
        "avg_sum_reward": sum(sums) / len(sums) if sums else None,
        "avg_max_reward": sum(most) / len(most) if most else None,
        "pc_success": 100 * sum(bool(getattr(row, measure)) for row in rows) / max(len(rows), 1),
        "n_episodes": len(rows),
        "video_paths": list(videos),
    }


def _most(row: Row) -> float | None:
    """The largest reward of an episode, where that can be told: one reward of 1 for success, or none."""
    return row.success if row.ret == row.success and row.success in (0, 1) else None


def _group(task: str) -> tuple[str, int | str]:
    """LeRobot's group and number of a task: ``libero_spatial`` and 3."""
    suite, name, _ = split_task_id(task)
    kind, _, number = name.rpartition("-")
    return (f"{suite}_{kind}", int(number)) if kind and number.isdigit() else (suite, name)


def _task(row: Row) -> str:
    return join_task_id("", row.task, row.variant)


def _interval(e: Estimate) -> dict[str, Any]:
    low, high = (None if isnan(v) else v for v in (e.low, e.high))
    return {"share": e.value, "low": low, "high": high, "episodes": e.episodes}


def _cell(e: Estimate | None) -> str:
    if e is None:
        return "–"
    span = "" if isnan(e.low) else f" [{100 * e.low:.0f}, {100 * e.high:.0f}]"
    return f"{100 * e.value:.1f} %{span} of {e.episodes}"
