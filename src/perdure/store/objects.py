"""What a log asks of the place it is kept in: whole objects under names, and nothing else.

A folder on disk is one such place (:mod:`perdure.store.disk`), an object store another. Rows,
checkpoints and journal need four things: put if absent, get, list, delete. There is no append, no
rename and no lock among them: the log's safety rests on :meth:`ObjectStore.put_if_absent` alone.
:meth:`ObjectStore.put` is for what no row depends on, and for the plan; docs/design/log.md names every
object that is ever replaced. The rest is looking: sizes, folders, names for messages.
"""

from __future__ import annotations

import gzip
import json
from typing import Any, Protocol

from perdure.errors import NameRefused, StoreError
from perdure.store.files import Data
from perdure.store.sealed import LONGEST, parse


class ObjectStore(Protocol):
    """Objects under names like ``rows/00000.parquet``; an object is whole or not there.

    What one process has put, all others see from then on.
    """

    def put(self, name: str, data: Data, durable: bool = True) -> None:
        """Write an object in place of any other of that name. One that is not ``durable`` may be lost
        when the machine dies."""

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Write an object unless there is one; whether this call did. Of several who try at the same
        time, one does."""

    def get(self, name: str, most: int | None = None) -> bytes:
        """An object's bytes; MissingObject if there is none, StoreError if they are more than
        ``most``."""

    def list(self, folder: str = "") -> tuple[str, ...]:
        """The names of the objects in a folder, in order; not of those in folders below it."""

    def sizes(self, folder: str = "") -> dict[str, int]:
        """The names of :meth:`list` with the number of bytes of each."""

    def folders(self, folder: str = "") -> tuple[str, ...]:
        """The names of the folders in a folder, in order."""

    def delete(self, name: str) -> None:
        """Remove an object if it is there."""

    def unfinished(self, folder: str) -> tuple[str, ...]:
        """Names for :meth:`delete` of what writes into a folder left that are under way or were
        interrupted. A write whose beginning is deleted begins again."""

    def where(self, name: str = "") -> str:
        """What messages call an object, or the store itself."""


def checked(name: str) -> str:
    """The name itself if it stays inside the store, else NameRefused."""
    parts = name.split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise NameRefused(
            f"object name {name!r} refused: expected parts separated by single slashes, none of "
            "them empty, '.' or '..'"
        )
    return name


def to_json(value: Any) -> bytes:
    """Strict JSON (no bare NaN), readable by people."""
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"


def to_json_gz(value: Any) -> bytes:
    """Strict JSON, compressed; the same bytes for the same value."""
    text = json.dumps(value, sort_keys=True, allow_nan=False)
    return gzip.compress(text.encode(), mtime=0)


def get_json(store: ObjectStore, name: str) -> Any:
    """An object that is JSON; a StoreError names it when it is not."""
    try:
        return parse(store.get(name, LONGEST))
    except ValueError as e:
        raise StoreError(f"{store.where(name)} cannot be read as JSON: {e}") from e
