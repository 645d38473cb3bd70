"""Values as every JSON parser takes them, and text as every terminal may show it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with all signs spelt out that are not seen, that move others about, or that a
    terminal obeys: names and errors come from anywhere. Tabs and line ends stay."""
    return _UNSEEN.sub(lambda m: f"[U+{ord(m[0]):04X}]", text)


def clipped(text: str, most: int = 4000) -> str:
    """The text, or of a longer one its beginning and its end."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … ({len(text) - 2 * half:,} characters left out) … {text[-half:]}"


def strict_json(value: Any, indent: int | None = 1) -> str:
    """``value`` as JSON without bare NaN or Infinity: what is not finite is null."""
    return json.dumps(plain(value), indent=indent, allow_nan=False)


def plain(value: Any) -> Any:
    """Dataclasses, mappings, sequences, sets, paths, NumPy scalars and arrays, at any depth, as what
    strict JSON can hold; what is not finite becomes None."""
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if isfinite(value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_key(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(v) for v in value)
    return str(value) if isinstance(value, os.PathLike) else value


def _key(key: Any) -> Any:
    if isinstance(key, np.generic):
        key = key.item()
    return str(key) if isinstance(key, (float, os.PathLike)) else key
