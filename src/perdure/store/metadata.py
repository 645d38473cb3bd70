"""Objects that are only looked at: signs of life, sessions, errors, videos.

No row depends on them, so nothing stops for one that is damaged: what cannot be used is left out,
and ``perdure check`` names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from perdure.errors import MissingObject, StoreError
from perdure.store.objects import ObjectStore
from perdure.store.sealed import parse

LONGEST = 16 << 20
_LARGEST = 1e15
"""No clock, count or rate of ours goes beyond it."""
_VIDEO_FILE = re.compile(r"[A-Za-z0-9][^/\\\x00-\x1f]*\.mp4")


def look(store: ObjectStore, name: str) -> tuple[dict[str, Any], str]:
    """The JSON object of this name, or an empty one and why."""
    try:
        found = parse(store.get(name, LONGEST))
    except MissingObject:
        return {}, ""
    except StoreError as e:
        return {}, str(e)
    except ValueError as e:
        return {}, f"{store.where(name)} cannot be read as JSON: {e}"
    if not isinstance(found, dict):
        return {}, f"{store.where(name)} is not a JSON object"
    return found, ""


def number(value: Any) -> bool:
    """A finite number of a size that can be."""
    if type(value) not in (int, float):
        return False
    return -_LARGEST < value < _LARGEST and isfinite(value)


def text(value: Any) -> bool:
    """A string."""
    return isinstance(value, str)


def _versions(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


Shape = Mapping[str, Callable[[Any], bool]]
PROGRESS: Shape = {
    **dict.fromkeys(
        ("time", "fraction", "eta", "rate", "block", "blocks", "steps", "elapsed", "cpu"), number
    ),
    "score": lambda value: type(value) in (int, float) and isfinite(value),
    **dict.fromkeys(("host", "kind", "task", "measure"), text),
}
SESSION: Shape = {
    **dict.fromkeys(("started", "previous_end", "commit", "pid"), number),
    **dict.fromkeys(("host", "python", "platform", "git"), text),
    **dict.fromkeys(("packages", "code"), _versions),
    **dict.fromkeys(("notes", "argv"), _texts),
}
ERROR: Shape = {"error": text, "traceback": text}
PRUNED: Shape = {"values": lambda value: isinstance(value, list) and all(map(number, value))}
REPEAT: Shape = {
    **dict.fromkeys(("played", "agreed"), lambda value: type(value) is int and 0 <= value < 1000),
    "differences": _texts,
}
VIDEO_ENTRY: Shape = {
    "file": lambda value: isinstance(value, str) and bool(_VIDEO_FILE.fullmatch(value)),
    **dict.fromkeys(("which", "task"), text),
    **dict.fromkeys(("block", "steps", "return"), number),
}


def fitting(values: Mapping[str, Any], shape: Shape) -> tuple[dict[str, Any], list[str]]:
    """The values without those that are not of their kind, and the names of these. None is of every
    kind, and what the shape does not know stays."""
    bad = [k for k, good in shape.items() if values.get(k) is not None and not good(values[k])]
    return {k: v for k, v in values.items() if k not in bad}, bad


def problem(store: ObjectStore, name: str, shape: Shape) -> str:
    """What is wrong with an object; empty if nothing is, or if it is not there."""
    found, why = look(store, name)
    bad = fitting(found, shape)[1]
    if bad:
        why = f"{store.where(name)} has unusable values of {', '.join(bad)}"
    return f"{why}; no row depends on it: remove it" if why else ""


def videos(index: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of an index of videos that can be shown."""
    found = index.get("videos")
    return [entry for entry in found if _is_video(entry)] if isinstance(found, list) else []


def _is_video(entry: Any) -> bool:
    return isinstance(entry, dict) and all(
        good(entry.get(key)) for key, good in VIDEO_ENTRY.items()
    )


VIDEOS: Shape = {"videos": lambda value: isinstance(value, list) and all(map(_is_video, value))}
