"""A task's frames and labels, ready to be shown to an agent."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perdure.cache import cache_folder
from perdure.errors import CurriculumError, SpecError
from perdure.suites.openloris import cache, labels, layouts
from perdure.suites.openloris import features as embedding
from perdure.suites.openloris.layouts import BATCH, Clip, ClipIndex
from perdure.types import Array, Examples, Task

ROOT = "PERDURE_OPENLORIS"
"""Environment variable that names the data's folder."""
LEVELS = 3
PER_LEVEL = layouts.SEGMENTS // LEVELS
EVALUATED = 256
"""Frames in a batch of evaluation, at most."""
DEFAULTS: Mapping[str, Any] = {
    "root": None, "track": "pixels", "size": 0, "labels": 121, "batch_size": 32, "test": "test",
    "per_clip": 0,
}  # fmt: skip
SIZES: Mapping[str, int] = {"pixels": 32, "features": embedding.SIZE}
"""The tracks, and the pixels of a side where a task does not say."""


def rendered() -> Path:
    """Where the small rendered set is looked for when nothing else is named."""
    return cache_folder("openloris", "rendered")


def where(root: str | None) -> Path:
    """The data's folder: the task's ``root``, else $PERDURE_OPENLORIS, else the rendered set."""
    named = root or os.environ.get(ROOT)
    if named:
        return Path(named).expanduser()
    if (rendered() / "rendered.json").is_file():
        return rendered()
    raise SpecError(
        "no OpenLORIS data. Make a small rendered set (about 15 minutes, 0.8 GB) with\n"
        "  python -m perdure.suites.openloris render\n"
        "or put the real one (Kaggle: zhedamai/openlorisobject, about 18 GB; the authors' own "
        f"download is gone) into a folder and name it in the environment variable {ROOT} or as "
        "the parameter root"
    )


@functools.lru_cache(maxsize=8)
def _index(root: Path) -> ClipIndex:
    return layouts.load(root)


class Frames:
    """Frames of some segments with their labels, as pixels or as features. Pictures are decoded when
    they are first asked for."""

    def __init__(
        self,
        root: Path,
        parts: Sequence[Sequence[str]],
        targets: Array,
        track: str,
        size: int,
        batch_size: int,
    ) -> None:
        self.root, self.parts, self.targets = root, parts, targets
        self.track, self.size, self.batch_size = track, size, batch_size
        self._ends = np.cumsum([len(p) for p in parts])

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def files(self) -> list[str]:
        """Paths below the root, in the order of the indices: time runs forward in each clip."""
        return [f for part in self.parts for f in part]

    @functools.cached_property
    def arrays(self) -> list[Array]:
        """One array a segment, from the cache or made now."""
        make = embedding.features if self.track == "features" else cache.frames
        return [make(self.root, part, self.size) for part in self.parts]

    def batch(self, indices: Array) -> Examples:
        """The frames at these indices."""
        first = self.arrays[0]
        out = np.empty((len(indices), *first.shape[1:]), first.dtype)
        part = np.searchsorted(self._ends, indices, side="right")
        for k in np.unique(part):
            rows = np.flatnonzero(part == k)
            out[rows] = self.arrays[k][indices[rows] - (self._ends[k] - len(self.parts[k]))]
        return Examples(out, self.targets[indices])


def segments(task: Task) -> tuple[int, ...]:
    """The segments of a task: one, or the three of a level."""
    found = re.fullmatch(r"(segment|level)(\d)", task.variant)
    kind, k = (found[1], int(found[2])) if found else ("", 0)
    if kind == "segment" and 1 <= k <= layouts.SEGMENTS:
        return (k,)
    if kind == "level" and 1 <= k <= LEVELS:
        return tuple(range(PER_LEVEL * (k - 1) + 1, PER_LEVEL * k + 1))
    raise CurriculumError(
        f"{task.id}: the variant must be segment1 to segment{layouts.SEGMENTS} or level1 to "
        f"level{LEVELS}"
    )


def parameters(task: Task) -> dict[str, Any]:
    """The task's parameters with defaults filled in, checked."""
    p = {**DEFAULTS, **task.params}
    unknown = sorted(set(p) - set(DEFAULTS))
    if unknown:
        raise CurriculumError(
            f"{task.id}: unknown parameter {unknown[0]!r}; known are {', '.join(DEFAULTS)}"
        )
    if p["track"] not in SIZES:
        raise CurriculumError(
            f"{task.id}: 'track' must be one of {', '.join(SIZES)}, got {p['track']!r}"
        )
    if "size" not in task.params:
        p["size"] = SIZES[p["track"]]
    for name, least in (("size", 1), ("batch_size", 1), ("per_clip", 0)):
        if isinstance(p[name], bool) or not isinstance(p[name], int) or p[name] < least:
            raise CurriculumError(
                f"{task.id}: {name!r} must be a whole number ≥ {least}, got {p[name]!r}"
            )
    if p["labels"] not in labels.SETS:
        raise CurriculumError(
            f"{task.id}: 'labels' must be one of {labels.SETS}, got {p['labels']!r}"
        )
    if (p["labels"] == 51) != (task.name == BATCH):
        raise CurriculumError(
            f"{task.id}: 51 labels belong to the competition's batches, and only to them"
        )
    if p["test"] not in ("test", "validation"):
        raise CurriculumError(
            f"{task.id}: 'test' must be 'test' or 'validation', got {p['test']!r}"
        )
    return p


def frames(task: Task, learning: bool) -> Frames:
    """The task's training frames, or those it is evaluated on."""
    p = parameters(task)
    data = _index(where(p["root"]))
    split = "train" if learning else p["test"]
    parts, targets = [], []
    for segment in segments(task):
        files: list[str] = []
        for clip in data.part(split, task.name, segment):
            chosen = _spread(clip.files, p["per_clip"])
            number = _label(clip, p["labels"])
            if number is not None:
                files += chosen
                targets += [number] * len(chosen)
        if files:
            parts.append(files)
    if not targets:
        raise SpecError(f"{task.id}: no frame of {data.root} is among {p['labels']} labels")
    size = p["batch_size"] if learning else -(-len(targets) // -(-len(targets) // EVALUATED))
    return Frames(data.root, parts, np.array(targets), p["track"], p["size"], size)


def _label(clip: Clip, ways: int) -> int | None:
    """The clip's label; None if the older release does not have the object."""
    if not clip.object:
        if not 0 <= clip.number < ways or ways == 40:
            raise SpecError(
                f"{clip.files[0]} has the number {clip.number} and no object name: it cannot be "
                f"one of {ways} labels"
            )
        return clip.number
    if ways == 69 and clip.object in labels.NAMES[69:]:
        return None
    return labels.label(clip.object, ways)


def _spread(files: tuple[str, ...], most: int) -> tuple[str, ...]:
    """All files, or ``most`` of them evenly over time."""
    if not most or len(files) <= most:
        return files
    return tuple(files[i] for i in np.linspace(0, len(files) - 1, most).astype(int))


def embed_all(root: str | None, size: int, report: Callable[[int, int], None]) -> int:
    """Make the features of all frames, segment by segment; how many frames that are."""
    data = _index(where(root))
    counts = data.counts()
    total, done = sum(counts.values()), 0
    report(done, total)
    for split, factor, k in counts:
        test = "test" if split == "train" else split
        params = {"root": str(data.root), "track": "features", "size": size, "test": test}
        params["labels"] = 51 if factor == BATCH else 121
        task = Task("openloris", factor, f"segment{k}", params)
        done += sum(map(len, frames(task, split == "train").arrays))
        report(done, total)
    return done
