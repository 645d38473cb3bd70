"""The table at the end of a run: what was learned, what was kept."""

from __future__ import annotations

from math import isnan

import numpy as np

from perdure.measure.matrix import Matrix, evaluation_matrix
from perdure.names import listed
from perdure.show.names import MIXED, task_labels
from perdure.show.sheet import Sheet
from perdure.store.code import Record, among
from perdure.store.history import common_measure, read_run
from perdure.store.run import Run

COLUMNS = ("before", "acquired", "final", "forgotten")


def _matrices(run: Run) -> tuple[str, dict[str, list[Matrix]], set[str]]:
    """The measure, each agent's matrices by seed, and the agents whose lifetimes ran different code."""
    histories = read_run(run)
    measure = common_measure(histories)
    found: dict[str, list[Matrix]] = {}
    code: dict[str, list[Record]] = {}
    for history in histories:
        found.setdefault(history.agent, []).append(evaluation_matrix(history, measure))
        code.setdefault(history.agent, []).extend(history.code)
    return measure, found, {agent for agent, records in code.items() if among(records)}


def summarise(run: Run) -> tuple[Sheet, dict[str, dict[str, float]]]:
    """A table of agents with means over lifetimes, and the same numbers."""
    measure, matrices, mixed = _matrices(run)
    title = f"{run.spec['curriculum']}: {measure}, mean over tasks and lifetimes (± sd)"
    heads = {
        "before": "before learning",
        "acquired": "right after learning",
        "final": "at the end of life",
        "forgotten": "forgotten",
    }
    sheet = Sheet(title, ["agent", "n", *(heads[c] for c in COLUMNS)], words=["agent"])
    numbers: dict[str, dict[str, float]] = {}
    for agent, lives in matrices.items():
        values = {
            "before": [m.initial() for m in lives],
            "acquired": [m.acquired() for m in lives],
            "final": [m.final() for m in lives],
            "forgotten": [m.forgetting() for m in lives],
        }
        numbers[agent] = {k: float(np.mean(v)) for k, v in values.items()}
        label = f"{agent}{MIXED if agent in mixed else ''}"
        sheet.rows.append((label, str(len(lives)), *(_cell(values[c]) for c in COLUMNS)))
    return sheet, numbers


def _cell(values: list[float]) -> str:
    mean = float(np.mean(values))
    if isnan(mean):
        return "–"
    spread = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{mean:.2f}{spread}"


def by_task(run: Run) -> Sheet:
    """For each agent: score on each task after each learned task, mean over lifetimes."""
    measure, groups, _ = _matrices(run)
    title = f"{measure} on each task (columns) after each evaluation (rows)"
    tasks = next(iter(groups.values()))[0].tasks if groups else ()
    words, labels = ["agent", "after learning"], task_labels(tasks)
    sheet = Sheet(title, [*words, *labels.values()], words=words)
    for agent, lives in groups.items():
        if sheet.rows:
            sheet.rows.append(())
        first = lives[0]
        if any(_schedule(m) != _schedule(first) or set(m.tasks) != set(tasks) for m in lives):
            note = "(task orders differ between lifetimes)"
            sheet.rows.append((agent, note, *[""] * len(tasks)))
            continue
        values = np.mean([m.values[:, [m.tasks.index(t) for t in tasks]] for m in lives], axis=0)
        before, names = 0, list[str]()
        for i, past in enumerate(first.learned):
            fresh = dict.fromkeys(past[before:])
            before, names = len(past), [labels.get(task, task) for task in fresh] or names
            cells = ["–" if isnan(v) else f"{v:.2f}" for v in values[i]]
            sheet.rows.append((agent if i == 0 else "", listed(names) or "–", *cells))
    return sheet


def _schedule(matrix: Matrix) -> tuple[frozenset[tuple[int, str]], tuple[int, ...]]:
    """Which tasks were learned in which block, and which blocks evaluated. Of tasks learned side by
    side in one block it is chance which shows up first."""
    return frozenset(matrix.lessons), matrix.blocks
