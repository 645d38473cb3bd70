"""Which store is at a location: a folder on disk."""

from __future__ import annotations

from pathlib import Path

from perdure.store.disk import DiskStore
from perdure.store.objects import ObjectStore


def store_at(path: str | Path, run: Path | None = None) -> ObjectStore:
    """The store at a location, which is part of what is kept at ``run``."""
    return DiskStore(Path(path), run)
