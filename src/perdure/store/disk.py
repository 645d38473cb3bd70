"""Objects as the files of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from perdure.errors import MissingObject, StoreError
from perdure.store import files
from perdure.store.files import Data
from perdure.store.objects import checked


class DiskStore:
    """The objects below a folder. Nothing is made before the first is put."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, data: Data, durable: bool = True) -> None:
        """Write an object: a temporary, fsync, rename."""
        files.write_file(self._place(name), data, durable)

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Write an object unless there is one: a temporary, fsync, link."""
        return files.create_file(self._place(name), data)

    def get(self, name: str) -> bytes:
        """An object's bytes; MissingObject if there is none."""
        path = self._path(name)
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise MissingObject(f"{path} is missing") from None
        except OSError as e:
            raise StoreError(f"{path} cannot be read: {e}") from e

    def list(self, folder: str = "") -> tuple[str, ...]:
        """The names of the objects in a folder, in order."""
        return self._names(folder, False)

    def folders(self, folder: str = "") -> tuple[str, ...]:
        """The names of the folders in a folder, in order."""
        return self._names(folder, True)

    def _names(self, folder: str, folders: bool, temporary: bool = False) -> tuple[str, ...]:
        path = self._path(folder) if folder else self.root
        prefix = f"{folder}/" if folder else ""
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
        return str(self._path(name) if name else self.root)

    def _path(self, name: str) -> Path:
        return self.root / checked(name)

    def _place(self, name: str) -> Path:
        """Where an object goes, its folder made."""
        path = self._path(name)
        if not path.parent.is_dir():
            files.make_folder(path.parent)
        return path
