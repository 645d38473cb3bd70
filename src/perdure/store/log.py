"""A lifetime on disk: row segments, checkpoints, and the journal whose lines are the commits.

::

    <agent>/<seed>/rows/00000.parquet     immutable, in order
                   _ckpt/00000.npz        the agent and the loop at that segment's end
                   _meta/journal.jsonl    "crc32 json": the line IS the commit
                   _meta/lock             who writes

Opening repairs: a torn or damaged journal line and everything after it is dropped, segments and
checkpoints are checked against their digests, and files that no line names are deleted. What was
dropped is computed again from the last good commit, to the same rows.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from perdure.arrays import Array
from perdure.errors import Corrupt, StoreError
from perdure.store import files, rows, state
from perdure.store.lock import Lock

KEEP_BYTES = 64 << 20
"""Older checkpoints are kept while all together stay under this; the last two always."""


@dataclass(frozen=True)
class Commit:
    """One line of the journal."""

    n: int
    rows: str
    rows_sha: str
    count: int
    state: str | None
    state_sha: str
    position: Mapping[str, Any]
    done: bool = False

    def line(self) -> bytes:
        """The journal line, with its check sum."""
        text = json.dumps(self.__dict__, sort_keys=True).encode()
        return b"%08x %s\n" % (zlib.crc32(text), text)

    @classmethod
    def parse(cls, line: bytes) -> Commit | None:
        """The commit in a whole line, None if the line is damaged."""
        text = line[9:-1]
        if line != b"%08x %s\n" % (zlib.crc32(text), text):
            return None
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None


@dataclass
class Lifetime:
    """The readable side of a lifetime's folder."""

    path: Path
    commits: list[Commit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was found damaged."""
    damaged: set[str] = field(default_factory=set)
    """Checkpoints among it."""

    @classmethod
    def read(cls, path: Path, verify: bool = False) -> Lifetime:
        """Read the journal; with ``verify``, check every file it names."""
        life = cls(path)
        life._read_journal()
        if verify:
            life._verify_rows()
            life._verify_checkpoints()
        return life

    @property
    def done(self) -> bool:
        """Whether the lifetime has ended."""
        return bool(self.commits) and self.commits[-1].done

    @property
    def segments(self) -> list[Path]:
        """The committed row files, in order."""
        return [self.path / c.rows for c in self.commits]

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The committed rows, a table for each segment; Corrupt if one is not as committed."""
        for c in self.commits:
            yield rows.decode(_checked(self.path / c.rows, c.rows_sha), columns)

    def table(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all committed rows, of the measures those that have any value."""
        tables = list(self.tables(columns))
        if not tables:
            raise StoreError(f"{self.path} has no committed rows yet")
        return pa.concat_tables(tables, promote_options="default")

    @property
    def journal(self) -> Path:
        """The journal's path."""
        return self.path / "_meta" / "journal.jsonl"

    def _read_journal(self) -> None:
        data = self.journal.read_bytes() if self.journal.exists() else b""
        self._size = len(data)
        self._ends: list[int] = []
        at = 0
        for number, line in enumerate(data.splitlines(keepends=True)):
            commit = Commit.parse(line)
            if commit is None or commit.n != number:
                torn = at + len(line) == len(data)
                what = "torn last line" if torn else f"line {number + 1} damaged"
                self.notes.append(f"{self.journal}: {what}; {_back_to(number - 1)}")
                break
            at += len(line)
            self.commits.append(commit)
            self._ends.append(at)

    def _verify_rows(self) -> None:
        for i, c in enumerate(self.commits):
            try:
                _checked(self.path / c.rows, c.rows_sha)
            except Corrupt as e:
                self.notes.append(f"{e}; {_back_to(i - 1)}")
                del self.commits[i:]
                return

    def _verify_checkpoints(self) -> None:
        # Those that are there: old ones are deleted by us, and finished ones by whoever needs room.
        for c in self.commits:
            if c.state is not None and (self.path / c.state).exists():
                try:
                    _checked(self.path / c.state, c.state_sha)
                except Corrupt as e:
                    self.notes.append(str(e))
                    self.damaged.add(c.state)

    def load_state(self, commit: Commit) -> dict[str, Array]:
        """The checkpoint of a commit, checked."""
        if commit.state is None:
            raise StoreError(f"commit {commit.n} of {self.path} has no checkpoint")
        path = self.path / commit.state
        return state.decode(_checked(path, commit.state_sha), str(path))


class LifetimeLog:
    """The writing side: the only writer of one lifetime, while it holds the lock."""

    def __init__(self, path: Path, agent: str, lifetime: int, expert: str = "") -> None:
        self.path = path
        self.identity = (agent, lifetime, expert)
        for folder in (path, path / "rows", path / "_ckpt", path / "_meta"):
            if not folder.is_dir():
                files.make_folder(folder)
        self.lock = Lock(path / "_meta" / "lock")
        self.lock.acquire()
        try:
            self._open()
        except BaseException:
            self.lock.release()
            raise

    def _open(self) -> None:
        life = Lifetime.read(self.path, verify=True)
        self.notes = life.notes
        self.commits = life.commits
        self.resumed: dict[str, Array] | None = None
        while self.commits:
            last = self.commits[-1]
            if last.done and (last.state is None or not (self.path / last.state).exists()):
                break
            if last.state is None:
                self.notes.append(f"{self.path}: the agent cannot be saved; starting again")
                self.commits.clear()
                break
            try:
                self.resumed = life.load_state(last)
                break
            except Corrupt as e:
                self.notes = [n for n in self.notes if n != str(e)]
                self.notes.append(f"{e}; {_back_to(last.n - 1)}")
                self.commits.pop()
        keep = life._ends[len(self.commits) - 1] if self.commits else 0
        if keep < life._size:
            files.truncate(life.journal, keep)
        # A damaged checkpoint of an older commit is of no use; the later ones are good.
        named = {c.rows for c in self.commits} | {c.state for c in self.commits} - life.damaged
        for folder in ("rows", "_ckpt"):
            for file in (self.path / folder).iterdir():
                if f"{folder}/{file.name}" not in named:
                    file.unlink()

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
        out: list[rows.Row] = []
        for c in self.commits:
            out += rows.to_rows(rows.decode((self.path / c.rows).read_bytes()))
        return out

    def commit(
        self,
        new: Sequence[rows.Row],
        saved: Mapping[str, Array] | None,
        position: Mapping[str, Any],
        done: bool = False,
    ) -> None:
        """Write a segment and a checkpoint, then the journal line that makes them count."""
        n = len(self.commits)
        segment, segment_sha = f"rows/{n:05d}.parquet", ""
        data = rows.encode(new, *self.identity)
        segment_sha = _sha(data)
        files.write_file(self.path / segment, data)
        checkpoint, checkpoint_sha = None, ""
        if saved is not None:
            data = state.encode(saved)
            checkpoint, checkpoint_sha = f"_ckpt/{n:05d}.npz", _sha(data)
            files.write_file(self.path / checkpoint, data)
        commit = Commit(
            n, segment, segment_sha, len(new), checkpoint, checkpoint_sha, position, done
        )
        files.append_line(self.path / "_meta" / "journal.jsonl", commit.line())
        self.commits.append(commit)
        self._thin()

    def _thin(self) -> None:
        total = 0
        for age, c in enumerate(reversed(self.commits)):
            path = self.path / (c.state or "-")
            if c.state is None or not path.exists():
                if age > 1:
                    return
                continue
            total += path.stat().st_size
            if age > 1 and total > KEEP_BYTES:
                path.unlink()

    def close(self) -> None:
        """Release the lock."""
        self.lock.release()

    def __enter__(self) -> LifetimeLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _back_to(commit: int) -> str:
    return f"going back to commit {commit}" if commit >= 0 else "starting again from the beginning"


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _checked(path: Path, sha: str) -> bytes:
    """A file's bytes, if they are those that were committed."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise Corrupt(f"{path} is missing") from None
    if _sha(data) != sha:
        raise Corrupt(f"{path} is damaged: its bytes are not those that were committed")
    return data
