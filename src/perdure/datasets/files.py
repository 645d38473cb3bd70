"""Reading the small files that tell what a dataset holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perdure.errors import StoreError


def read_map(path: Path, of: str) -> dict[str, Any]:
    """The JSON map in a file of a dataset of this kind."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as e:
        raise StoreError(f"{path}: expected the JSON of {of} ({e})") from e
    if not isinstance(found, dict):
        raise StoreError(f"{path}: expected the JSON of {of}, a map, got {type(found).__name__}")
    return found
