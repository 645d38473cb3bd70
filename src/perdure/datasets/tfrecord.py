"""TFRecord files and the examples in them, read without TensorFlow.

A record is its length (8 bytes), a checksum of the length, the data, a checksum of the data. The data are a
protocol buffer, ``tf.train.Example``: a map from names to lists of bytes, of 32-bit floats or of 64-bit whole numbers.
Compressed files are not read.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from perdure.arrays import Array
from perdure.errors import StoreError

Values = list[bytes] | Array
"""What an example has under a name."""
CASTAGNOLI = 0x82F63B78
MASK = 0xA282EAD8
VARINT, FIXED64, CHUNK, FIXED32 = 0, 1, 2, 5
"""How a field of a protocol buffer is written."""


def records(path: Path, verify: bool = False) -> Iterator[bytes]:
    """The records of a file. Lengths are always checked, data if ``verify``: in Python, some ten seconds
    for 100 MB."""
    with path.open("rb") as f:
        number = 0
        while head := f.read(12):
            where = f"{path}, record {number}"
            if len(head) < 12 or masked_crc(head[:8]) != struct.unpack("<I", head[8:])[0]:
                raise StoreError(f"{where}: the file is damaged or truncated, or no TFRecord")
            (length,) = struct.unpack("<Q", head[:8])
            data, foot = f.read(length), f.read(4)
            if len(data) < length or len(foot) < 4:
                raise StoreError(f"{where}: expected {length} bytes, the file ends before")
            if verify and masked_crc(data) != struct.unpack("<I", foot)[0]:
                raise StoreError(f"{where}: the data are damaged")
            yield data
            number += 1


@functools.cache
def _table() -> tuple[int, ...]:
    out = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (CASTAGNOLI if byte & 1 else 0)
        out.append(byte)
    return tuple(out)


def masked_crc(data: bytes) -> int:
    """CRC-32C as TFRecord keeps it: turned by 15 bits, and a number added."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF


def example(data: bytes) -> dict[str, Values]:
    """What a record holds, by name."""
    out: dict[str, Values] = {}
    try:
        for features in _fields(memoryview(data), 1):
            for entry in _fields(features, 1):
                name = next(_fields(entry, 1), memoryview(b""))
                value = next(_fields(entry, 2), memoryview(b""))
                out[bytes(name).decode()] = _values(value)
    except (IndexError, ValueError, struct.error) as e:
        raise StoreError(f"expected a tf.train.Example, got {len(data)} other bytes ({e})") from e
    return out


def _values(feature: memoryview) -> Values:
    """The list in a feature: of bytes (1), of floats (2) or of whole numbers (3)."""
    for kind, found in _all_fields(feature):
        if kind == 1:
            return [bytes(value) for value in _fields(found, 1)]
        if kind == 2:
            return np.concatenate(
                [np.zeros(0, np.float32), *(np.frombuffer(v, "<f4") for v in _fields(found, 1))]
            )
        if kind == 3:
            return np.concatenate([np.zeros(0, np.int64), *map(_whole, _fields(found, 1))])
    return []


def _whole(packed: memoryview) -> Array:
    """Whole numbers, seven bits in a byte; the last byte of each has no high bit."""
    data = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(data < 128)
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    if not len(ends) or ends[-1] != len(data) - 1 or (ends - starts).max() > 9:
        raise ValueError("a whole number without an end")
    out = np.zeros(len(ends), np.uint64)
    for k in range(int((ends - starts).max()) + 1):
        inside = starts + k <= ends
        part = (data[np.minimum(starts + k, ends)] & 127).astype(np.uint64) << np.uint64(7 * k)
        out |= np.where(inside, part, np.uint64(0))
    return out.view(np.int64)


def _fields(data: memoryview, wanted: int) -> Iterator[memoryview]:
    return (value for number, value in _all_fields(data) if number == wanted)


def _all_fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a message: their numbers, and their bytes as they are written."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == CHUNK:
            length, at = _varint(data, at)
        elif kind in (FIXED32, FIXED64):
            length = 4 if kind == FIXED32 else 8
        elif kind == VARINT:
            length = _varint(data, at)[1] - at
        else:
            raise ValueError(f"a field of kind {kind}")
        if at + length > len(data):
            raise ValueError("a field that is longer than its message")
        yield number, data[at : at + length]
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a whole number without an end")
