"""Every name below a run, and what a lifetime's folder says of its state, in one place.

::

    RUN/_meta/spec.json  jobs.json  lock
    RUN/<agent>/<seed>/                   one lifetime
        _meta/lifetime.json  progress.json  error.json  repeat.json  crash.txt  lock
        _meta/sessions/00000.json …
        _journal/00000.json …  rows/00000.parquet …  _ckpt/00000.npz …  _parts/…
        _video/index.json  *.mp4
    RUN/<agent>/experts/<task>/<seed>/    a single-task expert, the same inside

A compact copy (:mod:`perdure.store.compact`) has ``_meta/compact.json`` besides, ``lifetime.json.gz``
instead of ``lifetime.json``, and of a lifetime's folders only ``_meta``, ``_journal`` and ``rows``.

Who wants to know or write any of it asks a :class:`RunFolder` or a :class:`LifetimeFolder`.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal

from perdure.errors import MissingObject, StoreError
from perdure.store import journal
from perdure.store.checkpoints import BUNDLES, PARTS
from perdure.store.location import store_at
from perdure.store.lock import Lock
from perdure.store.objects import ObjectStore, get_json, to_json, to_json_gz

SPEC = "_meta/spec.json"
"""What a run is known by."""
VIDEO = "_video"
ROWS = "rows"
_JOBS, _COMPACT = "_meta/jobs.json", "_meta/compact.json"
_DESCRIPTION, _PROGRESS, _ERROR = "_meta/lifetime.json", "_meta/progress.json", "_meta/error.json"
_DESCRIPTION_GZ = f"{_DESCRIPTION}.gz"
_REPEAT, _CRASH = "_meta/repeat.json", "_meta/crash.txt"
_SESSIONS, _LOCK, _FILMS = "_meta/sessions", "_meta/lock", f"{VIDEO}/index.json"
PLANNING = 60.0
"""Seconds to wait for others who plan into the same folder; each takes some milliseconds."""
MOST_CRASH = 64 << 10
"""Bytes of a crash's stacks that are read."""
QUIET = 5.0
"""Seconds without a new sign of life after which another machine's lifetime has stopped."""

Status = Literal["waiting", "running", "failed", "interrupted", "done"]


class LifetimeFolder:
    """One lifetime's objects, but for its rows and checkpoints (:mod:`perdure.store.log`)."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.store: ObjectStore = store_at(self.path)
        self._entries: dict[str, journal.Entry] = {}
        self._beat: tuple[float, float] | None = None
        """The last sign of life from another machine, and when it was first seen."""

    # What it is made of, and who has run it.

    def description(self) -> dict[str, Any] | None:
        """What the lifetime is made of; None before it has begun."""
        found = self._mapping(_DESCRIPTION)
        return found if found is not None else self._mapping(_DESCRIPTION_GZ)

    def write_description(self, values: Mapping[str, Any]) -> None:
        """Write what the lifetime is made of."""
        self.store.put(_DESCRIPTION, to_json(values))

    @property
    def described_in(self) -> str:
        """Where the description is, for messages."""
        return self.store.where(_DESCRIPTION)

    def sessions(self) -> list[dict[str, Any]]:
        """Who ran it, with what and when, in order."""
        return [found for name in self.session_names() if (found := _lenient(self.store, name))]

    def session_names(self) -> tuple[str, ...]:
        """The objects of :meth:`sessions`."""
        return self.store.list(_SESSIONS)

    def write_session(self, number: int, values: Mapping[str, Any]) -> None:
        """Write who runs it now."""
        self.store.put(f"{_SESSIONS}/{number:05d}.json", to_json(values))

    def copy_records(self, source: LifetimeFolder) -> None:
        """Take over what another folder says of its lifetime and of how it was run, but not on which
        machine: that is nobody's business where a run is published."""
        self.store.put(_DESCRIPTION_GZ, to_json_gz(source.description()))
        for name in source.session_names():
            self.store.put(name, to_json(_without_machine(_lenient(source.store, name))))
        self.store.put(_PROGRESS, to_json(_without_machine(source.progress())))

    # How it is doing.

    def progress(self) -> dict[str, Any]:
        """How far it was at its last sign of life; empty before the first."""
        return _lenient(self.store, _PROGRESS)

    def write_progress(self, values: Mapping[str, Any]) -> None:
        """Give a sign of life. It is no part of the log and never fsynced."""
        sign = {"time": time.time(), "host": socket.gethostname()}
        self.store.put(_PROGRESS, to_json({**values, **sign}), durable=False)

    def last_sign(self) -> float | None:
        """When it gave its last sign of life, by its own clock, in seconds since 1970."""
        found = self.progress().get("time")
        return float(found) if isinstance(found, (int, float)) else None

    def error(self) -> dict[str, Any] | None:
        """Why it failed: ``error`` and ``traceback``; None if it did not."""
        if _ERROR not in self.store.list("_meta"):
            return None
        return {"error": "", **_lenient(self.store, _ERROR)}

    def write_error(self, error: str, traceback: str = "") -> None:
        """Leave word of a failure."""
        self.store.put(_ERROR, to_json({"error": error, "traceback": traceback}))

    def clear_error(self) -> None:
        """It is being tried again."""
        self.store.delete(_ERROR)

    @property
    def error_in(self) -> str:
        """Where the error is, for messages."""
        return self.store.where(_ERROR)

    def repeat(self) -> dict[str, Any]:
        """What came of playing some episodes again; empty if none was."""
        return _lenient(self.store, _REPEAT)

    def write_repeat(self, values: Mapping[str, Any]) -> None:
        """Write what came of playing some episodes again."""
        self.store.put(_REPEAT, to_json(values), durable=False)

    def open_crash(self) -> IO[bytes] | None:
        """A file for the fault handler, which needs one that is open; None where there can be
        none."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            return os.fdopen(os.open(self.path / _CRASH, flags, 0o644), "wb")
        except OSError:
            return None

    def crash(self) -> str:
        """What the fault handler wrote when compiled code crashed; empty if it did not."""
        try:
            return self.store.get(_CRASH)[:MOST_CRASH].decode(errors="replace").strip()
        except StoreError:
            return ""

    def clear_crash(self) -> None:
        """There was none."""
        self.store.delete(_CRASH)

    def lock(self) -> Lock:
        """Tells who writes it, to processes that see the same disk. Nothing depends on it."""
        return Lock(self.path / _LOCK)

    def journal(self) -> journal.Journal:
        """What is committed. Entries that this object has read before are not read again."""
        return journal.read(self.store, self._entries)

    def forget_after(self, commits: int) -> None:
        """Make it look as if it had been killed after so many commits. For tests."""
        journal.remove_after(self.store, commits)
        self._entries.clear()

    def status(self) -> Status:
        """``done``, ``running``, ``failed``, ``interrupted``, or ``waiting`` if it has not begun.

        A lifetime runs while its lock is held, as far as that can be seen from here, or while
        another machine's signs of life go on.
        """
        found = self.journal()
        if found.done:
            return "done"
        if Lock.held(self.path / _LOCK) or self._beating():
            return "running"
        if not found.length and self.description() is None:
            return "waiting"
        return "failed" if self.error() is not None else "interrupted"

    def _beating(self) -> bool:
        """Whether another machine gives signs of life that change, on whatever clock it goes by."""
        progress = self.progress()
        beat, host, now = self.last_sign(), progress.get("host"), time.time()
        if beat is None or host in (None, socket.gethostname()):
            return False
        if self._beat is None:
            self._beat = (beat, now if abs(now - beat) < QUIET else now - QUIET)
        if self._beat[0] != beat:
            self._beat = (beat, now)
        return now - self._beat[1] < QUIET

    def version(self) -> str:
        """Changes when there is something new to show: rows, an error, films."""
        seen = hashlib.sha256("\n".join(self.store.list(journal.FOLDER)).encode())
        for name in (_ERROR, _FILMS):
            try:
                seen.update(self.store.get(name))
            except MissingObject:
                seen.update(b"\0")
        return seen.hexdigest()

    # Films of its episodes; no row depends on them.

    def films(self) -> dict[str, Any] | None:
        """The index of the films; None if there is none."""
        return self._mapping(_FILMS)

    def film(self, name: str) -> bytes:
        """One film; MissingObject if there is none of this name."""
        return self.store.get(f"{VIDEO}/{name}")

    def write_film(self, name: str, data: bytes) -> None:
        """Write one film."""
        self.store.put(f"{VIDEO}/{name}", data)

    def write_films(self, index: Mapping[str, Any], named: Collection[str]) -> None:
        """Write the index, and remove every film that it does not name."""
        self.store.put(_FILMS, to_json(index))
        kept = {_FILMS, *(f"{VIDEO}/{name}" for name in named)}
        for name in self.store.list(VIDEO):
            if name not in kept:
                self.store.delete(name)

    @property
    def films_in(self) -> str:
        """Where the index of the films is, for messages."""
        return self.store.where(_FILMS)

    def unfinished(self) -> list[str]:
        """What killed writers left half-written, and what others are writing now."""
        folders = ("_meta", _SESSIONS, journal.FOLDER, VIDEO, ROWS, BUNDLES, PARTS)
        return [name for folder in folders for name in self.store.unfinished(folder)]

    def _mapping(self, name: str) -> dict[str, Any] | None:
        try:
            found = get_json(self.store, name)
        except MissingObject:
            return None
        if not isinstance(found, dict):
            raise StoreError(f"{self.store.where(name)}: expected a JSON object, got {found!r}")
        return found


class RunFolder:
    """A run's specification, its planned jobs and its lifetimes."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.store: ObjectStore = store_at(self.path)

    def exists(self) -> bool:
        """Whether there is a run here."""
        return SPEC in self.store.list("_meta")

    def foreign(self) -> bool:
        """Whether there is something else here. A lone ``_meta`` is our own: a run that was killed
        before it wrote its specification."""
        if self.exists():
            return False
        return bool(self.store.list() or set(self.store.folders()) - {"_meta"})

    def spec(self) -> Any:
        """The specification as it stands there."""
        return get_json(self.store, SPEC)

    def write_spec(self, values: Mapping[str, Any]) -> None:
        """Write the specification."""
        self.store.put(SPEC, to_json(values))

    @property
    def spec_in(self) -> str:
        """Where the specification is, for messages."""
        return self.store.where(SPEC)

    def jobs(self) -> dict[str, float]:
        """Planned lifetimes and how long each is beside the others."""
        return _lenient(self.store, _JOBS)

    def write_jobs(self, weights: Mapping[str, float]) -> None:
        """Write which lifetimes are planned."""
        self.store.put(_JOBS, to_json(weights))

    @property
    def compact(self) -> bool:
        """Whether this is a compact copy, which can be read but not gone on with."""
        return _COMPACT in self.store.list("_meta")

    def copy_records(self, source: RunFolder) -> None:
        """Take over a run's specification and jobs, as a compact copy."""
        self.write_spec(source.spec())
        self.write_jobs(source.jobs())
        self.store.put(_COMPACT, to_json({"left out": ["checkpoints", "films", "hosts"]}))

    def lock(self) -> Lock:
        """Held by whoever changes what is planned."""
        return Lock(self.path / _LOCK, PLANNING)

    def lifetime(self, job: str) -> LifetimeFolder:
        """The folder of one lifetime."""
        return LifetimeFolder(self.path / job)

    def lifetimes(self) -> list[str]:
        """Every lifetime that has begun; the single-task experts last."""
        own, experts = [], []
        for agent in self._folders(""):
            for seed in self._folders(agent):
                if seed != f"{agent}/experts":
                    own.append(seed)
                    continue
                for task in self._folders(seed):
                    experts += self._folders(task)
        every = (*own, *experts)
        return [j for j in every if self._described(j)]

    def _described(self, job: str) -> bool:
        names = self.store.list(f"{job}/_meta")
        return f"{job}/{_DESCRIPTION}" in names or f"{job}/{_DESCRIPTION_GZ}" in names

    def _folders(self, folder: str) -> list[str]:
        return [f for f in self.store.folders(folder) if f.rpartition("/")[2][:1] not in "_."]


def is_run(path: Path) -> bool:
    """Whether a folder is a run."""
    return RunFolder(path).exists()


def runs_below(folder: Path) -> Iterator[Path]:
    """Every run at or below a folder, in order; a run is not searched for others."""
    for root, below, _ in os.walk(folder):
        if is_run(Path(root)):
            yield Path(root)
            below.clear()
        below[:] = sorted(d for d in below if not d.startswith((".", "_")))


def _without_machine(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k not in ("host", "pid", "argv")}


def _lenient(store: ObjectStore, name: str) -> dict[str, Any]:
    """An object that is only looked at: empty if it is not there, or not what it should be."""
    try:
        found = json.loads(store.get(name).decode())
    except (StoreError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
