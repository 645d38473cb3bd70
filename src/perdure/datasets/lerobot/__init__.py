"""LeRobotDataset, version 3.0: written and read file by file; versions 2.1 and 2.0: read.

::

    meta/info.json                            features, counts, where files are
    meta/stats.json                           of each feature: min, max, mean, std, count, quantiles
    meta/tasks.parquet                        task_index by task
    meta/episodes/chunk-000/file-000.parquet  a row for each episode: where it is, its tasks, its stats
    data/chunk-000/file-000.parquet           a row for each frame, a row group for each episode
    videos/KEY/chunk-000/file-000.mp4         the pictures of a camera, episode after episode

Pictures are PNG within the data, which loses nothing, or videos, which are smaller and lose something.

An observation of the name ``x`` is the feature ``observation.x``; the only one, of no name, is
``observation.state`` or ``observation.image``. What LeRobot has no place for (an observation after the
last action, seeds) is left out.
"""

from perdure.datasets.lerobot.reader import LeRobotReader, read_lerobot
from perdure.datasets.lerobot.writer import write_lerobot

__all__ = ["LeRobotReader", "read_lerobot", "write_lerobot"]
