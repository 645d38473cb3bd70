"""The episodes of a Minari dataset in one HDF5 file, as Minari keeps them by default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from perdure.arrays import Array
from perdure.datasets.episodes import DatasetEpisode
from perdure.datasets.minari.spaces import (
    LeafPath,
    Spaced,
    is_image_space,
    leaves,
    part_name,
    picture,
)
from perdure.errors import StoreError
from perdure.registry import extras_named

FILE = "main_data.hdf5"
COLUMNS = ("rewards", "terminations", "truncations")


def h5() -> Any:
    """h5py, or an error that names the extra which brings it."""
    with extras_named("data"):
        import h5py
    return h5py


def write_episode(
    file: Any, number: int, episode: DatasetEpisode, observed: Spaced, acted: Spaced,
    infos: Mapping[str, Array], about: Mapping[str, Any],
) -> None:  # fmt: skip
    """Add the group of an episode."""
    group = file.create_group(f"episode_{number}")
    for name, value in about.items():
        group.attrs[name] = value
    for place, space in leaves(observed):
        _put(group, "observations", place, space, episode.observations[part_name(place)])
    _put(group, "actions", (), acted, episode.actions)
    for name in COLUMNS:
        group.create_dataset(name, data=np.asarray(getattr(episode, name)))
    for name, values in infos.items():
        group.create_dataset(f"infos/{name}", data=np.asarray(values))


def _put(group: Any, head: str, place: LeafPath, space: Spaced, values: Array) -> None:
    path = "/".join([head, *(f"_index_{n}" if isinstance(n, int) else n for n in place)])
    if isinstance(space, spaces.Text):
        texts = [str(v) for v in values]
        group.create_dataset(path, data=texts, dtype=h5().string_dtype(encoding="utf-8"))
        return
    # Pictures compress well, and lose nothing by it.
    more = {"compression": "gzip", "compression_opts": 1} if is_image_space(space) else {}
    group.create_dataset(path, data=np.asarray(values), **more)


def read_episode(path: Path, number: int, observed: Spaced, acted: Spaced, jpeg: bool) -> dict[str, Any]:  # fmt: skip
    """The arrays of an episode, and what is said of it."""
    with h5().File(path, "r") as file:
        if f"episode_{number}" not in file:
            raise StoreError(f"{path}: episode {number} is not there")
        group = file[f"episode_{number}"]
        out: dict[str, Any] = {name: group[name][()] for name in COLUMNS}
        out["observations"] = {
            part_name(place): _got(group["observations"], place, space, jpeg)
            for place, space in leaves(observed)
        }
        out["actions"] = _got(group["actions"], (), acted, jpeg)
        out["infos"] = {}
        if "infos" in group:
            _read_infos(group["infos"], "", out["infos"])
        out["about"] = {
            n: v.item() if isinstance(v, np.generic) else v for n, v in group.attrs.items()
        }
        return out


def _got(node: Any, place: LeafPath, space: Spaced, jpeg: bool) -> Array:
    for n in place:
        node = node[f"_index_{n}" if isinstance(n, int) else n]
    values = node[()]
    if isinstance(space, spaces.Text):
        return np.array([v.decode() if isinstance(v, bytes) else str(v) for v in values], object)
    if jpeg and is_image_space(space):
        return np.stack([picture(bytes(data), space) for data in values])
    return np.asarray(values)


def _read_infos(node: Any, head: str, out: dict[str, Array]) -> None:
    for name, below in node.items():
        if isinstance(below, h5().Group):
            _read_infos(below, f"{head}{name}/", out)
        else:
            out[f"{head}{name}"] = np.asarray(below[()])
