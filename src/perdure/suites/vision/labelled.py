"""The data of a task: all pictures of a set, or some classes, permuted or rotated."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from perdure.errors import CurriculumError
from perdure.seeds import rng_for
from perdure.suites.vision.pictures import PictureSet
from perdure.types import Array, Examples

AT_ONCE = 64 * 2**20
"""Bytes up to which a task's pictures are made once and kept; more are made as they are asked for."""


def rotate(pictures: Array, degrees: float) -> Array:
    """Pictures turned counter-clockwise around their middle, by linear interpolation."""
    from scipy import ndimage

    highest = 255 if pictures.dtype == np.uint8 else pictures.max(initial=1)
    turned = ndimage.rotate(
        pictures.astype(np.float32), degrees, axes=(2, 1), reshape=False, order=1
    )
    clipped: Array = np.clip(turned, min(pictures.min(initial=0), 0), highest)
    return (clipped.round() if pictures.dtype == np.uint8 else clipped).astype(pictures.dtype)


class Labelled:
    """Training or held-out pictures of a task.

    ``permutation`` k > 0 puts the pixels into the k-th other order, ``rotation`` turns them,
    ``classes`` keeps some; ``group`` learns from those of one group. Their labels are the classes' own, or with ``relabel`` their places in
    ``classes``, so that tasks share the labels 0, 1, …; ``offset`` is added to them, where tasks are to
    have labels of their own, and ``labels`` is how many there are in all. ``random_labels`` k > 0 gives
    each picture the k-th random label, which can be memorised and nothing else: what is evaluated are then
    the training pictures. ``flat`` shows a picture as a
    row of numbers.
    """

    def __init__(
        self,
        what: str,
        found: PictureSet,
        learning: bool,
        permutation: int = 0,
        rotation: float = 0.0,
        classes: Sequence[int] | None = None,
        group: int | None = None,
        relabel: bool = False,
        offset: int = 0,
        labels: int = 0,
        random_labels: int = 0,
        flat: bool | None = None,
        batch_size: int = 32,
    ) -> None:
        kept = list(range(found.classes)) if classes is None else [int(c) for c in classes]
        if not kept or len(set(kept)) < len(kept) or not set(kept) <= set(range(found.classes)):
            raise CurriculumError(
                f"{what}: classes are distinct numbers from 0 to {found.classes - 1}, got {list(kept)}"
            )
        if batch_size < 1:
            raise CurriculumError(f"{what}: batch_size must be at least 1, got {batch_size}")
        pictures = found.train if learning or random_labels else found.test
        mine = np.isin(pictures.labels, kept)
        if group is not None and learning:
            mine &= pictures.groups == group if pictures.groups is not None else False
        self.pictures = pictures.of(np.flatnonzero(mine))
        if not len(self.pictures):
            part = "training" if learning else "held-out"
            of = "" if group is None else f" in group {group}"
            raise CurriculumError(f"{what}: there is no {part} picture of classes {kept}{of}")
        self.rotation, self.batch_size = rotation, batch_size
        if rotation and len(pictures.shape) < 2:
            raise CurriculumError(f"{what}: rows of {pictures.shape} numbers cannot be turned")
        self.flat = found.flat if flat is None else flat
        self.targets = self.pictures.labels
        if relabel:
            places = np.zeros(found.classes, np.int64)
            places[kept] = np.arange(len(kept))
            self.targets = places[self.targets]
        if random_labels:
            drawn = rng_for(0, "vision", "labels", random_labels)
            self.targets = drawn.permutation(self.targets)
        self.targets = self.targets + offset
        own = len(kept) if relabel else found.classes
        self.n_classes = labels or own + offset
        if own + offset > self.n_classes:
            raise CurriculumError(f"{what}: {own} labels from {offset} on are more than {labels}")
        self._order: Array | None = None
        if permutation:
            pixels = prod(pictures.shape[:2]) if len(pictures.shape) > 1 else pictures.shape[0]
            self._order = rng_for(0, "vision", "permutation", permutation).permutation(pixels)
        self._kept: Array | None = None
        width = 4 if self.flat else pictures.dtype.itemsize
        self._keep = learning and len(self) * prod(self.shape) * width <= AT_ONCE

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one picture, as learners see it: flat, or with its channels last."""
        own = self.pictures.shape
        return (prod(own),) if self.flat or len(own) == 1 else own if len(own) == 3 else (*own, 1)

    @property
    def inputs(self) -> Array:
        """All pictures."""
        return self._made(np.arange(len(self))) if self._kept is None else self._kept

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, indices: Array) -> Examples:
        """The pictures at these indices."""
        if self._keep and self._kept is None:
            self._kept = self.inputs
        inputs = self._made(np.asarray(indices)) if self._kept is None else self._kept[indices]
        return Examples(inputs, self.targets[indices])

    def _made(self, numbers: Array) -> Array:
        found = self.pictures.at(numbers)
        if self.rotation:
            found = rotate(found, self.rotation)
        if self._order is not None:
            rest = self.pictures.shape[2:]
            pixels = found.reshape(len(found), len(self._order), *rest)[:, self._order]
            found = pixels.reshape(found.shape)
        if self.flat and found.dtype == np.uint8:
            found = found.astype(np.float32) / 255
        return found.reshape(len(found), *self.shape)
