"""Writing a Minari dataset, episode by episode."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from perdure.arrays import Array
from perdure.datasets.episodes import DatasetEpisode, new_folder
from perdure.datasets.minari import hdf5, parquet
from perdure.datasets.minari.spaces import FLAT, Spaced, leaves, part_name, space_json
from perdure.errors import StoreError, UnknownName

FORMATS = ("parquet", "hdf5")
MINARI = "0.5.4"
"""The version whose layout this is."""
SUCCESS = "success"
"""What infos call whether a step has succeeded."""


def write_minari(
    out: str | Path,
    episodes: Iterable[DatasetEpisode],
    observation_space: Spaced,
    action_space: Spaced,
    dataset_id: str = "perdure/recorded-v0",
    data_format: str = "parquet",
    **about: str,
) -> Path:
    """Write episodes as a new Minari dataset into ``out``, which Minari finds as
    ``$MINARI_DATASETS_PATH/DATASET_ID``. ``data_format`` is ``parquet`` or ``hdf5``. ``about`` is what its metadata
    may say: ``algorithm_name``, ``code_permalink``."""
    if data_format not in FORMATS:
        raise UnknownName("format of Minari's", data_format, FORMATS)
    with new_folder(out) as root:
        _write(root, episodes, observation_space, action_space, dataset_id, data_format, about)
    return Path(out)


def _write(
    root: Path,
    episodes: Iterable[DatasetEpisode],
    observation_space: Spaced,
    action_space: Spaced,
    dataset_id: str,
    data_format: str,
    about: Mapping[str, str],
) -> None:
    data, count, steps = root / "data", 0, 0
    data.mkdir()
    file = (
        hdf5.h5().File(data / hdf5.FILE, "w", track_order=True) if data_format == "hdf5" else None
    )
    try:
        for number, episode in enumerate(episodes):
            _check(episode, observation_space, action_space)
            told, infos = _told(number, episode), _infos(episode)
            if file is not None:
                flat = dict(_flat(told, ""))
                hdf5.write_episode(file, number, episode, observation_space, action_space, infos, flat)  # fmt: skip
            else:
                folder = data / str(number)
                folder.mkdir()
                path = folder / "part-0.parquet"
                parquet.write_episode(path, episode, observation_space, action_space, infos)
                (folder / "metadata.json").write_text(json.dumps(told), encoding="utf-8")
            count, steps = count + 1, steps + len(episode)
    finally:
        if file is not None:
            file.close()
    if not count:
        raise StoreError("a dataset needs at least one episode")
    size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    metadata = {
        "total_episodes": count,
        "total_steps": steps,
        "data_format": data_format,
        "jpeg_encoding": False,
        "observation_space": json.dumps(space_json(observation_space)),
        "action_space": json.dumps(space_json(action_space)),
        "dataset_id": dataset_id,
        "minari_version": MINARI,
        "dataset_size": round(size / 1e6, 1),
        **about,
    }
    (data / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")


def _told(number: int, episode: DatasetEpisode) -> dict[str, Any]:
    told: dict[str, Any] = {"id": number, "total_steps": len(episode)}
    if episode.seed is not None:
        told["seed"] = int(episode.seed)
    if episode.task:
        told["task"] = episode.task
    return {**episode.about, **told}


def _flat(values: Mapping[str, Any], head: str) -> Iterator[tuple[str, Any]]:
    """Values by their places, as attributes of HDF5 are: ``options/size``."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{head}{name}/")
        elif value is not None:
            yield f"{head}{name}", value


def _infos(episode: DatasetEpisode) -> Mapping[str, Array]:
    """Infos with the reset's, of which nothing is known where there are none."""
    steps, out = len(episode), {}
    found = dict(episode.infos)
    if episode.successes is not None and SUCCESS not in found:
        found[SUCCESS] = np.asarray(episode.successes)
    for name, values in found.items():
        array = np.asarray(values)
        if len(array) == steps:
            array = np.concatenate([np.zeros((1, *array.shape[1:]), array.dtype), array])
        out[name] = array
    return out


def _check(episode: DatasetEpisode, observed: Spaced, acted: Spaced) -> None:
    """What an episode must have to be written."""
    steps = len(episode)
    parts = {part_name(place): space for place, space in leaves(observed)}
    if episode.observations.keys() != parts.keys():
        raise StoreError(
            f"expected observations {sorted(parts)}, got {sorted(episode.observations)}"
        )
    if isinstance(acted, (spaces.Dict, spaces.Tuple)):
        raise StoreError(f"actions of {acted} are not written: one array is")
    for name, space in parts.items():
        array = np.asarray(episode.observations[name])
        if len(array) != steps + 1:
            raise StoreError(
                f"observation {name!r}: Minari holds {steps + 1}, with the last, got {len(array)}"
            )
        _fits(space, array)
    _fits(acted, np.asarray(episode.actions))


def _fits(space: Spaced, array: Array) -> None:
    if isinstance(space, FLAT) and (array.shape[1:] != space.shape or array.dtype != space.dtype):
        raise StoreError(f"expected {space}, got {array.dtype} of shape {array.shape[1:]}")
