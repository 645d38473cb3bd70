"""The films of a run as a section of its report."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from perdure.errors import StoreError
from perdure.show.names import task_labels
from perdure.show.report.page import PageSection, clean
from perdure.show.report.study import LifetimeSummary, Study
from perdure.show.rounding import number
from perdure.store.layout import VIDEO, LifetimeFolder

ROOM = 5_000_000
"""Bytes of film that a report holds; what shows the life of a task comes first."""
OPEN = 4
"""Tasks whose films are open from the start."""
MOMENTS = {
    "before": "before learning",
    "learned": "right after learning {}",
    "later": "two tasks later",
    "end": "at the end of life",
}
"""Moments in the life of a task, in words."""
OTHERS = {"first": "first evaluation", "best": "best episode", "worst": "worst episode"}


def films(study: Study) -> Sequence[PageSection]:
    """For each task: the same episode before learning, right after it and at the end of life, a column
    an agent; then best and worst. Where the run was made with ``--video`` or ``--films``."""
    found = {agent: _entries(study, agent) for agent in study.agents}
    found = {agent: pair for agent, pair in found.items() if pair[1]}
    if not found:
        return ()
    labels = task_labels(study.tasks)
    shown = _fitting(found)
    dropped = sum(len(entries) for _, entries in found.values()) - len(shown)
    tasks = [
        t
        for t in study.tasks
        if any(t == str(e["task"]) for _, es in found.values() for _, _, e in es)
    ]
    parts = []
    for k, task in enumerate(tasks):
        columns = []
        for agent, (life, entries) in found.items():
            own = [f for f in entries if str(f[2]["task"]) == task and id(f[2]) in shown]
            if own and life is not None:
                figures = [
                    _figure(f[1], f[2], shown[id(f[2])], labels.get(task, task)) for f in own
                ]
                head = COLUMN.format(clean(agent), life.seed)
                columns.append(Markup("<div>{}{}</div>").format(head, Markup("").join(figures)))
        if columns:
            opened = Markup(" open" if k < OPEN else "")
            name = clean(labels.get(task, task))
            parts.append(TASK.format(opened, name, len(columns), Markup("").join(columns)))
    about = (
        "The same episode of each task before learning, right after it and at the end of life, a column an "
        "agent, of one lifetime each; then other episodes. A click on a film, or its key, stops and starts it."
    )
    if dropped > 0:
        about += f" {dropped} more are in the lifetimes' {VIDEO} folders."
    return (PageSection("films", "Films", about, STYLE + PLAY + Markup("").join(parts)),)


PLAY = Markup(
    '<p class="tools filming"><button type="button" data-films>Stop all films</button></p>'
)
COLUMN = Markup('<h3><bdi>{}</bdi> <span class="muted">seed {}</span></h3>')
TASK = Markup(
    '<details class="filmed"{}><summary><bdi>{}</bdi></summary>'
    '<div class="films" style="--columns:{}">{}</div></details>'
)
STYLE = Markup(
    "<style>.films{display:grid;gap:1rem;grid-template-columns:repeat(var(--columns),minmax(150px,260px));"
    "overflow-x:auto}"
    "@media(max-width:40rem){.films{grid-template-columns:repeat(var(--columns),minmax(132px,1fr))}}"
    ".films h3{margin:0 0 .4rem}.films figure{margin:0 0 .8rem}.filming{margin:0 0 .8rem}"
    ".films video{width:100%;border-radius:.5rem;background:#0003;display:block;cursor:pointer}"
    ".films figcaption{font-size:.82rem;line-height:1.35;margin-top:.3rem;overflow-wrap:anywhere}"
    ".films .won{color:var(--pos);font-weight:600}.films .missed{color:var(--neg);font-weight:600}</style>"
)

Film = tuple[LifetimeFolder, list[str], Mapping[str, Any]]
"""The folder of a film, what it is (first, best, worst), and its entry in the index."""


def _entries(study: Study, agent: str) -> tuple[LifetimeSummary | None, list[Film]]:
    """The agent's first lifetime that has films, and these: each episode once."""
    for life in study.lifetimes:
        if life.expert or life.agent != agent or life.seed is None or life.status == "damaged":
            continue
        run = next(f.path for f in study.folders if f.label == life.folder)
        folder = LifetimeFolder(run / life.base / str(life.seed))
        entries = folder.shown_films()
        if entries:
            found: dict[str, Film] = {}
            order = [*MOMENTS, *OTHERS]
            entries = [e for e in entries if e.get("which") in order]
            for entry in entries:
                same = found.setdefault(str(entry["file"]), (folder, [], entry))
                same[1].append(str(entry["which"]))
            return life, sorted(found.values(), key=lambda f: min(map(order.index, f[1])))
    return None, []


def _data(folder: LifetimeFolder, film: str) -> bytes:
    try:
        return folder.film(film)
    except StoreError:
        return b""  # Missing, or a link to a file elsewhere.


def _fitting(
    found: Mapping[str, tuple[LifetimeSummary | None, list[Film]]],
) -> dict[int, bytes]:
    """The films that there is room for, by entry: those of moments first, agents in turn."""
    order = [*MOMENTS, *OTHERS]
    every = [f for _, entries in found.values() for f in entries]
    left, out = ROOM, {}
    for folder, _, entry in sorted(every, key=lambda f: min(map(order.index, f[1]))):
        data = _data(folder, str(entry["file"]))
        if data and len(data) <= left:
            left -= len(data)
            out[id(entry)] = data
    return out


def _words(whiches: Sequence[str], task: str) -> str:
    """What a film is, in words: its moments, else what else it is."""
    moments = [MOMENTS[w].format(task) for w in MOMENTS if w in whiches]
    return " and ".join(moments or [OTHERS[w] for w in OTHERS if w in whiches])


def _figure(whiches: Sequence[str], entry: Mapping[str, Any], data: bytes, task: str) -> Markup:
    success = entry.get("success")
    won = Markup("" if success is None else WON if success else MISSED)
    words = _words(whiches, clean(task))
    return Markup(
        '<figure><video loop muted playsinline tabindex="0" preload="metadata" aria-label="{}" '
        'src="data:video/mp4;base64,{}"></video>'
        '<figcaption><strong>{}</strong>{}<br><span class="muted">{} step{}, return {}, block {}, '
        "environment seed {}</span></figcaption></figure>"
    ).format(
        words,
        base64.b64encode(data).decode(),
        words[:1].upper() + words[1:],
        won,
        entry["steps"],
        "" if entry["steps"] == 1 else "s",
        number(float(entry["return"])),
        entry["block"],
        entry.get("seed", "–"),
    )


WON = ': <span class="won">success</span>'
MISSED = ': <span class="missed">no success</span>'
