"""A live table of a running experiment, from nothing but its files.

Watching writes nothing.
"""

from __future__ import annotations

import html
import importlib
import io
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from perdure.errors import StoreError
from perdure.names import join_task_id
from perdure.show import eta
from perdure.show.rounding import seconds
from perdure.show.screen import SafeConsole
from perdure.store.history import PREFERRED
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.log import Lifetime
from perdure.store.plain import visible
from perdure.store.run import Run

SHOWN = 20
REFRESH = 0.5
BAR = 60
WIDE = 110
"""On narrower terminals some columns are left out."""
_SUITE = re.compile(r"(?<=\s)[\w.-]+/(?=[^\s\d])")
"""A task's suite, which is not the 12/30 of videos."""
LINE = 10_000
"""Columns of a log, which has no end to its lines."""
FAILED = 3
"""So many failures are told in full below the table."""
PAUSE = 10.0
"""Seconds that may lie between the end of a lifetime and the beginning of the next."""
ORDER = ("running", "damaged", "failed", "interrupted", "done")
STYLES = {"damaged": "red", "failed": "red", "interrupted": "yellow", "done": "dim"}


@dataclass(frozen=True)
class LifetimeStatus:
    """One lifetime at one moment."""

    job: str
    status: str
    progress: dict[str, Any] = field(default_factory=dict)
    worked: tuple[tuple[float, float], ...] = ()
    """From when to when it was worked on, in seconds since 1970."""
    doing: str = ""
    score: str = "–"

    @property
    def fraction(self) -> float:
        """Share of the lifetime that is done."""
        return 1.0 if self.status == "done" else self.progress.get("fraction") or 0.0


@dataclass
class Watcher:
    """Follows the jobs of a run by their files."""

    path: Path
    done: dict[str, LifetimeStatus] = field(default_factory=dict)
    finals: dict[str, LifetimeStatus] = field(default_factory=dict)
    folders: dict[str, LifetimeFolder] = field(default_factory=dict)
    """They remember what they saw last."""
    left: tuple[float, float] = (float("-inf"), 0.0)
    """When the time that is left was last known, and what it was."""

    def look(self, width: int = WIDE) -> tuple[Group, bool]:
        """The table now, for so many columns, and whether everything has ended."""
        run = RunFolder(self.path)
        # Where the plan cannot be read: what there is.
        weights = run.jobs() or dict.fromkeys(run.lifetimes(), 1.0)
        # Of what has not begun there is nothing to look at, and it may be thousands.
        begun = run.begun(job for job in weights if job not in self.done)
        looks = [
            self._look(run, job)
            if job in begun or job in self.done
            else LifetimeStatus(job, "waiting")
            for job in weights
        ]
        counts = Counter(x.status for x in looks)
        jobs = [_job(x, weights[x.job]) for x in looks]
        total = sum(weights.values())
        have = sum(weights[x.job] * x.fraction for x in looks)
        share = eta.share_done(jobs) if counts["running"] else None
        share = (have / total if total else 0.0) if share is None else share
        elapsed = parallel(span for x in looks for span in x.worked)
        over = counts["done"] + counts["failed"] + counts["damaged"]
        ended = over == len(weights) and bool(weights)
        words = "  ".join(f"{counts[s]} {s}" for s in (*ORDER, "waiting") if counts[s])
        if ended:
            clock = f"ended after {seconds(elapsed)}"
        else:
            clock = f"elapsed {seconds(elapsed)}   ETA {seconds(self._eta(jobs))}"
        clock = f"{share:.0%}   {clock}"
        name = visible(str(self.path))
        # What does not fit goes to a line of its own, not to the middle of the next.
        split = len(f"perdure {name}  {words}   {clock}") > width
        gap = "\n" if split else "   "
        line = Text.assemble(("perdure ", "bold"), f"{name}  {words}{gap}{clock}")
        filled = round(BAR * share)
        bar = Text.assemble(("━" * filled, "green"), ("━" * (BAR - filled), "dim"))
        shown = sorted(
            (x for x in looks if x.status in ORDER),
            key=lambda x: (ORDER.index(x.status), "/experts/" in x.job),
        )
        rows = [self._final(x) if x.status == "done" else x for x in shown[:SHOWN]]
        failed = [x for x in rows if x.status in ("damaged", "failed") and x.doing]
        whole = [Text(visible(f"{x.job}: {x.doing}"), style="red") for x in failed[:FAILED]]
        if len(failed) > FAILED:
            whole.append(Text(f"… and {len(failed) - FAILED} more that failed", style="red"))
        return Group(line, bar, _table(rows, len(shown) - len(rows), width), *whole), ended

    def _eta(self, jobs: Sequence[eta.JobTime]) -> float | None:
        """What is left; between two lifetimes, when nobody is at work for a moment, what was left."""
        now, found = time.monotonic(), eta.time_left(jobs)
        if found is not None:
            self.left = (now, found)
        then, left = self.left
        return left - (now - then) if now - then < min(PAUSE, left) else found

    def _final(self, look: LifetimeStatus) -> LifetimeStatus:
        """A finished lifetime with its final score, which is read once."""
        if look.job not in self.finals:
            found = final_score(self.folders[look.job])
            if found is not None:
                mean, measure, tasks = found
                doing = f"at the end, {tasks} task{'s' * (tasks > 1)}"
                look = replace(look, doing=doing, score=_score(mean, measure))
            self.finals[look.job] = look
        return self.finals[look.job]

    def _look(self, run: RunFolder, job: str) -> LifetimeStatus:
        if job in self.done:
            return self.done[job]
        folder = self.folders.setdefault(job, run.lifetime(job))
        status = folder.status()
        if status in ("waiting", "damaged"):
            return LifetimeStatus(job, status, doing=folder.trouble())
        progress = folder.progress()
        doing = _doing(progress)
        score = _score(progress.get("score"), progress.get("measure"))
        if status == "running":
            return LifetimeStatus(job, status, progress, folder.worked(time.time()), doing, score)
        spans = folder.worked(folder.last_sign())
        progress["eta"] = None
        if status == "done":
            self.done[job] = LifetimeStatus(job, status, progress, spans, doing, score)
            return self.done[job]
        progress["rate"] = None
        error = folder.error() if status == "failed" else None
        doing = str(error["error"]).partition("\n")[0] if error else doing
        return LifetimeStatus(job, status, progress, spans, doing, score)

    def summary(self) -> str:
        """One line, for logs that are not a terminal."""
        group, _ = self.look(LINE)
        return str(group.renderables[0])


def _doing(progress: dict[str, Any]) -> str:
    """What a lifetime is at: learn push, or recording 12/30 push."""
    videos = progress.get("videos") if progress.get("kind") == "video" else None
    what = f"recording {videos}" if videos else progress.get("kind", "")
    return f"{what} {progress.get('task', '')}".strip()


def _job(look: LifetimeStatus, weight: float) -> eta.JobTime:
    """What is known of how long a lifetime takes."""
    running = look.status == "running"
    return eta.JobTime(
        look.job,
        weight,
        parallel(look.worked),
        look.progress.get("eta") if running else None,
        running,
        look.status in ("done", "failed", "damaged"),
    )


def parallel(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of the spans lasted."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(end - max(start, until), 0.0)
        until = max(until, end)
    return total


def final_score(folder: LifetimeFolder) -> tuple[float, str, int] | None:
    """Of a lifetime's last evaluation block: the mean over tasks of their mean score, the measure,
    and how many tasks. None if nothing was evaluated."""
    scores: dict[str, dict[str, list[float]]] = {}
    block = -1
    columns = ["block", "kind", "task", "variant", "status", *PREFERRED]
    life = Lifetime.read(folder.path, owner=folder.owner())
    for commit in reversed(life.commits):
        try:
            rows = life.segment(commit, columns).to_pylist()
        except StoreError:
            return None  # Being repaired or damaged: `perdure check` is who tells.
        evals = [r for r in rows if r["kind"] == "eval" and r["status"] != "incomplete"]
        block = max(block, *(r["block"] for r in evals)) if evals else block
        for r in evals:
            for measure in PREFERRED:
                if r["block"] == block and r.get(measure) is not None:
                    task = join_task_id("", r["task"], r["variant"])
                    scores.setdefault(measure, {}).setdefault(task, []).append(r[measure])
        if rows and rows[0]["block"] < block:
            break
    for measure in PREFERRED:
        if measure in scores:
            means = [sum(v) / len(v) for v in scores[measure].values()]
            return sum(means) / len(means), measure, len(means)
    return None


def short(text: str, most: int) -> str:
    """At most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _middle(text: str, most: int) -> str:
    """At most so many characters, without the middle: names often differ at their ends."""
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[-half:]}"


def _score(value: float | None, measure: str | None) -> str:
    return "–" if value is None else f"{value:.2f} {measure or ''}".strip()


def _table(looks: list[LifetimeStatus], hidden: int, width: int) -> Table:
    table, narrow = Table(box=None, pad_edge=False), width < WIDE
    left, spare = ("lifetime", "state", "task", "score"), ("steps", "time", "rate")
    names = ("lifetime", "state", "block", "task", "score", "steps", "rate", "time", "ETA")
    shown = [n for n in names if not (narrow and n in spare)]
    for name in shown:
        side: Literal["left", "right"] = "left" if name in left else "right"
        table.add_column(name, justify=side, no_wrap=True)
    rows = [_cells(x, narrow) for x in looks]
    # What a lifetime does takes the room that the others leave.
    others = [max(map(len, (n, *(str(r[n]) for r in rows)))) for n in shown if n != "task"]
    room = min(max(width - sum(others) - 2 * len(others), 8), 48)
    for row in rows:
        row["task"] = Text(short(str(row["task"]), room))
        table.add_row(*(row[n] for n in shown))
    if hidden:
        table.add_row(f"… and {hidden} more")
    return table


def _cells(x: LifetimeStatus, narrow: bool) -> dict[str, str | Text]:
    """The cells of a lifetime's row by their columns."""
    p = x.progress
    blocks = p.get("blocks")
    number = f"{(p.get('block') or 0) + 1}" if p else ""
    doing = visible(" ".join(x.doing.split()))
    if narrow and x.status in ("running", "interrupted"):
        doing = _SUITE.sub("", doing)
    return {
        "lifetime": Text(_middle(visible(x.job), 22) if narrow else visible(x.job)),
        "state": Text(x.status, style=STYLES.get(x.status, "green")),
        "block": f"{number}/{blocks}" if blocks else number,
        "task": doing,
        "score": Text(short(visible(x.score), 16) if narrow else visible(x.score)),
        "steps": f"{p.get('steps') or 0:,}",
        "rate": f"{p['rate']:,.0f}/s" if p.get("rate") else "–",
        "time": seconds(parallel(x.worked)),
        "ETA": seconds(p.get("eta")),
    }


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
                    live.update(self.watcher.look(self.console.width)[0])
        else:
            while not self._stop.wait(self.every):
                self.console.print(self.watcher.summary(), highlight=False, soft_wrap=True)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class NotebookView(LiveView):
    """Shows a run below the notebook's cell that runs it, and in the end how it went."""

    def __init__(self, path: Path) -> None:
        # Plain text: rich would make outputs of its own in a notebook.
        plain: dict[str, Any] = {"force_jupyter": False, "force_terminal": False, "no_color": True}
        super().__init__(path, SafeConsole(file=io.StringIO(), width=WIDE, **plain))
        self._handle: Any = None

    def __enter__(self) -> LiveView:
        display: Any = importlib.import_module("IPython.display").display
        # Made by the cell's own thread, so that the notebook knows whose output it is.
        self._handle = display(self._shown(), raw=True, display_id=True)
        return super().__enter__()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._handle.update(self._shown(), raw=True)

    def _run(self) -> None:
        while not self._stop.wait(REFRESH):
            self._handle.update(self._shown(), raw=True)

    def _shown(self) -> dict[str, str]:
        with self.console.capture() as caught:
            self.console.print(self.watcher.look(WIDE)[0])
        text = caught.get().rstrip()
        return {"text/plain": text, "text/html": f"<pre>{html.escape(text)}</pre>"}


def watch(path: Path, console: Console) -> int:
    """Follow a run until every lifetime has ended. 1 if any is damaged, or if there is something
    in its folder that is none of it."""
    watcher = Watcher(path)
    if not console.is_terminal:
        console.print(watcher.look(console.width)[0])
    else:
        with Live(console=console, refresh_per_second=4) as live:
            ended = False
            while not ended:
                group, ended = watcher.look(console.width)
                live.update(group)
                if not ended:
                    time.sleep(REFRESH)
    gaps = Run(path).gaps()
    for gap in gaps:
        if gap.id not in watcher.folders and (gap.damage or not gap.id):
            console.print(Text(visible(str(gap)), style="red"), soft_wrap=True)
    return int(any(gap.damage for gap in gaps))
