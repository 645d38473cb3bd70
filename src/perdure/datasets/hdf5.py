"""Demonstrations in the HDF5 layout of robomimic and LIBERO as a dataset: one file a task, or folders of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.datasets.episodes import DatasetEpisode
from perdure.errors import StoreError
from perdure.registry import extras_named

if TYPE_CHECKING:
    import h5py

SUFFIX = ".hdf5"
STATES = ("states", "robot_states")
"""What a step has besides its observations."""


def hdf5_files(root: Path) -> list[Path]:
    """The files of a folder and of those in it; those of an unfinished collection are none."""
    if root.is_file():
        return [root] if root.suffix == SUFFIX else []
    found = (p.relative_to(root) for p in root.rglob(f"*{SUFFIX}"))
    return sorted(root / p for p in found if not any(n.startswith("_") for n in p.parts))


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
    actions = demo["actions"][()]
    ends = (
        demo["dones"][()].astype(bool)
        if "dones" in demo
        else np.arange(len(actions)) == len(actions) - 1
    )
    seen = {n: demo["obs"][n][()] for n in demo.get("obs", ())}
    seen |= {n: demo[n][()] for n in states if n in demo}
    rewards = demo["rewards"][()] if "rewards" in demo else ends
    about = {"file": path.name, "demonstration": name}
    seed = demo.attrs.get("seed")
    return DatasetEpisode(
        {n: a for n, a in seen.items() if len(a) == len(actions)}, actions,
        np.asarray(rewards, np.float64), ends, np.zeros(len(actions), bool),
        demo["success"][()].astype(bool) if "success" in demo else ends,
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
