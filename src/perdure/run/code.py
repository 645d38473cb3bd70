"""What a lifetime executes from outside installed packages, as digests: rows of different code are
not mixed in silence.

Of modules it is their files and what those import (:mod:`perdure.run.sources`). Of what has no file of
its own (a notebook's cells, a script that runs as ``__main__``, which changes for reasons of its own)
it is the classes and functions themselves, and what they use: their bytecode, without comments and line
numbers, and the plain values that they refer to.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import inspect
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

import perdure
from perdure.run.sources import (
    HOME,
    Closure,
    installed_perdure,
    is_installed,
    perdure_digest,
    versions,
)

LOOP = "perdure.run.lifetime"
"""What runs every lifetime, of any agent."""
DEEPEST = 6
"""How far values within values are followed."""
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_UNWRITTEN = {"__dict__", "__weakref__", "__module__", "__qualname__", "__abstractmethods__"}
_UNWRITTEN |= {"_abc_impl", "__static_attributes__", "__firstlineno__", "__doc__"}
"""Attributes of a class that Python adds, or that do nothing."""


def code_record(
    agent: Iterable[Any], task_sources: Iterable[Any], *, checked: bool = False
) -> dict[str, dict[str, str]]:
    """The record (:mod:`perdure.store.code`) of what these roots execute: modules by name, files as
    :class:`~pathlib.Path`, classes, functions and other callables; and data that they learn
    from, names with digests.

    A module that is loaded counts as it was loaded; ``checked``, it is an error if its file has
    changed since.
    """
    loop = Closure()
    loop.add_module(LOOP)
    parts, tops = (
        {},
        {"gymnasium", "numpy"},
    )  # Other packages that the loop imports do not matter to rows.
    for part, roots in (("agent", agent), ("world", task_sources)):
        found = _Found(Closure(checked=checked))
        for root in roots:
            found.add(root)
        own = {**found.closure.own, **(loop.own if part == "world" else {})}
        parts[part] = {**found.closure.files, **found.objects, **perdure_digest(own)}
        tops |= found.closure.tops
    known = {"python": platform.python_version(), **versions(tops)}
    if installed_perdure():
        known["perdure"] = perdure.__version__
    return {**parts, "versions": known}


class _Found:
    """Files and objects reached so far."""

    def __init__(self, closure: Closure) -> None:
        self.closure = closure
        self.objects: dict[str, str] = {}
        self._seen: dict[int, Any] = {}
        self._done: dict[int, Any] = {}

    def add(self, root: Any) -> None:
        """A root, by its kind."""
        if isinstance(root, Path):
            self.closure.add_file(root, root.as_posix())
        elif isinstance(root, str):
            self.closure.add_module(root)
        elif isinstance(root, Mapping):
            self.objects |= root
        else:
            self._value(root, 0)

    def _value(self, value: Any, depth: int) -> str:
        """A value in words that change when it does; what it is made by is added."""
        if isinstance(value, PLAIN):
            return repr(value)
        if depth > DEEPEST:
            return f"<{type(value).__qualname__}>"
        if isinstance(value, (tuple, list)):
            return f"{type(value).__name__}[{', '.join(self._value(v, depth + 1) for v in value)}]"
        if isinstance(value, (set, frozenset)):
            return f"set[{', '.join(sorted(self._value(v, depth + 1) for v in value))}]"
        if isinstance(value, Mapping):
            items = (
                f"{self._value(k, depth + 1)}: {self._value(v, depth + 1)}"
                for k, v in value.items()
            )
            return f"{{{', '.join(items)}}}"
        if isinstance(value, (np.ndarray, np.generic)):
            data = np.ascontiguousarray(value)
            body = b"" if data.dtype.hasobject else data.tobytes()
            return f"array {data.dtype} {data.shape} {_sha(body)}"
        if id(value) in self._seen:
            return self._name(value)
        self._seen[id(value)] = value  # Held, so that no other takes its place.
        if isinstance(value, functools.partial):
            inner = (value.func, value.args, value.keywords)
            return f"partial {self._value(inner, depth + 1)}"
        if isinstance(value, MethodType):
            return f"{self._value(value.__self__, depth + 1)}.{value.__func__.__name__}"
        if isinstance(value, ModuleType):
            self._module(value.__name__)
            return value.__name__
        if isinstance(value, (type, FunctionType)):
            self._defined(value)
            return self._name(value)
        self._defined(type(value))
        if dataclasses.is_dataclass(value):
            held = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
            return f"{self._name(type(value))} {self._value(held, depth + 1)}"
        if _by_file(type(value).__module__) is None and hasattr(value, "__dict__"):
            return f"{self._name(type(value))} {self._value(vars(value), depth + 1)}"
        if inspect.isroutine(value):
            self._module(str(getattr(value, "__module__", "") or ""))
        return self._name(type(value))

    def _name(self, value: Any) -> str:
        made = value if hasattr(value, "__qualname__") else type(value)
        file = _by_file(made.__module__)
        if file is not None and not is_installed(file):  # Loaded under any name.
            return f"{file.name}:{made.__qualname__}"
        return f"{made.__module__}.{made.__qualname__}"

    def _module(self, name: str) -> None:
        if name and name != "__main__":
            self.closure.add_module(name)

    def _defined(self, thing: type | FunctionType) -> None:
        """A class or function: its module's file, or itself."""
        if id(thing) in self._done:
            return
        self._done[id(thing)] = thing
        file = _by_file(thing.__module__)
        if file is not None:
            module = sys.modules.get(thing.__module__)
            if module is not None and _is_file_reference(module):
                self.closure.add_file(file, file.name)
            else:
                self._module(thing.__module__)
            if is_installed(file) or file.is_relative_to(HOME) or _is_there(thing):
                return
        # What its file does not tell: it has none, or a function made it, or its module was reloaded.
        if isinstance(thing, FunctionType):
            self._add(thing, "".join(self._function(thing)))
            return
        lines = [f"bases {self._value(thing.__bases__, 1)}"]
        for name, value in sorted(vars(thing).items()):
            if name not in _UNWRITTEN:
                lines.append(f"{name}: {''.join(self._attribute(value))}")
        self._add(thing, "\n".join(lines))

    def _add(self, thing: Any, text: str) -> None:
        name, digest = self._name(thing), _sha(text.encode())
        if self.objects.get(name, digest) != digest:  # Two lambdas have one name.
            digest = _sha(f"{self.objects[name]} {digest}".encode())
        self.objects[name] = digest

    def _attribute(self, value: Any) -> Iterator[str]:
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, property):
            for function in filter(None, (value.fget, value.fset, value.fdel)):
                yield from self._attribute(function)
        elif isinstance(value, FunctionType):
            yield from self._function(value)
        else:
            yield self._value(value, 1)

    def _function(self, function: FunctionType) -> Iterator[str]:
        self._seen[id(function)] = function
        self._done[id(function)] = function
        yield _bytecode(function.__code__)
        yield self._value((function.__defaults__, function.__kwdefaults__), 1)
        for cell in function.__closure__ or ():
            try:
                yield self._value(cell.cell_contents, 1)
            except ValueError:
                yield "empty"
        if _by_file(function.__module__) is not None:
            return  # Its file tells what it refers to; what has become of that here is not its code.
        for name in sorted(set(_globals(function.__code__))):
            if name in function.__globals__:
                yield f"{name} = {self._value(function.__globals__[name], 1)}"
        if wrapped := getattr(function, "__wrapped__", None):
            yield self._value(wrapped, 1)


def _is_there(thing: type | FunctionType) -> bool:
    """Whether a class or function is what its module has under its name."""
    found: Any = sys.modules.get(thing.__module__)
    for part in thing.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is thing


def _is_file_reference(module: ModuleType) -> bool:
    return module.__name__.startswith("perdure_file_")


def _by_file(module: str) -> Path | None:
    """The file of a module that has one of its own."""
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None)
    if found is None or module == "__main__":
        return None
    if not file:
        return Path("/") if module in sys.builtin_module_names else None
    return Path(file)


def _bytecode(code: CodeType) -> str:
    """A function's code without where it stands."""
    consts = [
        _bytecode(c) if isinstance(c, CodeType)
        else f"{sorted(map(repr, c))}" if isinstance(c, frozenset) else repr(c)
        for c in code.co_consts
    ]  # fmt: skip
    signature = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return f"{code.co_name} {code.co_code.hex()} {consts} {signature} {names}"


def _globals(code: CodeType) -> Iterator[str]:
    """The global names that some code reads, inner functions too."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(step.argval)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _globals(const)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
