"""Making a rendered dataset in layout A with side files: on all cores, and after a crash from where
it stopped."""

from __future__ import annotations

import functools
import itertools
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perdure.errors import EnvironmentFault, SpecError, UnknownName
from perdure.registry import extras_named
from perdure.seeds import rng_for
from perdure.suites.openloris import side
from perdure.suites.openloris.film import Frame, Studio
from perdure.suites.openloris.labels import NAMES, category
from perdure.suites.openloris.layouts import FACTORS, SEGMENTS, SPLITS
from perdure.types import Array

VERSION = 2
"""Changes when the same seed would give other frames."""
SPEC, DONE = "_render.json", "rendered.json"
LEAST, WIDEST = 64, 424
QUALITY = 92
Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Job:
    """The nine clips of one object and one factor."""

    root: str
    name: str
    factor: str
    frames: int
    size: int
    seed: int
    side_files: bool


def render(
    root: str | Path,
    instances: int | Sequence[str] = 121,
    frames: int = 10,
    size: int = 128,
    workers: int = 2,
    seed: int = 0,
    side_files: bool = True,
    factors: Sequence[str] = FACTORS,
    report: Report | None = None,
) -> Path:
    """Render ``frames`` frames of every object in each of the 36 segments, split 8:1:1.

    ``instances`` is a number, then categories take turns, or names. ``size`` is the width of a
    standard frame (424 in the dataset, heights are 9/16 of it). Called again it makes what is
    missing; more objects can be added, other settings need another folder. ``report`` is told how
    many of how many jobs are done.
    """
    names = chosen(instances)
    _check(frames, size, workers, factors)
    top = Path(root).expanduser()
    _claim(top, {"version": VERSION, "seed": seed, "frames": frames, "size": size})
    jobs = [Job(str(top), n, f, frames, size, seed, side_files) for n in names for f in factors]
    left = [j for j in jobs if not all(_mark(j, k).is_file() for k in range(1, SEGMENTS + 1))]
    done = len(jobs) - len(left)
    if report:
        report(done, len(jobs))
    failed = []
    for why in _run(left, workers):
        done += 1
        failed += [why] if why else []
        if report:
            report(done, len(jobs))
    if failed:
        # One stubborn clip must not cost hours of others: it is said when all else is done.
        raise EnvironmentFault(
            f"{len(failed)} of {len(jobs)} jobs failed:\n  " + "\n  ".join(failed)
        )
    _write(top / DONE, json.dumps({"instances": _finished(top)}, indent=1).encode())
    return top


def chosen(instances: int | Sequence[str]) -> list[str]:
    """Object names in label order: those given, or so many, the first of each category first."""
    if isinstance(instances, int):
        if not 1 <= instances <= len(NAMES):
            raise SpecError(f"'instances' must be 1 to {len(NAMES)}, got {instances}")
        rank = {n: [m for m in NAMES if category(m) == category(n)].index(n) for n in NAMES}
        names = set(sorted(NAMES, key=lambda n: (rank[n], NAMES.index(n)))[:instances])
    else:
        names = set(instances)
        for n in names - set(NAMES):
            raise UnknownName("OpenLORIS object", n, NAMES)
    return [n for n in NAMES if n in names]


def splits(frames: int, seed: int, *place: str | int) -> Array:
    """For each frame of a clip: 0 train, 1 validation, 2 test, in the proportion 8:1:1."""
    tenth = max(1, round(frames / 10))
    out = np.zeros(frames, int)
    order = rng_for(seed, "split", *place).permutation(frames)
    out[order[:tenth]], out[order[tenth : 2 * tenth]] = 1, 2
    return out


def _check(frames: int, size: int, workers: int, factors: Sequence[str]) -> None:
    for what, value, low, high in (
        ("frames", frames, 3, 9999), ("size", size, LEAST, WIDEST), ("workers", workers, 1, 1024),
    ):  # fmt: skip
        if not low <= value <= high:
            raise SpecError(f"{what!r} must be {low} to {high}, got {value}")
    for factor in factors:
        if factor not in FACTORS:
            raise UnknownName("OpenLORIS factor", factor, FACTORS)


def _claim(root: Path, spec: dict[str, int]) -> None:
    """Write what is rendered here, or refuse if it is something else."""
    path = root / SPEC
    if path.is_file():
        found = json.loads(path.read_text())
        if found != spec:
            other = ", ".join(
                f"{k} {found.get(k)} there, {v} asked" for k, v in spec.items() if found.get(k) != v
            )
            raise SpecError(
                f"{root} holds other frames ({other}): choose another folder, or remove it"
            )
    else:
        root.mkdir(parents=True, exist_ok=True)
        _write(path, json.dumps(spec).encode())


def _run(jobs: Sequence[Job], workers: int) -> Iterator[str]:
    """Do the jobs, here or in processes of their own; yields after each what was wrong, or ''."""
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield work(job)
        _studio.cache_clear()
        return
    context = multiprocessing.get_context("spawn")
    # An object stays in one process: furnishing its room costs as much as a hundred frames.
    objects = [list(mine) for _, mine in itertools.groupby(jobs, key=lambda j: j.name)]
    with ProcessPoolExecutor(workers, context, initializer=_die_with_parent) as pool:
        waiting = [pool.submit(_works, mine) for mine in objects]
        try:
            for done in as_completed(waiting):
                yield from done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _die_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@functools.lru_cache(maxsize=1)
def _studio(name: str, seed: int, size: int) -> Studio:
    return Studio(name, seed, size)


def _works(jobs: Sequence[Job]) -> list[str]:
    return [work(job) for job in jobs]


def work(job: Job) -> str:
    """Render the clips of a job that are not there yet; says what could not be made, or ''."""
    failed = []
    for k in range(1, SEGMENTS + 1):
        if not _mark(job, k).is_file():
            studio = _studio(job.name, job.seed, job.size)
            try:
                _store(job, k, studio.clip(job.factor, k, job.frames))
            except EnvironmentFault as e:
                failed.append(str(e))
    return "; ".join(failed)


def _mark(job: Job, segment: int) -> Path:
    """The file that is written last: with it, the clip is whole."""
    return Path(job.root) / "boxes" / "train" / job.factor / f"segment{segment}" / f"{job.name}.csv"


def _store(job: Job, segment: int, clip: Sequence[Frame]) -> None:
    root = Path(job.root)
    parts = splits(len(clip), job.seed, job.name, job.factor, segment)
    for k in (2, 1, 0):
        place = f"{SPLITS[k]}/{job.factor}/segment{segment}/{job.name}"
        mine = [f for f, part in zip(clip, parts, strict=True) if part == k]
        folders = [root / place]
        if job.side_files:
            folders += [root / "depth" / place, root / "mask" / place]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        for frame in mine:
            _picture(frame, folders)
        path = root / "boxes" / f"{place}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, side.table(f.measured for f in mine).encode())


def _picture(frame: Frame, folders: Sequence[Path]) -> None:
    with extras_named("the OpenLORIS renderer"):
        from PIL import Image
    name = frame.measured.file
    Image.fromarray(frame.rgb).save(folders[0] / name, quality=QUALITY)
    if len(folders) > 1:
        png = Path(name).with_suffix(".png")
        millimetres = np.clip(frame.depth * 1000, 0, 65535).astype(np.uint16)
        Image.fromarray(millimetres).save(folders[1] / png, compress_level=1)
        Image.fromarray(frame.mask).save(folders[2] / png, compress_level=1)


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)


def _finished(root: Path) -> list[str]:
    """Objects that have all of their clips."""
    marks = [
        root / "boxes" / "train" / f / f"segment{k}"
        for f in FACTORS
        for k in range(1, SEGMENTS + 1)
    ]
    present = [{p.stem for p in folder.glob("*.csv")} for folder in marks if folder.is_dir()]
    whole = set.intersection(*present) if present else set()
    return [n for n in NAMES if n in whole]
