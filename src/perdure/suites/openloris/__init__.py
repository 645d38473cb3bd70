"""OpenLORIS-Object: recognise 121 household objects while light, occlusion, size and clutter change.

A task is ``openloris/FACTOR@segmentK`` (K = 1 to 9, three a level) or ``openloris/FACTOR@levelL``
(L = 1 to 3, its three segments together), with FACTOR one of illumination, occlusion, pixel and
clutter. The agent sees the whole frame squashed to a square, or features that a network trained on
ImageNet finds in it, and answers with a label.

==========  ==========================  ================================================
parameter   default                     what
==========  ==========================  ================================================
root        $PERDURE_OPENLORIS          the data's folder, in any layout of ``layouts``
track       pixels                      ``pixels``, or ``features``: 1280 of EfficientNet-Lite0
size        32; 128 for features        pixels of a side
labels      121                         121 objects, 40 categories, 69 objects of the older release
batch_size  32                          frames in a training batch
test        test                        what evaluation reads: ``test`` or ``validation``
per_clip    0 (all)                     at most so many frames of an object in a segment
==========  ==========================  ================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.errors import UnknownName
from perdure.suite import Data, Suite
from perdure.suites.openloris import protocols
from perdure.suites.openloris.data import LEVELS, frames, parameters, segments, where
from perdure.suites.openloris.features import HIGHEST, WIDTH
from perdure.suites.openloris.layouts import BATCH, FACTORS, SEGMENTS, ClipIndex, load, missing
from perdure.types import Curriculum, Task

__all__ = ["ClipIndex", "load", "missing", "suite"]


class OpenLorisSuite(Suite):
    """Labelled frames of the real dataset or of a rendered one; frames keep their order in time."""

    name = "openloris"

    def tasks(self) -> Sequence[Task]:
        return [
            Task(self.name, f, v)
            for f in FACTORS
            for v in (
                *(f"segment{k}" for k in range(1, SEGMENTS + 1)),
                *(f"level{k}" for k in range(1, LEVELS + 1)),
            )
        ]

    def about(self, task: Task) -> str:
        part, number = task.variant.rstrip("0123456789"), task.variant.strip(ascii_lowercase)
        of = {"segment": f"segment {number} of {SEGMENTS}", "level": f"level {number} of {LEVELS}"}
        return f"121 objects while {task.name} changes: {of.get(part, task.variant)}"

    def data(self, task: Task, learning: bool) -> Data:
        self._check(task)
        return frames(task, learning)

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        self._check(task)
        p = parameters(task)
        seen: spaces.Box[Any] = spaces.Box(0, 255, (p["size"], p["size"], 3), np.uint8)
        if p["track"] == "features":
            seen = spaces.Box(0, HIGHEST, (WIDTH,), np.float32)
        return seen, spaces.Discrete(p["labels"])

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return protocols.CURRICULA

    def data_folder(self) -> Path | None:
        return where(None)

    def gallery(self, out: Path) -> list[Path]:
        """Contact sheets of all rendered objects, and of every factor and level."""
        from perdure.suites.openloris.rendering.gallery import gallery

        return gallery(out)

    def _check(self, task: Task) -> None:
        if task.name not in (*FACTORS, BATCH):
            raise UnknownName("openloris task", task.name, (*FACTORS, BATCH))
        segments(task)


suite = OpenLorisSuite()
