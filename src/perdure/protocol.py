"""Evaluation protocols: named, hashed sets of the parameters that decide what a number means.

The same benchmark is evaluated with other horizons, initial states, settle steps, pictures and action
conventions by every group that reports it. A protocol says them all. Its hash stands in the curriculum's
outline, and with it in every result, so that numbers of different protocols are not taken for the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perdure.errors import CurriculumError

DIGITS = 12


@dataclass(frozen=True)
class EvalProtocol:
    """A name and what it stands for; a changed one is still called after what it was made from."""

    name: str
    values: Mapping[str, Any]
    """By parameter; plain JSON."""
    changes: Mapping[str, Any] | None = None
    """What is other than the name says."""

    def __post_init__(self) -> None:
        try:
            json.dumps(dict(self.values), sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as e:
            raise CurriculumError(
                f"protocol {self.name}: values must be plain JSON, got {dict(self.values)!r} ({e})"
            ) from e

    @property
    def hash(self) -> str:
        """Twelve hex digits of all values: equal ones mean the same evaluation, whatever the name."""
        text = json.dumps(dict(self.values), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A value, or the default where the protocol says nothing of it."""
        return self.values.get(name, default)

    def changed(self, **values: Any) -> EvalProtocol:
        """The protocol with other values; those that are as they were change nothing."""
        new = {k: v for k, v in values.items() if k not in self.values or self.values[k] != v}
        if not new:
            return self
        return EvalProtocol(self.name, {**self.values, **new}, {**(self.changes or {}), **new})

    def __str__(self) -> str:
        more = ", ".join(f"{k}={_plain(v)}" for k, v in (self.changes or {}).items())
        return f"{self.name}{f' with {more}' if more else ''} ({self.hash})"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        out = {"name": self.name, "hash": self.hash, "values": dict(self.values)}
        return out | ({"changes": dict(self.changes)} if self.changes else {})

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> EvalProtocol:
        """The protocol that :meth:`to_json` wrote."""
        return cls(values["name"], values["values"], values.get("changes"))


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """What differs between the values of two protocols, a line each."""
    lines = []
    for name in dict.fromkeys((*a, *b)):
        if name not in a or name not in b or a[name] != b[name]:
            had, has = (_plain(v[name]) if name in v else "–" for v in (a, b))
            lines.append(f"{name}: {had} | {has}")
    return lines


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
