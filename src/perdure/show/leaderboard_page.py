"""A leaderboard for people: a table for the terminal, and one HTML file in the report's style."""

from __future__ import annotations

import os
from collections.abc import Iterable
from math import isnan
from pathlib import Path
from typing import Any
from urllib.parse import quote

from perdure.measure.l2m import CORE
from perdure.show.leaderboard import Board, Cell, RankedAgent, Ranking
from perdure.show.names import ARROWS
from perdure.show.report.page import clean, number
from perdure.show.report.tables import small_plot
from perdure.show.rounding import column_places
from perdure.show.sheet import Sheet
from perdure.show.still_page import still_page
from perdure.store.layout import REPORT


def place_text(entry: RankedAgent) -> str:
    """``2``, or ``2 (1–3)`` where the intervals leave other places open."""
    if not entry.place:
        return "–"
    open_places = f" ({entry.best}–{entry.worst})" if entry.worst > entry.best else ""
    return f"{entry.place}{open_places}"


def cell_text(cell: Cell, places: int | None = None) -> str:
    """Mean, and below it the interval; fewer lifetimes than the entry has are said."""
    e = cell.estimate
    if isnan(e.value):
        return "–"
    fewer = f" n={e.n}" if e.dropped else f" of {e.episodes} episodes" if e.episodes else ""
    value, low, high = (number(v, places=places) for v in (e.value, e.low, e.high))
    span = "" if isnan(e.low) else f"\n[{low}, {high}]"
    return f"{value}{fewer}{span}"


def decimals(r: Ranking) -> dict[str, int | None]:
    """Decimal places of each metric's column, as in the report."""
    out = {}
    for m in r.metrics:
        found = [e.cells[m.name].estimate for e in r.entries]
        out[m.name] = column_places(m.bounds_with(r.measure), [(x.low, x.high) for x in found])
    return out


def table(ranking: Ranking) -> Sheet:
    """A ranking for the terminal."""
    several = len({e.run for e in ranking.entries}) > 1
    words = ["place", "agent", *(["run"] * several)]
    metrics = [f"{m.name} {ARROWS[m.better]}" for m in ranking.metrics]
    sheet = Sheet(clean(_title(ranking)), [*words, "n", *metrics], words=words)
    places = decimals(ranking)
    for e in ranking.entries:
        notes = (e.protocol, "mixed code" if e.mixed else "", "reference" if e.chance else "")
        known = ", ".join(filter(None, notes))
        who = [f"{e.agent} ({known})" if known else e.agent, *([e.run] * several)]
        cells = [cell_text(e.cells[m.name], places[m.name]) for m in ranking.metrics]
        sheet.rows.append([place_text(e), *map(clean, who), str(e.n), *cells])
    return sheet


def _title(r: Ranking) -> str:
    prints = f"{r.fingerprint}, …: varies by seed" if r.varies else r.fingerprint
    return f"{r.curriculum} ({prints}): {r.outline}\n{r.measure}, {_method(r)}"


def _method(r: Ranking) -> str:
    return (
        f"mean [{r.level:.0%} interval] over n lifetimes, preset paper; ranked by "
        f"{r.metrics[0].name}, with a range of places where intervals overlap"
    )


def remarks(ranking: Ranking) -> list[str]:
    """Why values are missing, and which lifetimes are in no number; each reason once."""
    said: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    shown = [m.name for m in ranking.metrics]
    for e in ranking.entries:
        for name, cell in e.cells.items():
            if cell.reason and (name in shown or name in CORE):
                names, agents = said.setdefault(cell.reason, ({}, {}))
                names[name] = agents[e.agent] = None
    lines = [f"– {', '.join(m)}: {why} ({', '.join(a)})" for why, (m, a) in said.items()]
    lines += [f"{name}: {why}" for name, why in ranking.failed.items()]
    lines += ranking.notes
    return [clean(line) for line in lines]


_BODY = """
<section class="intro"><h1>Leaderboard of <bdi>{{ title }}</bdi></h1></section>
{% for r in rankings %}
<section class="card">
<div class="top"><h2><bdi>{{ r.curriculum }}</bdi></h2>
<p class="muted">{{ r.outline }} · curriculum <span class="mono">{{ r.fingerprint }}</span>
{%- if r.varies %} and others: it varies by seed{% endif %} · {{ r.measure }}</p>
<p class="muted">{{ r.method }}</p></div>
<div class="scroll"><table class="results cards">
<thead><tr><th scope="col">Place</th><th scope="col">Agent</th>
<th scope="col" class="number narrow">n</th>
{% for m in r.metrics %}<th scope="col" class="number" title="{{ m.about }}">{{ m.title }}
<span class="arrow" title="{{ m.better }} is better">{{ m.arrow }}</span>
<span class="id">{{ m.name }}</span></th>{% endfor %}
</tr></thead>
<tbody>
{% for e in r.entries %}
<tr{% if e.chance %} class="grey"{% endif %}><td class="place" data-label="Place"><span>{{ e.place }}</span>{% if e.open %}<div class="interval">{{ e.open }}</div>{% endif %}</td>
<th scope="row"><bdi class="name" title="{{ e.spec }}">{{ e.agent }}</bdi>
<div class="small muted">{% if e.report %}<a href="{{ e.report }}"><bdi>{{ e.run }}</bdi></a>{% else %}<bdi>{{ e.run }}</bdi>{% endif %}{% if e.protocol %} · {{ e.protocol }}{% endif %}{% if e.mixed %} · <strong>mixed code</strong>{% endif %}{% if e.chance %} · acts at random: a reference, without a place{% endif %}</div></th>
<td class="number" data-label="lifetimes"><span>{{ e.n }}</span></td>
{% for c in e.cells %}
<td class="number" data-label="{{ r.metrics[loop.index0].title }}">
{%- if c.undefined %}<span class="undefined" tabindex="0" title="{{ c.reason }}">–<span class="hidden"> undefined: {{ c.reason }}</span></span>
{%- else %}<div class="value">{{ c.value }}</div><div class="interval">{{ c.interval }}</div>
<svg class="spark" viewBox="0 0 112 18" width="112" height="18" aria-hidden="true">
{%- if c.plot.zero is not none %}<line class="zero" x1="{{ c.plot.zero }}" x2="{{ c.plot.zero }}" y1="1" y2="17"/>{% endif %}
{%- if c.plot.ends %}<rect class="reach" x="{{ c.plot.ends[0] }}" width="{{ (c.plot.ends[1] - c.plot.ends[0]) | round(1) }}" y="6" height="6" rx="3"/>{% endif %}
{% for x in c.plot.dots[:60] %}<circle cx="{{ x }}" cy="9" r="2"/>{% endfor %}
<line class="mean" x1="{{ c.plot.mean }}" x2="{{ c.plot.mean }}" y1="2" y2="16"/></svg>{% endif %}</td>
{% endfor %}
</tr>
{% endfor %}
</tbody></table></div>
{% if r.remarks %}<details><summary>{{ r.remarks | length }} remarks</summary>
<ul class="notes">{% for line in r.remarks %}<li>{{ line }}</li>{% endfor %}</ul></details>{% endif %}
</section>
{% endfor %}
"""
_MORE = """
.place { font-size: 16px; font-weight: 620; white-space: nowrap; font-variant-numeric: tabular-nums; }
.results thead .narrow { min-width: 0; }
"""


def html(board: Board, title: str = "", where: Path | None = None) -> str:
    """The board as one HTML file that needs nothing else, in the report's style. It leads to the reports
    of runs that have one, as seen from the folder ``where`` it will lie."""
    name = title or board.path.resolve().name
    rankings = [_plain(r, board.path, where or board.path) for r in board.rankings]
    return still_page("leaderboard", _BODY, _MORE, name, rankings=rankings)


def _report(runs: Path, run: str, where: Path) -> str:
    """The way from a folder to a run's report; empty if it has none."""
    found = next((p for p in (runs / run / REPORT, runs / REPORT) if p.is_file()), None)
    if found is None or (found.parent == runs and runs.name != run):
        return ""
    return quote(os.path.relpath(found, where).replace(os.sep, "/"))


def _plain(r: Ranking, runs: Path, where: Path) -> dict[str, Any]:
    places = decimals(r)
    scales = {m.name: _scale(e.cells[m.name] for e in r.entries) for m in r.metrics}
    return {
        "curriculum": r.curriculum, "outline": r.outline, "fingerprint": r.fingerprint,
        "varies": r.varies, "measure": r.measure, "method": _method(r), "remarks": remarks(r),
        "metrics": [
            {"name": m.name, "title": m.title or m.about.split(":")[0].rstrip("."),
             "about": m.about, "better": m.better, "arrow": ARROWS[m.better]}
            for m in r.metrics
        ],
        "entries": [
            {
                "place": e.place or "–",
                "open": f"{e.best}–{e.worst}" if e.worst > e.best else "",
                "agent": e.agent, "run": e.run, "spec": e.spec, "protocol": e.protocol, "n": e.n,
                "mixed": e.mixed, "chance": e.chance, "report": _report(runs, e.run, where),
                "cells": [_drawn(e.cells[m.name], scales[m.name], places[m.name]) for m in r.metrics],
            }
            for e in r.entries
        ],
    }  # fmt: skip


def _scale(cells: Iterable[Cell]) -> tuple[float, float]:
    """From the least to the most that a column's values, means and limits reach."""
    found = [(c.estimate, c.values) for c in cells]
    seen = [v for e, own in found for v in (e.value, e.low, e.high, *own) if not isnan(v)]
    return (min(seen), max(seen)) if seen else (0.0, 1.0)


def _plain_cell(cell: Cell) -> dict[str, Any]:
    e = cell.estimate
    return {"value": e.value, "low": e.low, "high": e.high, "values": cell.values}


def _drawn(cell: Cell, scale: tuple[float, float], places: int | None) -> dict[str, Any]:
    e = cell.estimate
    value, low, high = (number(v, places=places) for v in (e.value, e.low, e.high))
    limits = "no interval" if isnan(e.low) else f"[{low}, {high}]"
    of = f" n={e.n}" if e.dropped else f" of {e.episodes} episodes" if e.episodes else ""
    return {
        "undefined": isnan(e.value),
        "reason": cell.reason or e.reason or "no value",
        "value": value,
        "interval": f"{limits}{of}",
        "plot": small_plot(_plain_cell(cell), scale),
    }
