"""The files behind a lifetime's code: which local files a module imports, and their digests.

Imports are read from the text of the files, so that every process finds the same, no matter what else it
has loaded. Local is what is neither in the standard library nor in a folder of installed packages.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import perdure
from perdure.errors import SpecError
from perdure.store.code import PERDURE

HOME = Path(perdure.__file__).parent
IDLE = {"api", "cli", "measure", "show", "testing"}
"""What of Perdure no lifetime runs."""
NUMERIC = {"gymnasium", "metaworld", "minigrid", "mujoco", "numpy", "PIL", "robosuite", "scipy"}
NUMERIC |= {"sklearn", "stable_baselines3", "torch"}
"""Of what Perdure's own files import: where rows may come from."""
ALIASES = {"PIL": "pillow", "sklearn": "scikit-learn", "cv2": "opencv-python", "yaml": "PyYAML"}
"""Distributions that are not called like their module."""

_OURS = (f"{HOME}{os.sep}", f"{sysconfig.get_path('stdlib')}{os.sep}")
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;]*)|import[ \t]+([^\n#;]+))",
    re.M,
)
_ENTRY = re.compile(r"""["']([A-Za-z_][\w.]*):[A-Za-z_][\w.]*["']""")
"""``"module:Class"``, as Gymnasium is told of environments."""
_DYNAMIC = re.compile(r"\bimport_module\(|\b__import__\(")


@dataclass(frozen=True)
class SourceFile:
    """A local file as it was read."""

    digest: str
    text: str
    imports: tuple[str, ...]
    dynamic: bool
    """Whether it imports by names that its text does not tell."""


@dataclass
class Closure:
    """The local files that some modules need, and the distributions that these import."""

    files: dict[str, str] = field(default_factory=dict)
    """Names to digests."""
    own: dict[str, str] = field(default_factory=dict)
    """The same for Perdure's."""
    tops: set[str] = field(default_factory=set)
    """Top-level modules of installed packages."""
    checked: bool = False
    """Whether a loaded module must still be what its file says."""
    _seen: set[Path] = field(default_factory=set)

    def add_file(self, path: Path, name: str) -> None:
        """A file and what it imports."""
        todo = [(path.resolve(), name)]
        while todo:
            path, name = todo.pop()
            if path in self._seen:
                continue
            self._seen.add(path)
            source = _local_file(path, self.checked)
            if source is None:
                continue
            self.files[name] = source.digest
            for found in source.imports:
                todo += self._resolve(found, path, name)
            if source.dynamic:
                todo += _neighbours(path, name)

    def add_module(self, name: str) -> None:
        """A module by its name, and what it imports."""
        for path, called in self._resolve(name, None, ""):
            self.add_file(path, called)

    def _add_own(self, module: str) -> None:
        """A module of Perdure's."""
        todo = [module]
        while todo:
            module = todo.pop()
            file = _own_modules().get(module)
            if file is None or module in self.own:
                continue
            source = _own_file(file)
            self.own[module] = source.digest
            # A package's own names are of no interest: the modules behind them are asked for too.
            todo += (name for name in source.imports if name.startswith("perdure."))
            self.tops |= NUMERIC.intersection(name.partition(".")[0] for name in source.imports)

    def _resolve(self, module: str, importer: Path | None, name: str) -> list[tuple[Path, str]]:
        """The local files of a module and of the packages around it, with their names."""
        if module.startswith("."):
            assert importer is not None
            bare = module.lstrip(".")
            up = len(module) - len(bare)
            folder, prefix = importer, name
            for _ in range(up):
                folder, prefix = folder.parent, prefix.rpartition("/")[0]
            return _walk(folder, prefix, bare.split(".") if bare else [])
        top, _, rest = module.partition(".")
        if not top or top in sys.stdlib_module_names or top == "__main__":
            return []
        if top == "perdure":
            self._add_own(module)
            return []
        found = _top(top, importer)
        if found is None:
            return []
        if is_installed(found):
            self.tops.add(top)
            return []
        return _walk(found.parent, "", [top, *(rest.split(".") if rest else [])])


def versions(tops: set[str]) -> dict[str, str]:
    """The versions of the distributions that these modules belong to."""
    out = {}
    for top in sorted(tops):
        if found := _version(top):
            out[top] = found
    return out


@functools.cache
def _version(top: str) -> str:
    for name in (ALIASES.get(top, top), top):
        try:
            return importlib.metadata.version(name)
        except (importlib.metadata.PackageNotFoundError, ValueError):
            continue
    found = _top(top, None)
    for list_of in found.parent.glob("*.dist-info/top_level.txt") if found else ():
        if top in list_of.read_text(encoding="utf-8", errors="replace").split():
            return list_of.parent.name.removesuffix(".dist-info").rpartition("-")[2]
    return ""


@functools.cache
def installed_perdure() -> bool:
    """Whether Perdure is an installed package, which its version tells all of."""
    return is_installed(HOME)


def _imports(text: str) -> Iterator[str]:
    """The names of modules that a file's text may import."""
    text = text.replace("\\\n", " ")
    for found in _IMPORT.finditer(text):
        origin, names, plain = found.groups()
        if plain is not None:
            yield from (part.split()[0] for part in plain.split(",") if part.strip())
            continue
        yield origin
        for part in re.sub(r"#[^\n]*", "", names).strip("() \n").split(","):
            word = part.split()[:1]
            if word and word[0] != "*":
                yield f"{origin}{'' if origin.endswith('.') else '.'}{word[0]}"
    for found in _ENTRY.finditer(text):
        yield found[1]


def _walk(folder: Path, prefix: str, parts: list[str]) -> list[tuple[Path, str]]:
    """The files that importing a module below a folder executes, as far as they are there."""
    out, name = [], f"{prefix}/" if prefix else ""
    if prefix and (folder / "__init__.py").is_file():
        out.append((folder / "__init__.py", f"{name}__init__.py"))
    for part in parts:
        for file in (f"{part}.py", f"{part}.so"):
            if (folder / file).is_file():
                return [*out, (folder / file, f"{name}{file}")]
        if not (folder / part).is_dir():
            binary = next(folder.glob(f"{part}.*.so"), None)
            return [*out, *([(binary, f"{name}{part}.so")] if binary else [])]
        folder, name = folder / part, f"{name}{part}/"
        if (folder / "__init__.py").is_file():
            out.append((folder / "__init__.py", f"{name}__init__.py"))
    return out


def _neighbours(path: Path, name: str) -> list[tuple[Path, str]]:
    """Of a file that imports by names made up as it goes: all it may find beside and below it."""
    prefix = name.rpartition("/")[0]
    if not (path.parent / "__init__.py").is_file():
        return [(p, f"{prefix}/{p.name}".lstrip("/")) for p in sorted(path.parent.glob("*.py"))]
    below = sorted(path.parent.rglob("*.py"))
    return [(p, f"{prefix}/{p.relative_to(path.parent).as_posix()}") for p in below]


def _top(top: str, importer: Path | None) -> Path | None:
    """The file or folder of a top-level module, without importing it."""
    module = sys.modules.get(top)
    if module is not None:
        return _place(getattr(module, "__file__", None), getattr(module, "__path__", ()))
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is not None:
        return _place(spec.origin, spec.submodule_search_locations or ())
    for beside in (importer.parent / f"{top}.py", importer.parent / top) if importer else ():
        if beside.exists():
            return beside
    return None


def _place(file: str | None, folders: Any) -> Path | None:
    for folder in folders:
        return Path(folder)
    return Path(file) if file and Path(file).is_file() else None


@functools.cache
def is_installed(path: Path) -> bool:
    """Whether a file belongs to an installed package or to Python itself."""
    if path == path.parent or {"site-packages", "dist-packages"} & {*path.parts}:
        return True
    return any(path.is_relative_to(folder) for folder in _python())


@functools.cache
def _python() -> tuple[Path, ...]:
    return tuple({Path(sysconfig.get_path(k)).resolve() for k in ("stdlib", "platstdlib")})


@functools.cache
def _own_modules() -> dict[str, str]:
    """Perdure's modules that a lifetime may run, and their files."""
    found = {}
    for root, folders, files in os.walk(HOME):
        parts = Path(root).relative_to(HOME).parts
        folders[:] = [f for f in folders if f not in IDLE and f != "__pycache__"]
        for file in files:
            name, kind = os.path.splitext(file)
            if kind == ".py" and (parts or name not in (*IDLE, "__init__", "__main__")):
                inner = () if name == "__init__" else (name,)
                found[".".join(("perdure", *parts, *inner))] = os.path.join(root, file)
    return found


@functools.cache
def _own_file(path: str) -> SourceFile:
    """One of Perdure's files. A process has loaded it, or soon will: it is looked at once."""
    return _read(path)


def _read(path: str | Path) -> SourceFile:
    with open(path, "rb") as file:
        data = file.read()
    text = data.decode(errors="replace") if str(path).endswith(".py") else ""
    imports = tuple(dict.fromkeys(_imports(text)))
    return SourceFile(hashlib.sha256(data).hexdigest(), text, imports, bool(_DYNAMIC.search(text)))


_loaded: dict[Path, tuple[Any, SourceFile]] = {}
"""Files of loaded modules as they were when first looked at, with the module's specification, which
a reload replaces."""


def _local_file(path: Path, checked: bool) -> SourceFile | None:
    """A local file: as it was loaded, if it is, since that is what runs."""
    module = _modules().get(str(path))
    spec = getattr(module, "__spec__", None)
    try:
        now = _read(path)
    except OSError:
        return None  # Importing it gives the error.
    if module is None or spec is None:
        return now
    known = _loaded.get(path)
    if known is None or known[0] is not spec:
        if not _is_as_written(module, now.text):
            raise _changed(path)
        _loaded[path] = known = (spec, now)
    if checked and known[1].digest != now.digest:
        raise _changed(path)
    return known[1]


def _changed(path: Path) -> SpecError:
    return SpecError(
        f"{path} has changed since this process imported it, which would run the old code: restart "
        "Python (the notebook's kernel), or importlib.reload the module and those that import from it"
    )


def _modules() -> Mapping[str, ModuleType]:
    """Loaded modules by their files, but for what is Perdure's, Python's or installed."""
    found: dict[str, ModuleType] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or name == "__main__" or file.startswith(_OURS):
            continue
        if "-packages" not in file:
            found[os.path.realpath(file)] = module
    return found


def _is_as_written(module: ModuleType, text: str) -> bool:
    """Whether the functions of a loaded module are those in its file's text, as far as that can be
    told: some loaders, such as pytest's, change what they load."""
    loader = getattr(module.__spec__, "loader", None)
    if type(loader) is not importlib.machinery.SourceFileLoader:
        return True
    file = str(module.__file__)
    try:
        written = {*_codes(compile(text, file, "exec", dont_inherit=True))}
    except (SyntaxError, ValueError):
        return False
    # A reload leaves behind what the file no longer has.
    names = {code.co_qualname for code in written}
    own = (c for c in _functions(module) if c.co_filename == file and c.co_qualname in names)
    return all(code in written for code in own)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _codes(const)


def _functions(owner: Any) -> Iterator[CodeType]:
    """The code of a module's or class's functions."""
    for value in list(vars(owner).values()):
        value = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(value, FunctionType):
            yield value.__code__
        elif isinstance(value, type) and value.__module__ == getattr(owner, "__name__", ""):
            yield from _functions(value)


def perdure_digest(files: Mapping[str, str]) -> dict[str, str]:
    """Perdure's own files under one digest; nothing where its version tells all."""
    if installed_perdure() or not files:
        return {}
    text = "\n".join(f"{name} {digest}" for name, digest in sorted(files.items()))
    return {PERDURE: hashlib.sha256(text.encode()).hexdigest()}
