"""A lifetime's description: sealed, and bound to the folder that it describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.errors import Corrupt, MissingObject, StoreError
from perdure.names import is_task_folder
from perdure.store.objects import ObjectStore
from perdure.store.places import place_of
from perdure.store.rows import FORMAT
from perdure.store.sealed import LONGEST, is_sealed, parse, seal_values, unzip

ANEW = "run the same command again, which makes it anew"
MOVED = "the folder was moved or copied; put it back, or remove it"
_KEYS = {"format", "seed", "expert"}
"""What every description has."""


def encode(values: Mapping[str, Any], job: str) -> bytes:
    """The description of the lifetime in the folder ``job``."""
    return seal_values({**values, "folder": job})


def read(store: ObjectStore, name: str, job: str) -> dict[str, Any] | None:
    """The description of the lifetime in the folder ``job``; None if there is none. Corrupt if a bit
    of it has changed, StoreError if it is another folder's."""
    where = store.where(name)
    try:
        data = store.get(name, LONGEST)
    except MissingObject:
        return None
    if name.endswith(".gz"):  # A compact copy's, which has a checksum of its own.
        try:
            data = unzip(data)
        except ValueError as e:
            raise Corrupt(f"{where} is damaged: {e}") from e
    # Those of before descriptions were sealed begin with a line of their own.
    elif not is_sealed(data) and not data.startswith(b"{\n"):
        raise Corrupt(f"{where} is damaged: its bytes are not those that were written; {ANEW}")
    try:
        found = parse(data)
    except ValueError as e:
        raise Corrupt(f"{where} cannot be read as JSON: {e}; {ANEW}") from e
    if not isinstance(found, dict):
        raise Corrupt(f"{where} is not a JSON object; {ANEW}")
    found.pop("sha256", None)
    folder = found.pop("folder", job)
    if folder != job:
        raise StoreError(f"{where} describes {folder}, and is in {job}: {MOVED}")
    return found


def disagreement(found: Mapping[str, Any], job: str) -> str:
    """What is wrong with a description where it is; empty if nothing is."""
    if not found.keys() >= _KEYS:
        return f"does not describe a lifetime: expected {sorted(_KEYS)}"
    version, seed, expert = (found[key] for key in ("format", "seed", "expert"))
    if type(version) is not int or type(seed) is not int or type(expert) is not str:
        return "does not describe a lifetime: format, seed or expert is of the wrong kind"
    if version > FORMAT:
        return f"is of log format {version}, and this Perdure reads up to {FORMAT}: upgrade it"
    place = place_of(job)
    if place is None:
        return f"is in {job}, where no lifetime is: {MOVED}"
    right = is_task_folder(place.task, expert) if expert else not place.task
    if place.seed == seed and right:
        return ""
    whose = f"the single-task expert of {expert!r}" if expert else "a lifelong agent"
    return f"describes seed {seed} of {whose}, and is in {job}: {MOVED}"
