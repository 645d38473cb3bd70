"""A looping picture of what agents kept: the same episode of one task, a row an agent, a column a moment.

Made from the videos of a run (``perdure run … --videos 1``), for a README or a slide.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.errors import MissingExtra, StoreError, UnknownName
from perdure.show.names import task_labels
from perdure.show.report.study import Study

MOMENTS = {"learned": "just learned", "later": "two tasks later", "end": "at the end of life"}
LARGEST = 3_000_000
"""Bytes: what a page of text may ask for."""
SIDES = (208, 176, 144, 112)
"""Pixels of a video's side; the first whose picture is small enough is taken."""
FRAMES, FPS = 48, 14
PAUSE = 8
"""Frames that the last picture stays."""
KEPT, LOST, TEXT, MUTED, TRACK = "#2166ac", "#c2570c", "#171c24", "#5d6675", "#e5e8ed"


def animation(study: Study, agents: Sequence[str] = (), task: str | None = None) -> bytes:
    """A GIF of the task's videos of some agents, each cell with the share of episodes that succeed.

    ``agents`` are by default the one that kept least and the one that kept most; the task is the first
    that was learned.
    """
    shown = list(agents) or _extremes(study)
    for agent in shown:
        if agent not in study.agents:
            raise UnknownName("agent", agent, study.agents)
    chosen = task or study.tasks[0]
    matching = [t for t in study.tasks if t == chosen or task_labels(study.tasks)[t] == chosen]
    if not matching:
        raise UnknownName("task", chosen, study.tasks)
    cells = {agent: _cells(study, agent, matching[0]) for agent in shown}
    label = task_labels(study.tasks)[matching[0]]
    data = b""
    for side in SIDES:
        data = _gif([_page(cells, label, side, k) for k in range(FRAMES + PAUSE)])
        if len(data) <= LARGEST:
            break
    return data


def _extremes(study: Study) -> list[str]:
    """Who kept least, and who kept most."""
    ranked = [a.agent for a in study.results.kept if not a.chance and not a.nothing]
    return list(dict.fromkeys([ranked[-1], ranked[0]])) if ranked else list(study.agents[:2])


Cell = tuple[str, list[Any], float]
"""A moment, the video's frames, and the mean score then."""


def _cells(study: Study, agent: str, task: str) -> list[Cell]:
    for life in study.lifetimes:
        if life.agent != agent or life.status != "done":
            continue
        folder = study.lifetime_folder(life)
        if folder is None:
            continue
        videos = {str(e["which"]): e for e in folder.shown_videos() if str(e["task"]) == task}
        found = [(m, videos[m]) for m in MOMENTS if m in videos]
        if found:
            return [
                (m, list(_frames(folder.video(str(e["file"])))), _score(study, agent, task, e))
                for m, e in found
            ]
    raise StoreError(
        f"{agent} has no video of {task} after learning: run with --videos 1 (or --video)"
    )


def _score(study: Study, agent: str, task: str, entry: Any) -> float:
    """The mean over lifetimes of the task's score in the block of a video."""
    values = []
    for name in study.of_agent(agent):
        matrix = study.matrices[name]
        if entry["block"] in matrix.blocks and task in matrix.tasks:
            at = matrix.blocks.index(entry["block"]), matrix.tasks.index(task)
            values.append(matrix.values[at])
    return float(np.nanmean(values)) if values else float("nan")


def _frames(video: bytes) -> Iterator[Any]:
    """The pictures of a video."""
    try:
        import imageio_ffmpeg
    except ImportError as e:
        raise MissingExtra("reading videos", "video") from e
    import tempfile

    from PIL import Image

    with tempfile.TemporaryDirectory(prefix="perdure-video-") as folder:
        path = Path(folder) / "video.mp4"
        path.write_bytes(video)
        reader = imageio_ffmpeg.read_frames(str(path))
        width, height = next(reader)["size"]
        for raw in reader:
            pixels: Array = np.frombuffer(raw, np.uint8).reshape(height, width, 3)
            yield Image.fromarray(pixels)


def _page(cells: dict[str, list[Cell]], task: str, side: int, k: int) -> Any:
    """The k-th picture: every video at the same share of its length."""
    from PIL import Image, ImageDraw

    left, top, gap, under = 86, 46, 8, 26
    columns = max(map(len, cells.values()))
    size = (left + columns * (side + gap), top + len(cells) * (side + under + gap))
    page = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(page)
    draw.text((left, 5), f"Does {task} perdure?", TEXT, _font(14, bold=True))
    for i, (agent, row) in enumerate(cells.items()):
        y = top + i * (side + under + gap)
        draw.text((4, y + side / 2 - 9), agent, TEXT, _font(13, bold=True))
        for j, (moment, frames, score) in enumerate(row):
            x = left + j * (side + gap)
            if i == 0:
                draw.text((x, top - 18), MOMENTS[moment], MUTED, _font(11))
            at = min(round(min(k, FRAMES - 1) / (FRAMES - 1) * (len(frames) - 1)), len(frames) - 1)
            page.paste(frames[at].resize((side, side)), (x, y))
            _bar(draw, x, y + side + 6, side, score)
    return page


def _bar(draw: Any, x: int, y: int, width: int, score: float) -> None:
    """How much of the task is there: from 0 to 1."""
    room = width - 72
    colour = KEPT if score >= 0.5 else LOST
    draw.text((x, y - 1), f"kept {score:.2f}", colour, _font(11, bold=True))
    draw.rounded_rectangle((x + 68, y + 2, x + 68 + room, y + 11), 4, TRACK)
    if score > 0:
        filled = x + 68 + max(int(room * min(score, 1.0)), 6)
        draw.rounded_rectangle((x + 68, y + 2, filled, y + 11), 4, colour)


def _font(size: int, bold: bool = False) -> Any:
    from matplotlib import get_data_path
    from PIL import ImageFont

    name = f"DejaVuSans{'-Bold' if bold else ''}.ttf"
    return ImageFont.truetype(str(Path(get_data_path()) / "fonts/ttf" / name), size)


def _gif(pages: Sequence[Any]) -> bytes:
    from PIL import Image

    palette = pages[0].quantize(96, Image.Quantize.MEDIANCUT)
    frames = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pages]
    out = io.BytesIO()
    duration = round(1000 / FPS / 10) * 10
    frames[0].save(
        out, "GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0,
        optimize=True,
    )  # fmt: skip
    return out.getvalue()
