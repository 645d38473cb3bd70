"""Objects as the files of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from perdure.errors import StoreError
from perdure.store import files
from perdure.store.files import Data
from perdure.store.objects import checked


class DiskStore:
    """The objects below a folder. Nothing is made before the first is put, and no link is followed
    that is below ``base``."""

    def __init__(self, root: Path, base: Path | None = None) -> None:
        self.root, self.base = root, base or root

    def put(self, name: str, data: Data, durable: bool = True) -> None:
        """Write an object: a temporary, fsync, rename."""
        files.write_file(self._place(name), data, durable)

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Write an object unless there is one: a temporary, fsync, link."""
        return files.create_file(self._place(name), data)

    def get(self, name: str, most: int | None = None) -> bytes:
        """An object's bytes; MissingObject if there is none, StoreError if they are too many."""
        return files.read_file(self._path(name), most)

    def list(self, folder: str = "") -> tuple[str, ...]:
        """The names of the objects in a folder, in order."""
        return self._names(folder, False)

    def sizes(self, folder: str = "") -> dict[str, int]:
        """The names of the objects in a folder, in order, and their bytes."""
        found: dict[str, int] = {}
        for name in self.list(folder):
            try:
                found[name] = os.lstat(self._path(name)).st_size
            except FileNotFoundError:
                continue  # Deleted meanwhile.
            except OSError as e:
                raise StoreError(f"{self.where(name)} cannot be looked at: {e}") from e
        return found

    def folders(self, folder: str = "") -> tuple[str, ...]:
        """The names of the folders in a folder, in order."""
        return self._names(folder, True)

    def _names(self, folder: str, folders: bool, temporary: bool = False) -> tuple[str, ...]:
        path = self.root / checked(folder) if folder else self.root
        prefix = f"{folder}/" if folder else ""
        files.refuse_links(self.base, path)
        try:
            with os.scandir(path) as entries:
                found = [
                    f"{prefix}{e.name}"
                    for e in entries
                    if e.is_dir() == folders and files.is_temporary(e.name) == temporary
                ]
                return tuple(sorted(found))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as e:
            raise StoreError(f"{path} cannot be read: {e}") from e

    def delete(self, name: str) -> None:
        """Remove an object if it is there."""
        path = self._path(name)
        try:
            path.unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as e:
            raise StoreError(f"cannot delete {path}: {e}") from e

    def unfinished(self, folder: str) -> tuple[str, ...]:
        """The temporaries of writes that are under way or were killed."""
        return self._names(folder, False, temporary=True)

    def where(self, name: str = "") -> str:
        """The path, for messages."""
        return str(self.root / checked(name) if name else self.root)

    def _path(self, name: str) -> Path:
        path = self.root / checked(name)
        files.refuse_links(self.base, path.parent)
        return path

    def _place(self, name: str) -> Path:
        """Where an object goes, its folder made."""
        path = self._path(name)
        if not path.parent.is_dir():
            files.make_folder(path.parent)
        return path
