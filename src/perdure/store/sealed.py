"""JSON that tells whether a single bit of it has changed, and JSON from anywhere, within limits."""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

_HEAD = b'{"sha256": "%s",\n'
LONGEST = 256 << 20
"""Bytes of JSON that are read: curricula may be long, and nothing else is."""
DEEPEST = 100
"""How deep lists and objects may be nested: those that walk them must come back."""


def seal(body: bytes) -> bytes:
    """The rest of a JSON object, after its brace, with the checksum of it in front."""
    return _HEAD % _sha(body) + body


def is_sealed(data: bytes) -> bool:
    """Whether this is what :func:`seal` made, to the last bit."""
    size = len(_HEAD % _sha(b""))
    return data[:size] == _HEAD % _sha(data[size:])


def seal_values(values: dict[str, Any]) -> bytes:
    """A JSON object, sealed and readable by people."""
    text = json.dumps(values, indent=1, sort_keys=True, allow_nan=False)
    return seal(text.removeprefix("{\n").encode() + b"\n")


def _sha(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def unzip(data: bytes) -> bytes:
    """What was compressed by gzip; ValueError if it is damaged, or grows too long."""
    reader = zlib.decompressobj(wbits=31)
    try:
        out = reader.decompress(data, LONGEST)
    except zlib.error as e:
        raise ValueError(str(e)) from e
    if not reader.eof or reader.unused_data:
        raise ValueError("it is cut off, or too long")
    return out


def parse(data: bytes) -> Any:
    """The value in some JSON; ValueError if it is none, or too deep to be ours."""
    try:
        value = json.loads(data.decode())
    except RecursionError:
        raise ValueError(f"nested deeper than {DEEPEST} levels") from None
    level, depth = [value], 0
    while level:
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list))
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, (dict, list))
        ]
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"nested deeper than {DEEPEST} levels")
    return value
