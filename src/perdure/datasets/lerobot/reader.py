"""Reading a LeRobotDataset, episode by episode."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from perdure.arrays import Array
from perdure.datasets.episodes import DatasetEpisode
from perdure.datasets.files import read_map
from perdure.datasets.lerobot.layout import CHUNK, INDICES, INFO, NEXT, OLDER, TASKS, VERSION
from perdure.datasets.lerobot.videos import read_video
from perdure.errors import StoreError
from perdure.policies.pictures import decoded


class LeRobotReader:
    """A LeRobotDataset on disk, version 3.0 or 2.1, episode by episode."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.info = read_map(self.root / INFO, "a LeRobotDataset")
        self.version = str(self.info.get("codebase_version", ""))
        if self.version not in (VERSION, *OLDER):
            raise StoreError(
                f"{self.root}: a LeRobotDataset of version {self.version!r}; 3.0, 2.1 or 2.0 are read"
            )
        self.features: dict[str, dict[str, Any]] = self.info["features"]
        self.fps = int(self.info["fps"])
        self.videos = [n for n, f in self.features.items() if f["dtype"] == "video"]
        """Features that are in videos."""
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
            n: self._video(n, row, len(table)) if n in self.videos else self._column(n, table)
            for n in self.features
            if n not in INDICES
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

    def _video(self, name: str, row: Mapping[str, Any], count: int) -> Array:
        """The pictures of an episode that are in a video."""
        shape, head = tuple(self.features[name]["shape"]), f"videos/{name}"
        if self.version == VERSION:
            start = float(row[f"{head}/from_timestamp"])
            places = {n: row[f"{head}/{n}"] for n in ("chunk_index", "file_index")}
        else:
            start, places = 0.0, self._older(int(row["episode_index"]))
        path = self.info["video_path"].format(video_key=name, **places)
        return read_video(_inside(self.root, path), shape, self.fps, start, count)

    def _older(self, number: int) -> dict[str, int]:
        """The place of an episode in the layout of version 2."""
        chunk = number // int(self.info.get("chunks_size", CHUNK))
        return {"episode_chunk": chunk, "episode_index": number}

    def _frames(self, k: int) -> pa.Table:
        """The frames of an episode."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        row = self.episodes[k]
        number = int(row["episode_index"])
        if self.version != VERSION:
            name = self.info["data_path"].format(**self._older(number))
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


def _read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError) as e:
        raise StoreError(f"{path}: expected lines of JSON ({e})") from e
