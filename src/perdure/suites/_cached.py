"""Suites' files that can be made again, below the cache folder (perdure.cache).

A file is written beside and moved into place, so that of two processes that make it at once each
leaves a whole one. Its checksum stands in front; what does not match counts as not there.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
import time
import warnings
import zlib
from pathlib import Path

A_DAY = 24 * 3600.0
"""Seconds after which nobody is still writing a file."""
_MAGIC = b"PERDURE1"
_HEAD = struct.Struct("<8sIQ")


def read_checked(path: Path) -> bytes | None:
    """What was written there; None if nothing was, or if it is damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) < _HEAD.size:
        return None
    magic, checksum, length = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if magic != _MAGIC or length != len(body) or checksum != zlib.crc32(body):
        return None
    return body


def _remove_left_behind(folder: Path) -> None:
    """Remove what writers that were killed have left."""
    for path in folder.glob("_" + "?" * 8):  # As tempfile names them.
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > A_DAY:
                path.unlink()


def write_checked(path: Path, body: bytes) -> None:
    """Write a whole file at once. A folder that cannot be written costs time, not results."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_behind(path.parent)
        fd, temporary = tempfile.mkstemp(dir=path.parent, prefix="_")
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(_HEAD.pack(_MAGIC, zlib.crc32(body), len(body)))
                file.write(body)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as e:
        warnings.warn(
            f"{path} cannot be written ({e}); it will be made again next time. Set PERDURE_CACHE to a "
            "folder that can",
            stacklevel=2,
        )
