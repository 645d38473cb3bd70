"""The 130 official task files as data of this package, so that tasks need no other.

``problems.json`` holds what :mod:`perdure.suites.libero.bddl` reads from the published files (MIT
licence, Copyright 2023 the LIBERO authors): the scenes, each once, and for every task its scene, its
sentence and its goal. ``scripts/libero_problems.py`` writes it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.suites.libero import bddl
from perdure.suites.libero.folders import FolderTask
from perdure.suites.libero.problem import Problem, Rectangle, Region, Relation, Thing

if TYPE_CHECKING:
    from perdure.suites.libero.tasks import Official

FILE = Path(__file__).parent / "problems.json"


@functools.cache
def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(FILE.read_text())
    return stored


@functools.lru_cache(maxsize=256)
def problem_of(task: Official | FolderTask) -> Problem:
    """What a task's file says: an official one, or one of a folder."""
    if isinstance(task, FolderTask):
        return bddl.read(task.path)
    return official(task.folder, task.file)


@functools.cache
def official(folder: str, file: str) -> Problem:
    """The task that the published file of this name describes."""
    number, language, of_interest, goal = _stored()["tasks"][f"{folder}/{file}"]
    scene = _stored()["scenes"][number]
    return Problem(
        name=scene["name"],
        language=language,
        regions=tuple(_region(*r) for r in scene["regions"]),
        fixtures=tuple(Thing(*t) for t in scene["fixtures"]),
        objects=tuple(Thing(*t) for t in scene["objects"]),
        of_interest=tuple(of_interest),
        init=tuple(_relation(r) for r in scene["init"]),
        goal=tuple(_relation(r) for r in goal),
    )


def _region(name: str, target: str, ranges: Any, yaw: Any, rgba: Any) -> Region:
    return Region(
        name,
        target,
        tuple(Rectangle(*r) for r in ranges),
        None if yaw is None else tuple(yaw),
        None if rgba is None else tuple(rgba),
    )


def _relation(words: list[str]) -> Relation:
    return Relation(words[0], tuple(words[1:]))


def packed(problems: Mapping[str, Problem]) -> str:
    """The file's text, for problems by ``folder/file``."""
    scenes: list[str] = []
    tasks: list[str] = []
    for name, problem in problems.items():
        scene = _dump(
            {
                "name": problem.name,
                "fixtures": [[t.name, t.category] for t in problem.fixtures],
                "objects": [[t.name, t.category] for t in problem.objects],
                "init": [[r.predicate, *r.names] for r in problem.init],
                "regions": [
                    [r.name, r.target, [[s.x0, s.y0, s.x1, s.y1] for s in r.ranges], r.yaw, r.rgba]
                    for r in problem.regions
                ],
            }
        )
        if scene not in scenes:
            scenes.append(scene)
        goal = [[r.predicate, *r.names] for r in problem.goal]
        task = [scenes.index(scene), problem.language, problem.of_interest, goal]
        tasks.append(f"{json.dumps(name)}:{_dump(task)}")
    return '{"scenes":[\n' + ",\n".join(scenes) + '\n],"tasks":{\n' + ",\n".join(tasks) + "\n}}\n"


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
