"""Dots and intervals: forgetting, distributions over lifetimes, profiles, improvement, orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.show.colours import Style
from perdure.show.figures.style import (
    COLUMN,
    GREY,
    NORMAL,
    PAGE,
    FigureAndTables,
    dash,
    errors,
    mark,
    new,
    several,
    short,
    short_names,
)
from perdure.show.names import ARROWS
from perdure.show.report import data
from perdure.show.report.headline import chosen, title
from perdure.show.report.numbers import Record
from perdure.show.report.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def forgetting(study: Study) -> Iterator[FigureAndTables]:
    """What is gone of each task at the end of life."""
    found = data.forgetting(study)
    if found:
        tasks = [t for t in study.tasks if any(r["task"] == t for r in found)]
        yield FigureAndTables("forgetting", by_task(study, found, tasks, "forgetting"), {"": found})


def by_task(study: Study, found: Sequence[Record], tasks: Sequence[str], label: str) -> Any:
    """Tasks down, for each agent a dot and its interval."""
    agents = [a for a in study.agents if any(r["agent"] == a for r in found)]
    each = 0.13 * len(agents) + 0.08
    figure = new(COLUMN, 0.7 + each * len(tasks) + 0.16 * -(-len(agents) // 2))
    axes = figure.subplots()
    axes.axvline(0.0, color=GREY, linewidth=0.6)
    axes.grid(axis="x")
    for k, agent in enumerate(agents):
        own = [r for r in found if r["agent"] == agent]
        shift = (k - (len(agents) - 1) / 2) * 0.8 / max(len(agents), 1)
        y = [tasks.index(r["task"]) + shift for r in own]
        _dots(axes, study, agent, own, y)
    names = short_names(tasks, 20)
    axes.set_yticks(range(len(tasks)), [names[t] for t in tasks])
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    figure.supxlabel(f"{label} ({several([r['n'] for r in found])})", fontsize=NORMAL)
    agents_legend(figure, study, agents, where="upper")
    return figure


def _dots(
    axes: Axes, study: Study, agent: str, records: Sequence[Record], y: Sequence[float]
) -> None:
    style = study.agent_styles[agent]
    axes.errorbar(
        [r["value"] for r in records], y, xerr=errors(records), fmt=mark(style),
        color=style.light, elinewidth=1.0, markersize=3.6,
    )  # fmt: skip


def agents_legend(
    figure: Any, study: Study, agents: Sequence[str], lines: bool = False, where: str = "lower"
) -> None:
    """Which mark or line is whose; none for one agent."""
    lines_legend(figure, {a: study.agent_styles[a] for a in agents}, lines, where)


def lines_legend(
    figure: Any, styles: Mapping[str, Style], lines: bool = True, where: str = "lower"
) -> None:
    """Which line, or mark, stands for what; none where there is one."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=s.light, marker="" if lines else mark(s), markersize=3.6,
               linestyle=dash(s) if lines else "", label=short(name, 24))
        for name, s in styles.items()
    ]  # fmt: skip
    if len(handles) > 1:
        longest = max(len(h.get_label()) for h in handles)  # type: ignore[arg-type]
        columns = max(1, min(len(handles), int(COLUMN // (0.4 + 0.062 * longest))))
        figure.legend(handles=handles, loc=f"outside {where} center", ncols=columns)


def distributions(study: Study) -> Iterator[FigureAndTables]:
    """A dot for each lifetime, the mean and its 95 % interval; one panel a metric."""
    values = data.distributions(study)["values"]
    cells = data.headline(study)["cells"]
    keep = ("metric", "agent", "value", "low", "high", "n", "dropped", "reason")
    means = [{k: c[k] for k in keep} for c in cells]
    there = {r["metric"] for r in values if not isnan(r["value"])}
    metrics = [m for m in chosen(study) if m.name in there]
    if not metrics:
        return
    columns = min(len(metrics), 3)
    rows = -(-len(metrics) // columns)
    figure = new(PAGE, 0.2 + rows * (0.6 + 0.19 * len(study.agents)))
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for axes, metric in zip(grid.flat, metrics, strict=False):
        axes.grid(axis="x")
        for k, agent in enumerate(study.agents):
            style = study.agent_styles[agent]
            own = [r for r in values if (r["metric"], r["agent"]) == (metric.name, agent)]
            dots = [r["value"] for r in own if not isnan(r["value"])]
            beside = k + 0.22 + spread_out(len(dots))
            axes.plot(dots, beside, "o", color=style.light, alpha=0.45, markersize=2.4)
            (mean,) = (r for r in means if (r["metric"], r["agent"]) == (metric.name, agent))
            if not isnan(mean["value"]):
                axes.errorbar([mean["value"]], [k], xerr=errors([mean]), fmt="|", color=style.light,
                              elinewidth=1.6, markersize=9, markeredgewidth=1.6)  # fmt: skip
        axes.set_title(f"{short(title(metric), 30)} {ARROWS[metric.better]}")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.locator_params(axis="x", nbins=5)
    for axes in list(grid.flat)[len(metrics) :]:
        axes.set_visible(False)
    _agent_rows(study, grid[0, 0])
    counts = several([r["n"] for r in means if r["metric"] in there])
    label = f"dot: a lifetime; bar: mean and its 95 % interval ({counts})"
    figure.supxlabel(label, fontsize=NORMAL)
    yield FigureAndTables("distributions", figure, {"values": values, "means": means})


def _agent_rows(study: Study, axes: Axes) -> None:
    axes.set_yticks(range(len(study.agents)), [short(a, 20) for a in study.agents])
    axes.set_ylim(len(study.agents) - 0.5, -0.5)


def spread_out(n: int) -> Any:
    """Places beside the middle, the same each time, so that equal dots are all seen."""
    return 0.16 * ((np.arange(n) * 0.618) % 1.0 - 0.5) if n > 1 else np.zeros(n)


BANDS = 3
"""Bands of so many agents can be told apart in one picture; more have a panel each."""


def profiles(study: Study) -> Iterator[FigureAndTables]:
    """The share of final scores above a threshold, with its band over whole lifetimes. Many agents have a
    panel each, where the others are faint: of few lifetimes bands are wide, and would hide each other."""
    found = data.profiles(study)
    if not found:
        return
    by_agent = {a: [r for r in found if r["agent"] == a] for a in {r["agent"]: None for r in found}}
    agents, together = list(by_agent), len(by_agent) <= BANDS
    columns = 1 if together else min(4, len(agents))
    rows = 1 if together else -(-len(agents) // columns)
    figure = new(COLUMN if together else PAGE, 2.4 if together else 0.4 + 1.35 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    panels = [(grid[0, 0], agents)] if together else [
        (axes, [a]) for axes, a in zip(grid.flat, agents, strict=False)
    ]  # fmt: skip
    for axes, own in panels:
        axes.grid()
        for agent in agents:
            if agent not in own:
                _share(axes, by_agent[agent], GREY, "-", 0.5, 0.35)
        for agent in own:
            style, line = study.agent_styles[agent], by_agent[agent]
            _share(axes, line, style.light, dash(style) if together else "-", 1.4, 1.0)
            axes.fill_between([r["threshold"] for r in line], [r["low"] for r in line],
                              [r["high"] for r in line], color=style.light, alpha=0.14, linewidth=0,
                              step="post")  # fmt: skip
        if not together:
            axes.set_title(short(own[0], 18))
        axes.set_ylim(-0.02, 1.02)
        axes.locator_params(nbins=4)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    label = f"final {short(study.measure, 20)} τ ({several([r['n'] for r in found])})"
    figure.supxlabel(label, fontsize=NORMAL)
    figure.supylabel("share of scores above τ", fontsize=NORMAL)
    if together:
        agents_legend(figure, study, agents, lines=True, where="upper")
    yield FigureAndTables("profiles", figure, {"": found})


def _share(
    axes: Axes, line: Sequence[Record], colour: str, style: Any, width: float, alpha: float
) -> None:
    x, y = [r["threshold"] for r in line], [r["share"] for r in line]
    axes.plot(x, y, color=colour, linestyle=style, linewidth=width, alpha=alpha,
              drawstyle="steps-post")  # fmt: skip


def improvement(study: Study) -> Iterator[FigureAndTables]:
    """The probability that a lifetime of one agent ends above one of another."""
    found = data.improvement(study)
    if not found:
        return
    figure = new(COLUMN, 0.6 + 0.2 * len(found))
    axes = figure.subplots()
    axes.grid(axis="x")
    axes.axvline(0.5, color=GREY, linewidth=0.6)
    for k, r in enumerate(found):
        style = study.agent_styles[r["a"]]
        axes.errorbar([r["value"]], [k], xerr=errors([r]), fmt=mark(style), color=style.light,
                      elinewidth=1.0, markersize=3.6)  # fmt: skip
    labels = [f"{short(r['a'], 16)} > {short(r['b'], 16)}" for r in found]
    axes.set_yticks(range(len(found)), labels)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    label = f"probability of improvement ({several([r['n'] for r in found])})"
    figure.supxlabel(label, fontsize=NORMAL)
    yield FigureAndTables("improvement", figure, {"": found})


def aggregates(study: Study) -> Iterator[FigureAndTables]:
    """Mean and interquartile mean of the final scores over lifetimes × tasks, the best at the top; beside the
    mean a dot for each lifetime, which say more of three than an interval does."""
    found = data.distributions(study)["aggregates"]
    if not found:
        return
    statistics = list(dict.fromkeys(r["statistic"] for r in found))
    means = {r["agent"]: r["value"] for r in found if r["statistic"] == "mean"}
    agents = sorted(means, key=lambda a: (isnan(means[a]), -means[a]))
    lives = {a: scores.mean(axis=1) for a, scores in data.final_scores(study)[1].items()}
    figure = new(COLUMN, 0.75 + 0.24 * len(agents))
    panels = figure.subplots(1, len(statistics), squeeze=False, sharey=True)[0]
    for axes, statistic in zip(panels, statistics, strict=True):
        axes.grid(axis="x")
        for k, agent in enumerate(agents):
            own = [r for r in found if (r["statistic"], r["agent"]) == (statistic, agent)]
            _dots(axes, study, agent, own, [k])
            if statistic == "mean":
                dots = lives[agent][~np.isnan(lives[agent])]
                style = study.agent_styles[agent]
                axes.plot(dots, k + 0.28 + spread_out(len(dots)), "o", color=style.light, alpha=0.5,
                          markersize=2.2)  # fmt: skip
        axes.set_title("mean; dot: a lifetime" if statistic == "mean" else "interquartile mean")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.locator_params(axis="x", nbins=4)
        if study.bounds:
            low, high = study.bounds
            axes.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    panels[0].set_yticks(range(len(agents)), [short(a, 18) for a in agents])
    panels[0].set_ylim(len(agents) - 0.5, -0.5)
    label = f"final {short(study.measure, 20)}, 95 % interval ({several([r['n'] for r in found])})"
    figure.supxlabel(label, fontsize=NORMAL)
    yield FigureAndTables("aggregates", figure, {"": found})


def orders(study: Study) -> Iterator[FigureAndTables]:
    """Metrics by the order in which tasks were learned."""
    found = data.orders(study)
    if not found:
        return
    metrics = [m for m in chosen(study) if any(r["metric"] == m.name for r in found)]
    rows = sorted({(r["agent"], r["order"]) for r in found})
    table = {"": found}
    if len(rows) > 60:
        yield FigureAndTables("orders", None, table)
        return
    columns = min(len(metrics), 3)
    down = -(-len(metrics) // columns)
    figure = new(PAGE, 0.2 + down * (0.6 + 0.15 * len(rows)))
    grid = figure.subplots(down, columns, squeeze=False, sharey=True)
    for axes, metric in zip(grid.flat, metrics, strict=False):
        axes.grid(axis="x")
        own = [r for r in found if r["metric"] == metric.name]
        axes.errorbar([r["value"] for r in own], [rows.index((r["agent"], r["order"])) for r in own],
                      xerr=errors(own), fmt="o", color=GREY, elinewidth=1.0)  # fmt: skip
        axes.set_title(f"{short(title(metric), 30)} {ARROWS[metric.better]}")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.locator_params(axis="x", nbins=5)
    for axes in list(grid.flat)[len(metrics) :]:
        axes.set_visible(False)
    counts = several([r["n"] for r in found])
    figure.supxlabel(f"mean over lifetimes and 95 % interval ({counts})", fontsize=NORMAL)
    grid[0, 0].set_yticks(range(len(rows)), [f"{short(a, 14)}, order {k + 1}" for a, k in rows])
    grid[0, 0].set_ylim(len(rows) - 0.5, -0.5)
    yield FigureAndTables("orders", figure, table)
