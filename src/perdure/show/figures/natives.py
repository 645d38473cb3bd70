"""Benchmarks' own pictures, for runs of their suites."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from perdure.show.figures.spread import agents_legend, by_task
from perdure.show.figures.style import COLUMN, NORMAL, PAGE, SMALL, Drawn, dash, mark, new, short
from perdure.show.report import data
from perdure.show.report.study import Study


def openloris(study: Study) -> Iterator[Drawn]:
    """Spider chart of the four averages."""
    found = data.natives(study).get("openloris")
    if not found:
        return
    axes_names = list(dict.fromkeys(r["axis"] for r in found))
    agents = list(dict.fromkeys(r["agent"] for r in found))
    figure = new(COLUMN, 3.0 + 0.16 * -(-len(agents) // 3))
    axes: Any = figure.subplots(subplot_kw={"projection": "polar"})
    turn = np.linspace(0, 2 * np.pi, len(axes_names), endpoint=False)
    for agent in agents:
        by_axis = {r["axis"]: r["value"] for r in found if r["agent"] == agent}
        values = np.array([by_axis.get(name, np.nan) for name in axes_names])
        style = study.agent_styles[agent]
        closed = np.append(np.arange(len(turn)), 0)
        axes.plot(turn[closed], values[closed], color=style.light, linestyle=dash(style))
        axes.fill(turn[closed], np.nan_to_num(values[closed]), color=style.light, alpha=0.08)
    axes.set_theta_offset(np.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(turn, axes_names)
    low = min(0.0, *(r["value"] for r in found if not np.isnan(r["value"])))
    axes.set_ylim(low, max(1.0, *(r["value"] for r in found if not np.isnan(r["value"]))))
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.spines["polar"].set_visible(False)
    agents_legend(figure, study, agents, lines=True)
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
