"""What each agent learned and kept, task by task: a ring right after learning, a dot at the end of life."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perdure.show.figures import style
from perdure.show.report.hero import hero
from perdure.show.report.numbers import Record
from perdure.show.report.study import Study

MANY = 5
"""More agents than this have lower rows."""
HUES = {"lost": "#c2570c", "gained": "#2166ac", "held": "#2166ac", "never": style.GREY}


def kept(study: Study) -> Iterator[style.FigureAndTables]:
    """Who kept most is at the top; a dot that has fallen below its ring shows what was forgotten."""
    found = hero(study)
    agents = found["agents"]
    if not agents:
        return
    figure = style.new(style.PAGE, 0.85 + (0.62 if len(agents) <= MANY else 0.4) * len(agents))
    grid = figure.subplots(len(agents), 1, squeeze=False, sharex=True)
    for row, axes in zip(agents, grid[:, 0], strict=True):
        axes.grid(axis="y")
        for j, cell in enumerate(row["tasks"]):
            if cell:
                _dumbbell(axes, j, cell)
        for j, at in enumerate(_chance(found)):
            if at is not None:
                axes.plot([j - 0.35, j + 0.35], [at, at], ":", color=style.GREY, linewidth=0.9)
        style.limits(axes, study.bounds)
        ends = f"{row['learned']['value']:.2f} → {row['kept']['value']:.2f}"
        axes.set_ylabel(
            f"{style.short(row['agent'], 16)}\n{ends}", rotation=0, ha="right", va="center"
        )
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(axis="x", length=0)
        axes.locator_params(axis="y", nbins=2)
    names = list(style.short_names(found["tasks"], 20).values())
    lean = {"rotation": 35, "ha": "right"} if len(names) > 5 else {}
    grid[-1, 0].set_xticks(range(len(names)), names, fontsize=style.SMALL, **lean)
    grid[-1, 0].set_xlim(-0.6, len(names) - 0.4)
    counts = style.several([row["n"] for row in agents])
    label = f"{study.measure}: ring right after learning, dot at the end of life ({counts})"
    figure.supxlabel(label, fontsize=style.NORMAL)
    yield style.FigureAndTables("kept", figure, {"": _table(found)})


def _dumbbell(axes: Any, x: int, cell: Record) -> None:
    ends, hue = (cell["learned"]["value"], cell["kept"]["value"]), HUES[cell["way"]]
    pale = 1.0 if cell["exposed"] and cell["way"] != "never" else 0.45
    axes.plot([x, x], ends, "-", color=hue, alpha=0.4 * pale, linewidth=3, solid_capstyle="round")
    ring = {"markerfacecolor": "white", "markeredgecolor": hue, "markeredgewidth": 1.2}
    axes.plot([x], ends[:1], "o", markersize=5.5, alpha=pale, clip_on=False, **ring)
    axes.plot([x], ends[1:], "o", markersize=4.6, alpha=pale, clip_on=False, color=hue)


def _chance(found: Record) -> list[float | None]:
    """Where chance is on each task, on the scale of the measure."""
    if not found["chance"]:
        return []
    low, high = found["scale"]
    at = found["chance"][0]["at"]
    return [None if v is None else low + v / 100 * (high - low) for v in at]


def _table(found: Record) -> list[Record]:
    return [
        {
            "agent": row["agent"], "task": cell["task"], "before": cell["before"],
            "learned": cell["learned"]["value"], "learned_low": cell["learned"]["low"],
            "learned_high": cell["learned"]["high"], "kept": cell["kept"]["value"],
            "kept_low": cell["kept"]["low"], "kept_high": cell["kept"]["high"],
            "n": cell["kept"]["n"], "learned_at_all": cell["way"] != "never",
        }
        for row in found["agents"]
        for cell in row["tasks"]
        if cell
    ]  # fmt: skip
