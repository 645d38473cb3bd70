"""A curriculum in words: its blocks and budgets."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from perdure.types import Block, Curriculum, Visibility


def outline(curriculum: Curriculum) -> list[str]:
    """Lines that show every block with its budgets; equal neighbours are shown once."""
    lines = [f"{curriculum.name}  ({curriculum.fingerprint})"]
    if curriculum.about:
        lines.append(f"  {curriculum.about}")
    if curriculum.protocol is not None:
        lines.append(f"  protocol {curriculum.protocol}")
    number = 0
    for _, same in groupby(curriculum.fixed, key=lambda b: str(b.to_json())):
        blocks = list(same)
        last = number + len(blocks) - 1
        span = str(number) if len(blocks) == 1 else f"{number}–{last}"
        before = "  pre-deployment" if last < len(curriculum.before) else ""
        lines.append(f"  block {span:>5}  {_describe(blocks[0])}{before}")
        number += len(blocks)
    if curriculum.generate is not None:
        lines.append("  then blocks generated from the results so far, on these tasks:")
        lines += [f"    {t.id}" for t in curriculum.tasks]
    lines.append("  total " + budget(curriculum))
    return lines


def _describe(block: Block) -> str:
    how = " side by side" if block.parallel else ""
    text = f"{block.kind:5}{how} {', '.join(map(str, block.exposures))}"
    text += _shown(block.visibility)
    if block.then:
        text += f"; then evaluate {', '.join(map(str, block.then))}"
        text += f"{_shown(block.then_visibility)}; then restore"
    return text


def _shown(visibility: Visibility) -> str:
    """What a phase shows or hides otherwise than by default, in words."""
    words = {"rewards": "rewards", "task_ids": "task ids", "instructions": "instructions"}
    told = visibility.to_json()
    parts = [f"{words[name]} {'shown' if shown else 'hidden'}" for name, shown in told.items()]
    return f" ({', '.join(parts)})" if parts else ""


def budget(curriculum: Curriculum) -> str:
    """Learning and evaluation budgets, added up by unit."""
    totals: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for block in curriculum.fixed:
        for phase in block.phases:
            for e in phase.exposures:
                totals[phase.learning][e.unit] += e.amount
    parts = []
    for learning, word in ((True, "learning"), (False, "evaluation")):
        if totals[learning]:
            amounts = " + ".join(f"{n:,} {unit}" for unit, n in totals[learning].items())
            parts.append(f"{word} {amounts}")
    if curriculum.generate is not None:
        parts.append("generated as it goes")
    n = len(curriculum.tasks)
    return f"{n} task{'s' * (n != 1)}; " + "; ".join(parts)
