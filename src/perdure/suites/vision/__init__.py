"""Continual image classification: the classics, and data of one's own.

==================  ===============================================================  ===========
task                what                                                             classes
==================  ===============================================================  ===========
digits              scikit-learn's 1,797 handwritten digits of 8 × 8, as 64 numbers  10
mnist               70,000 handwritten digits of 28 × 28, as 784 numbers             10
fashion-mnist       70,000 clothes of 28 × 28, as 784 numbers                        10
cifar10, cifar100   60,000 pictures of 32 × 32 in colour                             10, 100
core50              fifty objects in eleven sessions, as 32 × 32 in colour           50
==================  ===============================================================  ===========

All but the digits are read from files that you have: in the folder ``root``, else in one of the task's
name in ``$PERDURE_DATA``. Any of them takes the parameters of
``perdure.suites.vision.labelled.Labelled``: ``permutation=k`` puts the pixels into another order,
``rotation`` turns them by degrees, ``classes`` keeps some. Your own arrays, datasets and folders of
pictures become tasks by one call: ``perdure.suites.vision.own``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.errors import SpecError
from perdure.specs import call_with
from perdure.suite import Data, Suite
from perdure.suites.vision import protocols, sources
from perdure.suites.vision.labelled import Labelled
from perdure.types import Curriculum, Task


class VisionSuite(Suite):
    """Continual image classification."""

    name = "vision"

    def tasks(self) -> Sequence[Task]:
        return [
            Task("vision", "digits"),
            protocols.permuted(1),
            protocols.rotated(90),
            protocols.split((0, 1), "class"),
            protocols.split((0, 1), "domain"),
            *(Task("vision", name) for name in sources.SOURCES if _is_here(name)),
        ]

    def task(self, name: str) -> Task:
        if name in sources.SOURCES:
            return Task("vision", name)
        return super().task(name)

    def about(self, task: Task) -> str:
        return sources.SOURCES[task.name].about

    def data(self, task: Task, learning: bool) -> Data:
        return self._labelled(task, learning)

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        data = self._labelled(task, True)
        found = sources.pictures(task.name, task.params.get("root"))
        kind: Any = found.train.dtype
        low, high = found.low, found.high
        if data.flat and kind == np.uint8:
            low, high, kind = 0.0, 1.0, np.dtype(np.float32)
        return spaces.Box(low, high, data.shape, kind.type), spaces.Discrete(data.n_classes)

    def _labelled(self, task: Task, learning: bool) -> Labelled:
        params = {k: v for k, v in task.params.items() if k not in ("root", "data")}
        found = sources.pictures(task.name, task.params.get("root"))
        what = f"task {task.id}"
        data: Labelled = call_with(what, Labelled, f"vision/{task.name}", found, learning, **params)
        return data

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return protocols.CURRICULA


def _is_here(name: str) -> bool:
    """Whether a set's files are on this machine, so that its task can be checked."""
    if not sources.SOURCES[name].expects:
        return False
    try:
        return sources.folder(name).is_dir()
    except SpecError:
        return False


suite = VisionSuite()
