"""Scikit-learn's handwritten digits: all, some classes, permuted or rotated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from perdure.errors import CurriculumError, MissingExtra
from perdure.seeds import rng_for
from perdure.types import Array, Examples

SIDE, PIXELS, CLASSES = 8, 64, 10
TEST_SHARE = 5
"""One image in so many is held out, the same ones always."""


@cache
def load() -> tuple[Array, Array]:
    """Images in [0, 1] and their labels, in an order that is always the same."""
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as e:
        raise MissingExtra("vision/digits", "vision") from e
    images, labels = load_digits(return_X_y=True)
    order = rng_for(0, "vision", "digits").permutation(len(labels))
    return (images[order] / 16).astype(np.float32), labels[order].astype(np.int64)


def rotate(images: Array, degrees: float) -> Array:
    """Images turned counter-clockwise around their middle, by linear interpolation."""
    from scipy import ndimage

    squares = images.reshape(-1, SIDE, SIDE)
    turned = ndimage.rotate(squares, degrees, axes=(2, 1), reshape=False, order=1)
    flat: Array = np.clip(turned, 0, 1).reshape(len(images), PIXELS).astype(np.float32)
    return flat


class Digits:
    """Training or held-out digits.

    ``permutation`` k > 0 puts the pixels into the k-th other order, ``rotation`` turns them,
    ``classes`` keeps some digits. Their labels are the digits' own, or with ``relabel`` their places
    in ``classes``, so that tasks share the labels 0, 1, ….
    """

    def __init__(
        self,
        learning: bool,
        permutation: int = 0,
        rotation: float = 0.0,
        classes: Sequence[int] = tuple(range(CLASSES)),
        relabel: bool = False,
        batch_size: int = 32,
    ) -> None:
        kept = [int(c) for c in classes]
        if not kept or len(set(kept)) < len(kept) or not set(kept) <= set(range(CLASSES)):
            raise CurriculumError(
                f"vision/digits: classes are distinct digits from 0 to 9, got {list(classes)}"
            )
        if batch_size < 1:
            raise CurriculumError(f"vision/digits: batch_size must be at least 1, got {batch_size}")
        images, labels = load()
        held_out = np.arange(len(labels)) % TEST_SHARE == 0
        mine = (held_out != learning) & np.isin(labels, kept)
        images, labels = images[mine], labels[mine]
        if rotation:
            images = rotate(images, rotation)
        if permutation:
            order = rng_for(0, "vision", "permutation", permutation).permutation(PIXELS)
            images = images[:, order]
        if relabel:
            places = np.zeros(CLASSES, np.int64)
            places[kept] = np.arange(len(kept))
            labels = places[labels]
        self.inputs, self.targets, self.batch_size = images, labels, batch_size
        self.n_classes = len(kept) if relabel else CLASSES

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, indices: Array) -> Examples:
        """The digits at these indices."""
        return Examples(self.inputs[indices], self.targets[indices])
