"""What there is to run, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from perdure.show.screen import SafeConsole
from perdure.show.sheet import Sheet

DETAILS = ("budget", "better", "needs", "presets")
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


def show_details(item: Mapping[str, Any]) -> None:
    """One part: what it is, its parameters and presets, its docstring, and how it is written."""
    lines = [f"{item['kind']} {item['name']}: {item['about']}"]
    for name in ("source", "budget", "better", "needs", "works with", "tasks", "curricula"):
        value = item.get(name)
        if value:
            listed = value if isinstance(value, str) else _some(value)
            lines.append(f"  {name:10}  {listed}{' is better' * (name == 'better')}")
    _print(lines)
    if "parameters" in item:
        sheet = Sheet("", ("parameter", "type", "default"), words=("parameter", "type", "default"))
        for p in item["parameters"]:
            sheet.rows.append((p["name"], p["type"], p.get("default", "must be given")))
        _print([""] if sheet.rows else ["", "It takes no parameters."])
        if sheet.rows:
            sheet.show()
    presets = item.get("presets") or {}
    for name, values in presets.items():
        told = ",".join(f"{k}={v}" for k, v in values.items())
        _print(["", f"preset={name}: {told}"])
    if item.get("doc"):
        _print(["", item["doc"]])
    _print(["", item["use"], ""])


def _some(names: Sequence[str], most: int = 12) -> str:
    rest = f" … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _print(lines: Sequence[str]) -> None:
    SafeConsole(soft_wrap=True).print("\n".join(lines), markup=False, highlight=False)


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
