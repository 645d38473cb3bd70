"""Which store is at a location: a folder on disk."""

from __future__ import annotations

from pathlib import Path

from perdure.store.disk import DiskStore
from perdure.store.objects import ObjectStore


def store_at(path: str | Path) -> ObjectStore:
    """The store at a location."""
    return DiskStore(Path(path))
