"""The folder layouts in which OpenLORIS-Object is found, and an index of their frames.

== ============================ ==================================================================
A  the ICRA 2020 archives       ``{train,test,validation}/FACTOR/segment{1..9}/OBJECT/*.jpg``
B  the authors' benchmark       ``FACTOR/{train,test}/task{1..9}/OBJECT/*.jpg``, or
                                ``sequence/{train,test,validation}/task{1..36}/OBJECT/*.jpg``
C  Avalanche                    ``batches_filelists/domain/FACTOR/train_batch_00.txt``, ``test.txt``
D  the IROS 2019 competition    ``{train,validation,test}/batch{1..9}/label.csv``
== ============================ ==================================================================
"""

from __future__ import annotations

import csv
import functools
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import SpecError

FACTORS = ("illumination", "occlusion", "pixel", "clutter")
SEGMENTS = 9
SPLITS = ("train", "validation", "test")
BATCH = "batch"
"""Stands in a factor's place in the competition's data, which mixes factors."""
_FOLDERS = {"train": ("train",), "validation": ("validation", "valid"), "test": ("test",)}
_PICTURES = (".jpg", ".jpeg", ".png")
_PLACE = re.compile(r"(illumination|occlusion|pixel|clutter)/segment(\d+)/([^/]+)/[^/]+$")


@dataclass(frozen=True, slots=True)
class Clip:
    """Frames of one object in one part of one segment, in the order they were taken."""

    split: str
    factor: str
    segment: int
    object: str
    """The object's name; empty where only a number is known."""
    files: tuple[str, ...]
    """Paths below the root."""
    number: int = -1
    """The label as given by a list, where there is no name."""


@dataclass(frozen=True)
class ClipIndex:
    """An index of the frames on disk; it holds paths, no pixels."""

    root: Path
    layout: str
    clips: tuple[Clip, ...]
    empty: tuple[str, ...] = ()
    """Object folders without a frame: the release has some."""

    @functools.cached_property
    def _parts(self) -> dict[tuple[str, str, int], tuple[Clip, ...]]:
        parts: dict[tuple[str, str, int], list[Clip]] = {}
        for c in self.clips:
            parts.setdefault((c.split, c.factor, c.segment), []).append(c)
        return {k: tuple(v) for k, v in parts.items()}

    def part(self, split: str, factor: str, segment: int) -> tuple[Clip, ...]:
        """The clips of one part of one segment; SpecError names the folder if there are none."""
        clips = self._parts.get((split, factor, segment), ())
        if not clips:
            folder = self.folder(split, factor, segment)
            state = "holds no frames" if (self.root / folder).is_dir() else "is missing"
            raise SpecError(
                f"OpenLORIS data in {self.root} (layout {self.layout}): {folder} {state}; it should "
                f"hold the {split} frames of {factor}, segment {segment}"
            )
        return clips

    def folder(self, split: str, factor: str, segment: int) -> str:
        """Where a part of a segment belongs, below the root."""
        match self.layout:
            case "A":
                return f"{split}/{factor}/segment{segment}"
            case "B":
                return f"{factor}/{split}/task{segment}"
            case "C":
                name = f"train_batch_{segment - 1:02d}" if split == "train" else split
                return f"batches_filelists/domain/{factor}/{name}.txt"
            case _:
                return f"{split}/batch{segment}/label.csv"

    def counts(self) -> dict[tuple[str, str, int], int]:
        """Frames by (split, factor, segment)."""
        return {k: sum(len(c.files) for c in clips) for k, clips in self._parts.items()}


def load(root: str | Path) -> ClipIndex:
    """An index of the data below ``root``, whichever of the layouts A to D it has."""
    path = Path(root).expanduser()
    if not path.is_dir():
        raise SpecError(f"OpenLORIS data: {path} is not a folder")
    for base in (path, path / "openloris", path / "OpenLORIS-Object"):
        for layout, reader in _READERS.items():
            empty: list[str] = []
            clips = tuple(reader(base, empty)) if base.is_dir() else ()
            if clips:
                return ClipIndex(base, layout, clips, tuple(empty))
    zips = sorted(p.name for p in path.glob("*.zip"))
    hint = f"; unpack {', '.join(zips)} there first" if zips else ""
    raise SpecError(
        f"OpenLORIS data: {path} has none of the known layouts{hint}. Expected for instance "
        "train/illumination/segment1/bottle_01/*.jpg, or illumination/train/task1/bottle_01/*.jpg, "
        "or batches_filelists/domain/illumination/train_batch_00.txt, or train/batch1/label.csv"
    )


def missing(data: ClipIndex, factors: Iterable[str] = FACTORS) -> list[str]:
    """What the data lacks for the protocols on these factors, a sentence each; empty if nothing."""
    problems = []
    needed = [BATCH] if data.layout == "D" else list(factors)
    have = data.counts()
    for factor, k, split in itertools.product(needed, range(1, SEGMENTS + 1), ("train", "test")):
        if (split, factor, k) not in have:
            problems.append(f"{data.folder(split, factor, k)} is missing or holds no frames")
    names = {f: {c.object for c in data.clips if c.factor == f} for f in needed}
    everything = set().union(*names.values())
    for factor in needed:
        for name in sorted(everything - names[factor]):
            problems.append(f"{name} has no frame under {factor}")
    return problems


def _archives(root: Path, empty: list[str]) -> Iterator[Clip]:
    for split, factor in itertools.product(SPLITS, FACTORS):
        for top in _FOLDERS[split]:
            for k in range(1, SEGMENTS + 1):
                folder = root / top / factor / f"segment{k}"
                yield from _objects(root, folder, (split, factor, k), empty)


def _benchmark(root: Path, empty: list[str]) -> Iterator[Clip]:
    seen: set[tuple[str, str]] = set()
    for split, factor in itertools.product(SPLITS, FACTORS):
        for top in _FOLDERS[split]:
            for k in range(1, SEGMENTS + 1):
                folder = root / factor / top / f"task{k}"
                for clip in _objects(root, folder, (split, factor, k), empty):
                    seen.add((split, factor))
                    yield clip
    for split, (i, factor) in itertools.product(SPLITS, enumerate(FACTORS)):
        if (split, factor) in seen:
            continue
        for top, k in itertools.product(_FOLDERS[split], range(1, SEGMENTS + 1)):
            folder = root / "sequence" / top / f"task{SEGMENTS * i + k}"
            yield from _objects(root, folder, (split, factor, k), empty)


def _objects(
    root: Path, folder: Path, place: tuple[str, str, int], empty: list[str]
) -> Iterator[Clip]:
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        names = sorted(e.name for e in entries if e.is_dir())
    for name in names:
        below = (folder / name).relative_to(root).as_posix()
        with os.scandir(folder / name) as entries:
            files = sorted(e.name for e in entries if e.name.lower().endswith(_PICTURES))
        if files:
            yield Clip(*place, name, tuple(f"{below}/{f}" for f in files))
        else:
            empty.append(below)


def _file_lists(root: Path, empty: list[str]) -> Iterator[Clip]:
    top = root / "batches_filelists" / "domain"
    for factor in FACTORS:
        lists = [(f"train_batch_{k:02d}.txt", "train", k + 1) for k in range(SEGMENTS)]
        for name, split, k in (*lists, ("test.txt", "test", 0)):
            file = top / factor / name
            if file.is_file():
                lines = [x.rsplit(maxsplit=1) for x in file.read_text().splitlines() if x.strip()]
                yield from _listed(file, split, factor, k, lines)


def _listed(
    file: Path, split: str, factor: str, segment: int, lines: list[list[str]]
) -> Iterator[Clip]:
    placed = []
    for line in lines:
        found = _PLACE.search("/" + line[0])
        if len(line) != 2 or not line[1].isdigit():
            raise SpecError(f"{file}: expected lines of 'path label', got {' '.join(line)!r}")
        if not segment and found is None:
            raise SpecError(
                f"{file}: {line[0]} does not say its segment, so the tasks have no test sets of "
                "their own; unpack test.zip so that test/FACTOR/segmentK/OBJECT/ exists"
            )
        # The pooled test list is divided again by the segment that each path names.
        k = segment or int(found[2])  # type: ignore[index]
        placed.append(((k, found[3] if found else "", int(line[1])), line[0]))
    order = sorted(placed, key=lambda p: p[0]) if not segment else placed
    for (k, name, number), group in itertools.groupby(order, key=lambda p: p[0]):
        yield Clip(split, factor, k, name, tuple(path for _, path in group), number)


def _competition(root: Path, empty: list[str]) -> Iterator[Clip]:
    for split, k in itertools.product(SPLITS, range(1, SEGMENTS + 1)):
        folder = f"{split}/batch{k}"
        file = root / folder / "label.csv"
        if not file.is_file():
            continue
        with file.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        if rows and not {"file name", "label"} <= set(rows[0]):
            raise SpecError(
                f"{file}: expected columns 'file name' and 'label', got {list(rows[0])}"
            )
        for label, group in itertools.groupby(rows, key=lambda r: r["label"]):
            files = tuple(f"{folder}/{r['file name']}" for r in group)
            yield Clip(split, BATCH, k, "", files, int(label))


# Archives come before lists: Avalanche unpacks them beside its lists, and they say more.
_READERS = {"A": _archives, "B": _benchmark, "C": _file_lists, "D": _competition}
