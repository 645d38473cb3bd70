"""What was run, what could not be measured, and how the numbers were computed."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from perdure.show.report.numbers import LEVEL, Record
from perdure.show.report.study import Folder, Study
from perdure.show.report.walk import EVALUATION, EVALUATIONS, Course
from perdure.store.history import History

COURSES = 6
"""Of lifetimes that went many ways, so many are drawn."""


def outline(study: Study) -> dict[str, Any]:
    """What was run.

    ``curricula``: each different one with its folders, budgets and ``blocks`` (kind, before,
    together, exposures, then, weight: its share of the strip). ``tasks``: each with what was seen
    of it. ``agents``: each with its seeds. ``versions``: each package with the versions found.
    """
    return {
        "curricula": _curricula(study),
        "tasks": [_task(study, t) for t in study.tasks],
        "agents": [_agent(study, a) for a in study.agents],
        "versions": _versions(study.folders),
    }


def _curricula(study: Study) -> list[Record]:
    groups: dict[str, list[Folder]] = {}
    for folder in study.folders:
        groups.setdefault(folder.fingerprint or f"folder {folder.label}", []).append(folder)
    out = []
    for folders in groups.values():
        first = folders[0]
        labels = [f.label for f in folders]
        planned = _planned(first.curriculum)
        strips: list[Record] = [{"label": "", "blocks": planned}]
        strips = strips if planned else _went(study, labels)
        strips = [strip for strip in strips if strip["blocks"]]
        out.append(
            {
                "name": first.name, "fingerprint": first.fingerprint, "folders": labels,
                "generated": bool(first.curriculum.get("generated")),
                "strips": strips, "budget": _budget(strips[0]["blocks"]) if strips else [],
            }
        )  # fmt: skip
    return out


def task_id(task: Mapping[str, Any]) -> str:
    """The id of a stored task."""
    variant = f"@{task['variant']}" if task.get("variant") else ""
    return f"{task['suite']}/{task['name']}{variant}"


def _planned(curriculum: Mapping[str, Any]) -> list[Record]:
    """The blocks of a stored curriculum; none where they were generated."""
    blocks: list[Record] = []
    for part in ("before", "blocks"):
        for block in curriculum.get(part, ()):
            made = {
                "block": len(blocks), "kind": block["kind"], "before": part == "before",
                "together": bool(block.get("together")),
                "exposures": _exposures(block["exposures"]), "then": _exposures(block.get("then", ())),
            }  # fmt: skip
            blocks.append(made)
    if curriculum.get("generated"):
        return []
    units = {e["unit"] for b in blocks if b["kind"] == "learn" for e in b["exposures"]}
    amounts = [
        float(sum(e["amount"] for e in b["exposures"]) if len(units) == 1 else 1)
        if b["kind"] == "learn"
        else 0.0
        for b in blocks
    ]
    return _weighed(blocks, amounts)


def _exposures(exposures: Iterable[Mapping[str, Any]]) -> list[Record]:
    return [
        {"task": task_id(e["task"]), "amount": e["amount"], "unit": e["unit"]} for e in exposures
    ]


def _weighed(blocks: list[Record], amounts: Sequence[float]) -> list[Record]:
    learned = sum(amounts) or 1.0
    others = max(sum(a == 0 for a in amounts), 1)
    each = learned * min(EVALUATION, EVALUATIONS / others)
    return [b | {"weight": a or each} for b, a in zip(blocks, amounts, strict=True)]


def _went(study: Study, labels: Sequence[str]) -> list[Record]:
    """What the lifetimes of some folders went through, where no plan is stored."""
    own = [
        c for c in study.courses if any(study.by_name[n].folder in labels for n in c.names)
    ][:COURSES]  # fmt: skip
    return [
        {
            "label": f"n = {len(c.names)}" if len(own) > 1 else "",
            "blocks": _weighed([_block(study, c, i) for i in range(len(c.spans))],
                               [s.amount for s in c.spans]),
        }
        for c in own
    ]  # fmt: skip


def _block(study: Study, course: Course, i: int) -> Record:
    """A block with the amounts of the course's first lifetime that came so far."""
    walk = next(w for n in course.names if len((w := study.walks[n]).rows) > i)
    stay, rows, history = course.spans[i].stay, walk.rows[i], walk.history
    parts: dict[bool, list[Record]] = {True: [], False: []}
    for learning, exposures in parts.items():
        for task in stay.tasks:
            own = rows[history.task[rows] == history.tasks.index(task)]
            own = own[history.learning[own] == learning]
            amount = int(history.steps[own].sum()) if learning else len(own)
            if len(own):
                unit = "steps" if learning else "experiences"
                exposures.append({"task": task, "amount": amount, "unit": unit})
    return {
        "block": stay.block, "kind": stay.kind, "before": stay.before, "together": False,
        "exposures": parts[stay.kind != "eval"], "then": parts[False] if stay.kind == "adapt" else [],
    }  # fmt: skip


def _budget(blocks: Sequence[Record]) -> list[Record]:
    """Amounts added up by what they are for and by unit."""
    totals: Counter[tuple[str, str]] = Counter()
    for block in blocks:
        what = "evaluation" if block["kind"] == "eval" else "learning"
        for e in block["exposures"]:
            totals[(what, e["unit"])] += e["amount"]
        for e in block["then"]:
            totals[("evaluation", e["unit"])] += e["amount"]
    found = sorted(totals.items(), key=lambda item: item[0][0] != "learning")
    return [{"for": what, "unit": unit, "amount": n} for (what, unit), n in found]


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
    for folder in study.folders:
        for part in ("before", "blocks"):
            for block in folder.curriculum.get(part, ()):
                for e in (*block["exposures"], *block.get("then", ())):
                    if task_id(e["task"]) == task and e["task"].get("params"):
                        return json.dumps(e["task"]["params"], sort_keys=True)
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
        "experts": len(experts),
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
    return {
        "lifetimes": [
            {"name": x.name, "expert": x.expert, "status": x.status, "error": x.error,
             "rows": len(study.unfinished.get(x.name, ()))}
            for x in study.lifetimes
            if x.status != "done"
        ],
        "waiting": sum(max(f.planned - begun[f.label], 0) for f in study.folders),
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
