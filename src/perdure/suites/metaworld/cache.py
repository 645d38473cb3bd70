"""Meta-World's files that can be made again, below the cache folder (perdure.cache)."""

from __future__ import annotations

from pathlib import Path

from perdure.cache import cache_folder
from perdure.suites._cached import read_checked, write_checked

__all__ = ["folder", "read_checked", "write_checked"]


def folder(*parts: str) -> Path:
    """Where Meta-World's files are kept."""
    return cache_folder("metaworld", *parts)
