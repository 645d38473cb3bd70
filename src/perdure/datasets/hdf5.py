"""Demonstrations in the HDF5 layout of robomimic and LIBERO as a dataset: one file a task, or folders of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.arrays import Array
from perdure.datasets.episodes import DatasetEpisode
from perdure.errors import StoreError
from perdure.registry import extras_named

if TYPE_CHECKING:
    import h5py

SUFFIX = ".hdf5"
STATES = ("states", "robot_states")
"""What a step has besides its observations."""
DIGEST = "sha256"
"""Attribute of a demonstration: the digest of all its arrays."""
NUMBERS_DIGEST = "sha256_numbers"
"""The digest of all but its pictures, which is cheap enough to be compared whenever they are learned from."""


def hdf5_files(root: Path) -> list[Path]:
    """The files of a folder and of those in it; those of an unfinished collection are none."""
    if root.is_file():
        return [root] if root.suffix == SUFFIX else []
    found = (p.relative_to(root) for p in root.rglob(f"*{SUFFIX}"))
    return sorted(root / p for p in found if not any(n.startswith("_") for n in p.parts))


def digest(arrays: Mapping[str, Array]) -> str:
    """Of names, shapes, kinds and contents."""
    made = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        made.update(f"{name} {array.dtype.str} {array.shape};".encode())
        made.update(array.tobytes())
    return made.hexdigest()


def are_pictures(array: Array | h5py.Dataset) -> bool:
    """Whether an array of steps is of pictures."""
    return len(array.shape) > 2


def datasets_of(demo: h5py.Group) -> dict[str, h5py.Dataset]:
    """Where the arrays of a demonstration are, by name."""
    out: dict[str, h5py.Dataset] = {}
    for name, item in demo.items():
        if hasattr(item, "shape"):
            out[name] = item
        else:
            out |= {f"{name}/{inner}": found for inner, found in datasets_of(item).items()}
    return out


def what_is_wrong(arrays: Mapping[str, Array], attributes: Mapping[str, Any], said: Any) -> str:
    """Why arrays of a demonstration are not to be learned from, empty if they are. ``said`` is their digest
    as it was written, None where there is none."""
    if said is not None and said != digest(arrays):
        return "is not as it was written (its digest)"
    steps = len(arrays["actions"])
    for what, array in arrays.items():
        if len(array) != steps:
            return f"has {steps} actions, but {len(array)} rows of {what}"
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return f"has {what} that are not finite"
    if int(attributes.get("num_samples", steps)) != steps:
        return "does not have as many steps as it says"
    return ""


class Hdf5Reader:
    """Demonstrations on disk, episode by episode. Observations have the names of ``obs/``, beside ``states`` and
    ``robot_states``; pictures are as they are stored, which of LIBERO's is upside down. Where scenes differ, so
    that ``states`` have other lengths, they are left out."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.places: list[tuple[Path, str]] = []
        shapes: dict[str, set[tuple[int, ...]]] = {n: set() for n in STATES}
        for path in hdf5_files(self.root):
            with _opened(path) as file:
                names = sorted(file["data"], key=lambda n: int(n.rpartition("_")[2]))
                for what, known in shapes.items():
                    known |= {
                        file["data"][n][what].shape[1:] for n in names if what in file["data"][n]
                    }
            self.places += [(path, name) for name in names]
        if not self.places:
            raise StoreError(
                f"{self.root}: expected {SUFFIX} files of demonstrations, there are none"
            )

        self.states = [what for what, known in shapes.items() if len(known) == 1]

    @property
    def fps(self) -> int | None:
        """Steps a second, where the first file says it."""
        with _opened(self.places[0][0]) as file:
            told = _arguments(file["data"]).get("env_kwargs", {}).get("control_freq")
        return int(told) if told else None

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[DatasetEpisode]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> DatasetEpisode:
        path, name = self.places[k]
        with _opened(path) as file:
            data = file["data"]
            try:
                return _episode(path, data, name, self.states)
            except (KeyError, OSError) as e:
                raise StoreError(f"{path}: {name} cannot be read as a demonstration: {e}") from e


def _episode(path: Path, data: h5py.Group, name: str, states: list[str]) -> DatasetEpisode:
    demo = data[name]
    arrays = {name: dataset[()] for name, dataset in datasets_of(demo).items()}
    # Of files that others made it is not known how they were written.
    if DIGEST in demo.attrs and (wrong := what_is_wrong(arrays, demo.attrs, demo.attrs[DIGEST])):
        raise StoreError(
            f"{path}: {name} {wrong}; remove the file and make it again by perdure demos"
        )
    actions = arrays["actions"]
    last = np.arange(len(actions)) == len(actions) - 1
    ends = np.asarray(arrays.get("dones", last)).astype(bool)
    seen = {n.removeprefix("obs/"): a for n, a in arrays.items() if n.startswith("obs/")}
    seen |= {n: arrays[n] for n in states if n in arrays}
    rewards = arrays.get("rewards", ends)
    about = {"file": path.name, "demonstration": name}
    seed = demo.attrs.get("seed")
    return DatasetEpisode(
        {n: a for n, a in seen.items() if len(a) == len(actions)}, actions,
        np.asarray(rewards, np.float64), ends, np.zeros(len(actions), bool),
        np.asarray(arrays.get("success", ends)).astype(bool),
        _words(path, data), None if seed is None else int(seed), about,
    )  # fmt: skip


def _words(path: Path, data: h5py.Group) -> str:
    """The instruction, or the file's name."""
    told = _map(data.attrs.get("problem_info", "{}")).get("language_instruction")
    return str(told) if told else path.stem.removesuffix("_demo").replace("_", " ")


def _arguments(data: h5py.Group) -> dict[str, Any]:
    return _map(data.attrs.get("env_args", "{}"))


def _map(text: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _opened(path: Path) -> h5py.File:
    with extras_named("demonstrations"):
        import h5py
    try:
        file = h5py.File(path, "r")
    except OSError as e:
        raise StoreError(f"{path} is damaged or no HDF5 file: {e}") from e
    if "data" not in file:
        raise StoreError(
            f"{path}: expected demonstrations in the layout of robomimic (data/demo_0, …)"
        )
    return file
