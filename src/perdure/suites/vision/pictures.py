"""Labelled pictures, wherever they are: in arrays, in a dataset with an index, or in files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perdure.errors import CurriculumError, MissingExtra
from perdure.seeds import rng_for
from perdure.types import Array

TEST_SHARE = 5
"""One picture in so many is held out, the same ones always, where nobody says which are."""
COMPARED = 16
"""Inputs that are read to tell data from other data; the first, the last and some between."""


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures by number: bytes, or floats; with rows, columns and perhaps channels, or just numbers."""

    labels: Array
    """Whole numbers from 0."""
    shape: tuple[int, ...]
    at: Callable[[Array], Array]
    """The pictures of some numbers, side by side."""
    dtype: np.dtype[Any]
    groups: Array | None = None
    """Where they come in groups, such as sessions of recording: which one each is of."""

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, numbers: Array) -> Pictures:
        """Some of them."""
        groups = None if self.groups is None else self.groups[numbers]
        at = self.at
        return Pictures(
            self.labels[numbers], self.shape, lambda k: at(numbers[k]), self.dtype, groups
        )


@dataclass(frozen=True, eq=False)
class PictureSet:
    """Training and held-out pictures of the same classes."""

    train: Pictures
    test: Pictures
    classes: int
    low: float = 0.0
    high: float = 1.0
    flat: bool = False
    """Whether learners see them as a row of numbers, unless a task says otherwise."""


def in_memory(inputs: Any, labels: Any, what: str) -> Pictures:
    """Pictures of arrays: the inputs one below another, a label for each."""
    array, answers = np.asarray(inputs), np.asarray(labels)
    if array.ndim < 2 or len(array) != len(answers) or not len(array):
        raise CurriculumError(
            f"{what}: expected one input a label, first axis first; got inputs of shape {array.shape} and "
            f"labels of shape {answers.shape}"
        )
    if array.dtype != np.uint8:
        if array.dtype.kind not in "fiub":
            raise CurriculumError(f"{what}: expected numbers as inputs, got {array.dtype}")
        array = array.astype(np.float32)
        if not np.isfinite(array).all():
            raise CurriculumError(f"{what}: the inputs hold NaN or infinite values")
    return Pictures(checked_labels(answers, what), array.shape[1:], lambda k: array[k], array.dtype)


def digest_of(*parts: Pictures) -> str:
    """Twelve hex digits that tell data from other data without reading all of it: by every label, and
    by a few inputs. Inputs that are another each time they are read, as a random crop makes them, tell
    nothing."""
    made = hashlib.sha256()
    for part in parts:
        made.update(repr((len(part), part.shape, str(part.dtype))).encode())
        made.update(part.labels.tobytes())
        if part.groups is not None:
            made.update(np.asarray(part.groups, np.int64).tobytes())
        spread = np.unique(np.linspace(0, len(part) - 1, COMPARED).astype(int))
        inputs = part.at(spread)
        if np.array_equal(inputs, part.at(spread), equal_nan=inputs.dtype.kind == "f"):
            made.update(inputs.tobytes())
    return made.hexdigest()[:12]


def checked_labels(labels: Array, what: str) -> Array:
    """Labels as whole numbers from 0."""
    if labels.ndim != 1 or labels.dtype.kind not in "iub" or (labels < 0).any():
        raise CurriculumError(
            f"{what}: expected labels as whole numbers from 0, one a picture; got {labels.dtype} of shape "
            f"{labels.shape}"
        )
    return labels.astype(np.int64)


def by_index(dataset: Any, what: str) -> Pictures:
    """Pictures of anything with a length and an index that gives (input, label), as torch's datasets
    do. Nothing is kept of it but the labels."""
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise CurriculumError(
            f"{what}: expected a dataset with a length and an index, got {type(dataset).__name__}"
        )
    labels = checked_labels(np.array(_labels(dataset)), what)
    first = _array(dataset[0][0])
    plain = np.dtype(np.uint8 if first.dtype == np.uint8 else np.float32)

    def at(numbers: Array) -> Array:
        return np.stack([_array(dataset[int(k)][0]).astype(plain) for k in numbers])

    return Pictures(labels, first.shape, at, plain)


def _labels(dataset: Any) -> Sequence[int]:
    """All labels: those that the dataset lists (``targets``, ``labels``), else read one by one."""
    for name in ("targets", "labels"):
        found = getattr(dataset, name, None)
        if found is not None and len(found) == len(dataset):
            return [int(y) for y in found]
    return [int(dataset[k][1]) for k in range(len(dataset))]


def _array(value: Any) -> Array:
    """A tensor, a PIL image or an array as an array."""
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def in_files(
    files: Sequence[Path], labels: Sequence[int], size: int, groups: Sequence[int] | None = None
) -> Pictures:
    """Pictures that are read when they are asked for, ``size`` × ``size`` in colour."""

    def at(numbers: Array) -> Array:
        return np.stack([read_picture(files[int(k)], size) for k in numbers])

    of = None if groups is None else np.array(groups)
    return Pictures(np.array(labels, np.int64), (size, size, 3), at, np.dtype(np.uint8), of)


def read_picture(file: Path, size: int) -> Array:
    """A picture file as bytes, resized."""
    try:
        from PIL import Image
    except ModuleNotFoundError as e:
        raise MissingExtra(f"reading {file.name}", "vision") from e
    try:
        with Image.open(file) as image:
            colour = image.convert("RGB")
            if colour.size != (size, size):
                colour = colour.resize((size, size), Image.Resampling.BILINEAR)
            return np.asarray(colour)
    except OSError as e:
        raise CurriculumError(f"{file} cannot be read as a picture: {e}") from e


def held_out(pictures: Pictures, name: str) -> tuple[Pictures, Pictures]:
    """Training and held-out pictures, in an order that is always the same for a name."""
    order = rng_for(0, "vision", name).permutation(len(pictures))
    out = np.arange(len(order)) % TEST_SHARE == 0
    return pictures.of(order[~out]), pictures.of(order[out])
