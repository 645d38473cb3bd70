"""Demonstrations on disk: one HDF5 file a task, in the layout of robomimic and LIBERO.

``data/demo_k`` holds ``actions``, ``states``, ``robot_states``, ``rewards``, ``dones`` and ``obs/…``, an
array each with a row a step; attributes say how many samples there are, and which initial state.
Ours also have two digests of their contents, so that damage is found: of everything, and of all but the
pictures, which is compared whenever they are learned from. Pictures have a checksum each and are packed one by
one, so that a few can be read. Files of others are read without, and their arrays compared by length.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.datasets.hdf5 import (
    DIGEST,
    NUMBERS_DIGEST,
    are_pictures,
    datasets_of,
    digest,
    what_is_wrong,
)
from perdure.errors import CurriculumError, EnvironmentFault
from perdure.names import split_task_id
from perdure.registry import extras_named
from perdure.suite import Demonstration
from perdure.types import Array, Task

if TYPE_CHECKING:
    import h5py

SUFFIX = "_demo.hdf5"
UNREADABLE = (OSError, KeyError, ValueError, RuntimeError)
"""What h5py raises where a file is damaged."""


def h5() -> Any:
    """h5py, or an error that names the extra which brings it."""
    with extras_named("demonstrations"):
        import h5py
    return h5py


def write_one(path: Path, shown: Demonstration) -> None:
    """A file with a single demonstration, whole or not at all."""
    beside = path.with_name(f"_{path.name}.{os.getpid()}")
    with h5().File(beside, "w") as file:
        put(file.create_group("demo"), shown)
    _move(beside, path)


def put(group: h5py.Group, shown: Demonstration) -> None:
    """Write a demonstration into a group."""
    for name, array in shown.arrays.items():
        packed: dict[str, Any] = {}
        if are_pictures(array):
            packed = {"chunks": (1, *array.shape[1:]), "fletcher32": True}
            packed |= {"compression": "gzip", "compression_opts": 1}
        group.create_dataset(name, data=array, **packed)
    for name, value in shown.attributes.items():
        group.attrs[name] = value
    group.attrs["num_samples"] = len(shown.arrays["actions"])
    group.attrs[DIGEST] = digest(shown.arrays)
    numbers = {name: a for name, a in shown.arrays.items() if not are_pictures(a)}
    group.attrs[NUMBERS_DIGEST] = digest(numbers)


def assemble(path: Path, parts: Iterable[Path], attributes: Mapping[str, Any]) -> None:
    """One file of many with one demonstration each, whole or not at all."""
    beside = path.with_name(f"_{path.name}.{os.getpid()}")
    total = 0
    with h5().File(beside, "w") as file:
        data = file.create_group("data")
        for k, part in enumerate(parts):
            with h5().File(part, "r") as one:
                one.copy("demo", data, f"demo_{k}")
            total += int(data[f"demo_{k}"].attrs["num_samples"])
        for name, value in attributes.items():
            data.attrs[name] = value
        data.attrs["num_demos"], data.attrs["total"] = len(data), total
    _move(beside, path)


def _move(beside: Path, path: Path) -> None:
    with beside.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(beside, path)


class DemonstrationFile:
    """One task's file, opened for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise CurriculumError(
                f"{path}: there are no demonstrations; make them by perdure demos"
            )
        try:
            self.file = h5().File(path, "r")
            self.data = self.file["data"]
            self.names = sorted(self.data, key=lambda n: int(n.rpartition("_")[2]))
            self.lengths = [len(self.data[n]["actions"]) for n in self.names]
        except UNREADABLE as e:
            raise self.fault(f"is damaged or no file of demonstrations ({e})") from e
        said = self.data.attrs.get("num_demos")
        if said is not None and int(said) != len(self.names):
            raise self.fault(f"should have {said} demonstrations and has {len(self.names)}")

    def fault(self, what: str) -> EnvironmentFault:
        """An error that says what is wrong with the file."""
        return EnvironmentFault(
            f"{self.path} {what}; remove it and make it again by perdure demos, or fetch it again"
        )

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """What of a demonstration cannot be read within is damaged."""
        try:
            yield
        except UNREADABLE as e:
            raise self.fault(f"is damaged: {name} cannot be read ({e})") from e

    def check(self) -> None:
        """Read everything; refuse what is not as it was written."""
        for name in self.names:
            shown = self.read(name)
            self._refuse(name, shown.arrays, shown.attributes, shown.attributes.get(DIGEST))

    def check_numbers(self) -> None:
        """Read everything but pictures, which is quick; refuse what is not as it was written."""
        for name in self.names:
            arrays, attributes, all_of_it = self._numbers(name)
            said = attributes.get(NUMBERS_DIGEST, attributes.get(DIGEST) if all_of_it else None)
            self._refuse(name, arrays, attributes, said)

    def _numbers(self, name: str) -> tuple[dict[str, Array], dict[str, Any], bool]:
        """All but the pictures of a demonstration, its attributes, and whether it has no pictures."""
        with self.reading(name):
            found = datasets_of(self.data[name])
            arrays = {n: d[()] for n, d in found.items() if not are_pictures(d)}
            return arrays, dict(self.data[name].attrs), len(arrays) == len(found)

    def _refuse(
        self, name: str, arrays: Mapping[str, Array], attributes: Mapping[str, Any], said: Any
    ) -> None:
        with self.reading(name):
            wrong = what_is_wrong(arrays, attributes, said)
        if wrong:
            raise self.fault(f"is damaged: {name} {wrong}")

    @property
    def has_digests(self) -> bool:
        """Whether damage would be found: files of others do not have them."""
        return all(DIGEST in self.data[name].attrs for name in self.names)

    def fingerprint(self) -> str:
        """What tells this file from one of other demonstrations: what each says of itself, and what its numbers
        are. Pictures of files without digests are told by the file's size alone."""
        said = []
        for name in self.names:
            arrays, attributes, _ = self._numbers(name)
            said.append((name, attributes.get(DIGEST), digest(arrays)))
        size = None if self.has_digests else self.path.stat().st_size
        return hashlib.sha256(repr((said, size)).encode()).hexdigest()[:16]

    def task(self) -> Task:
        """Which it is of: ours say it; LIBERO's published files are called as the task's file is."""
        said = self.data.attrs.get("perdure_task")
        if said is None:
            return Task("libero", self.path.name.removesuffix(SUFFIX), params={"look": "official"})
        suite, name, variant = split_task_id(str(said))
        return Task(suite, name, variant, json.loads(self.data.attrs["perdure_params"]))

    def read(self, name: str) -> Demonstration:
        """One demonstration."""
        with self.reading(name):
            demo = self.data[name]
            arrays = {n: dataset[()] for n, dataset in datasets_of(demo).items()}
            return Demonstration(arrays, dict(demo.attrs))

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


def windows(lengths: Iterable[int], length: int) -> Array:
    """Where each sequence begins: demonstration and step. One begins at every step, and what would
    reach beyond the end repeats the last step."""
    return np.concatenate(
        [np.column_stack([np.full(n, k), np.arange(n)]) for k, n in enumerate(lengths)]
        or [np.zeros((0, 2), int)]
    ).astype(np.int64)
