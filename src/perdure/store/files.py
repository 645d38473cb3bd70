"""The only place that writes to disk: whole files that appear at once, and appended lines.

A file is complete and durable when :func:`write_file` returns, or it is not there.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perdure.errors import NoSpaceError, StoreError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_file(path: Path, data: bytes, durable: bool = True) -> None:
    """Write a whole file: a temporary beside it, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f"_{path.name}.tmp")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _write_all(fd, data)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
        if durable:
            sync_folder(path.parent)
    except OSError as e:
        temporary.unlink(missing_ok=True)
        raise typed(e, path) from e


def append_line(path: Path, line: bytes) -> None:
    """Append one line and fsync. A failed append leaves the file as long as it was."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            size = os.fstat(fd).st_size
            try:
                _write_all(fd, line)
                os.fsync(fd)
                if size == 0:
                    sync_folder(path.parent)  # A new file is durable when its folder is.
            except OSError:
                os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)
    except OSError as e:
        raise typed(e, path) from e


def truncate(path: Path, size: int) -> None:
    """Cut a file and fsync."""
    try:
        fd = os.open(path, os.O_WRONLY)
        try:
            os.ftruncate(fd, size)
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as e:
        raise typed(e, path) from e


def make_folder(path: Path) -> None:
    """Create a folder and its parents, durably."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        sync_folder(path.parent)
    except OSError as e:
        raise typed(e, path) from e


def sync_folder(path: Path) -> None:
    """Make renames and creations in a folder durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_json(path: Path, value: Any, durable: bool = True) -> None:
    """Write strict JSON (no bare NaN), readable by people."""
    text = json.dumps(value, indent=1, sort_keys=True, allow_nan=False)
    write_file(path, text.encode() + b"\n", durable)


def read_json(path: Path) -> Any:
    """Read a JSON file; a StoreError names it when it is not one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise StoreError(f"{path} cannot be read as JSON: {e}") from e


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def typed(error: OSError, path: Path) -> StoreError:
    """What went wrong with a file, as one of our own errors."""
    if error.errno in _FULL:
        return NoSpaceError(
            f"no space left to write {path}: nothing was half-committed; free some space and run "
            "the same command again to resume"
        )
    return StoreError(f"cannot write {path}: {error}")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to fill that becomes ``out`` at the end; if anything fails, nothing is left."""
    if out.is_symlink() or (out.exists() and not (out.is_dir() and not any(out.iterdir()))):
        raise StoreError(f"{out} exists, and nothing is overwritten: remove it or name another")
    temporary = out.with_name(f"_{out.name}.{os.getpid()}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        try:
            yield temporary
            temporary.rename(out)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except OSError as e:
        raise typed(e, out) from e
