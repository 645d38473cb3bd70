"""Fill the tables and figures of docs/results from the runs beside them, and write their reports.

    perdure run studies/NAME.toml          makes runs/NAME; the same command again goes on
    python studies/pages.py --pack NAME    takes it over: a compact copy in docs/results/runs/NAME
    python studies/pages.py                fills every page from these copies, and from nothing else

The last is `make results`; it fills the README's picture too. A slot whose run is not there is named and stays as it is. A page names its
slots where they stand:

    <!-- cost RUN -->                      lifetimes, seeds, rows, time and versions
    <!-- table RUN metric metric … -->     agents × metrics, mean ± half the 95 % interval
    <!-- errors RUN metric metric … -->    the same, mean ± standard error [95 % interval]
    <!-- orders RUN-0 metric metric … -->  agents × RUN-0, RUN-1, …: the same tasks in other orders, and their spread
    <!-- tasks RUN metric -->              agents × tasks
    <!-- stages RUN metric -->             agents × before, each episode of and after adaptation
    <!-- ends RUN measure -->              agents × tasks: right after learning → at the end
    <!-- robust RUN measure -->            agents × tasks: right after learning, at the end, and along axes of perturbation
    <!-- rounds RUN measure [unit] -->     lifetimes × evaluations, of runs of a single task, by steps or minibatches
    <!-- openloris RUN FACTOR -->          Accuracy, BWT, FWT, Over-all, the published ones beside
    <!-- curves RUN measure -->            a figure of learning, one panel a task
    <!-- kept RUN -->                      a figure: agents × tasks, right after learning and at the end
    <!-- report RUN -->                    where the run's report is: build/results, which is not in git

and what stands between such a line and ``<!-- end -->`` is written anew.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import f_oneway

from perdure import registry
from perdure.measure import sources
from perdure.measure.kept import verdict
from perdure.measure.l2m import paper
from perdure.measure.matrix import evaluation_matrix
from perdure.measure.results import Results, measure_paper, read_all
from perdure.measure.stats import Bounds, mean_and_error, mean_interval
from perdure.show.figures.kept import kept as draw_kept
from perdure.show.figures.style import NO_DATES, drawing
from perdure.show.names import task_labels
from perdure.show.report import load, write_report
from perdure.show.report.hero import title
from perdure.store.compact import write_compact
from perdure.store.history import read_run
from perdure.store.layout import runs_below
from perdure.store.run import Run

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs/results"
PACKED = PAGES / "runs"
REPORTS = ROOT / "build/results"
FRONT = "README.md"
PUBLISHED = json.loads((Path(__file__).parent / "openloris_published.json").read_text())
# Labels in the studies' files, and in the digitised figures.
NAMES = {
    "naive": "Naive", "cumulative": "Cumulative", "lwf": "LwF", "ewc": "EWC",
    "online-ewc": "OnlineEWC", "si": "SI", "dgr": "DGR", "dgr-distillation": "DGR+distill",
    "dgr-feedback": "DGR+feedback",
}  # fmt: skip
AVERAGES = {
    "openloris.accuracy": "Accuracy", "openloris.bwt": "BWT", "openloris.fwt": "FWT",
    "openloris.overall": "Overall",
}  # fmt: skip
USED = ("perdure", "metaworld", "mujoco", "torch")
SLOT = re.compile(r"<!-- (\w+) (.+?) -->\n.*?<!-- end -->", re.DOTALL)


@dataclass
class Page:
    """A page being made."""

    name: str
    text: str
    figures: dict[str, bytes] = field(default_factory=dict)
    """By file name, beside the page."""
    filled: dict[str, list[str]] = field(default_factory=dict)
    """By run: the kinds of slots that were written anew; and of those whose run is not there."""
    left: dict[str, list[str]] = field(default_factory=dict)

    def draw(self, run: Path, figure: Any, kind: str = "") -> str:
        """Keep a run's figure, as a file that depends on nothing but the run; give its name."""
        own = run.name.startswith(self.name)
        name = f"{run.name}{kind}.svg" if own else f"{self.name}-{run.name}{kind}.svg"
        if f"{self.name}.md" == FRONT:
            name = f"docs/images/{run.name}{kind}.svg"
        if name in self.figures:
            raise ValueError(f"{self.name}.md has two figures of {run.name}: expected one")
        out = io.BytesIO()
        with drawing():
            figure.savefig(out, format="svg", metadata=NO_DATES["svg"])
        self.figures[name] = out.getvalue()
        return name


def measured(run: Path, metrics: Sequence[str]) -> Results:
    """A run's scores."""
    histories, failed = read_all(sources.find(run, (), None))
    chosen = [registry.metrics()[m] for m in metrics]
    return measure_paper(histories, paper.PaperOptions(), chosen, failed)


def agents_of(run: Path) -> list[str]:
    """A run's agents: the paper's nine in its order, each with its tuned one; others by name."""
    order = {name: k for k, name in enumerate(NAMES)}
    there = {i.agent for i in Run(run).lifetimes() if not i.expert}
    return sorted(there, key=lambda a: (order.get(a.removesuffix("-tuned"), len(order)), a))


def cell(values: Sequence[float], digits: int = 2) -> str:
    """Mean ± half of the 95 % interval."""
    good = [v for v in values if not isnan(v)]
    if not good:
        return "–"
    if len(good) == 1:
        return f"{good[0]:.{digits}f}"
    estimate = mean_interval(good)
    return f"{estimate.value:.{digits}f} ± {(estimate.high - estimate.low) / 2:.{digits}f}"


def cell_with_error(values: Sequence[float], bounds: Bounds | None) -> str:
    """Mean ± standard error, as LIBERO's paper prints, and the 95 % interval of the mean, which does not leave the
    metric's ``bounds``."""
    good = [v for v in values if not isnan(v)]
    if len(good) < 2:
        return cell(good)
    estimate, (_, error) = mean_interval(good, bounds=bounds), mean_and_error(np.array(good))
    return f"{estimate.value:.2f} ± {error:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(head), "|".join(["---"] * len(head)), *(" | ".join(r) for r in rows)]
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)


def errors(page: Page, run: Path, *metrics: str) -> str:
    """Agents × metrics, with standard errors."""
    return table(page, run, *metrics, with_error=True)


def table(page: Page, run: Path, *metrics: str, with_error: bool = False) -> str:
    """Agents × metrics. Where a score is undefined in some lifetimes, it says of how many it is."""
    results = measured(run, metrics)
    found, limits = results.table(), [results.bounds.get(m) for m in metrics]
    rows = []
    for agent in agents_of(run):
        values = [list(found.get(m, {}).get(agent, {}).values()) for m in metrics]
        lives = max(map(len, values), default=0)
        counts = [sum(not isnan(v) for v in vs) for vs in values]
        made = map(cell_with_error, values, limits) if with_error else map(cell, values)
        cells = [c + f" (n = {n})" * (0 < n < lives) for c, n in zip(made, counts, strict=True)]
        rows.append([agent, *cells, str(lives)])
    return grid(["agent", *metrics, "lifetimes"], rows)


def orders(page: Page, run: Path, *metrics: str) -> str:
    """Agents × runs of the same tasks in different orders × metrics; below each agent how far the means
    of the orders are apart, how far lifetimes of one order are, and whether that could be chance."""
    stem = run.name.rpartition("-")[0]
    runs = sorted(p for p in runs_below(run.parent) if p.name.rpartition("-")[0] == stem)
    found = [measured(r, metrics).table() for r in runs]
    rows = []
    for agent in agents_of(run):
        for one, of in zip(runs, found, strict=True):
            values = [list(of[m][agent].values()) for m in metrics]
            rows.append([agent, one.name.rpartition("-")[2], *map(cell, values)])
        groups = [[list(of[m][agent].values()) for of in found] for m in metrics]
        between = [np.std([np.mean(g) for g in of], ddof=1) for of in groups]
        within = [np.sqrt(np.mean([np.var(g, ddof=1) for g in of])) for of in groups]
        chance = [float(f_oneway(*of).pvalue) for of in groups]
        rows.append([agent, "SD between orders", *(f"{v:.3f}" for v in between)])
        rows.append([agent, "SD within an order", *(f"{v:.3f}" for v in within)])
        rows.append([agent, "p (one-way ANOVA)", *(f"{v:.3f}" for v in chance)])
    return grid(["agent", "order", *metrics], rows)


def tasks(page: Page, run: Path, metric: str) -> str:
    """Agents × tasks."""
    lives = measured(run, [metric]).lifetimes
    names = list(dict.fromkeys(t for life in lives for t in life.scores[metric].per_task))
    rows = []
    for agent in agents_of(run):
        own = [life.scores[metric].per_task for life in lives if life.agent == agent]
        rows.append([agent, *(cell([p[t] for p in own if t in p]) for t in names)])
    return grid(["agent", *task_labels(names).values()], rows)


def stages(page: Page, run: Path, metric: str) -> str:
    """Agents × stages of adaptation: before it, each of its episodes, and after it."""
    lives = measured(run, [metric]).lifetimes
    names = list(dict.fromkeys(s for life in lives for s in life.scores[metric].stages))
    rows = []
    for agent in agents_of(run):
        own = [life.scores[metric].stages for life in lives if life.agent == agent]
        rows.append([agent, *(mean_of([o[s] for o in own if s in o]) for s in names)])
    return grid(["agent", *(s.removeprefix("episode ") for s in names)], rows)


def ends(page: Page, run: Path, measure: str) -> str:
    """Agents × tasks: the evaluation right after a task was learned, and the last one of all."""
    histories = read_run(Run(run))
    names = evaluation_matrix(histories[0], measure).train_test.tasks
    rows = []
    for agent in agents_of(run):
        own = [evaluation_matrix(h, measure) for h in histories if h.agent == agent]
        values = np.array([matrix.train_test.values for matrix in own])
        after = [mean_of(values[:, k + 1, k]) for k in range(len(names))]
        last = [mean_of(values[:, -1, k]) for k in range(len(names))]
        cells = [f"{a} → {b}" for a, b in zip(after[:-1], last[:-1], strict=True)]
        rows.append([agent, *cells, last[-1], cell(values[:, -1].mean(1).tolist())])
    return grid(["agent", *task_labels(names).values(), "mean"], rows)


def robust(page: Page, run: Path, measure: str) -> str:
    """Agents × tasks: right after a task was learned, at the end, and then along each axis of perturbation, its
    levels in turn (variants such as light-2)."""
    histories = read_run(Run(run))
    whole = evaluation_matrix(histories[0], measure)
    names = [t for t in whole.train_test.tasks if "@" not in t]
    levels: dict[str, list[str]] = {}
    for task in whole.tasks:
        if "@" in task:
            levels.setdefault(task.partition("@")[2].rpartition("-")[0], []).append(task)
    rows = []
    for agent in agents_of(run):
        own = [evaluation_matrix(h, measure) for h in histories if h.agent == agent]
        columns = {t: [m.values[:, k] for m in own] for k, t in enumerate(whole.tasks)}
        last = {t: mean_of([c[~np.isnan(c)][-1] for c in cs]) for t, cs in columns.items()}
        for k, (name, label) in enumerate(task_labels(names).items()):
            after = mean_of([m.train_test.values[k + 1, k] for m in own])
            along = [" / ".join(last[t] for t in v if t.startswith(f"{name}@")) or "–" for v in levels.values()]  # fmt: skip
            rows.append([agent, label, after, last[name], *along])
    return grid(["agent", "task", "just learned", "at the end", *levels], rows)


def rounds(page: Page, run: Path, measure: str, unit: str = "steps") -> str:
    """Lifetimes × evaluations, by the steps or minibatches learned before them."""
    rows, head = [], ["lifetime"]
    for history in read_run(Run(run)):
        matrix = evaluation_matrix(history, measure)
        each = history.steps if unit == "steps" else np.ones(len(history), np.int64)
        learned = np.where(history.learning, each, 0)
        taken = [int(learned[history.block < block].sum()) for block in matrix.blocks]
        head = ["lifetime", *(f"{n:,} {unit}" for n in taken)]
        rows.append([f"{history.agent}/{history.seed}", *map(mean_of, matrix.values)])
    return grid(head, rows)


def mean_of(values: Any) -> str:
    """Mean over lifetimes."""
    return f"{np.mean(values):.2f}"


def openloris(page: Page, run: Path, factor: str) -> str:
    """The paper's four averages, the published ones in brackets, and the spider chart of both."""
    found = measured(run, list(AVERAGES)).table()
    agents = agents_of(run)
    # The chart has the paper's spokes: what was tuned is in the table alone.
    spokes = [a for a in agents if a in NAMES]
    means = {
        m: [np.mean(list(found[m].get(a, {0: np.nan}).values())) for a in spokes] for m in AVERAGES
    }
    rows = []
    for agent in agents:
        line = [agent]
        for metric, name in AVERAGES.items():
            theirs = PUBLISHED[factor][name].get(NAMES.get(agent, ""))
            line.append(
                cell(list(found[metric].get(agent, {}).values()))
                + (f" ({theirs:.2f})" if theirs is not None else "")
            )
        rows.append([*line, str(len(found["openloris.accuracy"].get(agent, {})))])
    name = page.draw(run, spider(spokes, means, factor))
    head = ["algorithm", "Accuracy", "BWT", "FWT", "Over-all", "lifetimes"]
    return f"{grid(head, rows)}\n\n![Spider chart]({name})"


def spider(agents: list[str], means: dict[str, list[Any]], factor: str) -> Any:
    """Ours as lines, the published values as dots."""
    from matplotlib.figure import Figure

    turn = np.linspace(0, 2 * np.pi, len(agents), endpoint=False)
    around = np.append(np.arange(len(agents)), 0)
    colours = ("#5a5f6b", "#0069ad", "#dc6f24", "#a08500")
    with drawing():
        figure = Figure(figsize=(4.6, 4.2), layout="constrained")
        axes: Any = figure.add_subplot(projection="polar")
        axes.set_theta_offset(np.pi / 2)
        axes.set_theta_direction(-1)
        for (metric, name), colour in zip(AVERAGES.items(), colours, strict=True):
            values = np.array(means[metric])
            label = "Over-all" if name == "Overall" else name
            axes.plot(turn[around], values[around], color=colour, label=label)
            theirs = [PUBLISHED[factor][name].get(NAMES.get(a, "")) for a in agents]
            dots = np.array([np.nan if v is None else v for v in theirs])
            axes.plot(turn, dots, "o", color=colour, markersize=4, mfc="none", mew=1.1)
        axes.set_ylim(0, 1)
        axes.set_yticks(np.arange(0.2, 1.01, 0.2))
        axes.set_xticks(turn, agents)
        axes.tick_params(axis="x", pad=9)
        axes.set_title(f"{factor}: ours (lines), published (circles)")
        figure.legend(loc="outside lower center", ncols=4)
    return figure


def curves(page: Page, run: Path, measure: str) -> str:
    """Learning curves: a panel a task, a line an agent, the band between the lifetimes' extremes."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    histories = read_run(Run(run))
    if not any(np.isfinite(h.values(measure)[h.learning]).any() for h in histories):
        raise SystemExit(
            f"{page.name}: no {measure} while {run.name} learned, so no curves: see kept"
        )
    names = list(dict.fromkeys(t for h in histories for t in h.learned_tasks))
    agents = agents_of(run)
    colours = dict(zip(agents, ("#0069ad", "#dc6f24", "#199d62", "#cb6aa8", "#4c27a4",
                                "#8f1d2c", "#02a0ce", "#7b6428", "#5a5f6b"), strict=False))  # fmt: skip
    with drawing():
        figure = Figure(figsize=(2.4 * len(names) + 0.6, 2.3), layout="constrained")
        panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
        for axes, task in zip(panels, names, strict=True):
            for agent in agents:
                own = [smoothed(h, task, measure) for h in histories if h.agent == agent]
                own = [o for o in own if len(o[0])]
                if not own:
                    continue
                x = np.linspace(0, max(o[0][-1] for o in own), 200)
                lines = np.array([np.interp(x, *o) for o in own])
                axes.plot(x, lines.mean(0), color=colours[agent], label=agent, linewidth=1.2)
                axes.fill_between(x, lines.min(0), lines.max(0), color=colours[agent], alpha=0.15,
                                  linewidth=0)  # fmt: skip
            axes.set_title("".join(task_labels([task]).values()))
            axes.set_xlabel("steps of this task")
            axes.xaxis.set_major_locator(MaxNLocator(4))
        panels[0].set_ylabel(f"{measure}, mean of 50 episodes")
        if len(agents) > 1:
            handles, labels = panels[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=min(len(agents), 5))
    return f"![Learning curves]({page.draw(run, figure)})"


def kept(page: Page, run: Path) -> str:
    """Who kept what: a ring right after learning, a dot at the end of life."""
    study = load([run], list(registry.metrics().values()))
    with drawing():
        (drawn,) = draw_kept(study)
    return (
        f"![{title(study)}, {verdict(study.results.kept)}]({page.draw(run, drawn.figure, '-kept')})"
    )


def smoothed(history: Any, task: str, measure: str, window: int = 50) -> tuple[Any, Any]:
    """A task's learning episodes: steps so far, and the running mean."""
    mask = history.learning & (history.task == history.tasks.index(task)) & ~history.adapt
    values, steps = history.values(measure)[mask], np.cumsum(history.steps[mask])
    if len(values) < 2:
        return steps, values
    sums = np.cumsum(np.insert(values, 0, 0.0))
    start = np.maximum(np.arange(len(values)) + 1 - window, 0)
    ends = np.arange(len(values)) + 1
    return steps, (sums[ends] - sums[start]) / (ends - start)


def cost(page: Page, run: Path) -> str:
    """What was run, for how long, and with what."""
    found = Run(run)
    lives = [i for i in found.lifetimes() if not i.expert]
    experts = len(found.lifetimes()) - len(lives)
    seeds = sorted({i.seed for i in lives})
    folders = [found.folder.lifetime(i.id) for i in found.lifetimes()]
    spans = [s for f in folders for s in f.worked(f.last_sign())]
    sessions = [s for f in folders for s in f.sessions()]
    parts = [
        f"{count(len(agents_of(run)), 'agent')} × {count(len(seeds), 'lifetime')} (seed"
        + (f"s {seeds[0]} to {seeds[-1]})" if len(seeds) > 1 else f" {seeds[0]})")
        + (f", {count(experts, 'single-task expert')}" if experts else ""),
        count(sum(i.rows for i in found.lifetimes()), "row"),
        f"{count(round(sum(end - start for start, end in spans) / 60), 'minute')} by the clock, added over lifetimes",
        ", ".join(f"{name} {'/'.join(values)}" for name, values in versions(sessions).items()),
    ]
    return f"`{command(run.name, len(seeds))}`: {'; '.join(parts)}."


def command(name: str, lifetimes: int) -> str:
    """What makes a run: a study's file, or a part of one of LIBERO's five studies (libero-t3-object), which have three
    lifetimes unless told otherwise."""
    study = re.fullmatch(r"libero-(t\d)-(.+)", name)
    if study:
        fewer = "" if lifetimes == 3 else f" --lifetimes {lifetimes}"
        # On pictures, and with more demonstrations.
        demos = "demos-64" if study[1] == "t2" else "demos"
        return f"python studies/libero.py {study[1]} --demos {demos} --only {study[2]}{fewer}"
    return f"perdure run studies/{name}.toml"


def count(n: int, noun: str) -> str:
    """So many of something."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def versions(sessions: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """What ran, by name: all versions that sessions had."""
    out: dict[str, list[str]] = {}
    for session in sessions:
        packages = {k: v for k, v in session["packages"].items() if k in USED}
        for name, version in {**packages, "revision": session["git"] or "unknown"}.items():
            if version not in out.setdefault(name, []):
                out[name].append(version)
    return out


def report(page: Page, run: Path) -> str:
    """Where the whole report is. It is written by :func:`main`."""
    return f"`make results` writes the report of this run, one file, to `build/results/{run.name}.html`."


KINDS: dict[str, Callable[..., str]] = {
    "cost": cost, "table": table, "errors": errors, "orders": orders, "tasks": tasks, "stages": stages, "ends": ends, "robust": robust, "rounds": rounds, "openloris": openloris,
    "curves": curves, "kept": kept, "report": report,
}  # fmt: skip


def made(path: Path) -> Page:
    """A page with the slots filled whose runs are there. Nothing is written."""
    page = Page(path.stem, "")

    def slot(match: re.Match[str]) -> str:
        kind, rest = match.groups()
        name, *words = rest.split()
        if not (PACKED / name).is_dir():
            page.left.setdefault(name, []).append(kind)
            return match.group(0)
        page.filled.setdefault(name, []).append(kind)
        return f"<!-- {kind} {rest} -->\n{KINDS[kind](page, PACKED / name, *words)}\n<!-- end -->"

    page.text = SLOT.sub(slot, path.read_text(encoding="utf-8"))
    return page


def fill(path: Path) -> None:
    """Write a page's slots and figures anew where their runs are there."""
    page = made(path)
    for run, kinds in page.filled.items():
        print(f"{path.name}: {run}: {', '.join(kinds)}")
    for run, kinds in page.left.items():
        print(f"{path.name}: no {PACKED / run}; left as they are: {', '.join(kinds)}")
    path.write_text(page.text, encoding="utf-8")
    for name, data in page.figures.items():
        (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / name).write_bytes(data)


def pack(name: str) -> None:
    """Take over a finished run, in place of an older one."""
    new = PACKED / f"_{name}.new"
    shutil.rmtree(new, ignore_errors=True)
    write_compact(Run(ROOT / "runs" / name), new)
    shutil.rmtree(PACKED / name, ignore_errors=True)
    new.rename(PACKED / name)
    size = sum(f.stat().st_size for f in (PACKED / name).rglob("*") if f.is_file())
    print(f"{PACKED / name}: {size / 1000:.0f} kB")


def main() -> None:
    """Pack runs, if asked to; fill all pages; write all reports."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pack", nargs="+", default=[], metavar="NAME", help="finished runs/NAME")
    for name in parser.parse_args().pack:
        pack(name)
    for path in dict.fromkeys((*sorted(PAGES.glob("*.md")), *ROOT.glob(FRONT))):
        fill(path)
    for run in runs_below(PACKED):
        print(write_report([run], REPORTS / f"{run.name}.html", list(registry.metrics().values())))


if __name__ == "__main__":
    main()
