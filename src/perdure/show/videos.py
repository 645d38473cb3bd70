"""The videos of a run as a section of its report."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from perdure.errors import StoreError
from perdure.show.names import task_labels
from perdure.show.report.episodes import video_key
from perdure.show.report.page import PageSection, clean, embedded
from perdure.show.report.study import LifetimeSummary, Study
from perdure.show.rounding import number
from perdure.store.layout import VIDEO, LifetimeFolder

ROOM = 5_000_000
"""Bytes of video that a report holds; what shows the life of a task comes first."""
OPEN = 4
"""Tasks whose videos are open from the start."""
MOMENTS = {
    "before": "before learning",
    "learned": "right after learning {}",
    "later": "two tasks later",
    "end": "at the end of life",
}
"""Moments in the life of a task, in words."""
OTHERS = {"first": "first evaluation", "best": "best episode", "worst": "worst episode"}


def videos(study: Study) -> Sequence[PageSection]:
    """For each task: the same episode before learning, right after it and at the end of life, a column
    an agent; then best and worst. Where the run was made with ``--video`` or ``--videos``. Videos of
    further lifetimes, as far as there is room, are there for the episodes alone."""
    lives = {agent: _shown(study, agent) for agent in study.agents}
    found = {agent: own[0] for agent, own in lives.items() if own}
    if not found:
        return ()
    labels = task_labels(study.tasks)
    others = [pair for own in lives.values() for pair in own[1:]]
    shown = _fitting([*found.values(), *others])
    every = sum(len(entries) for own in lives.values() for _, entries in own)
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
            if own:
                figures = [
                    _figure(f, life.name, shown[id(f[2])], labels.get(task, task)) for f in own
                ]
                head = COLUMN.format(clean(agent), life.seed)
                columns.append(Markup("<div>{}{}</div>").format(head, Markup("").join(figures)))
        if columns:
            opened = Markup(" open" if k < OPEN else "")
            name = clean(labels.get(task, task))
            parts.append(TASK.format(opened, name, len(columns), Markup("").join(columns)))
    about = (
        "The same episode of each task before learning, right after it and at the end of life, a column an "
        "agent, of one lifetime each; then other episodes. A click on a video, or its key, stops and starts it."
    )
    if every > len(shown):
        about += f" {every - len(shown)} more are in the lifetimes' {VIDEO} folders."
    hidden = {
        clean(video_key(life.name, str(f[2]["file"]))): _address(shown[id(f[2])])
        for life, entries in others
        for f in entries
        if id(f[2]) in shown
    }
    parts.append(MORE.format(Markup(embedded(hidden))))
    return (PageSection("videos", "Videos", about, STYLE + PLAY + Markup("").join(parts)),)


PLAY = Markup(
    '<p class="tools video-tools"><button type="button" data-videos>Stop all videos</button></p>'
)
MORE = Markup('<script type="application/json" id="more-videos">{}</script>')
COLUMN = Markup('<h3><bdi>{}</bdi> <span class="muted">seed {}</span></h3>')
TASK = Markup(
    '<details class="with-videos"{}><summary><bdi>{}</bdi></summary>'
    '<div class="videos" style="--columns:{}">{}</div></details>'
)
STYLE = Markup(
    "<style>.videos{display:grid;gap:1rem;grid-template-columns:repeat(var(--columns),minmax(150px,260px));"
    "overflow-x:auto}"
    "@media(max-width:40rem){.videos{grid-template-columns:repeat(var(--columns),minmax(132px,1fr))}}"
    ".videos h3{margin:0 0 .4rem}.videos figure{margin:0 0 .8rem}.video-tools{margin:0 0 .8rem}"
    ".videos video{width:100%;border-radius:.5rem;background:#0003;display:block;cursor:pointer}"
    ".videos figcaption{font-size:.82rem;line-height:1.35;margin-top:.3rem;overflow-wrap:anywhere}"
    "</style>"
)

ShownVideo = tuple[LifetimeFolder, list[str], Mapping[str, Any]]
"""The folder of a video, what it is (first, best, worst), and its entry in the index."""


def _shown(study: Study, agent: str) -> list[tuple[LifetimeSummary, list[ShownVideo]]]:
    """The agent's lifetimes that have videos, and these: each episode once."""
    out, order = [], [*MOMENTS, *OTHERS]
    for life in study.lifetimes:
        folder = study.lifetime_folder(life)
        if life.agent != agent or folder is None or life.status == "damaged":
            continue
        found: dict[str, ShownVideo] = {}
        for entry in folder.shown_videos():
            if entry.get("which") in order:
                same = found.setdefault(str(entry["file"]), (folder, [], entry))
                same[1].append(str(entry["which"]))
        if found:
            out.append((life, sorted(found.values(), key=_place)))
    return out


def _place(video: ShownVideo) -> int:
    """Moments in the life of a task come first."""
    return min(map([*MOMENTS, *OTHERS].index, video[1]))


def _data(folder: LifetimeFolder, video: str) -> bytes:
    try:
        return folder.video(video)
    except StoreError:
        return b""  # Missing, or a link to a file elsewhere.


def _fitting(lives: Sequence[tuple[LifetimeSummary, list[ShownVideo]]]) -> dict[int, bytes]:
    """The videos that there is room for, by entry: of the first lifetimes before others, those of moments
    first, agents in turn."""
    left, out = ROOM, {}
    agents = {life.agent for life, _ in lives}
    first, others = lives[: len(agents)], lives[len(agents) :]
    for part in (first, others):
        for folder, _, entry in sorted((f for _, entries in part for f in entries), key=_place):
            data = _data(folder, str(entry["file"]))
            if data and len(data) <= left:
                left -= len(data)
                out[id(entry)] = data
    return out


def _address(video: bytes) -> str:
    return f"data:video/mp4;base64,{base64.b64encode(video).decode()}"


def _words(whiches: Sequence[str], task: str) -> str:
    """What a video is, in words: its moments, else what else it is."""
    moments = [MOMENTS[w].format(task) for w in MOMENTS if w in whiches]
    return " and ".join(moments or [OTHERS[w] for w in OTHERS if w in whiches])


def _figure(video: ShownVideo, lifetime: str, data: bytes, task: str) -> Markup:
    _, whiches, entry = video
    success = entry.get("success")
    won = Markup("" if success is None else WON if success else MISSED)
    words = _words(whiches, clean(task))
    return Markup(
        '<figure><video loop muted playsinline tabindex="0" preload="metadata" aria-label="{}" '
        'data-video="{}" src="{}"></video>'
        '<figcaption><strong>{}</strong>{}<br><span class="muted">{} step{}, return {}, block {}, '
        "environment seed {}</span></figcaption></figure>"
    ).format(
        words,
        clean(video_key(lifetime, str(entry["file"]))),
        _address(data),
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
