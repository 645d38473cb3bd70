"""A lifetime's rows and checkpoints, and the journal whose entries make them count.

::

    <agent>/<seed>/rows/00000.parquet     immutable, in order
                   _ckpt/00000.npz        the agent and the loop at that segment's end
                   _parts/0-9f86d0…       what is large of them, named by its content
                   _journal/00000.json    a session's claim, or a commit: its existence IS the commit

A segment or bundle that a later session writes has its number in its name: ``rows/00007-2.parquet``.

Opening repairs: a damaged journal entry and everything after it is dropped, segments and
checkpoints are checked against their digests, and what no commit names is deleted. What was dropped
is computed again from the last good commit, to the same rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from perdure.errors import Corrupt, LockedError, StoreError
from perdure.store import checkpoints, journal, rows, state
from perdure.store.checkpoints import BUNDLES, PARTS
from perdure.store.files import Data
from perdure.store.journal import Commit, back_to
from perdure.store.layout import ROWS, LifetimeFolder

KEEP_BYTES = 64 << 20
"""Older checkpoints are kept while all together stay under this; the last two always."""
_FOLDERS = (ROWS, BUNDLES, PARTS)


class Lifetime:
    """The readable side of a lifetime's folder."""

    def __init__(self, path: str | Path, owner: rows.Owner | None = None) -> None:
        self.folder = LifetimeFolder(path)
        self.path, self.store = self.folder.path, self.folder.store
        self.owner = owner
        """Whose rows these must be, where that is known."""
        self._reader = checkpoints.Reader(self.store)
        found = self.folder.journal()
        self.commits, self.notes = found.commits, found.notes
        """What counts, and what was found damaged."""
        self.sessions, self.entries = found.sessions, found.length
        self.damaged: set[int] = set()
        """Commits whose checkpoint is."""

    @classmethod
    def read(
        cls, path: str | Path, verify: bool = False, owner: rows.Owner | None = None
    ) -> Lifetime:
        """Read the journal; with ``verify``, check every object it names. Rows of another than the
        ``owner`` are never handed out: StoreError."""
        life = cls(path, owner)
        if verify:
            life._verify_rows()
            life._verify_checkpoints()
        return life

    @property
    def done(self) -> bool:
        """Whether the lifetime has ended."""
        return bool(self.commits) and self.commits[-1].done

    def segment(self, commit: Commit, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a commit; Corrupt if they are not as committed."""
        data = self._segment(commit)
        try:
            return rows.decode(data, columns)
        except (pa.ArrowException, OSError, KeyError, IndexError) as e:
            raise self._unreadable(commit, e) from e

    def _segment(self, commit: Commit) -> bytes:
        """The bytes of a segment, as they were committed and of the right lifetime."""
        data = self._reader.get(commit.rows, commit.rows_sha)
        if self.owner is not None and commit.count:
            try:
                found = rows.owners(data)
            except (pa.ArrowException, OSError, AttributeError, IndexError) as e:
                raise self._unreadable(commit, e) from e
            if found != {self.owner}:
                raise StoreError(
                    f"{self.store.where(commit.rows)} holds rows of {_whose(*found)}, not of "
                    f"{_whose(self.owner)}: the folder was moved or copied; put it back, or remove it"
                )
        return data

    def _unreadable(self, commit: Commit, error: Exception) -> Corrupt:
        return Corrupt(f"{self.store.where(commit.rows)} cannot be read as rows: {error}")

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The committed rows, a table for each segment; Corrupt if one is not as committed."""
        for commit in self.commits:
            yield self.segment(commit, columns)

    def table(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all committed rows, of the measures those that have any value."""
        tables = list(self.tables(columns))
        if not tables:
            raise StoreError(f"{self.path} has no committed rows yet")
        return pa.concat_tables(tables, promote_options="default")

    def shown(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows that can be seen now: the committed ones, and those that a running
        lifetime shows before it commits them. StoreError if there are none."""
        tables = list(self.tables(columns))
        count = sum(c.count for c in self.commits)
        data = self.folder.pending()
        # Nothing depends on these rows, so that damage is not worth a word.
        with suppress(pa.ArrowException, OSError, KeyError, IndexError, AttributeError):
            if data and rows.owners(data) == {self.owner}:
                table = rows.decode(data, columns)
                new = table["exp"].to_pylist()
                # From the next after the last committed one on; not if a commit came between.
                if count in new:
                    tables.append(table.slice(new.index(count)))
        if not tables:
            raise StoreError(f"{self.path} has no rows yet")
        return pa.concat_tables(tables, promote_options="default")

    def rows(self) -> list[rows.Row]:
        """Every committed row."""
        return [row for table in self.tables() for row in rows.to_rows(table)]

    def check_rows(self) -> None:
        """Corrupt, or another StoreError, if any committed rows cannot be had."""
        for table in self.tables(["exp"]):
            del table

    def _verify_rows(self) -> None:
        for i, c in enumerate(self.commits):
            try:
                self._segment(c)
            except Corrupt as e:
                self.notes.append(f"{e}; {back_to(i - 1)}")
                del self.commits[i:]
                return

    def _verify_checkpoints(self) -> None:
        # Those that are there: old ones are deleted by us, and finished ones by whoever needs room.
        for c in self.held():
            assert c.checkpoint is not None
            try:
                self._reader.verify(c.checkpoint)
            except Corrupt as e:
                if str(e) not in self.notes:
                    self.notes.append(str(e))
                self.damaged.add(c.n)

    def held(self) -> list[Commit]:
        """The commits whose checkpoints are there, all of each."""
        there = {*self.store.list(BUNDLES), *self.store.list(PARTS)}
        return [
            c
            for c in self.commits
            if c.checkpoint
            and c.checkpoint["bundle"]["name"] in there
            and sizes_of(c).keys() <= there
        ]

    def load_state(self, commit: Commit) -> dict[str, Any]:
        """The checkpoint of a commit, checked."""
        if commit.checkpoint is None:
            raise StoreError(f"commit {commit.n} of {self.path} has no checkpoint")
        return self._reader.load(commit.checkpoint)


def _whose(*owners: tuple[Any, ...]) -> str:
    """Lifetimes in words."""
    said = []
    for agent, seed, expert in owners:
        said.append(f"{agent}, seed {seed}" + (f", expert of {expert}" if expert else ""))
    return " and ".join(sorted(said)) or "nobody"


def sizes_of(commit: Commit) -> dict[str, int]:
    """The objects of a commit's checkpoint and their sizes."""
    return checkpoints.sizes(commit.checkpoint)


class LifetimeLog:
    """The writing side: the only writer of one lifetime, until another claims it."""

    def __init__(self, path: str | Path, agent: str, lifetime: int, expert: str = "") -> None:
        self.folder = LifetimeFolder(path)
        self.path, self.store = self.folder.path, self.folder.store
        self.identity = (agent, lifetime, expert)
        # A courtesy: a second writer is told at once. The journal is what keeps it out.
        self.lock = self.folder.lock()
        self.lock.acquire()
        try:
            self._open()
        except BaseException:
            self.lock.release()
            raise

    def _open(self) -> None:
        # In this order: what is there before this session's claim and is named by no commit then
        # can never be named by one, and no later session uses a name that was there before it.
        there = [name for folder in _FOLDERS for name in self.store.list(folder)]
        unfinished = self.folder.unfinished()
        life = Lifetime.read(self.path, verify=True, owner=self.identity)
        self.notes, self.commits = life.notes, life.commits
        self.resumed: dict[str, Any] | None = None
        """What the last commit holds of the agent and the loop."""
        self._go_back(life)
        self.session = -1
        """The number of this session; −1 where the lifetime is done and there is nothing to write."""
        if not self.done:
            before = [_session(name) for name in (*there, *self.folder.session_names())]
            self.session = 1 + max((*before, *(s.number for s in life.sessions)), default=-1)
            claim = journal.Session.here(self.session, len(self.commits))
            journal.append(self.store, life.entries, claim)
            self._token, self._entries = claim.token, life.entries + 1
        # A damaged checkpoint of an older commit is of no use; the later ones are good.
        self._held = [c for c in life.held() if c.n < len(self.commits)]
        self._held = [c for c in self._held if c.n not in life.damaged]
        # Another writer's last thinning may still be under way. It spares the last commits; parts of
        # an older one, where this session had to go back to it, are better written again.
        manifest = self._held[-1].checkpoint if self._held and not self.notes else None
        self._checkpoints = checkpoints.Writer(self.store, self.session, manifest)
        named = {c.rows for c in self.commits}.union(*map(sizes_of, self._held))
        for name in (*there, *unfinished):
            if name not in named:
                self.store.delete(name)

    def _go_back(self, life: Lifetime) -> None:
        """Drop commits until there is one to go on from."""
        held = {c.n for c in life.held()}
        while self.commits:
            last = self.commits[-1]
            if last.done and last.n not in held:
                return
            if last.checkpoint is None:
                self.notes.append(f"{self.path}: the agent cannot be saved; starting again")
                self.commits.clear()
                return
            try:
                self.resumed = life.load_state(last)
                return
            except Corrupt as e:
                self.notes = [n for n in self.notes if n != str(e)]
                self.notes.append(f"{e}; {back_to(last.n - 1)}")
                self.commits.pop()

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""
        return bool(self.commits) and self.commits[-1].done

    @property
    def position(self) -> Mapping[str, Any] | None:
        """Where the last commit stands."""
        return self.commits[-1].position if self.commits else None

    def committed_rows(self) -> list[rows.Row]:
        """Every committed row."""
        return [r for c in self.commits for r in rows.to_rows(rows.decode(self.store.get(c.rows)))]

    def commit(
        self,
        new: Sequence[rows.Row],
        saved: state.Saved | None,
        position: Mapping[str, Any],
        done: bool = False,
    ) -> None:
        """Write a segment and a checkpoint, then the journal entry that makes them count.

        LockedError if another process has claimed the lifetime meanwhile: nothing of this call
        counts, and nothing of it is left.
        """
        if self.done:
            raise StoreError(f"{self.path} is done: nothing can be committed after its end")
        n = len(self.commits)
        written: list[str] = []

        def put(name: str, data: Data) -> None:
            self._put(name, data)
            written.append(name)

        segment, data = self._name(ROWS, n, "parquet"), rows.encode(new, *self.identity)
        try:
            put(segment, data)
            manifest = None
            if saved is not None:
                bundle = self._name(BUNDLES, n, "npz")
                manifest = self._checkpoints.write(bundle, saved, put)
            sha = hashlib.sha256(data).hexdigest()
            commit = Commit(
                n, self._token, segment, sha, len(new), manifest, dict(position), done
            )  # fmt: skip
            journal.append(self.store, self._entries, commit)
        except LockedError:
            for name in written:
                self.store.delete(name)
            raise
        self._entries += 1
        self.commits.append(commit)
        if manifest is not None:
            self._held.append(commit)
            self._thin()

    def show(self, pending: Sequence[rows.Row]) -> None:
        """Let others see rows that are not committed yet; none removes what was shown."""
        data = rows.encode(pending, *self.identity) if pending else b""
        with suppress(StoreError):  # No row depends on it.
            self.folder.write_pending(data)

    def _put(self, name: str, data: Data) -> None:
        """Write an object under a name that only this session uses."""
        if not self.store.put_if_absent(name, data) and self.store.get(name) != bytes(data):
            raise LockedError(
                f"{self.store.where(name)} has been written by another process, under the name of "
                f"session {self.session}: stop one of the two and run the same command again"
            )

    def _name(self, folder: str, n: int, kind: str) -> str:
        # The rows of a lifetime that nothing interrupts have plain names.
        number = f"-{self.session}" if self.session else ""
        return f"{folder}/{n:05d}{number}.{kind}"

    def _thin(self) -> None:
        """Delete the oldest checkpoints: what no kept commit needs."""
        needed: dict[str, int] = {}
        kept = 0
        for age, commit in enumerate(reversed(self._held)):
            with_it = needed | sizes_of(commit)
            if age > 1 and sum(with_it.values()) > KEEP_BYTES:
                break
            needed, kept = with_it, age + 1
        dropped = self._held[: len(self._held) - kept]
        self._held = self._held[len(dropped) :]
        for name in {name for commit in dropped for name in sizes_of(commit)} - needed.keys():
            self._checkpoints.forget(name)
            self.store.delete(name)

    def close(self) -> None:
        """Release the lock."""
        self.lock.release()

    def __enter__(self) -> LifetimeLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _session(name: str) -> int:
    """The number of the session that wrote an object."""
    file = name.rpartition("/")[2]
    if name.startswith((f"{ROWS}/", f"{BUNDLES}/")):
        found = re.fullmatch(r"\d+-(\d+)\.\w+", file)
        return int(found[1]) if found else 0
    found = re.match(r"\d+", file)
    return int(found[0]) if found else 0
