"""Reading a Minari dataset, episode by episode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perdure.datasets.episodes import DatasetEpisode
from perdure.datasets.files import read_map
from perdure.datasets.minari import hdf5, parquet
from perdure.datasets.minari.spaces import space_of
from perdure.datasets.minari.writer import SUCCESS
from perdure.errors import StoreError

FORMATS = ("parquet", "arrow", "hdf5")
COUNTED = ("id", "total_steps")
"""What an episode's metadata say of its length, which the arrays tell."""


class MinariReader:
    """A Minari dataset on disk, in Parquet, Arrow or HDF5, episode by episode."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.metadata = read_map(self.root / "data/metadata.json", "a Minari dataset")
        self.format = self.metadata.get("data_format", "hdf5")
        if self.format not in FORMATS:
            raise StoreError(
                f"{self.root}: data in the format {self.format!r}; read are {', '.join(FORMATS)}"
            )
        self.jpeg = bool(self.metadata.get("jpeg_encoding", True))
        told = (json.loads(self.metadata[k]) for k in ("observation_space", "action_space"))
        self.observation_space, self.action_space = map(space_of, told)

    def __len__(self) -> int:
        return int(self.metadata["total_episodes"])

    def __iter__(self) -> Iterator[DatasetEpisode]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> DatasetEpisode:
        if not 0 <= k < len(self):
            raise IndexError(f"episode {k} of {len(self)}")
        spaces = (self.observation_space, self.action_space, self.jpeg)
        about: dict[str, Any]
        if self.format == "hdf5":
            found = hdf5.read_episode(self.root / "data" / hdf5.FILE, k, *spaces)
            about = found["about"]
        else:
            folder = self.root / "data" / str(int(k))
            found = parquet.read_episode(folder / f"part-0.{self.format}", *spaces)
            about = read_map(folder / "metadata.json", "an episode of Minari")
        infos = found["infos"]
        successes = infos.get(SUCCESS)
        if successes is not None:
            successes = successes[-len(found["actions"]) :]
        task, seed = str(about.pop("task", "")), about.pop("seed", None)
        return DatasetEpisode(
            found["observations"],
            found["actions"],
            found["rewards"],
            found["terminations"],
            found["truncations"],
            successes,
            task,
            None if seed is None else int(seed),
            {n: v for n, v in about.items() if n not in COUNTED},
            infos,
        )


def read_minari(root: str | Path) -> MinariReader:
    """The dataset in a folder."""
    return MinariReader(root)
