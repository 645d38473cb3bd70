"""Every name below a run, and a run's own folder.

::

    RUN/_meta/spec.json  jobs.json  code.json  sweep.json  lock
    RUN/_pictures/index.json  *.png       pictures of its agents that its report shows
    RUN/_eval/<agent>/eval_info.json      what an evaluation found of a policy
    RUN/_figures/  _report.html           what is drawn of it, if that is not put elsewhere
    RUN/<agent>/<seed>/                   one lifetime
        _meta/lifetime.json  progress.json  error.json  repeat.json  pruned.json  crash.txt  lock
        _meta/pending.rows   rows that are not committed yet, to be looked at while it runs
        _meta/sessions/00000.json …
        _journal/00000.json …  rows/00000.parquet …  _ckpt/00000.npz …  _parts/…
        _video/index.json  *.mp4
    RUN/<agent>/experts/<task>/<seed>/    a single-task expert, the same inside

A compact copy (:mod:`perdure.store.compact`) has ``_meta/compact.json`` besides, ``lifetime.json.gz``
instead of ``lifetime.json``, and of a lifetime's folders only ``_meta``, ``_journal`` and ``rows``.

Who wants to know or write any of it asks a :class:`RunFolder` or a :class:`LifetimeFolder`
(:mod:`perdure.store.lifetime_folder`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.errors import NameRefused, Overtaken, StoreError
from perdure.names import check_name
from perdure.store import descriptions, journal, metadata
from perdure.store.bucket import BucketStore
from perdure.store.code import Record, recorded
from perdure.store.files import Data, is_folder
from perdure.store.lifetime_folder import LOCK, ROWS, VIDEO, LifetimeFolder, Status
from perdure.store.location import store_at
from perdure.store.lock import Lock, NoLock
from perdure.store.membership import SPEC, Membership
from perdure.store.objects import ObjectStore, get_json, to_json
from perdure.store.places import EXPERTS, LifetimePlace, place_of
from perdure.store.urls import UrlPath, place

__all__ = [
    "FIGURES",
    "PLANNING",
    "REPORT",
    "ROWS",
    "SPEC",
    "VIDEO",
    "LifetimeFolder",
    "Picture",
    "RunFolder",
    "Status",
    "is_run",
    "runs_below",
    "sweeps_below",
]

REPORT = "_report.html"
"""The report of a run, in its folder."""
FIGURES = "_figures"
"""Its plots, as files."""
_MARKS = {"_meta", journal.FOLDER, ROWS}
"""Folders by which a lifetime's is known."""
_JOBS, _CODE, _COMPACT = "_meta/jobs.json", "_meta/code.json", "_meta/compact.json"
_SWEEP, _PROBE = "_meta/sweep.json", "_meta/probe"
_EVALUATION = "_eval"
_PICTURES, _PICTURED = "_pictures", "_pictures/index.json"
PNG = b"\x89PNG\r\n\x1a\n"
"""How such a file begins."""
PLANNING = 60.0
"""Seconds to wait for others who plan into the same folder; each takes some milliseconds."""


@dataclass(frozen=True)
class Picture:
    """A picture of a run and what is said of it."""

    name: str
    title: str
    about: str
    png: bytes


class RunFolder:
    """A run's specification, its planned jobs and its lifetimes."""

    def __init__(self, path: str | Path) -> None:
        self.path = place(path)
        self.store: ObjectStore = store_at(self.path)
        self._members = Membership(self.path)

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
        found, _ = metadata.look(self.store, _JOBS)
        return {
            job: w for job, w in found.items() if place_of(job) and metadata.number(w) and w > 0
        }

    def jobs_problem(self) -> str:
        """Why :meth:`jobs` does not tell all that is planned; empty if it does."""
        found, why = metadata.look(self.store, _JOBS)
        if not why and len(self.jobs()) < max(len(found), 1):
            why = f"{self.store.where(_JOBS)} {'is no plan' if found else 'is missing'}"
        return f"{why}; {descriptions.ANEW}" if why else ""

    def write_jobs(self, weights: Mapping[str, float]) -> None:
        """Write which lifetimes are planned."""
        self._put_changed(_JOBS, to_json(weights))

    def code(self, agent: str) -> Record | None:
        """What the lifetimes of an agent were last planned to execute; None if that is not known."""
        found, _ = metadata.look(self.store, _CODE)
        return next(iter(recorded({"code": [found.get(agent)]})), None)

    def write_code(self, records: Mapping[str, Record]) -> None:
        """Write what the lifetimes of some agents are to execute, beside those of others; Overtaken if
        others do."""
        found, _ = metadata.look(self.store, _CODE)
        if {**found, **records} == found:
            return
        with self.lock():
            found, _ = metadata.look(self.store, _CODE)
            self._put_changed(_CODE, to_json({**found, **records}))

    def _put_changed(self, name: str, data: bytes) -> None:
        """Write what follows from what was read last. On disk whoever does holds :meth:`lock`; where
        there is none, Overtaken if others have written it meanwhile: then it is to be read again."""
        if isinstance(self.store, BucketStore):
            if not self.store.replace(name, data):
                raise Overtaken(f"{self.store.where(name)} has been changed by another process")
            return
        self._put(name, data)

    def _put(self, name: str, data: Data) -> None:
        """Write an object, unless it is there as it is: a finished run may be on a disk that cannot be
        written."""
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
        self._put(name, to_json(values))
        return self.path / name

    def write_picture(self, name: str, png: bytes, title: str, about: str) -> Path:
        """Keep a picture that the run's report is to show, in the place of one of the same name; the
        file."""
        file = f"{_PICTURES}/{check_name('picture', name)}.png"
        index, _ = metadata.look(self.store, _PICTURED)
        self.store.put(file, png)
        self.store.put(_PICTURED, to_json({**index, name: {"title": title, "about": about}}))
        return self.path / file

    def pictures(self) -> list[Picture]:
        """The pictures that its report shows, in the order in which they were first kept; what is
        damaged is left out."""
        found = []
        for name, entry in metadata.look(self.store, _PICTURED)[0].items():
            try:
                png = self.store.get(
                    f"{_PICTURES}/{check_name('picture', name)}.png", metadata.LONGEST
                )
            except (StoreError, NameRefused):
                continue
            if isinstance(entry, dict) and png.startswith(PNG):
                found.append(
                    Picture(name, str(entry.get("title", "")), str(entry.get("about", "")), png)
                )
        return found

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
        self.store.put(_COMPACT, to_json({"left out": ["checkpoints", "videos", "hosts"]}))

    def probe(self) -> None:
        """StoreError if the place where the run is kept does not keep what is promised of it."""
        if isinstance(self.store, BucketStore):
            self.store.probe(_PROBE)

    def lock(self) -> Lock | NoLock:
        """Held by whoever changes what is planned. In an object store nobody can: what is written
        there takes the place of what was read, or it is :class:`Overtaken`."""
        if isinstance(self.path, UrlPath):
            return NoLock()
        return Lock(self.path / LOCK, PLANNING)

    def lifetime(self, job: str) -> LifetimeFolder:
        """The folder of one lifetime."""
        return LifetimeFolder(self.path / job, self._members)

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
