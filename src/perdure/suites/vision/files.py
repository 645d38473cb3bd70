"""The files in which the classics come: MNIST's IDX, CIFAR's binary version, CORe50's folders, and
folders of one's own. No pickle is opened."""

from __future__ import annotations

import gzip
import hashlib
import re
import zipfile
from pathlib import Path

import numpy as np

from perdure.errors import CurriculumError
from perdure.suites.vision.pictures import PictureSet, held_out, in_files, in_memory
from perdure.types import Array

SIZE = 32
"""Pixels of a side of pictures that are read from picture files."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm")
CORE50_TEST = (3, 7, 10)
"""The sessions that its authors test on."""


def mnist(root: Path) -> PictureSet:
    """MNIST and what has its form: four IDX files, or one mnist.npz."""
    npz = root / "mnist.npz"
    if npz.is_file():
        try:
            with np.load(npz, allow_pickle=False) as found:
                parts = [found[n] for n in ("x_train", "y_train", "x_test", "y_test")]
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as e:
            raise CurriculumError(f"{npz}: expected x_train, y_train, x_test, y_test: {e}") from e
    else:
        names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
        parts = [idx(_one_of(root, f"{n}-ubyte", f"{n}-ubyte.gz")) for n in names]
    what = str(root)
    train, test = in_memory(parts[0], parts[1], what), in_memory(parts[2], parts[3], what)
    return PictureSet(train, test, 10, high=255, flat=True)


def idx(file: Path) -> Array:
    """An array of bytes in MNIST's format."""
    raw = file.read_bytes()
    if file.suffix == ".gz":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError) as e:
            raise CurriculumError(f"{file} is not a whole gzip file: {e}") from e
    axes = raw[3] if len(raw) > 3 else 0
    shape = tuple(int.from_bytes(raw[4 + 4 * k : 8 + 4 * k], "big") for k in range(axes))
    start = 4 + 4 * axes
    if raw[:3] != b"\0\0\x08" or not axes or len(raw) != start + int(np.prod(shape)):
        raise CurriculumError(f"{file} is not a whole IDX file of bytes")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def cifar10(root: Path) -> PictureSet:
    """The binary version: a label and 3 × 32 × 32 bytes a picture."""
    train = [root / f"data_batch_{k}.bin" for k in range(1, 6)]
    return _cifar(root, train, [root / "test_batch.bin"], 1, 10)


def cifar100(root: Path) -> PictureSet:
    """The binary version: a coarse label, a fine one, and 3 × 32 × 32 bytes a picture."""
    return _cifar(root, [root / "train.bin"], [root / "test.bin"], 2, 100)


def _cifar(
    root: Path, train: list[Path], test: list[Path], labels: int, classes: int
) -> PictureSet:
    made = []
    for parts in (train, test):
        rows = np.concatenate([_records(root, file, labels + 3072) for file in parts])
        colour = rows[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        made.append(in_memory(np.ascontiguousarray(colour), rows[:, labels - 1], str(root)))
    return PictureSet(made[0], made[1], classes, high=255)


def _records(root: Path, file: Path, size: int) -> Array:
    if not file.is_file():
        hint = ""
        if list(root.glob("*batch*")) or (root / "train").is_file() or list(root.glob("*.meta")):
            hint = ": the Python version is a pickle, which may run anything and is not opened; take the binary one"
        raise CurriculumError(f"{file} is not there{hint}")
    raw = np.frombuffer(file.read_bytes(), np.uint8)
    if not len(raw) or len(raw) % size:
        raise CurriculumError(f"{file} is not whole: {len(raw)} bytes are no records of {size}")
    return raw.reshape(-1, size)


def core50(root: Path) -> PictureSet:
    """CORe50's folders s1 … s11, each with o1 … o50. A label is an object; every twentieth frame is
    read, as in its authors' own subsets."""
    train: tuple[list[Path], list[int], list[int]] = ([], [], [])
    test: tuple[list[Path], list[int], list[int]] = ([], [], [])
    for session, files, labels in core50_sessions(root):
        part = test if session in CORE50_TEST else train
        part[0].extend(files)
        part[1].extend(labels)
        part[2].extend([session] * len(files))
    if not train[0] or not test[0]:
        raise CurriculumError(
            f"{root}: expected s1 … s11 with o1 … o50 of pictures, with sessions {CORE50_TEST} to test on"
        )
    made = [in_files(files, labels, SIZE, groups) for files, labels, groups in (train, test)]
    return PictureSet(made[0], made[1], 50, high=255)


def core50_sessions(root: Path, every: int = 20) -> list[tuple[int, list[Path], list[int]]]:
    """Of each session: its number, some of its files, and their objects from 0."""
    out = []
    for folder in _numbered(root, "s"):
        files: list[Path] = []
        labels: list[int] = []
        for thing in _numbered(folder, "o"):
            frames = [f for f in sorted(thing.iterdir()) if f.suffix.lower() in SUFFIXES][::every]
            files += frames
            labels += [int(thing.name[1:]) - 1] * len(frames)
        out.append((int(folder.name[1:]), files, labels))
    return out


def _numbered(root: Path, letter: str) -> list[Path]:
    found = [p for p in root.iterdir() if p.is_dir() and re.fullmatch(rf"{letter}\d+", p.name)]
    return sorted(found, key=lambda p: int(p.name[1:]))


def folders(root: Path, name: str, size: int = SIZE) -> tuple[PictureSet, str]:
    """A folder for each class, or such folders in train and test (or val); and twelve hex digits that
    change with the files' names and sizes."""
    train_in = root / "train"
    test_in = next((root / n for n in ("test", "val") if (root / n).is_dir()), None)
    apart = train_in.is_dir() and test_in is not None
    base = train_in if apart else root
    if not base.is_dir():
        raise CurriculumError(f"{base} is not a folder: expected one with a folder for each class")
    names = sorted(p.name for p in base.iterdir() if p.is_dir() and _pictures_in(p))
    if len(names) < 2:
        raise CurriculumError(
            f"{base}: expected a folder of pictures for each of at least 2 classes, found {len(names)}"
        )
    found, digest = [], hashlib.sha256(f"{size}".encode())
    for where in (base, test_in) if apart else (base,):
        assert where is not None
        files = [(f, k) for k, n in enumerate(names) for f in _pictures_in(where / n)]
        if not files:
            raise CurriculumError(f"{where}: no pictures of {', '.join(names[:5])}")
        found.append(in_files([f for f, _ in files], [k for _, k in files], size))
        listed = [(f.parent.name, f.name, f.stat().st_size) for f, _ in files]
        digest.update(repr(listed).encode())
    train, test = (found[0], found[1]) if apart else held_out(found[0], name)
    return PictureSet(train, test, len(names), high=255), digest.hexdigest()[:12]


def _pictures_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(f for f in folder.iterdir() if f.suffix.lower() in SUFFIXES)


def _one_of(root: Path, *names: str) -> Path:
    for name in names:
        if (root / name).is_file():
            return root / name
    raise CurriculumError(f"{root / names[0]} is not there (nor with .gz)")
