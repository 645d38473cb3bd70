"""Curricula as strips of blocks: planned ones as they are stored, others as lifetimes went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perdure.measure.outlines import StoredExposure, stored_blocks
from perdure.show.report.numbers import Record
from perdure.show.report.study import Folder, Study
from perdure.show.report.timeline import EVALUATION, EVALUATIONS, Schedule, Timeline

STRIPS = 6
"""Of lifetimes that went many ways, so many are drawn."""

Amounts = Mapping[tuple[str, str], int]
"""What one lifetime takes, by what it is for (learning or evaluation) and by unit."""


def curricula(study: Study) -> list[Record]:
    """Each different curriculum: name, fingerprint, folders, generated, budget, strips and ``more``:
    how many further strips there would be.

    A strip has a label where there are several, its share of the longest strip, and ``blocks``:
    kind, before, together, exposures, then, and weight, its share of the strip. A budget has for each purpose and unit the least and
    the most of a lifetime.
    """
    groups: dict[str, list[Folder]] = {}
    for folder in study.folders:
        groups.setdefault(folder.fingerprint or f"folder {folder.label}", []).append(folder)
    found = [_curriculum(study, folders) for folders in groups.values()]
    _measure([strip for curriculum in found for strip in curriculum["strips"]])
    return found


def _measure(strips: Sequence[Record]) -> None:
    """Give each strip its ``share`` of the longest, where all learn in one unit."""
    units = {
        e["unit"]
        for strip in strips
        for b in strip["blocks"]
        if b["kind"] == "learn"
        for e in b["exposures"]
    }
    totals = [sum(b["weight"] for b in strip["blocks"]) for strip in strips]
    for strip, total in zip(strips, totals, strict=True):
        strip["share"] = total / max(totals) if len(units) == 1 else 1.0


def _curriculum(study: Study, folders: Sequence[Folder]) -> Record:
    first = folders[0]
    labels = [f.label for f in folders]
    names = [n for n, life in study.by_name.items() if life.folder in labels]
    stored = first.curriculum
    planned = bool(stored.get("blocks") or stored.get("before")) and not stored.get("generated")
    found = _plans(study, names) if planned else _went(study, names)
    strips = [
        {"label": _label(study, own, names, place, planned) if len(found) > 1 else "",
         "blocks": blocks}
        for place, (own, blocks, _) in enumerate(found)
    ]  # fmt: skip
    return {
        "name": first.name, "fingerprint": first.fingerprint, "folders": labels,
        "generated": bool(stored.get("generated")), "strips": strips[:STRIPS],
        "more": max(len(strips) - STRIPS, 0),
        "budget": _ranges([amounts for _, _, taken in found for amounts in taken]),
    }  # fmt: skip


Way = tuple[list[str], list[Record], list[Amounts]]
"""Lifetimes that went one way, its blocks, and what they took."""


def _plans(study: Study, names: Sequence[str]) -> list[Way]:
    """The different stored curricula: orders of tasks may differ from seed to seed."""
    ways: dict[str, Way] = {}
    seen: dict[int, str] = {}
    for name in names:
        curriculum = study.by_name[name].curriculum
        if not curriculum:
            continue
        if id(curriculum) not in seen:
            blocks = _planned(curriculum)
            key = seen[id(curriculum)] = str(blocks)
            ways.setdefault(key, ([], blocks, [_amounts(blocks)]))
        ways[seen[id(curriculum)]][0].append(name)
    return list(ways.values())


def _went(study: Study, names: Sequence[str]) -> list[Way]:
    """What the lifetimes went through, where no plan is stored."""
    out: list[Way] = []
    for schedule in study.schedules:
        own = [n for n in schedule.names if n in names]
        if own:
            blocks = [_block(study, schedule, i) for i in range(len(schedule.spans))]
            blocks = _weighed(blocks, [s.amount for s in schedule.spans])
            ended = [n for n in own if study.timelines[n].ended] or own
            out.append((own, blocks, [_taken(study.timelines[n]) for n in ended]))
    return out


def _label(
    study: Study, own: Sequence[str], names: Sequence[str], place: int, planned: bool
) -> str:
    """Which lifetimes a strip is of."""
    agents = list(dict.fromkeys(study.by_name[n].agent for n in own))
    every = {study.by_name[n].agent for n in names}
    words = [f"Order {place + 1}" if planned else f"Way {place + 1}"]
    words += [", ".join(agents)] if len(agents) < len(every) else []
    seeds = sorted({s for n in own if (s := study.by_name[n].seed) is not None})
    if 0 < len(seeds) <= 8:
        words.append(f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}")
    return " · ".join([*words, f"n = {len(own)}"])


def _planned(curriculum: Mapping[str, Any]) -> list[Record]:
    """The blocks of a stored curriculum."""
    blocks: list[Record] = [
        {
            "block": number, "kind": b.kind, "before": b.before, "parallel": b.parallel,
            "exposures": _exposures(b.exposures), "then": _exposures(b.then),
        }
        for number, b in enumerate(stored_blocks(curriculum))
    ]  # fmt: skip
    units = {e["unit"] for b in blocks if b["kind"] == "learn" for e in b["exposures"]}
    amounts = [
        float(sum(e["amount"] for e in b["exposures"]) if len(units) == 1 else 1)
        if b["kind"] == "learn"
        else 0.0
        for b in blocks
    ]
    return _weighed(blocks, amounts)


def _exposures(exposures: Iterable[StoredExposure]) -> list[Record]:
    return [{"task": e.task, "amount": e.amount, "unit": e.unit} for e in exposures]


def _weighed(blocks: list[Record], amounts: Sequence[float]) -> list[Record]:
    learned = sum(amounts) or 1.0
    others = max(sum(a == 0 for a in amounts), 1)
    each = learned * min(EVALUATION, EVALUATIONS / others)
    return [b | {"weight": a or each} for b, a in zip(blocks, amounts, strict=True)]


def _block(study: Study, schedule: Schedule, i: int) -> Record:
    """A block with the amounts of the schedule's first lifetime that came so far."""
    timeline = next(w for n in schedule.names if len((w := study.timelines[n]).rows) > i)
    summary, rows, history = schedule.spans[i].summary, timeline.rows[i], timeline.history
    parts: dict[bool, list[Record]] = {True: [], False: []}
    for learning, exposures in parts.items():
        for task in summary.tasks:
            own = rows[history.task[rows] == history.tasks.index(task)]
            own = own[history.learning[own] == learning]
            amount = int(history.steps[own].sum()) if learning else len(own)
            if len(own):
                unit = "steps" if learning else "experiences"
                exposures.append({"task": task, "amount": amount, "unit": unit})
    return {
        "block": summary.block, "kind": summary.kind, "before": summary.before, "parallel": False,
        "exposures": parts[summary.kind != "eval"], "then": parts[False] if summary.kind == "adapt" else [],
    }  # fmt: skip


def _amounts(blocks: Sequence[Record]) -> Amounts:
    """What a plan asks for."""
    totals: Counter[tuple[str, str]] = Counter()
    for block in blocks:
        what = "evaluation" if block["kind"] == "eval" else "learning"
        for e in block["exposures"]:
            totals[(what, e["unit"])] += e["amount"]
        for e in block["then"]:
            totals[("evaluation", e["unit"])] += e["amount"]
    return totals


def _taken(timeline: Timeline) -> Amounts:
    """What a lifetime took."""
    learning = timeline.history.learning
    return {
        ("learning", "steps"): int(timeline.history.steps[learning].sum()),
        ("evaluation", "experiences"): int((~learning).sum()),
    }


def _ranges(found: Sequence[Amounts]) -> list[Record]:
    """The least and the most of each amount, learning first."""
    keys = dict.fromkeys(key for amounts in found for key in amounts)
    out = []
    for what, unit in sorted(keys, key=lambda key: key[0] != "learning"):
        values = [amounts[what, unit] for amounts in found if (what, unit) in amounts]
        out.append({"for": what, "unit": unit, "amount": [min(values), max(values)]})
    return out


def joined(budgets: Sequence[Sequence[Record]]) -> list[Record]:
    """Several budgets as one: the least and the most of any."""
    each = [
        {(b["for"], b["unit"]): b["amount"][end] for b in budget}
        for budget in budgets
        for end in (0, 1)
    ]
    return _ranges(each)
