"""What a constructor or function can be told: its parameters, and whether a value is of their type."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin

LISTS = (
    *(list, tuple, set, frozenset),
    *(collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable),
)
TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that a specification can give by name, with resolved types; one whose type
    cannot be known is of type Any."""
    named = {
        name: p for name, p in inspect.signature(function).parameters.items() if p.kind in NAMED
    }
    where = _namespace(function)
    return {n: p.replace(annotation=_resolved(p.annotation, where)) for n, p in named.items()}


def field_types(record: type) -> dict[str, Any]:
    """The types of a dataclass's fields, those it inherits too, each as its own module means it."""
    found: dict[str, Any] = {}
    for cls in reversed(record.__mro__):
        where = vars(inspect.getmodule(cls) or typing)
        for name, annotation in vars(cls).get("__annotations__", {}).items():
            found[name] = _resolved(annotation, where)
    return found


def _namespace(function: Callable[..., Any]) -> dict[str, Any]:
    """What the words in a callable's annotations mean."""
    inner: Any = getattr(function, "__init__", None) if isinstance(function, type) else function
    inner = getattr(inspect.unwrap(inner), "func", inspect.unwrap(inner))
    return getattr(inner, "__globals__", {})


def _resolved(annotation: Any, where: Mapping[str, Any]) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, dict(where))["it"]
    except Exception:
        return Any  # Names that exist for type checkers alone.


def misfit(value: Any, kind: Any) -> str:
    """What was expected, in words, where a value is not of a type; ``""`` where it is, or where the
    type is none that a specification can write."""
    return "" if _fits(value, kind) else in_words(kind)


def _fits(value: Any, kind: Any) -> bool:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_fits(value, k) for k in args)
    if origin is Literal:
        return any(value == a and type(value) is type(a) for a in args)
    if kind in (int, float):
        number = Integral if kind is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    if kind in (bool, str, types.NoneType):
        return isinstance(value, kind)
    if kind in TABLES or origin in TABLES:
        return isinstance(value, collections.abc.Mapping)
    if kind in LISTS or origin in LISTS:
        return _fits_list(value, origin, args)
    return True


def _fits_list(value: Any, origin: Any, args: Sequence[Any]) -> bool:
    if isinstance(value, (str, bytes)) or not isinstance(value, collections.abc.Iterable):
        return False
    if not args or not isinstance(value, collections.abc.Sequence):
        return True
    if origin is tuple and args[-1] is not ...:
        return len(value) == len(args) and all(map(_fits, value, args))
    return all(_fits(v, args[0]) for v in value)


def in_words(kind: Any) -> str:
    """A type as a person would say it."""
    simple = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    origin, args = get_origin(kind), get_args(kind)
    if kind in simple:
        return simple[kind]
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if origin in (Union, types.UnionType):
        written = [k for k in args if k is not types.NoneType and not _is_object(k)]
        return " or ".join(map(in_words, written or args))
    if kind in TABLES or origin in TABLES:
        return "a table {key=value}"
    if origin is tuple and args[-1] is not ...:
        return f"a list [{', '.join(map(in_words, args))}]"
    if kind in LISTS or origin in LISTS:
        many = {int: "whole numbers", float: "numbers", str: "names", bool: "true or false"}
        return f"a list of {many[args[0]]}" if args and args[0] in many else "a list"
    return "anything" if kind is Any else getattr(kind, "__name__", str(kind))


def _is_object(kind: Any) -> bool:
    """Whether only Python, no specification, can write values of a type."""
    plain = (int, float, bool, str, types.NoneType, *LISTS, *TABLES)
    return isinstance(kind, type) and get_origin(kind) is None and kind not in plain


def refused(what: str, name: str, value: Any, expected: str) -> str:
    """The words of a refusal, with how it could be written where that is plain."""
    hint = ""
    if expected.startswith("a whole number") and isinstance(value, float) and value.is_integer():
        hint = f" (write {name}={value:.0f})"
    elif expected.startswith("a list") and not isinstance(value, (Mapping, list, tuple)):
        hint = f" (write {name}=[{value}])"
    elif expected == "text":
        hint = f" (write {name}='\"{value}\"')"
    return f"{what}: {name} must be {expected}, got {value!r}{hint}"
