"""Where the files of a LeRobotDataset are, and what its features are called."""

from __future__ import annotations

from perdure.arrays import Array
from perdure.datasets.episodes import is_picture

VERSION = "v3.0"
OLDER = ("v2.1", "v2.0")
CHUNK = 1000
"""Files in a folder."""
DATA_MB, VIDEO_MB = 100, 200
INFO, STATS, TASKS = "meta/info.json", "meta/stats.json", "meta/tasks.parquet"
EPISODES = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
INDICES = ("timestamp", "frame_index", "episode_index", "index", "task_index")
NEXT = {"next.reward": "rewards", "next.done": "terminations", "next.truncated": "truncations",
        "next.success": "successes"}  # fmt: skip


def feature_name(name: str, array: Array) -> str:
    """What LeRobot calls an observation."""
    if name:
        return name if name.startswith("observation.") else f"observation.{name}"
    return "observation.image" if is_picture(array) else "observation.state"


def next_file(chunk: int, file: int) -> tuple[int, int]:
    """The place of the file after this one."""
    return chunk + (file + 1) // CHUNK, (file + 1) % CHUNK
