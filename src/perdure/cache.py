"""Where derived data lives: files that can be computed again, and may be removed at any time."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(*parts: str) -> Path:
    """A folder below the cache folder, which is the first of these that is set:

    1. ``$PERDURE_CACHE``
    2. ``$XDG_CACHE_HOME/perdure``
    3. ``~/.cache/perdure``

    Nothing is created.
    """
    own, xdg = os.environ.get("PERDURE_CACHE"), os.environ.get("XDG_CACHE_HOME")
    root = Path(own) if own else Path(xdg or "~/.cache") / "perdure"
    return root.expanduser().joinpath(*parts)


def named_cache_folder(*parts: str) -> Path | None:
    """The same for what is kept unasked: None where only the home folder is left. LIBERO's scenes are
    such: whoever plays a task of its has asked for no file in their home."""
    if os.environ.get("PERDURE_CACHE") or os.environ.get("XDG_CACHE_HOME"):
        return cache_folder(*parts)
    return None
