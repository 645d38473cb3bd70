"""Objects in an object store: S3 and what speaks its language, Google Cloud Storage, Azure.

All safety rests on conditional puts, and some stores that accept them ignore them. So a bucket is
probed before a run is planned into it (:meth:`BucketStore.probe`).

Credentials and endpoints come from the environment as for every other tool: ``AWS_ACCESS_KEY_ID``,
``AWS_ENDPOINT_URL``, ``GOOGLE_APPLICATION_CREDENTIALS``, ``AZURE_STORAGE_ACCOUNT_NAME``, …
"""

from __future__ import annotations

import importlib
import os
import random
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from perdure.errors import MissingExtra, MissingObject, StoreError
from perdure.store.files import Data
from perdure.store.objects import checked
from perdure.store.urls import UrlPath

TRIES = 12
"""How often a put is made again that the store answered with "conflict"."""
RACERS, RACES = 8, 3
"""Puts at the same time of the probe, and how often."""


_sound: list[Any] = []
"""Clients of the stores that were found to keep their promises."""


@lru_cache(maxsize=8)
def _client(bucket: str) -> Any:
    """One for each bucket: it keeps connections."""
    try:
        from obstore.store import from_url
    except ImportError as e:
        raise MissingExtra(f"a run in {bucket}", "objectstore") from e
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    try:
        return from_url(bucket, client_options={"allow_http": True} if plain else None)
    except Exception as e:
        raise StoreError(f"{bucket} cannot be opened: {_first_line(e)}") from e


def _first_line(error: BaseException) -> str:
    """The words of an error without the client's debugging output."""
    return str(error).partition("\n\nDebug source")[0].strip()


class BucketStore:
    """The objects below a place in an object store."""

    def __init__(self, root: UrlPath) -> None:
        self.root = root
        scheme, bucket, *below = root.parts
        self._bucket = _client(f"{scheme}//{bucket}")
        self._api: Any = importlib.import_module("obstore")
        self._prefix = "/".join(below)
        self._seen: dict[str, dict[str, Any] | None] = {}
        """By name: what version :meth:`get` found last, None where there was none."""

    def _key(self, name: str) -> str:
        checked(name)
        return f"{self._prefix}/{name}" if self._prefix else name

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """The client's errors as our own."""
        try:
            yield
        except FileNotFoundError:
            raise MissingObject(f"{what} is missing") from None
        except (self._api.exceptions.BaseError, OSError) as e:
            raise StoreError(f"{what}: {_first_line(e)}") from e

    def _put(self, name: str, data: Data, mode: Any) -> Any:
        # In one piece: whole or not there.
        return self._api.put(self._bucket, self._key(name), data, mode=mode, use_multipart=False)

    def put(self, name: str, data: Data, durable: bool = True) -> None:
        """Write an object in place of any other of that name."""
        with self._asking(f"cannot write {self.where(name)}"):
            self._put(name, data, "overwrite")

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Write an object unless there is one; whether this call did. ``If-None-Match: *`` or what
        the store has for it.

        A store may answer that two puts are in each other's way (409), which is neither yes nor no:
        then the object is looked for, and if there is none the put is made again.
        """

        def create() -> bool | None:
            try:
                self._put(name, data, "create")
            except self._api.exceptions.AlreadyExistsError:
                return False if self._is_there(name) else None
            return True

        return self._until_known(name, create)

    def replace(self, name: str, data: Data) -> bool:
        """Write an object in place of what :meth:`get` found last under its name, or where it found
        none; whether this call did. Not if another has written it since."""
        seen = self._seen.get(name)
        if seen is None:
            return self.put_if_absent(name, data)

        def swap() -> bool | None:
            try:
                self._put(name, data, seen)
            except (self._api.exceptions.PreconditionError, FileNotFoundError):
                return False
            except self._api.exceptions.AlreadyExistsError:
                return None
            return True

        return self._until_known(name, swap)

    def _until_known(self, name: str, attempt: Callable[[], bool | None]) -> bool:
        """Try until the store says yes or no."""
        for k in range(TRIES):
            with self._asking(f"cannot write {self.where(name)}"):
                found = attempt()
            if found is not None:
                return found
            time.sleep(random.random() * 0.01 * 2 ** min(k, 7))
        raise StoreError(f"cannot write {self.where(name)}: the store answered {TRIES} times that others do")  # fmt: skip

    def _is_there(self, name: str) -> bool:
        try:
            self._api.head(self._bucket, self._key(name))
        except FileNotFoundError:
            return False
        return True

    def get(self, name: str, most: int | None = None) -> bytes:
        """An object's bytes; MissingObject if there is none, StoreError if they are too many."""
        self._seen[name] = None
        with self._asking(self.where(name)):
            found = self._api.get(self._bucket, self._key(name))
            meta = found.meta
            told = {key: meta[key] for key in ("e_tag", "version")}
            self._seen[name] = {key: value for key, value in told.items() if value is not None}
            if most is not None and meta["size"] > most:
                raise StoreError(
                    f"{self.where(name)} has {meta['size']:,} bytes, more than {most:,}"
                )
            return bytes(found.bytes())

    def _look(self, folder: str) -> Any:
        where = self._key(folder) if folder else self._prefix
        with self._asking(f"{self.where(folder)} cannot be listed"):
            return self._api.list_with_delimiter(self._bucket, where or None)

    def _name(self, key: str) -> str:
        return key.removeprefix(f"{self._prefix}/") if self._prefix else key

    def list(self, folder: str = "") -> tuple[str, ...]:
        """The names of the objects in a folder, in order."""
        return tuple(self.sizes(folder))

    def sizes(self, folder: str = "") -> dict[str, int]:
        """The names of the objects in a folder, in order, and their bytes."""
        found = {self._name(o["path"]): int(o["size"]) for o in self._look(folder)["objects"]}
        # A store may list a folder itself as an empty object.
        return {name: found[name] for name in sorted(found) if name and name != folder}

    def folders(self, folder: str = "") -> tuple[str, ...]:
        """The names of the folders in a folder, in order."""
        below = self._look(folder)["common_prefixes"]
        return tuple(sorted(self._name(key.rstrip("/")) for key in below))

    def delete(self, name: str) -> None:
        """Remove an object if it is there."""
        try:
            with self._asking(f"cannot delete {self.where(name)}"):
                self._api.delete(self._bucket, self._key(name))
        except MissingObject:
            pass

    def unfinished(self, folder: str) -> tuple[str, ...]:
        """Nothing: an object appears whole."""
        return ()

    def where(self, name: str = "") -> str:
        """The URL, for messages."""
        return str(self.root / checked(name) if name else self.root)

    def probe(self, name: str) -> None:
        """StoreError unless the store keeps the promises that a log rests on, tried with objects
        called ``name`` and more: of several puts if absent one succeeds, at the same time too, and an
        object that has changed is not replaced. A store that did is not asked again."""
        if any(client is self._bucket for client in _sound):
            return
        made: list[str] = []

        def fresh() -> str:
            made.append(f"{name}-{secrets.token_hex(8)}")
            return made[-1]

        try:
            first = fresh()
            if not self.put_if_absent(first, b"1") or first not in self.list(_folder(first)):
                raise self._broken("does not show what was put there")
            if self.put_if_absent(first, b"2") or self.get(first) != b"1":
                raise self._broken("overwrites what it was told not to (If-None-Match: *)")
            old = dict(self._seen[first] or {})
            if not self.replace(first, b"2") or self.get(first) != b"2":
                raise self._broken("does not replace an object that has not changed (If-Match)")
            self._seen[first] = old
            if self.replace(first, b"3") or self.get(first) != b"2":
                raise self._broken("replaces an object that has changed (If-Match)")
            with ThreadPoolExecutor(RACERS) as racers:
                for _ in range(RACES):
                    raced = fresh()
                    tries = [b"%d" % k for k in range(RACERS)]
                    won = list(
                        racers.map(lambda data, at=raced: self.put_if_absent(at, data), tries)
                    )
                    if sum(won) != 1 or self.get(raced) != tries[won.index(True)]:
                        raise self._broken(f"let {sum(won)} of {RACERS} writers create one object")
            _sound.append(self._bucket)
        finally:
            for name in made:
                self.delete(name)
                self._seen.pop(name, None)

    def _broken(self, what: str) -> StoreError:
        return StoreError(
            f"{self.root}: this object store {what}: two processes could both commit the same lifetime. "
            "Use one that honours conditional writes (docs/scale.md names some), or a folder on disk"
        )


def _folder(name: str) -> str:
    return name.rpartition("/")[0]
