"""Files of one's own as modules: each may import the files beside it, as a script may. What is in them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from perdure.errors import SpecError

_BASES = {
    "perdure.agents.strategies.base.Strategy": "strategy",
    "perdure.suite.Suite": "suite",
    "perdure.agent.Agent": "agent",
    "torch.nn.modules.module.Module": "network",
}
_loaded: dict[Path, ModuleType] = {}
_beside: dict[str, Path] = {}
"""What the names stand for that files import from beside them: one process has one module of a name."""


def module_of(file: str) -> ModuleType:
    """The module in a file, executed once a process. Raises what the file raises.

    Its folder becomes the first place where modules are looked for, and it has the name by which the
    files beside it would import it, unless that is taken.
    """
    path = Path(file).resolve()
    if path not in _loaded:
        _loaded[path] = _execute(file, path)
    return _loaded[path]


def kind_of(thing: object) -> str:
    """Whether an object or class is a ``strategy``, ``suite``, ``agent`` or ``network``; empty if it is
    none of these. Bases are known by their names: torch is not loaded to find out."""
    kind = thing if isinstance(thing, type) else type(thing)
    names = (f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__)
    return next((_BASES[name] for name in names if name in _BASES), "")


def _execute(file: str, path: Path) -> ModuleType:
    folder = str(path.parent)
    if folder in sys.path:
        sys.path.remove(folder)
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    _refuse_mistaken(file, path)
    known = _imports(path.stem, path)
    if known and path.stem in sys.modules:
        return sys.modules[path.stem]
    name = path.stem if known else f"perdure_file_{path.stem}_{zlib.crc32(str(path).encode()):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _imports(name: str, path: Path) -> bool:
    """Whether ``import name`` gives the module at this path."""
    try:
        found = importlib.util.find_spec(name) if name.isidentifier() else None
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None and Path(found.origin).resolve() == path


def _refuse_mistaken(file: str, path: Path) -> None:
    """SpecError if a file imports a neighbour whose name stands for another module in this process:
    one beside another file, or an installed one that is loaded."""
    for name, line in _imported(ast.parse(path.read_bytes())):
        near = (path.parent / f"{name}.py", path.parent / name / "__init__.py")
        mine = next((p.resolve() for p in near if p.is_file()), None)
        if mine is None:
            continue
        other = str(_beside.setdefault(name, mine))
        if not _imports(name, mine):
            other = getattr(sys.modules.get(name), "__file__", None) or "built in"
        elif not Path(other).is_file():
            _beside[name] = mine  # The other is gone, and was never imported.
            continue
        if other != str(mine):
            raise SpecError(
                f"{file}, line {line}: it imports {name}, which is {mine} beside it, but "
                f"{other} in this process: give one of the two another name"
            )


def _imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Top-level names of the modules that a file imports anywhere, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((a.name.partition(".")[0], node.lineno) for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], node.lineno
