"""What goes to the terminal: names and errors come from files, and must not steer it."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from perdure.store.plain import visible

WIDE = 160
"""Columns of tables that do not go to a terminal."""


class SafeConsole(Console):
    """A console that spells out what a terminal would obey."""

    def render_str(self, text: str, **kwargs: Any) -> Text:
        """A string as it will be shown."""
        return super().render_str(visible(text), **kwargs)


def console(**options: Any) -> SafeConsole:
    """For tables on standard output; wide where nobody looks."""
    if not sys.stdout.isatty():
        options = {"width": WIDE, **options}
    return SafeConsole(**options)


def say(text: str) -> None:
    """A line on standard output."""
    print(visible(text))


def tell(text: str) -> None:
    """A line on standard error."""
    print(visible(text), file=sys.stderr)
