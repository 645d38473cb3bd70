"""Minari datasets in its Parquet layout, written and read without a loss: pictures are not made JPEG.

::

    data/metadata.json          counts, spaces, format
    data/0/part-0.parquet       an episode: a row for each observation, so one more than actions
    data/0/metadata.json        its number, length and seed

Observations are a Box or a Dict of Boxes, actions a Box or Discrete. Minari's own default, HDF5 with JPEG
pictures, is not written, since it loses something, and is not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from gymnasium import spaces

from perdure.arrays import Array
from perdure.datasets.episodes import DatasetEpisode, new_folder
from perdure.errors import StoreError

FORMAT = "parquet"
MINARI = "0.5.4"
"""The version whose layout this is."""
COLUMNS = ("rewards", "terminations", "truncations")
Spaced = spaces.Space[Any]


def write_minari(
    out: str | Path,
    episodes: Iterable[DatasetEpisode],
    observation_space: Spaced,
    action_space: Spaced,
    dataset_id: str = "perdure/recorded-v0",
    **about: str,
) -> Path:
    """Write episodes as a new Minari dataset into ``out``, which Minari finds as
    ``$MINARI_DATASETS_PATH/DATASET_ID``. ``about`` is what its metadata may say: ``algorithm_name``,
    ``code_permalink``."""
    import pyarrow.parquet as pq

    root = new_folder(out)
    data, count, steps, size = root / "data", 0, 0, 0
    for number, episode in enumerate(episodes):
        folder = data / str(number)
        folder.mkdir(parents=True)
        table = _table(episode, observation_space, action_space)
        pq.write_table(table, folder / "part-0.parquet")
        own: dict[str, Any] = {"id": number, "total_steps": len(episode)}
        if episode.seed is not None:
            own["seed"] = int(episode.seed)
        own |= {"task": episode.task, **episode.about}
        (folder / "metadata.json").write_text(json.dumps(own), encoding="utf-8")
        size += (folder / "part-0.parquet").stat().st_size
        count, steps = count + 1, steps + len(episode)
    if not count:
        raise StoreError("a dataset needs at least one episode")
    metadata = {
        "total_episodes": count,
        "total_steps": steps,
        "data_format": FORMAT,
        "jpeg_encoding": False,
        "observation_space": json.dumps(space_json(observation_space)),
        "action_space": json.dumps(space_json(action_space)),
        "dataset_id": dataset_id,
        "minari_version": MINARI,
        "dataset_size": round(size / 1e6, 1),
        **about,
    }
    (data / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    return root


def _table(episode: DatasetEpisode, observed: Spaced, acted: Spaced) -> pa.Table:
    steps = len(episode)
    parts = {n: np.asarray(a) for n, a in episode.observations.items()}
    for name, array in parts.items():
        if len(array) != steps + 1:
            raise StoreError(
                f"observation {name!r}: Minari holds {steps + 1}, with the last, got {len(array)}"
            )
    inner = observed.spaces if isinstance(observed, spaces.Dict) else {"": observed}
    if parts.keys() != inner.keys():
        raise StoreError(f"expected observations {sorted(inner)}, got {sorted(parts)}")
    columns = [_encoded(inner[name], parts[name]) for name in inner]
    seen = columns[0]
    if isinstance(observed, spaces.Dict):
        seen = pa.StructArray.from_arrays(columns, list(inner))
    arrays = {
        "observations": seen,
        "actions": _encoded(acted, _padded(np.asarray(episode.actions))),
    }
    kinds = {"rewards": np.float64, "terminations": bool, "truncations": bool}
    for name in COLUMNS:
        arrays[name] = pa.array(_padded(np.asarray(getattr(episode, name), kinds[name])))
    if episode.successes is not None:
        last = np.asarray(episode.successes, np.float64)
        values = pa.array(np.concatenate([[0.0], last]))
        arrays["infos"] = pa.StructArray.from_arrays([values], ["success"])
    return pa.table(arrays)


def _padded(array: Array) -> Array:
    return np.concatenate([array, np.zeros((1, *array.shape[1:]), array.dtype)])


def _encoded(space: Spaced, values: Array) -> pa.Array:
    if isinstance(space, spaces.Discrete):
        return pa.array(values.astype(space.dtype))
    if not isinstance(space, spaces.Box):
        raise StoreError(f"{space} is not written: a Box, a Dict of Boxes, or Discrete actions are")
    if values.shape[1:] != space.shape or values.dtype != space.dtype:
        raise StoreError(f"expected {space}, got {values.dtype} of shape {values.shape[1:]}")
    flat = pa.array(np.ascontiguousarray(values).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, int(np.prod(space.shape, dtype=int)))


def space_json(space: Spaced) -> dict[str, Any]:
    """A space as Minari writes it down."""
    if isinstance(space, spaces.Box):
        shape = {"dtype": str(space.dtype), "shape": list(space.shape)}
        return {"type": "Box", **shape, "low": space.low.tolist(), "high": space.high.tolist()}
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "dtype": "int64", "start": int(space.start), "n": int(space.n)}
    if isinstance(space, spaces.Dict):
        parts = {name: space_json(part) for name, part in space.spaces.items()}
        return {"type": "Dict", "subspaces": parts}
    raise StoreError(f"{space} is not written: a Box, a Dict of Boxes, or Discrete actions are")


def space_of(found: Any) -> Spaced:
    """The space that Minari wrote down."""
    kind = found.get("type") if isinstance(found, dict) else None
    if kind == "Box":
        dtype = np.dtype(found["dtype"])
        low, high = (np.array(found[k], dtype).reshape(found["shape"]) for k in ("low", "high"))
        return spaces.Box(low, high, tuple(found["shape"]), dtype.type)
    if kind == "Discrete":
        return spaces.Discrete(found["n"], start=found["start"])
    if kind == "Dict":
        return spaces.Dict({n: space_of(part) for n, part in found["subspaces"].items()})
    raise StoreError(f"a space of type {kind!r} is not read: Box, Dict and Discrete are")


class MinariReader:
    """A Minari dataset on disk, in Parquet, episode by episode."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        path = self.root / "data/metadata.json"
        try:
            self.metadata = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as e:
            raise StoreError(f"{path}: expected the metadata of a Minari dataset ({e})") from e
        if self.metadata.get("data_format") != FORMAT or self.metadata.get("jpeg_encoding", True):
            raise StoreError(
                f"{self.root}: {self.metadata.get('data_format')} with jpeg_encoding "
                f"{self.metadata.get('jpeg_encoding', True)}; read are datasets in {FORMAT} without it"
            )
        told = (json.loads(self.metadata[k]) for k in ("observation_space", "action_space"))
        self.observation_space, self.action_space = map(space_of, told)

    def __len__(self) -> int:
        return int(self.metadata["total_episodes"])

    def __iter__(self) -> Iterator[DatasetEpisode]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> DatasetEpisode:
        import pyarrow.parquet as pq

        folder = self.root / "data" / str(int(k))
        table = pq.read_table(folder / "part-0.parquet", partitioning=None).combine_chunks()
        about = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        inner = self.observation_space
        seen = table.column("observations").combine_chunks()
        if isinstance(inner, spaces.Dict):
            parts = {n: _decoded(s, seen.field(n)) for n, s in inner.spaces.items()}
        else:
            parts = {"": _decoded(inner, seen)}
        actions = _decoded(self.action_space, table.column("actions").combine_chunks())[:-1]
        rewards, ends, cuts = (table.column(name).to_numpy()[:-1] for name in COLUMNS)
        successes = None
        if "infos" in table.column_names:
            infos = table.column("infos").combine_chunks()
            if "success" in [f.name for f in infos.type]:
                successes = infos.field("success").to_numpy(zero_copy_only=False)[1:]
        task, seed = str(about.pop("task", "")), about.pop("seed", None)
        return DatasetEpisode(parts, actions, rewards, ends, cuts, successes, task, seed, about)


def _decoded(space: Spaced, values: pa.Array) -> Array:
    if isinstance(space, spaces.Discrete):
        whole: Array = values.to_numpy()
        return whole
    flat: Array = values.flatten().to_numpy(zero_copy_only=False)
    return flat.astype(space.dtype).reshape(len(values), *(space.shape or ()))


def read_minari(root: str | Path) -> MinariReader:
    """The dataset in a folder."""
    return MinariReader(root)
