"""What there is to run, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.markup import escape
from rich.table import Table

from perdure.show.screen import SafeConsole

DETAILS = ("budget", "better", "needs", "works with", "presets")
"""What is shown in small print below a line."""
FAMILY = 6
"""So many names that differ in their last part alone are shown as one line."""


def show_listing(found: Mapping[str, Sequence[dict[str, str]]]) -> None:
    """A table for each kind of thing: its name, and what it is."""
    screen = SafeConsole()
    for part, items in found.items():
        table = Table(title=part, title_justify="left", box=None, pad_edge=False)
        table.add_column("name", no_wrap=True)
        table.add_column("what")
        for item in _folded(items):
            details = [item[k] for k in DETAILS if item.get(k)]
            detail = f"\n[dim]{escape(' · '.join(details))}[/dim]" if details else ""
            table.add_row(escape(item["name"]), escape(item["about"]) + detail)
        screen.print(table if items else f"{part}: none")
        screen.print()


def _folded(items: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The list with each large family as one line; ``--json`` has them all."""
    families: dict[str, list[dict[str, str]]] = {}
    for item in items:
        families.setdefault(item["name"].rpartition("/")[0], []).append(item)
    out = []
    for prefix, family in families.items():
        if prefix.count("/") and len(family) >= FAMILY:
            first, last = (
                family[0]["name"].rpartition("/")[2],
                family[-1]["name"].rpartition("/")[2],
            )
            about = f"{len(family)} of a kind, {first} … {last}: {family[0]['about']}"
            out.append({"name": f"{prefix}/…", "about": about})
        else:
            out += family
    return out
