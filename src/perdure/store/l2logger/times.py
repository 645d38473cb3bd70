"""The first and the last of many time stamps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from perdure.arrays import Array


def extremes(times: pa.ChunkedArray) -> tuple[str, str] | None:
    """The least and the greatest of time stamps without nulls, which mostly have one length."""
    found: list[str] = []
    for chunk in times.chunks:
        rows = _rows(chunk) if len(chunk) else None
        if rows is None:
            values = [v for v in chunk.to_pylist() if v is not None]
            found += [min(values), max(values)] if values else []
        else:
            found += _ends(rows)
    return (min(found), max(found)) if found else None


def _rows(chunk: pa.Array) -> Array | None:
    """Texts of one length as rows of bytes."""
    if chunk.null_count:
        return None
    _, ends, data = chunk.buffers()
    offsets = np.frombuffer(ends, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    width = int(offsets[1] - offsets[0])
    if width < 8 or np.any(np.diff(offsets) != width):
        return None
    flat = np.frombuffer(data, np.uint8, len(chunk) * width, int(offsets[0]))
    return flat.reshape(len(chunk), width)


def _ends(rows: Array) -> list[str]:
    """The first and the last row in alphabetical order, eight letters at a time."""
    least = greatest = rows
    for at in [*range(0, rows.shape[1] - 7, 8), rows.shape[1] - 8]:
        letters = _letters(least, at)
        low, high = letters.min(), letters.max()
        if greatest is least:
            if low != high:
                least, greatest = least[letters == low], least[letters == high]
            continue
        least = least[letters == low]
        letters = _letters(greatest, at)
        greatest = greatest[letters == letters.max()]
    return [bytes(least[0]).decode("utf-8"), bytes(greatest[0]).decode("utf-8")]


def _letters(rows: Array, at: int) -> Array:
    """Eight letters of each row as a number that sorts as they do."""
    return np.ascontiguousarray(rows[:, at : at + 8]).view(">u8").ravel().astype(np.uint64)
