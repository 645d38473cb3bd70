"""The journal of a lifetime: one object an entry, numbered without gaps, each created if absent.

An entry is a session's claim to be the writer, or a commit of the session that claimed last. Since
an entry is created only where there is none, of two writers one gets a number and the other learns
that it has been overtaken. Entries are never changed or removed: a session that goes back to an
earlier commit says so in its claim, which makes the commits after that one void.

``docs/design/log.md`` has the argument why that is safe.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, fields
from typing import Any

from perdure.errors import LockedError, MissingObject
from perdure.store import checkpoints
from perdure.store.objects import ObjectStore
from perdure.store.sealed import is_sealed, parse, seal

FOLDER, ROWS = "_journal", "rows"
_NAME = re.compile(rf"{FOLDER}/(\d{{5,}})\.json")
_SEGMENT = re.compile(rf"{ROWS}/\d{{5,}}(-\d+)?\.parquet")


@dataclass(frozen=True)
class Session:
    """A claim to be the only writer from here on."""

    number: int
    """Greater than that of every session before; part of the names of what the session writes."""
    token: str
    """Tells it from another claim that says the same."""
    keeps: int
    """How many commits it goes on from. Later ones, if there are any, are void."""
    host: str
    pid: int

    @classmethod
    def here(cls, number: int, keeps: int) -> Session:
        """A session of this process."""
        return cls(number, secrets.token_hex(8), keeps, socket.gethostname(), os.getpid())


@dataclass(frozen=True)
class Commit:
    """Rows that count, and where the lifetime stands after them."""

    n: int
    token: str
    """That of the session which made it."""
    rows: str
    """The name of the segment."""
    rows_sha: str
    count: int
    checkpoint: Mapping[str, Any] | None
    """The manifest of the checkpoint (:mod:`perdure.store.checkpoints`)."""
    position: Mapping[str, Any]
    done: bool = False


Entry = Session | Commit
_KINDS: dict[str, type[Session] | type[Commit]] = {"session": Session, "commit": Commit}


def encode(entry: Entry) -> bytes:
    """An entry as JSON: first the checksum of all that follows it, then a line for each field."""
    kind = "session" if isinstance(entry, Session) else "commit"
    lines = [f'"kind": "{kind}"']
    for f in fields(entry):
        lines.append(f'"{f.name}": {json.dumps(getattr(entry, f.name), sort_keys=True)}')
    body = ",\n".join(lines).encode() + b"\n}\n"
    return seal(body)


def decode(data: bytes) -> Entry | None:
    """The entry in an object, None if a single bit of it is not as it was written, or if it names
    what no session writes."""
    if not is_sealed(data):
        return None
    try:
        values = parse(data)
        del values["sha256"]
        made = _KINDS[values.pop("kind")]
        if values.keys() != {f.name for f in fields(made)}:
            return None
        entry = made(**values)
        return entry if _sound(entry) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _sound(entry: Entry) -> bool:
    """Whether an entry is of the kinds of values that a session writes, its objects under the names
    that it gives them. A folder may come from anybody."""
    if isinstance(entry, Session):
        counts, texts = [entry.number, entry.keeps, entry.pid], [entry.token, entry.host]
    else:
        counts, texts = [entry.n, entry.count], [entry.token, entry.rows, entry.rows_sha]
        if not _SEGMENT.fullmatch(str(entry.rows)) or not isinstance(entry.position, Mapping):
            return False
        if type(entry.done) is not bool or not checkpoints.sound(entry.checkpoint):
            return False
    return all(type(n) is int and n >= 0 for n in counts) and all(type(t) is str for t in texts)


@dataclass
class Journal:
    """What the entries say together."""

    commits: list[Commit] = field(default_factory=list)
    """Those that count."""
    sessions: list[Session] = field(default_factory=list)
    length: int = 0
    """The number of the next entry."""
    notes: list[str] = field(default_factory=list)
    """What is damaged and not yet repaired, a sentence each."""

    @property
    def done(self) -> bool:
        """Whether the lifetime has ended."""
        return bool(self.commits) and self.commits[-1].done


def read(store: ObjectStore, known: MutableMapping[str, Entry] | None = None) -> Journal:
    """Read every entry in order. ``known`` remembers entries by their names from one reading to the
    next: they never change."""
    known = {} if known is None else known
    names = {int(m[1]): m[0] for m in map(_NAME.fullmatch, store.list(FOLDER)) if m}
    journal = Journal(length=max(names, default=-1) + 1)
    whole = True
    for number in range(journal.length):
        name = names.get(number)
        entry = _entry(store, name, known) if name is not None else None
        if isinstance(entry, Session):
            journal.sessions.append(entry)
            if entry.keeps <= len(journal.commits):
                # It knew of whatever is wrong before it, and has gone back.
                del journal.commits[entry.keeps :]
                journal.notes.clear()
                whole = True
            continue
        if not whole:
            continue
        if entry is not None and _follows(entry, journal):
            journal.commits.append(entry)
            continue
        whole = False
        where = store.where(name or _name(number))
        if name is None:
            what = "is missing"
        elif number == journal.length - 1:
            what = "is torn or damaged"
        else:
            what = "is damaged" if entry is None else "is not what follows the entry before it"
        journal.notes.append(f"{where} {what}; {back_to(len(journal.commits) - 1)}")
    return journal


def _follows(entry: Commit, journal: Journal) -> bool:
    last = journal.sessions[-1] if journal.sessions else None
    return last is not None and entry.token == last.token and entry.n == len(journal.commits)


def _entry(store: ObjectStore, name: str, known: MutableMapping[str, Entry]) -> Entry | None:
    entry = known.get(name)
    if entry is None:
        try:
            entry = decode(store.get(name))
        except MissingObject:
            return None
        if entry is not None:
            known[name] = entry
    return entry


def append(store: ObjectStore, number: int, entry: Entry) -> None:
    """Create entry ``number``. LockedError if another writer has it: then this one is not the writer
    any more, and nothing that it has not committed counts."""
    name, data = _name(number), encode(entry)
    if store.put_if_absent(name, data):
        return
    found = store.get(name)
    if found == data:
        return  # Ours: an answer was lost, and the store was asked again.
    other = decode(found)
    who = "another process"
    if isinstance(other, Session):
        who = f"process {other.pid} on {other.host} (session {other.number})"
    mine = f"commit {entry.n}" if isinstance(entry, Commit) else "its own session"
    raise LockedError(
        f"{store.where()} has been taken over by {who}, before this process could write {mine}: "
        f"{store.where(name)} is there already. Nothing that this process has not committed counts; "
        "let the other go on, or stop it and run the same command again"
    )


def remove_after(store: ObjectStore, commits: int) -> None:
    """Remove all entries after so many commits: a lifetime as if it had been killed there. For tests;
    a log in use never loses entries."""
    known: dict[str, Entry] = {}
    kept = read(store, known).commits[:commits]
    last = next((name for name, e in known.items() if kept and e is kept[-1]), "")
    for name in store.list(FOLDER):
        if name > last:
            store.delete(name)


def back_to(commit: int) -> str:
    """Where a damaged lifetime goes on, in words."""
    return f"going back to commit {commit}" if commit >= 0 else "starting again from the beginning"


def _name(number: int) -> str:
    return f"{FOLDER}/{number:05d}.json"
