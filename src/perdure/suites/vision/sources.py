"""Where the pictures of a task's name come from: sets that are known by name, and one's own."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perdure.cache import cache_folder
from perdure.errors import MissingExtra, SpecError, UnknownName
from perdure.suites.vision import files
from perdure.suites.vision.pictures import PictureSet, held_out, in_memory

ROOT = "PERDURE_DATA"
"""Environment variable that names the folder in which the sets' folders are."""


@dataclass(frozen=True)
class DatasetSource:
    """A set that is known by name."""

    about: str
    classes: int
    load: Callable[[Path], PictureSet]
    expects: str
    """What its folder holds; empty where it needs none."""


def _digits(root: Path) -> PictureSet:
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as e:
        raise MissingExtra("vision/digits", "vision") from e
    images, labels = load_digits(return_X_y=True)
    squares = (images / 16).astype(np.float32).reshape(-1, 8, 8)
    train, test = held_out(in_memory(squares, labels, "vision/digits"), "digits")
    return PictureSet(train, test, 10, flat=True)


_IDX = (
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
    "t10k-labels-idx1-ubyte, each perhaps with .gz; or mnist.npz"
)
SOURCES: Mapping[str, DatasetSource] = {
    "digits": DatasetSource("scikit-learn's 1,797 handwritten digits of 8 × 8", 10, _digits, ""),
    "mnist": DatasetSource("MNIST: 70,000 handwritten digits of 28 × 28", 10, files.mnist, _IDX),
    "fashion-mnist": DatasetSource("Fashion-MNIST: 70,000 clothes of 28 × 28", 10, files.mnist, _IDX),
    "cifar10": DatasetSource(
        "CIFAR-10: 60,000 pictures of 32 × 32 in colour", 10, files.cifar10,
        "data_batch_1.bin … data_batch_5.bin and test_batch.bin, the binary version",
    ),
    "cifar100": DatasetSource(
        "CIFAR-100: 60,000 pictures of 32 × 32 in colour", 100, files.cifar100,
        "train.bin and test.bin, the binary version",
    ),
    "core50": DatasetSource(
        "CORe50: 50 objects in 11 sessions", 50, files.core50,
        "s1 … s11, each with o1 … o50 of pictures (core50_128x128)",
    ),
}  # fmt: skip

_own: dict[str, PictureSet] = {}


def add(name: str, found: PictureSet) -> None:
    """Make a set of one's own known by its name, in this process."""
    if name in SOURCES:
        raise SpecError(f"vision/{name} is there already: give your own data another name")
    _own[name] = found


def pictures(name: str, root: str | None = None) -> PictureSet:
    """The set of a name, with the folder of its files where it has some."""
    if name in _own:
        return _own[name]
    if name not in SOURCES:
        raise UnknownName(
            "vision task", name, [*SOURCES, *_own],
            "(data of one's own is known once the Python that makes it has run: run its file.py:function)",
        )  # fmt: skip
    source = SOURCES[name]
    return _loaded(name, str(folder(name, root)) if source.expects else "")


@functools.lru_cache(maxsize=4)
def _loaded(name: str, root: str) -> PictureSet:
    return SOURCES[name].load(Path(root))


def folder(name: str, root: str | None = None) -> Path:
    """Where a set's files are: ``root``, else its folder in $PERDURE_DATA, else in the cache."""
    base = os.environ.get(ROOT)
    named = root or (str(Path(base) / name) if base else "")
    found = Path(named).expanduser() if named else cache_folder("vision", name)
    if not found.is_dir():
        raise SpecError(
            f"vision/{name} is read from files that you have: {SOURCES[name].expects}. Put them into "
            f"{found}, or name their folder as root=FOLDER, or the one above it in ${ROOT}"
        )
    return found
