"""The table at the end of a run: what was learned, what was kept."""

from __future__ import annotations

from math import isnan

import numpy as np

from perdure.measure.matrix import Matrix, evaluation_matrix
from perdure.measure.metric import LifetimeData, estimate
from perdure.measure.stats import Estimate, mean_interval
from perdure.measure.summary import metrics
from perdure.names import listed
from perdure.show.names import ARROWS, task_labels
from perdure.show.sheet import Sheet
from perdure.store.history import common_measure, read_run
from perdure.store.run import Run


def _matrices(run: Run) -> tuple[str, dict[str, list[Matrix]]]:
    """The measure, and each agent's matrices by seed."""
    histories = read_run(run)
    measure = common_measure(histories)
    found: dict[str, list[Matrix]] = {}
    for history in histories:
        found.setdefault(history.agent, []).append(evaluation_matrix(history, measure))
    return measure, found


def summarise(run: Run) -> tuple[Sheet, dict[str, dict[str, float]]]:
    """A table of agents with means over lifetimes, and the same numbers."""
    histories = read_run(run)
    measure = common_measure(histories)
    lives: dict[str, list[LifetimeData]] = {}
    for history in histories:
        lives.setdefault(history.agent, []).append(LifetimeData(history, measure))
    found = {
        agent: {m.name: estimate([m(life) for life in mine]) for m in metrics}
        | {
            "before": mean_interval([life.matrix.initial() for life in mine]),
            "acquired": mean_interval([life.matrix.acquired() for life in mine]),
        }
        for agent, mine in lives.items()
    }
    heads = {m.name: f"{m.title.lower()} {ARROWS[m.better]}" for m in metrics}
    heads |= {"before": "before learning", "acquired": "right after learning"}
    learned = any(h.learned_tasks for h in histories)
    shown = [
        name
        for name in heads
        if any(not isnan(e[name].value) for e in found.values())
        and (learned or name not in ("before", "acquired"))
    ]
    title = f"{run.spec['curriculum']}: {measure}, mean [95% interval] over lifetimes"
    sheet = Sheet(title, ["agent", "n", *(heads[c] for c in shown)], words=["agent"])
    for agent, estimates in found.items():
        cells = (_cell(estimates[c]) for c in shown)
        sheet.rows.append((agent, str(len(lives[agent])), *cells))
    numbers = {
        agent: {name.removeprefix("summary."): e.value for name, e in estimates.items()}
        for agent, estimates in found.items()
    }
    return sheet, numbers


def _cell(e: Estimate) -> str:
    if isnan(e.value):
        return "–"
    span = "" if isnan(e.low) else f" [{e.low:.2f}, {e.high:.2f}]"
    return f"{e.value:.2f}{span}" + (f" of {e.episodes} episodes" if e.episodes else "")


def by_task(run: Run) -> Sheet:
    """For each agent: score on each task after each learned task, mean over lifetimes."""
    measure, groups = _matrices(run)
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
