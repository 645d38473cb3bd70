"""Whole files that appear at once: complete and durable when a call returns, or not there."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.errors import MissingObject, NoSpaceError, StoreError
from perdure.store.urls import place

Data = bytes | memoryview
MOST_INPUT = 16 << 20
"""Bytes of a specification or a file of settings."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What a file system says that has no hard links (or no more of them)."""


def write_file(path: Path, data: Data, durable: bool = True) -> None:
    """Write a whole file, in place of any other: a temporary beside it, fsync, rename, fsync of the
    folder."""
    try:
        with _temporary(path, data, durable) as temporary:
            os.replace(temporary, path)
        if durable:
            sync_folder(path.parent)
    except _Swept:
        write_file(path, data, durable)
    except OSError as e:
        raise typed(e, path) from e


def read_input(path: Path) -> str:
    """The text of a file that a user named, as UTF-8. StoreError if it cannot be read, or is longer
    than any such file: a device may have no end."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_INPUT + 1)
        if len(data) > MOST_INPUT:
            raise StoreError(f"{path} has more than {MOST_INPUT >> 20} MB")
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise StoreError(f"{path} is not UTF-8: {e}") from e
    except OSError as e:
        raise StoreError(f"{path} cannot be read: {e}") from e


def write_output(path: Path, data: Data) -> None:
    """Write what a user named: a whole file; but a device or pipe (``/dev/null``, ``/dev/stdout``) is
    written to, since a rename would put a file in its place."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        mode = 0
    if not mode or stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        write_file(path, data, durable=False)
        return
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as e:
        raise typed(e, path) from e


def create_file(path: Path, data: Data) -> bool:
    """Write a whole file unless there is one; whether this call did. Of several processes that try
    at once, one does.

    A temporary is linked to the name, which fails if the name is taken. Where there are no links,
    the file is created under its name: then a kill may leave half of it, which checksums find.
    """
    try:
        with _temporary(path, data, True) as temporary:
            created = _link(temporary, path)
        if created is None:
            created = _create(path, data)
        if created:
            sync_folder(path.parent)
        return created
    except _Swept:
        return create_file(path, data)
    except OSError as e:
        raise typed(e, path) from e


def _link(temporary: Path, path: Path) -> bool | None:
    """Whether the name is now the temporary's; None where the file system has no links."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        # A network file system may have done it and lost the answer: then there are two names.
        return os.stat(temporary).st_nlink == 2
    except OSError as e:
        if e.errno in _NO_LINKS:
            return None
        raise
    return True


def _create(path: Path, data: Data) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    try:
        _write_all(fd, data)
        os.fsync(fd)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    return True


class _Swept(Exception):
    """Somebody took a temporary for that of a dead process."""


@contextmanager
def _temporary(path: Path, data: Data, durable: bool) -> Iterator[Path]:
    """The data in a file of its own beside ``path``, of a name that nobody else uses."""
    temporary = path.with_name(f"_{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            _write_all(fd, data)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        try:
            yield temporary
        except FileNotFoundError:
            if path.parent.is_dir() and not temporary.exists():
                raise _Swept from None
            raise
    finally:
        try:
            os.unlink(temporary)
        except OSError:
            pass  # Renamed, swept, or left for the next who opens the folder.


def read_file(path: Path, most: int | None = None) -> bytes:
    """A whole file of at most so many bytes. One that is a link is not followed, and one that is no file (a pipe, a device,
    a folder) not waited for: a StoreError says what it is."""
    try:
        with open(path, "rb", buffering=0, opener=_open_itself) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise StoreError(f"{path} is not a regular file")
            if most is not None and found.st_size > most:
                raise StoreError(f"{path} has {found.st_size:,} bytes, more than {most:,}")
            return file.readall()
    except (FileNotFoundError, NotADirectoryError):
        raise MissingObject(f"{path} is missing") from None
    except OSError as e:
        if e.errno == errno.ELOOP:
            raise linked(path) from None
        raise StoreError(f"{path} cannot be read: {e}") from e


def _open_itself(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def refuse_links(base: Path, path: Path) -> None:
    """StoreError if any folder from below ``base`` to ``path`` is a link: what is in it is not part
    of the run, and would be read, or deleted, elsewhere."""
    # As text: this is asked for every object that is read.
    here = str(base)
    for part in path.relative_to(base).parts:
        here = f"{here}/{part}"
        if os.path.islink(here):
            raise linked(Path(here))


def linked(path: Path) -> StoreError:
    """What is said of a link."""
    return StoreError(
        f"{path} is a symbolic link, and a run's folder holds none: it is not followed; put there "
        "what it points to, or remove it"
    )


def is_temporary(name: str) -> bool:
    """Whether a file's name is that of a write under way, or of one that was killed."""
    return name.startswith("_") and name.endswith(".tmp")


def make_folder(path: Path) -> None:
    """Create a folder and its parents, durably."""
    try:
        missing = [p for p in (path, *path.parents) if not p.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for made in missing or (path,):
            sync_folder(made.parent)
    except OSError as e:
        raise typed(e, path) from e


def sync_folder(path: Path) -> None:
    """Make renames and creations in a folder durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_all(fd: int, data: Data) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def typed(error: OSError, path: Path) -> StoreError:
    """What went wrong with a file, as one of our own errors."""
    if error.errno in _FULL:
        return NoSpaceError(
            f"no space left to write {path}: nothing was half-committed; free some space and run "
            "the same command again to resume"
        )
    return StoreError(f"cannot write {path}: {error}")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to fill that becomes ``out`` at the end; if anything fails, nothing is left."""
    if out.is_symlink() or (out.exists() and not (out.is_dir() and not any(out.iterdir()))):
        raise StoreError(f"{out} exists, and nothing is overwritten: remove it or name another")
    temporary = out.with_name(f"_{out.name}.{os.getpid()}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        try:
            yield temporary
            temporary.rename(out)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except OSError as e:
        raise typed(e, out) from e


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder; not where the text could be no path at all."""
    try:
        return place(path).is_dir()
    except (OSError, ValueError):
        return False
