"""Tables of text, for a terminal and for programs that read what would stand there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from perdure.store.plain import visible


@dataclass
class Sheet:
    """A table of strings; columns of ``words`` are flush left, the others flush right. A cell may have
    several lines, which become one where a row is a line."""

    title: str
    head: Sequence[str]
    words: Sequence[str] = ()
    rows: list[Sequence[str]] = field(default_factory=list)
    """An empty one is a line across."""

    def show(self) -> None:
        """On a terminal drawn by rich; elsewhere a line of text a row, without loading rich."""
        if sys.stdout.isatty():
            self._draw()
        else:
            self._print()

    def _print(self) -> None:
        print(self.text())

    def text(self) -> str:
        """A line of text a row."""
        plain = [[" ".join(cell.split("\n")) for cell in row] for row in (self.head, *self.rows)]
        lines = [[visible(cell) for cell in row] for row in plain]
        widths = [max(len(row[k]) for row in lines if row) for k in range(len(self.head))]
        across = "  ".join("-" * w for w in widths)
        out = [visible(line) for line in self.title.split("\n")] if self.title else []
        for k, row in enumerate(lines):
            cells = (
                cell.ljust(w) if name in self.words else cell.rjust(w)
                for cell, w, name in zip(row, widths, self.head, strict=True)
            )
            out.append("  ".join(cells).rstrip() if row else across)
            if k == 0:
                out.append(across)
        return "\n".join(out)

    def _draw(self) -> None:
        from rich.markup import escape
        from rich.table import Table

        from perdure.show.screen import SafeConsole

        table = Table(title=escape(self.title) or None, title_justify="left")
        for name in self.head:
            if name in self.words:
                table.add_column(escape(name), overflow="fold")
            else:
                table.add_column(escape(name), justify="right", min_width=7)
        for row in self.rows:
            if row:
                table.add_row(*map(escape, row))
            else:
                table.add_section()
        SafeConsole().print(table)
