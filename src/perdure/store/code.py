"""What a lifetime executed, as its description tells it, and where lifetimes differ in it.

A description holds under ``code`` one record for each version that the lifetime was run with: one,
unless its user said that versions may be mixed. A record has three parts, each a mapping from names to
digests or versions::

    agent      the agent's own files, and classes or functions of a notebook
    world      those of environments, data and curriculum
    versions   Python and the distributions that these import

Lifetimes of one agent should agree in all of it, lifetimes of different agents in the world.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Mapping[str, str]]
PARTS = ("agent", "world", "versions")
PERDURE = "perdure"
"""The name of Perdure's own files in a record, all under one digest, where it is not an installed
package."""
SHOWN = 5
"""Names that a message tells."""


def recorded(described: Mapping[str, Any]) -> tuple[Record, ...]:
    """The records in a description; none in one of before there were any. What is not of the right
    kind is left out: a folder may come from anybody."""
    found = described.get("code")
    if not isinstance(found, list):
        return ()
    return tuple(r for r in found if isinstance(r, dict) and all(map(_names, map(r.get, PARTS))))


def _names(part: Any) -> bool:
    return isinstance(part, dict) and all(isinstance(v, str) for v in part.values())


def differences(one: Record, other: Record, *, agent: bool = True) -> list[str]:
    """What is not the same in two records. ``agent``: of one agent, else of two, which differ in
    their own files, and need not import the same distributions."""
    out: dict[str, None] = {}
    for part in PARTS[0 if agent else 1 :]:
        a, b = one[part], other[part]
        names = sorted({*a, *b} if agent or part == "world" else {*a} & {*b})
        out |= {name: None for name in names if a.get(name) != b.get(name)}
    return list(out)


def own_code(names: Iterable[str], *records: Record) -> list[str]:
    """Those of some names that are the user's own files or objects: neither Perdure nor versions."""
    mine = {name for record in records for part in PARTS[:2] for name in record[part]}
    return [name for name in names if name in mine and name != PERDURE]


def among(records: Sequence[Record], *, agent: bool = True) -> list[str]:
    """What is not the same in all of some records."""
    distinct: list[Record] = []
    for record in records:
        if record not in distinct:
            distinct.append(record)
    return list(
        dict.fromkeys(
            name for other in distinct[1:] for name in differences(distinct[0], other, agent=agent)
        )
    )


def told(names: Sequence[str]) -> str:
    """Names in a sentence."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
