"""All runs of a curriculum below a folder, their agents ranked by one metric.

Agents of different runs are entries of their own, even under the same name: what else differed is
not known. The sampling unit is the lifetime; a rank that the intervals leave open says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan
from pathlib import Path
from typing import Any

from perdure.errors import MeasureError, UnknownName
from perdure.measure import sources, summary
from perdure.measure.l2m import metrics as l2m_metrics
from perdure.measure.l2m import paper
from perdure.measure.metric import Metric, estimate
from perdure.measure.outlines import stored_blocks
from perdure.measure.results import MIXED, Measured, measure_paper, read_all
from perdure.measure.stats import Bounds, Estimate
from perdure.store.completeness import listed
from perdure.store.history import History
from perdure.store.layout import SPEC, runs_below, sweeps_below
from perdure.store.run import Run

DEFAULT: tuple[Metric, ...] = (*summary.metrics, *l2m_metrics)
"""What a headline is chosen from: final performance, by which agents are ranked, forgetting, success,
and L2M's core metrics."""


@dataclass(frozen=True)
class Cell:
    """An entry's mean over lifetimes on one metric."""

    estimate: Estimate
    reason: str = ""
    """Why it is undefined, for one lifetime at least."""
    values: tuple[float, ...] = ()
    """Of each lifetime."""


@dataclass(frozen=True)
class RankedAgent:
    """One agent of one run."""

    agent: str
    run: str
    """Its folder below the one that was searched."""
    spec: str
    """The agent with its parameters."""
    protocol: str
    """How it was run, where that is not the same for all entries."""
    seeds: tuple[int, ...]
    cells: Mapping[str, Cell]
    mixed: bool = False
    """Whether its lifetimes ran different code."""
    chance: bool = False
    """Whether it acts at random: a reference, which has no place."""
    place: int = 0
    """By the mean of the first metric; 0 where that is undefined, and for a reference."""
    best: int = 0
    """The places that the intervals leave open."""
    worst: int = 0

    @property
    def n(self) -> int:
        """Lifetimes measured."""
        return len(self.seeds)


@dataclass(frozen=True)
class Ranking:
    """The entries of one curriculum, best first."""

    curriculum: str
    fingerprint: str
    """Of the first run; each lifetime has its own where the curriculum varies by seed."""
    varies: bool
    outline: str
    measure: str
    level: float
    metrics: tuple[Metric, ...]
    entries: tuple[RankedAgent, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    """Lifetimes in no number, and why."""
    notes: tuple[str, ...] = ()
    """What to know of the code that lifetimes ran."""


@dataclass(frozen=True)
class Board:
    """One ranking for each curriculum found."""

    path: Path
    rankings: tuple[Ranking, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Runs in no ranking, and why."""


@dataclass(frozen=True)
class _Found:
    """A run below the folder."""

    name: str
    path: Path
    spec: Mapping[str, Any]
    described: Mapping[int, Mapping[str, Any]]
    """Of its lifelong lifetimes: one description a seed."""
    agents: Mapping[str, str]
    """Label to agent with parameters."""

    @property
    def prints(self) -> dict[int, str]:
        """The curriculum's fingerprint by seed."""
        return {seed: str(d.get("fingerprint", "")) for seed, d in self.described.items()}

    @property
    def curriculum(self) -> Mapping[str, Any]:
        """The outline of the first lifetime."""
        found = next(iter(self.described.values()), {}).get("curriculum")
        return found if isinstance(found, Mapping) else {}

    @property
    def title(self) -> str:
        """The curriculum's name."""
        return str(self.curriculum.get("name") or self.spec.get("curriculum", ""))

    @property
    def protocol(self) -> str:
        """What else the rows depend on, in words."""
        first = next(iter(self.described.values()), {})
        hidden = "tasks hidden" if first.get("hide_tasks") else "tasks shown"
        return f"envs {first.get('envs', 1)}, {hidden}"


def leaderboard(
    folder: Path,
    metrics: Sequence[Metric] = (),
    *,
    known: Sequence[Metric] = DEFAULT,
    curriculum: str | None = None,
    options: paper.PaperOptions | None = None,
    level: float = 0.95,
) -> Board:
    """Rank the agents of all runs at or below a folder, one ranking for each curriculum.

    The first metric decides; where none is given, what leads everywhere of those ``known`` is shown. ``curriculum`` chooses one by its name or the beginning of its
    fingerprint.
    """
    if not folder.is_dir():
        raise MeasureError(f"{folder} is not a folder: expected one that holds runs")
    runs = [_found(folder, path) for path in runs_below(folder)]
    begun = [run for run in runs if run.described]
    if not begun:
        what = f"{len(runs)} runs but no lifetime that can be ranked" if runs else "no Perdure run"
        what += " but sweeps, whose seeds chose parameters" * any(sweeps_below(folder))
        lacks = "".join(f"\n{listed(run.path, Run(run.path).gaps())}" for run in runs[:3])
        raise MeasureError(f"{folder} holds {what} ({SPEC} is what a run is known by){lacks}")
    groups = _groups(begun)
    if curriculum is not None:
        titles = [g[0].title for g in groups]
        groups = [g for g in groups if _is(g[0], curriculum)]
        if not groups:
            raise UnknownName("curriculum", curriculum, titles, f"(there are: {', '.join(titles)})")
    chosen = options or paper.PaperOptions()
    left_out = {run.name: "it has no lifetime that can be read" for run in runs if run not in begun}
    rankings = tuple(_ranking(g, metrics, known, chosen, level) for g in groups)
    return Board(folder, rankings, left_out)


def _found(folder: Path, path: Path) -> _Found:
    run = Run(path)
    name = path.relative_to(folder).as_posix() if path != folder else path.resolve().name
    described: dict[int, Mapping[str, Any]] = {}
    agents: dict[str, str] = {}
    for info in run.lifetimes():
        if not info.expert and info.status != "damaged":
            one = info.description
            described.setdefault(info.seed, one)
            agents.setdefault(info.agent, str(one.get("agent", "")))
    return _Found(name, path, run.spec, described, agents)


def _is(run: _Found, wanted: str) -> bool:
    return wanted in (run.title, run.spec.get("curriculum")) or (
        len(wanted) >= 4 and any(p.startswith(wanted) for p in run.prints.values())
    )


def _groups(runs: Sequence[_Found]) -> list[list[_Found]]:
    """Runs of the same curriculum together, the largest group first."""
    groups: list[list[_Found]] = []
    for run in runs:
        for group in groups:
            if all(_same(run, other) for other in group):
                group.append(run)
                break
        else:
            groups.append([run])
    return sorted(groups, key=lambda g: (-len(g), g[0].title))


def _same(a: _Found, b: _Found) -> bool:
    """Whether two runs are of one curriculum.

    One that does not vary by seed has one fingerprint. Where it varies, each seed has its own: the
    runs must name the same curriculum, and agree on the seeds they share.
    """
    mine, theirs = a.prints, b.prints
    if len({*mine.values()}) == 1 and {*mine.values()} == {*theirs.values()}:
        return True
    varies = len({*mine.values()}) > 1 or len({*theirs.values()}) > 1
    shared = mine.keys() & theirs.keys()
    named = a.spec.get("curriculum") == b.spec.get("curriculum")
    return varies and named and all(mine[s] == theirs[s] for s in shared)


def _ranking(
    runs: Sequence[_Found],
    metrics: Sequence[Metric],
    known: Sequence[Metric],
    options: paper.PaperOptions,
    level: float,
) -> Ranking:
    histories: dict[str, History] = {}
    failed: dict[str, str] = {}
    owners: dict[str, tuple[_Found, str]] = {}
    for run in runs:
        found, problems = read_all(sources.find(run.path, measure=options.measure))
        failed |= {f"{run.name}/{n}": why for n, why in problems.items()}
        for n, history in found.items():
            name = f"{run.name}/{n}"
            owners[name] = (run, history.agent)
            histories[name] = replace(history, name=name, agent=f"{run.name}/{history.agent}")
    tasks = dict.fromkeys(t for history in histories.values() for t in history.tasks)
    asked = metrics or summary.headline(known, tasks)
    results = measure_paper(histories, options, asked, failed)
    valued = summary.distinct([m.name for m in asked], [m.scores for m in results.lifetimes])
    shown = list(metrics) or [m for m in asked if m.name in valued] or asked
    lives: dict[tuple[str, str], list[Measured]] = {}
    for life in results.lifetimes:
        run, agent = owners[life.name]
        lives.setdefault((run.name, agent), []).append(life)
    protocols = {run.name: run.protocol for run in runs}
    alike = len({*protocols.values()}) == 1
    by_name = {run.name: run for run in runs}
    entries = [
        RankedAgent(
            agent,
            name,
            by_name[name].agents.get(agent, agent),
            "" if alike else protocols[name],
            tuple(m.seed for m in mine if m.seed is not None),
            {m.name: _cell(mine, m.name, level, results.bounds.get(m.name)) for m in asked},
            any(life.mixed for life in mine),
            any(life.chance for life in mine),
        )
        for (name, agent), mine in lives.items()
    ]
    first = runs[0]
    return Ranking(
        first.title,
        next(iter(first.prints.values())),
        any(len({*run.prints.values()}) > 1 for run in runs),
        _outline(first.curriculum),
        results.measure,
        level,
        tuple(shown),
        tuple(_placed(entries, shown[0])),
        dict(results.failed),
        tuple(dict.fromkeys(n for m in results.lifetimes for n in m.notes if n.startswith(MIXED))),
    )


def _cell(lives: Sequence[Measured], metric: str, level: float, bounds: Bounds | None) -> Cell:
    scores = [life.scores[metric] for life in lives]
    reason = next((s.reason for s in scores if s.reason), "")
    return Cell(estimate(scores, level, bounds), reason, tuple(s.value for s in scores))


def _placed(entries: Sequence[RankedAgent], metric: Metric) -> list[RankedAgent]:
    """The entries in order, each with its place and those that the intervals leave open; then those without
    a value, then references."""
    sign = 1.0 if metric.better == "higher" else -1.0

    def span(e: RankedAgent) -> tuple[float, float, float]:
        """Value, least and most, so that more is better; one lifetime has no limits."""
        found = e.cells[metric.name].estimate
        if isnan(found.low):
            return sign * found.value, -inf, inf
        low, high = sorted((sign * found.low, sign * found.high))
        return sign * found.value, low, high

    known = [e for e in entries if not e.chance and not isnan(span(e)[0])]
    known.sort(key=lambda e: (-span(e)[0], e.agent, e.run))
    out = []
    for e in known:
        value, low, high = span(e)
        others = [span(o) for o in known if o is not e]
        place = 1 + sum(o[0] > value for o in others)
        best = 1 + sum(o[1] > high for o in others)
        worst = len(known) - sum(o[2] < low for o in others)
        out.append(replace(e, place=place, best=best, worst=worst))
    rest = [e for e in entries if e not in known]
    return out + sorted(rest, key=lambda e: (e.chance, e.agent, e.run))


def _outline(curriculum: Mapping[str, Any]) -> str:
    """A stored curriculum's tasks and budgets in one line."""
    if curriculum.get("generated"):
        return f"{len(curriculum.get('tasks', ()))} tasks, blocks generated as it goes"
    blocks = list(stored_blocks(curriculum))
    totals: dict[str, Counter[str]] = {"learning": Counter(), "evaluation": Counter()}
    tasks = set()
    for block in blocks:
        for what, e in block.purposes:
            totals[what][e.unit] += e.amount
            tasks.add(e.task)
    parts = [f"{len(tasks)} tasks", f"{len(blocks)} blocks"]
    parts += [
        f"{what} {' + '.join(f'{n:,} {unit}' for unit, n in units.items())}"
        for what, units in totals.items()
        if units
    ]
    return ", ".join(parts)
