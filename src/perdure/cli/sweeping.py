"""The body of sweep."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perdure.cli.terminal import say, tell
from perdure.errors import Interrupted, SpecError

if TYPE_CHECKING:
    from perdure.tuning import Sweep, SweepTrial

SHOWN = 10
"""Trials in the closing table."""


def sweep(curriculum: str, agent: str, search: Sequence[str], flags: Mapping[str, Any]) -> int:
    """Search, with a line for every trial; the best, and the command that reports it."""
    from perdure.run.signals import interruptible
    from perdure.tuning import sweep as run

    given = {k: v for k, v in flags.items() if v is not None}
    ranges = {}
    for text in search:
        name, eq, value = text.partition("=")
        if not eq or not name.strip().isidentifier():
            raise SpecError(f"--search {text!r}: expected NAME=RANGE, as strength=log(1,1e5)")
        ranges[name.strip()] = value
    line = _Line(int(given.get("trials", 20)))
    try:
        with interruptible():
            found = run(curriculum, agent, ranges, report=line.ended, **given)
    except Interrupted as e:
        again = shlex.join(["perdure", *sys.argv[1:]])
        tell(f"\nstopped by signal {e.signum}; nothing is lost. To resume: {again}")
        return 128 + e.signum
    _table(found)
    best = found.best
    if best is None:
        failed = next((t for t in found.trials if t.state == "failed"), None)
        tell(f"no trial was completed{f'; {failed.label} failed: {failed.why}' if failed else ''}")
        return 1
    say(f"\nbest: {_params(best)} ({found.settings.metric} {best.value:.4g}, trial {best.label})")
    chosen = shlex.join(["perdure", "run", curriculum, "--agent", found.agent(best)])
    say(f"to report it, on seeds that did not choose it: {chosen} --lifetimes 5")
    return 0


class _Line:
    """Says how each trial ended, and how long the rest may take."""

    def __init__(self, trials: int) -> None:
        self.trials, self.began = trials, time.monotonic()
        self.before: int | None = None
        """Trials that had ended before this command began."""

    def ended(self, found: Sweep, trial: SweepTrial) -> None:
        """A trial has ended."""
        if self.before is None:
            self.before = found.trials.index(trial)
        end = f"{trial.value:.4g}" if trial.value is not None else trial.state
        best = f"; best {found.best.value:.4g}" if found.best else ""
        done = sum(t.state != "running" for t in found.trials)
        each = (time.monotonic() - self.began) / (done - self.before)
        left = each * max(self.trials - done, 0)
        eta = f"; about {_span(left)} left" if left else ""
        tell(f"{trial.label} {_params(trial)}: {end}{best}{eta}")
        if trial.state == "failed":
            tell(f"  {trial.why}")


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _params(trial: SweepTrial) -> str:
    return ", ".join(f"{name}={value}" for name, value in trial.params.items())


def _table(found: Sweep) -> None:
    from perdure.show.sheet import Sheet

    sign = -1.0 if found.better == "higher" else 1.0
    ranked = sorted(
        (t for t in found.trials if t.value is not None), key=lambda t: sign * (t.value or 0.0)
    )
    names = list(found.settings.search)
    title = f"{found.settings.metric}, the best of {len(found.trials)} trials"
    sheet = Sheet(title, ["trial", *names, "value"], words=["trial", *names])
    for t in ranked[:SHOWN]:
        sheet.rows.append((t.label, *(str(t.params[n]) for n in names), f"{t.value:.4f}"))
    sheet.show()
    broken = {s: sum(t.state == s for t in found.trials) for s in ("pruned", "failed")}
    words = {"pruned": "broken off early", "failed": "failed"}
    if any(broken.values()):
        say("; ".join(f"{n} {words[s]}" for s, n in broken.items() if n))
