"""Benchmarks' own pictures, for runs of their suites."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from perdure.show.figures.spread import by_task, lines_legend
from perdure.show.figures.style import COLUMN, NORMAL, PAGE, SMALL, Drawn, dash, mark, new, short
from perdure.show.report import data
from perdure.show.report.study import Study


def openloris(study: Study) -> Iterator[Drawn]:
    """Spider chart of the four averages: lines of agents, or where they are many, as in the paper,
    a spoke for each agent and a line for each average."""
    found = data.natives(study).get("openloris")
    if not found:
        return
    averages = list(dict.fromkeys(r["axis"] for r in found))
    agents = list(dict.fromkeys(r["agent"] for r in found))
    turned = len(agents) >= len(averages)
    spokes, lines = (agents, averages) if turned else (averages, agents)
    values = {(r["agent"], r["axis"]): r["value"] for r in found}
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
    axes.set_ylim(min([0.0, *there]), max([1.0, *there]))
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.spines["polar"].set_visible(False)
    lines_legend(figure, styles)
    yield Drawn("openloris", figure, {"": found})


def metaworld(study: Study) -> Iterator[Drawn]:
    """Success at the last evaluation, task by task."""
    found = data.natives(study).get("metaworld")
    if found:
        tasks = [t for t in study.tasks if any(r["task"] == t for r in found)]
        yield Drawn("metaworld", by_task(study, found, tasks, "success"), {"": found})


def libero(study: Study) -> Iterator[Drawn]:
    """FWT, NBT and AUC with standard errors, as the paper prints them."""
    found = data.natives(study).get("libero")
    if not found:
        return
    titles = list(dict.fromkeys(r["title"] for r in found))
    agents = list(dict.fromkeys(r["agent"] for r in found))
    figure = new(PAGE, 0.75 + 0.19 * len(agents))
    panels = figure.subplots(1, len(titles), squeeze=False, sharey=True)[0]
    for axes, name in zip(panels, titles, strict=True):
        axes.grid(axis="x")
        for k, agent in enumerate(agents):
            (own,) = (r for r in found if (r["title"], r["agent"]) == (name, agent))
            style = study.agent_styles[agent]
            if not np.isnan(own["value"]):
                axes.errorbar([own["value"]], [k], xerr=np.nan_to_num([own["error"]]),
                              fmt=mark(style), color=style.light, elinewidth=1.0)  # fmt: skip
        axes.set_title(f"{name} {'↓' if name == 'NBT' else '↑'}")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    panels[0].set_yticks(range(len(agents)), [short(a, 20) for a in agents])
    panels[0].set_ylim(len(agents) - 0.5, -0.5)
    figure.supxlabel("mean ± standard error over lifetimes", fontsize=NORMAL)
    yield Drawn("libero", figure, {"": found})
