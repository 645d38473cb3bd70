"""A run's lifetime as its L2Logger export would be read, without writing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from perdure.store.history import History, floats
from perdure.store.l2logger.names import clock, column_names, l2_names, log_folder

LEVELS = {"complexity": "1-low", "difficulty": "2-medium"}
"""Where nobody says otherwise; the format demands a word for each."""


def as_log(
    history: History,
    names: Mapping[str, str] | None = None,
    known: dict[History, History] | None = None,
) -> History:
    """The history that :func:`read_log` finds in what :func:`write_run` writes of a run's lifetime,
    its experts in the order in which l2metrics holds them. What was read from a log stays as it is.

    ``names`` are the :func:`l2_names` of all of the run's tasks. ``known`` remembers experts, which
    the lifetimes of an agent share.
    """
    known = {} if known is None else known
    if names is None:
        every = [history, *(h for runs in history.experts.values() for h in runs)]
        names = l2_names([t for h in every if not _is_log(h) for t in h.tasks])
    found: dict[str, list[History]] = {}
    for task, runs in history.experts.items():
        # It takes them in order of their folders' names, and puts each before those it has.
        for h in runs:
            if h not in known:
                known[h] = h if _is_log(h) else _seen(h, names, "ste", task)
        logs = [known[h] for h in runs]
        named = names.get(task, task).lower()
        found.setdefault(named, []).extend(sorted(logs, key=lambda h: h.name, reverse=True))
    own = history if _is_log(history) else _seen(history, names, "custom")
    return replace(own, experts={t: tuple(runs) for t, runs in found.items()})


def _is_log(history: History) -> bool:
    return "metrics_columns" in history.info


def _seen(history: History, names: Mapping[str, str], kind: str, expert: str = "") -> History:
    kept = history.only(~history.before & ~history.adapt)
    there = {m: c for m, c in kept.columns.items() if c.null_count < len(c)}
    columns = {name: there[m] for m, name in column_names(there).items()}
    span = {}
    for name, column in columns.items():
        exp = kept.exp[kept.complete & ~np.isnan(floats(column))]
        if len(exp):
            span[name] = (clock(int(exp[0])), clock(int(exp[-1])))
    named = kept.name
    if kept.agent:
        named = log_folder(kept.agent, kept.seed, names[expert] if expert else "").name
    return replace(
        kept,
        name=named,
        tasks=tuple(names[t].lower() for t in kept.tasks),
        columns=columns,
        measure="reward" if "reward" in columns else next(iter(columns), "reward"),
        info={**LEVELS, "scenario_type": kind, "metrics_columns": list(columns), "span": span},
    )
