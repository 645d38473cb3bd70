"""Heat maps: the evaluation matrix, and transfer between tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.arrays import Array
from perdure.show.figures.style import (
    GREY,
    INK,
    NORMAL,
    PAGE,
    SMALL,
    FigureAndTables,
    new,
    several,
    short,
    short_names,
)
from perdure.show.report import data
from perdure.show.report.numbers import Record
from perdure.show.report.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COURSES = 6
SEQUENTIAL = ("#f3f1fa", "#2b3f9e")
DIVERGING = ("#c2570c", "#f7f7f7", "#2166ac")
WRITTEN = 10
"""Cells each way that are large enough to be written in."""
LABELS = 24
"""Rows or columns that can all be named."""


def matrices(study: Study) -> Iterator[FigureAndTables]:
    """Score on each task (columns) at each evaluation (rows), mean over lifetimes; a frame marks
    what was learned right before."""
    found = data.matrices(study)
    schedules = list(dict.fromkeys(r["schedule"] for r in found["rows"]))
    for schedule in schedules:
        rows = [r for r in found["rows"] if r["schedule"] == schedule]
        cells = [r for r in found["cells"] if r["schedule"] == schedule]
        name = f"matrix-{schedule + 1}" if len(schedules) > 1 else "matrix"
        tables = {"cells": cells, "rows": rows}
        if not cells:
            continue
        figure = _matrix_figure(study, rows, cells) if schedule < COURSES else None
        yield FigureAndTables(name, figure, tables)


def _matrix_figure(study: Study, rows: Sequence[Record], cells: Sequence[Record]) -> Any:
    agents = list(dict.fromkeys(r["agent"] for r in rows))
    tasks = [t for t in study.tasks if any(c["task"] == t for c in cells)]
    high = max(len([r for r in rows if r["agent"] == a]) for a in agents)
    figure, panels, shape = _grid(len(agents), len(tasks), high)
    values = [c["value"] for c in cells]
    low, top = study.bounds or (min(values), max(values))
    names = short_names(tasks, 16)
    image = None
    for k, (axes, agent) in enumerate(zip(panels, agents, strict=False)):
        own = [r for r in rows if r["agent"] == agent]
        grid = np.full((len(own), len(tasks)), nan)
        for c in (c for c in cells if c["agent"] == agent):
            grid[c["row"], tasks.index(c["task"])] = c["value"]
        image = _heat(axes, grid, SEQUENTIAL, low, top)
        axes.set_title(_title(agent, own, shape))
        for r in own:
            for task in (t for t in r["fresh"] if t in tasks):
                _frame(axes, r["row"], tasks.index(task), 0.9 if len(own) <= WRITTEN else 0.5)
        labels = [_after(r, names) for r in own]
        _ticks(axes, labels, [names[t] for t in tasks], first=k % shape[1] == 0)
    for axes in panels[len(agents) :]:
        axes.set_visible(False)
    _bar(figure, image, panels[: len(agents)], short(study.measure, 24), shape)
    figure.supylabel("evaluated after", fontsize=NORMAL)
    return figure


def _after(row: Record, names: dict[str, str]) -> str:
    if not row["fresh"]:
        return "start" if row["learned"] == 0 else "–"
    if len(row["fresh"]) > 2:
        return f"{len(row['fresh'])} tasks"
    return ", ".join(names.get(t, short(t, 16)) for t in row["fresh"])


def transfer(study: Study) -> Iterator[FigureAndTables]:
    """Contrast on the target (columns) when the source alone (rows) was learned in between."""
    found = data.transfer(study)
    for way in ("forward", "backward"):
        mine = [r for r in found if r["way"] == way]
        if not any(not isnan(r["value"]) for r in mine):
            continue
        agents = list(dict.fromkeys(r["agent"] for r in mine))
        there = {r["source"] for r in mine} | {r["target"] for r in mine}
        tasks = [t for t in study.tasks if t in there]
        figure, panels, shape = _grid(len(agents), len(tasks), len(tasks))
        names = short_names(tasks, 16)
        image = None
        for k, (axes, agent) in enumerate(zip(panels, agents, strict=False)):
            grid = np.full((len(tasks), len(tasks)), nan)
            own = [r for r in mine if r["agent"] == agent]
            for r in own:
                grid[tasks.index(r["source"]), tasks.index(r["target"])] = r["value"]
            image = _heat(axes, grid, DIVERGING, -1.0, 1.0)
            axes.set_title(_title(agent, own, shape))
            labels = [names[t] for t in tasks]
            _ticks(axes, labels, labels, first=k % shape[1] == 0)
        for axes in panels[len(agents) :]:
            axes.set_visible(False)
        _bar(figure, image, panels[: len(agents)], f"{way} transfer (contrast)", shape)
        figure.supylabel("learned", fontsize=NORMAL)
        figure.supxlabel("evaluated", fontsize=NORMAL)
        yield FigureAndTables(f"transfer-{way}", figure, {"": mine})


def _title(agent: str, records: Sequence[Record], shape: tuple[int, int]) -> str:
    return f"{short(agent, 60 // shape[1])}  ({several([r['n'] for r in records])})"


def _grid(count: int, columns: int, rows: int) -> tuple[Any, list[Any], tuple[int, int]]:
    """Panels of about square cells: the figure, its panels, and how they stand."""
    across = min(count, max(1, int(5.2 // max(0.32 * columns, 1.3))))
    down = -(-count // across)
    cell = min(0.42, (PAGE - 1.8) / across / columns)
    figure = new(PAGE, 0.75 + down * (0.55 + max(cell * rows, 0.6)))
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    return figure, panels, (down, across)


def _heat(axes: Axes, grid: Array, colours: Sequence[str], low: float, high: float) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    scale = LinearSegmentedColormap.from_list("perdure", list(colours)).with_extremes(bad="white")
    high = high if high > low else low + 1.0
    image = axes.imshow(grid, cmap=scale, vmin=low, vmax=high, aspect="auto", interpolation="none")
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0)
    # Thin white lines between the cells.
    rows, columns = grid.shape
    if max(rows, columns) <= 2 * LABELS:
        axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=0.8)
        axes.tick_params(which="minor", length=0)
    if max(rows, columns) <= WRITTEN:
        for (i, j), value in np.ndenumerate(grid):
            if isnan(value):
                axes.text(j, i, "–", ha="center", va="center", fontsize=SMALL, color=GREY)
            else:
                red, green, blue, _ = scale((value - low) / (high - low))
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
                axes.text(j, i, _brief(value), ha="center", va="center", fontsize=SMALL,
                          color="white" if dark else INK)  # fmt: skip
    return image


def _brief(value: float) -> str:
    """Two digits where they tell; no minus before nothing."""
    text = f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
    if float(text) == 0:
        return "0"
    return (
        text.replace("0.", ".", 1).replace("-", "−") if abs(value) < 1 else text.replace("-", "−")
    )


def _frame(axes: Axes, row: int, column: int, width: float) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(
            (column - 0.46, row - 0.44), 0.92, 0.88, fill=False, edgecolor=INK, linewidth=width
        )
    )


def _ticks(axes: Axes, rows: Sequence[str], columns: Sequence[str], first: bool) -> None:
    """Names where there is room; else every so many by number."""
    every = -(-len(columns) // LABELS)
    at = list(range(0, len(columns), every))
    axes.set_xticks(at, [columns[i] for i in at], rotation=40, ha="right", rotation_mode="anchor")
    every = -(-len(rows) // LABELS)
    at = list(range(0, len(rows), every))
    axes.set_yticks(at, [rows[i] for i in at] if first else [""] * len(at))


def _bar(
    figure: Any, image: Any, panels: Sequence[Any], label: str, shape: tuple[int, int]
) -> None:
    share = 0.85 / shape[0]
    bar = figure.colorbar(image, ax=list(panels), shrink=share, aspect=18, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label(label)
    bar.ax.tick_params(length=2, color=GREY)
