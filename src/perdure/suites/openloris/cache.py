"""Arrays computed from frames once, and kept as memory-mapped files in the cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from perdure.cache import cache_folder
from perdure.errors import EnvironmentFault, SpecError
from perdure.registry import extras_named
from perdure.types import Array

CHUNK = 64
"""Frames decoded before they are written, which bounds memory."""


def fingerprint(root: Path, files: Sequence[str], recipe: str) -> str:
    """A key that changes with the recipe, the list of files, and the length or time of any file."""
    digest = hashlib.blake2b(recipe.encode(), digest_size=12)
    for name in files:
        try:
            s = os.stat(root / name)
        except OSError as e:
            raise SpecError(f"OpenLORIS data: {root / name} cannot be read: {e.strerror}") from e
        digest.update(f"\n{name}\0{s.st_size}\0{s.st_mtime_ns}".encode())
    return digest.hexdigest()


def frames(root: Path, files: Sequence[str], size: int) -> Array:
    """Frames resized to ``size`` × ``size`` RGB bytes, not keeping proportions, as the authors did."""

    def fill(out: Array) -> None:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for start in range(0, len(files), CHUNK):
                part = files[start : start + CHUNK]
                for i, image in enumerate(pool.map(lambda f: read_resized(root / f, size), part)):
                    out[start + i] = image

    shape = (len(files), size, size, 3)
    return cached_array("frames", fingerprint(root, files, f"1 {size}"), shape, np.uint8, fill)


def cached_array(
    kind: str, key: str, shape: tuple[int, ...], dtype: Any, fill: Callable[[Array], None]
) -> Array:
    """The array of this key. The first process that asks for it fills it; others wait, then read."""
    path = cache_folder("openloris", kind) / f"{key}.npy"
    ready = _open(path, shape, dtype)
    if ready is not None:
        return ready
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{key}.lock")
    unfinished = path.with_name(f".{key}.{os.getpid()}.tmp")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            made = _open(path, shape, dtype)
            if made is None:
                out = np.lib.format.open_memmap(unfinished, mode="w+", dtype=dtype, shape=shape)
                fill(out)
                out.flush()
                del out
                os.replace(unfinished, path)
                made = _open(path, shape, dtype)
        finally:
            unfinished.unlink(missing_ok=True)
            lock.unlink(missing_ok=True)
    if made is None:
        raise EnvironmentFault(f"{path} changed while it was written; remove it and try again")
    return made


def _open(path: Path, shape: tuple[int, ...], dtype: Any) -> Array | None:
    """The array on disk, or None if it is missing, damaged or of another shape."""
    try:
        found: Array = np.load(path, mmap_mode="r")
    except (ValueError, OSError):
        return None
    return found if found.shape == shape and found.dtype == dtype else None


def read_resized(path: Path, size: int) -> Array:
    """An image file as ``size`` × ``size`` RGB bytes, not keeping proportions."""
    with extras_named("suite openloris"):
        from PIL import Image, UnidentifiedImageError
    try:
        with Image.open(path) as image:
            small = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
    except (UnidentifiedImageError, OSError) as e:
        raise EnvironmentFault(f"{path} is not a readable picture: {e}; fetch it again") from e
    return np.asarray(small)
