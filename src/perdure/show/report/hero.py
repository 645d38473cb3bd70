"""The first screen: what each agent learned, and what of it was there at the end of life."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan
from typing import Any

from perdure.measure.kept import KeptAgent, KeptTask, in_words, sentence, verdict
from perdure.measure.outlines import stored_blocks
from perdure.show.names import task_labels
from perdure.show.report.numbers import Record, estimate
from perdure.show.report.study import Folder, Study

HELD = 0.05
"""A score that changes by less than this share of the scale is held."""


def hero(study: Study) -> dict[str, Any]:
    """``verdict``: one sentence. ``agents``, who kept most first: agent, sentence, learned, kept, way,
    and ``tasks`` with the same for each; heights are percentages of the ``scale`` (low, high).
    ``chance``: for each agent that acts at random, its score on each task. ``tasks``: the columns."""
    found = study.results.kept
    running = [a for a in found if not a.chance]
    if not running:
        return {"verdict": "", "agents": [], "chance": [], "tasks": [], "scale": [0.0, 1.0],
                "pale": ""}  # fmt: skip
    means = [v for a in found for t in a.tasks for v in (t.before, t.learned.value, t.kept.value)]
    scale = study.bounds or scale_of(means)
    there = {t.task for a in running for t in a.tasks}
    tasks = [t for t in study.tasks if t in there]
    labels = task_labels(study.tasks)
    return {
        "verdict": verdict(found),
        "agents": [_agent(a, tasks, scale, labels) for a in running],
        "chance": [_chance(a, tasks, scale) for a in found if a.chance],
        "tasks": tasks,
        "scale": list(scale),
        "pale": _pale([t for a in running for t in a.tasks]),
    }


def _pale(tasks: Sequence[KeptTask]) -> str:
    """What the tasks have in common that could not be forgotten, as far as was seen."""
    alone = {t.followed for t in tasks if not t.exposed}
    said = {
        False: "nothing was learned after it",
        True: "not evaluated again after others were learned",
    }
    return ", or ".join(said[k] for k in sorted(alone))


def scale_of(values: Sequence[float]) -> tuple[float, float]:
    """From the lowest to the highest, with 0 where it is near."""
    there = [v for v in values if isfinite(v)]
    low, high = min(there, default=0.0), max(there, default=1.0)
    if 0 < low < 0.5 * high:
        low = 0.0
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _at(value: float, scale: tuple[float, float]) -> float:
    """Percent of the scale."""
    low, high = scale
    return round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 1)


def place_ends(learned: float, kept: float, never: bool, scale: tuple[float, float]) -> Record:
    """Where the ends of a dumbbell are, and which way it goes."""
    change = (kept - learned) / (scale[1] - scale[0])
    way = "held" if abs(change) < HELD else "lost" if change < 0 else "gained"
    return {
        "learned_at": _at(learned, scale),
        "kept_at": _at(kept, scale),
        "way": "never" if never else way,
    }


def _agent(
    a: KeptAgent, tasks: Sequence[str], scale: tuple[float, float], labels: dict[str, str]
) -> Record:
    own = {t.task: t for t in a.tasks}
    return {
        "agent": a.agent,
        "n": a.n,
        "sentence": sentence(a, labels).removeprefix(a.agent).strip(),
        "learned": estimate(a.learned),
        "kept": estimate(a.kept),
        **place_ends(a.learned.value, a.kept.value, a.nothing, scale),
        "tasks": [_cell(own[t], scale) if t in own else None for t in tasks],
    }


def _cell(t: KeptTask, scale: tuple[float, float]) -> Record:
    return {
        "task": t.task,
        "before": t.before,
        "learned": estimate(t.learned),
        "kept": estimate(t.kept),
        "exposed": t.exposed,
        "followed": t.followed,
        **place_ends(t.learned.value, t.kept.value, t.never, scale),
    }


def _chance(a: KeptAgent, tasks: Sequence[str], scale: tuple[float, float]) -> Record:
    own = {t.task: t.kept.value for t in a.tasks}
    at = [_at(own[t], scale) if t in own and not isnan(own[t]) else None for t in tasks]
    return {"agent": a.agent, "value": a.kept.value, "at": at, "mean_at": _at(a.kept.value, scale)}


def title(study: Study) -> str:
    """What was run, in words: the curricula, and how many tasks in which way."""
    names = dict.fromkeys(_called(f) for f in study.folders)
    said = " · ".join(names)
    spans = [s.summary for c in study.schedules for s in c.spans]
    new = {t for s in spans if s.kind == "adapt" for t in s.tasks}
    new -= {t for s in spans if s.kind == "learn" for t in s.tasks}
    first = {t for s in spans if s.before for t in s.tasks}
    first -= {t for s in spans if not s.before for t in s.tasks}
    first = first if len(first) + len(new) < len(study.tasks) else set()
    count, learned = len(study.tasks) - len(new) - len(first), _learned(study)
    if not count or len(names) > 1:
        return said
    what = f"{in_words(count)} task{'s' * (count != 1)}"
    how = " in turn" if learned == "in turn" and count > 1 else ""
    how = " side by side" if learned == "together" and count > 1 else how
    before = f", after pretraining on {in_words(len(first))}" if first else ""
    return f"{said}: {what}{how}{before}" + (f", {in_words(len(new))} to adapt to" if new else "")


def _called(folder: Folder) -> str:
    """A curriculum's name without the path of the file that it is in."""
    name = folder.name or folder.label
    return name.partition(",")[0].rpartition("/")[2] if ".py:" in name else name.partition(",")[0]


def options(study: Study) -> list[str]:
    """The options that curricula were asked for with, a line each."""
    found = []
    for folder in study.folders:
        _, _, asked = str(folder.spec.get("curriculum", "")).partition(",")
        found += [asked.replace(",", ", ")] if asked else []
    return list(dict.fromkeys(found))


def _learned(study: Study) -> str:
    """How tasks were learned: in turn, together, or neither."""
    spans = [s.summary for c in study.schedules for s in c.spans if s.summary.kind == "learn"]
    lived = [s for s in spans if not s.before] or spans
    sizes = [len(s.tasks) for s in lived]
    if study.lacking:  # Of lifetimes that are to come, the plan tells.
        blocks = (b for f in study.folders for b in stored_blocks(f.curriculum))
        sizes = [len(b.exposures) for b in blocks if b.kind == "learn" and not b.before] or sizes
    if sizes and all(n == 1 for n in sizes):
        return "in turn"
    return "together" if sizes and all(n > 1 for n in sizes) else ""
