"""Frames at the size a network reads, as memory-mapped bytes: decoded once, then at memory speed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from perdure.errors import EnvironmentFault, SpecError
from perdure.registry import extras_named
from perdure.types import Array

CHUNK = 64


def folder() -> Path:
    """Where derived data lives: $PERDURE_CACHE, else $XDG_CACHE_HOME/perdure, else ~/.cache/perdure."""
    own = os.environ.get("PERDURE_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "perdure"


def stamp(root: Path, files: Sequence[str], size: int) -> str:
    """A key that changes with the size, the list of frames, and any frame's length or time."""
    digest = hashlib.blake2b(f"1 {size}".encode(), digest_size=12)
    for name in files:
        try:
            s = os.stat(root / name)
        except OSError as e:
            raise SpecError(f"OpenLORIS data: {root / name} cannot be read: {e.strerror}") from e
        digest.update(f"\n{name}\0{s.st_size}\0{s.st_mtime_ns}".encode())
    return digest.hexdigest()


def frames(root: Path, files: Sequence[str], size: int) -> Array:
    """Frames squashed to ``size`` × ``size`` RGB bytes, whole, as the authors did."""
    shape = (len(files), size, size, 3)
    path = folder() / "openloris" / "frames" / f"{stamp(root, files, size)}.npy"
    if path.exists():
        ready = _open(path, shape)
        if ready is not None:
            return ready
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two processes may write at once: each its own file, and the last rename wins with equal bytes.
    unfinished = path.with_name(f".{path.stem}.{os.getpid()}.tmp")
    try:
        out = np.lib.format.open_memmap(unfinished, mode="w+", dtype=np.uint8, shape=shape)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for start in range(0, len(files), CHUNK):
                part = files[start : start + CHUNK]
                for i, image in enumerate(pool.map(lambda f: _squash(root / f, size), part)):
                    out[start + i] = image
        out.flush()
        del out
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    made = _open(path, shape)
    if made is None:
        raise EnvironmentFault(f"{path} changed while it was written; remove it and try again")
    return made


def _open(path: Path, shape: tuple[int, ...]) -> Array | None:
    """The array on disk, or None if it is not what its name says: then it is made anew."""
    try:
        found: Array = np.load(path, mmap_mode="r")
    except (ValueError, OSError):
        return None
    return found if found.shape == shape and found.dtype == np.uint8 else None


def _squash(path: Path, size: int) -> Array:
    with extras_named("suite openloris"):
        from PIL import Image, UnidentifiedImageError
    try:
        with Image.open(path) as image:
            small = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
    except (UnidentifiedImageError, OSError) as e:
        raise EnvironmentFault(f"{path} is not a readable picture: {e}; fetch it again") from e
    return np.asarray(small)
