"""A live table of a running experiment, from nothing but its files."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from perdure.store.lock import Lock
from perdure.store.log import Lifetime

SHOWN = 20
REFRESH = 0.5
BAR = 60


def seconds(value: float | None) -> str:
    """A duration people can read."""
    if value is None:
        return "–"
    s = int(value)
    if s < 60:
        return f"{s} s"
    return f"{s // 60}:{s % 60:02d} min" if s < 3600 else f"{s // 3600}:{s % 3600 // 60:02d} h"


@dataclass
class Watcher:
    """Follows the jobs of a run by their progress files."""

    path: Path
    done: set[str] = field(default_factory=set)
    began: float = field(default_factory=time.monotonic)
    first: float | None = None

    def jobs(self) -> dict[str, float]:
        """Planned lifetimes and how long each is beside the others."""
        return _read(self.path / "_meta" / "jobs.json")

    def look(self) -> tuple[Group, bool]:
        """The table now, and whether everything has ended."""
        weights = self.jobs()
        counts: Counter[str] = Counter()
        rows: list[tuple[str, str, dict[str, Any]]] = []
        total = have = 0.0
        for job, weight in weights.items():
            status, progress = self._status(job)
            counts[status] += 1
            total += weight
            have += weight * (1.0 if status == "done" else progress.get("fraction") or 0.0)
            if status in ("running", "failed", "interrupted"):
                rows.append((job, status, progress))
        share = have / total if total else 0.0
        if self.first is None:
            self.first = share
        elapsed = time.monotonic() - self.began
        gained = share - self.first
        eta = elapsed * (1 - share) / gained if gained > 1e-6 else None
        ended = counts["done"] + counts["failed"] == len(weights) and bool(weights)
        line = Text.assemble(
            ("perdure ", "bold"),
            f"{self.path}  ",
            "  ".join(f"{n} {s}" for s, n in sorted(counts.items())),
            f"   {share:.0%}   elapsed {seconds(elapsed)}   ETA {seconds(0 if ended else eta)}",
        )
        filled = round(BAR * share)
        bar = Text.assemble(("━" * filled, "green"), ("━" * (BAR - filled), "dim"))
        return Group(line, bar, _table(rows)), ended

    def _status(self, job: str) -> tuple[str, dict[str, Any]]:
        folder = self.path / job
        meta = folder / "_meta"
        if job in self.done:
            return "done", {}
        if not meta.is_dir():
            return "waiting", {}
        progress = _read(meta / "progress.json")
        if Lock.held(meta / "lock"):
            return "running", progress
        if Lifetime.read(folder).done:
            self.done.add(job)
            return "done", progress
        return ("failed" if (meta / "error.json").exists() else "interrupted"), progress

    def summary(self) -> str:
        """One line, for logs that are not a terminal."""
        group, _ = self.look()
        return str(group.renderables[0])


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}  # Not written yet, or just being replaced: the next look sees it.
    return found


def _table(rows: list[tuple[str, str, dict[str, Any]]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("lifetime", "state", "block", "task", "score", "steps", "rate", "ETA"):
        table.add_column(name, justify="left" if name in ("lifetime", "state", "task") else "right")
    for job, status, p in rows[:SHOWN]:
        blocks = p.get("blocks")
        score = p.get("score")
        table.add_row(
            Text(job),
            Text(status, style={"failed": "red", "interrupted": "yellow"}.get(status, "green")),
            f"{p.get('block', 0) + 1}/{blocks}" if blocks else str(p.get("block", "") or ""),
            Text(f"{p.get('kind', '')} {p.get('task', '')}".strip()[:48]),
            "–" if score is None else f"{score:.2f} {p.get('measure', '')}",
            f"{p.get('steps', 0):,}",
            f"{p['rate']:,.0f}/s" if p.get("rate") else "–",
            seconds(p.get("eta")),
        )
    if len(rows) > SHOWN:
        table.add_row(f"… and {len(rows) - SHOWN} more")
    return table


class LiveView:
    """Shows a run while it runs in this process or elsewhere: a table on a terminal, a line now
    and then otherwise."""

    def __init__(self, path: Path, console: Console, every: float = 15.0) -> None:
        self.watcher, self.console, self.every = Watcher(path), console, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> LiveView:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        if self.console.is_terminal:
            with Live(console=self.console, refresh_per_second=4, transient=True) as live:
                while not self._stop.wait(REFRESH):
                    live.update(self.watcher.look()[0])
        else:
            while not self._stop.wait(self.every):
                self.console.print(self.watcher.summary(), highlight=False, soft_wrap=True)


def watch(path: Path, console: Console) -> None:
    """Follow a run until every lifetime has ended."""
    watcher = Watcher(path)
    if not console.is_terminal:
        console.print(watcher.look()[0])
        return
    with Live(console=console, refresh_per_second=4) as live:
        while True:
            group, ended = watcher.look()
            live.update(group)
            if ended:
                return
            time.sleep(REFRESH)
