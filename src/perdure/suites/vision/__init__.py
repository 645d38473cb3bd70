"""Continual image classification: known problems that need no download.

================  =================================================================  ===========
task              what                                                               classes
================  =================================================================  ===========
digits            scikit-learn's 1,797 handwritten digits of 8 × 8, as 64 numbers    10
digits, permuted  the same with the pixels in another order (``permutation=k``)      10
digits, rotated   the same turned by ``rotation`` degrees                            10
digits, split     those of some ``classes``                                          as many
================  =================================================================  ===========
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.specs import call_with
from perdure.suite import Data, Suite
from perdure.suites.vision import protocols
from perdure.suites.vision.digits import PIXELS, Digits
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
        ]

    def data(self, task: Task, learning: bool) -> Data:
        return self._digits(task, learning)

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        classes = self._digits(task, True).n_classes
        return spaces.Box(0, 1, (PIXELS,), np.float32), spaces.Discrete(classes)

    def _digits(self, task: Task, learning: bool) -> Digits:
        if task.name != "digits":
            self.task(task.name)  # It says what is known.
        data: Digits = call_with(f"task {task.id}", Digits, learning, **task.params)
        return data

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return protocols.CURRICULA


suite = VisionSuite()
