"""Values as every JSON parser takes them."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np


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
