"""LeRobotDataset, version 3.0: written and read file by file; version 2.1: read.

::

    meta/info.json                            features, counts, where files are
    meta/stats.json                           of each feature: min, max, mean, std, count, quantiles
    meta/tasks.parquet                        task_index by task
    meta/episodes/chunk-000/file-000.parquet  a row for each episode: where it is, its tasks, its stats
    data/chunk-000/file-000.parquet           a row for each frame, a row group for each episode

Pictures are PNG within the data, which loses nothing. Videos are not written; of a dataset that has
them, they are not read, and that is said.

An observation of the name ``x`` is the feature ``observation.x``; the only one, of no name, is
``observation.state`` or ``observation.image``. What LeRobot has no place for (an observation after the
last action) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from perdure.arrays import Array
from perdure.datasets.episodes import DatasetEpisode, is_picture, new_folder
from perdure.errors import StoreError
from perdure.policies.pictures import decoded, encoded

VERSION = "v3.0"
CHUNK = 1000
"""Files in a folder."""
DATA_MB, VIDEO_MB = 100, 200
INFO, STATS, TASKS = "meta/info.json", "meta/stats.json", "meta/tasks.parquet"
EPISODES = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
INDICES = ("timestamp", "frame_index", "episode_index", "index", "task_index")
QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
SAMPLED = 32
"""Pictures of an episode that its statistics are of."""
NEXT = {"next.reward": "rewards", "next.done": "terminations", "next.truncated": "truncations",
        "next.success": "successes"}  # fmt: skip


def write_lerobot(
    out: str | Path,
    episodes: Iterable[DatasetEpisode],
    fps: int,
    robot_type: str | None = None,
) -> Path:
    """Write episodes as a new LeRobotDataset. They may come one after another: one at a time is held."""
    import pyarrow.parquet as pq

    root = new_folder(out)
    if type(fps) is not int or fps < 1:
        raise StoreError(f"fps must be a whole number of at least 1, got {fps!r}")
    writer: Any = None
    features: dict[str, dict[str, Any]] = {}
    tasks: dict[str, int] = {}
    rows: list[dict[str, Any]] = []
    stats: list[dict[str, dict[str, Array]]] = []
    frames = chunk = file = 0
    for number, episode in enumerate(episodes):
        columns = _columns(episode)
        mine = {name: _feature(name, array) for name, array in columns.items()}
        if features and mine != features:
            raise StoreError(
                f"episode {number} has other features than the first: {mine} and {features}"
            )
        features = mine
        task = tasks.setdefault(episode.task, len(tasks))
        start = frames
        table = _table(columns, features, number, start, task, fps)
        path = root / DATA.format(chunk_index=chunk, file_index=file)
        if writer is not None and path.stat().st_size > DATA_MB << 20:
            writer.close()
            writer, file = None, file + 1
            chunk, file = chunk + file // CHUNK, file % CHUNK
            path = root / DATA.format(chunk_index=chunk, file_index=file)
        if writer is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            writer = pq.ParquetWriter(path, table.schema, compression="snappy")
        writer.write_table(table, row_group_size=len(episode))
        frames += len(episode)
        stats.append({n: _stats(a) for n, a in _numbers(columns, table).items()})
        rows.append(
            {
                "episode_index": number,
                "tasks": [episode.task],
                "length": len(episode),
                "data/chunk_index": chunk,
                "data/file_index": file,
                "dataset_from_index": start,
                "dataset_to_index": frames,
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
            }
        )
    if writer is None:
        raise StoreError("a dataset needs at least one episode")
    writer.close()
    _write_episodes(root / EPISODES.format(chunk_index=0, file_index=0), rows, stats)
    _write_tasks(root / TASKS, tasks)
    _write_json(root / STATS, {n: _listed(_together([s[n] for s in stats])) for n in stats[0]})
    _write_json(
        root / INFO,
        {
            "codebase_version": VERSION,
            "robot_type": robot_type,
            "total_episodes": len(rows),
            "total_frames": frames,
            "total_tasks": len(tasks),
            "chunks_size": CHUNK,
            "data_files_size_in_mb": DATA_MB,
            "video_files_size_in_mb": VIDEO_MB,
            "fps": fps,
            "splits": {"train": f"0:{len(rows)}"},
            "data_path": DATA,
            "video_path": None,
            "features": {**features, **{n: _index_feature(n) for n in INDICES}},
        },
    )
    return root


def feature_name(name: str, array: Array) -> str:
    """What LeRobot calls an observation."""
    if name:
        return name if name.startswith("observation.") else f"observation.{name}"
    return "observation.image" if is_picture(array) else "observation.state"


def _columns(episode: DatasetEpisode) -> dict[str, Array]:
    steps = len(episode)
    out = {feature_name(n, a): np.asarray(a)[:steps] for n, a in episode.observations.items()}
    out["action"] = np.asarray(episode.actions)
    for name, attribute in NEXT.items():
        value = getattr(episode, attribute)
        if value is not None:
            out[name] = np.asarray(value)
    return out


def _feature(name: str, array: Array) -> dict[str, Any]:
    if is_picture(array):
        names: Any = ["height", "width", "channels"]
        return {"dtype": "image", "shape": list(array.shape[1:]), "names": names}
    if array.dtype.kind not in "biuf" or array.ndim > 2:
        raise StoreError(
            f"{name}: LeRobotDataset holds pictures, numbers and vectors of numbers, got shape "
            f"{array.shape[1:]} of {array.dtype}"
        )
    return {"dtype": str(array.dtype), "shape": list(array.shape[1:]) or [1], "names": None}


def _index_feature(name: str) -> dict[str, Any]:
    return {"dtype": "float32" if name == "timestamp" else "int64", "shape": [1], "names": None}


def _table(
    columns: Mapping[str, Array],
    features: Mapping[str, Mapping[str, Any]],
    episode: int,
    start: int,
    task: int,
    fps: int,
) -> pa.Table:
    steps = len(columns["action"])
    arrays: dict[str, pa.Array] = {}
    for name, array in columns.items():
        if features[name]["dtype"] == "image":
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
    frame = np.arange(steps, dtype=np.int64)
    arrays["timestamp"] = pa.array((frame / fps).astype(np.float32))
    arrays["frame_index"] = pa.array(frame)
    arrays["episode_index"] = pa.array(np.full(steps, episode, np.int64))
    arrays["index"] = pa.array(frame + start)
    arrays["task_index"] = pa.array(np.full(steps, task, np.int64))
    table = pa.table(arrays)
    return table.replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": _hf(table, features)}})}
    )


def _hf(table: pa.Table, features: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The columns in the words of Hugging Face's datasets."""
    out: dict[str, Any] = {}
    for column in table.schema:
        dtype = features.get(column.name, _index_feature(column.name))["dtype"]
        if dtype == "image":
            out[column.name] = {"_type": "Image"}
        elif pa.types.is_fixed_size_list(column.type):
            inner = {"dtype": dtype, "_type": "Value"}
            out[column.name] = {
                "feature": inner,
                "length": column.type.list_size,
                "_type": "Sequence",
            }
        else:
            out[column.name] = {"dtype": dtype, "_type": "Value"}
    return out


def _numbers(columns: Mapping[str, Array], table: pa.Table) -> dict[str, Array]:
    out = dict(columns)
    for name in INDICES:
        out[name] = table.column(name).to_numpy()
    return out


def _stats(array: Array) -> dict[str, Array]:
    """Of the numbers of a feature, each for itself; of pictures, of each colour, from 0 to 1."""
    count = len(array)
    if is_picture(array):
        some = array[np.linspace(0, count - 1, min(SAMPLED, count)).astype(int)]
        values, count = some.reshape(-1, 3) / 255.0, len(some)
    else:
        values = array.reshape(count, -1).astype(np.float64)
    found = {
        "min": values.min(0),
        "max": values.max(0),
        "mean": values.mean(0),
        "std": values.std(0),
        "count": np.array([count]),
        **{name: np.quantile(values, q, axis=0) for name, q in QUANTILES.items()},
    }
    if is_picture(array):
        found = {n: v if n == "count" else v.reshape(3, 1, 1) for n, v in found.items()}
    return found


def _together(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """The statistics of several episodes as one; quantiles are means of theirs, weighed by length, as
    LeRobot joins them."""
    counts = np.array([float(p["count"][0]) for p in parts])
    weights = counts / counts.sum()

    def mean(name: str) -> Array:
        found: Array = sum(w * p[name] for w, p in zip(weights, parts, strict=True))
        return found

    centre = mean("mean")
    spread = sum(
        w * (p["std"] ** 2 + (p["mean"] - centre) ** 2) for w, p in zip(weights, parts, strict=True)
    )
    return {
        "min": np.min([p["min"] for p in parts], axis=0),
        "max": np.max([p["max"] for p in parts], axis=0),
        "mean": centre,
        "std": np.sqrt(spread),
        "count": np.array([int(counts.sum())]),
        **{name: mean(name) for name in QUANTILES},
    }


def _listed(stats: Mapping[str, Array]) -> dict[str, Any]:
    return {name: value.tolist() for name, value in stats.items()}


def _write_episodes(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    stats: Sequence[Mapping[str, Mapping[str, Array]]],
) -> None:
    import pyarrow.parquet as pq

    flat = [
        {f"stats/{f}/{s}": v.tolist() for f, own in one.items() for s, v in own.items()}
        for one in stats
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist([{**r, **s} for r, s in zip(rows, flat, strict=True)]), path
    )


def _write_tasks(path: Path, tasks: Mapping[str, int]) -> None:
    """As pandas writes a table whose index is called ``task``."""
    import pyarrow.parquet as pq

    table = pa.table(
        {"task_index": pa.array(list(tasks.values()), pa.int64()), "task": list(tasks)}
    )
    columns = [
        {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64",
         "metadata": None},
        {"name": "task", "field_name": "task", "pandas_type": "unicode", "numpy_type": "object",
         "metadata": None},
    ]  # fmt: skip
    none = {
        "name": None,
        "field_name": None,
        "pandas_type": "unicode",
        "numpy_type": "object",
        "metadata": None,
    }
    about = {
        "index_columns": ["task"],
        "column_indexes": [none],
        "columns": columns,
        "pandas_version": "2.2.0",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(about)}), path)


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=4, allow_nan=False) + "\n", encoding="utf-8")


# Reading.


class LeRobotReader:
    """A LeRobotDataset on disk, version 3.0 or 2.1, episode by episode."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.info = _read_json(self.root / INFO)
        self.version = str(self.info.get("codebase_version", ""))
        if self.version not in (VERSION, "v2.1", "v2.0"):
            raise StoreError(
                f"{self.root}: a LeRobotDataset of version {self.version!r}; 3.0, 2.1 or 2.0 are read"
            )
        self.features: dict[str, dict[str, Any]] = self.info["features"]
        self.fps = int(self.info["fps"])
        self.videos = [n for n, f in self.features.items() if f["dtype"] == "video"]
        """Features that are in videos, which are not read."""
        self.episodes = self._episodes()
        self.tasks = self._tasks()

    def __len__(self) -> int:
        return len(self.episodes)

    def _episodes(self) -> list[dict[str, Any]]:
        import pyarrow.parquet as pq

        if self.version != VERSION:
            return _read_lines(self.root / "meta/episodes.jsonl")
        found = []
        for file in sorted((self.root / "meta/episodes").glob("chunk-*/file-*.parquet")):
            names = [n for n in pq.read_schema(file).names if not n.startswith("stats/")]
            found += pq.read_table(file, columns=names).to_pylist()
        return sorted(found, key=lambda row: int(row["episode_index"]))

    def _tasks(self) -> dict[int, str]:
        import pyarrow.parquet as pq

        if self.version != VERSION:
            lines = _read_lines(self.root / "meta/tasks.jsonl")
            return {int(line["task_index"]): str(line["task"]) for line in lines}
        table = pq.read_table(self.root / TASKS).to_pydict()
        name = "task" if "task" in table else "__index_level_0__"
        return dict(zip(table["task_index"], map(str, table[name]), strict=True))

    def __iter__(self) -> Iterator[DatasetEpisode]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> DatasetEpisode:
        table, row = self._frames(k), self.episodes[k]
        columns = {
            n: self._column(n, table) for n in self.features if n not in (*INDICES, *self.videos)
        }
        seen = {n: a for n, a in columns.items() if n.startswith("observation.")}
        steps, index = len(table), table.column("task_index")[0].as_py()
        told = {a: columns[n] for n, a in NEXT.items() if n in columns}
        zeros = np.zeros(steps, bool)
        ends = zeros.copy()
        ends[-1] = True
        return DatasetEpisode(
            seen,
            columns["action"],
            told.get("rewards", np.zeros(steps, np.float32)),
            told.get("terminations", ends).astype(bool),
            told.get("truncations", zeros).astype(bool),
            told.get("successes"),
            self.tasks.get(index, ""),
            about={"episode_index": int(row["episode_index"])},
        )

    def _frames(self, k: int) -> pa.Table:
        """The frames of an episode."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        row = self.episodes[k]
        number = int(row["episode_index"])
        if self.version != VERSION:
            chunk = number // int(self.info.get("chunks_size", CHUNK))
            name = self.info["data_path"].format(episode_chunk=chunk, episode_index=number)
            return pq.read_table(_inside(self.root, name))
        name = self.info["data_path"].format(
            chunk_index=row["data/chunk_index"], file_index=row["data/file_index"]
        )
        table = pq.read_table(_inside(self.root, name), filters=pc.field("episode_index") == number)
        if len(table) != row["length"]:
            raise StoreError(
                f"{self.root}: episode {number} has {len(table)} frames, expected {row['length']}"
            )
        return table

    def _column(self, name: str, table: pa.Table) -> Array:
        feature, column = self.features[name], table.column(name).combine_chunks()
        shape = tuple(feature["shape"])
        if feature["dtype"] == "image":
            data = column.field("bytes") if pa.types.is_struct(column.type) else column
            if data.null_count:
                raise StoreError(
                    f"{self.root}: {name} has pictures outside the data, which are not read"
                )
            return np.stack([decoded(picture) for picture in data.to_pylist()])
        if feature["dtype"] == "string":
            return np.array(column.to_pylist(), object)
        while hasattr(column, "flatten") and pa.types.is_nested(column.type):
            column = column.flatten()
        flat = column.to_numpy(zero_copy_only=False).astype(feature["dtype"])
        made: Array = flat.reshape(len(table), *(() if shape == (1,) else shape))
        return made


def read_lerobot(root: str | Path) -> LeRobotReader:
    """The dataset in a folder."""
    return LeRobotReader(root)


def _inside(root: Path, name: str) -> Path:
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise StoreError(f"{root}: {name!r} is outside the dataset")
    return path


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise StoreError(f"{path}: expected the JSON of a LeRobotDataset ({e})") from e
    if not isinstance(found, dict):
        raise StoreError(f"{path}: expected a map")
    return found


def _read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError) as e:
        raise StoreError(f"{path}: expected lines of JSON ({e})") from e
