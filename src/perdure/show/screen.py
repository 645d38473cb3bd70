"""Standard output by rich, for those who look at it."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from perdure.store.plain import visible


class SafeConsole(Console):
    """A console that spells out what a terminal would obey: names and errors come from files."""

    def render_str(self, text: str, **kwargs: Any) -> Text:
        """A string as it will be shown."""
        return super().render_str(visible(text), **kwargs)
