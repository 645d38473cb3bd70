"""The single evaluations of the lifetimes, to be browsed: which episode succeeded, and which has a video."""

from __future__ import annotations

from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.show.names import task_labels
from perdure.show.report.curves import in_turn
from perdure.show.report.numbers import Record
from perdure.show.report.study import Study
from perdure.show.report.timeline import Timeline

ROOM = 20_000
"""Episodes that a page holds; of more, some lifetimes of each agent, and of long ones the first episodes
of each evaluation."""


def video_key(lifetime: str, file: str) -> str:
    """What a video is called within the page."""
    return f"{lifetime}/{file}"


def episodes(study: Study) -> dict[str, Any]:
    """``lifetimes``: lifetime, agent, seed and finished of those that are here. ``rows``, one an
    evaluation episode: lifetime, task, block, after (what was learned right before, in words), episode
    (its number in the evaluation), value, return, steps, and video (its name in the page; empty if it
    has none)."""
    names = in_turn(study, [n for n in study.timelines if len(study.timelines[n].history)])
    share = ROOM // max(len({study.by_name[n].agent for n in names}), 1)
    labels, left = task_labels(study.tasks), ROOM
    lifetimes: list[Record] = []
    rows: list[Record] = []
    for name in names:
        life, timeline = study.by_name[name], study.timelines[name]
        chosen = _chosen(timeline, share)
        if not len(chosen):
            continue
        if len(chosen) > left:
            break
        left -= len(chosen)
        about = {"agent": life.agent, "seed": life.seed, "finished": timeline.ended}
        lifetimes.append({"lifetime": name, **about})
        rows += _rows(timeline, chosen, name, _videos(study, name), labels)
    return {"lifetimes": lifetimes, "rows": rows}


def _videos(study: Study, name: str) -> dict[int, str]:
    """A lifetime's videos by the number of their experience."""
    folder = study.lifetime_folder(study.by_name[name])
    found = folder.shown_videos() if folder is not None else []
    return {e["exp"]: str(e["file"]) for e in found if type(e.get("exp")) is int}


def _chosen(timeline: Timeline, most: int) -> Array:
    """The places of a lifetime's evaluation episodes: all, or the first of each evaluation."""
    history = timeline.history
    every = np.flatnonzero(~history.learning & history.complete)
    if len(every) <= most:
        return every
    numbers = _numbers(history.block[every], history.task[every])
    evaluations = int((numbers == 0).sum())
    return every[numbers < max(most // evaluations, 1)][:most]


def _numbers(block: Array, task: Array) -> Array:
    """The number of each episode within its evaluation of its task."""
    seen: dict[tuple[int, int], int] = {}
    out = []
    for key in zip(block.tolist(), task.tolist(), strict=True):
        out.append(seen.get(key, 0))
        seen[key] = out[-1] + 1
    return np.array(out, int)


def _rows(
    timeline: Timeline, chosen: Array, name: str, videos: dict[int, str], labels: dict[str, str]
) -> list[Record]:
    history, after = timeline.history, _after(timeline, labels)
    returns = history.values("return") if "return" in history.columns else None
    numbers = _numbers(history.block[chosen], history.task[chosen])
    out = []
    for i, number in zip(chosen.tolist(), numbers.tolist(), strict=True):
        block, video = int(history.block[i]), videos.get(int(history.exp[i]), "")
        out.append(
            {
                "lifetime": name, "task": history.tasks[history.task[i]], "block": block,
                "after": after[block], "episode": number + 1, "value": float(timeline.values[i]),
                "return": float(returns[i]) if returns is not None else np.nan,
                "steps": int(history.steps[i]), "video": video_key(name, video) if video else "",
            }
        )  # fmt: skip
    return out


def _after(timeline: Timeline, labels: dict[str, str]) -> dict[int, str]:
    """For each block: what was learned right before it, in words."""
    out, last = {}, "before learning"
    for summary in timeline.summaries:
        tasks = [labels[t] for t in summary.tasks]
        said = ", ".join(tasks[:2]) + (f" and {len(tasks) - 2} more" if len(tasks) > 2 else "")
        if summary.kind == "learn":
            last = f"after learning {said}"
        out[summary.block] = f"after adapting to {said}" if summary.kind == "adapt" else last
    return out
