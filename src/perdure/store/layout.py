"""Every name below a run, and what a lifetime's folder says of its state, in one place.

::

    RUN/_meta/spec.json  jobs.json  code.json  sweep.json  lock
    RUN/<agent>/<seed>/                   one lifetime
        _meta/lifetime.json  progress.json  error.json  repeat.json  pruned.json  crash.txt  lock
        _meta/pending.rows   rows that are not committed yet, to be looked at while it runs
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
import os
import re
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal

from perdure.errors import LockedError, Overtaken, StoreError
from perdure.names import check_name
from perdure.store import described, journal, side
from perdure.store.checkpoints import BUNDLES, PARTS
from perdure.store.code import Record, recorded
from perdure.store.files import is_folder, refuse_links
from perdure.store.location import store_at
from perdure.store.lock import Lock, NoLock
from perdure.store.objects import ObjectStore, get_json, to_json, to_json_gz
from perdure.store.places import EXPERTS, LifetimePlace, parts_of, place_of, run_of
from perdure.store.rows import Owner
from perdure.store.urls import UrlPath, place

SPEC = "_meta/spec.json"
"""What a run is known by."""
VIDEO = "_video"
REPORT = "_report.html"
"""The report of a run, in its folder."""
ROWS = journal.ROWS
_MARKS = {"_meta", journal.FOLDER, ROWS}
"""Folders by which a lifetime's is known."""
_JOBS, _CODE, _COMPACT = "_meta/jobs.json", "_meta/code.json", "_meta/compact.json"
_SWEEP = "_meta/sweep.json"
_EVALUATION = "_eval"
_DESCRIPTION, _PROGRESS, _ERROR = "_meta/lifetime.json", "_meta/progress.json", "_meta/error.json"
_DESCRIPTION_GZ = f"{_DESCRIPTION}.gz"
_REPEAT, _CRASH, _PRUNED = "_meta/repeat.json", "_meta/crash.txt", "_meta/pruned.json"
_SESSIONS, _LOCK, _FILMS = "_meta/sessions", "_meta/lock", f"{VIDEO}/index.json"
_PROBE, _PENDING = "_meta/probe", "_meta/pending.rows"
_SESSION = re.compile(rf"{_SESSIONS}/\d{{5,}}\.json")
PLANNING = 60.0
"""Seconds to wait for others who plan into the same folder; each takes some milliseconds."""
MOST_CRASH = 64 << 10
"""Bytes of a crash's stacks that are read."""
QUIET = 5.0
"""Seconds without a new sign of life after which another machine's lifetime has stopped."""
PACE = 5.0
"""Seconds between two signs of life in an object store, where each is a request to be paid for."""

Status = Literal["waiting", "running", "failed", "interrupted", "damaged", "done"]


class LifetimeFolder:
    """One lifetime's objects, but for its rows and checkpoints (:mod:`perdure.store.log`)."""

    def __init__(self, path: str | Path) -> None:
        self.path = place(path)
        self.job = "/".join(parts_of(self.path))
        """Its folder below the run's."""
        self.store: ObjectStore = store_at(self.path, run_of(self.path))
        self._entries: dict[str, journal.Entry] = {}
        self._looked = journal.Journal()
        """What :meth:`trouble` found last."""
        self._beat: tuple[float, float] | None = None
        """The last sign of life from another machine, and when it was first seen."""
        self.remote = isinstance(self.path, UrlPath)
        """Whether it is in an object store: no locks, and signs of life are few."""
        self._signed, self._over = float("-inf"), False

    # What it is made of, and who has run it.

    def description(self) -> dict[str, Any] | None:
        """What the lifetime is made of; None before it has begun. Corrupt if a bit of it has
        changed, StoreError if it is another folder's."""
        found = described.read(self.store, _DESCRIPTION, self.job)
        return described.read(self.store, _DESCRIPTION_GZ, self.job) if found is None else found

    def write_description(self, values: Mapping[str, Any]) -> None:
        """Write what the lifetime is made of."""
        self.store.put(_DESCRIPTION, described.encode(values, self.job))

    @property
    def described_in(self) -> str:
        """Where the description is, for messages."""
        return self.store.where(_DESCRIPTION)

    def trouble(self) -> str:
        """Why the lifetime cannot be trusted, as far as is seen without a look at its rows: folder,
        description and journal must be whole and agree. Empty if they do."""
        try:
            found, written = self.description(), self.journal()
        except StoreError as e:
            return str(e)
        self._looked = written
        if found is not None:
            wrong = described.disagreement(found, self.job)
            return f"{self.described_in} {wrong}" if wrong else next(iter(written.notes), "")
        return f"{self.described_in} is missing; {described.ANEW}" if written.length else ""

    def owner(self) -> Owner | None:
        """Whose rows must be here, by the folder's name and the description; None where they do not
        tell."""
        found, place = self.description(), place_of(self.job)
        if found is None or place is None:
            return None
        return place.agent, place.seed, str(found.get("expert", ""))

    def sessions(self) -> list[dict[str, Any]]:
        """Who ran it, with what and when, in order; without what cannot be read."""
        found = (side.look(self.store, name)[0] for name in self.session_names())
        return [side.fitting(values, side.SESSION)[0] for values in found if values]

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
            self.store.put(name, to_json(_without_machine(side.look(source.store, name)[0])))
        self.store.put(_PROGRESS, to_json(_without_machine(source.progress())))
        if found := source.repeat():
            self.store.put(_REPEAT, to_json(found))

    # How it is doing.

    def progress(self) -> dict[str, Any]:
        """How far it was at its last sign of life; empty before the first."""
        return side.fitting(side.look(self.store, _PROGRESS)[0], side.PROGRESS)[0]

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
        return {"error": "", **side.fitting(side.look(self.store, _ERROR)[0], side.ERROR)[0]}

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
        return side.fitting(side.look(self.store, _REPEAT)[0], side.REPEAT)[0]

    def write_repeat(self, values: Mapping[str, Any]) -> None:
        """Write what came of playing some episodes again."""
        self.store.put(_REPEAT, to_json(values), durable=False)

    def pruned(self) -> list[float]:
        """What it had reached at each evaluation when a sweep broke it off; empty if none did."""
        found = side.fitting(side.look(self.store, _PRUNED)[0], side.PRUNED)[0]
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
        refuse_links(run_of(self.path), (self.path / _LOCK).parent)
        return Lock(self.path / _LOCK)

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
        if not trouble and self._looked.done:
            return "done"
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
        """Changes when there is something new to show: rows, an error, films."""
        seen = hashlib.sha256("\n".join(self.store.list(journal.FOLDER)).encode())
        if not self.remote:
            seen.update(f"{self.store.sizes('_meta').get(_PENDING)}".encode())
        for name in (_ERROR, _FILMS):
            try:
                seen.update(self.store.get(name, side.LONGEST))
            except StoreError:
                seen.update(b"\0")
        return seen.hexdigest()

    # Films of its episodes; no row depends on them.

    def films(self) -> dict[str, Any] | None:
        """The index of the films; None if there is none that can be read."""
        return side.look(self.store, _FILMS)[0] or None

    def shown_films(self) -> list[dict[str, Any]]:
        """The entries of the index that can be shown: whole, and of a film in this folder."""
        return side.films(self.films() or {})

    def film(self, name: str) -> bytes:
        """One film; MissingObject if there is none of this name."""
        return self.store.get(f"{VIDEO}/{name}")

    def film_path(self, name: str) -> str:
        """Where a film is."""
        return self.store.where(f"{VIDEO}/{name}")

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
        shapes = {_PROGRESS: side.PROGRESS, _ERROR: side.ERROR, _FILMS: side.FILMS}
        shapes |= {_REPEAT: side.REPEAT, _PRUNED: side.PRUNED}
        shapes |= dict.fromkeys(self.session_names(), side.SESSION)
        problems = [
            why for name, shape in shapes.items() if (why := side.problem(self.store, name, shape))
        ]
        there = (*self.store.list("_meta"), *self.store.list(_SESSIONS))
        known = (_DESCRIPTION, _DESCRIPTION_GZ, _LOCK, _PENDING)
        strange = [n for n in there if n not in {*known, *shapes}]
        return problems + [f"{self.store.where(n)} is no file of a run's" for n in strange]


class RunFolder:
    """A run's specification, its planned jobs and its lifetimes."""

    def __init__(self, path: str | Path) -> None:
        self.path = place(path)
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
        self._put_changed(SPEC, to_json(values))

    @property
    def spec_in(self) -> str:
        """Where the specification is, for messages."""
        return self.store.where(SPEC)

    def jobs(self) -> dict[str, float]:
        """Planned lifetimes and how long each is beside the others; what can be read of it."""
        found, _ = side.look(self.store, _JOBS)
        return {job: w for job, w in found.items() if place_of(job) and side.number(w) and w > 0}

    def jobs_problem(self) -> str:
        """Why :meth:`jobs` does not tell all that is planned; empty if it does."""
        found, why = side.look(self.store, _JOBS)
        if not why and len(self.jobs()) < max(len(found), 1):
            why = f"{self.store.where(_JOBS)} {'is no plan' if found else 'is missing'}"
        return f"{why}; {described.ANEW}" if why else ""

    def write_jobs(self, weights: Mapping[str, float]) -> None:
        """Write which lifetimes are planned."""
        self._put_changed(_JOBS, to_json(weights))

    def code(self, agent: str) -> Record | None:
        """What the lifetimes of an agent were last planned to execute; None if that is not known."""
        found, _ = side.look(self.store, _CODE)
        return next(iter(recorded({"code": [found.get(agent)]})), None)

    def write_code(self, records: Mapping[str, Record]) -> None:
        """Write what the lifetimes of some agents are to execute; Overtaken if others do."""
        found, _ = side.look(self.store, _CODE)
        merged = {**found, **records}
        if merged != found:
            self._put_changed(_CODE, to_json(merged))

    def _put_changed(self, name: str, data: bytes) -> None:
        """Write what follows from what was read last. Where no lock kept others from writing it
        meanwhile, Overtaken: then it is to be read again."""
        if isinstance(self.path, UrlPath):
            if not self.store.replace(name, data):
                raise Overtaken(f"{self.store.where(name)} has been changed by another process")
            return
        # A finished run may be on a disk that cannot be written.
        try:
            if self.store.get(name, len(data)) == data:
                return
        except StoreError:
            pass  # Whatever is there is put right, or that fails.
        self.store.put(name, data)

    def write_evaluation(self, agent: str, values: Mapping[str, Any]) -> Path:
        """Write what an evaluation found of a policy, under the name that LeRobot's tools look for;
        the file."""
        name = f"{_EVALUATION}/{check_name('agent', agent)}/eval_info.json"
        self._put_changed(name, to_json(values))
        return self.path / name

    def sweep(self) -> dict[str, Any]:
        """The record of the sweep that this run is; empty if it is none."""
        if _SWEEP not in self.store.list("_meta"):
            return {}
        found: dict[str, Any] = get_json(self.store, _SWEEP)
        return found

    def write_sweep(self, values: Mapping[str, Any]) -> None:
        """Write the record of a sweep."""
        self.store.put(_SWEEP, to_json(values))

    @property
    def is_sweep(self) -> bool:
        """Whether its lifetimes were run to choose an agent's parameters, and so are no results."""
        return _SWEEP in self.store.list("_meta")

    @property
    def compact(self) -> bool:
        """Whether this is a compact copy, which can be read but not gone on with."""
        return _COMPACT in self.store.list("_meta")

    def copy_records(self, source: RunFolder) -> None:
        """Take over a run's specification and jobs, as a compact copy."""
        self.write_spec(source.spec())
        self.write_jobs(source.jobs())
        self.store.put(_COMPACT, to_json({"left out": ["checkpoints", "films", "hosts"]}))

    def probe(self) -> None:
        """StoreError if the place where the run is kept does not keep what is promised of it."""
        self.store.probe(_PROBE)

    def lock(self) -> Lock | NoLock:
        """Held by whoever changes what is planned. In an object store nobody can: what is written
        there takes the place of what was read, or it is :class:`Overtaken`."""
        if isinstance(self.path, UrlPath):
            return NoLock()
        return Lock(self.path / _LOCK, PLANNING)

    def lifetime(self, job: str) -> LifetimeFolder:
        """The folder of one lifetime."""
        return LifetimeFolder(self.path / job)

    def begun(self, jobs: Iterable[str]) -> set[str]:
        """Those of some lifetimes of which there is anything, with one look for each folder that they
        are in, not one for each of them; all of those in a folder that cannot be looked into."""
        wanted = set(jobs)
        found: set[str] = set()
        for parent in {job.rpartition("/")[0] for job in wanted}:
            try:
                found.update(self.store.folders(parent))
            except StoreError:
                found.update(job for job in wanted if job.rpartition("/")[0] == parent)
        return found & wanted

    def lifetimes(self) -> list[str]:
        """Every lifetime that has begun; the single-task experts last."""
        return [job for job, place in self.places().items() if place is not None]

    def places(self) -> dict[str, LifetimePlace | None]:
        """Every folder that holds something of a lifetime, the single-task experts' last; None for
        one that is not where a lifetime's is."""
        found = sorted(self._search("", 4), key=lambda job: f"/{EXPERTS}/" in job)
        return {job: place_of(job) for job in found}

    def _search(self, folder: str, depth: int) -> Iterator[str]:
        try:
            below = self.store.folders(folder)
        except StoreError:
            yield folder  # A link, or unreadable: not passed over, whatever is in it.
            return
        names = {name.rpartition("/")[2] for name in below}
        if folder and not names.isdisjoint(_MARKS):
            yield folder
        elif depth:
            for name in below:
                if name.rpartition("/")[2][:1] not in "_.":
                    yield from self._search(name, depth - 1)


def is_run(path: Path) -> bool:
    """Whether a folder is a run."""
    return is_folder(path) and RunFolder(path).exists()


def runs_below(folder: Path) -> Iterator[Path]:
    """Every run at or below a folder, in order; a run is not searched for others. What a sweep ran to
    choose parameters is passed over, unless it is the folder itself."""
    return (run for run in _below(folder) if run == folder or not RunFolder(run).is_sweep)


def sweeps_below(folder: Path) -> Iterator[Path]:
    """Every sweep below a folder."""
    return (run for run in _below(folder) if run != folder and RunFolder(run).is_sweep)


def _below(folder: Path) -> Iterator[Path]:
    if isinstance(folder, UrlPath):
        yield from _below_url(folder, 4)
        return
    for root, below, _ in os.walk(folder):
        if is_run(Path(root)):
            yield Path(root)
            below.clear()
        below[:] = sorted(d for d in below if not d.startswith((".", "_")))


def _below_url(folder: UrlPath, depth: int) -> Iterator[Path]:
    if is_run(folder):
        yield folder
    elif depth:
        for name in store_at(folder).folders():
            if not name.startswith((".", "_")):
                yield from _below_url(folder / name, depth - 1)


def _without_machine(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k not in ("host", "pid", "argv")}
