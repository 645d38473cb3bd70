"""Any dataset that is read, as any that is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from perdure.arrays import Array
from perdure.datasets import WRITTEN
from perdure.datasets.episodes import DatasetEpisode
from perdure.datasets.hdf5 import Hdf5Reader, hdf5_files
from perdure.datasets.lerobot import LeRobotReader, write_lerobot
from perdure.datasets.minari import MinariReader, write_minari
from perdure.datasets.rlds import RldsReader
from perdure.errors import StoreError, UnknownName

FPS = 20
"""Of a dataset that does not say it."""


class DatasetReader(Protocol):
    """Episodes on disk."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[DatasetEpisode]: ...
    def __getitem__(self, k: int) -> DatasetEpisode: ...


def open_dataset(root: str | Path) -> DatasetReader:
    """The dataset in a folder, whatever its format: LeRobot's, Minari's, RLDS, or HDF5 files of demonstrations."""
    folder = Path(root)
    known: dict[str, Callable[[Path], DatasetReader]] = {
        "meta/info.json": LeRobotReader,
        "data/metadata.json": MinariReader,
        "features.json": RldsReader,
    }
    for name, reader in known.items():
        if (folder / name).is_file():
            return reader(folder)
    if hdf5_files(folder):
        return Hdf5Reader(folder)
    raise StoreError(
        f"{folder}: expected a LeRobotDataset (meta/info.json), a Minari dataset (data/metadata.json), an "
        "RLDS dataset (features.json; its folder is that of a version, such as 1.0.0) or demonstrations "
        "(.hdf5 files, such as perdure demos makes)"
    )


def convert(source: str | Path, out: str | Path, kind: str, fps: int | None = None) -> Path:
    """Write a dataset anew in another format; episodes go through one at a time. What the new format has no
    place for is left out: LeRobot's has no observation after the last action, and no seeds."""
    reader = open_dataset(source)
    if kind not in WRITTEN:
        raise UnknownName("format of a dataset", kind, WRITTEN)
    if kind.startswith("lerobot"):
        rate = fps or int(getattr(reader, "fps", None) or FPS)
        return write_lerobot(out, map(_plain, reader), rate, videos=kind == "lerobot-video")
    first = with_last(_plain(reader[0]))
    told = getattr(reader, "observation_space", None), getattr(reader, "action_space", None)
    observed = told[0] or observed_space(first)
    acted = told[1] or _box(first.actions)
    episodes = (with_last(_plain(episode)) for episode in reader)
    form = "hdf5" if kind == "minari-hdf5" else "parquet"
    return write_minari(out, episodes, observed, acted, data_format=form)


def _plain(episode: DatasetEpisode) -> DatasetEpisode:
    """Without texts in observations, which are no arrays of numbers."""
    seen = {n: a for n, a in episode.observations.items() if np.asarray(a).dtype != object}
    infos = {n: a for n, a in episode.infos.items() if np.asarray(a).dtype != object}
    return replace(episode, observations=seen, infos=infos)


def with_last(episode: DatasetEpisode) -> DatasetEpisode:
    """With an observation after the last action, as Minari wants one: where there is none, the last is
    there twice, and ``about`` says so."""
    steps, seen = len(episode), episode.observations
    if all(len(a) == steps + 1 for a in seen.values()):
        return episode
    longer = {n: np.concatenate([a, a[-1:]]) if len(a) == steps else a for n, a in seen.items()}
    about = {**episode.about, "last_observation": "repeated"}
    return replace(episode, observations=longer, about=about)


def observed_space(episode: DatasetEpisode) -> spaces.Space[Any]:
    """A space that holds what an episode shows; of numbers, without bounds."""
    parts: dict[str, spaces.Space[Any]] = {
        name: _box(array) for name, array in episode.observations.items()
    }
    return parts[""] if list(parts) == [""] else spaces.Dict(parts)


def _box(array: Array) -> spaces.Box:
    shape, kind = array.shape[1:], array.dtype.kind
    made: Any = array.dtype.type
    if kind == "f":
        return spaces.Box(-np.inf, np.inf, shape, made)
    if kind == "b":
        return spaces.Box(0, 1, shape, made)
    limits = np.iinfo(made)
    return spaces.Box(limits.min, limits.max, shape, made)
