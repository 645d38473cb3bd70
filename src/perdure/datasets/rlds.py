"""RLDS datasets, as TensorFlow Datasets keeps them on disk, read without TensorFlow.

::

    dataset_info.json                 splits, and how many episodes are in each of their files
    features.json                     what a step has
    NAME-train.tfrecord-00000-of-00008  episodes, one in each record

Read are steps of tensors of known shape, numbers, truth values, texts and pictures (PNG, JPEG), nested in
dictionaries; in TFRecord files. Not read: other file formats (ArrayRecord, Riegeli), compressed files, sequences within
steps, ragged tensors, videos, audio: such a feature is left out and listed in ``left_out``.

A step's action and reward are those that follow its observation. Every step is kept, also a last one
whose action nobody took, as RLDS has it of some datasets (``drop_last`` leaves it out). ``is_terminal`` is a termination,
``is_last`` without it a truncation. TensorFlow Datasets itself keeps 64-bit floats as 32-bit ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.datasets.episodes import DatasetEpisode
from perdure.datasets.files import read_map
from perdure.datasets.tfrecord import Values, example, records
from perdure.errors import StoreError, UnknownName
from perdure.policies.pictures import decoded

INFO, FEATURES = "dataset_info.json", "features.json"
INSTRUCTIONS = ("language_instruction", "observation/natural_language_instruction",
                "observation/language_instruction", "natural_language_instruction")  # fmt: skip
"""Where datasets have a step's words."""
TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
FLAGS = ("is_first", "is_last", "is_terminal")
Leaf = tuple[str, tuple[int, ...], str]
"""A feature's dtype (or ``text``, ``image``), shape and encoding."""


class RldsReader:
    """An RLDS dataset on disk, one split of it, episode by episode."""

    def __init__(
        self, root: str | Path, split: str = "", verify: bool = False, drop_last: bool = False
    ) -> None:
        self.root, self.verify, self.drop_last = Path(root), verify, drop_last
        self.info = read_map(self.root / INFO, "an RLDS dataset")
        kind = self.info.get("fileFormat", "tfrecord")
        if kind != "tfrecord":
            raise StoreError(f"{self.root}: files of the format {kind!r}; read is tfrecord")
        splits = {s["name"]: s for s in self.info.get("splits", ())}
        self.split = split or ("train" if "train" in splits else next(iter(splits), ""))
        if self.split not in splits:
            raise UnknownName(f"split of {self.root}", self.split, splits)
        self.shards = [int(n) for n in splits[self.split].get("shardLengths", ())]
        self.left_out: list[str] = []
        """Features that are not read."""
        self.features = dict(self._leaves(read_map(self.root / FEATURES, "an RLDS dataset"), ""))
        if not any(name.startswith("steps/action") for name in self.features):
            raise StoreError(f"{self.root}: expected episodes with steps/action, as RLDS has them")

    def _leaves(self, found: Mapping[str, Any], head: str) -> Iterator[tuple[str, Leaf]]:
        """Features by their names in an example."""
        if "featuresDict" in found:
            for name, part in found["featuresDict"]["features"].items():
                yield from self._leaves(part, f"{head}/{name}" if head else name)
        elif "sequence" in found and head == "steps":
            yield from self._leaves(found["sequence"]["feature"], head)
        elif "text" in found:
            yield head, ("text", (), "")
        elif "image" in found:
            yield head, ("image", _shape(found["image"]), "")
        elif "tensor" in found and all(n > 0 for n in _shape(found["tensor"])):
            told = found["tensor"]
            kind = "text" if told["dtype"] in ("string", "object") else told["dtype"]
            yield head, (kind, _shape(told), told.get("encoding", "none"))
        else:
            self.left_out.append(head)

    def __len__(self) -> int:
        return sum(self.shards)

    def __iter__(self) -> Iterator[DatasetEpisode]:
        return (self._episode(e, k) for k, e in enumerate(self._examples()))

    def __getitem__(self, k: int) -> DatasetEpisode:
        if not 0 <= k < len(self):
            raise IndexError(f"episode {k} of {len(self)}")
        first = 0
        for shard, count in enumerate(self.shards):
            if k < first + count:
                for n, data in enumerate(records(self._file(shard), self.verify)):
                    if first + n == k:
                        return self._episode(example(data), k)
                break
            first += count
        raise StoreError(f"{self.root}: episode {k} is not in its file")

    def _file(self, shard: int) -> Path:
        told = next(s for s in self.info["splits"] if s["name"] == self.split)
        name = str(told.get("filepathTemplate", TEMPLATE))
        for place, value in {
            "DATASET": str(self.info["name"]),
            "SPLIT": self.split,
            "FILEFORMAT": "tfrecord",
            "SHARD_X_OF_Y": f"{shard:05d}-of-{len(self.shards):05d}",
        }.items():
            name = name.replace(f"{{{place}}}", value)
        path = self.root / Path(name).name
        if not path.is_file():
            raise StoreError(f"{path}: this file of the dataset is not there")
        return path

    def _examples(self) -> Iterator[dict[str, Values]]:
        for shard, count in enumerate(self.shards):
            found = 0
            for data in records(self._file(shard), self.verify):
                found += 1
                yield example(data)
            if found != count:
                raise StoreError(f"{self._file(shard)}: expected {count} episodes, got {found}")

    def _episode(self, found: Mapping[str, Values], k: int) -> DatasetEpisode:
        where = f"{self.root}, episode {k}"
        count = _count(found, self.features, where)
        kept = count - 1 if self.drop_last and count > 1 else count
        steps: dict[str, Array] = {}
        about: dict[str, Any] = {}
        for name, leaf in self.features.items():
            if name.startswith("steps/"):
                array = _array(found.get(name), leaf, count, f"{where}: {name}")
                steps[name.removeprefix("steps/")] = array[:kept]
            elif name in found:
                value = _array(found[name], leaf, 1, f"{where}: {name}")[0]
                about[name] = (
                    value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
                )
        words = next((steps.pop(n) for n in INSTRUCTIONS if n in steps), None)
        last, terminal = (steps.get(n, np.zeros(kept, bool)).astype(bool) for n in FLAGS[1:])
        acted = {n: a for n, a in steps.items() if n == "action" or n.startswith("action/")}
        seen = {n: a for n, a in steps.items() if n.startswith("observation/")}
        rest = {n: a for n, a in steps.items() if n not in {*acted, *seen, *FLAGS, "reward"}}
        return DatasetEpisode(
            {n.removeprefix("observation/"): a for n, a in seen.items()},
            _together(acted),
            steps.get("reward", np.zeros(kept, np.float32)),
            terminal,
            last & ~terminal,
            task="" if words is None else str(words[0]),
            about=about,
            infos=rest,
        )


def _together(parts: Mapping[str, Array]) -> Array:
    """Actions that are a map become one vector, in the order of their names."""
    if list(parts) == ["action"]:
        return parts["action"]
    return np.concatenate([parts[n].reshape(len(parts[n]), -1) for n in sorted(parts)], axis=1)


def _count(found: Mapping[str, Values], features: Mapping[str, Leaf], where: str) -> int:
    """How many steps an episode has: of what has one value for each of them."""
    for name, (kind, shape, encoding) in features.items():
        if name.startswith("steps/") and name in found:
            each = 1 if kind in ("text", "image") or encoding != "none" else int(np.prod(shape))
            return len(found[name]) // max(each, 1)
    raise StoreError(f"{where}: it has no steps")


def _array(values: Values | None, leaf: Leaf, count: int, where: str) -> Array:
    """A feature of all steps."""
    kind, shape, encoding = leaf
    if values is None:
        raise StoreError(f"{where} is missing")
    if isinstance(values, list):
        if len(values) != count:
            raise StoreError(f"{where}: expected {count}, one for each step, got {len(values)}")
        if kind == "image":
            return np.stack([decoded(data) for data in values])
        if kind == "text":
            return np.array([data.decode(errors="replace") for data in values], object)
        plain = [zlib.decompress(v) if encoding == "zlib" else v for v in values]
        rows = [np.frombuffer(data, np.dtype(kind)) for data in plain]
        return np.stack(rows).reshape(count, *shape)
    wanted = count * int(np.prod(shape, dtype=int))
    if values.size != wanted:
        raise StoreError(f"{where}: expected {wanted} numbers, got {values.size}")
    made: Array = values.astype(np.dtype(kind)).reshape(count, *shape)
    return made


def _shape(found: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(n) for n in found.get("shape", {}).get("dimensions", ()))
