"""The frames of an episode as a table, and how its columns are described."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from perdure.arrays import Array
from perdure.datasets.episodes import DatasetEpisode, is_picture
from perdure.datasets.lerobot.layout import INDICES, NEXT, feature_name
from perdure.datasets.lerobot.videos import about_video
from perdure.errors import StoreError
from perdure.policies.pictures import encoded


def columns_of(episode: DatasetEpisode) -> dict[str, Array]:
    """What LeRobot holds of an episode, by feature."""
    steps = len(episode)
    out = {feature_name(n, a): np.asarray(a)[:steps] for n, a in episode.observations.items()}
    out["action"] = np.asarray(episode.actions)
    for name, attribute in NEXT.items():
        value = getattr(episode, attribute)
        if value is not None:
            out[name] = np.asarray(value)
    return out


def feature(name: str, array: Array, fps: int, videos: bool) -> dict[str, Any]:
    """What info.json says of a feature."""
    if is_picture(array):
        names, shape = ["height", "width", "channels"], array.shape[1:]
        if videos:
            info = about_video(shape, fps)
            return {"dtype": "video", "shape": list(shape), "names": names, "info": info}
        return {"dtype": "image", "shape": list(shape), "names": names}
    if array.dtype.kind not in "biuf" or array.ndim > 2:
        raise StoreError(
            f"{name}: LeRobotDataset holds pictures, numbers and vectors of numbers, got shape "
            f"{array.shape[1:]} of {array.dtype}"
        )
    return {"dtype": str(array.dtype), "shape": list(array.shape[1:]) or [1], "names": None}


def index_feature(name: str) -> dict[str, Any]:
    """Of a column that counts."""
    return {"dtype": "float32" if name == "timestamp" else "int64", "shape": [1], "names": None}


def table_of(
    columns: Mapping[str, Array],
    features: Mapping[str, Mapping[str, Any]],
    episode: int,
    start: int,
    task: int,
    fps: int,
) -> pa.Table:
    """The frames of an episode; what is in videos is not in it."""
    steps = len(columns["action"])
    arrays: dict[str, pa.Array] = {}
    for name, array in columns.items():
        kind = features[name]["dtype"]
        if kind == "video":
            continue
        if kind == "image":
            files = [encoded(picture) for picture in array]
            paths = pa.nulls(steps, pa.string())
            arrays[name] = pa.StructArray.from_arrays(
                [pa.array(files, pa.binary()), paths], ["bytes", "path"]
            )
        elif array.ndim == 2 and array.shape[1] != 1:
            flat = pa.array(np.ascontiguousarray(array).ravel())
            arrays[name] = pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
        else:
            arrays[name] = pa.array(array.reshape(steps))
    for name, values in indices_of(steps, episode, start, task, fps).items():
        arrays[name] = pa.array(values)
    table = pa.table(arrays)
    return table.replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": _described(table, features)}})}
    )


def indices_of(steps: int, episode: int, start: int, task: int, fps: int) -> dict[str, Array]:
    """The columns that count."""
    frame = np.arange(steps, dtype=np.int64)
    values = (
        (frame / fps).astype(np.float32),
        frame,
        np.full(steps, episode, np.int64),
        frame + start,
        np.full(steps, task, np.int64),
    )
    return dict(zip(INDICES, values, strict=True))


def _described(table: pa.Table, features: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The columns in the words of Hugging Face's datasets."""
    out: dict[str, Any] = {}
    for column in table.schema:
        dtype = features.get(column.name, index_feature(column.name))["dtype"]
        if dtype == "image":
            out[column.name] = {"_type": "Image"}
        elif pa.types.is_fixed_size_list(column.type):
            inner = {"dtype": dtype, "_type": "Value"}
            length = column.type.list_size
            out[column.name] = {"feature": inner, "length": length, "_type": "Sequence"}
        else:
            out[column.name] = {"dtype": dtype, "_type": "Value"}
    return out
