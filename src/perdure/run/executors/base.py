"""What an executor is.

A cluster executor implements :class:`Executor`: start ``plan.command(job)`` for each job on any
machine that sees the run's folder, and report an :class:`Outcome` when it has ended. Only the log
says that a lifetime is done: a worker may end with any exit code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from perdure.errors import SpecError
from perdure.run.lifetime import Outcome
from perdure.run.plan import Job, Plan
from perdure.run.progress import BEAT

Report = Callable[[Outcome], None]
LEAST = 2 * BEAT
"""The shortest deadline in seconds: signs of life come once a beat."""
MOST = 1e8
"""The longest: some three years, and what every system's clocks take."""


class Executor(Protocol):
    """Runs jobs, in any order and anywhere, and reports each outcome once."""

    def run(self, plan: Plan, jobs: Sequence[Job], report: Report) -> None:
        """Return when every job is done or failed. On Interrupted, stop what runs and raise."""


def check_patience(who: str, deadline: object, retries: object) -> None:
    """SpecError unless a deadline and a number of retries make sense."""
    if (
        not isinstance(deadline, (int, float))
        or isinstance(deadline, bool)
        or not LEAST <= deadline <= MOST
    ):
        raise SpecError(
            f"{who}: deadline must be a number of seconds from {LEAST:g} to {MOST:g}, got {deadline!r}"
        )
    check_count(who, "retries", retries)


def check_count(who: str, name: str, value: object) -> None:
    """SpecError unless an option is a whole number ≥ 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise SpecError(f"{who}: {name} must be a whole number ≥ 0, got {value!r}")
