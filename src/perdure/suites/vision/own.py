"""Data of one's own as tasks, by one call: arrays, a dataset with an index, or a folder of pictures.

The call makes the data known in the process that runs it, and gives a curriculum. So write it in a file
and run ``file.py:function``: every worker runs the function, and has the data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from perdure.errors import CurriculumError
from perdure.names import check_name
from perdure.specs import checks_keywords
from perdure.suites.vision import files, sources
from perdure.suites.vision.pictures import (
    Pictures,
    PictureSet,
    by_index,
    digest_of,
    held_out,
    in_memory,
)
from perdure.suites.vision.protocols import in_turn, tasks_of
from perdure.types import Curriculum

Way = Literal["split", "permuted", "rotated"]


@checks_keywords
def from_arrays(
    name: str,
    inputs: Any,
    labels: Any,
    test: tuple[Any, Any] | None = None,
    *,
    way: Way = "split",
    tasks: int = 5,
    scenario: str = "class",
    epochs: int = 10,
    classes: Sequence[Sequence[int]] | None = None,
    flat: bool | None = None,
    batch_size: int = 32,
) -> Curriculum:
    """A curriculum of arrays: inputs one below another (pictures with rows, columns and perhaps
    channels, or just numbers) and their labels from 0.

    ``test`` holds inputs and labels to evaluate on; without it one example in five is held out.
    ``way`` makes tasks of them: ``split`` by class into ``tasks`` groups (or into ``classes``, as
    ``[[0, 1], [2, 3]]``), or all classes with their pixels ``permuted`` or the pictures ``rotated``.
    ``scenario`` is task, domain or class: see ``perdure.suites.vision.protocols``. ``flat`` shows
    pictures as rows of numbers. Where the arrays change, the tasks are others: a run is not mixed.
    """
    what = f"from_arrays({name!r})"
    train = in_memory(inputs, labels, what)
    held = in_memory(*test, f"{what}, test") if test is not None else None
    digest = hashlib.sha256()
    for part in (inputs, labels, *(test or ())):
        digest.update(np.ascontiguousarray(part).tobytes())
    params = {"data": digest.hexdigest()[:12], **_shared(flat, batch_size)}
    division = _Division(way, tasks, scenario, epochs, classes)
    return _made(what, name, train, held, division, params)


@checks_keywords
def from_dataset(
    name: str,
    train: Any,
    test: Any = None,
    *,
    way: Way = "split",
    tasks: int = 5,
    scenario: str = "class",
    epochs: int = 10,
    classes: Sequence[Sequence[int]] | None = None,
    flat: bool | None = None,
    batch_size: int = 32,
) -> Curriculum:
    """A curriculum of a dataset with a length and an index that gives (input, label), such as any
    ``torch.utils.data.Dataset``. It is read as it is needed. The rest is as in :func:`from_arrays`;
    whether the data changed is told by all labels and a few inputs."""
    what = f"from_dataset({name!r})"
    found = by_index(train, what)
    held = by_index(test, f"{what}, test") if test is not None else None
    digest = digest_of(found, *((held,) if held is not None else ()))
    params = {"data": digest, **_shared(flat, batch_size)}
    division = _Division(way, tasks, scenario, epochs, classes)
    return _made(what, name, found, held, division, params)


@checks_keywords
def from_folder(
    name: str,
    root: str | Path,
    *,
    size: int = files.SIZE,
    way: Way = "split",
    tasks: int = 5,
    scenario: str = "class",
    epochs: int = 10,
    classes: Sequence[Sequence[int]] | None = None,
    flat: bool | None = None,
    batch_size: int = 32,
) -> Curriculum:
    """A curriculum of a folder that holds a folder of pictures for each class, or such folders in
    ``train`` and ``test``. Classes are numbered by their folders' names; pictures become ``size`` ×
    ``size`` and are read as they are needed. The rest is as in :func:`from_arrays`;
    whether the data changed is told by the files' names and sizes."""
    what = f"from_folder({name!r})"
    found, digest = files.folders(Path(root).expanduser(), name, size)
    params = {"data": digest, **_shared(flat, batch_size)}
    division = _Division(way, tasks, scenario, epochs, classes)
    return _made(what, name, found.train, found.test, division, params)


def _shared(flat: bool | None, batch_size: int) -> dict[str, Any]:
    return {"batch_size": batch_size, **({} if flat is None else {"flat": flat})}


@dataclass(frozen=True)
class _Division:
    """How data become tasks, and for how long each is learned."""

    way: Way
    tasks: int
    scenario: str
    epochs: int
    groups: Sequence[Sequence[int]] | None
    """Of classes, in place of equal ones."""


def _made(
    what: str,
    name: str,
    train: Pictures,
    test: Pictures | None,
    division: _Division,
    params: dict[str, Any],
) -> Curriculum:
    check_name("data", name)
    if test is None:
        train, test = held_out(train, name)
    elif (test.shape, test.dtype) != (train.shape, train.dtype):
        raise CurriculumError(
            f"{what}: inputs to evaluate on are {test.dtype} of {test.shape}, those to learn from "
            f"{train.dtype} of {train.shape}"
        )
    classes = 1 + max(int(train.labels.max()), int(test.labels.max(initial=0)))
    bounds = (0.0, 255.0) if train.dtype == np.uint8 else (-np.inf, np.inf)
    sources.add(name, PictureSet(train, test, classes, *bounds))
    way, scenario = division.way, division.scenario
    made = tasks_of(name, way, classes, division.tasks, scenario, division.groups, **params)
    about = f"{classes} classes of {name}, {way}"
    return in_turn(f"vision/{way}-{name}", made, division.epochs, scenario, about)
