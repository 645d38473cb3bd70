"""What was run, what could not be measured, and how the numbers were computed."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perdure.measure.outlines import stored_blocks
from perdure.measure.results import MIXED
from perdure.show.report.block_strips import curricula, joined
from perdure.show.report.numbers import LEVEL, Record
from perdure.show.report.study import Folder, Study
from perdure.store.completeness import WAITING
from perdure.store.history import History


def outline(study: Study) -> dict[str, Any]:
    """What was run.

    ``curricula``: each different one with its folders, ``budget`` and ``strips``; ``budget``: the
    least and the most of a lifetime over all of them. ``tasks``: each with what was seen of it.
    ``agents``: each with its seeds. ``versions``: each package with the versions found.
    ``repeats``: for each run that played episodes again, whether they were alike. ``mixed``: what to
    know of lifetimes that ran different code, a sentence each.
    """
    found = curricula(study)
    return {
        "curricula": found,
        "budget": joined([c["budget"] for c in found]),
        "tasks": [_task(study, t) for t in study.tasks],
        "agents": [_agent(study, a) for a in study.agents],
        "versions": _versions(study.folders),
        "repeats": [
            {
                "folder": f.label,
                "text": str(f.repeats),
                "lifetimes": f.repeats.lifetimes,
                "alike": f.repeats.agreed == f.repeats.played,
                "differences": list(f.repeats.differences[:20]),
            }
            for f in study.folders
            if f.repeats.played
        ],
        "mixed": list(
            dict.fromkeys(
                note
                for life in study.results.lifetimes
                for note in life.notes
                if note.startswith(MIXED)
            )
        ),
    }


def _task(study: Study, task: str) -> Record:
    """What the lifetimes show of a task."""
    every = [*study.histories.values(), *study.unfinished.values()]
    longest, learned, evaluated, each = 0, [], [], []
    for history in every:
        if task not in history.tasks:
            continue
        own = history.task == history.tasks.index(task)
        longest = max(longest, int(history.steps[own].max(initial=0)))
        learned.append(int(history.steps[own & history.learning & ~history.adapt].sum()))
        counts = _evaluation_sizes(history, own)
        evaluated.append(len(counts))
        each += counts
    return {
        "task": task, "horizon": longest, "learned": _range(learned), "evaluations": _range(evaluated),
        "episodes": _range(each), "params": _params(study, task),
    }  # fmt: skip


def _evaluation_sizes(history: History, own: Any) -> list[int]:
    """How many complete experiences each evaluation of a task has."""
    counted = own & ~history.learning & history.complete
    return [int(n) for n in np.bincount(history.block[counted]) if n]


def _range(values: Sequence[int]) -> list[int]:
    return [min(values), max(values)] if values else [0, 0]


def _params(study: Study, task: str) -> str:
    blocks = (b for folder in study.folders for b in stored_blocks(folder.curriculum))
    for _, e in (pair for block in blocks for pair in block.purposes):
        if e.task == task and e.params:
            return json.dumps(e.params, sort_keys=True)
    return ""


def _agent(study: Study, agent: str) -> Record:
    own = [life for life in study.by_name.values() if life.agent == agent]
    folder = next(f for f in study.folders if f.label == own[0].folder)
    agents = folder.spec.get("agents", {})
    spec = agents.get(own[0].base, "") if isinstance(agents, Mapping) else ""
    measured = [life for life in own if life.name in study.histories]
    experts = [x for x in study.lifetimes if x.expert and x.agent == agent and x.status == "done"]
    return {
        "agent": agent, "folder": own[0].folder, "spec": str(spec) if spec != own[0].base else "",
        "letter": study.agent_styles[agent].letter, "n": len(measured), "began": len(own),
        "seeds": [life.seed for life in measured if life.seed is not None],
        "experts": len(experts), "mixed": agent in study.results.mixed,
    }  # fmt: skip


def _versions(folders: Sequence[Folder]) -> list[Record]:
    """Everything a number may depend on, and whether lifetimes differ in it."""
    found: dict[str, dict[str, None]] = {}
    for session in (s for f in folders for s in f.sessions):
        packages = session.get("packages")
        for name, version in (packages if isinstance(packages, Mapping) else {}).items():
            found.setdefault(str(name), {})[str(version)] = None
        for key in ("python", "platform", "git", "host"):
            if session.get(key):
                found.setdefault(key, {})[str(session[key])] = None
    return [{"what": name, "versions": list(versions)} for name, versions in found.items()]


def unmeasured(study: Study) -> dict[str, Any]:
    """``lifetimes`` that are in no number: name, expert, status, error; ``waiting``: how many were
    planned and did not begin."""
    begun = Counter(life.folder for life in study.lifetimes)
    named = {life.name for life in study.lifetimes}
    return {
        "lifetimes": [
            {"name": x.name, "expert": x.expert, "status": x.status, "error": x.error,
             "rows": len(study.unfinished.get(x.name, ()))}
            for x in study.lifetimes
            if x.status != "done"
        ] + [
            {"name": name, "expert": "", "status": "left out", "error": why, "rows": 0}
            for name, why in study.lacking.items()
            if name not in named and why != WAITING
        ],
        "running": sum(x.status == "running" for x in study.lifetimes),
        "waiting": sum(max(len(f.jobs) - begun[f.label], 0) for f in study.folders),
    }  # fmt: skip


def method(study: Study) -> dict[str, Any]:
    """How the numbers were computed: preset, measure, preparation, ranges, metrics, notes."""
    options = dict(study.results.options)
    ranges = options.pop("ranges", {})
    return {
        "preset": study.results.preset,
        "measure": study.measure,
        "level": LEVEL,
        "options": options,
        "ranges": [{"task": t, "min": r["min"], "max": r["max"]} for t, r in ranges.items()],
        "metrics": [
            {"metric": m.name, "about": m.about, "better": m.better, "needs": list(m.needs),
             "text": "\n".join((inspect.getdoc(m.function) or "").split("\n")[1:]).strip()}
            for m in study.metrics
        ],
        "notes": _notes(study),
    }  # fmt: skip


def _notes(study: Study) -> list[Record]:
    """What to know before trusting a number; each note once, with the metrics it concerns."""
    metrics: dict[str, dict[str, None]] = {}
    lives: dict[str, dict[str, None]] = {}
    for life in study.results.lifetimes:
        said = [(note, "") for note in life.notes]
        said += [(note, name) for name, score in life.scores.items() for note in score.notes]
        for note, name in said:
            lives.setdefault(note, {})[life.name] = None
            metrics.setdefault(note, {}).update({name: None} if name else {})
    return [
        {"note": note, "metrics": list(metrics[note]), "lifetimes": len(lives[note]),
         "of": len(study.results.lifetimes)}
        for note in lives
    ]  # fmt: skip
