"""Names as the L2Logger format wants them: of tasks (`<task>_<variant>`, letters and digits, case
ignored), of columns and of moments."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from perdure.names import join_task_id, slug, split_task_id

STANDARD = (
    "block_num", "exp_num", "worker_id", "block_type", "block_subtype", "task_name", "task_params",
    "exp_status", "timestamp",
)  # fmt: skip
STEPS = "episode_step_count"
_START = datetime(2000, 1, 1)
_LONGEST = 60
_PLAIN = "default"
"""The variant of a task that has none."""


def l2_names(ids: Iterable[str]) -> dict[str, str]:
    """A name of the format for each task id: `minigrid/DoorKey@S5` becomes `minigridDoorKey_S5`.

    No two tasks share the part before `_`, and no two ids a name, not even when case is ignored, as
    readers do: where plain names would collide, a digest of the id is added. Whether they collide
    depends on the ids given, so give all of a run's.
    """
    variants: dict[str, list[str]] = {}
    for task, variant in dict.fromkeys(_split(i) for i in ids):
        variants.setdefault(task, []).append(variant)
    bases = _labels(variants)
    return {
        join_task_id("", task, variant): f"{bases[task]}_{label}"
        for task, found in variants.items()
        for variant, label in _labels(found).items()
    }


def _split(task: str) -> tuple[str, str]:
    suite, name, variant = split_task_id(task)
    return join_task_id(suite, name), variant


def _labels(words: Iterable[str]) -> dict[str, str]:
    """A different word of letters and digits for each, whatever the case."""
    plain = {w: re.sub(r"[^0-9a-zA-Z]", "", w)[:_LONGEST] or _PLAIN for w in words}
    times = Counter(p.lower() for p in plain.values())
    taken = {p for p, n in times.items() if n == 1}
    out = {}
    for word, label in sorted(plain.items()):
        if times[label.lower()] > 1:
            digest = hashlib.sha256(word.encode()).hexdigest()
            longer = (label + digest[:n] for n in range(6, len(digest) + 1))
            label = next(c for c in longer if c.lower() not in taken)
            taken.add(label.lower())
        out[word] = label
    return {w: out[w] for w in plain}


def log_folder(agent: str, seed: int | None, expert: str = "") -> Path:
    """Where an export puts a lifetime; ``expert`` is the name of a single-task expert's task.

    One agent's experts are one folder, `ste_logs/<agent>`: what is given to a tool as its experts.
    """
    if expert:
        return Path("ste_logs", slug(agent), f"{slug(expert)}-{seed}")
    return Path("ll_logs", f"{slug(agent)}-{seed}")


def clock(exp: int) -> str:
    """The timestamp of an experience: rows hold no clock, so each takes a microsecond."""
    return (_START + timedelta(microseconds=exp)).strftime("%Y%m%dT%H%M%S.%f")


def column_names(measures: Iterable[str]) -> dict[str, str]:
    """The log's column for each measure: no two the same, and none of the format's own."""
    measures = list(measures)
    taken = {*STANDARD, STEPS, *(["reward"] if "return" in measures else [])}
    out = {}
    for measure in measures:
        name = "reward" if measure == "return" else re.sub(r'[\t\r\n"]', "_", measure)
        while measure != "return" and (name in taken or not name):
            name += "_"
        taken.add(name)
        out[measure] = name
    return out
