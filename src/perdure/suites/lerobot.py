"""LeRobotDataset: the tasks of a dataset on disk, to learn from and to be held against what was held out.

``lerobot/task-0`` with ``path`` is the first task of the dataset there; its words are its instruction.
Every fifth episode of a task is held out. Frames are read from disk as they are asked for, an episode of a video
at a time.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.curricula import interleave
from perdure.datasets.episodes import DatasetEpisode
from perdure.datasets.lerobot import LeRobotReader
from perdure.errors import CurriculumError, UnknownName
from perdure.suite import Data, Suite
from perdure.types import Array, Curriculum, Examples, Exposure, Task, evaluate, learn

HELD_OUT = 5
"""Of so many episodes of a task, the last."""
KEPT_BYTES = 256 << 20
"""Of episodes that were read last."""


@functools.lru_cache(maxsize=8)
def _opened(path: str) -> LeRobotReader:
    return LeRobotReader(path)


def _reader(task: Task) -> LeRobotReader:
    for name in task.params:
        if name not in ("path", "batch_size"):
            raise UnknownName(f"parameter of {task.id}", name, ("path", "batch_size"))
    if not isinstance(task.params.get("path"), str):
        raise CurriculumError(f"{task.id}: name the dataset's folder, path=DIR")
    return _opened(task.params["path"])


def _index(task: Task) -> int:
    reader, number = _reader(task), task.name.removeprefix("task-")
    if not number.isdigit() or int(number) not in reader.tasks:
        known = [f"task-{k}" for k in sorted(reader.tasks)]
        raise UnknownName(f"task of {reader.root}", task.name, known)
    return int(number)


def _observed(name: str) -> str:
    return name.removeprefix("observation.").replace(".", "_")


class LeRobotData:
    """The frames of a task's episodes."""

    def __init__(self, task: Task, learning: bool) -> None:
        self.reader, index = _reader(task), _index(task)
        self.batch_size = int(task.params.get("batch_size", 64))
        words = self.reader.tasks[index]
        mine = [k for k, row in enumerate(self.reader.episodes) if words in row["tasks"]]
        held = [k for n, k in enumerate(mine) if n % HELD_OUT == HELD_OUT - 1] or mine[-1:]
        self.episodes = [k for k in mine if k not in held] if learning else held
        lengths = [int(self.reader.episodes[k]["length"]) for k in self.episodes]
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
        if not self.episodes:
            raise CurriculumError(f"{task.id}: {len(mine)} episodes are too few to hold one out")
        self.cache: OrderedDict[int, DatasetEpisode] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return int(self.starts[-1])

    def _episode(self, k: int) -> DatasetEpisode:
        if k in self.cache:
            self.cache.move_to_end(k)
            return self.cache[k]
        found = self.cache[k] = self.reader[self.episodes[k]]
        self.size += _bytes(found)
        while self.size > KEPT_BYTES and len(self.cache) > 1:
            self.size -= _bytes(self.cache.popitem(last=False)[1])
        return found

    def batch(self, indices: Array) -> Examples:
        """The frames at these indices: what was seen, and what was done."""
        where = np.searchsorted(self.starts, indices, side="right") - 1
        rows: list[tuple[dict[str, Array], Array]] = []
        for index, k in zip(np.asarray(indices).tolist(), where.tolist(), strict=True):
            episode, step = self._episode(k), index - int(self.starts[k])
            seen = {_observed(n): a[step] for n, a in episode.observations.items()}
            rows.append((seen, episode.actions[step]))
        names = rows[0][0]
        parts = {n: np.stack([seen[n] for seen, _ in rows]) for n in names}
        inputs = parts if len(parts) > 1 else next(iter(parts.values()))
        return Examples(inputs, np.stack([action for _, action in rows]))


def _bytes(episode: DatasetEpisode) -> int:
    return sum(a.nbytes for a in episode.observations.values()) + episode.actions.nbytes


class LeRobotSuite(Suite):
    """Datasets in LeRobot's format."""

    name = "lerobot"

    def tasks(self) -> Sequence[Task]:
        return []

    def task(self, name: str) -> Task:
        return Task("lerobot", name)

    def has_env(self, task: Task) -> bool:
        return False

    def instructions(self, task: Task) -> Sequence[str]:
        return (_reader(task).tasks[_index(task)],)

    def data(self, task: Task, learning: bool) -> Data:
        return LeRobotData(task, learning)

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        reader = _reader(task)
        parts: dict[str, spaces.Space[Any]] = {}
        for name, feature in reader.features.items():
            if name.startswith("observation.") and feature["dtype"] != "string":
                parts[_observed(name)] = _space(feature)
        if not parts:
            raise CurriculumError(f"{reader.root}: it has no observation of numbers or pictures")
        observed = spaces.Dict(parts) if len(parts) > 1 else next(iter(parts.values()))
        return observed, _space(reader.features["action"])

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return {"sequence": sequence}


def _space(feature: Mapping[str, Any]) -> spaces.Box:
    shape = tuple(feature["shape"])
    if feature["dtype"] in ("image", "video"):
        return spaces.Box(0, 255, shape, np.uint8)
    dtype = np.dtype(feature["dtype"])
    if dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, shape, dtype.type)
    limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return spaces.Box(*limits, shape, np.int8 if dtype.kind == "b" else dtype.type)


def sequence(path: str, epochs: int = 10, batch_size: int = 64) -> Curriculum:
    """The tasks of a dataset in turn, each held against what was held out of all of them."""
    params = {"path": str(path), "batch_size": batch_size}
    tasks = [Task("lerobot", f"task-{k}", params=params) for k in sorted(_opened(str(path)).tasks)]
    blocks = [learn(Exposure(task, epochs, "epochs")) for task in tasks]
    held = evaluate(*(Exposure(task, 1, "epochs") for task in tasks))
    return Curriculum(
        "lerobot/sequence", interleave(blocks, held), about="A dataset's tasks in turn."
    )


suite = LeRobotSuite()
