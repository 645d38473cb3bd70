"""What tasks are called where there is little room."""

from __future__ import annotations

from collections.abc import Sequence


def task_labels(tasks: Sequence[str]) -> dict[str, str]:
    """Task ids without what all have in common: the suite, and of variants of one task its name."""
    suites = {t.split("/")[0] for t in tasks}
    cut = len(suites) == 1 and all("/" in t for t in tasks)
    labels = {t: t.split("/", 1)[1] if cut else t for t in tasks}
    names = {label.split("@")[0] for label in labels.values()}
    if len(names) == 1 and len(labels) > 1 and all("@" in label for label in labels.values()):
        return {t: label.split("@", 1)[1] for t, label in labels.items()}
    return labels
