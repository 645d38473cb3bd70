"""Learning beside single-task experts'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perdure.show.figures.style import (
    GREY,
    NORMAL,
    PAGE,
    SMALL,
    FigureAndTables,
    limits,
    new,
    short,
    short_names,
    slugged,
    thousands,
)
from perdure.show.report import data
from perdure.show.report.numbers import Record
from perdure.show.report.study import Study

LINE = 1.35 * SMALL
"""Points that a line of small letters takes."""


def experts(study: Study) -> Iterator[FigureAndTables]:
    """Each task's learning, its blocks end to end, beside the single-task expert's."""
    found = data.expert_curves(study)
    taken: set[str] = set()
    for agent in dict.fromkeys(r["agent"] for r in found["curves"]):
        curves = [r for r in found["curves"] if r["agent"] == agent]
        scores = {r["task"]: r for r in found["scores"] if r["agent"] == agent}
        tasks = list(dict.fromkeys(r["task"] for r in curves))
        columns = min(len(tasks), 4)
        rows = -(-len(tasks) // columns)
        figure = new(PAGE, 0.45 + 1.65 * rows)
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        names = short_names(tasks, 22)
        for axes, task in zip(grid.flat, tasks, strict=False):
            style = study.task_styles[task]
            # The expert on top: where both did the same, its dashes show it.
            for who in ("lifelong", "expert"):
                part = [r for r in curves if (r["task"], r["who"]) == (task, who)]
                colour = style.light if who == "lifelong" else GREY
                x, mean = [r["x"] for r in part], [r["mean"] for r in part]
                axes.plot(x, mean, color=colour, linestyle="-" if who == "lifelong" else "--")
                low, high = [r["low"] for r in part], [r["high"] for r in part]
                axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
            counts = [
                f"n = {_n(curves, task, 'lifelong')}",
                f"{_n(curves, task, 'expert')} experts",
            ]
            ratios = [
                f"{label} {scores[task][key]:.2f}"
                for key, label in (("rp", "RP"), ("se", "SE"))
                if scores[task][f"n_{key}"]
            ]
            said = "\n".join(line for line in (", ".join(counts), ", ".join(ratios)) if line)
            # Below the name and above the curves, which may be anywhere within.
            axes.set_title(names[task], pad=2 + LINE * (1 + said.count("\n")))
            axes.annotate(
                said, (0, 1), (0, 2), "axes fraction", "offset points", ha="left", va="bottom",
                fontsize=SMALL, color=GREY,
            )  # fmt: skip
            limits(axes, study.bounds)
            axes.xaxis.set_major_formatter(lambda v, _: thousands(v))
            axes.locator_params(axis="x", nbins=4)
        for axes in list(grid.flat)[len(tasks) :]:
            axes.set_visible(False)
        figure.supylabel(short(study.measure, 24), fontsize=NORMAL)
        figure.supxlabel("steps of learning the task", fontsize=NORMAL)
        _who_legend(figure, agent)
        name = f"experts-{slugged(agent)}"
        if name in taken:  # Names that differ in signs alone make the same file name.
            name += f"-{study.agent_styles[agent].letter}"
        taken.add(name)
        yield FigureAndTables(name, figure, {"curves": curves, "scores": [*scores.values()]})


def _n(curves: Sequence[Record], task: str, who: str) -> int:
    return max((r["n"] for r in curves if (r["task"], r["who"]) == (task, who)), default=0)


def _who_legend(figure: Any, agent: str) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color="black", label=f"{short(agent, 40)}, lifelong"),
        Line2D([], [], color=GREY, linestyle="--", label="single-task expert"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
