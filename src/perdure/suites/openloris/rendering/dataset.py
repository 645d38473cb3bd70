"""Renders a dataset to disk in layout A, with annotations: in parallel and resumable."""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perdure.errors import EnvironmentFault, SpecError, UnknownName
from perdure.pools import worker_pool
from perdure.registry import extras_named
from perdure.seeds import rng_for
from perdure.suites.openloris import frame_annotations
from perdure.suites.openloris.labels import NAMES, category
from perdure.suites.openloris.layouts import FACTORS, SEGMENTS, SPLITS
from perdure.suites.openloris.rendering.clips import ClipRenderer, Frame
from perdure.types import Array

VERSION = 2
"""Changes when the same seed would give other frames."""
SETTINGS_FILE, INDEX_FILE = "_render.json", "rendered.json"
"""What is rendered here, written first; and which objects are complete, written last."""
MIN_WIDTH, MAX_WIDTH = 64, 424
JPEG_QUALITY = 92
Progress = Callable[[int, int], None]
"""Called with the number of jobs that are done, and of all."""


@dataclass(frozen=True, slots=True)
class RenderJob:
    """The nine clips of one object and one factor."""

    root: str
    name: str
    factor: str
    frames: int
    size: int
    seed: int
    depth_and_masks: bool


def render_dataset(
    root: str | Path,
    instances: int | Sequence[str] = 121,
    frames: int = 10,
    size: int = 128,
    workers: int = 2,
    seed: int = 0,
    depth_and_masks: bool = True,
    factors: Sequence[str] = FACTORS,
    report: Progress | None = None,
) -> Path:
    """Render ``frames`` frames of every object in each of the 36 segments, split 8:1:1.

    ``instances`` are object names, or their number (see ``select_objects``). ``size`` is the width of
    a standard frame (424 in the dataset); heights are 9/16 of it. Called again it renders what is
    missing; more objects can be added, other settings need another folder. ``depth_and_masks``
    says whether these annotations are written; boxes always are.
    """
    names = select_objects(instances)
    _check(frames, size, workers, factors)
    top = Path(root).expanduser()
    _claim_folder(top, {"version": VERSION, "seed": seed, "frames": frames, "size": size})
    jobs = [
        RenderJob(str(top), n, f, frames, size, seed, depth_and_masks)
        for n in names
        for f in factors
    ]
    left = [j for j in jobs if not all(_is_complete(j, k) for k in range(1, SEGMENTS + 1))]
    done = len(jobs) - len(left)
    if report:
        report(done, len(jobs))
    failed = []
    for error in _run_jobs(left, workers):
        done += 1
        failed += [error] if error else []
        if report:
            report(done, len(jobs))
    if failed:
        # One clip that cannot be rendered must not cost hours of others: it is reported at the end.
        raise EnvironmentFault(
            f"{len(failed)} of {len(jobs)} jobs failed:\n  " + "\n  ".join(failed)
        )
    _write_atomically(
        top / INDEX_FILE, json.dumps({"instances": _complete_objects(top)}, indent=1).encode()
    )
    return top


def select_objects(instances: int | Sequence[str]) -> list[str]:
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


def assign_splits(frames: int, seed: int, *place: str | int) -> Array:
    """For each frame of a clip: 0 train, 1 validation, 2 test, in the proportion 8:1:1."""
    tenth = max(1, round(frames / 10))
    out = np.zeros(frames, int)
    order = rng_for(seed, "split", *place).permutation(frames)
    out[order[:tenth]], out[order[tenth : 2 * tenth]] = 1, 2
    return out


def _check(frames: int, size: int, workers: int, factors: Sequence[str]) -> None:
    for what, value, low, high in (
        ("frames", frames, 3, 9999),
        ("size", size, MIN_WIDTH, MAX_WIDTH),
        ("workers", workers, 1, 1024),
    ):
        if not low <= value <= high:
            raise SpecError(f"{what!r} must be {low} to {high}, got {value}")
    for factor in factors:
        if factor not in FACTORS:
            raise UnknownName("OpenLORIS factor", factor, FACTORS)


def _claim_folder(root: Path, settings: dict[str, int]) -> None:
    """Write the settings to the folder, or refuse if it was rendered with others."""
    path = root / SETTINGS_FILE
    if path.is_file():
        found = json.loads(path.read_text())
        if found != settings:
            other = ", ".join(
                f"{k} {found.get(k)} there, {v} asked"
                for k, v in settings.items()
                if found.get(k) != v
            )
            raise SpecError(
                f"{root} holds other frames ({other}): choose another folder, or remove it"
            )
    else:
        root.mkdir(parents=True, exist_ok=True)
        _write_atomically(path, json.dumps(settings).encode())


def _run_jobs(jobs: Sequence[RenderJob], workers: int) -> Iterator[str]:
    """Run the jobs, here or in worker processes; yields the error of each, or '', when done."""
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield _run_job(job)
        _clip_renderer.cache_clear()
        return
    # An object stays in one process: building its scene costs as much as a hundred frames.
    objects = [list(mine) for _, mine in itertools.groupby(jobs, key=lambda j: j.name)]
    with worker_pool(workers) as pool:
        waiting = [pool.submit(_run_here, mine) for mine in objects]
        for done in as_completed(waiting):
            yield from done.result()


@functools.lru_cache(maxsize=1)
def _clip_renderer(name: str, seed: int, size: int) -> ClipRenderer:
    return ClipRenderer(name, seed, size)


def _run_here(jobs: Sequence[RenderJob]) -> list[str]:
    return [_run_job(job) for job in jobs]


def _run_job(job: RenderJob) -> str:
    """Render the clips of a job that are not complete yet; returns its errors, or ''."""
    failed = []
    for k in range(1, SEGMENTS + 1):
        if not _is_complete(job, k):
            clips = _clip_renderer(job.name, job.seed, job.size)
            try:
                _write_clip(job, k, clips.clip(job.factor, k, job.frames))
            except EnvironmentFault as e:
                failed.append(str(e))
    return "; ".join(failed)


def _is_complete(job: RenderJob, segment: int) -> bool:
    """Whether all files of a clip are there."""
    # This one is written last.
    place = f"{SPLITS[0]}/{job.factor}/segment{segment}/{job.name}"
    return frame_annotations.csv_path(Path(job.root), place).is_file()


def _write_clip(job: RenderJob, segment: int, clip: Sequence[Frame]) -> None:
    root = Path(job.root)
    parts = assign_splits(len(clip), job.seed, job.name, job.factor, segment)
    for k in (2, 1, 0):
        place = f"{SPLITS[k]}/{job.factor}/segment{segment}/{job.name}"
        mine = [f for f, part in zip(clip, parts, strict=True) if part == k]
        folders = [root / place]
        if job.depth_and_masks:
            folders += [root / "depth" / place, root / "mask" / place]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        for frame in mine:
            write_frame(frame, folders)
        path = frame_annotations.csv_path(root, place)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(path, frame_annotations.to_csv(f.annotation for f in mine).encode())


def write_frame(frame: Frame, folders: Sequence[Path]) -> None:
    """Write the frame to the first folder, and depth and mask to the others if there are any."""
    with extras_named("the OpenLORIS renderer"):
        from PIL import Image
    name = frame.annotation.file
    Image.fromarray(frame.rgb).save(folders[0] / name, quality=JPEG_QUALITY)
    if len(folders) > 1:
        png = Path(name).with_suffix(".png")
        millimetres = np.clip(frame.depth * 1000, 0, 65535).astype(np.uint16)
        Image.fromarray(millimetres).save(folders[1] / png, compress_level=1)
        Image.fromarray(frame.mask).save(folders[2] / png, compress_level=1)


def _write_atomically(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)


def _complete_objects(root: Path) -> list[str]:
    """Objects that have all of their clips."""
    folders = [
        frame_annotations.csv_path(root, f"{SPLITS[0]}/{f}/segment{k}/OBJECT").parent
        for f in FACTORS
        for k in range(1, SEGMENTS + 1)
    ]
    present = [{p.stem for p in folder.glob("*.csv")} for folder in folders if folder.is_dir()]
    complete = set.intersection(*present) if present else set()
    return [n for n in NAMES if n in complete]
