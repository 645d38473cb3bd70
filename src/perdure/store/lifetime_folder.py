"""What a lifetime's folder says of its state: its description, who ran it, how far it is, its videos.

The names below a run are listed in :mod:`perdure.store.layout`.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any, Literal

from perdure.errors import LockedError, StoreError
from perdure.store import descriptions, journal, metadata
from perdure.store.checkpoints import BUNDLES, PARTS
from perdure.store.files import refuse_links
from perdure.store.location import store_at
from perdure.store.lock import Lock, NoLock
from perdure.store.membership import Membership
from perdure.store.objects import ObjectStore, to_json, to_json_gz
from perdure.store.places import parts_of, place_of, run_of
from perdure.store.rows import Owner
from perdure.store.urls import UrlPath, place

VIDEO = "_video"
ROWS = journal.ROWS
LOCK = "_meta/lock"
_DESCRIPTION, _PROGRESS, _ERROR = "_meta/lifetime.json", "_meta/progress.json", "_meta/error.json"
_DESCRIPTION_GZ = f"{_DESCRIPTION}.gz"
_REPEAT, _CRASH, _PRUNED = "_meta/repeat.json", "_meta/crash.txt", "_meta/pruned.json"
_SESSIONS, _VIDEO_INDEX = "_meta/sessions", f"{VIDEO}/index.json"
_PENDING = "_meta/pending.rows"
_SESSION = re.compile(rf"{_SESSIONS}/\d{{5,}}\.json")
MOST_CRASH = 64 << 10
"""Bytes of a crash's stacks that are read."""
QUIET = 5.0
"""Seconds without a new sign of life after which another machine's lifetime has stopped."""
PACE = 5.0
"""Seconds between two signs of life in an object store, where each is a request to be paid for."""

Status = Literal["waiting", "running", "failed", "interrupted", "damaged", "done"]


class LifetimeFolder:
    """One lifetime's objects, but for its rows and checkpoints (:mod:`perdure.store.log`)."""

    def __init__(self, path: str | Path, members: Membership | None = None) -> None:
        """``members`` tells whose lifetimes are in the run's folder; found there if not given."""
        self.path = place(path)
        self.job = "/".join(parts_of(self.path))
        """Its folder below the run's."""
        self.store: ObjectStore = store_at(self.path, run_of(self.path))
        self._members = members or Membership(run_of(self.path))
        self._entries: dict[str, journal.Entry] = {}
        self.looked: tuple[dict[str, Any] | None, journal.Journal] = (None, journal.Journal())
        """The description and the journal that :meth:`trouble`, or :meth:`status`, found last."""
        self._beat: tuple[float, float] | None = None
        """The last sign of life from another machine, and when it was first seen."""
        self.remote = isinstance(self.path, UrlPath)
        """Whether it is in an object store: no locks, and signs of life are few."""
        self._signed, self._over = float("-inf"), False

    # What it is made of, and who has run it.

    def description(self) -> dict[str, Any] | None:
        """What the lifetime is made of; None before it has begun. Corrupt if a bit of it has
        changed, StoreError if it is another folder's."""
        found = descriptions.read(self.store, _DESCRIPTION, self.job)
        return descriptions.read(self.store, _DESCRIPTION_GZ, self.job) if found is None else found

    def write_description(self, values: Mapping[str, Any]) -> None:
        """Write what the lifetime is made of."""
        self.store.put(_DESCRIPTION, descriptions.encode(values, self.job))

    @property
    def described_in(self) -> str:
        """Where the description is, for messages."""
        return self.store.where(_DESCRIPTION)

    def trouble(self) -> str:
        """Why the lifetime cannot be trusted, as far as is seen without a look at its rows: folder,
        description and journal must be whole and agree, and the lifetime be the run's own. Empty if
        all that is so."""
        try:
            self.looked = found, written = self.description(), self.journal()
        except StoreError as e:
            return str(e)
        if found is None and written.length:
            return f"{self.described_in} is missing; {descriptions.ANEW}"
        wrong = "" if found is None else descriptions.disagreement(found, self.job)
        wrong = wrong or self._foreign()
        return f"{self.described_in} {wrong}" if wrong else next(iter(written.notes), "")

    def _foreign(self) -> str:
        """Why the lifetime looked at is none of the run's; empty if it is one."""
        return self._members.foreign(self.looked[0] or {}, self.job)

    def owner(self) -> Owner | None:
        """Whose rows must be here, by the folder's name and the description; None where they do not
        tell."""
        found, place = self.description(), place_of(self.job)
        if found is None or place is None:
            return None
        return place.agent, place.seed, str(found.get("expert", ""))

    def sessions(self) -> list[dict[str, Any]]:
        """Who ran it, with what and when, in order; without what cannot be read."""
        found = (metadata.look(self.store, name)[0] for name in self.session_names())
        return [metadata.fitting(values, metadata.SESSION)[0] for values in found if values]

    def session_names(self) -> tuple[str, ...]:
        """The objects of :meth:`sessions`."""
        return tuple(n for n in self.store.list(_SESSIONS) if _SESSION.fullmatch(n))

    def write_session(self, number: int, values: Mapping[str, Any]) -> None:
        """Write who runs it now."""
        self.store.put(f"{_SESSIONS}/{number:05d}.json", to_json(values))

    def copy_records(self, source: LifetimeFolder) -> None:
        """Take over what another folder says of its lifetime and of how it was run, but not on which
        machine: that is nobody's business where a run is published."""
        self.store.put(
            _DESCRIPTION_GZ, to_json_gz({**(source.description() or {}), "folder": self.job})
        )
        for name in source.session_names():
            self.store.put(name, to_json(_without_machine(metadata.look(source.store, name)[0])))
        self.store.put(_PROGRESS, to_json(_without_machine(source.progress())))
        if found := source.repeat():
            self.store.put(_REPEAT, to_json(found))

    # How it is doing.

    def progress(self) -> dict[str, Any]:
        """How far it was at its last sign of life; empty before the first."""
        return metadata.fitting(metadata.look(self.store, _PROGRESS)[0], metadata.PROGRESS)[0]

    def write_progress(self, values: Mapping[str, Any]) -> None:
        """Give a sign of life. It is no part of the log and never fsynced."""
        now, over = time.monotonic(), values.get("fraction") == 1.0
        if self.remote and now - self._signed < PACE and over == self._over:
            return
        self._signed, self._over = now, over
        sign = {"time": time.time(), "host": socket.gethostname()}
        self.store.put(_PROGRESS, to_json({**values, **sign}), durable=False)

    def pending(self) -> bytes:
        """The rows that were not committed yet when they were last shown; empty if there are none. They
        are to be looked at, and count for nothing: whoever resumes the lifetime computes them again."""
        try:
            return b"" if self.remote else self.store.get(_PENDING)
        except StoreError:
            return b""

    def write_pending(self, data: bytes) -> None:
        """Show rows that are not committed yet in place of those shown before. Never fsynced; not in an
        object store, where each look would be paid for."""
        if self.remote:
            return
        if data:
            self.store.put(_PENDING, data, durable=False)
        elif _PENDING in self.store.list("_meta"):
            self.store.delete(_PENDING)

    def last_sign(self) -> float | None:
        """When it gave its last sign of life, by its own clock, in seconds since 1970."""
        found = self.progress().get("time")
        return None if found is None else float(found)

    def error(self) -> dict[str, Any] | None:
        """Why it failed: ``error`` and ``traceback``; None if it did not."""
        if _ERROR not in self.store.list("_meta"):
            return None
        return {
            "error": "",
            **metadata.fitting(metadata.look(self.store, _ERROR)[0], metadata.ERROR)[0],
        }

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
        return metadata.fitting(metadata.look(self.store, _REPEAT)[0], metadata.REPEAT)[0]

    def write_repeat(self, values: Mapping[str, Any]) -> None:
        """Write what came of playing some episodes again."""
        self.store.put(_REPEAT, to_json(values), durable=False)

    def pruned(self) -> list[float]:
        """What it had reached at each evaluation when a sweep broke it off; empty if none did."""
        found = metadata.fitting(metadata.look(self.store, _PRUNED)[0], metadata.PRUNED)[0]
        return [float(value) for value in found.get("values", ())]

    def write_pruned(self, values: Mapping[str, Any]) -> None:
        """A sweep breaks it off."""
        self.store.put(_PRUNED, to_json(values))

    def open_crash(self) -> IO[bytes] | None:
        """A file for the fault handler, which needs one that is open; None where there can be
        none."""
        if self.remote:
            return None
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

    def lock(self) -> Lock | NoLock:
        """Tells who writes it, to processes that see the same disk; in an object store its signs of
        life do. Nothing depends on it."""
        if self.remote:
            return NoLock(self._refuse_if_occupied)
        refuse_links(run_of(self.path), (self.path / LOCK).parent)
        return Lock(self.path / LOCK)

    def journal(self) -> journal.Journal:
        """What is committed. Entries that this object has read before are not read again."""
        return journal.read(self.store, self._entries)

    def forget_after(self, commits: int) -> None:
        """Make it look as if it had been killed after so many commits. For tests."""
        journal.remove_after(self.store, commits)
        self._entries.clear()

    def status(self) -> Status:
        """``done``, ``running``, ``failed``, ``interrupted``, ``damaged`` if it cannot be trusted, or
        ``waiting`` if it has not begun.

        A lifetime runs while its lock is held, as far as that can be seen from here, or while
        another machine's signs of life go on.
        """
        trouble = self.trouble()
        if not trouble and self.looked[1].done:
            return "done"
        if self._foreign():
            return "damaged"  # Whoever writes it: it is none of this run's.
        try:
            lock = self.lock()
            if (isinstance(lock, Lock) and Lock.held(lock.path)) or self._beating():
                return "running"
        except StoreError:
            return "damaged"
        if trouble:
            return "damaged"
        if not self.journal().length and self.description() is None:
            return "waiting"
        return "failed" if self.error() is not None else "interrupted"

    def _beating(self) -> bool:
        """Whether another machine gives signs of life that change, on whatever clock it goes by."""
        progress = self.progress()
        beat, host, now = self.last_sign(), progress.get("host"), time.time()
        if beat is None or host is None:
            return False
        if host == socket.gethostname() and not (self.remote and self._writer_lives()):
            return False
        quiet = 3 * PACE if self.remote else QUIET
        if self._beat is None:
            self._beat = (beat, now if abs(now - beat) < quiet else now - quiet)
        if self._beat[0] != beat:
            self._beat = (beat, now)
        return now - self._beat[1] < quiet

    def _writer_lives(self) -> bool:
        """Whether the process of the last session, if it was one of this machine, is there."""
        last = next(iter(self.sessions()[-1:]), {})
        if last.get("host") != socket.gethostname():
            return True
        try:
            os.kill(int(last.get("pid", 0)) or -1, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            pass
        return True

    def _refuse_if_occupied(self) -> None:
        """LockedError if somebody gives signs of life here: a second writer would take over from it,
        which is safe, but what the first has not committed would be computed twice."""
        if self.journal().done or not self._beating():
            return
        before, end = self.last_sign(), time.monotonic() + 2 * PACE
        while time.monotonic() < end and self._beating():
            time.sleep(PACE / 10)
            if self.last_sign() != before:
                who = next(iter(self.sessions()[-1:]), {})
                raise LockedError(
                    f"{self.path} is being written by process {who.get('pid')} on {who.get('host')}; wait "
                    "for it or stop it"
                )

    def version(self) -> str:
        """Changes when there is something new to show: rows, an error, videos."""
        seen = hashlib.sha256("\n".join(self.store.list(journal.FOLDER)).encode())
        if not self.remote:
            seen.update(f"{self.store.sizes('_meta').get(_PENDING)}".encode())
        for name in (_ERROR, _VIDEO_INDEX):
            try:
                seen.update(self.store.get(name, metadata.LONGEST))
            except StoreError:
                seen.update(b"\0")
        return seen.hexdigest()

    # Videos of its episodes; no row depends on them.

    def videos(self) -> dict[str, Any] | None:
        """The index of the videos; None if there is none that can be read."""
        return metadata.look(self.store, _VIDEO_INDEX)[0] or None

    def shown_videos(self) -> list[dict[str, Any]]:
        """The entries of the index that can be shown: whole, and of a video in this folder."""
        return metadata.videos(self.videos() or {})

    def video(self, name: str) -> bytes:
        """One video; MissingObject if there is none of this name."""
        return self.store.get(f"{VIDEO}/{name}")

    def video_path(self, name: str) -> str:
        """Where a video is."""
        return self.store.where(f"{VIDEO}/{name}")

    def write_video(self, name: str, data: bytes) -> None:
        """Write one video."""
        self.store.put(f"{VIDEO}/{name}", data)

    def write_videos(self, index: Mapping[str, Any], named: Collection[str]) -> None:
        """Write the index, and remove every video that it does not name."""
        self.store.put(_VIDEO_INDEX, to_json(index))
        kept = {_VIDEO_INDEX, *(f"{VIDEO}/{name}" for name in named)}
        for name in self.store.list(VIDEO):
            if name not in kept:
                self.store.delete(name)

    @property
    def videos_in(self) -> str:
        """Where the index of the videos is, for messages."""
        return self.store.where(_VIDEO_INDEX)

    def unfinished(self) -> list[str]:
        """What killed writers left half-written, and what others are writing now."""
        folders = ("_meta", _SESSIONS, journal.FOLDER, VIDEO, ROWS, BUNDLES, PARTS)
        return [name for folder in folders for name in self.store.unfinished(folder)]

    def sizes(self) -> tuple[int, int]:
        """The bytes that grow with the lifetime (rows and journal), and all others."""
        grow = sum(sum(self.store.sizes(folder).values()) for folder in (ROWS, journal.FOLDER))
        others = ("_meta", _SESSIONS, VIDEO, BUNDLES, PARTS)
        return grow, sum(sum(self.store.sizes(folder).values()) for folder in others)

    def worked(self, end: float | None) -> tuple[tuple[float, float], ...]:
        """From when to when it was worked on, in seconds since 1970: its sessions, the last of which
        lasted until ``end``."""
        sessions = [s for s in self.sessions() if s.get("started") is not None]
        spans = []
        for k, session in enumerate(sessions, 1):
            began = session["started"]
            until = sessions[k].get("previous_end") if k < len(sessions) else end
            spans.append((began, began if until is None else max(began, until)))
        return tuple(spans)

    def side_problems(self) -> list[str]:
        """What is wrong with the objects that are only looked at, a sentence each."""
        shapes = {
            _PROGRESS: metadata.PROGRESS,
            _ERROR: metadata.ERROR,
            _VIDEO_INDEX: metadata.VIDEOS,
        }
        shapes |= {_REPEAT: metadata.REPEAT, _PRUNED: metadata.PRUNED}
        shapes |= dict.fromkeys(self.session_names(), metadata.SESSION)
        problems = [
            why
            for name, shape in shapes.items()
            if (why := metadata.problem(self.store, name, shape))
        ]
        there = (*self.store.list("_meta"), *self.store.list(_SESSIONS))
        known = (_DESCRIPTION, _DESCRIPTION_GZ, LOCK, _PENDING)
        strange = [n for n in there if n not in {*known, *shapes}]
        return problems + [f"{self.store.where(n)} is no file of a run's" for n in strange]


def _without_machine(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k not in ("host", "pid", "argv")}
