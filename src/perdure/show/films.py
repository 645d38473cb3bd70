"""The films of a run as a section of its report."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from perdure.errors import StoreError
from perdure.show.report.page import Section
from perdure.show.report.study import Study
from perdure.store.files import read_json

ROOM = 2_000_000
"""Bytes of film that a report holds; the first lifetime of each agent comes first."""


def films(study: Study) -> Sequence[Section]:
    """First, best and worst evaluation episodes of each task, where the run was made with
    ``--video``."""
    shown: list[Markup] = []
    left, dropped = ROOM, 0
    for agent in study.agents:
        for folder, entry in _entries(study, agent):
            path = folder / str(entry["file"])
            size = path.stat().st_size if path.is_file() else 0
            if not size or size > left:
                dropped += 1
                continue
            left -= size
            shown.append(_figure(agent, entry, path.read_bytes()))
    if not shown:
        return ()
    about = "Evaluation episodes of each task: the first, the best and the worst of one lifetime."
    if dropped:
        about += f" {dropped} more are in the lifetimes' _video folders."
    grid = Markup('<div class="films">{}</div>').format(Markup("").join(shown))
    return (Section("films", "Episodes", about, STYLE + grid),)


STYLE = Markup(
    "<style>.films{display:grid;gap:1rem;grid-template-columns:repeat(3,1fr);max-width:60rem}"
    "@media(max-width:40rem){.films{grid-template-columns:1fr}}"
    ".films figure{margin:0}.films video{width:100%;border-radius:.5rem;background:#0003}"
    ".films figcaption{font-size:.85rem;overflow-wrap:anywhere}</style>"
)


def _entries(study: Study, agent: str) -> list[tuple[Path, Mapping[str, Any]]]:
    """The films of the agent's first lifetime that has any."""
    for life in study.lifetimes:
        if life.expert or life.agent != agent or life.seed is None:
            continue
        run = next(f.path for f in study.folders if f.label == life.folder)
        folder = run / life.base / str(life.seed) / "_video"
        if (folder / "index.json").is_file():
            index = read_json(folder / "index.json")
            if not isinstance(index, dict) or not isinstance(index.get("films"), list):
                raise StoreError(f"{folder}/index.json is not an index of films; remove the folder")
            return [(folder, e) for e in index["films"] if _safe(e)]
    return []


def _safe(entry: Any) -> bool:
    """Whether an entry names a film beside its index, and nothing elsewhere."""
    return isinstance(entry, dict) and Path(str(entry.get("file", "/"))).name == entry.get("file")


def _figure(agent: str, entry: Mapping[str, Any], data: bytes) -> Markup:
    success = entry.get("success")
    outcome = "" if success is None else ", success" if success else ", no success"
    return Markup(
        '<figure><video controls loop muted playsinline preload="metadata" '
        'src="data:video/mp4;base64,{}"></video>'
        "<figcaption><bdi>{}</bdi> on <bdi>{}</bdi>: {} (block {}, seed {}), {} step{}, "
        "return {:.3g}{}</figcaption></figure>"
    ).format(
        base64.b64encode(data).decode(),
        agent,
        entry["task"],
        entry["which"],
        entry["block"],
        entry["seed"],
        entry["steps"],
        "" if entry["steps"] == 1 else "s",
        float(entry["return"]),
        outcome,
    )
