"""Folders of task files of one's own: those that ``perdure generate libero`` writes, or any others.

::

    DIR/spatial-s7-000.bddl    a task; its name is the file's
        tasks.json             all of them in order, with digests; without it, every .bddl file is a task
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import CurriculumError, EnvironmentFault, UnknownName
from perdure.names import check_name

INDEX = "tasks.json"
ENDING = ".bddl"


@dataclass(frozen=True)
class FolderTask:
    """A task file in a folder."""

    name: str
    path: Path
    digest: str


def tasks_in(folder: str) -> Mapping[str, FolderTask]:
    """The tasks of a folder by name, in order."""
    root = Path(folder)
    if not root.is_dir():
        raise CurriculumError(f"folder {folder}: expected a folder of task files, there is none")
    # What is in its files is not asked for again while none of them is written.
    with os.scandir(root) as there:
        files = [f for f in there if f.name.endswith((ENDING, INDEX)) and f.is_file()]
        stamps = [(f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files]
    return _tasks_in(root, tuple(sorted(stamps)))


@functools.lru_cache(maxsize=16)
def _tasks_in(root: Path, _: tuple[tuple[str, int, int], ...]) -> Mapping[str, FolderTask]:
    listed = _listed(root)
    names = listed or {p.stem: "" for p in sorted(root.glob(f"*{ENDING}"))}
    if not names:
        raise CurriculumError(
            f"folder {root}: it holds no {ENDING} files (perdure generate libero makes some)"
        )
    found = {}
    for name, wanted in names.items():
        path = root / f"{check_name('task', name)}{ENDING}"
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as e:
            raise EnvironmentFault(
                f"{path}: {INDEX} lists it, but it cannot be read: {e.strerror}"
            ) from e
        if wanted and digest != wanted:
            raise EnvironmentFault(
                f"{path} is not the file that {INDEX} lists: generate the folder again, or remove "
                f"{INDEX} if the change is meant"
            )
        found[name] = FolderTask(name, path, digest)
    return found


def _listed(root: Path) -> dict[str, str]:
    """Names and digests of an index; nothing if there is none."""
    path = root / INDEX
    if not path.is_file():
        return {}
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["tasks"]
        return {str(e["name"]): str(e["sha256"]) for e in entries}
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise EnvironmentFault(f"{path} is no index of task files: {e!r}") from e


def find_in(folder: str, name: str) -> FolderTask:
    """A task of a folder by its name."""
    known = tasks_in(folder)
    if name not in known:
        raise UnknownName(f"task in {folder}", name, known)
    return known[name]
