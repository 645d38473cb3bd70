"""Writing a LeRobotDataset, episode by episode."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from perdure.arrays import Array, all_finite
from perdure.datasets.episodes import DatasetEpisode, new_folder
from perdure.datasets.lerobot.layout import (
    CHUNK,
    DATA,
    DATA_MB,
    EPISODES,
    INDICES,
    INFO,
    STATS,
    TASKS,
    VERSION,
    VIDEO,
    VIDEO_MB,
    next_file,
)
from perdure.datasets.lerobot.stats import listed, stats_of, together
from perdure.datasets.lerobot.tables import (
    columns_of,
    feature,
    index_feature,
    indices_of,
    table_of,
)
from perdure.datasets.lerobot.videos import VideoWriter
from perdure.errors import StoreError


def write_lerobot(
    out: str | Path,
    episodes: Iterable[DatasetEpisode],
    fps: int,
    robot_type: str | None = None,
    videos: bool = False,
) -> Path:
    """Write episodes as a new LeRobotDataset. They may come one after another: one at a time is held.
    With ``videos`` pictures become videos, which lose something; without, they are PNG."""
    if type(fps) is not int or fps < 1:
        raise StoreError(f"fps must be a whole number of at least 1, got {fps!r}")
    with new_folder(out) as root:
        _write(root, episodes, fps, robot_type, videos)
    return Path(out)


def _write(
    root: Path,
    episodes: Iterable[DatasetEpisode],
    fps: int,
    robot_type: str | None,
    videos: bool,
) -> None:
    features: dict[str, dict[str, Any]] = {}
    tasks: dict[str, int] = {}
    rows: list[dict[str, Any]] = []
    stats: list[dict[str, dict[str, Array]]] = []
    data, writers, frames = _DataFiles(root), dict[str, VideoWriter](), 0
    try:
        for number, episode in enumerate(episodes):
            columns = columns_of(episode)
            for name, array in columns.items():
                if not all_finite(array):
                    raise StoreError(
                        f"episode {number}: {name} is not finite, and LeRobotDataset has statistics of it: leave "
                        "out the episode or mend it"
                    )
            mine = {n: feature(n, array, fps, videos) for n, array in columns.items()}
            if features and mine != features:
                raise StoreError(
                    f"episode {number} has other features than the first: {mine} and {features}"
                )
            features = mine
            task = tasks.setdefault(episode.task, len(tasks))
            counts = indices_of(len(episode), number, frames, task, fps)
            where = data.add(table_of(columns, features, number, frames, task, fps))
            for name in (n for n, f in features.items() if f["dtype"] == "video"):
                writer = writers.setdefault(name, VideoWriter(root, name, fps))
                where |= writer.add(columns[name])
            rows.append(
                {
                    "episode_index": number,
                    "tasks": [episode.task],
                    "length": len(episode),
                    **where,
                    "dataset_from_index": frames,
                    "dataset_to_index": frames + len(episode),
                    "meta/episodes/chunk_index": 0,
                    "meta/episodes/file_index": 0,
                }
            )
            frames += len(episode)
            stats.append({n: stats_of(a) for n, a in {**columns, **counts}.items()})
    finally:
        data.close()
        for writer in writers.values():
            writer.close()
    if not rows:
        raise StoreError("a dataset needs at least one episode")
    _write_episodes(root / EPISODES.format(chunk_index=0, file_index=0), rows, stats)
    _write_tasks(root / TASKS, tasks)
    _write_json(root / STATS, {n: listed(together([s[n] for s in stats])) for n in stats[0]})
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
            "video_path": VIDEO if writers else None,
            "features": {**features, **{n: index_feature(n) for n in INDICES}},
        },
    )


class _DataFiles:
    """The tables of frames: a row group for each episode, a new file when one is full."""

    def __init__(self, root: Path) -> None:
        self.root, self.chunk, self.file = root, 0, 0
        self.writer: Any = None

    @property
    def path(self) -> Path:
        return self.root / DATA.format(chunk_index=self.chunk, file_index=self.file)

    def add(self, table: pa.Table) -> dict[str, Any]:
        """Write an episode; where it is, as its row says."""
        import pyarrow.parquet as pq

        if self.writer is not None and self.path.stat().st_size > DATA_MB << 20:
            self.close()
            self.chunk, self.file = next_file(self.chunk, self.file)
        if self.writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.writer = pq.ParquetWriter(self.path, table.schema, compression="snappy")
        self.writer.write_table(table, row_group_size=len(table))
        return {"data/chunk_index": self.chunk, "data/file_index": self.file}

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


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
