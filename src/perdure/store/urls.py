"""Places that are URLs of object stores: ``s3://BUCKET/runs/x``, ``gs://…``, ``az://CONTAINER/…``."""

from __future__ import annotations

from pathlib import Path, PosixPath
from typing import NoReturn

from perdure.errors import StoreError

SCHEMES = ("s3", "gs", "az")


class UrlPath(PosixPath):
    """A place in an object store: joined, split and named like any path, but no file of this machine.
    Whatever would open it as one is refused."""

    def __str__(self) -> str:
        first, *rest = self.parts or (".",)
        if first.rstrip(":") in SCHEMES and first.endswith(":"):
            return f"{first}//{'/'.join(rest)}"
        return "/".join(self.parts) or "."

    def __fspath__(self) -> NoReturn:
        raise StoreError(
            f"{self} is in an object store, and a folder on disk is expected here: copy it first, or "
            "name a folder"
        )

    def absolute(self) -> UrlPath:
        return self

    def resolve(self, strict: bool = False) -> UrlPath:
        return self

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Every prefix of names can be listed."""
        return True

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return True

    def is_symlink(self) -> bool:
        return False


def is_url(text: object) -> bool:
    """Whether this names a place in an object store."""
    if isinstance(text, UrlPath):
        return True
    return isinstance(text, str) and text.partition("://")[0] in SCHEMES and "://" in text


def place(text: str | Path) -> Path:
    """The path that a text names: a folder on disk, or a place in an object store."""
    if isinstance(text, UrlPath) or not is_url(text):
        return text if isinstance(text, Path) else Path(text)
    found = UrlPath(text)
    scheme = str(text).partition(":")[0]
    if len(found.parts) < 2 or {".", ".."} & set(found.parts):
        raise StoreError(
            f"{str(text)!r} names no place in an object store: expected {scheme}://BUCKET/FOLDER"
        )
    return found


def output_beside(path: Path, name: str) -> Path:
    """Where something that is made of a run goes: into its folder; here, if that is in an object
    store, since it is to be looked at."""
    return Path(f"{path.name}{name}") if is_url(path) else path / name
