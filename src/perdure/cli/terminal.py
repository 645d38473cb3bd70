"""What goes to the terminal: names and errors come from files, and must not steer it."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from perdure.store.plain import visible


def say(text: str) -> None:
    """A line on standard output."""
    print(visible(text))


def tell(text: str) -> None:
    """A line on standard error."""
    print(visible(text), file=sys.stderr)


def lacking(problems: Mapping[str, str], partial: bool, said: bool = False) -> int:
    """Say what numbers were made without, unless that is ``said`` already; the exit code."""
    for name, why in () if said else problems.items():
        tell(f"not measured: {name}: {why}")
    if problems and not partial:
        tell("exit code 1: the numbers are without these; --partial says that they may be")
    return 1 if problems and not partial else 0


def remark(text: str, style: str = "") -> None:
    """A paragraph on standard output, broken between words on a terminal, one line elsewhere."""
    if not text:
        return
    if not sys.stdout.isatty():
        say(text)
        return
    from perdure.show.screen import SafeConsole

    SafeConsole().print(text, style=style, highlight=False, markup=False)
