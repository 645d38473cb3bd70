"""The grammar of specifications: ``[label=]name[,key=value…]``, and calling what one names.

A name is a registered one or ``file.py:Object``, or several joined by ``+``; values are TOML, bare
words are strings, within lists and tables too: ``tasks=[push-v3, reach-v3]``.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from perdure.errors import SpecError, UnknownName
from perdure.names import check_name
from perdure.parameters import field_types, misfit, parameters_of, refused

Record = TypeVar("Record")
Self = TypeVar("Self")
First = TypeVar("First")
Fields = ParamSpec("Fields")

_PART = re.compile(r"(?:[^+/]*/.*?|[^+]*?)\.py:[^+]*|[^+]*")
"""One part of ``strategy+learner``. A file's path may hold a + after its first /."""


def is_file_reference(name: str) -> bool:
    """Whether a name has the form ``file.py:Object``."""
    return ".py:" in name


@dataclass(frozen=True)
class Spec:
    """A name with constructor parameters, as written on the command line."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read ``[label=]name[,key=value…]``; values are TOML, bare words are strings."""
        if not isinstance(text, str) or not text.strip():
            raise SpecError(f"expected NAME[,key=value…], got {text!r}")
        head, *rest = _split(text.strip())
        label = ""
        if "=" in head:
            label, head = head.split("=", 1)
            check_name("label", label)
        params: dict[str, Any] = {}
        for item in rest:
            key, eq, value = item.partition("=")
            if not eq or not key.strip().isidentifier():
                raise SpecError(f"{text!r}: expected key=value after the name, got {item!r}")
            params[key.strip()] = _value(value.strip())
        return cls(head.strip(), params, label)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names that are joined by ``+``. A + in a file's path is no joint after the path's
        first ``/``: ``./c++.py:Agent`` is one name, ``ewc+mine.py:Learner`` two."""
        out, at = [], 0
        while True:
            found = _PART.match(self.name, at)
            assert found is not None
            out.append(found[0])
            at = found.end() + 1
            if at > len(self.name):
                return tuple(out)

    def __str__(self) -> str:
        text = ",".join([self.name, *(f"{k}={shown(v)}" for k, v in self.params.items())])
        return f"{self.label}={text}" if self.label else text

    @property
    def short(self) -> str:
        """A folder-safe name: the label, or the name with its parameters."""
        if self.label:
            return self.label
        named = (p.rpartition(":")[2] if is_file_reference(p) else p for p in self.parts)
        base = "+".join(named)
        text = "-".join([base, *(f"{k}-{_word(v)}" for k, v in self.params.items())])
        safe = "".join(c if c.isalnum() or c in "._+-" else "-" for c in text).strip("-._")
        if len(safe) > 80:
            raise SpecError(
                f"{text!r} is too long for a folder name: give it a label, label={self.name},…"
            )
        return check_name("agent", safe)


def _split(text: str) -> list[str]:
    parts, depth, quote, start, escaped = [], 0, "", 0, False
    for i, c in enumerate(text):
        if quote:
            if escaped:
                escaped = False
            elif c == "\\" and quote == '"':
                escaped = True
            elif c == quote:
                quote = ""
        elif c in "\"'":
            quote = c
        elif c in "[{":
            depth += 1
        elif c in "]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _value(text: str) -> Any:
    try:
        found = tomllib.loads(f"x = {text}")
    except tomllib.TOMLDecodeError:
        return _bare(text)
    except ValueError:
        raise SpecError(f"{text[:40]!r}… is a number of too many digits") from None
    except RecursionError:
        raise SpecError(
            f"{text[:40]!r}… holds lists or tables in each other, too deep to read"
        ) from None
    return found["x"] if found.keys() == {"x"} else text


def _bare(text: str) -> Any:
    """A list or table that holds words without quotes; all else is such a word itself."""
    inner = text[1:-1].strip().removesuffix(",")
    if text[:1] == "[" and text[-1:] == "]" and inner:
        items = [item.strip() for item in _split(inner)]
        return [_value(item) for item in items] if all(items) else text
    if text[:1] == "{" and text[-1:] == "}":
        pairs = [item.partition("=") for item in _split(inner)]
        if all(eq and key.strip().isidentifier() and v.strip() for key, eq, v in pairs):
            return {key.strip(): _value(v.strip()) for key, _, v in pairs}
    return text


def shown(value: Any) -> str:
    """A value as :meth:`Spec.parse` reads it back: as TOML, strings bare where that is the same."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        bare = re.fullmatch(r"[^\s,\[\]{}\"'#=]+", value) is not None and _value(value) == value
        return value if bare and isinstance(_value(value), str) else _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(k)} = {_inside(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_inside, value)) + "]"
    return str(value)


def _inside(value: Any) -> str:
    """A value within a list or table, where no string is bare."""
    return _quoted(value) if isinstance(value, str) else shown(value)


def _quoted(text: str) -> str:
    # JSON's escapes are TOML's too, once characters beyond 16 bits are not split in two.
    return re.sub(
        r"[\x7f-\U0010ffff]",
        lambda m: m[0] if m[0].isprintable() else f"\\U{ord(m[0]):08x}",
        json.dumps(text, ensure_ascii=False),
    )


def _word(value: Any) -> str:
    """A value as part of a folder's name."""
    if isinstance(value, Mapping):
        return "-".join(f"{k}-{_word(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return "-".join(map(_word, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def call_with(what: str, function: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """Call a constructor with user-given parameters; a bad name gets a did-you-mean, a value of
    another type than the parameter's is refused."""
    signature = inspect.signature(function)
    known = parameters_of(function)
    names = list(known)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for name in params:
        if name not in names and not open_ended:
            raise UnknownName(
                f"parameter of {what}", name, names, f"(it takes: {', '.join(names) or 'none'})"
            )
        expected = misfit(params[name], known[name].annotation) if name in known else ""
        if expected:
            raise SpecError(refused(what, name, params[name], expected))
    try:
        signature.bind(*args, **params)
    except TypeError as e:
        raise SpecError(f"{what}: {e}") from e
    return function(*args, **params)


def checks_keywords(function: Callable[Fields, Record]) -> Callable[Fields, Record]:
    """Make a public function answer a wrong keyword as the command line does, with a did-you-mean."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: Fields.args, **keys: Fields.kwargs) -> Record:
        for name in keys:
            if name not in names:
                known = [n for n in names if n != "self"]
                hint = f"(it takes: {', '.join(known)})"
                raise UnknownName(f"keyword of {function.__name__}", name, known, hint)
        return function(*args, **keys)

    return checked


def takes_fields(
    record: Callable[Fields, Record],
) -> Callable[
    [Callable[[Self, First, Record], None]], Callable[Concatenate[Self, First, Fields], None]
]:
    """Make a constructor that wants a record as its last argument take the record's fields instead,
    one by one.

    Its signature names them with their defaults, so that specifications, ``help`` and type checkers
    know them; its body has them in one typed object.
    """

    def wrap(
        init: Callable[[Self, First, Record], None],
    ) -> Callable[Concatenate[Self, First, Fields], None]:
        @functools.wraps(init)
        def flat(self: Self, first: First, /, *args: Fields.args, **fields: Fields.kwargs) -> None:
            init(self, first, record(*args, **fields))

        own, fields = (inspect.signature(f).parameters.values() for f in (init, record))
        before = [p.replace(kind=p.POSITIONAL_ONLY) for p in list(own)[:2]]
        kinds = field_types(record) if isinstance(record, type) else {}
        typed = [p.replace(annotation=kinds.get(p.name, p.annotation)) for p in fields]
        flat.__signature__ = inspect.Signature([*before, *typed])  # type: ignore[attr-defined]
        return flat

    return wrap


def with_preset(what: str, params: Mapping[str, Any], *parts: Any) -> dict[str, Any]:
    """Parameters with those of the preset they name below them.

    A learner may have ``presets``, a mapping from names to parameters: ``sac,preset=newer,lr=1e-3``
    is all of ``newer`` except its ``lr``. So may a strategy; of two parts that know the name, the
    later one has the last word.
    """
    own = dict(params)
    if "preset" not in own:
        return own
    name, presets = str(own.pop("preset")), [getattr(part, "presets", {}) for part in parts]
    known = dict.fromkeys(itertools.chain(*presets))
    if name not in known:
        raise UnknownName(
            f"preset of {what}", name, known, f"(it has: {', '.join(known) or 'none'})"
        )
    found = [item for preset in presets for item in preset.get(name, {}).items()]
    return {**dict(found), **own}
