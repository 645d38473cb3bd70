"""Names that are safe as parts of a path and on a terminal, and some of them in a sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256

from perdure.errors import NameRefused

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+:~ -]*")
MAX_NAME = 100


def check_name(kind: str, name: object) -> str:
    """``name`` itself if it is safe as part of a path and on a terminal, else NameRefused.

    Parts are separated by ``/``; each starts with a letter or digit, so ``..``, absolute paths,
    hidden files, NUL and escape sequences cannot pass.
    """
    if not isinstance(name, str) or not name:
        raise NameRefused(f"{kind} name must be a non-empty string, got {name!r}")
    if len(name) > MAX_NAME:
        raise NameRefused(f"{kind} name of {len(name)} characters: at most {MAX_NAME} allowed")
    for part in name.split("/"):
        if not _PART.fullmatch(part):
            raise NameRefused(
                f"{kind} name {name!r} refused: each part must start with a letter or digit and "
                "hold only letters, digits, spaces and . _ + : ~ -"
            )
    return name


def join_task_id(suite: str, name: str, variant: str = "") -> str:
    """``suite/name`` or ``suite/name@variant``. Without a suite, the part that its suite knows a task
    by; or ``name`` has the suite in it, as in rows."""
    base = f"{suite}/{name}" if suite else name
    return f"{base}@{variant}" if variant else base


def split_task_id(task: str) -> tuple[str, str, str]:
    """Suite, name and variant of a task's id; empty where it has none, as in logs of others."""
    rest, _, variant = task.partition("@")
    suite, slash, name = rest.partition("/")
    return (suite, name, variant) if slash else ("", rest, variant)


def without_variant(task: str) -> str:
    """The id of the task that a variant is of."""
    return task.partition("@")[0]


def plain_task_id(task: str) -> str:
    """A task's id without the sign before its variant, which no name of a curriculum or file holds."""
    return task.replace("@", "~")


def task_slug(task: str) -> str:
    """A task's id as part of a file's name: ``toy/goal@ne`` becomes ``toy--goal~ne``."""
    return slug(plain_task_id(task))


def task_folders(tasks: Iterable[str]) -> dict[str, str]:
    """A folder's name for each of some tasks. Those whose slugs are the same (``goal@a b`` and
    ``goal@a_b``) get a digest of their ids behind them, whatever order they come in."""
    slugs = {task: task_slug(task) for task in tasks}
    shared = Counter(s.lower() for s in slugs.values())  # Some disks do not tell A from a.
    return {t: _distinct_slug(t) if shared[s.lower()] > 1 else s for t, s in slugs.items()}


def _distinct_slug(task: str) -> str:
    return f"{task_slug(task)}-{sha256(task.encode()).hexdigest()[:8]}"


def is_task_folder(folder: str, task: str) -> bool:
    """Whether :func:`task_folders` gives a task this folder's name, beside whatever other tasks."""
    try:
        return folder in (task_slug(task), _distinct_slug(task))
    except NameRefused:
        return False  # Nothing of it can be planned.


def slug(name: str) -> str:
    """A checked name as one folder name: ``toy/goal-ne`` becomes ``toy--goal-ne``."""
    return check_name("folder", name).replace("/", "--").replace(" ", "_").replace(":", "-")


def listed(tasks: Sequence[str]) -> str:
    """Tasks in a sentence: ``a``, ``a and b``, ``a, b and c``; of more, how many."""
    if len(tasks) > 3:
        return f"{len(tasks)} tasks"
    return " and ".join(filter(None, (", ".join(tasks[:-1]), *tasks[-1:])))
