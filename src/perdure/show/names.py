"""What tasks and metrics are called where there is little room."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.names import join_task_id, split_task_id

MIXED = " (mixed code)"
"""Behind the name of an agent whose lifetimes ran different code."""
REFERENCE = " (reference)"
"""Behind the name of an agent that acts at random."""
ARROWS = {"higher": "↑", "lower": "↓"}
"""Behind a metric's name: which way is better."""


def task_labels(tasks: Sequence[str]) -> dict[str, str]:
    """Task ids without what all have in common: the suite, and of variants of one task its name."""
    split = {t: split_task_id(t) for t in tasks}
    suites = {suite for suite, _, _ in split.values()}
    if len(suites) > 1:
        return {t: t for t in tasks}
    names = {name for _, name, _ in split.values()}
    if len(names) == 1 and len(split) > 1 and all(variant for _, _, variant in split.values()):
        return {t: variant for t, (_, _, variant) in split.items()}
    return {t: join_task_id("", name, variant) for t, (_, name, variant) in split.items()}
