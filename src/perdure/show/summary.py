"""The table at the end of a run: what was learned, what was kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan

import numpy as np

from perdure.measure import meta, online
from perdure.measure.kept import kept, verdict
from perdure.measure.matrix import Matrix, evaluation_matrix
from perdure.measure.metric import MEASURE_BOUNDS, LifetimeData, Metric, estimate
from perdure.measure.stats import Estimate, mean_interval
from perdure.measure.summary import metrics
from perdure.names import listed
from perdure.show.names import ARROWS, MIXED, REFERENCE, task_labels
from perdure.show.sheet import Sheet
from perdure.store.code import Record, among
from perdure.store.history import common_measure, read_run
from perdure.store.run import Run


def _lives(run: Run) -> tuple[str, dict[str, list[LifetimeData]], set[str]]:
    """The measure, each agent's lifetimes by seed, and the agents whose lifetimes ran different code."""
    histories = read_run(run)
    measure = common_measure(histories)
    lives: dict[str, list[LifetimeData]] = {}
    code: dict[str, list[Record]] = {}
    for history in histories:
        lives.setdefault(history.agent, []).append(LifetimeData(history, measure))
        code.setdefault(history.agent, []).extend(history.code)
    return measure, lives, {agent for agent, records in code.items() if among(records)}


def _leading(lives: Iterable[LifetimeData]) -> tuple[Metric, ...]:
    """What the table shows: of tasks that came one by one how long each took, of what was adapted to how
    well it was done, and what was kept."""
    histories = [life.history for life in lives]
    first = online.metrics if any(map(online.came_online, histories)) else ()
    adapted = (meta.before, meta.after) if any(h.adapt.any() for h in histories) else ()
    return (*first, *adapted, *metrics)


def summarise(run: Run) -> tuple[Sheet, dict[str, dict[str, float]]]:
    """A table of agents with means over lifetimes, and the same numbers."""
    measure, lives, mixed = _lives(run)
    bounds = MEASURE_BOUNDS.get(measure)
    leading = _leading(life for mine in lives.values() for life in mine)
    found = {
        agent: {
            m.name: estimate([m(life) for life in mine], bounds=m.bounds_with(measure))
            for m in leading
        }
        | {
            "before": mean_interval([life.matrix.initial() for life in mine], bounds=bounds),
            "acquired": mean_interval([life.matrix.acquired() for life in mine], bounds=bounds),
        }
        for agent, mine in lives.items()
    }
    heads = {m.name: f"{m.title.lower()} {ARROWS[m.better]}" for m in leading}
    heads |= {"before": "before learning", "acquired": "right after learning"}
    learned = any(life.history.learned_tasks for mine in lives.values() for life in mine)
    shown = [
        name
        for name in heads
        if any(not isnan(e[name].value) for e in found.values())
        and (learned or name not in ("before", "acquired"))
    ]
    if all(e["summary.success"].value == e["summary.final"].value for e in found.values()):
        shown = [name for name in shown if name != "summary.success"]  # It would say the same.
    title = f"{run.spec['curriculum']}: {measure}, mean [95% interval] over lifetimes"
    sheet = Sheet(title, ["agent", "n", *(heads[c] for c in shown)], words=["agent"])
    chance = _chance(lives)
    first = next((m for m in leading if m.name in shown), leading[0])

    def place(agent: str) -> tuple[bool, bool, float]:
        """The best first; then those without a value, then chance."""
        value = found[agent][first.name].value
        value = value if first.better == "lower" else -value
        return agent in chance, isnan(value), 0.0 if isnan(value) else value

    for agent in sorted(found, key=place):
        cells = (_cell(found[agent][c]) for c in shown)
        label = f"{agent}{MIXED if agent in mixed else ''}{REFERENCE if agent in chance else ''}"
        sheet.rows.append((label, str(len(lives[agent])), *cells))
    numbers = {
        agent: {name.removeprefix("summary."): e.value for name, e in estimates.items()}
        for agent, estimates in found.items()
    }
    return sheet, numbers


def kept_sentence(run: Run) -> str:
    """What the agents kept, in one sentence; empty where nothing was learned in turn."""
    measure, lives, _ = _lives(run)
    matrices = {agent: [life.matrix for life in mine] for agent, mine in lives.items()}
    return verdict(kept(matrices, MEASURE_BOUNDS.get(measure), _chance(lives)))


def _chance(lives: Mapping[str, Sequence[LifetimeData]]) -> list[str]:
    """The agents that act at random."""
    return [agent for agent, mine in lives.items() if mine[0].history.chance]


def _cell(e: Estimate) -> str:
    if isnan(e.value):
        return "–"
    span = "" if isnan(e.low) else f" [{e.low:.2f}, {e.high:.2f}]"
    return f"{e.value:.2f}{span}" + (f" of {e.episodes} episodes" if e.episodes else "")


def by_task(run: Run) -> Sheet:
    """For each agent: score on each task after each learned task, mean over lifetimes; of tasks that came
    one by one the steps that each took."""
    measure, found, _ = _lives(run)
    if any(online.came_online(life.history) for lives in found.values() for life in lives):
        return _steps_by_place(found)
    every = [life.history for lives in found.values() for life in lives]
    goals = {goal: task for history in every for goal, task in history.goals.items()}
    groups = {
        agent: [evaluation_matrix(life.history.renamed(goals), measure) for life in lives]
        for agent, lives in found.items()
    }
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


def _steps_by_place(found: Mapping[str, Sequence[LifetimeData]]) -> Sheet:
    """In the order that tasks came in, which differs between lifetimes."""
    steps = {
        agent: [list(online.steps_by_task(life.history).values()) for life in lives]
        for agent, lives in found.items()
    }
    most = max(len(life) for lives in steps.values() for life in lives)
    heads = [f"task {k + 1}" for k in range(most)]
    sheet = Sheet("steps that each task took, mean over lifetimes", ["agent", *heads], ["agent"])
    for agent, lives in steps.items():
        came = ([life[k] for life in lives if k < len(life)] for k in range(most))
        sheet.rows.append((agent, *(f"{np.mean(own):.0f}" if own else "–" for own in came)))
    return sheet


def _schedule(matrix: Matrix) -> tuple[frozenset[tuple[int, str]], tuple[int, ...]]:
    """Which tasks were learned in which block, and which blocks evaluated. Of tasks learned side by
    side in one block it is chance which shows up first."""
    return frozenset(matrix.lessons), matrix.blocks
