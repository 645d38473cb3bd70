"""Demonstrations on disk: one HDF5 file a task, in the layout of robomimic and LIBERO.

``data/demo_k`` holds ``actions``, ``states``, ``robot_states``, ``rewards``, ``dones`` and ``obs/…``, an
array each with a row a step; attributes say how many samples there are, and which initial state.
Ours also have a digest of their contents, so that damage is found; files of others are read without, and
their arrays compared by length.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.errors import CurriculumError, EnvironmentFault
from perdure.names import split_task_id
from perdure.registry import extras_named
from perdure.suite import Demonstration
from perdure.types import Array, Task

if TYPE_CHECKING:
    import h5py

DIGEST = "sha256"
SUFFIX = "_demo.hdf5"


def h5() -> Any:
    """h5py, or an error that names the extra which brings it."""
    with extras_named("demonstrations"):
        import h5py
    return h5py


def digest(arrays: Mapping[str, Array]) -> str:
    """Of names, shapes, kinds and contents."""
    made = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        made.update(f"{name} {array.dtype.str} {array.shape};".encode())
        made.update(array.tobytes())
    return made.hexdigest()


def write_one(path: Path, shown: Demonstration) -> None:
    """A file with a single demonstration, whole or not at all."""
    beside = path.with_name(f"_{path.name}.{os.getpid()}")
    with h5().File(beside, "w") as file:
        put(file.create_group("demo"), shown)
    _move(beside, path)


def put(group: h5py.Group, shown: Demonstration) -> None:
    """Write a demonstration into a group."""
    for name, array in shown.arrays.items():
        packed = {"compression": "gzip", "compression_opts": 1} if array.ndim > 2 else {}
        group.create_dataset(name, data=array, **packed)
    for name, value in shown.attributes.items():
        group.attrs[name] = value
    group.attrs["num_samples"] = len(shown.arrays["actions"])
    group.attrs[DIGEST] = digest(shown.arrays)


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
        except (OSError, KeyError, ValueError) as e:
            raise EnvironmentFault(
                f"{path} is damaged or no file of demonstrations ({e}); remove it and make it again by "
                "perdure demos"
            ) from e
        said = self.data.attrs.get("num_demos")
        if said is not None and int(said) != len(self.names):
            raise EnvironmentFault(f"{path}: expected {said} demonstrations, got {len(self.names)}")

    def check(self) -> None:
        """Read everything; refuse what is not as it was written."""
        for name in self.names:
            try:
                shown = self.read(name)
            except OSError as e:
                raise EnvironmentFault(f"{self.path}: {name} cannot be read: {e}") from e
            said = shown.attributes.get(DIGEST)
            if said is not None and said != digest(shown.arrays):
                raise EnvironmentFault(f"{self.path}: {name} is not as it was written (its digest)")
            steps = len(shown.arrays["actions"])
            for what, array in shown.arrays.items():
                if len(array) != steps:
                    raise EnvironmentFault(
                        f"{self.path}: {name} has {steps} actions, but {len(array)} rows of {what}"
                    )
                if array.dtype.kind == "f" and not np.isfinite(array).all():
                    raise EnvironmentFault(f"{self.path}: {what} of {name} is not finite")
            if int(shown.attributes.get("num_samples", steps)) != steps:
                raise EnvironmentFault(
                    f"{self.path}: {name} does not have as many steps as it says"
                )

    @property
    def has_digests(self) -> bool:
        """Whether damage would be found: files of others do not have them."""
        return all(DIGEST in self.data[name].attrs for name in self.names)

    def fingerprint(self) -> str:
        """What tells this file from one of other demonstrations, from what each says of itself."""
        said = [
            (n, dict(self.data[n].attrs).get(DIGEST), k)
            for n, k in zip(self.names, self.lengths, strict=True)
        ]
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
        group = self.data[name]
        return Demonstration({k: group[k][()] for k in _datasets(group)}, dict(group.attrs))

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


class HeldArrays:
    """Arrays that are costly to make, held as long as there is room: what was not asked for longest goes
    first, and is made again when it is needed. What is held must not be changed."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self._held: OrderedDict[Hashable, dict[str, Array]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
        """The arrays of a key, made if they are not held."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        made = make()
        with self._lock:
            if key not in self._held:
                self._held[key] = made
                self.bytes += _size(made)
            while self.bytes > self.most_bytes and len(self._held) > 1:
                self.bytes -= _size(self._held.popitem(last=False)[1])
        return made


def _size(arrays: Mapping[str, Array]) -> int:
    return sum(a.nbytes for a in arrays.values())


def _datasets(group: h5py.Group, head: str = "") -> Iterator[str]:
    for name, item in group.items():
        if hasattr(item, "shape"):
            yield head + name
        else:
            yield from _datasets(item, f"{head}{name}/")


def windows(lengths: Iterable[int], length: int) -> Array:
    """Where each sequence begins: demonstration and step. One begins at every step, and what would
    reach beyond the end repeats the last step."""
    return np.concatenate(
        [np.column_stack([np.full(n, k), np.arange(n)]) for k, n in enumerate(lengths)]
        or [np.zeros((0, 2), int)]
    ).astype(np.int64)
