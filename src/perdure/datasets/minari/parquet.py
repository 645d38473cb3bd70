"""An episode of a Minari dataset as a table, in Parquet or Arrow: a row for each observation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from gymnasium import spaces

from perdure.arrays import Array
from perdure.datasets.episodes import DatasetEpisode
from perdure.datasets.minari.spaces import FLAT, Spaced, is_image_space, leaves, part_name, picture
from perdure.errors import StoreError

COLUMNS = ("rewards", "terminations", "truncations")


def write_episode(
    path: Path, episode: DatasetEpisode, observed: Spaced, acted: Spaced, infos: Mapping[str, Array]
) -> None:
    """Write the table of an episode."""
    import pyarrow.parquet as pq

    arrays = {
        "observations": _encoded(observed, (), episode.observations, 0),
        "actions": _encoded(acted, (), {"": episode.actions}, 1),
    }
    for name in COLUMNS:
        arrays[name] = pa.array(_padded(np.asarray(getattr(episode, name)), 1))
    if infos:
        arrays["infos"] = _infos({n.split("/")[0]: n for n in infos}, "", infos)
    pq.write_table(pa.table(arrays), path)


def _encoded(space: Spaced, place: Any, parts: Mapping[str, Array], pad: int) -> pa.Array:
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        inner = space.spaces if isinstance(space, spaces.Dict) else dict(enumerate(space.spaces))
        found = [_encoded(s, (*place, n), parts, pad) for n, s in inner.items()]
        return pa.StructArray.from_arrays(found, [str(n) for n in inner])
    values = _padded(np.asarray(parts[part_name(place)]), pad)
    if isinstance(space, spaces.Discrete):
        return pa.array(values.astype(space.dtype))
    if isinstance(space, FLAT):
        flat = pa.array(np.ascontiguousarray(values).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, int(np.prod(space.shape, dtype=int)))
    raise StoreError(f"{space} is not written in Parquet: HDF5 holds it")


def _infos(names: Mapping[str, str], head: str, infos: Mapping[str, Array]) -> pa.Array:
    """Infos as Minari nests them; an array's shape stands with its field."""
    arrays, fields = [], []
    for name in names:
        path = f"{head}{name}"
        if path in infos:
            values = np.asarray(infos[path])
            column, about = pa.array(values.ravel()), None
            if values.ndim > 1:
                column = pa.FixedSizeListArray.from_arrays(
                    column, int(np.prod(values.shape[1:], dtype=int))
                )
                about = {"shape": ",".join(map(str, values.shape[1:]))}
        else:
            below = [n.removeprefix(f"{path}/") for n in infos if n.startswith(f"{path}/")]
            column, about = _infos({n.split("/")[0]: n for n in below}, f"{path}/", infos), None
        arrays.append(column)
        fields.append(pa.field(name, column.type, metadata=about))
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _padded(array: Array, pad: int) -> Array:
    return np.concatenate([array, np.zeros((pad, *array.shape[1:]), array.dtype)])


def read_episode(path: Path, observed: Spaced, acted: Spaced, jpeg: bool) -> dict[str, Any]:
    """The arrays of an episode."""
    table = _table(path).combine_chunks()
    seen = table.column("observations").combine_chunks()
    out: dict[str, Any] = {"observations": {}, "infos": {}}
    for place, space in leaves(observed):
        column = seen
        for name in place:
            column = column.field(str(name))
        out["observations"][part_name(place)] = _decoded(space, column, jpeg)
    out["actions"] = _decoded(acted, table.column("actions").combine_chunks(), jpeg)[:-1]
    for name in COLUMNS:
        out[name] = table.column(name).to_numpy()[:-1]
    if "infos" in table.column_names:
        field = table.schema.field("infos")
        _read_infos(table.column("infos").combine_chunks(), field.type, "", out["infos"])
    return out


def _table(path: Path) -> pa.Table:
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        return pq.read_table(path, partitioning=None)
    with pa.ipc.open_file(path) as file:
        return file.read_all()


def _decoded(space: Spaced, values: pa.Array, jpeg: bool) -> Array:
    if jpeg and is_image_space(space):
        return np.stack([picture(data, space) for data in values.to_pylist()])
    if isinstance(space, spaces.Discrete):
        whole: Array = values.to_numpy()
        return whole
    if isinstance(space, spaces.Text):
        return np.array(values.to_pylist(), object)
    flat: Array = values.flatten().to_numpy(zero_copy_only=False)
    return flat.astype(space.dtype).reshape(len(values), *(space.shape or ()))


def _read_infos(values: pa.Array, kind: Any, head: str, out: dict[str, Array]) -> None:
    for field in kind:
        column, name = values.field(field.name), f"{head}{field.name}"
        if pa.types.is_struct(field.type):
            _read_infos(column, field.type, f"{name}/", out)
            continue
        nested = pa.types.is_nested(field.type)
        flat = (column.flatten() if nested else column).to_numpy(zero_copy_only=False)
        told = (field.metadata or {}).get(b"shape")
        shape = tuple(int(n) for n in told.split(b",")) if told else (-1,) if nested else ()
        out[name] = flat.reshape(len(values), *shape)
