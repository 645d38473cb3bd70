"""Results as the benchmarks show them, for runs of their tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from perdure.show.figures.spread import by_task, lines_legend
from perdure.show.figures.style import (
    COLUMN,
    NORMAL,
    PAGE,
    SMALL,
    FigureAndTables,
    dash,
    mark,
    new,
    short,
)
from perdure.show.names import ARROWS
from perdure.show.report import data
from perdure.show.report.numbers import Record
from perdure.show.report.study import Study


def benchmarks(study: Study) -> Iterator[FigureAndTables]:
    """One figure for each benchmark that the tasks belong to."""
    for found in data.benchmarks(study):
        figure = _DRAW[found["picture"]](study, found)
        # A suite's adaptations are a figure beside its own.
        name = found["suite"] + ("-adaptation" if found["picture"] == "stages" else "")
        yield FigureAndTables(name, figure, {"": found["rows"]})


def spider(study: Study, found: Record) -> Any:
    """Spider chart of the leading metrics: lines of agents, or where they are many, a spoke for each
    agent and a line for each metric."""
    rows = found["rows"]
    averages = list(dict.fromkeys(r["axis"] for r in rows))
    agents = list(dict.fromkeys(r["agent"] for r in rows))
    turned = len(agents) >= len(averages)
    spokes, lines = (agents, averages) if turned else (averages, agents)
    values = {(r["agent"], r["axis"]): r["value"] for r in rows}
    figure = new(COLUMN, 3.0 + 0.16 * -(-len(lines) // 3))
    axes: Any = figure.subplots(subplot_kw={"projection": "polar"})
    turn = np.linspace(0, 2 * np.pi, len(spokes), endpoint=False)
    closed = np.append(np.arange(len(turn)), 0)
    # There are no more averages than agents, so their styles suffice for either.
    styles = dict(zip(lines, study.agent_styles.values(), strict=False))
    for line, style in styles.items():
        shares = np.array([values[(s, line) if turned else (line, s)] for s in spokes])
        axes.plot(turn[closed], shares[closed], color=style.light, linestyle=dash(style))
        axes.fill(turn[closed], np.nan_to_num(shares[closed]), color=style.light, alpha=0.08)
    axes.set_theta_offset(np.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(turn, [short(s, 20) for s in spokes])
    there = [v for v in values.values() if not np.isnan(v)]
    low, high = found["bounds"] or (0.0, 0.0)
    axes.set_ylim(min([low, *there]), max([high, *there]))
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.spines["polar"].set_visible(False)
    lines_legend(figure, styles)
    return figure


def bars(study: Study, found: Record) -> Any:
    """The first leading metric, task by task."""
    tasks = [t for t in study.tasks if any(r["task"] == t for r in found["rows"])]
    return by_task(study, found["rows"], tasks, found["metrics"][0]["title"].lower())


def stages(study: Study, found: Record) -> Any:
    """The first leading metric, by stage of adaptation."""
    rows = [{**r, "task": r["stage"]} for r in found["rows"] if not r["task"]]
    order = max(
        ([r["task"] for r in rows if r["agent"] == a] for a in study.agents), key=len, default=[]
    )
    return by_task(study, rows, order, found["metrics"][0]["title"].lower())


def table(study: Study, found: Record) -> Any:
    """The leading metrics with standard errors, a panel each."""
    rows = found["rows"]
    agents = list(dict.fromkeys(r["agent"] for r in rows))
    figure = new(PAGE, 0.75 + 0.19 * len(agents))
    panels = figure.subplots(1, len(found["metrics"]), squeeze=False, sharey=True)[0]
    for axes, metric in zip(panels, found["metrics"], strict=True):
        axes.grid(axis="x")
        for k, agent in enumerate(agents):
            (own,) = (r for r in rows if (r["metric"], r["agent"]) == (metric["metric"], agent))
            style = study.agent_styles[agent]
            if not np.isnan(own["value"]):
                axes.errorbar([own["value"]], [k], xerr=np.nan_to_num([own["error"]]),
                              fmt=mark(style), color=style.light, elinewidth=1.0)  # fmt: skip
        axes.set_title(f"{metric['title']} {ARROWS[metric['better']]}")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    panels[0].set_yticks(range(len(agents)), [short(a, 20) for a in agents])
    panels[0].set_ylim(len(agents) - 0.5, -0.5)
    figure.supxlabel("mean ± standard error over lifetimes", fontsize=NORMAL)
    return figure


_DRAW: dict[str, Callable[[Study, Record], Any]] = {
    "spider": spider,
    "bars": bars,
    "stages": stages,
    "table": table,
}
