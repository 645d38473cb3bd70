"""Checkpoints: what is small in one ``.npz`` bundle, what is large in parts named by their content.

A checkpoint's manifest stands in the journal entry of its commit::

    {"bundle": {"name": "_ckpt/00003.npz", "sha256": …, "bytes": …},
     "arrays": {NAME: {"dtype": "<f4", "shape": [3000, 4], "rows": [1000, 1000, 1000],
                       "parts": ["0-9f86d0…", "0-60303a…", "2-a1b2c3…"]}}}

``0-9f86d0…`` is the object ``_parts/0-9f86d0…``: bytes in C order, written by session 0, with that
SHA-256. Without ``rows``, the array is plain and its only part holds all of it. No pickle, ever.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from perdure.arrays import Array, Chunk, ChunkedArray, Content, raw_bytes
from perdure.errors import Corrupt, MissingObject
from perdure.store import state
from perdure.store.files import Data
from perdure.store.objects import ObjectStore

BUNDLES, PARTS = "_ckpt", "_parts"
SMALL = 256 << 10
"""Arrays of fewer bytes than this go into the bundle."""

Manifest = Mapping[str, Any]
Put = Callable[[str, Data], None]


_BUNDLE, _PART = re.compile(rf"{BUNDLES}/\d{{5,}}(-\d+)?\.npz"), re.compile(r"\d+-[0-9a-f]{64}")
_SHA = re.compile(r"[0-9a-f]{64}")


def sound(manifest: Any) -> bool:
    """Whether this is a manifest (or None) whose objects have the names that a :class:`Writer`
    gives. The KeyErrors, TypeErrors and ValueErrors of one that is not are the caller's."""
    if manifest is None:
        return True
    bundle = manifest["bundle"]
    if not (_BUNDLE.fullmatch(bundle["name"]) and _SHA.fullmatch(bundle["sha256"])):
        return False
    parts = (part for array in manifest["arrays"].values() for part in array["parts"])
    return all(_PART.fullmatch(part) for part in parts) and all(
        type(size) is int and size >= 0 for size in sizes(manifest).values()
    )


def sizes(manifest: Manifest | None) -> dict[str, int]:
    """The objects of a checkpoint and their sizes in bytes."""
    if manifest is None:
        return {}
    out = {manifest["bundle"]["name"]: int(manifest["bundle"]["bytes"])}
    for array in manifest["arrays"].values():
        item = np.dtype(array["dtype"]).itemsize
        shapes = [(n, *array["shape"][1:]) for n in array["rows"]] if "rows" in array else None
        for part, shape in zip(array["parts"], shapes or [array["shape"]], strict=True):
            out[f"{PARTS}/{part}"] = item * prod(shape)
    return out


class Writer:
    """Writes the checkpoints of one session; parts that are there already are not written again."""

    def __init__(self, store: ObjectStore, session: int, adopted: Manifest | None) -> None:
        """``adopted`` is the checkpoint that the session goes on from."""
        self.store, self.session = store, session
        self._parts: dict[str, str] = {}
        """By digest, the names of parts that are known to be there."""
        for array in (adopted or {"arrays": {}})["arrays"].values():
            self._parts |= {part.partition("-")[2]: part for part in array["parts"]}

    def write(self, bundle: str, saved: state.Saved, put: Put) -> Manifest:
        """Write what is not there yet by ``put(name, data)``; the manifest."""
        small: dict[str, Array] = {}
        arrays: dict[str, dict[str, Any]] = {}
        for name, value in sorted(saved.items()):
            if value.nbytes < SMALL:
                small[name] = np.asarray(value)
                continue
            entry: dict[str, Any] = {"dtype": value.dtype.str, "shape": list(value.shape)}
            if isinstance(value, ChunkedArray):
                entry["rows"] = [len(chunk) for chunk in value.chunks]
                entry["parts"] = [self._chunk(chunk, put) for chunk in value.chunks]
            else:
                data = raw_bytes(value)
                entry["parts"] = [self._part(hashlib.sha256(data).hexdigest(), data, put)]
            arrays[name] = entry
        packed = state.encode(small)
        put(bundle, packed)
        sha = hashlib.sha256(packed).hexdigest()
        about = {"name": bundle, "sha256": sha, "bytes": len(packed)}
        return {"bundle": about, "arrays": arrays}

    def _chunk(self, chunk: Chunk, put: Put) -> str:
        return self._part(chunk.digest, raw_bytes(chunk.array), put)

    def _part(self, digest: str, data: Data, put: Put) -> str:
        if digest not in self._parts:
            part = f"{self.session}-{digest}"
            put(f"{PARTS}/{part}", data)
            self._parts[digest] = part
        return self._parts[digest]

    def forget(self, name: str) -> None:
        """A part is being deleted."""
        part = name.removeprefix(f"{PARTS}/")
        digest = part.partition("-")[2]
        if self._parts.get(digest) == part:
            del self._parts[digest]


class Reader:
    """Reads checkpoints, each object checked once."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self._good: set[tuple[str, str]] = set()

    def get(self, name: str, sha: str) -> bytes:
        """An object's bytes, if they are those that were committed."""
        try:
            data = self.store.get(name)
        except MissingObject as e:
            raise Corrupt(str(e)) from None
        if (name, sha) not in self._good:
            if hashlib.sha256(data).hexdigest() != sha:
                raise Corrupt(
                    f"{self.store.where(name)} is damaged: its bytes are not those that were "
                    "committed"
                )
            self._good.add((name, sha))
        return data

    def verify(self, manifest: Manifest) -> None:
        """Corrupt if an object of a checkpoint is missing or damaged."""
        for name, sha in _objects(manifest):
            if (name, sha) not in self._good:
                self.get(name, sha)

    def load(self, manifest: Manifest) -> dict[str, Any]:
        """The arrays of a checkpoint."""
        bundle = manifest["bundle"]
        data = self.get(bundle["name"], bundle["sha256"])
        out: dict[str, Any] = dict(state.decode(data, self.store.where(bundle["name"])))
        # An array that is there twice (an agent's and its snapshot's) is loaded once.
        chunks: dict[tuple[Any, ...], Chunk] = {}
        for name, array in manifest["arrays"].items():
            dtype, shape = np.dtype(array["dtype"]), tuple(array["shape"])
            if "rows" not in array:
                out[name] = self._rows(array["parts"][0], dtype, shape).copy()
                continue
            found = []
            for part, rows in zip(array["parts"], array["rows"], strict=True):
                key = (part, dtype.str, rows, *shape[1:])
                if key not in chunks:
                    content = Content(part.partition("-")[2])
                    chunks[key] = Chunk(self._rows(part, dtype, (rows, *shape[1:])), content)
                found.append(chunks[key])
            out[name] = ChunkedArray(found, shape[1:], dtype)
        return out

    def _rows(self, part: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        name = f"{PARTS}/{part}"
        data = self.get(name, part.partition("-")[2])
        if dtype.kind not in state.KINDS or dtype.itemsize * prod(shape) != len(data):
            raise Corrupt(
                f"{self.store.where(name)} cannot be loaded: {len(data)} bytes are not an array of "
                f"{dtype} {shape}"
            )
        return np.frombuffer(data, dtype).reshape(shape)


def _objects(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """The objects of a checkpoint with their digests."""
    yield manifest["bundle"]["name"], manifest["bundle"]["sha256"]
    for array in manifest["arrays"].values():
        for part in array["parts"]:
            yield f"{PARTS}/{part}", part.partition("-")[2]
