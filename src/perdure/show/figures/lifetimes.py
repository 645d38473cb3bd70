"""Lifetimes from left to right: the curriculum, and performance over life."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from perdure.show.colours import Style
from perdure.show.figures.style import (
    GREY,
    PAGE,
    SHADE,
    SMALL,
    FigureAndTables,
    dash,
    errors,
    limits,
    mark,
    new,
    several,
    short,
    short_names,
    thousands,
)
from perdure.show.report import data
from perdure.show.report.numbers import Record
from perdure.show.report.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COURSES = 6
"""Of lifetimes that went many ways, so many are drawn; the tables have all."""
ROWS = 6
"""Agents in one figure."""
TICKS = 9
LEGEND = 26
"""Letters of a task's name."""
CROWDED = 120
"""Evaluations of single tasks beyond which points are small and have no bars."""
LABELLED = 0.06
"""Share of the width that a block needs to be written on."""


def curriculum(study: Study) -> Iterator[FigureAndTables]:
    """The blocks as strips of colour, evaluations narrow and pale."""
    found = [
        (c, strip)
        for c in data.outline(study)["curricula"]
        for strip in c["strips"]
        if strip["blocks"]
    ]
    if not found:
        return
    table = [
        {
            "curriculum": c["name"], "fingerprint": c["fingerprint"], "strip": strip["label"],
            "block": b["block"], "kind": b["kind"], "before": b["before"],
            "tasks": [e["task"] for e in b["exposures"]],
            "amounts": [e["amount"] for e in b["exposures"]],
            "units": [e["unit"] for e in b["exposures"]],
            "then": [e["task"] for e in b["then"]],
        }
        for c, strip in found
        for b in strip["blocks"]
    ]  # fmt: skip
    shown = found[:COURSES]
    rows = -(-len(study.tasks) // legend_columns(study.tasks))
    figure = new(PAGE, 0.1 + 0.5 * len(shown) + 0.17 * rows)
    panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
    names = short_names(study.tasks)
    for axes, (c, strip) in zip(panels, shown, strict=True):
        title = short(c["name"] or c["folders"][0], 60) if len(shown) > 1 or c["name"] else ""
        axes.set_title(f"{title}  {short(strip['label'], 70)}".strip())
        axes.axis("off")
        total, x = sum(b["weight"] for b in strip["blocks"]), 0.0
        for block in strip["blocks"]:
            _draw_block(axes, study, names, block, x / total, block["weight"] / total)
            x += block["weight"]
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
    _legend(figure, study, study.tasks, lines=False)
    yield FigureAndTables("curriculum", figure, {"": table})


def _draw_block(
    axes: Axes, study: Study, names: dict[str, str], block: Record, x: float, width: float
) -> None:
    tasks = [e["task"] for e in (*block["exposures"], *block["then"])]
    learns = block["kind"] == "learn"
    low, height = (0.0, 1.0) if learns else (0.15, 0.7)
    for i, task in enumerate(tasks):
        axes.bar(
            x + width / 2, height / len(tasks), width * 0.985, low + i * height / len(tasks),
            color=_colour(study, task), alpha=1.0 if learns else 0.5, linewidth=0,
            hatch="////" if block["kind"] == "adapt" else None, edgecolor="white",
        )  # fmt: skip
    if learns and len(tasks) == 1 and width > LABELLED:
        room = int(width * PAGE / 0.062)
        axes.text(x + width / 2, 0.5, short(names.get(tasks[0], tasks[0]), max(room, 3)),
                  color="white", ha="center", va="center", fontsize=SMALL)  # fmt: skip


def _colour(study: Study, task: str) -> str:
    style = study.task_styles.get(task)
    return style.light if style is not None else GREY


def over_life(study: Study) -> Iterator[FigureAndTables]:
    """Performance over whole lifetimes: one colour a task, evaluations as points in shaded blocks,
    learning as lines, bands and bars for 95 % intervals over lifetimes."""
    found = data.lifetime_curves(study)
    several_schedules = len(found["schedules"]) > 1
    for schedule in found["schedules"]:
        mine = {
            part: [r for r in found[part] if r["schedule"] == schedule["schedule"]]
            for part in ("spans", "evaluations", "learning")
        }
        name = f"lifetimes-{schedule['schedule'] + 1}" if several_schedules else "lifetimes"
        way = study.schedules[schedule["schedule"]]
        tables = {
            part: data.tidy(mine[part], way, learning=part == "learning")
            for part in ("evaluations", "learning")
            if mine[part]
        }
        if not tables:
            continue
        if schedule["schedule"] >= COURSES:
            yield FigureAndTables(name, None, tables)
            continue
        there = {r["agent"] for part in tables.values() for r in part}
        agents = [a for a in study.agents if a in there]
        for page, start in enumerate(range(0, len(agents), ROWS)):
            part = agents[start : start + ROWS]
            figure = _life_figure(study, schedule, mine, part)
            suffix = f"-page{page + 1}" if len(agents) > ROWS else ""
            yield FigureAndTables(f"{name}{suffix}", figure, {} if page else tables)


def _life_figure(
    study: Study, schedule: Record, mine: dict[str, list[Record]], agents: Sequence[str]
) -> Any:
    tasks = [t for t in study.tasks if any(r["task"] == t for r in _both(mine))]
    rows = -(-len(tasks) // legend_columns(tasks))
    figure = new(PAGE, 0.55 + 1.35 * len(agents) + 0.16 * rows)
    panels = figure.subplots(len(agents), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    crowded = len({(r["block"], r["task"]) for r in mine["evaluations"]}) > CROWDED
    for axes, agent in zip(panels, agents, strict=True):
        own = {p: [r for r in mine[p] if r["agent"] == agent] for p in ("evaluations", "learning")}
        counts = [r["n"] for part in own.values() for r in part]
        ended = all(r["finished"] for part in own.values() for r in part)
        axes.set_title(f"{short(agent, 60)}  ({several(counts)}{'' if ended else ', unfinished'})")
        _blocks(axes, study, mine["spans"])
        width = min(
            (s["stop"] - s["start"] for s in mine["spans"] if s["kind"] != "learn"), default=0
        )
        for k, task in enumerate(tasks):
            style = study.task_styles[task]
            _learning(axes, style, [r for r in own["learning"] if r["task"] == task])
            # Side by side within the shaded block, so that no point hides another.
            beside = 0.6 * width * ((k + 0.5) / len(tasks) - 0.5)
            part = [r for r in own["evaluations"] if r["task"] == task]
            _evaluations(axes, style, part, beside, crowded)
        limits(axes, study.bounds)
        axes.set_ylabel(short(study.measure, 18))
        axes.set_xlim(0, schedule["stop"])
    _learned_ticks(panels[-1], mine["spans"])
    left_out = ", their intervals in the table" if crowded else ""
    panels[-1].set_xlabel(f"{schedule['unit']} learned (evaluations shaded{left_out})")
    _legend(figure, study, tasks, lines=True)
    return figure


def _both(mine: dict[str, list[Record]]) -> list[Record]:
    return [*mine["evaluations"], *mine["learning"]]


def _blocks(axes: Axes, study: Study, spans: Sequence[Record]) -> None:
    """Evaluations shaded; above each learn block what is learned in it."""
    for span in spans:
        if span["kind"] == "learn":
            each = (span["stop"] - span["start"]) / max(len(span["tasks"]), 1)
            for i, task in enumerate(span["tasks"]):
                axes.axvspan(
                    span["start"] + i * each, span["start"] + (i + 1) * each, 0.975, 1.0,
                    color=_colour(study, task), linewidth=0,
                )  # fmt: skip
        else:
            axes.axvspan(span["start"], span["stop"], 0, 1, color=SHADE, linewidth=0, zorder=0)


def _learning(axes: Axes, style: Style, records: Sequence[Record]) -> None:
    """A line a block: what is between blocks was not learned."""
    for block in dict.fromkeys(r["block"] for r in records):
        part = [r for r in records if r["block"] == block]
        x, mean = [r["x"] for r in part], [r["mean"] for r in part]
        axes.plot(x, mean, color=style.light, linestyle=dash(style), linewidth=0.9)
        low, high = [r["low"] for r in part], [r["high"] for r in part]
        axes.fill_between(x, low, high, color=style.light, alpha=0.16, linewidth=0)


def _evaluations(
    axes: Axes, style: Style, records: Sequence[Record], beside: float, crowded: bool
) -> None:
    x, mean = [r["x"] + beside for r in records], [r["mean"] for r in records]
    if crowded:
        axes.plot(x, mean, mark(style), color=style.light, markersize=1.8, alpha=0.7)
        return
    axes.plot(x, mean, color=style.light, linewidth=0.5, alpha=0.55, linestyle=":")
    axes.errorbar(
        x, mean, errors(records, "mean"), fmt=mark(style), color=style.light, elinewidth=0.7,
        markersize=3.0,
    )  # fmt: skip


def _learned_ticks(axes: Axes, spans: Sequence[Record]) -> None:
    """How much had been learned where learn blocks begin and end."""
    learns = [s for s in spans if s["kind"] == "learn"]
    marks = {s["start"]: s["learned"] for s in learns}
    if learns:
        marks[learns[-1]["stop"]] = learns[-1]["learned"] + learns[-1]["amount"]
    every = -(-len(marks) // TICKS)
    kept = list(marks.items())[::every]
    axes.set_xticks([x for x, _ in kept], [thousands(n) for _, n in kept])


def legend_columns(tasks: Sequence[str]) -> int:
    """How many columns of a legend fit the page beside each other."""
    longest = max((len(n) for n in short_names(tasks, LEGEND).values()), default=1)
    return max(1, min(6, int((PAGE - 0.2) // (0.42 + 0.062 * longest))))


def _legend(figure: Any, study: Study, tasks: Sequence[str], lines: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = short_names(tasks, LEGEND)
    handles: list[Any] = []
    for task in tasks:
        style = study.task_styles[task]
        if lines:
            handles.append(
                Line2D([], [], color=style.light, linestyle=dash(style), marker=mark(style),
                       label=names[task])
            )  # fmt: skip
        else:
            handles.append(Patch(color=style.light, linewidth=0, label=names[task]))
    if handles:
        columns = min(len(handles), legend_columns(tasks))
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)
