"""Which store is at a location: a folder on disk, or a place in an object store."""

from __future__ import annotations

from pathlib import Path

from perdure.store.bucket import BucketStore
from perdure.store.disk import DiskStore
from perdure.store.objects import ObjectStore
from perdure.store.urls import UrlPath, place


def store_at(path: str | Path, run: Path | None = None) -> ObjectStore:
    """The store at a location, which is part of what is kept at ``run``."""
    found = place(path)
    return BucketStore(found) if isinstance(found, UrlPath) else DiskStore(found, run)
