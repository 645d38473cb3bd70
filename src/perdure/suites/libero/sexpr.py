"""S-expressions with the place of every word, for errors that say where they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from perdure.errors import PerdureError

_TOKEN = re.compile(r"[()]|[^\s();]+|;[^\n]*")


class BddlError(PerdureError):
    """A task file that cannot be read; the message begins with its name, line and column."""

    def __init__(self, source: str, line: int, column: int, problem: str) -> None:
        super().__init__(f"{source}:{line}:{column}: {problem}")
        self.source, self.line, self.column, self.problem = source, line, column, problem


@dataclass(frozen=True)
class Word:
    """A word and where it stands."""

    text: str
    line: int
    column: int


@dataclass(frozen=True)
class Expression:
    """What stands between two parentheses, and where it begins."""

    items: tuple[Word | Expression, ...]
    line: int
    column: int


Node: TypeAlias = Word | Expression


def refuse(source: str, at: Node, problem: str) -> NoReturn:
    """Raise the error of something that stands at a place."""
    raise BddlError(source, at.line, at.column, problem)


def tree(text: str, source: str) -> Expression:
    """The one group that a text is."""

    open_groups: list[tuple[Word, list[Node]]] = []
    whole: Expression | None = None
    here = Word("", 1, 1)
    for number, line in enumerate(text.splitlines(), 1):
        for match in _TOKEN.finditer(line):
            here = Word(match.group(), number, match.start() + 1)
            if here.text.startswith(";"):
                continue
            if whole is not None:
                refuse(source, here, f"the file is complete, but {here.text!r} follows")
            if here.text == "(":
                open_groups.append((here, []))
            elif not open_groups:
                refuse(source, here, f"expected '(define …', got {here.text!r}")
            elif here.text == ")":
                start, items = open_groups.pop()
                group = Expression(tuple(items), start.line, start.column)
                if open_groups:
                    open_groups[-1][1].append(group)
                else:
                    whole = group
            else:
                open_groups[-1][1].append(here)
    if whole is None:
        if open_groups:
            refuse(source, open_groups[-1][0], "this '(' is never closed")
        refuse(source, here, "the file is empty: expected '(define (problem …) …)'")
    return whole
