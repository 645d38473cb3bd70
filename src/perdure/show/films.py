"""The films of a run as a section of its report."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from perdure.errors import StoreError
from perdure.show.report.page import PageSection, clean
from perdure.show.report.study import LifetimeSummary, Study
from perdure.show.report.tables import number
from perdure.store.layout import VIDEO, LifetimeFolder

ROOM = 2_000_000
"""Bytes of film that a report holds; the first lifetime of each agent comes first."""
OPEN = 4
"""Tasks whose films are open from the start."""


def films(study: Study) -> Sequence[PageSection]:
    """First, best and worst evaluation episodes of each task, where the run was made with
    ``--video``."""
    parts: list[Markup] = []
    left, dropped, count = ROOM, 0, 0
    for agent in study.agents:
        life, entries = _entries(study, agent)
        tasks: dict[str, list[Markup]] = {}
        for folder, whiches, entry in entries:
            data = _data(folder, str(entry["file"]))
            if not data or len(data) > left:
                dropped += 1
                continue
            left -= len(data)
            shown = _figure(whiches, entry, data)
            tasks.setdefault(clean(str(entry["task"])), []).append(shown)
        if tasks and life is not None:
            parts.append(HEADING.format(clean(agent), life.seed))
            parts += [
                TASK.format(Markup(" open" if count + k < OPEN else ""), task, Markup("").join(own))
                for k, (task, own) in enumerate(tasks.items())
            ]
            count += len(tasks)
    if not parts:
        return ()
    about = (
        "Evaluation episodes of each task, from one lifetime of each agent: its first, its best and "
        "its worst; an episode that is several of them is shown once."
    )
    if dropped:
        about += f" {dropped} more are in the lifetimes' {VIDEO} folders."
    return (PageSection("films", "Episodes", about, STYLE + Markup("").join(parts)),)


HEADING = Markup('<h3><bdi>{}</bdi> <span class="muted">seed {}</span></h3>')
TASK = Markup(
    '<details class="filmed"{}><summary><bdi>{}</bdi></summary><div class="films">{}</div></details>'
)
STYLE = Markup(
    "<style>.films{display:grid;gap:1rem;grid-template-columns:repeat(3,1fr);max-width:60rem}"
    "@media(max-width:40rem){.films{grid-template-columns:1fr}}"
    ".filmed + h3{margin-top:1.6rem}"
    ".films figure{margin:0}.films video{width:100%;border-radius:.5rem;background:#0003}"
    ".films figcaption{font-size:.85rem;overflow-wrap:anywhere}</style>"
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
            for entry in entries:
                same = found.setdefault(str(entry["file"]), (folder, [], entry))
                same[1].append(str(entry["which"]))
            return life, list(found.values())
    return None, []


def _data(folder: LifetimeFolder, film: str) -> bytes:
    try:
        return folder.film(film)
    except StoreError:
        return b""  # Missing, or a link to a file elsewhere.


def _figure(whiches: Sequence[str], entry: Mapping[str, Any], data: bytes) -> Markup:
    success = entry.get("success")
    outcome = "" if success is None else ", success" if success else ", no success"
    return Markup(
        '<figure><video controls loop muted playsinline preload="metadata" '
        'src="data:video/mp4;base64,{}"></video>'
        "<figcaption><strong>{}</strong>: block {}, {} step{}, return {}{} "
        '<span class="muted">(environment seed {})</span></figcaption></figure>'
    ).format(
        base64.b64encode(data).decode(),
        " and ".join(whiches).capitalize(),
        entry["block"],
        entry["steps"],
        "" if entry["steps"] == 1 else "s",
        number(float(entry["return"])),
        outcome,
        entry.get("seed", "–"),
    )
